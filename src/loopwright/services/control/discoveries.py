"""Work that agents found and did not do: list it, accept it or dismiss it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loopwright.core.plans.planning import FOLDER
from loopwright.core.replies.discoveries import key_for
from loopwright.core.rows.model import Plan
from loopwright.core.values.errors import Held, UserError
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import DiscoveryState
from loopwright.engine.people.discoveries import (
    CURRENT,
    NEW,
    DiscoveryView,
    check_decidable,
    discovery_view,
    find_discovered,
)
from loopwright.engine.people.discoveries import list_discovered as _list
from loopwright.engine.rows.moves import need
from loopwright.services.homes.caller import write_whole
from loopwright.services.homes.read_only_home import find_plan, glancing, project_here

if TYPE_CHECKING:  # listing them needs neither an open home nor its settings
    from loopwright.core.rows.model import Command
    from loopwright.ports import Tx
    from loopwright.services.homes.session import Session

__all__ = ["NEW", "DiscoveryDecision", "DiscoveryView", "accept", "dismiss", "list_discovered"]

_ELSEWHERE: Final = "accept it with --as current, or make room there"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryDecision:
    """A decision about work that an agent found."""

    command: "Command"
    """Its record; `result` is the result in words."""
    plan_id: str
    is_own_plan: bool
    """Whether it became a new plan, which you have to run."""
    needs_worker: bool
    """Whether its plan can continue and no process works on it."""


def list_discovered(plan: str | None = None, *, everything: bool = False) -> tuple[DiscoveryView, ...]:
    """Return the open discoveries of this repository, or of one plan; `everything` adds others and decided ones."""
    project = None if everything else project_here()

    def load(tx: "Tx") -> list[DiscoveryView]:
        plan_id = find_plan(tx, plan).id if plan is not None else None
        return _list(tx, plan_id=plan_id, project_path=project, closed=everything)

    with glancing() as look:
        return tuple(look.store.read_sync(load))


async def accept(
    at: "Session", work: str, *, way: str | None = None, plan: str | None = None
) -> DiscoveryDecision:
    """Have it done: in its plan, or in a new one; `way` is `current`, `new`, or as the agent recommended.

    `plan` is another plan of the project, which gets it as a task.
    """
    # To list discovered work needs no open home.
    from loopwright.services.control.sending import is_worked_on

    found = await at.home.store.read(lambda tx: _decidable(tx, work, DiscoveryState.ACCEPTED))
    target = found.plan_id if plan is None else await at.home.store.read(lambda tx: find_plan(tx, plan).id)
    way = CURRENT if plan is not None else way or found.recommendation
    is_own_plan = way == NEW
    command = await (
        as_own_plan(at, found) if is_own_plan else _send(at, "accept", found, {"as": way, "plan": target})
    )
    row: Plan = need(await at.home.store.read(lambda tx: tx.get(Plan, target)), "the plan")
    return DiscoveryDecision(
        command=command,
        plan_id=target,
        is_own_plan=is_own_plan,
        needs_worker=not is_own_plan and not await is_worked_on(at.home, row.project_id),
    )


async def dismiss(at: "Session", work: str) -> DiscoveryDecision:
    """Record that the user does not want it done."""
    found = await at.home.store.read(lambda tx: _decidable(tx, work, DiscoveryState.DISMISSED))
    command = await _send(at, "dismiss", found, {})
    return DiscoveryDecision(command=command, plan_id=found.plan_id, is_own_plan=False, needs_worker=False)


def _decidable(tx: "Tx", work: str, target: DiscoveryState) -> DiscoveryView:
    found = find_discovered(tx, work)
    check_decidable(found, target)
    return discovery_view(tx, found)


async def _send(at: "Session", verb: str, found: DiscoveryView, arguments: Mapping[str, Any]) -> "Command":
    # To list discovered work needs no open home.
    from loopwright.services.control.sending import send

    return await send(at, f"{verb}_discovered", found.id, arguments)


async def as_own_plan(at: "Session", found: DiscoveryView) -> "Command":
    """Accept it as a new plan. Write the files first: a decision without files would lose the work."""
    name, files = _own_plan(found)
    targets = {Path(found.path) / file: text for file, text in files.items()}
    made = [folder for folder in {path.parent for path in targets} if not folder.exists()]
    for target in targets:
        _make_folder(target.parent)
    try:
        for target, text in targets.items():
            write_whole(target, text, hint=_ELSEWHERE)
        return await _send(at, "accept", found, {"as": NEW, "file": name})
    except Held:
        raise  # the decision is recorded and may be carried out: then these files are all that is left of the work
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
        raise UserError(
            f"{folder} cannot be made: {error.strerror}", code="folder_not_created", hint=_ELSEWHERE
        ) from error


def _own_plan(found: DiscoveryView) -> tuple[str, dict[str, str]]:
    """Return its name, and its files by path: a track beside others, or a plan file."""
    # Only a discovery in a track needs it.
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
    """Return a plan with the work as its only task; a JSON text is also a YAML text."""
    title = json.dumps(found.title, ensure_ascii=False)
    lines = [
        f"# Found in {_finder(found)}. Say what proves it done, then run this file with `loopwright run FILE`",
        f"title: {title}",
        "tasks:",
        f"  - id: {key_for(found.title, set())}",
        f"    title: {title}",
    ]
    if found.reason:
        lines.append(f"    description: {json.dumps(found.reason, ensure_ascii=False)}")
    return "\n".join([*lines, "    # acceptance: a command that fails now and passes when it is done", ""])
