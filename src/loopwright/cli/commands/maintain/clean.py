"""`clean`: delete branches and pins of ended plans whose work one of your branches has."""

import asyncio
import os
import sys
from collections.abc import Sequence

from rich.markup import escape
from rich.text import Text

from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.lines import Wrapped
from loopwright.cli.shell.output import console, print_json
from loopwright.core.values.errors import Refused, UserError
from loopwright.core.values.ids import short_id
from loopwright.core.values.wording import counted
from loopwright.services.homes.session import session
from loopwright.services.projects import cleaning
from loopwright.services.projects.cleaning import Leftover, Leftovers, Recordings

_KILO = 1024


def clean(
    plan: str | None = None,
    /,
    *,
    unproven: bool = False,
    recordings: bool = False,
    dry_run: bool = False,
    yes: bool = False,
    json: bool = False,
) -> int:
    """Delete branches and pins of ended plans, where one of your branches is proven to have their work.

    The work of rejected attempts, and of plans that you did not merge, stays.

    Parameters
    ----------
    plan
        Only this plan (default: every ended plan of this repository).
    unproven
        Also delete what none of your branches has. Needs a PLAN. You cannot undo this.
    recordings
        Delete the recordings of agents instead; the output of gates stays.
    dry_run
        Show what would be deleted, and change nothing.
    yes
        Do not ask.
    json
        Print one JSON document; needs --yes or --dry-run.
    """
    if json and not (yes or dry_run):
        raise Refused(
            "--json cannot ask",
            code="confirmation_needed",
            hint="add --yes, or --dry-run to see what would be deleted",
        )
    if recordings:
        if unproven:
            raise UserError(
                "--unproven is about branches, --recordings is not",
                code="flags_conflict",
                hint="use one of them, then the other",
            )
        return asyncio.run(_clean_recordings(plan, dry_run=dry_run, yes=yes, as_json=json))
    return asyncio.run(_clean(plan, unproven=unproven, dry_run=dry_run, yes=yes, as_json=json))


async def _clean_recordings(plan: str | None, *, dry_run: bool, yes: bool, as_json: bool) -> int:
    async with session() as at:
        found = await cleaning.recordings_of(at, await cleaning.ended_plans(at, plan))
        if not as_json:
            _print_recordings(found)
        deleted = 0
        if not dry_run and found:
            told = f"the recordings of {counted(sum(len(one.sizes) for one in found), 'agent run')}"
            if yes or _answered(told, "receipt verify will name them as no longer kept."):
                deleted = await cleaning.remove_recordings(at, found)
    if as_json:
        entries = [{"plan": one.plan.id, "title": one.plan.title, "runs": one.sizes} for one in found]
        print_json({"plans": entries, "deleted": deleted})
    elif deleted:
        console().print(f"deleted: {counted(deleted, 'recording')}")
    return ExitCode.VERIFIED


async def _clean(plan: str | None, *, unproven: bool, dry_run: bool, yes: bool, as_json: bool) -> int:
    async with session() as at:
        found = await cleaning.leftovers(at, plan, unproven=unproven)
        if not as_json:
            _print(found)
        deleted = 0
        if not dry_run and any(one.go for one in found) and (yes or _agreed(found)):
            deleted = await cleaning.delete(at, found)
    if as_json:
        print_json({"plans": [_document(one) for one in found], "deleted": deleted})
    elif deleted:
        console().print(f"deleted: {counted(deleted, 'ref')}")
    return ExitCode.VERIFIED


def _print_recordings(found: Sequence[Recordings]) -> None:
    out = console()
    for one in found:
        what = f"what {counted(len(one.sizes), 'agent run')} printed: {_size(one.size)}"
        out.print(
            f"[bold]{escape(one.plan.title)}[/]  {short_id(one.plan.id)}  {one.plan.status.value.lower()}\n"
            f"  [yellow]delete[/]  {what}"
        )
    if not found:
        out.print("nothing to delete: no ended plan has recordings here")


def _size(size: int) -> str:
    return f"{size / _KILO / _KILO:.1f} MB" if size >= _KILO * _KILO else f"{-(-size // _KILO)} KB"


def _print(found: Sequence[Leftovers]) -> None:
    out, shown = console(), [one for one in found if one.go or one.stay]
    for one in shown:
        out.print(
            f"[bold]{escape(one.plan.title)}[/]  {short_id(one.plan.id)}  {one.plan.status.value.lower()}"
        )
        for word, style, refs in (("delete", "yellow", one.go), ("keep  ", "dim", one.stay)):
            for why, names in _grouped(refs).items():
                line = Text.assemble("  ", (word, style), f"  {names}: {why}")
                out.print(Wrapped(line, indent=" " * 10))
    if shown:
        out.print("[dim]each ref by its name: --dry-run --json[/]")
    if not any(one.go for one in found):
        out.print("nothing to delete: none of your branches has the work of an ended plan")


def _grouped(refs: Sequence[Leftover]) -> dict[str, str]:
    """Group refs by the branch that has their work: each attempt has a ref, and a plan can have hundreds."""
    found: dict[str, list[Leftover]] = {}
    for left in refs:
        found.setdefault(_why(left), []).append(left)
    return {why: _counted(group) for why, group in found.items()}


def _counted(refs: Sequence[Leftover]) -> str:
    attempts = sum(not left.is_branch for left in refs)
    branch = "its branch" if attempts < len(refs) else ""
    return " and ".join(filter(None, (branch, counted(attempts, "attempt") if attempts else "")))


def _why(left: Leftover) -> str:
    if left.ref.worktree:
        return f"checked out in {left.ref.worktree}"
    if left.branch is None:
        return "in none of your branches"
    return f"in {left.branch}" if left.same_commits else f"in {left.branch}, but as other commits"


def _agreed(found: Sequence[Leftovers]) -> bool:
    """Ask at the terminal; without one, refuse."""
    lost = sum(left.branch is None for one in found for left in one.go)
    warning = f"{lost} of them {'is' if lost == 1 else 'are'} in none of your branches." if lost else ""
    return _answered(counted(sum(len(one.go) for one in found), "ref"), warning)


def _answered(what: str, warning: str) -> bool:
    if not (sys.stdin.isatty() and os.isatty(1)):
        raise Refused(
            f"{what} would be deleted, and there is no terminal to ask at",
            code="confirmation_needed",
            hint="--yes deletes without asking",
        )
    answer = input(f"Delete {' '.join(filter(None, (f'{what}?', warning)))} [y/N] ")
    return answer.strip().lower() in ("y", "yes")


def _document(one: Leftovers) -> dict[str, object]:
    def told(left: Leftover) -> dict[str, object]:
        facts = {"ref": left.ref.name, "sha": left.ref.sha, "branch": left.branch}
        return {**facts, "same_commits": left.same_commits, "why": _why(left)}

    return {
        "plan": one.plan.id,
        "title": one.plan.title,
        "delete": [told(left) for left in one.go],
        "keep": [told(left) for left in one.stay],
    }
