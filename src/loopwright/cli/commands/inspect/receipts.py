"""`receipt`: the record of a plan, shown from the rows or verified against the repository."""

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, Parameter
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from loopwright.cli.screens.advice import print_each_gap, print_strays
from loopwright.cli.screens.layout import Roomy, Rows, one_line
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.lines import Wrapped
from loopwright.cli.shell.output import console, print_json
from loopwright.core.values.accounts import called
from loopwright.core.values.errors import Refused
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import FinishState
from loopwright.core.values.wording import clean, counted, money
from loopwright.services.homes.caller import write_whole
from loopwright.services.receipts import receipts
from loopwright.services.receipts.reading import (
    FinishEntry,
    Receipt,
    decided,
    held_out_tasks,
    is_passed,
    render,
)

app = App(
    name="receipt", help="Show, verify, replay or hand on the record of a plan.", help_format="plaintext"
)

_NARROW: Final = 80
_STYLES: Final = {"verified": "green", "no_change_proven": "green", "verified_with_gaps": "yellow"}


@app.command
def show(plan: str | None = None, /, *, output: Path | None = None, json: bool = False) -> int:
    """Show the receipt of a plan as it is now.

    Parameters
    ----------
    plan
        Which plan (default: the newest of this repository).
    output
        Write the receipt to this file instead, for `receipt verify`.
    json
        Print the receipt itself.
    """
    shown = asyncio.run(receipts.show(plan))
    receipt = shown.receipt
    if output is not None:
        write_whole(output, render(receipt), hint="give another --output")
        if json:
            print_json({"written": str(output), "sha256": receipt.sha256})
        else:
            console().print(f"written: {escape(str(output))}  sha256 {receipt.sha256}")
    elif json:
        sys.stdout.write(render(receipt))
    else:
        _print_receipt(receipt, shown.state)
        if receipt.checkout_changes:
            print_strays(console(), shown.strays)
    return ExitCode.VERIFIED


def _print_receipt(receipt: Receipt, state: str) -> None:
    plan, out = receipt.plan, console()
    out.print(f"[bold]{escape(plan.title)}[/]  {plan.id}")
    narrow = out.is_terminal and out.width < _NARROW
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    cost = receipt.cost
    for name, value in (
        ("outcome", f"{_words(receipt.outcome)} ({state})"),
        ("base", f"{plan.base_sha} ({plan.base_ref})"),
        ("result", plan.result_sha or "none yet"),
        ("diff", f"sha256 {plan.diff_sha256}" if plan.diff_sha256 else "none yet"),
        (
            "cost",
            "unknown"
            if cost.total is None
            else ("" if cost.complete else "at least ")
            + money(cost.total, estimated=bool(cost.estimated_runs)),
        ),
        ("accounts", _accounts(receipt)),
        ("sandbox", _sandboxes(receipt)),
        ("reviews", _reviews(receipt)),
        *(("held out", told) for told in _held_out(receipt)),
        *(("ended", _ended(one)) for one in receipt.finishes),
        ("made by", receipt.made_by),
        ("sha256", receipt.sha256),
    ):
        # A hash that does not fit is folded: half of one is useless.
        table.add_row(name, Text(value) if narrow else one_line(value))
    out.print(Roomy(table))
    out.print(_tasks_rows(receipt))
    _print_list("decided by people", _decisions(receipt))
    if receipt.gaps:
        out.print("[bold]gaps[/]")
        print_each_gap(
            out, [replace(one, cause=clean(one.cause), remedy=clean(one.remedy)) for one in receipt.gaps]
        )
    _print_list("notes", [one.text for one in receipt.notes])


def _print_list(title: str, lines: Sequence[str]) -> None:
    """Print a list whose points are wrapped, never cut."""
    out = console()
    if lines:
        out.print(f"[bold]{title}[/]")
    for line in lines:
        out.print(Wrapped(Text(f"  · {clean(line)}"), indent="    "))


def _decisions(receipt: Receipt) -> list[str]:
    keys = {task.id: task.key for task in receipt.tasks}
    return [decided(one, keys) for one in receipt.overrides]


def _reviews(receipt: Receipt) -> str:
    ended = Counter(review.state.lower() for review in receipt.reviews)
    return ", ".join(f"{count} {name}" for name, count in sorted(ended.items())) or "none"


def _held_out(receipt: Receipt) -> list[str]:
    """Name the tasks whose held-out checks the result passed."""
    tree = receipt.plan.result_tree
    asked = held_out_tasks(receipt) if tree is not None else []
    passed = [task.key for task, commands in asked if is_passed(receipt, tree, commands)]
    return [f"the result passed the held-out checks of {', '.join(passed)}"] if passed else []


