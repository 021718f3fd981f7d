"""Find the checks that prove each criterion of each task of a plan or a source."""

import os
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from loopwright.core.plans.coverage import (
    BARE,
    Covered,
    Evidence,
    Facts,
    Kind,
    Looked,
    Ran,
    Standing,
    Wanted,
    covered,
)
from loopwright.core.rows.model import Attempt, Plan, Review, Role, Run, Task, VerdictRecord
from loopwright.core.values.criteria import commands_in, labelled
from loopwright.core.values.states import AttemptState, ReviewState, TaskState
from loopwright.engine.people.handover import HUMAN
from loopwright.ports import Mark, PlannedTask, Tx
from loopwright.services.homes.context import needed_place
from loopwright.services.homes.loop_sources import is_home, plans_of
from loopwright.services.homes.read_only_home import find_plan, glancing
from loopwright.services.preflight.run_inputs import meant_path, named, read_plan

# What the rows know about what a plan's tasks landed: the verdicts on it, and who reviewed it.


def landed_facts(tx: Tx, plan: Plan) -> list[tuple[Task, Facts]]:
    """Return a plan's tasks, each with what is known about its landing; work that did not land proves nothing."""
    attempts: dict[str, list[Attempt]] = {}
    for one in tx.find(Attempt, plan_id=plan.id, state=AttemptState.LANDED, order_by=("created_at",)):
        attempts.setdefault(one.task_id, []).append(one)
    rows = _Rows(tx, plan)
    found = []
    for task in tx.find(Task, plan_id=plan.id, order_by=("position",)):
        attempt = _landed(task, attempts.get(task.id, ()))
        nothing = f"nothing of it has landed, the task is {task.status.value}"
        found.append((task, rows.facts(task, attempt) if attempt else Facts(nothing=nothing)))
    return found


def _landed(task: Task, attempts: Iterable[Attempt]) -> Attempt | None:
    """Return the attempt whose work is on the plan's branch, or that showed that no change was needed."""
    same = [one for one in attempts if one.candidate_sha == task.landed_sha]
    return same[-1] if same and task.status is TaskState.COMPLETE else None


class _Rows:
    """The verdicts and reviews of one plan."""

    def __init__(self, tx: Tx, plan: Plan) -> None:
        self._plan = plan
        self._records = tx.find(VerdictRecord, plan_id=plan.id, order_by=("created_at",))
        self._runs = {run.id: run for run in tx.find(Run, id=[one.run_id for one in self._records])}
        self._gated = next((one for one in self._records if one.run_id == plan.verify_run_id), None)
        self._reviews = {one.id: one for one in tx.find(Review, plan_id=plan.id)}

    def facts(self, task: Task, attempt: Attempt) -> Facts:
        commit = attempt.candidate_sha or attempt.candidate_parent
        pinned = attempt.gate_files.pinned_tree if attempt.gate_files is not None else None
        trees = {attempt.candidate_tree, pinned} - {None}
        ran = []
        for one in self._records:
            whole = self._verifies(one)
            # The tree before the next task's work says nothing about the task that landed it.
            before = self._runs[one.run_id].role is Role.BASELINE
            if before or (not whole and one.tree not in trees):
                continue
            ran.append(
                Ran(
                    verdict_id=one.id,
                    run_id=one.run_id,
                    role=self._runs[one.run_id].role.value,
                    tree=one.tree,
                    commit=self._plan.result_sha if whole else commit,
                    at=one.created_at,
                    verdict=one.verdict,
                )
            )
        return Facts(ran=tuple(ran), looked=self._looks(task, attempt, commit))

    def _verifies(self, record: VerdictRecord) -> bool:
        """Return whether the plan ended with this verdict on all tasks together, or on one task's held-out checks."""
        gated = self._gated
        if (
            gated is None
            or self._plan.verified_at is None
            or self._runs[record.run_id].role is not Role.VERIFY
        ):
            return False
        return record.tree == gated.tree and record.created_at >= gated.created_at

    def _looks(self, task: Task, attempt: Attempt, commit: str | None) -> tuple[Looked, ...]:
        found = []
        review = self._reviews.get(attempt.review_id or "")
        if review is not None and review.state is ReviewState.CLEAR:
            by = " ".join(filter(None, (review.agent, review.model)))
            at, whole = review.ended_at, review.shown_whole
            found.append(Looked(by=by, review_id=review.id, commit=commit, at=at, whole=whole))
        if task.reviewed_by and attempt.agent != HUMAN:
            found.append(Looked(by=task.reviewed_by, commit=commit))
        return tuple(found)


