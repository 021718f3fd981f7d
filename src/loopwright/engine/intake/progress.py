"""The progress of a plan in the words of work sources, from rows alone."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from loopwright.core.plans.evaluating import OVERRIDABLE
from loopwright.core.policy.red_first import FIX_ORIGIN
from loopwright.core.replies.discoveries import Discovery
from loopwright.core.replies.qa import EVALUATION, QaReport
from loopwright.core.replies.qa import ORIGIN as QA
from loopwright.core.replies.qa import TYPE as LOOK
from loopwright.core.rows.model import (
    AGENT_ROLES,
    AUTHORS,
    Attempt,
    Command,
    CommandState,
    Loop,
    Plan,
    Run,
    Task,
    VerdictRecord,
)
from loopwright.core.values.findings import CheckStatus
from loopwright.core.values.states import (
    ENDED_PLAN,
    AttemptState,
    DiscoveryState,
    LoopState,
    PlanState,
    TaskState,
)
from loopwright.engine.intake.doc_sync import sync_progress
from loopwright.engine.people.discoveries import ORIGIN
from loopwright.engine.rows.plan_states_text import portable, source_reason
from loopwright.engine.rows.ref_names import commit_subject
from loopwright.ports import (
    Discovered,
    EvaluatedPlan,
    EvaluatorResult,
    ExecutionProgress,
    FixTask,
    ItemProgress,
    Judged,
    Mark,
    Progress,
    Setback,
    Tx,
)

MARKS: Final[Mapping[TaskState, Mark]] = MappingProxyType(
    {
        TaskState.CREATED: Mark.OPEN,
        TaskState.QUEUED: Mark.OPEN,
        TaskState.RUNNING: Mark.RUNNING,
        TaskState.AWAITING_RESPONSE: Mark.RUNNING,
        TaskState.WAITING_CHILDREN: Mark.RUNNING,
        TaskState.COMPLETE: Mark.DONE,
        TaskState.ERROR: Mark.BLOCKED,
        TaskState.CANCELLED: Mark.SKIPPED,
    }
)
_JUDGED: Final = (PlanState.VERIFIED, PlanState.FAILED)
_LINE: Final = 200
_FEW: Final = 3
_NO_PROSE: Final = ("#", "```", "~~~", "|", "<")
_AT_ONCE: Final = 500
_AT_WORK: Final = (AttemptState.WORKING, AttemptState.WAITING)
_BEFORE_WORK: Final = (AttemptState.PREPARING, AttemptState.WAITING)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is known about the attempts that landed."""

    verdicts: Mapping[str, VerdictRecord]
    words: Mapping[str, str]
    """What each run's agent says that it did."""


def progress_of(tx: Tx, plan: Plan, loop: Loop | None = None) -> Progress:
    """Return the status of every task of a plan, and what stopped its loop."""
    tasks = tx.find(Task, plan_id=plan.id, order_by=("position",))
    return replace(_progress(tx, plan, tasks), stopped=portable(_stopped(tx, plan, loop)))


def _stopped(tx: Tx, plan: Plan, loop: Loop | None) -> str:
    if plan.status is PlanState.FAILED:
        return plan.reason or "the plan failed"
    if loop is None or plan.status in ENDED_PLAN:
        return ""
    if loop.state is LoopState.FAILED:
        return plan.reason or loop.reason
    if loop.state is not LoopState.PAUSED or loop.resume_at is not None:
        return ""
    asked = tx.find(Command, verb="pause", target=plan.id, state=CommandState.APPLIED)
    by_person = any(one.applied_at and one.applied_at >= loop.updated_at for one in asked)
    return "" if by_person else loop.reason


