"""Loops over one prompt in the simulation: how they are set, and the promises about their rounds."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from tests.simulation.promises.invariants import Problems, Watch, at_end, moves, on_commit
from tests.simulation.rows import Change
from tests.simulation.trouble import Trouble

from loopwright.core.policy.escalations import RETRY
from loopwright.core.policy.rejections import REJECTED
from loopwright.core.policy.rounds import ROUND, Stop, deadline, loops
from loopwright.core.rows.model import Attempt, Command, Plan, Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.failures import RULES, Failure, Level
from loopwright.core.values.policy import RoundsPolicy
from loopwright.core.values.states import AttemptState, PlanState, TaskState
from loopwright.engine.intake.submit import Submission
from loopwright.engine.people.handover import HUMAN

_SLOW_S: Final = 25.0
"""How long a round that was decided on may take until it has its place, and longer where workers stand still."""
_FROZEN_S: Final = 120.0


def as_prompt(trouble: Trouble, asked: Submission) -> Submission:
    """Return a submission as a loop over one prompt: its first task, with or without a goal."""
    chance = trouble.chance(f"prompt {asked.work.sha256}")
    [task] = asked.work.tasks[:1]
    if chance.random() < 0.4:
        task = replace(task, acceptance=())
    rounds = RoundsPolicy(
        max=chance.choice((1, 2, 3, 5)),
        sleep=chance.choice((0.0, 5.0, 20.0)),
        until=chance.choice(("auto", "green", "quiet")),
        unchanged=chance.choice((1, 2)),
        stop_after=chance.choice((None, None, 40.0, 150.0)),
    )
    return replace(
        asked,
        work=replace(asked.work, tasks=(task,), rounds=True),
        policy=replace(asked.policy, rounds=rounds),
    )


_ON_AND_ON: Final = ("retry", "reject", "rollback", "hand_back", "take_over", "reverify")


def _by_a_person(watch: Watch, plan: Plan) -> bool:
    """Say whether a person asked for anything that lets a loop go on after its end, or answered so."""
    tasks = {one.id for one in watch.all(Task).values() if one.plan_id == plan.id}
    answers = (_meant(one) for one in watch.all(Question).values() if one.plan_id == plan.id and one.answer)
    return any(answer.startswith(RETRY) for answer in answers) or any(
        one.target in {plan.id, *tasks} and one.verb in _ON_AND_ON for one in watch.all(Command).values()
    )


def _meant(question: Question) -> str:
    """Return an answer; a number stands for an option."""
    answer = question.answer or ""
    return question.options[int(answer) - 1] if answer.isdecimal() else answer


def _rounds(watch: Watch, plan: Plan) -> list[Attempt]:
    """Return the attempts of a loop, in order."""
    tasks = {one.id: one for one in watch.all(Task).values() if one.plan_id == plan.id and loops(plan, one)}
    found = [one for one in watch.all(Attempt).values() if one.task_id in tasks]
    return sorted(found, key=lambda one: (tasks[one.task_id].position, one.n))


@on_commit(Plan)
def a_loop_stops_for_a_named_reason(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """A loop over a prompt is verified only after it stopped for a named reason."""
    for change in moves(changes, Plan, PlanState.VERIFYING):
        plan: Plan = change.after
        rounds = [one for one in watch.all(Task).values() if one.plan_id == plan.id and loops(plan, one)]
        ended = [one for one in rounds if one.status is TaskState.COMPLETE]
        if not plan.policy.rounds.on or len(ended) < len(rounds) or name == "command.reverify":
            continue  # what a person cancelled, or wants verified once more, needs no other reason
        told = [one.payload["stopped"] for one in _told(watch, plan)]
        if not told or told[-1] not in tuple(Stop):
            yield f"{name} verifies {plan.id} after {len(rounds)} rounds, and nothing stopped it"
        elif told[-1] == Stop.SETTLED and max(rounds, key=lambda one: one.position).landed_sha is not None:
            yield f"{name} says that nothing was left to do for {plan.id}, but its last round landed"


def _told(watch: Watch, plan: Plan) -> Sequence[Any]:
    return watch.universe.database.read_sync(
        lambda tx: tx.events(plan=plan.id, types=("rounds_ended",), limit=10**6)
    )


@on_commit(Attempt)
def a_round_begins_where_the_last_one_stopped(
    watch: Watch, name: str, changes: tuple[Change, ...]
) -> Problems:
    """A round that carries on an unfinished one finds what that left, unless others or a person are in its way."""
    for change in changes:
        if change.kind is not Attempt or change.before is None or change.after.base_sha is None:
            continue
        mine: Attempt = change.after
        task, plan = watch.all(Task)[mine.task_id], watch.all(Plan)[mine.plan_id]
        if not loops(plan, task) or mine.base_sha == change.before.base_sha or mine.agent == HUMAN:
            continue
        tries = [one for one in watch.all(Attempt).values() if one.task_id == task.id and one.n < mine.n]
        left = [one for one in sorted(tries, key=lambda one: one.n) if one.tip_sha is not None]
        anew = task.failure in (Failure.CONFLICT, Failure.TOGETHER) or mine.evidence.startswith(REJECTED)
        if not left or left[-1].state is AttemptState.LANDED or anew or mine.base_sha == left[-1].tip_sha:
            continue
        yield f"{name} lets {mine.id} begin with {mine.base_sha[:8]}, not with {left[-1].tip_sha[:8]}"


@on_commit(Attempt)
def no_round_begins_after_the_end(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """When the time of a loop is over, no round begins any more but one that a person asked for after that."""
    for change in changes:
        if change.kind is not Attempt or change.before is None or change.before.base_sha is not None:
            continue
        mine: Attempt = change.after
        task, plan = watch.all(Task)[mine.task_id], watch.all(Plan)[mine.plan_id]
        end = deadline(plan)
        if end is None or mine.base_sha is None or not loops(plan, task) or mine.agent == HUMAN:
            continue
        now = watch.universe.database._clock.now()
        slow = any(watch.universe.trouble.has(one) for one in ("slow", "freeze", "store_away"))
        latest = end + timedelta(seconds=_FROZEN_S if slow else _SLOW_S)
        decided = task.created_at if task.origin == ROUND and mine.n == 1 else now
        first = mine.n == 1 and not task.origin
        asked = mine.created_at >= end and _by_a_person(watch, plan)
        if not first and not asked and decided > latest:
            yield f"{name} lets {mine.id} begin {(decided - end).total_seconds():.0f} s after the end"


@on_commit(Attempt)
def a_loop_has_no_more_rounds_than_it_may(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """Without a person, a loop has no more rounds than it may, and no more that change nothing in a row."""
    for change in moves(changes, Attempt, AttemptState.PREPARING):
        plan = watch.all(Plan)[change.after.plan_id]
        most = plan.policy.rounds
        if not most.on or not loops(plan, watch.all(Task)[change.after.task_id]) or _by_a_person(watch, plan):
            continue
        judged = [one for one in _rounds(watch, plan) if _was_judged(one)]
        if len(judged) >= most.max:
            yield f"{name} begins round {len(judged) + 1} of {most.max} of {plan.id}"
        # What the machine broke off counts for nothing, unless it left something for the next round.
        tried = [one for one in _rounds(watch, plan) if one.task_id == change.after.task_id]
        mine = [one.touched for one in tried if one in judged or one.touched]
        if len(mine) >= most.unchanged and not any(mine[-most.unchanged :]):
            yield f"{name} begins a round after {most.unchanged} that changed nothing"


def _was_judged(one: Attempt) -> bool:
    lost = one.failure is not None and RULES[one.failure].level is Level.RACE
    return one.state is AttemptState.LANDED or (one.state is AttemptState.REJECTED and not lost)


@at_end
def a_loop_that_gave_up_says_why(watch: Watch) -> Problems:
    """A round that does not continue says what stopped it."""
    for task in watch.all(Task).values():
        plan = watch.all(Plan)[task.plan_id]
        if loops(plan, task) and task.status is TaskState.ERROR and not task.reason:
            yield f"{task.key} of {plan.id} stopped, and nobody says why"
