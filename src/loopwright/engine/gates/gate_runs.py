"""Running a gate on a tree under a keeper, once for each tree and list of commands."""

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from loopwright.core.gates.contradictions import id_prefixes
from loopwright.core.gates.dependencies import READY
from loopwright.core.gates.flakes import FOLDERS
from loopwright.core.gates.gates import setup_command, with_setup
from loopwright.core.gates.held_out import veiled
from loopwright.core.gates.missing_tests import with_new_skips
from loopwright.core.gates.verdicts import Killed, gate_key, is_bad, killed_in, not_judged, red
from loopwright.core.gates.witnesses import held_against, uncompared, with_uncompared, without_baseline
from loopwright.core.policy.retry import backoff
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Plan, Project, Role, Run, VerdictRecord
from loopwright.core.values.errors import Denied, GitFailed, TookTooMuch, UserError
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Verdict, VerdictStatus
from loopwright.core.values.ids import Kind
from loopwright.core.values.policy import GateCommand
from loopwright.core.values.states import RunState
from loopwright.engine.gates.baselines import baseline_of, had_tests
from loopwright.engine.gates.gate_trees import held_to_tree
from loopwright.engine.gates.judging import Judging
from loopwright.engine.gates.reruns import Ran, settle
from loopwright.engine.gates.reuse import COMPLETE, green_here, reused, spoken
from loopwright.engine.memory.interrupts import Interrupted
from loopwright.engine.processes.dependencies import lay_dependencies
from loopwright.engine.processes.disk import RoomWatch
from loopwright.engine.processes.held_files import lay
from loopwright.engine.processes.process_environment import attempt_values, files_to_copy
from loopwright.engine.processes.runs import Ended, drive_command
from loopwright.engine.processes.sandboxing import Walls, contain_gate, sandbox_of, shared_by
from loopwright.engine.rows.moves import MACHINE, move_run
from loopwright.engine.rows.world import World
from loopwright.ports import Exit, GateRequest, Repository, Tx

log = logging.getLogger(__name__)

_JUDGED = (VerdictStatus.PASSED, VerdictStatus.FAILED)
_ROLES = (Role.GATE, Role.BASELINE)


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
        "files_sha256": exit.files_sha256,
    }


async def judge(
    world: World, repository: Repository, ask: Judging, interrupt: asyncio.Event
) -> tuple[VerdictRecord | None, Verdict]:
    """Return the verdict on a tree, from the record if there is one, else by running the gate once."""
    commands = with_setup(ask.plan, ask.commands)
    if not commands:
        return None, Verdict(status=VerdictStatus.UNVERIFIED, reason="nothing is configured to check this")
    key = gate_key(commands)
    known = await world.store.read(lambda tx: spoken(tx, ask, key))
    if known is not None:
        return known, known.verdict
    with world.underway.judging(ask.plan.id, ask.tree):
        record, verdict, killed = await _run_gate(world, repository, ask, commands, key, interrupt)
        if killed:
            # What ran beside it may have taken the memory.
            record, verdict, _ = await _run_gate(world, repository, ask, commands, key, interrupt, alone=True)
        return record, verdict


async def judge_until_known(
    world: World, repository: Repository, ask: Judging, interrupt: asyncio.Event
) -> tuple[VerdictRecord | None, Verdict]:
    """Judge a tree; a gate that could not run is asked again, because the work is not at fault."""
    tries = 0
    while True:
        record, verdict = await judge(world, repository, ask, interrupt)
        tries += 1
        hopeless = verdict.lasting or tries > ask.plan.policy.max_call_retries
        if verdict.status is not VerdictStatus.INCONCLUSIVE or hopeless:
            return record, verdict
        pause = backoff(tries, first_s=0.2, limit_s=30.0, chance=world.chance())
        await world.clock.sleep(pause.total_seconds())


