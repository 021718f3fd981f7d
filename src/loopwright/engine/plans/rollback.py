"""Carry out the user's decisions about landed work: `rollback` and `reject`, all or nothing.

The command stays PENDING until its rows are written, and its row names the removing commit before the branch
has it. So the next worker after a kill either finds no such commit, and begins again, or finds it and only
writes the rows. A foreign commit that names the command is ignored.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from loopwright.core.gates.gates import plan_commands
from loopwright.core.gates.verdicts import evidence
from loopwright.core.policy.rejections import FEEDBACK, REJECTED, Comment, comments_in, objections
from loopwright.core.policy.retry import backoff
from loopwright.core.rows.model import Attempt, Command, CommandState, Role, Run, Task
from loopwright.core.values.errors import (
    CannotRun,
    FenceLost,
    GitFailed,
    IllegalTransition,
    LeaseLost,
    MergeConflict,
    NotFound,
    Refused,
    StaleVersion,
    UserError,
)
from loopwright.core.values.findings import VerdictStatus
from loopwright.core.values.states import RunState, TaskState
from loopwright.engine.attempt.landing_line import LandingLines
from loopwright.engine.branch.branch import own_commits, tip_of
from loopwright.engine.branch.changed_gate_files import steered
from loopwright.engine.gates.gate_runs import judge
from loopwright.engine.gates.judging import Judging
from loopwright.engine.people import commands
from loopwright.engine.people.taking_back import Asked, check, chosen, load, reopen
from loopwright.engine.rows.moves import move_run
from loopwright.engine.rows.world import World
from loopwright.ports import Candidate, Repository, Step, Tx

log = logging.getLogger(__name__)

_REPEATS = 3
"""How often it is tried again after a problem of the machine before it is refused."""
_TOLD = 2_000


async def carry_out(world: World, lines: LandingLines, command: Command) -> Command:
    """Carry a decision out, or record why not; do nothing if another worker does."""
    try:
        return await Decision(world, lines, command).run()
    except (UserError, IllegalTransition) as no:
        why = no
    except (StaleVersion, FenceLost, LeaseLost) as lost:
        log.info("decision dropped", extra={"command": command.id, "why": str(lost)})
        return command

    def refused(tx: Tx) -> Command:
        _end_gates(tx, command)
        return commands.refuse(tx, command, why)

    try:
        return await world.store.transact("command.refused", refused)
    except StaleVersion:
        return command


class Decision:
    """One `rollback` or `reject` on its way."""

    def __init__(self, world: World, lines: LandingLines, command: Command) -> None:
        self._world = world
        self._lines = lines
        self._command = command

    async def run(self) -> Command:
        """Remove the landings, then write the rows; raise if that is refused."""
        asked = await self._world.store.read(lambda tx: load(tx, self._command))
        repository = self._world.repository(asked.project)
        told = await self._objections(repository, asked)
        with self._lines.place(asked.plan.id, self._command.id) as place:
            # Alone: no candidate is checked on top of it before it is done.
            await place.turn(1, asyncio.Event())
            troubles = 0
            while True:
                # A failure before this is known is not reported: the branch may have seen it already.
                asked, made = await self._world.store.read(self._mine)
                steps, tip = await self._look(repository, asked)
                place.stand_on(tip, is_tip=True)
                done = next((step for step in steps if step.sha == made), None)
                if done is not None:
                    return await self._over(told, commit=done.sha, taken_out=done.takes_out)
                await self._world.store.read(lambda tx: check(tx, self._command, load(tx, self._command)))
                landings = chosen(asked, self._command, steps)
                if not landings:
                    return await self._over(told, commit=None, taken_out=())
                try:
                    await self._take_out(repository, asked, steps, tip, landings)
                except (GitFailed, CannotRun, OSError) as trouble:
                    troubles += 1
                    if troubles > _REPEATS:
                        raise Refused(
                            f"it cannot be taken back now: {trouble}", code="rollback_failed"
                        ) from trouble
                    pause = backoff(troubles, first_s=0.1, limit_s=5.0, chance=self._world.chance())
                    await self._world.clock.sleep(pause.total_seconds())

    def _mine(self, tx: Tx) -> tuple[Asked, str | None]:
        """Return its subject, and the commit that an earlier try was about to put on the branch."""
        made = self._pending(tx).commit_sha
        return load(tx, self._command), made

    def _pending(self, tx: Tx) -> Command:
        current = tx.get(Command, self._command.id)
        if current is None or current.state is not CommandState.PENDING:
            raise FenceLost(f"{self._command.id} was answered elsewhere")
        return current

    def _still_pending(self, tx: Tx) -> None:
        self._pending(tx)

    def _intend(self, tx: Tx, sha: str) -> None:
        if self._pending(tx).commit_sha != sha:
            tx.update(Command, self._command.id, commit_sha=sha)

    async def _look(self, repository: Repository, asked: Asked) -> tuple[Sequence[Step], str]:
        if asked.plan.executed_at is None:
            return (), asked.plan.base_sha  # there is no branch yet
        tip = await tip_of(self._world, repository, asked.plan)
        return await repository.steps(tip, since=asked.plan.base_sha), tip

    async def _take_out(
        self, repository: Repository, asked: Asked, steps: Sequence[Step], tip: str, landings: Sequence[str]
    ) -> None:
        plan = asked.plan
        keys = [task.key for task in asked.tasks if task.landed_sha in landings]
        try:
            candidate = await repository.without(
                tip,
                landings=landings,
                subject=f"revert: {', '.join(keys)}",
                plan_id=plan.id,
                command_id=self._command.id,
                at=self._command.created_at,
            )
        except MergeConflict as conflict:
            raise Refused(
                f"later work changed the same places: {', '.join(conflict.paths)}",
                code="rollback_conflict",
                hint=f"take that back as well: `loopwright rollback {plan.id} --to TASK`",
            ) from conflict
        await self._gate(repository, asked, steps, candidate, landings)
        await self._world.store.transact("rollback.intended", lambda tx: self._intend(tx, candidate.sha))
        if not self._world.may_act():
            raise LeaseLost("the lease lapsed before the rollback")
        await repository.advance(plan.branch, new=candidate.sha, old=tip)

    async def _gate(
        self,
        repository: Repository,
        asked: Asked,
        steps: Sequence[Step],
        candidate: Candidate,
        landings: Sequence[str],
    ) -> None:
        """Check what stays; a tree that the branch had before needs no second verdict."""
        plan = asked.plan
        own = await self._world.store.read(lambda tx: own_commits(tx, plan))
        before = {step.tree for step in steps if step.sha in own.landings}
        before.add(await repository.tree_of(plan.base_sha))
        if candidate.tree in before:
            return
        stays = [
            one for one in asked.tasks if one.status is TaskState.COMPLETE and one.landed_sha not in landings
        ]
        acceptance = tuple(command for one in stays for command in one.acceptance)
        kept = {one.landed_sha for one in stays}
        changed = await self._world.store.read(lambda tx: steered(tx, plan.id, landings=kept))
        ask = Judging(
            project=asked.project,
            plan=plan,
            attempt=None,
            role=Role.GATE,
            sha=candidate.sha,
            tree=candidate.tree,
            commands=plan_commands(plan, acceptance),
            still_mine=self._still_pending,
            before=plan.base_sha,
            exempt=changed.exempt,
            rewritten=changed.rewritten,
            own=acceptance,
        )
        _, verdict = await judge(self._world, repository, ask, asyncio.Event())
        if verdict.status is VerdictStatus.INCONCLUSIVE and verdict.lasting:
            raise Refused(
                f"the gate could not run: {verdict.reason}",
                code="gate_did_not_run",
                hint="fix that, then ask again",
            )
        if verdict.status is VerdictStatus.INCONCLUSIVE:
            raise CannotRun(f"the gate could not run: {verdict.reason}")
        if verdict.status is VerdictStatus.FAILED:
            raise Refused(
                f"what stays does not pass without it: {evidence(verdict)[:_TOLD]}".replace("\n", " "),
                code="gate_failed",
                hint=f"take more back: `loopwright rollback {plan.id} --to TASK`",
            )

    async def _over(self, told: str, *, commit: str | None, taken_out: Sequence[str]) -> Command:
        command = self._command

        def over(tx: Tx) -> Command:
            self._still_pending(tx)
            if commit is None:
                check(tx, command, load(tx, command))
            _end_gates(tx, command)
            result = reopen(tx, self._world.ids, command, commit=commit, taken_out=taken_out, told=told)
            return commands.answer(tx, command, result)

        return await self._world.store.transact(f"command.{command.verb}", over)

    # --- the evidence for the next attempt -----------------------------------------------------------

    async def _objections(self, repository: Repository, asked: Asked) -> str:
        if self._command.verb != "reject" or asked.target is None:
            return ""
        arguments, task = self._command.arguments, asked.target
        comments = comments_in(arguments.get("comments"))
        tip = await self._world.store.read(lambda tx: last_tip(tx, task))
        quoted = [await self._quoted(repository, tip, one) for one in comments]
        # What a pull request brought back says itself whose words it has.
        heading = "" if arguments.get(FEEDBACK) else REJECTED
        return objections(str(arguments.get("note") or ""), quoted, heading=heading)

    async def _quoted(self, repository: Repository, tip: str | None, comment: Comment) -> Comment:
        """Add the quoted line to each comment: the next attempt does not see the rejected work."""
        if tip is None:
            raise NotFound(
                f"there is no work yet that has a line {comment.file}:{comment.line}",
                code="comment_place_not_found",
            )
        text = await repository.file_at(tip, comment.file)
        if text is None:
            raise NotFound(
                f"the rejected work has no file {comment.file}",
                code="comment_place_not_found",
                hint=f"looked at {tip[:10]}",
            )
        lines = text.splitlines()
        if comment.line > len(lines):
            raise NotFound(
                f"{comment.file} has only {len(lines)} lines in the rejected work",
                code="comment_place_not_found",
            )
        return replace(comment, quoted=lines[comment.line - 1][:500])


def _end_gates(tx: Tx, command: Command) -> None:
    """Close a gate run that an earlier try began; the cleanup ends its processes."""
    target = tx.get(Task, command.target)
    plan_id = target.plan_id if target else command.target
    for run in tx.find(Run, plan_id=plan_id, attempt_id=None, role=Role.GATE, state=RunState.RUNNING):
        move_run(tx, run, RunState.CANCELLED, ended_by="asked", summary="what it was for is decided")


def last_tip(tx: Tx, task: Task) -> str | None:
    """Return the newest pinned work of a task."""
    tips = [(one.n, one.tip_sha) for one in tx.find(Attempt, task_id=task.id) if one.tip_sha]
    return max(tips)[1] if tips else None
