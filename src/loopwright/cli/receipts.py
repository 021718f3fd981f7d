"""`receipt`: the record of a plan, shown from the rows or verified against the repository."""

import asyncio
import json as jsonlib
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cyclopts import App
from rich.markup import escape
from rich.table import Table

from loopwright.adapters.git import GitRepository
from loopwright.adapters.receipts import gather_facts, plan_events
from loopwright.cli.context import look_settings, open_existing
from loopwright.cli.exits import ExitCode
from loopwright.cli.lines import counted
from loopwright.cli.looking import find_plan, looking, whereabouts
from loopwright.cli.output import console, money, print_json
from loopwright.cli.rows import Roomy, one_line
from loopwright.core.errors import LoopwrightError, NotARepository, NotFound, UserError
from loopwright.core.ids import short_id
from loopwright.core.model import Plan, Project
from loopwright.core.receipts import EventFacts, Facts, render, verify_receipt
from loopwright.ports import Tx

app = App(name="receipt", help="Show or verify the record of a plan.", help_format="plaintext")

_LARGEST: Final = 256 * 1024 * 1024
_STYLES: Final = {"verified": "green", "no_change_proven": "green", "verified_with_gaps": "yellow"}


@app.command
def show(plan: str | None = None, /, *, output: Path | None = None, json: bool = False) -> int:
    """Show the receipt of a plan as it stands now, made from the rows.

    Parameters
    ----------
    plan
        Which plan (default: the newest of this repository).
    output
        Write the receipt to this file instead, for `receipt verify`.
    json
        Print the receipt itself.
    """
    receipt = asyncio.run(_receipt(plan))
    if output is not None:
        _write(output, render(receipt))
        if json:
            print_json({"written": str(output), "sha256": receipt["sha256"]})
        else:
            console().print(f"written: {escape(str(output))}  sha256 {receipt['sha256']}")
    elif json:
        sys.stdout.write(render(receipt))
    else:
        _print_receipt(receipt)
    return ExitCode.VERIFIED


async def _receipt(plan: str | None) -> dict[str, Any]:
    from loopwright.app import make_world
    from loopwright.engine.receipt import plan_receipt

    settings = look_settings()
    home = open_existing(settings)
    try:
        row = await home.store.read(lambda tx: find_plan(tx, plan))
        world = make_world(home, settings, os.environ, slots=1)
        return await plan_receipt(world, row.id)
    finally:
        await home.store.close()


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise UserError(
            f"{path} cannot be written: {error.strerror}", hint="give another --output"
        ) from error


def _print_receipt(receipt: Mapping[str, Any]) -> None:
    plan, out = receipt["plan"], console()
    out.print(f"[bold]{escape(plan['title'])}[/]  {plan['id']}")
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    cost = receipt["cost"]
    for name, value in (
        ("outcome", f"{_words(receipt['outcome'])} ({plan['status']})"),
        ("base", f"{plan['base_sha']} ({plan['base_ref']})"),
        ("result", plan["result_sha"] or "none yet"),
        ("diff", f"sha256 {plan['diff_sha256']}" if plan["diff_sha256"] else "none yet"),
        (
            "cost",
            ("" if cost["complete"] else "at least ")
            + money(cost["total"], estimated=bool(cost["estimated_runs"])),
        ),
        ("sandbox", _sandboxes(receipt)),
        ("made by", receipt["made_by"]),
        ("sha256", receipt["sha256"]),
    ):
        table.add_row(name, one_line(value))
    out.print(Roomy(table))
    out.print(Roomy(_tasks_table(receipt)))
    out.print("[bold]not checked[/]")
    for gap in receipt["not_checked"]:
        out.print(f"  · {escape(gap)}")


def _sandboxes(receipt: Mapping[str, Any]) -> str:
    begun = Counter(run["sandbox"] or "not known" for run in receipt["runs"] if run["started_at"])
    return ", ".join(f"{name} ({counted(count, 'run')})" for name, count in sorted(begun.items()))


def _tasks_table(receipt: Mapping[str, Any]) -> Table:
    table = Table.grid(padding=(0, 2))
    for style in ("bold", "", "", ""):
        table.add_column(style=style, no_wrap=True)
    table.add_column()
    for task in receipt["tasks"]:
        outcome, tries = task["outcome"], sum(one["tip_sha"] is not None for one in task["attempts"])
        table.add_row(
            escape(task["key"]),
            f"[{_STYLES.get(outcome, 'red')}]{_words(outcome)}[/]",
            (task["landed_sha"] or "")[:10],
            f"{tries} attempt" + "s" * (tries != 1),
            one_line(task["title"]),
        )
    return table


def _words(outcome: str) -> str:
    return outcome.replace("_", " ")


# --- verify ----------------------------------------------------------------------------------------