def _ended(one: FinishEntry) -> str:
    told = one.detail.partition("\n")[0] or one.how
    return told if one.state is FinishState.FINISHED else f"{one.state.lower()}: {told}"


def _sandboxes(receipt: Receipt) -> str:
    begun = Counter(run.sandbox_words for run in receipt.runs if run.started_at)
    return ", ".join(f"{name} ({counted(count, 'run')})" for name, count in sorted(begun.items()))


def _accounts(receipt: Receipt) -> str:
    drawn = Counter(called(run.agent, run.account) for run in receipt.runs if run.agent and run.started_at)
    return ", ".join(f"{name} ({counted(count, 'run')})" for name, count in sorted(drawn.items())) or "none"


def _tasks_rows(receipt: Receipt) -> Rows:
    rows = []
    for task in receipt.tasks:
        outcome, tries = task.outcome, sum(one.tip_sha is not None for one in task.attempts)
        rows.append(
            (
                Text(task.key, style="bold"),
                Text(_words(outcome), style=_STYLES.get(outcome, "red")),
                Text((task.landed_sha or "")[:10]),
                Text(counted(tries, "attempt")),
                Text(task.title),
            )
        )
    return Rows(rows, spare=(4, 3), cut=0)


def _words(outcome: str) -> str:
    return outcome.replace("_", " ")


# --- export --------------------------------------------------------------------------------------------


@app.command(name="export")
def export_(path: Path, plan: str | None = None, /, *, html: bool = False, json: bool = False) -> int:
    """Put a receipt into a new folder to hand on, with a script that checks it and the outputs of the gates.

    `sh PATH/receipt.sh REPOSITORY` needs git and sha256sum, and nothing of Loopwright.

    Parameters
    ----------
    path
        Where to put it: a folder or, with `--html`, a file. It is made here.
    plan
        Which plan (default: the newest of this repository).
    html
        Write one HTML file for people instead. It needs no network and fits on a phone.
    json
        Print what was written as JSON.
    """
    if html:
        return _export_html(path, plan, as_json=json)
    folder = path
    done = asyncio.run(receipts.export_to(folder, plan))
    if json:
        print_json({"written": str(folder), "sha256": done.sha256, "missing": done.missing})
        return ExitCode.VERIFIED
    out = console()
    out.print(f"written: {escape(str(folder))}  sha256 {done.sha256}")
    for gap in done.missing:
        out.print(f"[dim]· not included: {escape(gap)}[/]")
    out.print(f"anyone with the repository checks it: sh {escape(str(folder / 'receipt.sh'))} REPOSITORY")
    return ExitCode.VERIFIED


def _export_html(path: Path, plan: str | None, *, as_json: bool) -> int:
    receipt = asyncio.run(receipts.write_report(path, plan))
    if as_json:
        print_json({"written": str(path), "sha256": receipt.sha256, "missing": ()})
    else:
        console().print(f"written: {escape(str(path))}  the report of receipt {receipt.sha256}")
    return ExitCode.VERIFIED


# --- verify ----------------------------------------------------------------------------------------


@app.command
def verify(receipt: str | None = None, /, *, repository: Path | None = None, json: bool = False) -> int:
    """Recompute a receipt from the git repository, and name every difference.

    Needs no home and no database. If the home of the plan is on this machine, Loopwright also checks the recorded
    outputs and the chain of events. The exit code is 0 if everything that could be checked agrees. It is 1 on any
    difference, or if `clean` released commits that git has deleted since.

    Parameters
    ----------
    receipt
        A file from `.loopwright/receipts/` or `receipt show --output`; or a plan, for the receipt in its
        project (default: the newest of this repository).
    repository
        The git repository with the result (default: the current folder, or the plan's project).
    json
        Print the findings as JSON.
    """
    done = asyncio.run(receipts.verify(receipt, repository=repository))
    found = done.receipt
    code = ExitCode.VERIFIED if done.agrees else ExitCode.NOT_VERIFIED
    if json:
        print_json(
            {
                "plan": found.plan.id,
                "file": str(done.file),
                "repository": str(done.repository),
                "outcome": found.outcome,
                "agrees": done.agrees,
                "differences": done.differences,
                "cleaned": sorted(done.facts.cleaned),
                "checked": done.checked,
                "unchecked": done.facts.unchecked,
                "gaps": found.gaps,
                "notes": found.notes,
                "not_checked": found.not_checked,
                "exit_code": int(code),
            }
        )
        return code
    _print_findings(done)
    return code