def progress_with(tx: Tx, plan: Plan, landing: Task, attempt: Attempt, commit: str) -> Progress:
    """Return a plan's progress after a task has landed, for the commit that lands with it.

    Other tasks that are about to land are left out: their own commits mark them, which may already be below
    this one.
    """
    tasks = tx.find(Task, plan_id=plan.id, order_by=("position",))
    attempts = _attempts(tx, tasks)
    others, marks = [one for one in tasks if one.id != landing.id], _marks(tx, tasks, attempts)
    going = [one for one in others if marks[one.id] is Mark.RUNNING]
    working = [one for one in going if one.id in attempts and attempts[one.id].state in _AT_WORK]
    waiting = [one for one in going if one not in working]
    told = _progress(
        tx, plan, [one for one in others if marks[one.id] is not Mark.OPEN and one not in waiting]
    )
    # It was done last, though its row does not say so before it has landed.
    facts = _Facts(_verdicts(tx, [attempt]), _words(tx, [attempt]))
    done = replace(_item(landing, attempt, Mark.DONE, commit, facts), ended_at=told.at)
    fixes = (*told.fixes, *_fixes(tx, [landing]))
    return Progress(
        plan_id=plan.id,
        at=told.at,
        items={**told.items, landing.key: done},
        landing=frozenset(one.key for one in waiting),
        fixes=tuple(sorted(fixes, key=lambda one: one.key)),
        discovered=tuple(
            replace(one, mark=Mark.DONE) if one.task == landing.key else one for one in told.discovered
        ),
        sync=told.sync,
        branch=plan.branch,
        agent=attempt.agent,
        started_at=plan.executed_at,
        fix_cycles=plan.fix_cycles,
        max_fix_cycles=plan.policy.fix_cycles,
        evaluated=told.evaluated,
        execution=told.execution,
    )


def _marks(tx: Tx, tasks: Collection[Task], attempts: Mapping[str, Attempt]) -> dict[str, Mark]:
    """Return the mark of each task, by its id: none is in progress before its agent has started."""
    marks = {task.id: MARKS[task.status] for task in tasks}
    going = [attempts[one] for one, mark in marks.items() if mark is Mark.RUNNING and one in attempts]
    # A waiting attempt may have been parked before its agent started.
    parked = [one.id for one in going if one.state is AttemptState.WAITING]
    runs = tx.find(Run, attempt_id=parked, role=AGENT_ROLES) if parked else []
    begun = {run.attempt_id for run in runs if run.started_at is not None}
    idle = [one for one in going if one.state in _BEFORE_WORK and one.id not in begun]
    by_hand = [task.id for task in tasks if task.manual and marks[task.id] is Mark.RUNNING]
    return {**marks, **dict.fromkeys((*by_hand, *(one.task_id for one in idle)), Mark.OPEN)}


def _attempts(tx: Tx, tasks: Iterable[Task]) -> dict[str, Attempt]:
    """Return the latest attempt of each task that has one, in few queries, because every landing needs it."""
    latest = {task.attempt_id: task.id for task in tasks if task.attempt_id}
    return {latest[one.id]: one for ids in _pages(list(latest)) for one in tx.find(Attempt, id=ids)}


def _verdicts(tx: Tx, attempts: Iterable[Attempt]) -> dict[str, VerdictRecord]:
    wanted = [one.verdict_id for one in attempts if one.verdict_id]
    return {one.id: one for ids in _pages(wanted) for one in tx.find(VerdictRecord, id=ids)}


def _words(tx: Tx, attempts: Iterable[Attempt]) -> dict[str, str]:
    """Return what the agents of these attempts say that they did, by run: the first line, marked as a claim."""
    wanted = [one.run_id for one in attempts if one.run_id]
    runs = (one for ids in _pages(wanted) for one in tx.find(Run, id=ids) if one.role in AUTHORS)
    return {one.id: f"{said} (its agent's words)" for one in runs if (said := first_line(one.summary))}


def first_line(words: str) -> str:
    """Return the first line of prose in an agent's message; empty if it says less than a title ("done")."""
    prose = (line for line in words.splitlines() if not line.lstrip().startswith(_NO_PROSE))
    said = next((bare for line in prose if (bare := line.replace("**", "").strip("*_`>- \t"))), "")
    if len(said.split()) < _FEW:
        return ""
    return said if len(said) <= _LINE else f"{said[: _LINE - 1]}…"


