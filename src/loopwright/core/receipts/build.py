"""Build a receipt from rows, events and git; the same rows always give the same bytes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, Final

from loopwright.core.gates.gates import setup_command
from loopwright.core.gates.verdicts import is_bad
from loopwright.core.policy.red_first import RED_ON_BASE, RedProof
from loopwright.core.receipts.events import CheckoutChange, Override
from loopwright.core.receipts.landing_hashes import landing_text
from loopwright.core.receipts.model import (
    AttemptEntry,
    BadCheck,
    CheckCounts,
    EventsEntry,
    FinishEntry,
    ForeignCommit,
    Opinion,
    OpinionRemark,
    PlanEntry,
    PolicyEntry,
    ProjectEntry,
    QaReportEntry,
    QaReviewEntry,
    Receipt,
    ReceiptFacts,
    RerunEntry,
    ReviewClaim,
    ReviewEntry,
    RunEntry,
    TaskEntry,
    TaskFacts,
    VerdictEntry,
    fingerprint,
    hash_of,
)
from loopwright.core.receipts.outcomes import derive
from loopwright.core.replies.qa import QaReport, ReportedIssue
from loopwright.core.replies.reviews import Severity, blocking, said_hash
from loopwright.core.rows.model import (
    Attempt,
    Finish,
    Plan,
    Project,
    Review,
    Run,
    Task,
    Usage,
    VerdictRecord,
)
from loopwright.core.values.criteria import in_words
from loopwright.core.values.documents import plain
from loopwright.core.values.findings import CheckStatus, CommandFacts, CommandResult
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import FinishState

_MAX_BAD: Final = 100
_MAX_DETAIL: Final = 500
_MAX_MESSAGE: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class GitFacts:
    """What only the repository knows when a receipt is written."""

    result_tree: str | None
    diff_sha256: str | None = None
    """The hash of the whole diff from base to result."""
    task_diff_sha256: Mapping[str, str] = field(default_factory=dict)
    """The hash of each landed task's change, by task id."""
    not_ours: Sequence[ForeignCommit] = ()


def build_receipt(
    *,
    project: Project,
    plan: Plan,
    tasks: Sequence[Task],
    attempts: Sequence[Attempt],
    runs: Sequence[Run],
    verdicts: Sequence[VerdictRecord],
    reviews: Sequence[Review] = (),
    finishes: Sequence[Finish] = (),
    git: GitFacts,
    overrides: Sequence[Override] = (),
    checkout_changes: Sequence[CheckoutChange] = (),
    ended: Mapping[str, str] | None = None,
    event_head: str | None,
    made_by: str,
) -> Receipt:
    """Build the receipt of a plan; `ended` has the hash of the event that ended each run, by run id."""
    asked = sorted(reviews, key=lambda r: (r.created_at, r.id))
    facts = ReceiptFacts(
        made_by=made_by,
        project=ProjectEntry(id=project.id, name=project.name, subfolder=project.subfolder),
        plan=_plan(plan, git),
        tasks=tuple(
            _task(task, [a for a in attempts if a.task_id == task.id], git)
            for task in sorted(tasks, key=lambda t: (t.position, t.id))
        ),
        verdicts=tuple(_verdict(v) for v in sorted(verdicts, key=lambda v: (v.created_at, v.id))),
        reviews=tuple(map(_review, asked)),
        claims=tuple(ReviewClaim(**_same(ReviewClaim, one)) for one in asked),
        opinions=_opinions(plan),
        looks=_qa_reviews(tasks, attempts),
        reports=_qa_reports(attempts),
        overrides=tuple(overrides),
        checkout_changes=tuple(checkout_changes),
        runs=tuple(
            _run(run, (ended or {}).get(run.id)) for run in sorted(runs, key=lambda r: (r.created_at, r.id))
        ),
        finishes=tuple(map(_finish, _without_repeats(finishes))),
        events=EventsEntry(head=event_head),
    )
    return _with_outcome(facts)


