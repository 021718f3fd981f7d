"""What follows from the facts of a receipt alone: outcomes, sums, gaps and notes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from loopwright.core.gates.gates import Commands
from loopwright.core.gates.verdicts import gate_key, plan_outcome, task_outcome
from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.policy.red_first import must_show
from loopwright.core.receipts.gaps import (
    Gap,
    GapCode,
    Note,
    flaky_gap,
    foreign_gap,
    installed_gap,
    known_failures_gap,
    landing_gaps,
    left_open_gap,
    uncompared_gap,
)
from loopwright.core.receipts.model import (
    CostSum,
    PlanEntry,
    ReceiptFacts,
    RunEntry,
    Sum,
    TaskFacts,
    UsageSums,
    VerdictEntry,
)
from loopwright.core.receipts.notes import notes_of
from loopwright.core.receipts.verdicts import (
    Verdicts,
    found_status,
    held_out_commands,
    held_out_tasks,
    latest_verdicts,
    pinned_commands,
    result_commands,
    task_commands,
)
from loopwright.core.rows.model import Outcome
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import VerdictStatus
from loopwright.core.values.states import AttemptState, PlanState, TaskState

_Judged = tuple[VerdictEntry | None, Commands]
_QUOTA: Final = frozenset({Failure.USAGE_LIMIT, Failure.RATE_LIMIT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """What follows from the facts; the names are those of the receipt."""

    outcome: Outcome
    outcomes: dict[str, Outcome]
    """By the id of each task."""
    cost: CostSum
    usage: UsageSums
    gaps: tuple[Gap, ...]
    notes: tuple[Note, ...]
    not_checked: tuple[str, ...]


def derive(body: ReceiptFacts) -> Derived:
    """Compute outcomes, sums, gaps and notes from the facts alone."""
    plan, latest = body.plan, latest_verdicts(body)
    outcomes: dict[str, Outcome] = {}
    task_gaps: list[Gap] = []
    flaky: set[str] = set()
    for task in body.tasks:
        judgements = _judgements(plan, task, latest)
        flaky.update(_flaky([entry for entry, _ in judgements]))
        outcomes[task.id], gaps = _judged(body, task, latest, judgements)
        task_gaps += gaps
    asked = [result_commands(body), *(commands for _, commands in held_out_tasks(body))]
    statuses = [found_status(latest.get((plan.result_tree, gate_key(one))), one) for one in asked]
    final = next((one for one in statuses if one is not VerdictStatus.PASSED), VerdictStatus.PASSED)
    judged = [found for one in asked if (found := latest.get((plan.result_tree, gate_key(one))))]
    result_gaps = _result_gaps(plan, judged, flaky)
    outcome = plan_outcome(
        # A manual step that the user settled says nothing about the tree: a note names it.
        tasks=[outcomes[task.id] for task in body.tasks if not task.is_settled_by_hand],
        final=final,
        cancelled=plan.status is PlanState.CANCELLED,
        capped=bool(result_gaps),
    )
    refused = plan.status is PlanState.FAILED or (plan.contradicted and not _is_allowed(plan))
    if refused and outcome in (Outcome.VERIFIED, Outcome.VERIFIED_WITH_GAPS):
        outcome = Outcome.NOT_VERIFIED  # the result contradicts checks of the base commit
    told = {left_open_gap(what, task.key) for what in _left_open(judged) for task in body.tasks}
    gaps = [*_not_passed(final), *result_gaps, *(one for one in task_gaps if one not in told)]
    notes = notes_of(body)
    spent = [run for run in body.runs if run.agent is not None and run.started_at is not None]
    return Derived(
        outcome=outcome,
        outcomes=outcomes,
        cost=_cost(spent),
        usage=_usage(spent),
        gaps=tuple(gaps),
        notes=tuple(notes),
        not_checked=(*(one.cause for one in gaps), *(one.text for one in notes)),
    )


def _judged(
    body: ReceiptFacts, task: TaskFacts, latest: Verdicts, judged: Sequence[_Judged]
) -> tuple[Outcome, list[Gap]]:
    """Return what the facts prove about one task, and its gaps."""
    found = [found_status(entry, commands) for entry, commands in judged]
    if len(found) > 1 and found[1] is VerdictStatus.FAILED and _is_allowed(task.gate_files):
        found[1] = VerdictStatus.PASSED
    refused = [status for status in found if status is not VerdictStatus.PASSED]
    by_word = task.is_passed_by_word
    gaps = _landing_gaps(body, task) if task.landed_sha is not None else []
    entries = [entry for entry, _ in judged if entry]
    if flaky := _flaky(entries):
        gaps.append(flaky_gap(flaky, task.key))
    gaps += [left_open_gap(what, task.key) for what in _left_open(entries)]
    outcome = task_outcome(
        status=task.status,
        landed=task.landed_sha is not None,
        verdict=VerdictStatus.UNVERIFIED if by_word else refused[0] if refused else VerdictStatus.PASSED,
        waits_for_quota=_waits_for_quota(task),
        capped=bool(gaps),
    )
    return outcome, [*_undone(task, outcome, by_word=by_word), *gaps, *_unseen_gaps(body, task, latest)]


def _is_allowed(facts: GateFiles | PlanEntry) -> bool:
    """Return whether each existing check that the work contradicts was allowed."""
    checks, by = facts.contradicted, facts.allowed_by
    return bool(checks) and len(checks) == len(by) and all(by)


def _judgements(plan: PlanEntry, task: TaskFacts, latest: Verdicts) -> list[_Judged]:
    """Return the verdicts on what a task had to pass, each with its commands."""
    pinned = task.gate_files.pinned_tree
    asked = [(task.tree, task_commands(plan, task))]
    # If all commands name only new tests, none may be left for the old judging files.
    if pinned and (old := pinned_commands(plan, task)):
        asked.append((pinned, old))
    if held := held_out_commands(plan, task):
        asked.append((pinned or task.tree, held))
    return [(latest.get((tree, gate_key(commands))), commands) for tree, commands in asked]


def _landing_gaps(body: ReceiptFacts, task: TaskFacts) -> list[Gap]:
    review = body.review_of(task)
    return landing_gaps(
        task.key,
        task.gate_files,
        must_show=must_show(task.origin, task.type, prove=task.prove),
        review=review.state if review else None,
        problem=review.problem if review else "",
        shown_whole=review is not None and review.shown_whole,
        held_out=bool(task.held_out),
        unseen_proof=body.plan.policy.unseen_proof,
        has_acceptance=bool(task.acceptance),
    )


def _undone(task: TaskFacts, outcome: Outcome, *, by_word: bool) -> list[Gap]:
    """Return the gap of a task that was cancelled or not checked."""
    key = task.key
    if task.is_settled_by_hand:
        return []
    if outcome is Outcome.CANCELLED:
        return [
            Gap(
                code=GapCode.TASK_CANCELLED,
                task=key,
                cause=f"task {key!r} was cancelled, so its work is not in the result",
                remedy="Merge without it, or run it again with `loopwright retry TASK`.",
            )
        ]
    if outcome is not Outcome.UNVERIFIED:
        return []
    cause = f"a person accepted task {key!r}: nothing was checked"
    return [
        Gap(
            code=GapCode.PASSED_BY_PERSON if by_word else GapCode.NOT_CHECKED,
            task=key,
            cause=cause
            if by_word
            else f"task {key!r} landed unchecked: it has no acceptance and the plan has no gates",
            remedy="Look at it before you merge." if by_word else "Add a gate, or acceptance to the task.",
        )
    ]


def _unseen_gaps(body: ReceiptFacts, task: TaskFacts, latest: Verdicts) -> list[Gap]:
    """Return the gap of a task whose held-out checks do not prove the result."""
    if not task.held_out or task.landed_sha is None:
        return []
    commands = held_out_commands(body.plan, task)
    entry = latest.get((body.plan.result_tree, gate_key(commands)))
    if found_status(entry, commands) is VerdictStatus.PASSED:
        return []
    how = "ran when it landed, not on the result" if entry is None else "do not pass on the result"
    return [
        Gap(
            code=GapCode.HELD_OUT_NOT_RUN if entry is None else GapCode.HELD_OUT_FAILED,
            task=task.key,
            cause=f"the held-out checks of task {task.key!r} {how}",
            remedy="Run `loopwright reverify` once the plan has ended.",
        )
    ]


def _result_gaps(plan: PlanEntry, judged: Sequence[VerdictEntry], told: Collection[str]) -> list[Gap]:
    """Return the gaps of the result itself: failures only while tasks landed are not.

    `told` are the flaky checks that gaps of tasks already name.
    """
    commands = [command for entry in judged for command in entry.commands]
    gaps = []
    if count := sum(command.known_failures for command in commands):
        names = dict.fromkeys(name for command in commands for name in command.known_failed)
        gaps.append(known_failures_gap(count, [*names]))
    if flaky := [name for name in _flaky(judged) if name not in told]:
        gaps.append(flaky_gap(flaky))
    gaps += [uncompared_gap(why) for why in dict.fromkeys(one.unknown_before for one in judged) if why]
    gaps += [left_open_gap(what) for what in _left_open(judged)]
    if commits := [f"{one.sha[:10]} {one.subject}" for one in plan.not_ours]:
        gaps.append(foreign_gap(commits, sorted({path for one in plan.not_ours for path in one.gate_files})))
    if installed := [one.name for one in plan.gates if one.name in plan.policy.installed_gates]:
        gaps.append(installed_gap(installed))
    return gaps


def _not_passed(final: VerdictStatus | None) -> list[Gap]:
    """Return why the result as a whole is not verified."""
    if final is VerdictStatus.PASSED:
        return []
    if final is VerdictStatus.UNVERIFIED:
        return [
            Gap(
                code=GapCode.NO_GATE,
                cause="nothing is configured to check the final tree",
                remedy="Add a gate (`loopwright init` proposes some), or acceptance to the tasks.",
            )
        ]
    return [
        Gap(
            code=GapCode.RESULT_NOT_PASSED,
            cause="gate:all has not passed on exactly the tree of the result",
            remedy="Fix what `loopwright status` names, then run `loopwright reverify`.",
        )
    ]


def _left_open(entries: Sequence[VerdictEntry]) -> list[str]:
    return list(dict.fromkeys(text for entry in entries for text in entry.left_open))


def _flaky(entries: Sequence[VerdictEntry | None]) -> list[str]:
    return sorted(
        {name for entry in entries if entry for command in entry.commands for name in command.flaky}
    )


def _waits_for_quota(task: TaskFacts) -> bool:
    if task.status not in (TaskState.QUEUED, TaskState.RUNNING):
        return False
    waiting = [a for a in task.attempts if a.state is AttemptState.WAITING]
    return task.failure in _QUOTA or any(a.failure in _QUOTA or a.wait_reason in _QUOTA for a in waiting)


def _cost(spent: Sequence[RunEntry]) -> CostSum:
    costs = _sum([run.cost_micros for run in spent])
    return CostSum(
        total=costs.total,
        complete=costs.complete,
        unknown_runs=costs.unknown_runs,
        estimated_runs=sum(run.cost_estimated for run in spent),
    )


def _usage(spent: Sequence[RunEntry]) -> UsageSums:
    return UsageSums(
        input_tokens=_sum([run.usage.input_tokens for run in spent]),
        output_tokens=_sum([run.usage.output_tokens for run in spent]),
        cache_read_tokens=_sum([run.usage.cache_read_tokens for run in spent]),
        cache_write_tokens=_sum([run.usage.cache_write_tokens for run in spent]),
    )


def _sum(values: Sequence[int | None]) -> Sum:
    known = [value for value in values if value is not None]
    total = sum(known) if known or not values else None
    return Sum(total=total, complete=len(known) == len(values), unknown_runs=len(values) - len(known))
