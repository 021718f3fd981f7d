"""`receipt`: the record of a plan, shown from the rows or verified against the repository."""

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import App, Parameter
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from loopwright.adapters.gates.text import clean
from loopwright.adapters.home.receipts import check_shape
from loopwright.cli.screens.checkout_changes import print_strays
from loopwright.cli.screens.gaps import print_each_gap
from loopwright.cli.screens.layout import Roomy, Rows, Wrapped, one_line
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json
from loopwright.core.receipts.receipt_facts import unseen_asked, verdict_on
from loopwright.core.receipts.receipt_overrides import decided
from loopwright.core.receipts.receipt_sandboxes import sandboxes
from loopwright.core.receipts.receipts import Facts, render, verify_receipt
from loopwright.core.rows.model import Finish, Loop, Plan, Project
from loopwright.core.values.accounts import called
from loopwright.core.values.errors import NotFound, UserError
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import ENDED_PLAN, FinishState, PlanState
from loopwright.core.values.wording import counted, money
from loopwright.engine.rows.plan_states_text import word_of
from loopwright.engine.views.checkout_changes import stray_views
from loopwright.ports import Tx
from loopwright.services.homes.context import look_settings
from loopwright.services.homes.file_writing import write_whole
from loopwright.services.homes.read_only_home import find_plan, glancing, looking, whereabouts
from loopwright.services.receipts.check import look_again, present_receipt
from loopwright.services.receipts.files import export, read_receipt

app = App(
    name="receipt", help="Show, verify, replay or hand on the record of a plan.", help_format="plaintext"
)

_NARROW: Final = 80
_STYLES: Final = {"verified": "green", "no_change_proven": "green", "verified_with_gaps": "yellow"}


@app.command
def show(plan: str | None = None, /, *, output: Path | None = None, json: bool = False) -> int:
    """Show the receipt of a plan as it stands now.

    Parameters
    ----------
    plan
        Which plan (default: the newest of this repository).
    output
        Write the receipt to this file instead, for `receipt verify`.
    json
        Print the receipt itself.
    """
    receipt = asyncio.run(present_receipt(plan))
    if output is not None:
        write_whole(output, render(receipt), hint="give another --output")
        if json:
            print_json({"written": str(output), "sha256": receipt["sha256"]})
        else:
            console().print(f"written: {escape(str(output))}  sha256 {receipt['sha256']}")
    elif json:
        sys.stdout.write(render(receipt))
    else:
        _print_receipt(receipt, _state(receipt["plan"]))
        if receipt["checkout_changes"]:
            with glancing() as look:
                strays = look.store.read_sync(lambda tx: stray_views(tx, receipt["plan"]["id"]))
            print_strays(console(), strays)
    return ExitCode.VERIFIED


def _state(plan: Mapping[str, Any]) -> str:
    """Return how a plan stands, in the word that every other command has for it."""
    if PlanState(plan["status"]) in ENDED_PLAN:
        return str(plan["status"])  # what it ended as is its outcome
    with glancing() as look:
        found = look.store.read_sync(lambda tx: tx.find(Loop, plan_id=plan["id"], limit=1))
    return word_of(plan["status"], None, found[0].state.value if found else "").replace("_", " ")


def _print_receipt(receipt: Mapping[str, Any], state: str) -> None:
    plan, out = receipt["plan"], console()
    out.print(f"[bold]{escape(plan['title'])}[/]  {plan['id']}")
    narrow = out.is_terminal and out.width < _NARROW
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    cost = receipt["cost"]
    for name, value in (
        ("outcome", f"{_words(receipt['outcome'])} ({state})"),
        ("base", f"{plan['base_sha']} ({plan['base_ref']})"),
        ("result", plan["result_sha"] or "none yet"),
        ("diff", f"sha256 {plan['diff_sha256']}" if plan["diff_sha256"] else "none yet"),
        (
            "cost",
            "unknown"
            if cost["total"] is None
            else ("" if cost["complete"] else "at least ")
            + money(cost["total"], estimated=bool(cost["estimated_runs"])),
        ),
        ("accounts", _accounts(receipt)),
        ("sandbox", _sandboxes(receipt)),
        ("reviews", _reviews(receipt)),
        *(("held out", told) for told in _held_out(receipt)),
        *(("ended", _ended(one)) for one in receipt["finishes"]),
        ("made by", receipt["made_by"]),
        ("sha256", receipt["sha256"]),
    ):
        # Where a hash does not fit it is folded: half of one is good for nothing.
        table.add_row(name, Text(value) if narrow else one_line(value))
    out.print(Roomy(table))
    out.print(_tasks_rows(receipt))
    _print_list("decided by people", _decisions(receipt))
    if receipt["gaps"]:
        out.print("[bold]gaps[/]")
        print_each_gap(
            out, [{key: clean(one[key]) for key in ("cause", "remedy")} for one in receipt["gaps"]]
        )
    _print_list("notes", [one["text"] for one in receipt["notes"]])


