"""Verify a plan: gate:all on the integrated branch, once, also with the judging files of the base commit.

Loopwright never repeats a failed run by itself.
"""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from loopwright.core.gates.contradictions import (
    ACCEPT,
    KIND,
    OPTIONS,
    allowed_by,
    collapsed,
    contradicted,
    diff_of,
    file_of,
    is_tampered,
    listed,
    plan_question,
)
from loopwright.core.gates.gates import plan_commands
from loopwright.core.gates.held_out import joined
from loopwright.core.gates.verdicts import evidence, plan_outcome, refused_commands
from loopwright.core.policy.finishing import LEAVE
from loopwright.core.policy.order import is_met
from loopwright.core.policy.red_first import FIX_ORIGIN
from loopwright.core.policy.retry import backoff
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Leg, Loop, Outcome, Plan, Project, Role, Run, Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.errors import (
    BranchRewritten,
    CannotRun,
    Denied,
    FenceLost,
    GitFailed,
    NoEnvironment,
    TookTooMuch,
    UserError,
)
from loopwright.core.values.findings import Verdict, VerdictStatus
from loopwright.core.values.ids import Kind
from loopwright.core.values.patches import Patch
from loopwright.core.values.policy import GateCommand
from loopwright.core.values.states import AttemptState, LoopState, PlanState, QuestionState, TaskState
from loopwright.engine.branch.branch import foreign, own_commits
from loopwright.engine.branch.changed_gate_files import changes_by, steered
from loopwright.engine.gates.gate_runs import judge_until_known
from loopwright.engine.gates.held_out import Whole, judge_whole
from loopwright.engine.gates.judging import Judging
from loopwright.engine.intake import doc_sync
from loopwright.engine.integrity.gate_scripts import judges_of
from loopwright.engine.integrity.old_checks import OldChecks, with_old_checks
from loopwright.engine.memory.interrupts import Interrupted, Interrupts
from loopwright.engine.plans import track_evaluation
from loopwright.engine.rows import finishes
from loopwright.engine.rows.legs import carry_on
from loopwright.engine.rows.moves import (
    MACHINE,
    may_be_fixed,
    move_loop,
    move_plan,
    move_question,
    move_task,
    need,
)
from loopwright.engine.rows.questions import of_plan
from loopwright.engine.rows.queue import new_attempt
from loopwright.engine.rows.world import World
from loopwright.engine.sources.source_edits import follow_at_end, read_at_end
from loopwright.engine.sources.status_writeback import tell_on_branch
from loopwright.ports import Candidate, Ids, PlannedWork, Repository, Tx

# Check a plan's result with the judging files of the plan's base commit, so that a change of checks cannot be
# spread over several tasks.

_TOLD: Final = 500
"""The longest excerpt of a question where it is only mentioned."""


async def judged_by_base(
    world: World,
    repository: Repository,
    ask: Judging,
    tasks: list[Task],
    verdict: Verdict,
    interrupt: asyncio.Event,
) -> Verdict:
    """Return the verdict on a plan's result after its old checks ran too.

    It fails if it contradicts a check without permission. `ask` and `verdict` are the complete gate's. If the
    plan changed no judging file, that run is this one.
    """
    project, plan = ask.project, ask.plan
    landed = await world.store.read(lambda tx: _landed(tx, plan))
    found = verdict
    if any(one.gate_files is not None and one.gate_files.pinned for one in landed):
        old = await with_old_checks(
            repository, judges_of(project, plan, *tasks), await _made(repository, plan, ask)
        )
        if old.restored is not None:
            tree = old.restored.tree
            if tree == await repository.tree_of(plan.base_sha):
                return verdict  # the plan changed nothing but judging files
            if any(one.gate_files is not None and one.gate_files.pinned_tree == tree for one in landed):
                return verdict  # a task landed exactly this tree: the checks that it contradicts were decided then
            found = await _judged(world, repository, ask, old, old.restored, interrupt)
        if is_tampered(found) or (found.status is VerdictStatus.INCONCLUSIVE and not found.as_before):
            return found
    known = [one.gate_files for one in landed if one.gate_files is not None]
    decided = [
        (check, by)
        for facts in known
        for check, by in zip(facts.contradicted, facts.allowed_by, strict=False)
        if by
    ]
    # A task may have renamed a test before another one contradicted it: permission is for the file.
    by_file = {file_of(check): by for check, by in reversed(decided)}
    approved = [path for task in tasks for path in task.approved]
    changed = [path for facts in known for path in facts.pinned]
    checks = tuple(one for one in contradicted(found) if one not in dict(decided))
    allowed = {
        one: by_file.get(file_of(one)) or allowed_by(one, plan.policy, approved, changed) for one in checks
    }
    left = collapsed(one for one, by in allowed.items() if not by)
    if not left:
        return replace(verdict, contradicted=checks, allowed_by=tuple(allowed.values()))
    reason = (
        "the result contradicts checks of the plan's base commit without permission:\n"
        f"{listed(left)}\nallow them with `may_change` and run the plan again, or roll back the task that broke them"
    )
    by = tuple(allowed.values())
    return replace(found, status=VerdictStatus.FAILED, reason=reason, contradicted=checks, allowed_by=by)


