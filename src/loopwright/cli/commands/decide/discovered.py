"""`discovered`: work that agents came upon and did not do, and what a person makes of it."""

import asyncio
import json as jsonlib
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter
from rich.console import Group
from rich.markup import escape
from rich.text import Text

from loopwright.cli.screens.layout import Wrapped
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json
from loopwright.core.plans.planning import FOLDER
from loopwright.core.replies.discoveries import key_for
from loopwright.core.values.display_text import on_one_line
from loopwright.core.values.errors import Held, UserError
from loopwright.core.values.ids import short_id
from loopwright.core.values.shell_hints import to_type
from loopwright.core.values.states import DiscoveryState
from loopwright.core.values.wording import listed
from loopwright.engine.people.discoveries import (
    NEW,
    DiscoveryView,
    check_decidable,
    discovery_view,
    find_discovered,
    list_discovered,
)
from loopwright.services.homes.read_only_home import find_plan, glancing, project_here

if TYPE_CHECKING:
    from loopwright.app import Home
    from loopwright.core.rows.model import Command
    from loopwright.engine.rows.projects import Checkouts
    from loopwright.ports import Tx

_ELSEWHERE = "accept it with --as current, or make room there"
_ADVICE = {"current": "it should be done in this plan", "new": "it should get a plan of its own"}

app = App(
    name="discovered",
    help="List work that agents came upon and left to others, or decide about it.",
    help_format="plaintext",
)


@app.default
def discovered(plan: str | None = None, /, *, all: bool = False, json: bool = False) -> int:
    """List what agents came upon in this repository and did not do (in every one, outside of a repository).

    Parameters
    ----------
    plan
        Only what was found in this plan.
    all
        List that of every repository, and what was decided too.
    json
        Print it as JSON.
    """
    project = None if all else project_here()
    with glancing() as look:
        found = look.store.read_sync(lambda tx: _listed(tx, plan, project, closed=all))
    if json:
        print_json({"discovered": found})
        return ExitCode.VERIFIED
    out = console()
    if not found:
        out.print("no discovered work waits for you")
    for one in found:
        out.print(picture(one))
    return ExitCode.VERIFIED


def _listed(tx: "Tx", plan: str | None, project: "Checkouts | None", *, closed: bool) -> list[DiscoveryView]:
    plan_id = find_plan(tx, plan).id if plan is not None else None
    return list_discovered(tx, plan_id=plan_id, project_path=project, closed=closed)


@app.command
def accept(
    work: str,
    /,
    *,
    way: Annotated[Literal["current", "new"] | None, Parameter(name="--as")] = None,
    json: bool = False,
) -> int:
    """Have it done: as one more task of the plan in which it was found, or in a plan of its own for you to edit.

    Parameters
    ----------
    work
        Which: its id or the beginning of it.
    way
        Where it is done (default: what the agent recommended).
    json
        Print the result as JSON.
    """
    return asyncio.run(_accept(work, way, as_json=json))


@app.command
def dismiss(work: str, /, *, json: bool = False) -> int:
    """Say that it is not wanted.

    Parameters
    ----------
    work
        Which: its id or the beginning of it.
    json
        Print the result as JSON.
    """
    return asyncio.run(_dismiss(work, as_json=json))


async def _accept(work: str, way: str | None, *, as_json: bool) -> int:
    from loopwright.cli.foreground import is_worked_on
    from loopwright.services.homes.context import look_settings, open_existing

    home = open_existing(look_settings())
    try:
        found = await home.store.read(lambda tx: _decidable(tx, work, DiscoveryState.ACCEPTED))
        way = way or found.recommendation
        answer = await (_as_new(home, found) if way == NEW else _sent(home, "accept", found, {"as": way}))
        if as_json:
            print_json({"command": answer, "exit_code": 0})
            return ExitCode.VERIFIED
        console().print(escape(answer.result))
        if way == NEW:
            console().print("read and edit it, then `loopwright run FILE` runs it")
        elif not await is_worked_on(home, await home.store.read(lambda tx: _project_of(tx, found.plan_id))):
            console().print(f"no worker is running: `loopwright resume {short_id(found.plan_id)}` goes on")
        return ExitCode.VERIFIED
    finally:
        await home.store.close()


def _project_of(tx: "Tx", plan_id: str) -> str:
    from loopwright.core.rows.model import Plan
    from loopwright.engine.rows.moves import need

    plan = need(tx.get(Plan, plan_id), "the plan")
    return plan.project_id


