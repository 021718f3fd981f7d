"""QA reviews: an agent reports, the gate runs on the tree that it saw, and findings become tasks.

Nothing lands here. A review without a finding completes its task. A review with findings waits for the fix
tasks and is repeated, a bounded number of times. Then the user decides.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from loopwright.core.gates.gates import task_commands
from loopwright.core.gates.verdicts import evidence, refused_commands, task_outcome
from loopwright.core.policy.landing import Objection, Reject
from loopwright.core.policy.retry import Failed
from loopwright.core.prompts.prompts import areas_of
from loopwright.core.receipts.gaps import is_open
from loopwright.core.replies.answers import Unreadable
from loopwright.core.replies.qa import (
    EVALUATION,
    ORIGIN,
    PRIORITIES,
    Fix,
    QaIssue,
    QaReport,
    is_fix_of,
    read_report,
    rounds,
    told,
    with_fixes,
)
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Plan, Role, Task
from loopwright.core.values.errors import FenceLost
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Verdict, VerdictStatus
from loopwright.core.values.policy import GateCommand
from loopwright.core.values.states import AttemptState, TaskState
from loopwright.engine.attempt.candidates import gated
from loopwright.engine.attempt.land import cannot_tell, reject
from loopwright.engine.attempt.landing_line import Judged, Landing
from loopwright.engine.branch.changed_gate_files import steered
from loopwright.engine.gates.judging import Judging
from loopwright.engine.memory.interrupts import Interrupted
from loopwright.engine.rows.added_tasks import add_task
from loopwright.engine.rows.failing import fail_attempt
from loopwright.engine.rows.moves import MACHINE, change_attempt, complete_task, move_attempt, move_task, need
from loopwright.engine.rows.queue import new_attempt
from loopwright.engine.rows.source_marks import marks_of
from loopwright.ports import AgentResult, PlannedTask, Tx


def report_of(plan: Plan, task: Task, result: AgentResult) -> QaReport | Unreadable:
    """Return an agent's QA report."""
    return read_report(result.structured, result.last_words or result.summary, *areas_of(plan, task))


async def settle(landing: Landing, interrupt: asyncio.Event) -> None:
    """Run the gate on the reviewed commit, and decide what follows from the gate and the report."""
    plan, task, attempt = landing.plan, landing.task, landing.attempt
    sha = need(attempt.base_sha, "a base")
    tree = await landing.repository.tree_of(sha)
    changed = await landing.world.store.read(lambda tx: steered(tx, plan.id))
    ask = Judging(
        project=landing.project,
        plan=plan,
        attempt=attempt,
        role=Role.GATE,
        sha=sha,
        tree=tree,
        commands=task_commands(plan, task),
        still_mine=landing.still_mine,
        before=plan.base_sha,
        exempt=changed.exempt,
        rewritten=changed.rewritten,
        # A finding of a QA review has to be fixed, even if it failed before the plan.
        own=task_commands(plan, task),
    )
    record_id, verdict = await gated(landing, ask, interrupt)
    judged = Judged(parent=sha, tree=tree, verdict_id=record_id)
    if verdict.status is VerdictStatus.INCONCLUSIVE:
        await cannot_tell(landing, verdict, judged)
        return
    report = need(attempt.qa, "a report")
    found = (*report.issues, *_of_gate(verdict))
    if verdict.status is VerdictStatus.UNVERIFIED and not found and not plan.policy.allow_unverified:
        words = "nothing was found, but nothing is configured to check it either"
        objection = Objection(failure=Failure.UNVERIFIED, detail=words)
        await reject(landing, Reject(objections=(objection,)), judged)
        return
    await landing.world.store.transact(
        "look.over", lambda tx: _over(tx, landing, replace(report, issues=found), verdict, judged)
    )


def _of_gate(verdict: Verdict) -> tuple[QaIssue, ...]:
    """Return what the checks found, as one issue: failures on the same tree mostly have the same cause."""
    if verdict.status is not VerdictStatus.FAILED:
        return ()
    names = ", ".join(one.name for one in refused_commands(verdict)[:5]) or "the gate"
    return (
        QaIssue(
            what=f"{names} does not pass", severity="high", actual=evidence(verdict)[:4000], by_gate=True
        ),
    )


def _over(tx: Tx, landing: Landing, report: QaReport, verdict: Verdict, judged: Judged) -> None:
    current = change_attempt(tx, landing.attempt.id, landing.fence)
    if current.state is not AttemptState.CHECKING:
        raise FenceLost(f"{current.id} was carried on by a second run of the same leg")
    if current.interrupt:
        raise Interrupted
    task = need(tx.get(Task, landing.task.id), "the task")
    tasks = tx.find(Task, plan_id=landing.plan.id)
    standing = with_fixes(report.issues, task.key, _fixes(tasks, task), _taken(tx, landing.plan, tasks))
    if not standing:
        _passed(tx, landing, current, task, report, verdict, judged)
        return
    earlier = tx.find(Attempt, task_id=task.id, order_by=("n",))
    before = rounds([one.qa for one in earlier if one.qa is not None and one.id != current.id])
    plan = need(tx.get(Plan, landing.plan.id), "the plan")
    if task.origin == EVALUATION:
        # A track has one count of fix cycles, for its evaluators and its gate.
        before = plan.fix_cycles
    if before >= plan.policy.fix_cycles:
        _given_up(tx, landing, current, replace(report, issues=standing), before, judged)
        return
    _sent_on(tx, landing, current, task, replace(report, issues=standing), tasks, verdict, judged)


def _fixes(tasks: Sequence[Task], look: Task) -> list[Fix]:
    return [
        Fix(
            key=one.key,
            title=one.title,
            is_done=one.status is TaskState.COMPLETE,
            is_declined=one.status is TaskState.CANCELLED,
        )
        for one in tasks
        if is_fix_of(one.key, look.key)
    ]


