"""How a plan ended: its last screen, its receipt, and what to do with the result."""

import os
import shlex
from collections.abc import Sequence

from rich.markup import escape

from loopwright.cli.screens.advice import print_gaps, print_steps
from loopwright.cli.screens.plan_table import exit_code, has_gaps, print_finishes, screen
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.lines import in_local_time
from loopwright.cli.shell.output import console, paragraph, print_json
from loopwright.core.values.states import ENDED_PLAN, FinishState
from loopwright.services.homes.session import Session
from loopwright.services.views.plans import (
    PlanView,
    ended_view,
    known_about,
    merge_command,
    next_steps,
    receipt_file,
)


async def print_end(
    at: Session, plan_id: str, code: ExitCode, *, as_json: bool, notes: Sequence[str] = ()
) -> int:
    """Print how a plan ended, once its receipt is there; return the exit code. `notes` are only in the JSON."""
    return closing(await ended_view(at, plan_id), code, as_json=as_json, notes=notes)


def closing(
    view: PlanView,
    code: ExitCode = ExitCode.VERIFIED,
    *,
    as_json: bool,
    merged: bool = False,
    notes: Sequence[str] = (),
) -> ExitCode:
    """Print how a plan ended, and what to do with the result; there is nothing to do where it is `merged`.

    Return the exit code: what the plan says, unless it was interrupted, or a program of its checks is gone.
    """
    said = exit_code(view)
    kept = code is ExitCode.ENVIRONMENT and said is ExitCode.UNFINISHED
    code = code if kept or code is ExitCode.INTERRUPTED else said
    if as_json:
        print_json({"plan": view, "notes": list(notes), "exit_code": int(code)})
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
    receipt = receipt_file(view)
    # A plan that continues has no receipt: a file there is older, or not from Loopwright.
    if view.status in ENDED_PLAN and receipt.exists():
        out.print(f"receipt: {escape(os.path.relpath(receipt))}")
        if has_gaps(view):
            print_gaps(out, view.path, view.id)
    print_finishes(view)
    # An end that a user asked for and that was refused moves nothing.
    if any(one.is_automatic or one.state != FinishState.REFUSED.value for one in view.finishes):
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