async def settle(
    world: World,
    repository: Repository,
    ask: Judging,
    passed: Verdict,
    found: Verdict,
    hold: Callable[[Tx, str], None],
) -> Verdict | None:
    """Return the verdict on a result that contradicts checks of the plan's base, as the user decided; None while open.

    `passed` is the complete gate's verdict, and `found` the one with the old files. `hold` lets the plan
    wait.
    """
    left = tuple(one for one, by in zip(found.contradicted, found.allowed_by, strict=True) if not by)
    key = hashlib.sha256("\n".join((ask.tree, *left)).encode()).hexdigest()
    patch = await repository.patch(ask.plan.base_sha, ask.sha)

    def decide(tx: Tx) -> Verdict | None:
        ask.still_mine(tx)
        asked = of_plan(tx, ask.plan.id)
        decided = [one for one in asked if one.key == key and one.state is QuestionState.ANSWERED]
        if decided and decided[-1].answer == ACCEPT:
            by = f"{decided[-1].answered_by} (question {decided[-1].id})"
            return replace(
                passed,
                contradicted=found.contradicted,
                allowed_by=tuple(one or by for one in found.allowed_by),
            )
        if decided:
            told = f"{decided[-1].answered_by} wants these checks kept: {decided[-1].answer}"
            return replace(found, reason=f"{found.reason}\n{told}")
        open_ones = [one for one in asked if one.state is QuestionState.OPEN]
        for one in open_ones:
            if one.key != key:
                move_question(tx, one, QuestionState.WITHDRAWN, MACHINE)
        if not any(one.key == key for one in open_ones):
            _ask(tx, world, ask, key, left, found, patch)
        hold(tx, "the result contradicts existing checks and waits for your decision: `loopwright answer`")
        return None

    return await world.store.transact("verify.contradiction", decide)


def _ask(
    tx: Tx, world: World, ask: Judging, key: str, left: tuple[str, ...], found: Verdict, patch: Patch
) -> None:
    plan, top = ask.plan, f"{ask.project.subfolder}/" if ask.project.subfolder else ""
    changed = {one.task_id: one.gate_files.pinned for one in _landed(tx, plan) if one.gate_files}
    tasks = [one.key for one in tx.find(Task, plan_id=plan.id, order_by=("position",)) if changed.get(one.id)]
    files = {
        f"{top}{path}" for path in (*map(file_of, left), *(one for each in changed.values() for one in each))
    }
    question = Question(
        id=world.ids(Kind.QUESTION),
        project_id=plan.project_id,
        loop_id=plan.loop_id,
        plan_id=plan.id,
        task_id="",
        run_id="",
        kind=KIND,
        key=key,
        text=plan_question(plan.title, left, found.lost, tasks=tasks, diff=diff_of(patch, files)),
        options=OPTIONS,
        created_at=tx.now(),
    )
    tx.insert(question)
    tx.append(
        happened("question_asked", MACHINE, plan=plan, question=question.id, text=question.text[:_TOLD])
    )


async def _made(repository: Repository, plan: Plan, ask: Judging) -> Candidate:
    """Return all changes of the plan, as one change of its base commit."""
    return Candidate(
        parent=plan.base_sha,
        sha=ask.sha,
        tree=ask.tree,
        empty=False,
        changes=await changes_by(repository, ask.sha, parent=plan.base_sha),
    )


async def _judged(
    world: World,
    repository: Repository,
    ask: Judging,
    old: OldChecks,
    restored: Candidate,
    interrupt: asyncio.Event,
) -> Verdict:
    facts = old.facts
    commands, own = (
        tuple(one for one in each if one.command not in facts.pinned_without)
        for each in (ask.commands, ask.own)
    )
    if not commands:
        return Verdict(status=VerdictStatus.PASSED)
    gates = {gate.command for gate in ask.plan.gates}
    again = replace(
        ask,
        role=Role.GATE,
        sha=restored.sha,
        tree=restored.tree,
        commands=commands,
        own=own,
        exempt=facts.exempt,
        rewritten=(*facts.exempt, *facts.pinned),
        may_be_empty=tuple(one for one in own if one.command not in gates),
    )
    _, found = await judge_until_known(world, repository, again, interrupt)
    return found


