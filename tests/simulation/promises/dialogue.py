"""The promises about questions: one for the same thing, no answer twice, never a silent yes, and an end to waiting."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from tests.simulation.promises.invariants import Problems, Watch, at_end, moves, on_commit, on_effect
from tests.simulation.rows import Change

from loopwright.core.rows.model import Attempt, Command, CommandState, Loop, Plan, Run, Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.failures import Failure
from loopwright.core.values.permissions import Access, may_run
from loopwright.core.values.states import LIVE_ATTEMPT, AttemptState, LoopState, QuestionState, TaskState

JUST_NOW: Final = timedelta(seconds=5)


def _of(watch: Watch, attempt: Attempt) -> Iterator[Question]:
    return (watch.all(Question)[one] for one in attempt.questions)


def is_waiting_for_a_person(watch: Watch, attempt: Attempt) -> bool:
    """Say whether an attempt waits for an answer that somebody may still give."""
    return attempt.state is AttemptState.WAITING and any(
        one.state is QuestionState.OPEN for one in _of(watch, attempt)
    )


@on_commit(Question)
def the_same_permission_is_one_question(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """However many runs of a project ask for the same permission, one question about it is open."""
    for change in changes:
        if change.kind is Question and change.before is None and change.after.kind == "permission":
            same = [
                one
                for one in watch.all(Question).values()
                if one.state is QuestionState.OPEN
                and (one.project_id, one.key) == (change.after.project_id, change.after.key)
            ]
            if len(same) > 1:
                yield f"{name} asks once more: {change.after.text}"


@on_commit(Question)
def who_was_answered_does_not_ask_again(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """An attempt whose wish a person has answered is not made to ask for the same once more."""
    for change in changes:
        if (
            change.kind is not Question
            or not change.after.key
            or change.after.state is not QuestionState.OPEN
        ):
            continue
        new = set(change.after.asked_by) - set(change.before.asked_by if change.before else ())
        for attempt_id in new:
            for known in _of(watch, watch.all(Attempt)[attempt_id]):
                if known.key == change.after.key and known.state is QuestionState.ANSWERED:
                    yield f"{name}: {attempt_id} asks again, after {known.id} was answered {known.answer}"


@on_commit(Question)
def no_answer_is_applied_twice(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """A closed question keeps its one answer, also when other runs ask the same."""
    for change in changes:
        if change.kind is not Question or change.before is None:
            continue
        joined = replace(change.before, asked_by=change.after.asked_by) == change.after
        if change.before.state is not QuestionState.OPEN and not joined:
            yield f"{name} changes {change.id}, which is {change.before.state.value}"
        if change.after.state is QuestionState.ANSWERED and not joined:
            answers = [
                one
                for one in watch.all(Command).values()
                if one.verb == "answer" and one.target == change.id and one.state is CommandState.APPLIED
            ]
            if len(answers) != 1:
                yield f"{name} answers {change.id}, for which {len(answers)} commands were applied"


@on_commit(Attempt)
def nobody_goes_on_without_an_answer(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """An attempt with questions continues only when each has an answer: a person's, or the default."""
    for change in moves(changes, Attempt, AttemptState.WORKING):
        if change.before.state is not AttemptState.WAITING:
            continue
        for question in _of(watch, change.after):
            if question.answer is None:
                yield f"{name} wakes {change.id}, but {question.id} is {question.state.value}"