def _print_list(title: str, lines: Sequence[str]) -> None:
    """Print a list whose points are wrapped, never cut."""
    out = console()
    if lines:
        out.print(f"[bold]{title}[/]")
    for line in lines:
        out.print(Wrapped(Text(f"  · {clean(line)}"), indent="    "))


def _decisions(receipt: Mapping[str, Any]) -> list[str]:
    keys = {task["id"]: task["key"] for task in receipt["tasks"]}
    return [decided(one, keys) for one in receipt["overrides"]]


def _reviews(receipt: Mapping[str, Any]) -> str:
    ended = Counter(review["state"].lower() for review in receipt["reviews"])
    return ", ".join(f"{count} {name}" for name, count in sorted(ended.items())) or "none"


def _held_out(receipt: Mapping[str, Any]) -> list[str]:
    """Say of which tasks the result passed what their agents never saw."""
    tree = receipt["plan"]["result_tree"]
    asked = unseen_asked(receipt) if tree is not None else []
    passed = [task["key"] for task, commands in asked if verdict_on(receipt, tree, commands)]
    return [f"the result passed what was held out from {', '.join(passed)}"] if passed else []


def _ended(one: Mapping[str, Any]) -> str:
    told = one["detail"].partition("\n")[0] or one["how"]
    return told if one["state"] == FinishState.FINISHED.value else f"{one['state'].lower()}: {told}"


def _sandboxes(receipt: Mapping[str, Any]) -> str:
    begun = sandboxes(receipt)
    return ", ".join(f"{name} ({counted(count, 'run')})" for name, count in sorted(begun.items()))


def _accounts(receipt: Mapping[str, Any]) -> str:
    drawn = Counter(
        called(run["agent"], run["account"]) for run in receipt["runs"] if run["agent"] and run["started_at"]
    )
    return ", ".join(f"{name} ({counted(count, 'run')})" for name, count in sorted(drawn.items())) or "none"


def _tasks_rows(receipt: Mapping[str, Any]) -> Rows:
    rows = []
    for task in receipt["tasks"]:
        outcome, tries = task["outcome"], sum(one["tip_sha"] is not None for one in task["attempts"])
        rows.append(
            (
                Text(task["key"], style="bold"),
                Text(_words(outcome), style=_STYLES.get(outcome, "red")),
                Text((task["landed_sha"] or "")[:10]),
                Text(counted(tries, "attempt")),
                Text(task["title"]),
            )
        )
    return Rows(rows, spare=(4, 3), cut=0)


def _words(outcome: str) -> str:
    return outcome.replace("_", " ")


# --- export --------------------------------------------------------------------------------------------


@app.command(name="export")
def export_(folder: Path, plan: str | None = None, /, *, json: bool = False) -> int:
    """Put a receipt into a new folder for somebody else, with a script that checks it and the outputs of the gates.

    `sh FOLDER/receipt.sh REPOSITORY` needs git and sha256sum, and nothing of Loopwright.

    Parameters
    ----------
    folder
        Where to put it; made here.
    plan
        Which plan (default: the newest of this repository).
    json
        Print what was written as JSON.
    """
    receipt = asyncio.run(present_receipt(plan))
    missing = export(
        receipt, folder, whereabouts(os.environ, sys.platform)[0] / "runs", _frozen(receipt["plan"]["id"])
    )
    if json:
        print_json({"written": str(folder), "sha256": receipt["sha256"], "missing": missing})
        return ExitCode.VERIFIED
    out = console()
    out.print(f"written: {escape(str(folder))}  sha256 {receipt['sha256']}")
    for gap in missing:
        out.print(f"[dim]· not included: {escape(gap)}[/]")
    out.print(f"anyone with the repository checks it: sh {escape(str(folder / 'receipt.sh'))} REPOSITORY")
    return ExitCode.VERIFIED


def _frozen(plan_id: str) -> dict[str, str]:
    with looking() as look:
        ends = look.store.read_sync(lambda tx: tx.find(Finish, plan_id=plan_id))
    return {one.id: one.receipt for one in ends if one.receipt}


# --- verify ----------------------------------------------------------------------------------------


@app.command
def verify(receipt: str | None = None, /, *, repository: Path | None = None, json: bool = False) -> int:
    """Recompute what a receipt says from the git repository, and name every difference.

    Needs no home and no database; where the home in which the plan ran is at hand, the recorded outputs and the
    chain of events are looked at too. The exit code is 0 when everything that could be checked agrees, and 1 on
    any difference, or when `clean` let go of commits that git has deleted since.

    Parameters
    ----------
    receipt
        The file, as `.loopwright/receipts/` or `receipt show --output` has it; or a plan, for the one in its
        project (default: the newest of this repository).
    repository
        The git repository with the result (default: the current folder, or the plan's project).
    json
        Print the findings as JSON.
    """
    file, project = _located(receipt)
    found = read_receipt(file)
    where = (repository or project or Path.cwd()).absolute()
    facts = asyncio.run(look_again(found, where, file))
    differences = verify_receipt(found, facts)
    code = ExitCode.NOT_VERIFIED if differences or facts.cleaned else ExitCode.VERIFIED
    if json:
        print_json(
            {
                "plan": found["plan"]["id"],
                "file": str(file),
                "repository": str(where),
                "outcome": found["outcome"],
                "agrees": not differences and not facts.cleaned,
                "differences": differences,
                "cleaned": sorted(facts.cleaned),
                "checked": _checked(facts),
                "unchecked": facts.unchecked,
                "gaps": found["gaps"],
                "notes": found["notes"],
                "not_checked": found["not_checked"],
                "exit_code": int(code),
            }
        )
        return code
    _print_findings(found, facts, differences, where)
    return code