__all__ = ["Coverage", "Covered", "Evidence", "Standing", "TaskCoverage", "coverage", "wanted_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCoverage:
    """One task with all its criteria."""

    key: str
    title: str
    plan_id: str | None
    """The newest plan with this task; None if there is none."""
    criteria: tuple[Covered, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The tasks of a plan or a source with the evidence for each criterion."""

    tasks: tuple[TaskCoverage, ...]

    @property
    def criteria(self) -> tuple[Covered, ...]:
        """The criteria of all tasks."""
        return tuple(one for task in self.tasks for one in task.criteria)

    @property
    def is_complete(self) -> bool:
        """Whether every task has criteria, and evidence for each of them."""
        bare = any(one.standing in BARE for one in self.criteria)
        return not bare and all(task.criteria for task in self.tasks)


def coverage(target: str, *, source: str | None = None) -> Coverage:
    """Return the evidence for the work in a file or folder, or for a plan by its name."""
    path = named(target)
    found = _of_source(path, source) if source or path.exists() else _of_plan(target)
    return Coverage(tasks=tuple(found))


def _of_plan(name: str) -> list[TaskCoverage]:
    def look(tx: Tx) -> list[TaskCoverage]:
        plan = find_plan(tx, name)
        return [_coverage(task, plan.id, facts) for task, facts in landed_facts(tx, plan)]

    with glancing() as home:
        return home.store.read_sync(look)


def _of_source(path: Path, kind: str | None) -> list[TaskCoverage]:
    place = needed_place()
    path = meant_path(path, kind)
    _, work = read_plan(path, kind)
    name = os.path.relpath(path.resolve(), place.root)
    if not is_home():
        return _joined(work.tasks, {})  # nothing has run here yet, so there is no evidence of anything
    with glancing() as home:
        known = home.store.read_sync(lambda tx: _known(tx, str(place.root), name))
    return _joined(work.tasks, known)


def _known(tx: Tx, root: str, source: str) -> Mapping[str, tuple[str, Facts]]:
    """Return what is known about each task by its key, from the newest plan of the source that had it."""
    found: dict[str, tuple[str, Facts]] = {}
    for plan in plans_of(tx, root, source):
        for task, facts in landed_facts(tx, plan):
            found.setdefault(task.key, (plan.id, facts))
    return found


def _joined(tasks: Iterable[PlannedTask], known: Mapping[str, tuple[str, Facts]]) -> list[TaskCoverage]:
    found = []
    for task in tasks:
        claimed = " although it is marked as done" if task.mark is Mark.DONE else ""
        plan_id, facts = known.get(task.key, (None, Facts(nothing=f"no plan has had it{claimed}")))
        found.append(_coverage(task, plan_id, facts))
    return found


def _commands(text: str, run: Container[str]) -> tuple[str, ...]:
    """Return the commands of a criterion; a command after a label counts only in lists of checks."""
    command = labelled(text)
    return commands_in(text) or ((command,) if command in run else ())


def wanted_of(task: PlannedTask | Task) -> list[Wanted]:
    """Return all criteria of a task, each once: a sentence that only says that a command passes equals that command."""
    run = {one.command for one in task.acceptance}
    words = [Wanted(kind=Kind.WORDS, text=text, commands=_commands(text, run)) for text in task.criteria]
    return [
        *(
            Wanted(kind=Kind.ACCEPTANCE, name=one.name, text=one.command, commands=(one.command,))
            for one in task.acceptance
        ),
        *(
            Wanted(
                kind=Kind.HELD_OUT, name=one.check.name, text=one.check.command, commands=(one.check.command,)
            )
            for one in task.held_out
        ),
        *(one for one in words if not one.commands or not run.issuperset(one.commands)),
    ]


def _coverage(task: PlannedTask | Task, plan_id: str | None, facts: Facts) -> TaskCoverage:
    return TaskCoverage(
        key=task.key,
        title=task.title,
        plan_id=plan_id,
        criteria=tuple(covered(one, facts) for one in wanted_of(task)),
    )