def _with_outcome(facts: ReceiptFacts) -> Receipt:
    derived = derive(facts)
    receipt = Receipt(
        **_same(ReceiptFacts, facts)
        | {
            "tasks": tuple(
                TaskEntry(**_same(TaskFacts, one), outcome=derived.outcomes[one.id]) for one in facts.tasks
            )
        },
        outcome=derived.outcome,
        cost=derived.cost,
        usage=derived.usage,
        gaps=derived.gaps,
        notes=derived.notes,
        not_checked=derived.not_checked,
        sha256="",
    )
    return replace(receipt, sha256=fingerprint(receipt))


def landing_part(
    plan: Plan, task: Task, attempt: Attempt, runs: Sequence[Run], ended: Mapping[str, str]
) -> str:
    """Return the part of a receipt about work that is about to land."""
    entry = _task(task, [attempt], GitFacts(result_tree=None))
    told = [_run(run, ended.get(run.id)) for run in runs]
    return landing_text(plan.id, plan.base_sha, entry, entry.attempts[0], told)


def _same(entry: type[Any], row: object, *besides: str) -> dict[str, Any]:
    """Return the fields that an entry and its row have in common; times become text."""
    values = {one.name: getattr(row, one.name) for one in fields(entry) if one.name not in besides}
    return {
        name: value.isoformat() if isinstance(value, datetime) else value for name, value in values.items()
    }


def _plan(plan: Plan, git: GitFacts) -> PlanEntry:
    from_git = ("result_tree", "diff_sha256", "not_ours")
    computed = ("red_on_base", "contradicted", "allowed_by", "setup", "policy_sha256", "policy")
    return PlanEntry(
        **_same(PlanEntry, plan, *from_git, *computed),
        result_tree=git.result_tree,
        diff_sha256=git.diff_sha256,
        not_ours=tuple(git.not_ours),
        red_on_base=tuple(plan.evaluation.get(RED_ON_BASE, ())),
        contradicted=plan.verdict.contradicted if plan.verdict else (),
        allowed_by=plan.verdict.allowed_by if plan.verdict else (),
        setup=setup_command(plan.policy),
        policy_sha256=hash_of(plain(plan.policy)),
        policy=_policy(plan.policy),
    )


def _policy(policy: Policy) -> PolicyEntry:
    return PolicyEntry(**_same(PolicyEntry, policy, "red_proof"), red_proof=RedProof(policy.red_proof))


def _task(task: Task, attempts: Sequence[Attempt], git: GitFacts) -> TaskFacts:
    ordered = sorted(attempts, key=lambda a: (a.n, a.id))
    if task.landed_sha is not None:
        judged = next((a for a in ordered if a.candidate_sha == task.landed_sha), None)
    else:
        judged = next((a for a in ordered if a.id == task.attempt_id), None)
    computed = ("described_sha256", "criteria", "tree", "parent_sha", "diff_sha256", "attempts")
    return TaskFacts(
        **_same(TaskFacts, task, *computed),
        described_sha256=hash_of([task.description, *task.criteria]),
        criteria=len(in_words(task.criteria, [one.command for one in task.acceptance])),
        tree=judged.candidate_tree if judged else None,
        parent_sha=judged.candidate_parent if judged else None,
        diff_sha256=git.task_diff_sha256.get(task.id),
        attempts=tuple(
            AttemptEntry(**_same(AttemptEntry, a, "detail"), detail=a.detail[:_MAX_DETAIL]) for a in ordered
        ),
    )