def _pages(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield as many ids as one query may name."""
    return (ids[start : start + _AT_ONCE] for start in range(0, len(ids), _AT_ONCE))


def _progress(tx: Tx, plan: Plan, tasks: Sequence[Task]) -> Progress:
    attempts = _attempts(tx, tasks)
    marks = _marks(tx, tasks, attempts)
    ids = [task.id for task in tasks if marks[task.id] is Mark.DONE]
    done = [attempts[one] for one in ids if one in attempts]
    facts = _Facts(_verdicts(tx, done), _words(tx, done))
    agents = [attempts[task.id].agent for task in tasks if task.id in attempts]
    return Progress(
        plan_id=plan.id,
        at=tx.now(),
        items={
            task.key: _item(task, attempts.get(task.id), marks[task.id], task.landed_sha, facts)
            for task in tasks
        },
        fixes=_fixes(tx, tasks),
        discovered=_discovered(tx, plan),
        sync=sync_progress(tx, plan, tasks, marks) if plan.doc_sync else None,
        branch=plan.branch,
        agent=agents[0] if agents else "",
        started_at=plan.executed_at,
        completed_at=plan.completed_at,
        rests=plan.status is PlanState.RUNNING and plan.failed_tasks > 0 and not any(map(_goes_on, tasks)),
        failed=plan.status is PlanState.FAILED,
        fix_cycles=plan.fix_cycles,
        max_fix_cycles=plan.policy.fix_cycles,
        evaluated=_evaluated(plan),
        execution=_execution(tx, plan, tasks, marks),
        judged=_judged(plan),
    )


def _evaluated(plan: Plan) -> EvaluatedPlan | None:
    said = plan.evaluation
    if "passed" not in said:
        return None
    found = said.get("findings", ())
    return EvaluatedPlan(
        passed=bool(said["passed"]),
        at=plan.created_at,
        source_sha256=plan.source_sha256,
        found=frozenset(one["check"] for one in found),
        against=tuple(one["text"] for one in found if one["weight"] in OVERRIDABLE),
        despite=str(said.get("despite", "")),
        by=str((said.get("evaluator") or {}).get("agent", "")),
    )


def _judged(plan: Plan) -> Judged | None:
    if plan.verified_at is None or plan.verdict is None or plan.status not in _JUDGED:
        return None
    bad = [one.name for one in plan.verdict.checks if one.status in (CheckStatus.FAILED, CheckStatus.ERROR)]
    passed = plan.status is PlanState.VERIFIED
    reasons = tuple(bad) or (portable(plan.reason) or "the complete gate failed",)
    return Judged(passed=passed, at=plan.verified_at, failed=() if passed else reasons)


_EVALUATORS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ui_ux": "eval-ui-ux",
        "code_quality": "eval-code-quality",
        "integration": "eval-integration",
        "business_logic": "eval-business-logic",
    }
)
"""The evaluators' names in tracks; findings about every track belong to their common role."""
_ALL_EVALUATORS: Final = "loop-execution-evaluator"
_GATE: Final = "gate:all"


def _execution(
    tx: Tx, plan: Plan, tasks: Sequence[Task], marks: Mapping[str, Mark]
) -> ExecutionProgress | None:
    """Return the state of the evaluation of the execution, from its last report."""
    if plan.policy.evaluation is None:
        return None
    known = {one.id: one for one in tasks}
    mine = tx.find(Task, plan_id=plan.id, origin=EVALUATION, order_by=("position",))
    if not mine:
        return None
    task = mine[-1]
    attempts = tx.find(Attempt, task_id=[one.id for one in mine], order_by=("created_at",))
    reported = [one for one in attempts if one.qa is not None]
    last = reported[-1] if reported else None
    return ExecutionProgress(
        key=task.key,
        mark=marks[task.id] if task.id in known else MARKS[task.status],
        agent=(last or attempts[-1]).agent if attempts else plan.policy.evaluation.agent,
        started_at=task.created_at,
        ended_at=last.updated_at if last else None,
        results=_results(last.qa) if last and last.qa else (),
        found=tuple(one.title.removeprefix("Fix: ") for one in last.qa.issues) if last and last.qa else (),
        reason=source_reason(task.reason),
    )


def _results(report: QaReport) -> tuple[EvaluatorResult, ...]:
    """Return each evaluator's result; an issue of no single evaluator belongs to their common role."""
    bad = {one.area: one.how for one in report.checked if one.result == "issues"} if report.issues else {}
    by_gate = tuple(one.title.removeprefix("Fix: ") for one in report.issues if one.by_gate)
    unclaimed = () if bad else tuple(one.what for one in report.issues if not one.by_gate)
    said = [
        EvaluatorResult(
            evaluator=_EVALUATORS.get(one.area, _ALL_EVALUATORS),
            passed=one.area not in bad and not (unclaimed and one.area not in _EVALUATORS),
            issues=(bad[one.area],) if one.area in bad else () if one.area in _EVALUATORS else unclaimed,
        )
        for one in report.checked
    ]
    return (*said, *((EvaluatorResult(evaluator=_GATE, passed=False, issues=by_gate),) if by_gate else ()))


def _goes_on(task: Task) -> bool:
    mark = MARKS[task.status]
    return mark is Mark.RUNNING or (mark is Mark.OPEN and task.unmet == 0 and not task.early)


def _discovered(tx: Tx, plan: Plan) -> tuple[Discovered, ...]:
    keys = {task.id: task for task in tx.find(Task, plan_id=plan.id)}
    added = [task for task in keys.values() if task.origin == ORIGIN]
    by_id = _marks(tx, added, _attempts(tx, added))
    marks = {task.key: by_id[task.id] for task in added}
    return tuple(
        Discovered(
            title=one.title,
            reason=one.reason,
            recommendation=one.recommendation,
            by=keys[one.task_id].key if one.task_id in keys else "",
            task=one.became if one.became in marks else "",
            mark=Mark.SKIPPED if one.state is DiscoveryState.DISMISSED else marks.get(one.became, Mark.OPEN),
        )
        for one in tx.find(Discovery, plan_id=plan.id, order_by=("created_at", "id"))
    )


def _fixes(tx: Tx, tasks: Iterable[Task]) -> tuple[FixTask, ...]:
    found = [one for one in tasks if one.origin in (FIX_ORIGIN, QA)]
    if not found:
        return ()
    looks = {
        # Findings of a track's evaluation are fixed like those of its gate.
        one.id: "" if one.origin == EVALUATION else one.key
        for one in tx.find(Task, plan_id=found[0].plan_id, type=LOOK)
    }
    reports = [one for one in tx.find(Attempt, task_id=list(looks)) if one.qa is not None] if looks else []
    issues = {
        issue.fix: (looks[one.task_id], issue.severity)
        for one in reports
        if one.qa is not None
        for issue in one.qa.issues
    }
    made = []
    for one in found:
        look, severity = issues.get(one.key, ("", ""))
        made.append(
            FixTask(
                key=one.key,
                title=one.title,
                issue=portable(one.description),
                added_at=one.created_at,
                found_by=look,
                severity=severity,
                priority=one.priority,
            )
        )
    return tuple(made)


def _item(task: Task, attempt: Attempt | None, mark: Mark, commit: str | None, facts: _Facts) -> ItemProgress:
    done, blocked = mark is Mark.DONE, mark is Mark.BLOCKED
    record = facts.verdicts.get(attempt.verdict_id) if attempt is not None and attempt.verdict_id else None
    words = facts.words.get(attempt.run_id or "", "") if attempt is not None else ""
    checks = record.verdict.checks if record is not None and done else ()
    return ItemProgress(
        mark=mark,
        title="" if task.origin else task.title,
        commit=commit if done else None,
        subject=commit_subject(task) if done and commit else "",
        summary=portable(words or task.title if commit else task.reason or task.title) if done else "",
        changed=attempt.touched if done and commit and attempt is not None else (),
        checks=tuple(f"{check.name}: {check.status}" for check in checks),
        tdd=_tdd(attempt) if done and attempt is not None else "",
        reason=source_reason(task.reason) if blocked else "",
        attempts=_tries(task, attempt, mark),
        setback=_setback(task) if mark is Mark.OPEN else None,
        started_at=attempt.created_at if attempt is not None and mark is not Mark.OPEN else None,
        ended_at=task.completed_at or (task.updated_at if blocked else None),
    )


def _tries(task: Task, attempt: Attempt | None, mark: Mark) -> int:
    """Return how many attempts were begun; the rows count those that failed, and those of the source."""
    if attempt is None:
        return task.attempts
    begun = attempt.n - (mark is Mark.OPEN or attempt.state is AttemptState.QUEUED)
    return max(task.attempts + (mark in (Mark.RUNNING, Mark.DONE)), begun)


def _setback(task: Task) -> Setback | None:
    if task.failure is None:
        return None
    return Setback.BROKEN if task.call_failures else Setback.REJECTED


def _tdd(attempt: Attempt) -> str:
    facts = attempt.gate_files
    if facts is None:
        return ""
    if facts.red_skipped:
        return f"skipped, {facts.red_skipped}"
    if facts.red_missing:
        return f"not shown, {facts.red_missing}"
    if facts.red_seen:
        return f"red before the work ({', '.join(facts.red_seen[:3])}), green with it"
    with_tests = f" (with {', '.join(facts.red_tests[:3])})" if facts.red_tests else ""
    told = {
        True: f"red without the work{with_tests}, green with it",
        False: "green without the work too: not demonstrated",
    }
    return told.get(facts.red_proof, "") if facts.red_proof is not None else ""
