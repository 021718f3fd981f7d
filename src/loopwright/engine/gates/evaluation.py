"""Execution evaluation: what the complete gate finds before a plan is verified becomes a task that mends it.

It runs when every task has landed. If it finds nothing, its verdict is the verification's: the same commands on the
same tree are not run twice. A verification that failed is never repeated by the machine; this is what comes before it.
"""

from collections.abc import Sequence

from loopwright.core.gates.held_out import joined
from loopwright.core.gates.verdicts import evidence, refused_commands
from loopwright.core.policy.red_first import FIX_ORIGIN
from loopwright.core.rows.model import Plan, Role, Run, Task
from loopwright.core.values.findings import Verdict, VerdictStatus
from loopwright.core.values.ids import Kind
from loopwright.core.values.policy import GateCommand
from loopwright.core.values.states import PlanState, TaskState
from loopwright.engine.gates.held_out import Whole
from loopwright.engine.rows.moves import move_plan, move_task
from loopwright.engine.rows.queue import new_attempt
from loopwright.ports import Ids, Tx


def role_now(plan: Plan) -> Role:
    """Say what the complete gate runs as: an evaluation while something may still be mended, else the verification."""
    return Role.EVALUATION if plan.fix_cycles < plan.policy.fix_cycles else Role.VERIFY


def is_to_be_mended(plan: Plan, verdict: Verdict) -> bool:
    """Say whether a task can mend what was found."""
    return verdict.status is VerdictStatus.FAILED and role_now(plan) is Role.EVALUATION


def add_fix(tx: Tx, ids: Ids, plan: Plan, commands: Sequence[GateCommand], whole: Whole) -> Task:
    """Give the plan one more task, with what was found as its description, and let it run.

    One for all that failed: what fails on the same tree mostly has the same cause, and two agents would collide there.
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
        title="Mend what the complete gate found",
        description=(
            "Every task of the plan has landed, and each passed its own checks. All checks together do not pass on the "
            f"result. Find the cause and mend it, without taking back what the tasks did.\n\n{found}"
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
    reason = f"{why}; {key} is to mend it"
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
    """Let the evaluation that a plan ends with be its verification, with the runs of what was held out."""
    for run_id in filter(None, (plan.verify_run_id, *unseen)):
        run = tx.get(Run, run_id)
        if run is not None and run.role is Role.EVALUATION:
            tx.update(Run, run.id, role=Role.VERIFY, label=f"verify_{plan.id}")
