"""How a plan ended: its last screen, its receipt, and what to do with the result."""

import asyncio
import os
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Final

from rich.markup import escape

from loopwright.app import Home
from loopwright.cli.screens.next_steps import print_steps
from loopwright.cli.screens.plan_table import exit_code, has_gaps, print_finishes, screen
from loopwright.cli.screens.source_news import view_with_news
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, paragraph, print_json
from loopwright.cli.shell.times import in_local_time
from loopwright.core.values.states import ENDED_PLAN, FinishState
from loopwright.engine.rows.moves import MACHINE
from loopwright.engine.views.next_steps import merge_command, next_steps
from loopwright.engine.views.views import PlanView
from loopwright.services.homes.plan_facts import known_about

_RECEIPT_S: Final = 5.0
"""How long to wait for a receipt that somebody else writes."""


async def print_end(home: Home, plan_id: str, code: ExitCode, *, as_json: bool) -> int:
    """Print how a plan ended, once its receipt is there; return the exit code."""
    view = await view_with_news(home, plan_id)
    await _written(view)
    return closing(view, code, as_json=as_json)


def _receipt(view: PlanView) -> Path:
    return Path(view.path) / ".loopwright" / "receipts" / f"{view.id}.json"


async def _written(view: PlanView) -> None:
    """Wait a moment for the receipt of a plan that is over: another worker may still be writing it."""
    if view.status not in ENDED_PLAN:
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(_RECEIPT_S):
            while not _receipt(view).exists():
                await asyncio.sleep(0.05)


def closing(
    view: PlanView, code: ExitCode = ExitCode.VERIFIED, *, as_json: bool, merged: bool = False
) -> ExitCode:
    """Print how a plan ended, and what to do with the result; there is nothing to do where it is `merged`.

    Return the exit code: what the plan says, unless it was interrupted, or a program of its checks is gone.
    """
    said = exit_code(view)
    kept = code is ExitCode.ENVIRONMENT and said is ExitCode.UNFINISHED
    code = code if kept or code is ExitCode.INTERRUPTED else said
    if as_json:
        print_json({"plan": view, "exit_code": int(code)})
    else:
        _print_end(view, merged=merged)
    return code


def _print_end(view: PlanView, *, merged: bool) -> None:
    out = console()
    out.print(screen(view))
    if view.reason and view.status != "VERIFIED":
        out.print(paragraph(f"why: {escape(in_local_time(view.reason))}"))
    if view.stopped:
        out.print(paragraph(f"stopped: {escape(in_local_time(view.stopped))}"))
    receipt = _receipt(view)
    # Of a plan that goes on there is none: what lies there is an older one, or not ours.
    if view.status in ENDED_PLAN and receipt.exists():
        out.print(f"receipt: {escape(os.path.relpath(receipt))}")
        if has_gaps(view):
            from loopwright.cli.screens.gaps import print_gaps

            print_gaps(out, view.path, view.id)
    print_finishes(view)
    # What a person asked for and was refused leaves the result where it was.
    if any(one.actor == MACHINE or one.state != FinishState.REFUSED.value for one in view.finishes):
        return
    known = known_about(view)
    if view.status == "VERIFIED" and view.answers:
        print_steps(out, next_steps(view, known))
        return
    merge = "" if merged else shlex.join(merge_command(view, known))
    if view.status == "VERIFIED" and not merge:
        return
    if view.status == "VERIFIED":
        out.print(f"merge it:  {escape(merge)}")
        out.print("[dim](without --ff-only if your branch has moved on since)[/]")
        if view.status_on_branch and not view.untold:
            out.print(
                paragraph(
                    "the status of its source is on that branch too: your checkout has it once you merge"
                )
            )
        return
    if view.status == "CANCELLED":
        return
    if view.status == "FAILED" and exit_code(view) is ExitCode.UNVERIFIED and merge:
        out.print(paragraph("all of it landed, and nothing has checked it: look at it before you merge it"))
        out.print(f"merge it:  {escape(merge)}")
        return
    print_steps(out, next_steps(view, known))