async def _dismiss(work: str, *, as_json: bool) -> int:
    from loopwright.services.homes.context import look_settings, open_existing

    home = open_existing(look_settings())
    try:
        found = await home.store.read(lambda tx: _decidable(tx, work, DiscoveryState.DISMISSED))
        answer = await _sent(home, "dismiss", found, {})
    finally:
        await home.store.close()
    if as_json:
        print_json({"command": answer, "exit_code": 0})
    else:
        console().print(escape(answer.result))
    return ExitCode.VERIFIED


def _decidable(tx: "Tx", work: str, target: DiscoveryState) -> DiscoveryView:
    found = find_discovered(tx, work)
    check_decidable(found, target)
    return discovery_view(tx, found)


async def _sent(home: "Home", verb: str, found: DiscoveryView, arguments: dict[str, Any]) -> "Command":
    from loopwright.cli.commands.decide.control import ask

    return await ask(home, f"{verb}_discovered", found.id, arguments)


async def _as_new(home: "Home", found: DiscoveryView) -> "Command":
    """Write the files first: a decision that names none would be lost work."""
    from loopwright.services.homes.file_writing import write_whole

    name, files = _own_plan(found)
    targets = {Path(found.path) / file: text for file, text in files.items()}
    made = [folder for folder in {path.parent for path in targets} if not folder.exists()]
    for target in targets:
        _make_folder(target.parent)
    try:
        for target, text in targets.items():
            write_whole(target, text, hint=_ELSEWHERE)
        return await _sent(home, "accept", found, {"as": NEW, "file": name})
    except Held:
        raise  # it is written down and may well be carried out: then these are all that is left of the work
    except UserError:
        for target in targets:
            target.unlink(missing_ok=True)
        for folder in made:
            if folder.exists() and not any(folder.iterdir()):
                folder.rmdir()
        raise


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} cannot be made: {error.strerror}", hint=_ELSEWHERE) from error


def _own_plan(found: DiscoveryView) -> tuple[str, dict[str, str]]:
    """Return what it is called, and its files by their paths: a track beside others, or a plan file."""
    from loopwright.adapters.sources.plan_md.new_track import track_files, tracks_of

    root, tracks = Path(found.path), tracks_of(found.source_kind, found.source)
    if not tracks:
        folder = root / FOLDER
        name = key_for(found.title, {one.stem for one in folder.iterdir()} if folder.is_dir() else set())
        file = f"{FOLDER}/{name}.yaml"
        return file, {file: plan_text(found)}
    now = datetime.now(UTC)
    day = f"_{now:%Y%m%d}"
    taken = (
        {one.name.removesuffix(day) for one in (root / tracks).iterdir()}
        if (root / tracks).is_dir()
        else set()
    )
    track = f"{key_for(found.title, taken)}{day}"
    files = track_files(track, title=found.title, reason=found.reason, found_in=_finder(found), at=now)
    return f"{tracks}/{track}", {f"{tracks}/{track}/{name}": text for name, text in files.items()}


def _finder(found: DiscoveryView) -> str:
    task = f"the task {found.task} of {short_id(found.plan_id)}" if found.task else short_id(found.plan_id)
    return " ".join(task.split())


def plan_text(found: DiscoveryView) -> str:
    """Return a plan with the work as its one task; a JSON text is a YAML text as well."""
    title = jsonlib.dumps(found.title, ensure_ascii=False)
    lines = [
        f"# Come upon in {_finder(found)}. Say what proves it done, then run this file with `loopwright run FILE`",
        f"title: {title}",
        "tasks:",
        f"  - id: {key_for(found.title, set())}",
        f"    title: {title}",
    ]
    if found.reason:
        lines.append(f"    description: {jsonlib.dumps(found.reason, ensure_ascii=False)}")
    return "\n".join([*lines, "    # acceptance: a command that fails now and passes when it is done", ""])


def picture(view: DiscoveryView) -> Group:
    """Return it as lines: what it is, who found it, why, and what to type."""
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
    over = "" if view.fits or view.recommendation == NEW else ", but that is over"
    parts.append(Wrapped(Text(f"  the agent thinks that {advice}{over}", style="dim"), indent="  "))
    accept = to_type("discovered", "accept", name, as_=NEW if over else False)
    typed = f"  {accept}   or   {to_type('discovered', 'dismiss', name)}"
    parts.append(Wrapped(Text(typed), indent="  "))
    return Group(*parts)