def _print_findings(found: receipts.Verified) -> None:
    receipt, facts, differences = found.receipt, found.facts, found.differences
    out, plan = console(), receipt.plan
    where = escape(str(found.repository))
    out.print(f"[bold]{escape(plan.title)}[/]  {short_id(plan.id)}  against {where}")
    for difference in differences:
        out.print(f"[red]✘ differs[/]: {escape(difference.text)}")
    for done in found.checked:
        out.print(f"[dim]· checked: {escape(done)}[/]")
    for gap in facts.unchecked:
        out.print(f"[dim]· not checked here: {escape(gap)}[/]")
    if differences:
        out.print(f"[bold red]DIFFERS[/]  {len(differences)} of its statements are wrong")
        if any(one.code == "commit_missing" for one in differences):
            out.print(f"is this the right repository? `git fetch` brings the branch {escape(plan.branch)}")
        return
    if facts.cleaned:
        gone = f"{counted(len(facts.cleaned), 'commit')} that it names"
        out.print(
            f"[bold yellow]CANNOT BE VERIFIED ANY MORE[/]  {gone}: released by `loopwright clean` according to this "
            "home's record, and deleted by git since; nothing else differs"
        )
        return
    style = _STYLES.get(receipt.outcome, "yellow")
    out.print(f"[bold green]AGREES[/]  outcome: [{style}]{_words(receipt.outcome)}[/]")


# --- replay ----------------------------------------------------------------------------------------


@app.command(name="replay")
def replay_(
    receipt: str | None = None,
    /,
    *,
    task: list[str] | None = None,
    repository: Path | None = None,
    yes: Annotated[bool, Parameter(alias="-y")] = False,
    json: bool = False,
) -> int:
    """Run the recorded gates again on the recorded tree, in a clean workspace, and compare the results.

    The commands come from the receipt and run on this machine: they are shown first, and run when you agree.

    The exit code is 0 when every verdict is the same as then, and 1 when one differs.

    Parameters
    ----------
    receipt
        The file, or a plan, as for `receipt verify` (default: the newest of this repository).
    task
        Run what this task had to pass, on the tree with which it landed (may be given again; default: the result).
    repository
        The git repository with the result (default: the current folder, or the plan's project).
    yes
        Run the commands without asking.
    json
        Print the findings as JSON; needs `--yes`.
    """
    prepared = receipts.prepare_replay(receipt, tasks=task or (), repository=repository)
    if not yes:
        _agree(prepared.commands, json=json)
    entries, out = [], console()
    for one in receipts.run_replay(prepared):
        judged, verdict = one.judged, one.verdict
        entries.append(
            {
                "what": judged.what,
                "sha": judged.sha,
                "then": judged.recorded.status,
                "now": verdict.status.value,
                "differences": one.differences,
                "commands": [
                    {"command": c.command, "exit_code": c.exit_code, "duration_s": c.duration_s}
                    for c in verdict.commands
                ],
            }
        )
        if not json:
            word = "[red]✘ differs[/]" if one.differences else "[green]✔ the same[/]"
            out.print(f"{word}  {escape(judged.what)}  {judged.sha[:10]}  {verdict.status.value}")
            for line in one.differences:
                out.print(f"    {escape(line[:300])}")
    code = ExitCode.NOT_VERIFIED if any(one["differences"] for one in entries) else ExitCode.VERIFIED
    if json:
        print_json(
            {
                "plan": prepared.receipt.plan.id,
                "agrees": code == 0,
                "replayed": entries,
                "not_replayed": [{"what": what, "why": why} for what, why in prepared.not_run.items()],
                "exit_code": int(code),
            }
        )
        return code
    for what, why in prepared.not_run.items():
        out.print(f"[dim]· not run[/]  {escape(what)}: {escape(why)}")
    return code


def _agree(commands: Sequence[str], *, json: bool) -> None:
    """Show the commands that would run here, and ask the user to agree."""
    if json or not sys.stdin.isatty():
        raise Refused(
            f"the receipt's commands would run on this machine: {'; '.join(commands)}"[:500],
            code="confirmation_needed",
            hint="read them, then add --yes",
        )
    out = console()
    out.print("These commands, from the receipt, will run on this machine:")
    for command in commands:
        out.print(f"  {escape(command)}")
    if input("Run them? [y/N] ").strip().lower() not in ("y", "yes"):
        raise Refused("nothing was run", code="declined", hint="answer y, or add --yes")