@on_commit(Attempt)
def who_waits_for_an_answer_holds_no_slot(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """An attempt that waits for a person has no process, and keeps no slot from others."""
    for change in moves(changes, Attempt, AttemptState.WAITING):
        attempt = change.after
        if not is_waiting_for_a_person(watch, attempt):
            continue
        run = watch.all(Run)[attempt.run_id]
        if watch.universe.has_agent(run):
            yield f"{name} parks {attempt.id}, but {run.id} works"
        if not watch.universe.scenario.exclusive:
            continue
        loop = watch.universe.workers[0].loop
        assert loop is not None
        expected = set(loop._slots._expected)
        states = (AttemptState.PREPARING, AttemptState.WORKING)
        # Who was parked just now gives its slot back as soon as it hears that it is.
        just_now = attempt.updated_at - JUST_NOW
        holders = expected | {
            one.id
            for one in watch.all(Attempt).values()
            if one.state in states or (one.updated_at > just_now and one.id != attempt.id)
        }
        # A leg that was followed by another one counts its slot as well, until it notices.
        legs = [leg.rpartition("/")[0] for leg in loop._legs]
        twice = len(legs) - len(set(legs))
        used = sum(count for (kind, _), count in loop._slots._used.items() if kind == "plan")
        if attempt.id in expected or used > len(holders) + twice:
            yield f"{name} parks {attempt.id}: {used} slots are taken by {len(holders)} others"


@on_commit(Question)
def a_late_question_takes_its_default(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """A question expires only after its deadline, with its default for an answer, and never with leave."""
    now = watch.universe.database._clock.now()
    for change in changes:
        if change.kind is not Question or change.after.state is not QuestionState.EXPIRED:
            continue
        question = change.after
        if question.deadline is None or question.deadline > now:
            yield f"{name} lets {question.id} expire before its time"
        if question.answer != question.default or (question.kind == "permission" and question.answer):
            yield f"{name} answers {question.id} by {question.answer!r}, its default is {question.default!r}"


@on_effect("told")
def an_adopted_agent_is_answered_alike(watch: Watch, about: Mapping[str, Any]) -> Problems:
    """Whoever takes up a running agent gives it the answer that it was given before."""
    told = about["kept"].told.get(about["n"], about["data"])
    if told != about["data"]:
        yield f"{about['kept'].spec.run_id} was told {told}, and now {about['data']}"


@on_effect("allowed")
def never_a_silent_yes(watch: Watch, about: Mapping[str, Any]) -> Problems:
    """No run is given leave that neither policy nor a person's answer to it, to its loop or to its project gives."""
    run = watch.all(Run)[about["kept"].spec.run_id]
    plan, wish = watch.all(Plan)[run.plan_id], about["wish"]
    mode = plan.policy.permission_mode
    if mode == Access.SANDBOXED_ALL:
        return
    said = [
        one
        for one in watch.all(Question).values()
        if one.key == wish.key
        and one.state is QuestionState.ANSWERED
        and one.answered_by == "person"
        and one.answered_at <= run.started_at
        and (
            one.holds_for == "project"
            or (one.holds_for == "loop" and one.loop_id == plan.loop_id)
            or run.attempt_id in one.asked_by
        )
    ]
    last = max(said, key=lambda one: (one.answered_at, one.id), default=None)
    listed = mode != Access.READ_ONLY and may_run(wish.what, plan.policy.allowed_commands)
    if (last.answer != "yes") if last is not None else not listed:
        yield f"{run.id} may run {wish.what!r}, and nobody said so"


@at_end
def a_late_question_blocks_its_tasks(watch: Watch) -> Problems:
    """At rest no question is open past its deadline, and who got no answer is blocked and says why."""
    now = watch.universe.database._clock.now()
    for question in watch.all(Question).values():
        late = question.deadline is not None and question.deadline <= now
        unanswered = question.state is QuestionState.EXPIRED and question.answer is None
        for attempt in (watch.all(Attempt)[one] for one in question.asked_by):
            plan = watch.all(Plan)[attempt.plan_id]
            if watch.all(Loop)[plan.loop_id].state is not LoopState.RUNNING:
                continue
            if attempt.state in LIVE_ATTEMPT and (
                unanswered or (late and question.state is QuestionState.OPEN)
            ):
                yield f"{attempt.id} still waits for {question.id}"
    for task in watch.all(Task).values():
        blocked = task.status is TaskState.ERROR and task.failure is Failure.UNANSWERED
        if blocked and "question was" not in task.reason:
            yield f"{task.key} is blocked by a question and says: {task.reason}"
