"""Find the checks that prove each criterion of each task of a plan or a source."""

import os
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from loopwright.core.plans.coverage import BARE, Covered, Evidence, Facts, Kind, Standing, Wanted, covered
from loopwright.core.rows.model import Task
from loopwright.core.values.criteria import commands_in, labelled
from loopwright.engine.views.coverage import landed_facts
from loopwright.ports import Mark, PlannedTask, Tx
from loopwright.services.homes.context import needed_place
from loopwright.services.homes.read_only_home import find_plan, glancing
from loopwright.services.plans.checking import is_home, plans_of
from loopwright.services.preflight.run_inputs import meant_path, named, read_plan

__all__ = ["Coverage", "Covered", "Evidence", "Standing", "TaskCoverage", "coverage", "wanted_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCoverage:
    """One task with all that it has to meet."""

    key: str
    title: str
    plan_id: str | None
    """The newest plan that had this task; None when none had."""
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
    """Return what is known of each task by its key, from the newest plan of the source that had it."""
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
    """Return the commands of a criterion; one behind a label is its command only where that is run."""
    command = labelled(text)
    return commands_in(text) or ((command,) if command in run else ())


def wanted_of(task: PlannedTask | Task) -> list[Wanted]:
    """Return all that a task has to meet, each once: words that only say that a command passes are that command."""
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
