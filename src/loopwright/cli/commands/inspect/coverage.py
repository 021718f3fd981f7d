"""`plan coverage`: every criterion of every task with the checks that prove it, or the word that nothing does."""

import os
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Final

from rich.markup import escape
from rich.text import Text

from loopwright.cli.screens.layout import Wrapped
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json
from loopwright.core.plans.coverage import BARE, Covered, Evidence, Facts, Kind, Standing, Wanted, covered
from loopwright.core.rows.model import Task
from loopwright.core.values.criteria import commands_in, labelled
from loopwright.core.values.ids import short_id
from loopwright.core.values.wording import counted, one_line
from loopwright.engine.views.coverage import landed_facts
from loopwright.ports import Mark, PlannedTask, Tx
from loopwright.services.homes.read_only_home import find_plan, glancing
from loopwright.services.homes.repository_glance import needed_place
from loopwright.services.plans.source_plans import is_home, plans_of
from loopwright.services.runs.run_inputs import meant_path, named, read_plan

_STYLES: Final = {Standing.PROVEN: "green", Standing.REVIEWED: "green", Standing.FAILED: "bold red"}
_BY: Final = {"gate": "before it landed", "verify": "on the whole plan"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCoverage:
    """One task with all that it has to meet."""

    key: str
    title: str
    plan_id: str | None
    """The newest plan that had this task; None when none had."""
    criteria: tuple[Covered, ...]


def coverage(target: str, /, *, source: str | None = None, json: bool = False) -> int:
    """Show every criterion of every task with the checks that prove it, or say that there is no evidence.

    Parameters
    ----------
    target
        The file or folder that has the work, in any form that is known, or a plan: its id, its beginning, a name.
    source
        Which form the work has, where that cannot be seen from its name.
    json
        Print one JSON document.
    """
    path = named(target)
    found = _of_source(path, source) if source or path.exists() else _of_plan(target)
    every = [one for task in found for one in task.criteria]
    bare = any(one.standing in BARE for one in every) or any(not task.criteria for task in found)
    code = ExitCode.NOT_VERIFIED if bare else ExitCode.VERIFIED
    if json:
        counts = Counter(one.standing.value for one in every)
        print_json({"tasks": found, "counts": dict(counts), "exit_code": int(code)})
    else:
        _print(found)
    return code


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


def _print(found: list[TaskCoverage]) -> None:
    out = console()
    for task in found:
        of = f"  (plan {short_id(task.plan_id)})" if task.plan_id else ""
        out.print(f"[bold]{escape(task.key)}[/]  {escape(one_line(task.title, 60))}{escape(of)}")
        if not task.criteria:
            out.print("  [yellow]no criterion[/]: nothing but the gates checks it")
        for one in task.criteria:
            told = "; ".join(_in_words(each) for each in one.evidence) or one.reason
            text = Text.assemble(
                "  ",
                (one.standing.value, _STYLES.get(one.standing, "yellow")),
                f"  {one_line(one.text, 80)}: {told}",
            )
            out.print(Wrapped(text, indent="      "))
    counts = Counter(one.standing for task in found for one in task.criteria)
    told = ", ".join(f"{counts[standing]} {standing.value}" for standing in Standing if counts[standing])
    total = counted(counts.total(), "criterion", "criteria")
    bare = sum(not task.criteria for task in found)
    without = f"; {counted(bare, 'task has', 'tasks have')} no criterion" if bare else ""
    out.print(f"{total} of {counted(len(found), 'task')}{': ' if told else ''}{told}{without}")


def _in_words(one: Evidence) -> str:
    if one.review_id is not None:
        what = f"review {short_id(one.review_id)} by {one.by}"
    elif one.verdict_id is not None:
        what = f"{'passed' if one.passed else 'did not pass'} {_BY.get(one.by, one.by)}"
    else:
        what = f"reviewed by {one.by}"
    when = f", {one.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if one.at else ""
    verdict = f", verdict {short_id(one.verdict_id)}" if one.verdict_id else ""
    gaps = ", with gaps" if one.gaps else ""
    return f"{what}{when}{f', commit {one.commit[:7]}' if one.commit else ''}{verdict}{gaps}"
