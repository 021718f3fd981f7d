"""Running a gate on a tree under a keeper, once for each tree and list of commands."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopwright.core.errors import GitFailed, UserError
from loopwright.core.events import happened
from loopwright.core.findings import Verdict, VerdictStatus
from loopwright.core.gates import with_setup
from loopwright.core.ids import Kind
from loopwright.core.model import Attempt, Plan, Project, Role, Run, VerdictRecord
from loopwright.core.policy import GateCommand
from loopwright.core.states import RunState
from loopwright.core.verdicts import gate_key, missing_program
from loopwright.engine.moves import MACHINE, move_run
from loopwright.engine.runs import drive_command
from loopwright.engine.surroundings import attempt_values, files_to_copy
from loopwright.engine.world import World
from loopwright.ports import Exit, GateRequest, Repository, Tx

log = logging.getLogger(__name__)

_JUDGED = (VerdictStatus.PASSED, VerdictStatus.FAILED)


class Interrupted(Exception):
    """A person asked for the gate to stop; nothing was learned about the tree."""


def exit_facts(exit: Exit) -> dict[str, Any]:
    """Return what a run's row keeps of how its process ended."""
    # Both moments from one clock that was read once: their difference is the length of the run.
    started = {} if exit.started_at is None else {"started_at": exit.started_at}
    return {
        **started,
        "exit_code": exit.code,
        "ended_by": exit.ended_by,
        "ended_at": exit.ended_at,
        "output_sha256": exit.output_sha256,
        "output_bytes": exit.output_bytes,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """One question: does this tree pass these commands?"""

    project: Project
    plan: Plan
    attempt: Attempt | None
    role: Role
    sha: str
    tree: str
    commands: tuple[GateCommand, ...]
    still_mine: Callable[[Tx], None]
    """Raises when the leg that asks was taken over."""


async def judge(
    world: World, repository: Repository, ask: Judging, interrupt: asyncio.Event
) -> tuple[VerdictRecord | None, Verdict]:
    """Return the verdict on a tree, from the record if there is one, else by running the gate once."""
    commands = with_setup(ask.plan, ask.commands)
    if not commands:
        return None, Verdict(status=VerdictStatus.UNVERIFIED, reason="nothing is configured to check this")
    key = gate_key(commands)
    known = await world.store.read(
        lambda tx: tx.find(VerdictRecord, plan_id=ask.plan.id, tree=ask.tree, gate_key=key)
    )
    # A verification asks anew, but only once: what its own run found before a crash still counts.
    mine = [one for one in known if ask.role is not Role.VERIFY or one.run_id == ask.plan.verify_run_id]
    if mine:
        return mine[0], mine[0].verdict
    run = await _gate_run(world, ask)
    tree_path = world.paths.tree(run.id)
    request = gate_request(world, ask.project, ask.plan, ask.attempt, run, tree_path, commands)
    if world.keepers.look(request.directory).state == "absent":
        await repository.checkout(tree_path, ask.sha, copy_files=files_to_copy(ask.project, ask.plan))
    ended = await drive_command(world.keepers, world.gate.spec(request), interrupt=interrupt)
    if ended.exit.ended_by == "lost":
        await world.keepers.sweep(run.id)
    verdict = world.gate.verdict(request, ended.exit)
    if ended.interrupted:
        verdict = Verdict(status=VerdictStatus.BROKEN, reason="the gate was interrupted")
    record = await world.store.transact(
        f"{ask.role.value}.judged", lambda tx: _record(tx, world, ask, run, key, verdict, ended.exit)
    )
    try:
        await repository.remove_workspace(tree_path)
    except (GitFailed, UserError, OSError) as trouble:
        # The verdict stands whatever the gate left behind (files of another user, for example).
        log.warning("tree of a gate kept", extra={"run": run.id, "why": str(trouble)})
    if ended.interrupted:
        raise Interrupted
    return record, verdict


def gate_request(
    world: World,
    project: Project,
    plan: Plan,
    attempt: Attempt | None,
    run: Run,
    tree: Path,
    commands: tuple[GateCommand, ...],
) -> GateRequest:
    """Say what a gate needs to run these commands in this tree."""
    values = {**world.workspace_values(tree), **attempt_values(world, plan, attempt), "CI": "true"}
    # What a setup command makes in a workspace may remember where HOME was, so the agent's is at the same place.
    subject = attempt.id if attempt is not None and run.role is Role.SETUP else run.id
    env, view = world.home_view(world.environment(plan, None, values), None, world.paths.user(subject))
    return GateRequest(
        run_id=run.id,
        directory=world.paths.run(run.id),
        tree=tree / project.subfolder,
        commands=commands,
        env=env,
        secrets=world.secrets(env),
        home=view,
    )


async def _gate_run(world: World, ask: Judging) -> Run:
    """Find the gate run of exactly this tree that a dead worker left, or create it."""
    attempt_id = ask.attempt.id if ask.attempt else None
    label = f"verify_{ask.plan.id}" if ask.role is Role.VERIFY else ask.tree
    about = f"judges {ask.tree}"

    def create(tx: Tx) -> tuple[Run, list[Run]]:
        ask.still_mine(tx)
        open_runs = tx.find(
            Run, plan_id=ask.plan.id, attempt_id=attempt_id, role=ask.role, state=RunState.RUNNING
        )
        same = [run for run in open_runs if run.summary == about and run.host_id == world.me.host_id]
        stale = [run for run in open_runs if run not in same[:1]]
        for run in stale:
            move_run(tx, run, RunState.CANCELLED, ended_by="asked", summary="the tree to judge changed")
        if same:
            if ask.role is Role.VERIFY:
                # Begun for an earlier verification of the same tree that was broken off: now it is this one's.
                tx.update(Plan, ask.plan.id, verify_run_id=same[0].id)
            return same[0], stale
        run = Run(
            id=world.ids(Kind.RUN),
            plan_id=ask.plan.id,
            task_id=ask.attempt.task_id if ask.attempt else None,
            attempt_id=attempt_id,
            role=ask.role,
            state=RunState.QUEUED,
            label=label,
            summary=about,
            host_id=world.me.host_id,
            boot_id=world.me.boot_id,
            created_at=tx.now(),
        )
        tx.insert(run)
        if ask.role is Role.VERIFY:
            tx.update(Plan, ask.plan.id, verify_run_id=run.id)
        return move_run(tx, run, RunState.RUNNING), stale

    run, stale = await world.store.transact(f"{ask.role.value}.start", create)
    for old in stale:
        if world.keepers.look(world.paths.run(old.id)).state == "alive":
            await world.keepers.end(world.paths.run(old.id), polite=False)
    return run


def _record(
    tx: Tx, world: World, ask: Judging, run: Run, key: str, verdict: Verdict, exit: Exit
) -> VerdictRecord | None:
    ask.still_mine(tx)
    ended = RunState.COMPLETE if verdict.status in _JUDGED else RunState.ERROR
    move_run(
        tx,
        run,
        ended,
        verdict=verdict,
        summary=verdict.reason,
        **exit_facts(exit),
    )
    tx.append(
        happened(
            "gate_judged",
            MACHINE,
            plan=ask.plan,
            attempt=ask.attempt,
            run=run,
            tree=ask.tree,
            status=verdict.status.value,
            checks=[{"name": c.name, "status": c.status.value} for c in verdict.checks[:50]],
            path=_told_path(world, run),
        )
    )
    # What a missing program kept from being judged is judged anew once it is there.
    if verdict.status not in _JUDGED or missing_program(verdict):
        return None
    record = VerdictRecord(
        id=world.ids(Kind.VERDICT),
        plan_id=ask.plan.id,
        tree=ask.tree,
        gate_key=key,
        run_id=run.id,
        verdict=verdict,
        created_at=tx.now(),
    )
    tx.insert(record)
    return record


def _told_path(world: World, run: Run) -> str:
    return str(Path(world.paths.run(run.id)).relative_to(world.paths.root))