async def _run_gate(
    world: World,
    repository: Repository,
    ask: Judging,
    commands: tuple[GateCommand, ...],
    key: str,
    interrupt: asyncio.Event,
    *,
    alone: bool = False,
) -> tuple[VerdictRecord | None, Verdict, bool]:
    """Run the gate once, `alone` where a command of it was killed before; the last is whether one was killed now."""
    run = await _gate_run(world, ask, key)
    tree_path = world.paths.tree(run.id)
    request, walls = await gate_request(world, ask.project, ask.plan, ask.attempt, run, tree_path, commands)
    request = replace(request, may_share=frozenset(one.command for one in ask.may_share))
    begun = world.keepers.look(request.directory).state != "absent"
    if not begun and not await reused(world, ask, run, request):
        request = await _laid_out(world, repository, ask, request, tree_path)
    ended = await _driven(world, request, tree_path, interrupt, alone=alone)
    verdict = world.gate.verdict(request, ended.exit)
    seen = world.gate.witnessed(request.directory, len(commands)) or [None] * len(commands)
    if ended.interrupted:
        verdict = Verdict(status=VerdictStatus.INCONCLUSIVE, reason="the gate was interrupted")
    denial = None if ended.excess else denial_in(walls, verdict)
    failure = Failure.ENVIRONMENT if ended.excess or denial is not None else None
    end, interrupted = ended.exit, ended.interrupted
    killed = killed_in(verdict)
    if ended.excess:
        verdict = _took_too_much(ended.excess, verdict)
    elif denial is not None:
        verdict = Verdict(status=VerdictStatus.INCONCLUSIVE, reason=denial, commands=verdict.commands)
    elif killed is not None:
        if not alone:
            verdict = not_judged(verdict, killed)
        elif await _ends_on_base(world, repository, ask, killed, interrupt):
            verdict = red(verdict, killed)
        else:
            verdict, failure = not_judged(verdict, killed, lasting=True), Failure.ENVIRONMENT
    elif verdict.status in _JUDGED:
        before, unknown = await baseline_of(world, repository, ask, verdict, seen, interrupt, judge)
        own = frozenset() if ask.role is Role.BASELINE else frozenset(one.command for one in ask.own)
        if before is not None or any(seen) or (verdict.commands and verdict.status is VerdictStatus.FAILED):
            may_be_empty = frozenset(one.command for one in ask.may_be_empty)
            verdict = held_against(verdict, seen, before, own, may_be_empty)
        held = await held_to_tree(repository, ask, verdict, before)
        bent = sum(map(is_bad, held.checks)) > sum(map(is_bad, verdict.checks))
        verdict = replace(held, tampered=True) if bent else held
        if unknown is not None:
            verdict = without_baseline(verdict, unknown)
        if verdict.status is VerdictStatus.FAILED and ask.role is not Role.BASELINE:
            settled = await settle(
                verdict,
                seen,
                before,
                _Again(world=world, repository=repository, ask=ask, run=run, interrupt=interrupt),
                setup=setup_command(ask.plan.policy),
                commands=commands,
                green_here=await world.store.read(lambda tx: green_here(tx, ask, key)),
                rewritten=id_prefixes(ask.rewritten),
                own=own,
            )
            verdict, interrupted = settled.verdict, settled.interrupted
            if settled.exit is not None:
                # Whatever was run again lies beside the first run.
                files = world.keepers.evidence(request.directory)
                end = replace(end, ended_at=settled.exit.ended_at, files_sha256=files)
        if verdict.status is VerdictStatus.PASSED and ask.before is not None:
            open_ = uncompared(ask.own, ask.plan.gates, verdict, seen, before)
            verdict = with_uncompared(verdict, await had_tests(repository, ask, ask.before, open_))
        verdict = with_new_skips(verdict, seen, before, id_prefixes(ask.brought))
    if ask.unseen:
        verdict = veiled(verdict)
    record = await world.store.transact(
        f"{ask.role.value}.judged", lambda tx: _record(tx, world, ask, run, key, verdict, end, failure)
    )
    try:
        await repository.remove_workspace(tree_path)
    except (GitFailed, UserError, OSError) as trouble:
        # The verdict stands whatever the gate left behind (files of another user, for example).
        log.warning("tree of a gate kept", extra={"run": run.id, "why": str(trouble)})
    if interrupted:
        raise Interrupted
    if ended.excess:
        raise TookTooMuch(ended.excess)
    if denial is not None:
        raise Denied(denial)
    return record, verdict, killed is not None


