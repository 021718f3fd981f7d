"""Reuse earlier verdicts: the complete gate can reuse the run that judged the same tree at the last landing."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from loopwright.core.gates.flakes import green_commands
from loopwright.core.gates.gates import with_setup
from loopwright.core.gates.verdict_reuse import is_reusable, is_reusable_command, shows
from loopwright.core.rows.model import Attempt, Plan, Role, Run, VerdictRecord
from loopwright.core.values.findings import VerdictStatus, Witnessed
from loopwright.core.values.policy import GateCommand
from loopwright.core.values.states import AttemptState
from loopwright.engine.gates.judging import COMPLETE, Judging
from loopwright.engine.rows.moves import MACHINE
from loopwright.engine.rows.world import World
from loopwright.ports import GateRequest, ShownBy, Tx

_ASKED = ("plan_reopened", "plan_verifying")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """The rows that decide about reuse."""

    on_tree: tuple[tuple[VerdictRecord, Run], ...]
    """Verdicts on the same tree that may be reused, the latest first."""
    landings: tuple[VerdictRecord, ...]
    """The verdicts with which tasks of the plan landed."""


async def reused(world: World, ask: Judging, run: Run, request: GateRequest) -> bool:
    """Record a run of gate:all with the results of an earlier run on the same tree; False if its commands must run.

    A run that the user requested always runs, and so does one with held-out checks.
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


def _known(tx: Tx, ask: Judging, run: Run) -> _Known:
    asked_at = _asked_at(tx, ask.plan)
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


def _asked_at(tx: Tx, plan: Plan) -> datetime | None:
    """Return when the user last requested a verification of the plan."""
    found = [event.at for event in tx.events(plan=plan.id, types=_ASKED) if event.actor != MACHINE]
    return max(filter(None, (*found, plan.verify_asked_at)), default=None)


def _in_same_place(source: Run, run: Run) -> bool:
    return (source.host_id, source.sandbox, source.sandbox_made_with) == (
        run.host_id,
        run.sandbox,
        run.sandbox_made_with,
    )


def _seen_at_landing(
    world: World, ask: Judging, landings: tuple[VerdictRecord, ...]
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
    ask: Judging,
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


# Earlier verdicts on a tree: nothing is checked twice without need.


def spoken(tx: Tx, ask: Judging, key: str) -> VerdictRecord | None:
    """Return the latest recorded verdict on exactly this tree and these commands."""
    if ask.role is Role.BASELINE:
        return None  # requested because the files of the existing ones were gone
    known = tx.find(VerdictRecord, plan_id=ask.plan.id, tree=ask.tree, gate_key=key)
    if ask.role in COMPLETE:
        # It asks again, but only once: the result of its own run from before a crash still counts.
        known = [one for one in known if one.run_id == ask.plan.verify_run_id]
    elif known:
        # A baseline was compared with nothing, so it is not a verdict on a tree that may land.
        before = _of_baselines(tx, known)
        known = [one for one in known if one.run_id not in before]
    latest = _latest(known)
    if latest is None or latest.verdict.status is not VerdictStatus.FAILED:
        return latest
    asked_at = _tried_again_at(tx, ask.attempt)
    return latest if asked_at is None or latest.created_at > asked_at else None


def found_without_work(tx: Tx, ask: Judging, key: str) -> VerdictRecord | None:
    """Return the latest baseline verdict on exactly this tree and these commands."""
    known = tx.find(VerdictRecord, plan_id=ask.plan.id, tree=ask.tree, gate_key=key)
    before = _of_baselines(tx, known)
    return _latest([one for one in known if one.run_id in before])


def green_here(tx: Tx, ask: Judging, key: str) -> frozenset[str]:
    """Return the commands that passed on exactly this tree before."""
    known = tx.find(VerdictRecord, plan_id=ask.plan.id, tree=ask.tree)
    if ask.unseen:
        # The same command with other files in the tree is another question.
        known = [one for one in known if one.gate_key == key]
    return frozenset(command for record in known for command in green_commands(record.verdict))


def _of_baselines(tx: Tx, known: list[VerdictRecord]) -> set[str]:
    runs = tx.find(Run, id=[one.run_id for one in known], role=Role.BASELINE) if known else []
    return {run.id for run in runs}


def _latest(known: list[VerdictRecord]) -> VerdictRecord | None:
    return max(known, key=lambda one: (one.created_at, one.id), default=None)


def _tried_again_at(tx: Tx, attempt: Attempt | None) -> datetime | None:
    """Return when the user last retried the task: a failed verdict from before that is not reused.

    The user may have fixed the cause, permitted a changed test, or consider the failure accidental.
    """
    if attempt is None or attempt.n == 1:
        return None
    retried = tx.events(plan=attempt.plan_id, task=attempt.task_id, types=("task_retried",))
    return max((event.at for event in retried if event.actor != MACHINE), default=None)