def _landed(tx: Tx, plan: Plan) -> list[Attempt]:
    return tx.find(Attempt, plan_id=plan.id, state=AttemptState.LANDED)


class VerifyLeg:
    """Runs the complete gate on a plan's branch and records the plan's end."""

    def __init__(self, world: World, leg: Leg, *, interrupts: Interrupts) -> None:
        self._world = world
        self._leg = leg
        self._interrupts = interrupts

    async def run(self) -> None:
        """Verify the plan, unless another worker does."""
        await carry_on(self._world, self._leg, self._interrupts, self._load, self._verify_or_give_back)

    async def _verify_or_give_back(
        self, project: Project, plan: Plan, tasks: list[Task], interrupt: asyncio.Event
    ) -> None:
        try:
            await self._verify(project, plan, tasks, interrupt)
        except Interrupted:
            await self._world.store.transact(
                "verify.stopped", lambda tx: self._back(tx, "stopped by a person")
            )
        except (Denied, BranchRewritten, NoEnvironment, TookTooMuch) as denied:
            await self._wait_for_a_person(str(denied))
        except (CannotRun, GitFailed, UserError, OSError) as trouble:
            await self.break_off(str(trouble))

    async def _wait_for_a_person(self, reason: str) -> None:
        await self._world.store.transact("verify.denied", lambda tx: self._hold(tx, reason))

    async def break_off(self, reason: str) -> None:
        """Release the plan because it could not be verified now: again later, a bounded number of times."""
        await self._world.store.transact("verify.broken", lambda tx: self._broken(tx, reason))

    def _load(self, tx: Tx) -> tuple[Project, Plan, list[Task]] | None:
        plan = tx.get(Plan, self._leg.subject)
        if plan is None or plan.verify_fence != self._leg.fence or plan.status is not PlanState.VERIFYING:
            return None
        project = need(tx.get(Project, plan.project_id), "the project")
        return project, plan, tx.find(Task, plan_id=plan.id, order_by=("position",))

    def _mine(self, tx: Tx) -> Plan:
        plan = need(tx.get(Plan, self._leg.subject), "the plan")
        # The same leg may run twice: the plan's end from the quicker one is not undone.
        if plan.verify_fence != self._leg.fence or plan.status is not PlanState.VERIFYING:
            raise FenceLost(f"the verification of {plan.id} was taken over, or has ended")
        return plan

    def _still_mine(self, tx: Tx) -> None:
        self._mine(tx)

    async def _verify(
        self, project: Project, plan: Plan, tasks: list[Task], interrupt: asyncio.Event
    ) -> None:
        repository = self._world.repository(project)
        if await self._evaluation_is_due(repository, plan, tasks):
            await self._world.store.transact(
                "verify.execution",
                lambda tx: track_evaluation.add_evaluation(tx, self._world.ids, self._mine(tx)),
            )
            return
        if plan.doc_sync:
            tip, flags = await repository.tip(plan.branch), doc_sync.flags_of
            flagged = await self._world.store.read(lambda tx: flags(tx, plan))
            if behind := await doc_sync.due(repository, project, plan, flagged, tasks, tip):
                await self._world.store.transact(
                    "verify.docs",
                    lambda tx: doc_sync.add_sync(tx, self._world.ids, self._mine(tx), behind),
                )
                return
        sha = await tell_on_branch(self._world, repository, project, plan)
        # The result does not contain cancelled tasks, so their checks are left out.
        wanted = [task for task in tasks if task.status is not TaskState.CANCELLED]
        acceptance = tuple(command for task in wanted for command in task.acceptance)
        changed, own = await self._world.store.read(lambda tx: (steered(tx, plan.id), own_commits(tx, plan)))
        ask = Judging(
            project=project,
            plan=plan,
            attempt=None,
            role=role_now(plan),
            sha=sha,
            tree=await repository.tree_of(sha),
            commands=plan_commands(plan, acceptance),
            still_mine=self._still_mine,
            before=plan.base_sha,
            exempt=changed.exempt,
            rewritten=changed.rewritten,
            own=acceptance,
        )
        whole = await judge_whole(self._world, repository, ask, wanted, interrupt)
        verdict = whole.verdict
        if verdict.status is VerdictStatus.INCONCLUSIVE:
            await (self._wait_for_a_person if verdict.lasting else self.break_off)(verdict.reason)
            return
        contradicts = False
        if verdict.status is VerdictStatus.PASSED:
            found = await judged_by_base(self._world, repository, ask, wanted, verdict, interrupt)
            contradicts = found.status is VerdictStatus.FAILED
            if contradicts and found.contradicted:
                decided = await settle(self._world, repository, ask, verdict, found, self._wait_for_decision)
                if decided is None:
                    return
                found = decided
            verdict = found
            if verdict.status is VerdictStatus.INCONCLUSIVE:
                await (self._wait_for_a_person if verdict.lasting else self.break_off)(verdict.reason)
                return
            whole = replace(whole, verdict=verdict)
        if is_to_be_mended(plan, verdict) and not contradicts:
            await self._world.store.transact(
                "verify.evaluated",
                lambda tx: add_fix(tx, self._world.ids, self._mine(tx), ask.commands, whole),
            )
            return
        # A failed one stands, whatever happened to the branch: only the user requests another.
        if verdict.status is not VerdictStatus.FAILED and await repository.tip(plan.branch) != sha:
            # The branch got a commit in the meantime: this verdict is about another tree.
            await self.break_off("the plan branch moved while gate:all ran")
            return
        line = await repository.steps(sha, since=plan.base_sha)
        outcome = plan_outcome(
            # A manual step that the user settled says nothing about the tree.
            tasks=[
                task.outcome or Outcome.NOT_VERIFIED for task in tasks if not (task.manual and is_met(task))
            ],
            final=verdict.status,
            # No task's gate checked foreign commits on the branch, and later tasks may have been checked with them.
            capped=whole.is_excused
            or any(gate.name in plan.policy.installed_gates for gate in plan.gates)
            or bool(await foreign(repository, plan, line, own)),
        )
        # The last effect before the end. A change of the source after this is new work.
        work = await read_at_end(self._world, project, plan)
        await self._world.store.transact("verify.over", lambda tx: self._over(tx, whole, sha, outcome, work))

    async def _evaluation_is_due(self, repository: Repository, plan: Plan, tasks: list[Task]) -> bool:
        if plan.policy.evaluation is None:
            return False
        passed = await self._world.store.read(lambda tx: track_evaluation.last_evaluated(tx, tasks))
        return await track_evaluation.due(repository, tasks, passed)

    def _over(self, tx: Tx, whole: Whole, sha: str, outcome: Outcome, work: PlannedWork | None) -> None:
        plan, verdict = self._mine(tx), whole.verdict
        if work is not None and follow_at_end(tx, self._world.ids, plan, work):
            return
        passed = verdict.status is VerdictStatus.PASSED
        reason = "" if passed else verdict.reason or "gate:all failed on the integrated branch"
        checks = [{"name": one.name, "status": one.status.value} for one in verdict.checks[:200]]
        adopt(tx, plan, whole.unseen)
        move_plan(
            tx,
            plan,
            PlanState.VERIFIED if passed else PlanState.FAILED,
            "plan_verified" if passed else "plan_failed",
            about={"commit": sha, "outcome": outcome.value, "reason": reason, "checks": checks},
            verdict=verdict,
            result_sha=sha,
            outcome=outcome,
            reason=reason,
            verified_at=tx.now(),
        )
        self._end_loop(tx, plan, passed=passed, reason=reason)
        if passed and plan.policy.finish != LEAVE:
            finishes.begin(tx, self._world.ids, plan, plan.policy.finish)

    def _broken(self, tx: Tx, reason: str) -> None:
        """Try again later because the gate could not run, a bounded number of times."""
        plan = self._mine(tx)
        calls = plan.call_failures + 1
        if calls > plan.policy.max_call_retries:
            reason = f"gate:all could not run: {reason}"
            move_plan(
                tx,
                plan,
                PlanState.FAILED,
                "plan_failed",
                about={"reason": reason},
                reason=reason,
                outcome=Outcome.NOT_VERIFIED,
            )
            self._end_loop(tx, plan, passed=False, reason=reason)
            return
        pause = backoff(calls, chance=self._world.chance())
        self._back(tx, reason, call_failures=calls, not_before=tx.now() + pause)

    def _back(self, tx: Tx, reason: str, **changes: Any) -> None:
        plan = self._mine(tx)
        about = {"reason": reason}
        move_plan(tx, plan, PlanState.RUNNING, "plan_reopened", about=about, reason=reason, **changes)

    def _hold(self, tx: Tx, reason: str) -> None:
        """Pause the loop because gate:all needs something missing or refused: only the user can change that."""
        self._back(tx, reason)
        plan = need(tx.get(Plan, self._leg.subject), "the plan")
        loop = need(tx.get(Loop, plan.loop_id), "the loop")
        if loop.state is LoopState.RUNNING:
            move_loop(tx, loop, LoopState.PAUSED, "loop_paused", MACHINE, f"gate:all cannot run: {reason}")

    def _wait_for_decision(self, tx: Tx, reason: str) -> None:
        """Hold the plan until the user decides about the checks that its result contradicts."""
        self._back(tx, reason, outcome=Outcome.NEEDS_HUMAN)
        plan = need(tx.get(Plan, self._leg.subject), "the plan")
        tx.append(happened("plan_held", MACHINE, plan=plan, reason=reason))
        loop = need(tx.get(Loop, plan.loop_id), "the loop")
        if loop.state is LoopState.RUNNING:
            move_loop(tx, loop, LoopState.FAILED, "loop_failed", MACHINE, reason)

    def _end_loop(self, tx: Tx, plan: Plan, *, passed: bool, reason: str) -> None:
        loop = need(tx.get(Loop, plan.loop_id), "the loop")
        if loop.plan_id != plan.id or loop.state is not LoopState.RUNNING:
            return  # the user paused or stopped it in the meantime: the plan's own end says the rest
        target, event = (
            (LoopState.COMPLETED, "loop_completed") if passed else (LoopState.FAILED, "loop_failed")
        )
        move_loop(tx, loop, target, event, MACHINE, reason)