async def _ends_on_base(
    world: World, repository: Repository, ask: Judging, killed: Killed, interrupt: asyncio.Event
) -> bool:
    """Return whether commands that were killed end by themselves on the tree that the work started from."""
    tree = await repository.tree_of(ask.before) if ask.before is not None else None
    if ask.before is None or tree is None or tree == ask.tree:
        return False
    commands = tuple(one for one in ask.commands if one.command in killed.commands)
    if not commands:
        return False
    asked = replace(
        ask,
        role=Role.BASELINE,
        sha=ask.before,
        tree=tree,
        commands=commands,
        before=None,
        exempt=(),
        brought=(),
        own=(),
    )
    try:
        _, found = await judge(world, repository, asked, interrupt)
    except TookTooMuch:
        return False
    return found.status in _JUDGED


async def _laid_out(
    world: World, repository: Repository, ask: Judging, request: GateRequest, tree: Path
) -> GateRequest:
    """Make the tree that a gate runs in, and say what is in it."""
    tracked = await repository.checkout(tree, ask.sha, copy_files=files_to_copy(ask.project, ask.plan))
    if await lay_dependencies(world, repository, ask.project, ask.plan, ask.sha, tree):
        request = replace(request, env={**request.env, READY: "1"})
    lay(world.paths, tree / ask.project.subfolder, ask.files)
    laid = tuple(str(PurePosixPath(ask.project.subfolder) / one.path) for one in ask.files)
    return replace(request, tracked=tracked, laid=laid)


async def _driven(
    world: World, request: GateRequest, tree: Path, interrupt: asyncio.Event, *, alone: bool = False
) -> Ended:
    """Run a gate to its end, or until it takes more room than it may."""
    excess, spec = RoomWatch(world, tree, request.directory), world.gate.spec(request)
    async with world.gate_turns.turn(alone=alone, unless=interrupt):
        return await drive_command(world.keepers, spec, interrupt=interrupt, excess=excess)


def _took_too_much(excess: str, verdict: Verdict) -> Verdict:
    return Verdict(status=VerdictStatus.INCONCLUSIVE, reason=excess, commands=verdict.commands)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Again:
    """Runs commands of one gate run once more, recorded beside it."""

    world: World
    repository: Repository
    ask: Judging
    run: Run
    interrupt: asyncio.Event

    async def __call__(
        self, folder: str, commands: tuple[GateCommand, ...], /, *, only: frozenset[str], fresh: bool
    ) -> Ran:
        world, ask = self.world, self.ask
        tree = world.paths.tree(self.run.id)
        request, _ = await gate_request(
            world, ask.project, ask.plan, ask.attempt, self.run, tree, commands, folder=folder
        )
        request = replace(request, only=only)
        if fresh and world.keepers.look(request.directory).state == "absent":
            # What the first run left behind could make the second one pass.
            await self.repository.remove_workspace(tree)
            request = await _laid_out(world, self.repository, ask, request, tree)
        ended = await _driven(world, request, tree, self.interrupt)
        verdict = world.gate.verdict(request, ended.exit)
        if ended.excess:
            verdict = _took_too_much(ended.excess, verdict)
        elif (killed := killed_in(verdict)) is not None:
            verdict = not_judged(verdict, killed)
        return Ran(
            verdict=verdict,
            seen=world.gate.witnessed(request.directory, len(commands)) or [None] * len(commands),
            exit=ended.exit,
            interrupted=ended.interrupted,
        )


def denial_in(walls: Walls, verdict: Verdict) -> str | None:
    """Say what the sandbox refused to a command that failed: then nothing was learned about the tree."""
    if verdict.status not in (VerdictStatus.FAILED, VerdictStatus.INCONCLUSIVE):
        return None
    failed = [one for one in verdict.commands if one.exit_code != 0]
    return walls.denial([line for one in failed for line in one.tail.splitlines()])


async def gate_request(
    world: World,
    project: Project,
    plan: Plan,
    attempt: Attempt | None,
    run: Run,
    tree: Path,
    commands: tuple[GateCommand, ...],
    *,
    folder: str = "",
) -> tuple[GateRequest, Walls]:
    """Say what a gate needs to run these commands in this tree, and what contains them.

    `folder` is where in the run's directory it is recorded, when they are run again.
    """
    directory = world.paths.run(run.id) / folder
    values = {**world.workspace_values(tree), **attempt_values(world, plan, attempt), "CI": "true"}
    # What a setup command makes in a workspace may remember where HOME was, so the agent's is at the same place.
    subject = attempt.id if attempt is not None and run.role is Role.SETUP else run.id
    env = world.own_sources(world.environment(plan, None, values), Path(project.path), tree)
    env, view = world.home_view(env, None, world.paths.user(subject))
    sandbox = sandbox_of(world, run, directory)
    request = GateRequest(
        run_id=run.id,
        directory=directory,
        tree=tree / project.subfolder,
        commands=commands,
        env=env,
        secrets=world.secrets(env, plan.policy.environment),
        environment=_environment(world, plan),
        home=sandbox.view(view),
        runners=plan.policy.test_runners,
    )
    return contain_gate(sandbox, request, tree, await shared_by(world, project, plan, sandbox))