def _located(text: str | None) -> tuple[Path, Path | None]:
    """Return the file that is meant: this one, or the one of this plan with the plan's project."""
    if text is not None and ((path := Path(text)).exists() or path.suffix == ".json"):
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


def _plan_and_project(tx: Tx, text: str | None) -> tuple[Plan, Project]:
    plan = find_plan(tx, text)
    project = tx.get(Project, plan.project_id)
    assert project is not None, "a plan always has its project"
    return plan, project


def _checked(facts: Facts) -> list[str]:
    """Say in plain words what was looked at here."""
    still = " and is still there" if facts.cleaned else ""
    done = [f"every commit, tree and diff that it names{still}, in git"]
    if facts.outputs:
        done.append(f"{counted(len(facts.outputs), 'recording')} of what gates and agents said")
    if facts.events is not None:
        done.append(f"the chain of {counted(len(facts.events.hashes), 'event')}, in this home's database")
    if facts.rows is not None:
        done.append("every row of the plan, in this home's database")
    if facts.script is not None:
        done.append("the script beside it")
    return done


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
    if facts.cleaned:
        gone = f"{counted(len(facts.cleaned), 'commit')} that it names"
        out.print(
            f"[bold yellow]CANNOT BE VERIFIED ANY MORE[/]  {gone}: let go of by `loopwright clean`, which this home's "
            "record says, and deleted by git since; nothing else differs"
        )
        return
    style = _STYLES.get(receipt["outcome"], "yellow")
    out.print(f"[bold green]AGREES[/]  it says: [{style}]{_words(receipt['outcome'])}[/]")


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
    """Run the recorded gates again on the recorded tree, in a clean workspace, and compare what they say.

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
    from loopwright.services.receipts.replay import differences, judged_trees, not_run, replay

    file, project = _located(receipt)
    found = read_receipt(file)
    check_shape(found)
    where = (repository or project or Path.cwd()).absolute()
    judged = judged_trees(found, task or ())
    settings = look_settings()
    gone = not_run(found, task or (), judged, home=settings.home, repository=where)
    judged = [one for one in judged if one.what not in gone]
    if not yes:
        _agree(sorted({command.command for one in judged for command in one.commands}), json=json)
    entries, out = [], console()
    subfolder = found["project"]["subfolder"]
    plan = _known_plan(found["plan"]["id"])
    replayed = replay(judged, repository=where, subfolder=subfolder, settings=settings, plan=plan)
    for one, verdict, denial in replayed:
        differing = [*differences(one.recorded, verdict), *([denial] if denial else [])]
        entries.append(
            {
                "what": one.what,
                "sha": one.sha,
                "then": one.recorded["status"],
                "now": verdict.status.value,
                "differences": differing,
                "commands": [
                    {"command": c.command, "exit_code": c.exit_code, "duration_s": c.duration_s}
                    for c in verdict.commands
                ],
            }
        )
        if not json:
            word = "[red]✘ differs[/]" if differing else "[green]✔ the same[/]"
            out.print(f"{word}  {escape(one.what)}  {one.sha[:10]}  {verdict.status.value}")
            for line in differing:
                out.print(f"    {escape(line[:300])}")
    code = ExitCode.NOT_VERIFIED if any(one["differences"] for one in entries) else ExitCode.VERIFIED
    if json:
        print_json(
            {
                "plan": found["plan"]["id"],
                "agrees": code == 0,
                "replayed": entries,
                "not_replayed": [{"what": what, "why": why} for what, why in gone.items()],
                "exit_code": int(code),
            }
        )
        return code
    for what, why in gone.items():
        out.print(f"[dim]· not run[/]  {escape(what)}: {escape(why)}")
    return code


def _known_plan(plan_id: str) -> Plan | None:
    """Return the plan of a receipt, if it is in the home at hand."""
    try:
        with glancing() as look:
            return look.store.read_sync(lambda tx: tx.get(Plan, plan_id))
    except NotFound:
        return None


def _agree(commands: list[str], *, json: bool) -> None:
    """Let a person see what would run here, and say yes to it."""
    if json or not sys.stdin.isatty():
        raise UserError(
            f"the receipt's commands would run on this machine: {'; '.join(commands)}"[:500],
            hint="look at them, then say --yes",
        )
    out = console()
    out.print("These commands, from the receipt, will run on this machine:")
    for command in commands:
        out.print(f"  {escape(command)}")
    if input("Run them? [y/N] ").strip().lower() not in ("y", "yes"):
        raise UserError("nothing was run", hint="answer y, or say --yes")