def _taken(tx: Tx, plan: Plan, tasks: Sequence[Task]) -> set[str]:
    # The source may have fixes of an earlier plan, which are not tasks of this one.
    return {*marks_of(tx, plan.id), *(one.key for one in tasks)}


def _passed(
    tx: Tx,
    landing: Landing,
    attempt: Attempt,
    task: Task,
    report: QaReport,
    verdict: Verdict,
    judged: Judged,
) -> None:
    """Record that neither the agent nor the gate found anything."""
    report = replace(report, issues=())
    words = f"{report.in_words}: {report.summary}"
    moved = move_attempt(tx, attempt, AttemptState.LANDING, fence=landing.fence, qa=report, **judged.columns)
    moved = move_attempt(tx, moved, AttemptState.LANDED, fence=landing.fence, detail=words[:2000], about={})
    _ended(tx, landing.plan, moved, report)
    checked = verdict.status is VerdictStatus.PASSED
    # That nothing is wrong is the agent's opinion, and the receipt notes it. The outcome comes from the gate.
    outcome = task_outcome(
        status=TaskState.COMPLETE,
        landed=False,
        verdict=VerdictStatus.PASSED if checked else VerdictStatus.UNVERIFIED,
        capped=is_open([verdict]),
    )
    complete_task(tx, task, outcome=outcome, landed_sha=None)


def _given_up(
    tx: Tx, landing: Landing, attempt: Attempt, report: QaReport, before: int, judged: Judged
) -> None:
    """Stop after too many rounds of fixes: the user decides."""
    report = replace(report, issues=tuple(replace(one, fix="") for one in report.issues))
    names = "; ".join(one.title.removeprefix("Fix: ") for one in report.issues[:5])
    rounds_ = "1 round" if before == 1 else f"{before} rounds"
    detail = f"After {rounds_} of fixes {report.in_words}: {names}"
    fail_attempt(
        tx,
        landing.world.ids,
        attempt,
        Failed(failure=Failure.ISSUES, detail=detail),
        fence=landing.fence,
        counts=True,
        chance=landing.world.chance(),
        evidence=told(report),
        qa=report,
        **judged.columns,
    )
    _ended(tx, landing.plan, need(tx.get(Attempt, attempt.id), "the attempt"), report)


def _sent_on(
    tx: Tx,
    landing: Landing,
    attempt: Attempt,
    task: Task,
    report: QaReport,
    tasks: Sequence[Task],
    verdict: Verdict,
    judged: Judged,
) -> None:
    """Add tasks for the findings, and repeat the QA review after them."""
    ids, plan = landing.world.ids, landing.plan
    known = {one.key: one for one in tasks}
    position = max((one.position for one in tasks), default=-1) + 1
    refused = tuple(
        _gate_command(one.name, one.command, task_commands(plan, task)) for one in refused_commands(verdict)
    )
    waits_for: list[Task] = []
    for issue in report.issues:
        fix = known.get(issue.fix)
        if fix is None:
            item = PlannedTask(
                key=issue.fix,
                title=issue.title,
                description=f"{issue.description}\n\n{_found_by(task)}",
                acceptance=refused if issue.by_gate else (),
                priority=PRIORITIES[issue.severity],
                type="fix",
            )
            fix = add_task(tx, ids, plan, item, position=position, origin=ORIGIN)
            position += 1
        waits_for.append(tx.update(Task, fix.id, dependents=tuple(dict.fromkeys((*fix.dependents, task.id)))))
    detail = f"{report.in_words}: {', '.join(one.fix for one in report.issues)}"
    moved = move_attempt(
        tx,
        attempt,
        AttemptState.REJECTED,
        fence=landing.fence,
        about={"failure": Failure.ISSUES.value, "detail": detail[:1000]},
        failure=Failure.ISSUES,
        detail=detail,
        qa=report,
        **judged.columns,
    )
    _ended(tx, plan, moved, report)
    needs = tuple(dict.fromkeys((*task.depends_on, *(one.id for one in waits_for))))
    rows = {one.id: one for one in tx.find(Task, plan_id=plan.id)}
    if task.origin == EVALUATION:
        tx.update(Plan, plan.id, fix_cycles=need(tx.get(Plan, plan.id), "the plan").fix_cycles + 1)
    following = new_attempt(tx, ids, plan, task, n=moved.n + 1, evidence=told(report))
    move_task(
        tx,
        task,
        TaskState.QUEUED,
        "task_retried",
        about={"failure": Failure.ISSUES.value, "n": following.n, "fixes": [one.key for one in waits_for]},
        attempt_id=following.id,
        depends_on=needs,
        unmet=sum(rows[one].status is not TaskState.COMPLETE for one in needs),
        call_failures=0,
    )


def _found_by(task: Task) -> str:
    if task.origin == EVALUATION:
        return "The evaluation of what the track made found it."
    return f"The QA review found it: {task.key}."


def _gate_command(name: str, command: str, asked: Sequence[GateCommand]) -> GateCommand:
    return next((one for one in asked if one.command == command), GateCommand(name=name, command=command))


def _ended(tx: Tx, plan: Plan, attempt: Attempt, report: QaReport) -> None:
    """Record that a QA review ended: its findings are claims, so the event has only their number and hash."""
    about: dict[str, Any] = {
        "mode": report.mode,
        "commit": attempt.base_sha,
        "issues": len(report.issues),
        "fixes": [one.fix for one in report.issues if one.fix],
        "report_sha256": report.sha256,
    }
    tx.append(happened("look_ended", MACHINE, plan=plan, attempt=attempt, **about))