def _environment(world: World, plan: Plan) -> str:
    """Return a hash of the environment that a plan's commands run in, without the values of its secrets."""
    env = world.environment(plan, None, {})
    secrets = frozenset(world.secrets(env, plan.policy.environment))
    named = sorted((name, "" if value in secrets else value) for name, value in env.items())
    return sha256(json.dumps(named).encode()).hexdigest()


def _goes_on(world: World, run: Run) -> bool:
    """Say whether a gate that was begun can be ended: one that never started cannot in another sandbox than its own."""
    now = world.sandbox()
    own = (run.sandbox, run.sandbox_made_with) == (now.level.value, now.made_with)
    return own or world.keepers.look(world.paths.run(run.id)).state != "absent"


async def _gate_run(world: World, ask: Judging, key: str) -> Run:
    """Find the gate run of exactly this tree that a dead worker left, or create it."""
    attempt_id = ask.attempt.id if ask.attempt else None
    label = f"{ask.role.value}_{ask.plan.id}" if ask.role in COMPLETE else ask.tree
    # The tasks of a plan each have held-out checks of their own, and one tree is asked all of them.
    about = f"judges {ask.tree} unseen {key[:12]}" if ask.unseen else f"judges {ask.tree}"
    stands_for_the_plan = ask.role in COMPLETE and not ask.unseen
    sandbox = world.sandbox()

    def create(tx: Tx) -> tuple[Run, list[Run]]:
        ask.still_mine(tx)
        open_runs = tx.find(
            Run, plan_id=ask.plan.id, attempt_id=attempt_id, role=ask.role, state=RunState.RUNNING
        )
        same = [
            run
            for run in open_runs
            if run.summary == about and run.host_id == world.me.host_id and _goes_on(world, run)
        ]
        stale = [run for run in open_runs if run not in same[:1]]
        for run in stale:
            move_run(tx, run, RunState.CANCELLED, ended_by="asked", summary="the tree to judge changed")
        if same:
            if stands_for_the_plan:
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
            sandbox=sandbox.level.value,
            sandbox_made_with=sandbox.made_with,
            created_at=tx.now(),
        )
        tx.insert(run)
        if stands_for_the_plan:
            tx.update(Plan, ask.plan.id, verify_run_id=run.id)
        return move_run(tx, run, RunState.RUNNING), stale

    run, stale = await world.store.transact(f"{ask.role.value}.start", create)
    await end_all(world, stale)
    return run


def break_off(tx: Tx, attempt: Attempt) -> list[Run]:
    """Close the gate runs of an attempt that was stopped before they could tell anything; return them."""
    found = tx.find(Run, attempt_id=attempt.id, role=_ROLES, state=RunState.RUNNING)
    return [
        move_run(tx, run, RunState.CANCELLED, ended_by="asked", summary="the gate was interrupted")
        for run in found
    ]


async def end_all(world: World, runs: Sequence[Run]) -> None:
    """End what still runs of gate runs that are over by the rows, commands that are run again among it."""
    for run in runs:
        for directory in (world.paths.run(run.id) / folder for folder in ("", *FOLDERS)):
            if world.keepers.look(directory).state == "alive":
                await world.keepers.end(directory, polite=False)


def _record(
    tx: Tx,
    world: World,
    ask: Judging,
    run: Run,
    key: str,
    verdict: Verdict,
    exit: Exit,
    failure: Failure | None,
) -> VerdictRecord | None:
    ask.still_mine(tx)
    ended = RunState.COMPLETE if verdict.status in _JUDGED else RunState.ERROR
    move_run(
        tx,
        run,
        ended,
        verdict=verdict,
        summary=verdict.reason,
        failure=failure,
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
    # What could not be judged is judged anew once it can be.
    if verdict.status not in _JUDGED:
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