def _verdict(record: VerdictRecord) -> VerdictEntry:
    verdict = record.verdict
    counts = {one.value: sum(check.status is one for check in verdict.checks) for one in CheckStatus}
    return VerdictEntry(
        id=record.id,
        tree=record.tree,
        gate_key=record.gate_key,
        run_id=record.run_id,
        status=verdict.status,
        reason=verdict.reason,
        unknown_before=verdict.unknown_before,
        left_open=verdict.left_open,
        notes=verdict.notes,
        sha256=hash_of(plain(verdict)),
        checks=CheckCounts(**counts),
        bad=tuple(
            BadCheck(name=c.name, status=c.status, message=c.message.partition("\n")[0][:_MAX_MESSAGE])
            for c in [check for check in verdict.checks if is_bad(check)][:_MAX_BAD]
        ),
        commands=_ran(verdict.commands),
        reruns=tuple(
            RerunEntry(folder=rerun.folder, alone=rerun.alone, commands=_ran(rerun.commands))
            for rerun in verdict.reruns
        ),
        created_at=record.created_at.isoformat(),
    )


def _ran(commands: Iterable[CommandResult]) -> tuple[CommandFacts, ...]:
    return tuple(CommandFacts(**_same(CommandFacts, one)) for one in commands)


def _review(review: Review) -> ReviewEntry:
    grave = len(blocking(review.findings))
    return ReviewEntry(
        **_same(ReviewEntry, review, "blocking", "opinions", "said_sha256"),
        blocking=grave,
        opinions=len(review.findings) - grave,
        said_sha256=said_hash(review.summary, review.findings),
    )


def _opinions(plan: Plan) -> tuple[Opinion, ...]:
    said = plan.evaluation.get("evaluator")
    if not said:
        return ()
    remarks = (
        OpinionRemark(task=one["task"], severity=Severity(one["severity"]), text=one["text"])
        for one in said["findings"]
    )
    return (
        Opinion(
            id=said["plan_id"],
            agent=said["agent"],
            model=said["model"],
            summary=said["summary"],
            findings=tuple(remarks),
        ),
    )


def _looked(attempts: Iterable[Attempt]) -> list[tuple[Attempt, QaReport]]:
    ordered = sorted(attempts, key=lambda one: (one.created_at, one.id))
    return [(one, one.qa) for one in ordered if one.qa is not None]


def _qa_reviews(tasks: Iterable[Task], attempts: Iterable[Attempt]) -> tuple[QaReviewEntry, ...]:
    keys = {task.key: task.id for task in tasks}
    return tuple(
        QaReviewEntry(
            id=attempt.id,
            task_id=attempt.task_id,
            run_id=attempt.run_id,
            commit=attempt.base_sha,
            state=attempt.state,
            mode=report.mode,
            areas=tuple(one.area for one in report.checked),
            issues=len(report.issues),
            by_gate=sum(one.by_gate for one in report.issues),
            fixes=tuple(keys[one.fix] for one in report.issues if one.fix in keys),
            report_sha256=report.sha256,
        )
        for attempt, report in _looked(attempts)
    )


def _qa_reports(attempts: Iterable[Attempt]) -> tuple[QaReportEntry, ...]:
    return tuple(
        QaReportEntry(
            id=attempt.id,
            summary=report.summary,
            checked=report.checked,
            issues=tuple(
                ReportedIssue(**_same(ReportedIssue, one)) for one in report.issues if not one.by_gate
            ),
        )
        for attempt, report in _looked(attempts)
    )


def _run(run: Run, ended_event: str | None) -> RunEntry:
    return RunEntry(
        **_same(RunEntry, run, "ended_event", "usage"), ended_event=ended_event, usage=run.usage or Usage()
    )


def _finish(finish: Finish) -> FinishEntry:
    return FinishEntry(**_same(FinishEntry, finish))


def _without_repeats(finishes: Iterable[Finish]) -> list[Finish]:
    """Return the finishes in order, without those that repeat an earlier one because all work was already there."""
    found: list[Finish] = []
    for one in sorted(finishes, key=lambda f: (f.created_at, f.id)):
        idle = one.state is FinishState.FINISHED and one.commit_sha == one.target_sha is not None
        before = [each.tasks for each in found if each.state is FinishState.FINISHED]
        if not idle or one.tasks not in before:
            found.append(one)
    return found
