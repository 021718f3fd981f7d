"""`discovered`: work that agents found and did not do, and your decision about it."""

import asyncio
from typing import Annotated, Literal

from cyclopts import App, Parameter
from rich.console import Group
from rich.markup import escape
from rich.text import Text

from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.lines import Wrapped
from loopwright.cli.shell.output import console, print_json
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import DiscoveryState
from loopwright.core.values.wording import listed, on_one_line, to_type
from loopwright.services.control import discoveries
from loopwright.services.control.discoveries import NEW, DiscoveryView

_ADVICE = {"current": "it should be done in this plan", "new": "it should get its own plan"}

app = App(
    name="discovered",
    help="List work that agents found and did not do, or decide about it.",
    help_format="plaintext",
)


@app.default
def discovered(plan: str | None = None, /, *, all: bool = False, json: bool = False) -> int:
    """List work that agents found in this repository and did not do (outside of one, in all).

    Parameters
    ----------
    plan
        Only what was found in this plan.
    all
        List discovered work of every repository, also what you decided already.
    json
        Print it as JSON.
    """
    found = discoveries.list_discovered(plan, everything=all)
    if json:
        print_json({"discovered": found})
        return ExitCode.VERIFIED
    out = console()
    if not found:
        out.print("no discovered work waits for you")
    for one in found:
        out.print(picture(one))
    return ExitCode.VERIFIED


@app.command
def accept(
    work: str,
    /,
    *,
    way: Annotated[Literal["current", "new"] | None, Parameter(name="--as")] = None,
    plan: Annotated[str | None, Parameter(name="--in")] = None,
    json: bool = False,
) -> int:
    """Have it done: as one more task of the plan in which it was found, or in a new plan for you to edit.

    Parameters
    ----------
    work
        Which: its id or the beginning of it.
    way
        Where it is done (default: what the agent recommended).
    plan
        Do it as a task of this other plan of the project: its id or the beginning of it.
    json
        Print the result as JSON.
    """
    return asyncio.run(_accept(work, way, plan, as_json=json))


@app.command
def dismiss(work: str, /, *, json: bool = False) -> int:
    """Decide that it is not wanted.

    Parameters
    ----------
    work
        Which: its id or the beginning of it.
    json
        Print the result as JSON.
    """
    return asyncio.run(_dismiss(work, as_json=json))


async def _accept(work: str, way: str | None, plan: str | None, *, as_json: bool) -> int:
    # Listing them loads neither the settings nor a worker's parts.
    from loopwright.services.homes.session import session

    async with session() as at:
        done = await discoveries.accept(at, work, way=way, plan=plan)
    if as_json:
        print_json({"command": done.command, "exit_code": 0})
        return ExitCode.VERIFIED
    console().print(escape(done.command.result))
    if done.is_own_plan:
        console().print("read and edit it, then `loopwright run FILE` runs it")
    elif done.needs_worker:
        console().print(
            f"no worker is running: `loopwright resume {short_id(done.plan_id)}` continues the plan"
        )
    return ExitCode.VERIFIED


async def _dismiss(work: str, *, as_json: bool) -> int:
    # As in `_accept`.
    from loopwright.services.homes.session import session

    async with session() as at:
        done = await discoveries.dismiss(at, work)
    if as_json:
        print_json({"command": done.command, "exit_code": 0})
    else:
        console().print(escape(done.command.result))
    return ExitCode.VERIFIED


def picture(view: DiscoveryView) -> Group:
    """Return it as lines: what it is, which task found it, why, and what to type."""
    name = short_id(view.id)
    where = f"{listed([one or 'a task' for one in view.tasks])} of {short_id(view.plan_id)}"
    head = Text("+ ", style="cyan").append(name, style="bold").append(f"  {on_one_line(view.title)}")
    parts = [Wrapped(head, indent="  "), Wrapped(Text(f"  found in {where}", style="dim"), indent="  ")]
    if view.reason:
        parts.append(Wrapped(Text(f"  {on_one_line(view.reason)}"), indent="  "))
    if view.state != DiscoveryState.OPEN:
        became = f": {view.became}" if view.became else ""
        said = f"  {view.state.lower()} by {view.decided_by}{became}"
        return Group(*parts, Wrapped(Text(said, style="dim"), indent="  "))
    advice = _ADVICE.get(view.recommendation, "")
    over = "" if view.fits or view.recommendation == NEW else ", but that plan has ended"
    parts.append(Wrapped(Text(f"  the agent thinks that {advice}{over}", style="dim"), indent="  "))
    accept = to_type("discovered", "accept", name, as_=NEW if over else False)
    typed = f"  {accept}   or   {to_type('discovered', 'dismiss', name)}"
    parts.append(Wrapped(Text(typed), indent="  "))
    return Group(*parts)
