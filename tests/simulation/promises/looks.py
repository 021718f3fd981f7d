"""Looks at the whole and documents that have to follow, in the simulation: the promises about both."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.simulation.promises.invariants import Problems, Watch, moves, on_commit, on_effect
from tests.simulation.rows import Change

from loopwright.core.replies.doc_sync import ORIGIN as DOCUMENTS
from loopwright.core.replies.qa import TYPE, is_fix_of, rounds
from loopwright.core.rows.model import Attempt, Plan, Task, VerdictRecord
from loopwright.core.values.states import AttemptState, PlanState, TaskState
from loopwright.engine.people.handover import HUMAN
from loopwright.ports import PlannedTask


def planned(n: int, before: Sequence[PlannedTask]) -> PlannedTask:
    """Return the look at the whole with which a plan ends."""
    return PlannedTask(
        key=f"p{n}look",
        title="Look at it all",
        type=TYPE,
        depends_on=tuple(one.key for one in before),
    )


@on_effect("landed")
def a_look_changes_nothing(watch: Watch, about: Mapping[str, Any]) -> Problems:
    """Whatever an agent does to the files while it looks at the whole, none of it lands."""
    trailers = watch.universe.target.commits[about["new"]].trailers
    if trailers is None or watch.all(Task)[trailers.task].type != TYPE:
        return
    if not any(_is_by_hand(one) for one in watch.all(Attempt).values() if one.candidate_sha == about["new"]):
        yield f"{watch.all(Task)[trailers.task].key} landed as {about['new'][:8]}"


def _is_by_hand(attempt: Attempt) -> bool:
    """Say whether a person did it: what they hand in for a look is their word, and lands like other work."""
    return attempt.agent == HUMAN


@on_commit(Task)
def a_look_is_passed_when_nothing_is_left(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """A look is over when neither its agent nor the gate found anything on that commit, or when a person says so."""
    for change in changes:
        done = change.kind is Task and change.after.status is TaskState.COMPLETE
        if not done or change.after.type != TYPE or name.startswith("command."):
            continue
        if change.before is not None and change.before.status is TaskState.COMPLETE:
            continue
        attempt = watch.all(Attempt)[change.after.attempt_id]
        record = watch.all(VerdictRecord).get(attempt.verdict_id or "")
        if _is_by_hand(attempt):
            continue
        if attempt.qa is None or attempt.qa.issues:
            yield f"{name} passes {change.after.key} with what {attempt.id} found"
        elif record is None or record.verdict.status != "passed" or record.tree != _tree(watch, attempt):
            yield f"{name} passes {change.after.key} without a gate on what was looked at"


def _tree(watch: Watch, attempt: Attempt) -> str:
    tree: str = watch.universe.target.commits[attempt.base_sha].tree
    return tree


@on_commit(Attempt)
def a_look_waits_for_what_mends(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """A look is taken again when each task that mends what the last one found is done, or not wanted any more."""
    for change in moves(changes, Attempt, AttemptState.PREPARING):
        look: Task = watch.all(Task)[change.after.task_id]
        if look.type != TYPE:
            continue
        for one in watch.all(Task).values():
            mends = one.plan_id == look.plan_id and is_fix_of(one.key, look.key)
            if mends and one.status not in (TaskState.COMPLETE, TaskState.CANCELLED):
                yield f"{name} looks again while {one.key} is {one.status.value}"


@on_commit(Attempt)
def looks_are_taken_again_only_so_often(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """What a look finds becomes tasks no more often in a row than the plan allows."""
    if name != "look.over":
        return
    for change in changes:
        if change.kind is not Attempt or change.after.qa is None:
            continue
        tries = [one for one in watch.all(Attempt).values() if one.task_id == change.after.task_id]
        reports = [one.qa for one in sorted(tries, key=lambda one: one.n) if one.qa is not None]
        most = watch.all(Plan)[change.after.plan_id].policy.fix_cycles
        if rounds(reports) > most:
            yield f"{name} mends what {change.id} found, for the {rounds(reports)}th time of {most}"


@on_commit(Plan)
def documents_have_followed(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """A plan says VERIFIED only if each document that landed work made wrong was changed, or a person let it be."""
    for change in moves(changes, Plan, PlanState.VERIFIED):
        plan, target = change.after, watch.universe.target
        before, after = target.files(plan.base_sha), target.files(plan.result_sha)
        let_be = {
            path
            for one in watch.all(Task).values()
            if one.plan_id == plan.id and one.origin == DOCUMENTS and one.status is TaskState.CANCELLED
            for path in one.scope
        }
        for flag in plan.doc_sync:
            counts = not flag.by or watch.all(Attempt)[flag.by].state is AttemptState.LANDED
            for path in flag.documents if counts else ():
                if path not in let_be and before.get(path) == after.get(path):
                    yield f"{name} verifies {plan.id}, and {path} is as it was"
