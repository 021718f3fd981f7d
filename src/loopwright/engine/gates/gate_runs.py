"""Run a gate on a tree under a keeper, once for each tree and list of commands, and keep its rows.

`_Gate` has the effects: run the commands, collect data for comparison, record the verdict.
`core.gates.gate_run` decides what follows from a run.
"""

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
from loopwright.core.gates.gate_run import INTERRUPTED, JUDGED, GateRun, RunAgain, Terms, judge_run
from loopwright.core.gates.gates import setup_command, with_setup
from loopwright.core.gates.verdicts import Killed, gate_key, killed_in
from loopwright.core.policy.retry import backoff
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Plan, Project, Role, Run, VerdictRecord
from loopwright.core.values.errors import Denied, GitFailed, TookTooMuch, UserError
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Verdict, VerdictStatus
from loopwright.core.values.ids import Kind
from loopwright.core.values.policy import GateCommand
from loopwright.core.values.states import RunState
from loopwright.engine.gates.baselines import baseline_of, changed_judging_files, on_base, uncompared_commands
from loopwright.engine.gates.judging import COMPLETE, Judging
from loopwright.engine.gates.reuse import green_here, reused, spoken
from loopwright.engine.memory.interrupts import Interrupted
from loopwright.engine.processes.dependencies import lay_dependencies
from loopwright.engine.processes.disk import RoomWatch
from loopwright.engine.processes.held_files import lay
from loopwright.engine.processes.process_environment import (
    attempt_values,
    files_to_copy,
    gate_cache_values,
    private_cache,
)
from loopwright.engine.processes.runs import drive_command
from loopwright.engine.processes.sandboxing import Walls, contain_gate, needed_sandbox, sandbox_of, shared_by
from loopwright.engine.rows.moves import MACHINE, move_run
from loopwright.engine.rows.world import World
from loopwright.ports import Exit, GateRequest, Repository, Tx

# The rows of gate runs: begin one, find one that a dead worker left, record what it found.

_ROLES = (Role.GATE, Role.BASELINE)


def exit_facts(exit: Exit) -> dict[str, Any]:
    """Return the facts on a run's row about the end of its process."""
    # Both times come from one clock reading: their difference is the length of the run.
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


def _goes_on(world: World, run: Run) -> bool:
    """Return whether a gate run can continue: a run that never started needs the sandbox that it was created for."""
    now = world.sandbox()
    own = (run.sandbox, run.sandbox_made_with) == (now.level.value, now.made_with)
    return own or world.keepers.look(world.paths.run(run.id)).state != "absent"


async def gate_run(world: World, ask: Judging, key: str) -> Run:
    """Find the gate run of exactly this tree that a dead worker left, or create it."""
    attempt_id = ask.attempt.id if ask.attempt else None
    label = f"{ask.role.value}_{ask.plan.id}" if ask.role in COMPLETE else ask.tree
    # Each task has its own held-out checks, and one tree has to pass all of them.
    about = f"judges {ask.tree} unseen {key[:12]}" if ask.unseen else f"judges {ask.tree}"
    stands_for_the_plan = ask.role in COMPLETE and not ask.unseen
    sandbox = needed_sandbox(world, ask.plan)

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
                # Begun for an earlier verification of the same tree that was interrupted: now it belongs to this one.
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
    """Close the gate runs of an attempt that was stopped before their end; return them."""
    found = tx.find(Run, attempt_id=attempt.id, role=_ROLES, state=RunState.RUNNING)
    return [
        move_run(tx, run, RunState.CANCELLED, ended_by="asked", summary="the gate was interrupted")
        for run in found
    ]


async def end_all(world: World, runs: Sequence[Run]) -> None:
    """End the processes of gate runs that have ended in the rows, including second runs."""
    for run in runs:
        for directory in (world.paths.run(run.id) / folder for folder in ("", *FOLDERS)):
            if world.keepers.look(directory).state == "alive":
                await world.keepers.end(directory, polite=False)