# Fixes before verification: a failure of the complete gate becomes a task.


def role_now(plan: Plan) -> Role:
    """Return the role of the complete gate: an evaluation while a fix may still follow, else the verification."""
    return Role.EVALUATION if may_be_fixed(plan) else Role.VERIFY


def is_to_be_mended(plan: Plan, verdict: Verdict) -> bool:
    """Return whether a task can fix the failure."""
    return verdict.status is VerdictStatus.FAILED and role_now(plan) is Role.EVALUATION


def add_fix(tx: Tx, ids: Ids, plan: Plan, commands: Sequence[GateCommand], whole: Whole) -> Task:
    """Give the plan one more task, with the failure as its description, and let it run.

    One task for all failures: on the same tree they mostly have the same cause, and two agents would collide
    there.
    """
    cycle = plan.fix_cycles + 1
    tasks = tx.find(Task, plan_id=plan.id)
    taken = {task.key for task in tasks}
    key = next(name for name in (f"fix-{cycle}", f"fix-{cycle}-{plan.id}") if name not in taken)
    verdict = whole.verdict
    if whole.broken:
        why, found, bad = verdict.reason, whole.evidence, set[str]()
    else:
        why, found = "the complete gate failed before the verification", evidence(verdict)
        bad = {result.command for result in refused_commands(verdict)}
    now = tx.now()
    task = Task(
        id=ids(Kind.TASK),
        plan_id=plan.id,
        key=key,
        title="Fix what the complete gate found",
        description=(
            "Every task of the plan has landed, and each passed its own checks. All checks together do not pass on the "
            f"result. Find the cause and fix it, without taking back what the tasks did.\n\n{found}"
        ),
        acceptance=tuple(command for command in commands if command.command in bad) or tuple(commands),
        held_out=joined(whole.broken),
        position=max((task.position for task in tasks), default=-1) + 1,
        status=TaskState.CREATED,
        origin=FIX_ORIGIN,
        max_attempts=plan.policy.max_attempts,
        created_at=now,
        updated_at=now,
    )
    tx.insert(task)
    reason = f"{why}; {key} is to fix it"
    plan = move_plan(
        tx,
        plan,
        PlanState.RUNNING,
        "plan_evaluated",
        about={"reason": reason, "fix": key, "cycle": cycle, "of": plan.policy.fix_cycles},
        reason="",
        fix_cycles=cycle,
        open_tasks=plan.open_tasks + 1,
        completed_at=None,
        evaluation={**plan.evaluation, "tasks": len(tasks) + 1},
    )
    attempt = new_attempt(tx, ids, plan, task, n=1)
    return move_task(tx, task, TaskState.QUEUED, "task_queued", attempt_id=attempt.id)


def adopt(tx: Tx, plan: Plan, unseen: Sequence[str]) -> None:
    """Make the evaluation that a plan ends with its verification, with the runs of held-out checks."""
    for run_id in filter(None, (plan.verify_run_id, *unseen)):
        run = tx.get(Run, run_id)
        if run is not None and run.role is Role.EVALUATION:
            tx.update(Run, run.id, role=Role.VERIFY, label=f"verify_{plan.id}")