@app.command
def verify(receipt: str, /, *, repository: Path | None = None, json: bool = False) -> int:
    """Recompute what a receipt says from the git repository, and name every difference.

    Needs no home and no database; where the home in which the plan ran is at hand, the recorded outputs and the
    chain of events are looked at too. The exit code is 0 when everything that could be checked agrees, and 1 on
    any difference.

    Parameters
    ----------
    receipt
        The file, as `.loopwright/receipts/` or `receipt show --output` has it; or a plan, for the one in its
        project.
    repository
        The git repository with the result (default: the current folder, or the plan's project).
    json
        Print the findings as JSON.
    """
    file, project = _located(receipt)
    found = _read(file)
    where = (repository or project or Path.cwd()).absolute()
    facts = asyncio.run(_facts(found, where))
    differences = verify_receipt(found, facts)
    code = ExitCode.NOT_VERIFIED if differences else ExitCode.VERIFIED
    if json:
        print_json(
            {
                "plan": found["plan"]["id"],
                "file": str(file),
                "repository": str(where),
                "outcome": found["outcome"],
                "agrees": not differences,
                "differences": differences,
                "checked": _checked(facts),
                "unchecked": facts.unchecked,
                "not_checked": found["not_checked"],
                "exit_code": int(code),
            }
        )
        return code
    _print_findings(found, facts, differences, where)
    return code


def _located(text: str) -> tuple[Path, Path | None]:
    """Return the file that is meant: this one, or the one of this plan with the plan's project."""
    path = Path(text)
    if path.exists() or path.suffix == ".json":
        return path, None
    with looking() as look:
        plan, project = look.store.read_sync(lambda tx: _plan_and_project(tx, text))
    file = Path(project.path) / ".loopwright" / "receipts" / f"{plan.id}.json"
    if not file.exists():
        raise NotFound(
            f"{project.path} has no receipt of {short_id(plan.id)} yet",
            hint=f"`loopwright receipt show {short_id(plan.id)} --output FILE` writes one as it stands now",
        )
    return file, Path(project.path)


def _plan_and_project(tx: Tx, text: str) -> tuple[Plan, Project]:
    plan = find_plan(tx, text)
    project = tx.get(Project, plan.project_id)
    assert project is not None, "a plan always has its project"
    return plan, project


def _checked(facts: Facts) -> list[str]:
    """Say in plain words what was looked at here."""
    done = ["every commit, tree and diff that it names, in git"]
    if facts.outputs:
        done.append(f"{counted(len(facts.outputs), 'recorded output')} of gates, in this home")
    if facts.events is not None:
        done.append(f"the chain of {counted(len(facts.events.hashes), 'event')}, in this home's database")
    return done


def _read(path: Path) -> Any:
    hint = "give the JSON file that loopwright wrote, such as .loopwright/receipts/plan_….json"
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}", hint=hint) from error
    if len(data) > _LARGEST:
        raise UserError(f"{path} is too large for a receipt", hint=hint)
    try:
        return jsonlib.loads(data)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON: {error}", hint=hint) from error


async def _facts(receipt: Any, where: Path) -> Facts:
    # The repository's reader keeps notes in a home: a passing one, so that nothing is left behind.
    with tempfile.TemporaryDirectory(prefix="loopwright-verify-") as scratch:
        repository = GitRepository(where, project_id="verify", home=Path(scratch))
        try:
            return await gather_facts(repository, receipt, _run_files(receipt), _events(receipt))
        except NotARepository as outside:
            hint = "say where the result is: --repository PATH"
            raise NotARepository(str(outside), hint=hint) from outside


def _events(receipt: Any) -> EventFacts | None:
    """Look at the chain of events, when the home at hand is the one where the plan ran."""
    plan = receipt.get("plan") if isinstance(receipt, dict) else None
    plan_id = plan.get("id") if isinstance(plan, dict) else None
    if not isinstance(plan_id, str):
        return None
    try:
        with looking() as look:
            return look.store.read_sync(lambda tx: plan_events(tx, plan_id))
    except LoopwrightError:
        return None  # then it is named among what was not checked


def _run_files(receipt: Any) -> Path | None:
    """Return the folder with the run files, when this is the machine where the plan ran."""
    try:
        folder = whereabouts(os.environ, sys.platform)[0] / "runs"
    except LoopwrightError:
        return None
    runs = receipt.get("runs") if isinstance(receipt, dict) else None
    named = [one.get("id") for one in runs if isinstance(one, dict)] if isinstance(runs, list) else []
    known = any(isinstance(one, str) and "/" not in one and (folder / one).is_dir() for one in named)
    return folder if known else None


def _print_findings(receipt: Mapping[str, Any], facts: Facts, differences: list[str], where: Path) -> None:
    out, plan = console(), receipt["plan"]
    out.print(f"[bold]{escape(plan['title'])}[/]  {short_id(plan['id'])}  against {escape(str(where))}")
    for difference in differences:
        out.print(f"[red]✘ differs[/]: {escape(difference)}")
    for done in _checked(facts):
        out.print(f"[dim]· checked: {escape(done)}[/]")
    for gap in facts.unchecked:
        out.print(f"[dim]· not checked here: {escape(gap)}[/]")
    if differences:
        out.print(f"[bold red]DIFFERS[/]  {len(differences)} of its statements do not hold")
        if any(difference.endswith("does not exist") for difference in differences):
            out.print(f"is this the right repository? `git fetch` brings the branch {escape(plan['branch'])}")
        return
    style = _STYLES.get(receipt["outcome"], "yellow")
    out.print(f"[bold green]AGREES[/]  it says: [{style}]{_words(receipt['outcome'])}[/]")
