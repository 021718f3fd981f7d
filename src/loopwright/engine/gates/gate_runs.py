"""Running a gate on a tree under a keeper, once for each tree and list of commands."""

import asyncio
import json
import logging
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path, PurePosixPath

from loopwright.core.gates.contradictions import id_prefixes
from loopwright.core.gates.dependencies import READY
from loopwright.core.gates.gates import setup_command, with_setup
from loopwright.core.gates.held_out import veiled
from loopwright.core.gates.missing_tests import with_new_skips
from loopwright.core.gates.verdicts import Killed, gate_key, is_bad, killed_in, not_judged, red
from loopwright.core.gates.witnesses import held_against, uncompared, with_uncompared, without_baseline
from loopwright.core.policy.retry import backoff
from loopwright.core.rows.model import Attempt, Plan, Project, Role, Run, VerdictRecord
from loopwright.core.values.errors import Denied, GitFailed, TookTooMuch, UserError
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Verdict, VerdictStatus
from loopwright.core.values.policy import GateCommand
from loopwright.engine.gates.baselines import baseline_of, had_tests, held_to_tree
from loopwright.engine.gates.gate_rows import gate_run, record_verdict
from loopwright.engine.gates.judging import Judging
from loopwright.engine.gates.reruns import Ran, settle
from loopwright.engine.gates.reuse import green_here, reused, spoken
from loopwright.engine.memory.interrupts import Interrupted
from loopwright.engine.processes.dependencies import lay_dependencies
from loopwright.engine.processes.disk import RoomWatch
from loopwright.engine.processes.held_files import lay
from loopwright.engine.processes.process_environment import attempt_values, files_to_copy
from loopwright.engine.processes.runs import Ended, drive_command
from loopwright.engine.processes.sandboxing import Walls, contain_gate, sandbox_of, shared_by
from loopwright.engine.rows.world import World
from loopwright.ports import GateRequest, Repository

log = logging.getLogger(__name__)

_JUDGED = (VerdictStatus.PASSED, VerdictStatus.FAILED)


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
    run = await gate_run(world, ask, key)
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
        f"{ask.role.value}.judged", lambda tx: record_verdict(tx, world, ask, run, key, verdict, end, failure)
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
