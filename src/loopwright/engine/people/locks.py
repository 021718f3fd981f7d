"""Show the files and locks that loops hold or wait for, and release them at the user's command."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from loopwright.core.rows.hold_rows import Hold
from loopwright.core.rows.model import Command, Loop, Plan, Project, Task
from loopwright.core.values.errors import NotFound, Refused
from loopwright.core.values.ids import Kind, short_id
from loopwright.core.values.states import ENDED_PLAN, HoldState
from loopwright.engine.people import holds
from loopwright.engine.rows.moves import need
from loopwright.engine.rows.plan_states_text import plan_word
from loopwright.engine.rows.projects import Checkouts, project_ids
from loopwright.ports import Ids, Tx

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldView:
    """Files or a lock that a loop holds or waits for."""

    id: str
    project_id: str
    loop: str
    plan_id: str
    task: str
    """The task that needs the files; empty for what the whole plan needs."""
    lock: str
    """Empty for files."""
    paths: tuple[str, ...]
    state: HoldState
    waits_for: tuple[str, ...]
    """The names of the loops that it waits for."""
    reason: str
    since: datetime


def take_lock(tx: Tx, ids: Ids, command: Command) -> str:
    """Ask for a named lock for a plan."""
    plan = _plan(tx, command)
    if plan.status in ENDED_PLAN:
        raise Refused(
            f"the plan is {plan_word(tx, plan)}", code="plan_ended", hint="it needs no lock any more"
        )
    name = str(command.arguments.get("lock") or "")
    if _NAME.fullmatch(name) is None:
        raise Refused(
            f"{name!r} cannot be the name of a lock",
            code="lock_name_wrong",
            hint="use up to 64 letters, digits and the characters . _ / -",
        )
    hold = holds.ask_lock(tx, ids, plan, name)
    return f"it has the lock {name}" if hold.state is HoldState.HELD else hold.reason


def release_hold(tx: Tx, _ids: Ids, command: Command) -> str:
    """Take files or a lock from the plan that has them, or let a plan continue that waits."""
    plan, wanted = _plan(tx, command), str(command.arguments.get("hold") or "")
    hold = next((one for one in tx.find(Hold, plan_id=plan.id) if one.id == wanted), None)
    if hold is None:
        raise NotFound(f"nothing is held as {wanted}", code="hold_not_found", hint=_LISTS)
    if hold.state is HoldState.REFUSED:
        raise Refused("this request was refused or released already", code="hold_settled", hint=_LISTS)
    holds.release(tx, hold, command.actor)
    name = need(tx.get(Loop, hold.loop_id), "the loop").name
    what = f"the lock {hold.lock}" if hold.lock else "the files"
    if hold.state is HoldState.WAITING:
        return f"{name} continues without {what}"
    return f"{name} has given up {what}"


def _plan(tx: Tx, command: Command) -> Plan:
    plan = tx.get(Plan, command.target)
    if plan is None:
        raise NotFound(f"there is no plan {command.target}", code="plan_not_found")
    return plan


_LISTS: Final = "`loopwright locks` lists what loops hold"


def hold_view(tx: Tx, hold: Hold) -> HoldView:
    """Return one of them."""
    loop = tx.get(Loop, hold.loop_id)
    task = tx.get(Task, hold.task_id) if hold.task_id else None
    return HoldView(
        id=hold.id,
        project_id=hold.project_id,
        loop=loop.name if loop else "",
        plan_id=hold.plan_id,
        task=task.key if task else "",
        lock=hold.lock,
        paths=hold.paths,
        state=hold.state,
        waits_for=tuple(holds.loop_name(tx, one) for one in hold.waits_for),
        reason=hold.reason,
        since=hold.created_at,
    )


def list_holds(tx: Tx, *, project_path: Checkouts | None = None, **where: Any) -> list[HoldView]:
    """Return what loops hold or wait for now, the oldest first."""
    if project_path is not None:
        where["project_id"] = project_ids(tx, project_path)
    wanted = {one.id for one in tx.find(Hold, **where)}
    return [hold_view(tx, one) for one in holds.live_holds(tx) if one.id in wanted]


def find_hold(tx: Tx, text: str) -> Hold:
    """Find one by its id, the beginning of one, or the name of a lock that is held."""
    rows = holds.live_holds(tx)
    bare = text.removeprefix(f"{Kind.HOLD.value}_")
    found = [one for one in rows if text in (one.id, one.lock) or one.id.partition("_")[2].startswith(bare)]
    exact = [one for one in found if one.id == text]
    named = [one for one in found if one.lock == text and one.state is HoldState.HELD]
    if len(chosen := exact or named or found) != 1 or not bare:
        names = ", ".join(short_id(one.id) for one in chosen)
        told = f"{text!r} could be any of {names}" if chosen and bare else f"no loop holds {text!r}"
        raise NotFound(told, code="hold_not_found", hint=_LISTS)
    return chosen[0]


def project_of(tx: Tx, hold: Hold) -> Project:
    """Return the project whose files or lock it is."""
    return need(tx.get(Project, hold.project_id), "the project")
