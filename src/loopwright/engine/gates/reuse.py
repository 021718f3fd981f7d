"""Answering a plan's complete gate from the run that judged the same tree when its last task landed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from loopwright.core.gates.gates import with_setup
from loopwright.core.gates.verdict_reuse import is_reusable, is_reusable_command, shows
from loopwright.core.gates.witnessed import Witnessed
from loopwright.core.rows.model import Attempt, Role, Run, VerdictRecord
from loopwright.core.values.policy import GateCommand
from loopwright.core.values.states import AttemptState
from loopwright.engine.gates.known_verdicts import COMPLETE
from loopwright.engine.rows.moves import MACHINE
from loopwright.engine.rows.world import World
from loopwright.ports import GateRequest, ShownBy, Tx

if TYPE_CHECKING:
    from loopwright.engine.gates.judging import Judging

_ASKED = ("plan_reopened", "plan_verifying")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """The rows that reuse is decided from."""

    on_tree: tuple[tuple[VerdictRecord, Run], ...]
    """Verdicts on the same tree that may be reused, the latest first."""
    landings: tuple[VerdictRecord, ...]
    """Those that tasks of the plan landed with."""


async def reused(world: World, ask: "Judging", run: Run, request: GateRequest) -> bool:
    """Record a run of gate:all with the results of an earlier run on the same tree; False when its commands must run.

    A run that a person asked for always runs, and so does one with held-out checks.
    """
    if ask.role not in COMPLETE or ask.unseen:
        return False
    if not all(is_reusable_command(one.command) for one in request.commands):
        return False
    known = await world.store.read(lambda tx: _known(tx, ask, run))
    then: dict[GateCommand, Witnessed] | None = None
    for record, source in known.on_tree:
        there = world.paths.run(source.id)
        ran = [one.command for one in record.verdict.commands]
        missing = [one for one in request.commands if one.command not in ran]
        if missing and then is None:
            then = _seen_at_landing(world, ask, known.landings)
        shown = _shown(world, ask, record, missing, then or {})
        if len(shown) == len(missing) and world.gate.reuse(request, there, shown, world.clock.now()):
            name = f"{ask.role.value}.reused"
            await world.store.transact(name, partial(_note, run_id=run.id, source_id=source.id))
            return True
    return False


def _note(tx: Tx, run_id: str, source_id: str) -> None:
    tx.update(Run, run_id, reused_run_id=source_id)


def _known(tx: Tx, ask: "Judging", run: Run) -> _Known:
    asked_at = _asked_at(tx, ask.plan.id)
    records = tx.find(VerdictRecord, plan_id=ask.plan.id, tree=ask.tree, order_by=("created_at",))
    runs = {one.id: one for one in tx.find(Run, id=[one.run_id for one in records])} if records else {}
    on_tree = [
        (one, runs[one.run_id])
        for one in reversed(records)
        if is_reusable(one.verdict)
        and (asked_at is None or one.created_at > asked_at)
        and runs[one.run_id].role in (Role.GATE, *COMPLETE)
        and _in_same_place(runs[one.run_id], run)
    ]
    landed = tx.find(Attempt, plan_id=ask.plan.id, state=AttemptState.LANDED) if on_tree else []
    found = (tx.get(VerdictRecord, one.verdict_id) for one in landed if one.verdict_id)
    return _Known(on_tree=tuple(on_tree), landings=tuple(one for one in found if one is not None))


def _asked_at(tx: Tx, plan_id: str) -> datetime | None:
    """Return when a person last asked for the plan to be verified."""
    found = tx.events(plan=plan_id, types=_ASKED)
    return max((event.at for event in found if event.actor != MACHINE), default=None)


def _in_same_place(source: Run, run: Run) -> bool:
    return (source.host_id, source.sandbox, source.sandbox_made_with) == (
        run.host_id,
        run.sandbox,
        run.sandbox_made_with,
    )


def _seen_at_landing(
    world: World, ask: "Judging", landings: tuple[VerdictRecord, ...]
) -> dict[GateCommand, Witnessed]:
    """Return what was seen inside the test runners of each acceptance command when its task landed."""
    wanted = {one.command: one for one in ask.own}
    found: dict[GateCommand, Witnessed] = {}
    for record in landings:
        results = record.verdict.commands
        seen = world.gate.witnessed(world.paths.run(record.run_id), len(results)) or ()
        for result, saw in zip(results, seen, strict=False):
            if saw is not None and result.command in wanted and not result.is_excused:
                found[wanted[result.command]] = saw
    return found


def _shown(
    world: World,
    ask: "Judging",
    record: VerdictRecord,
    missing: list[GateCommand],
    then: Mapping[GateCommand, Witnessed],
) -> dict[str, ShownBy]:
    """Return the commands whose tests all ran in one of the plan's gates on the same tree."""
    if not missing:
        return {}
    results = record.verdict.commands
    seen = world.gate.witnessed(world.paths.run(record.run_id), len(results)) or ()
    saw = {one.command: each for one, each in zip(results, seen, strict=False)}
    gates = with_setup(ask.plan, ask.plan.gates)
    shown: dict[str, ShownBy] = {}
    for one in missing:
        for gate in gates:
            if shows(gate, saw.get(gate.command), one, then.get(one)):
                shown[one.command] = ShownBy(gate=gate, tests=then[one].passed)
                break
    return shown