def record_verdict(
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
    ended = RunState.COMPLETE if verdict.status in JUDGED else RunState.ERROR
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
    # A tree without a verdict is checked again once that is possible.
    if verdict.status not in JUDGED:
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


log = logging.getLogger(__name__)


async def judge(
    world: World, repository: Repository, ask: Judging, interrupt: asyncio.Event
) -> tuple[VerdictRecord | None, Verdict]:
    """Return the verdict on a tree: the recorded one if there is one, else run the gate once."""
    commands = with_setup(ask.plan, ask.commands)
    if not commands:
        return None, Verdict(status=VerdictStatus.UNVERIFIED, reason="nothing is configured to check this")
    key = gate_key(commands)
    known = await world.store.read(lambda tx: spoken(tx, ask, key))
    if known is not None:
        return known, known.verdict
    gate = _Gate(world=world, repository=repository, ask=ask, commands=commands, key=key, interrupt=interrupt)
    with world.underway.judging(ask.plan.id, ask.tree):
        record, verdict, was_killed = await gate.run()
        if was_killed:
            # Another gate beside it may have used the memory.
            record, verdict, _ = await gate.run(alone=True)
        return record, verdict


async def judge_until_known(
    world: World, repository: Repository, ask: Judging, interrupt: asyncio.Event
) -> tuple[VerdictRecord | None, Verdict]:
    """Check a tree; run a gate that could not run again, because the work is not at fault."""
    tries = 0
    while True:
        record, verdict = await judge(world, repository, ask, interrupt)
        tries += 1
        hopeless = verdict.lasting or tries > ask.plan.policy.max_call_retries
        if verdict.status is not VerdictStatus.INCONCLUSIVE or hopeless:
            return record, verdict
        pause = backoff(tries, first_s=0.2, limit_s=30.0, chance=world.chance())
        await world.clock.sleep(pause.total_seconds())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gate:
    """A question about a tree, and everything needed to run its commands."""

    world: World
    repository: Repository
    ask: Judging
    commands: tuple[GateCommand, ...]
    """The commands of the question, after the setup."""
    key: str
    interrupt: asyncio.Event

    async def run(self, *, alone: bool = False) -> tuple[VerdictRecord | None, Verdict, bool]:
        """Run the gate, judge the run and record its verdict; return also whether a command was killed.

        `alone` runs it without other gates beside it, because one of its commands was killed before.
        """
        row = await gate_run(self.world, self.ask, self.key)
        run, end = await self._first_run(row, alone=alone)
        run = await self._with_evidence(run)
        verdict = judge_run(run)
        while isinstance(verdict, RunAgain):
            second, last = await self._second_run(row, verdict)
            # The files of second runs are beside those of the first.
            files = self.world.keepers.evidence(self.world.paths.run(row.id))
            end = replace(end, ended_at=last.ended_at, files_sha256=files)
            run = replace(run, again=(*run.again, second))
            verdict = judge_run(run)
        return await self._record(row, run, verdict, end), verdict, run.killed is not None

    async def _first_run(self, row: Run, *, alone: bool) -> tuple[GateRun, Exit]:
        """Run the commands on the tree, or continue a dead worker's run; earlier results may be reused."""
        world, ask = self.world, self.ask
        tree = world.paths.tree(row.id)
        request, walls = await gate_request(
            world,
            ask.project,
            ask.plan,
            ask.attempt,
            row,
            tree,
            self.commands,
            cache=_cache(world, ask, tree),
        )
        request = replace(request, may_share=frozenset(one.command for one in ask.may_share))
        begun = world.keepers.look(request.directory).state != "absent"
        if not begun and not await reused(world, ask, row, request):
            request = await _laid_out(world, self.repository, ask, request, tree)
        run, end = await self._commands_run(request, tree, alone=alone)
        return replace(run, denial=None if run.excess else denial_in(walls, run.verdict)), end

    async def _second_run(self, row: Run, wanted: RunAgain) -> tuple[GateRun, Exit]:
        """Run commands once more on the same tree, recorded beside the first run."""
        world, ask = self.world, self.ask
        tree = world.paths.tree(row.id)
        request, _ = await gate_request(
            world,
            ask.project,
            ask.plan,
            ask.attempt,
            row,
            tree,
            wanted.commands,
            folder=wanted.folder,
            cache=_cache(world, ask, tree),
        )
        request = replace(request, only=wanted.only)
        if wanted.fresh and world.keepers.look(request.directory).state == "absent":
            # Files that the first run left behind could make the second one pass.
            await self.repository.remove_workspace(tree)
            request = await _laid_out(world, self.repository, ask, request, tree)
        return await self._commands_run(request, tree)

    async def _commands_run(
        self, request: GateRequest, tree: Path, *, alone: bool = False
    ) -> tuple[GateRun, Exit]:
        """Run commands to their end, or until they use more disk space than they may."""
        world = self.world
        excess, spec = RoomWatch(world, tree, request.directory), world.gate.spec(request)
        async with world.gate_turns.turn(alone=alone, unless=self.interrupt):
            ended = await drive_command(world.keepers, spec, interrupt=self.interrupt, excess=excess)
        count = len(request.commands)
        verdict = INTERRUPTED if ended.interrupted else world.gate.verdict(request, ended.exit)
        run = GateRun(
            verdict=verdict,
            terms=terms_of(self.ask, self.commands),
            seen=world.gate.witnessed(request.directory, count) or [None] * count,
            interrupted=ended.interrupted,
            excess=ended.excess,
            killed=killed_in(verdict),
            was_alone=alone,
        )
        return run, ended.exit

    async def _with_evidence(self, run: GateRun) -> GateRun:
        """Add the data that a run is compared with, as far as its verdict needs it."""
        if run.excess or run.denial is not None:
            return run
        if run.killed is not None:
            ends = run.was_alone and await self._ends_on_base(run.killed)
            return replace(run, ends_on_base=ends)
        if run.verdict.status not in JUDGED:
            return run
        world, repository, ask = self.world, self.repository, self.ask
        before, unknown = await baseline_of(
            world, repository, ask, run.verdict, run.seen, self.interrupt, judge
        )
        return replace(
            run,
            before=before,
            no_baseline=unknown,
            judging_files=await changed_judging_files(repository, ask, run.verdict),
            uncompared=await uncompared_commands(repository, ask, run.verdict, run.seen, before),
            green_here=await self._green_here()
            if run.verdict.status is VerdictStatus.FAILED
            else frozenset(),
        )

    async def _green_here(self) -> frozenset[str]:
        return await self.world.store.read(lambda tx: green_here(tx, self.ask, self.key))

    async def _ends_on_base(self, killed: Killed) -> bool:
        """Return whether killed commands finish by themselves on the base commit."""
        ask = self.ask
        tree = await self.repository.tree_of(ask.before) if ask.before is not None else None
        commands = tuple(one for one in ask.commands if one.command in killed.commands)
        if ask.before is None or tree is None or tree == ask.tree or not commands:
            return False
        asked = replace(on_base(ask, sha=ask.before, tree=tree), commands=commands, own=())
        try:
            _, found = await judge(self.world, self.repository, asked, self.interrupt)
        except TookTooMuch:
            return False
        return found.status in JUDGED

    async def _record(self, row: Run, run: GateRun, verdict: Verdict, end: Exit) -> VerdictRecord | None:
        """Record the verdict and remove the tree; raise if the run was stopped from outside."""
        failure = Failure.ENVIRONMENT if run.is_broken else None
        record = await self.world.store.transact(
            f"{self.ask.role.value}.judged",
            lambda tx: record_verdict(tx, self.world, self.ask, row, self.key, verdict, end, failure),
        )
        try:
            await self.repository.remove_workspace(self.world.paths.tree(row.id))
        except (GitFailed, UserError, OSError) as trouble:
            # The verdict counts even if the tree cannot be removed (files of another user, for example).
            log.warning("tree of a gate kept", extra={"run": row.id, "why": str(trouble)})
        if run.was_interrupted:
            raise Interrupted
        if run.excess:
            raise TookTooMuch(run.excess)
        if run.denial is not None:
            raise Denied(run.denial)
        return record


def terms_of(ask: Judging, commands: tuple[GateCommand, ...]) -> Terms:
    """Return the rules for judging a run of these commands."""
    is_baseline = ask.role is Role.BASELINE
    return Terms(
        commands=commands,
        setup=setup_command(ask.plan.policy),
        own=frozenset() if is_baseline else frozenset(one.command for one in ask.own),
        may_be_empty=frozenset(one.command for one in ask.may_be_empty),
        rewritten=id_prefixes(ask.rewritten),
        brought=id_prefixes(ask.brought),
        is_baseline=is_baseline,
        is_held_out=ask.unseen,
    )


async def _laid_out(
    world: World, repository: Repository, ask: Judging, request: GateRequest, tree: Path
) -> GateRequest:
    """Create the tree that a gate runs in, and add its files to the request."""
    tracked = await repository.checkout(tree, ask.sha, copy_files=files_to_copy(ask.project, ask.plan))
    if await lay_dependencies(world, repository, ask.project, ask.plan, ask.sha, tree):
        request = replace(request, env={**request.env, READY: "1"})
    if not ask.landed:
        try:
            await world.copy_folder(world.paths.gate_cache(Path(ask.project.path)), private_cache(tree))
        except OSError as trouble:
            log.warning("compiler caches were not copied", extra={"plan": ask.plan.id, "why": str(trouble)})
    lay(world.paths, tree / ask.project.subfolder, ask.files)
    laid = tuple(str(PurePosixPath(ask.project.subfolder) / one.path) for one in ask.files)
    return replace(request, tracked=tracked, laid=laid)


def _cache(world: World, ask: Judging, tree: Path) -> Path:
    """Return the compiler caches of a gate: a candidate's run works on a copy, which is removed with its tree."""
    return world.paths.gate_cache(Path(ask.project.path)) if ask.landed else private_cache(tree)


def denial_in(walls: Walls, verdict: Verdict) -> str | None:
    """Return what the sandbox denied to a failed command: such a run says nothing about the tree."""
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
    cache: Path | None = None,
) -> tuple[GateRequest, Walls]:
    """Return the request to run these commands in this tree, with their sandbox.

    `folder` is the subfolder of the run's directory for a second run. `cache` is the folder of its compiler
    caches; without one, a command in an agent's workspace uses those of agents.
    """
    directory = world.paths.run(run.id) / folder
    values = {**world.workspace_values(tree), **attempt_values(world, plan, attempt), "CI": "true"}
    if cache is not None:
        values |= gate_cache_values(cache)
    # What a setup command creates in a workspace may contain the path of HOME, so the agent's HOME has the same path.
    subject = attempt.id if attempt is not None and run.role is Role.SETUP else run.id
    env = world.own_sources(world.environment(plan, None, values), Path(project.path), tree)
    env, view = world.home_view(env, None, world.paths.user(subject))
    sandbox = sandbox_of(world, plan, run, directory)
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
    beside = cache if cache is not None and not cache.is_relative_to(tree) else None
    shared = await shared_by(world, project, plan, sandbox, also=beside)
    return contain_gate(sandbox, request, tree, shared)


def _environment(world: World, plan: Plan) -> str:
    """Return a hash of the environment of a plan's commands, without the values of its secrets."""
    env = world.environment(plan, None, {})
    secrets = frozenset(world.secrets(env, plan.policy.environment))
    named = sorted((name, "" if value in secrets else value) for name, value in env.items())
    return sha256(json.dumps(named).encode()).hexdigest()
