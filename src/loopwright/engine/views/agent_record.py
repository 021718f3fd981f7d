"""The record of each agent and model from rows alone: tasks, first passes, cost, and caught cheating."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from loopwright.core.gates.contradictions import is_tampered
from loopwright.core.rows.model import AGENT_ROLES, Attempt, Run, Task, VerdictRecord
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Verdict
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import AttemptState
from loopwright.ports import Tx

_JUDGED = (AttemptState.LANDED, AttemptState.REJECTED)
_AT_ONCE = 100
"""Databases limit the number of values in one query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeRecord:
    """The record of an agent at tasks of one type."""

    task_type: str
    """As the source names it; empty if the source names none."""
    tasks: int
    first_pass: int
    first_pass_rate: float
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRecord:
    """The record of one agent with one model."""

    agent: str
    model: str
    """Empty for the agent's own default."""
    tasks: int
    """Tasks whose first judged attempt was by this agent."""
    first_pass: int
    """How many of these landed with that attempt and were not taken back."""
    first_pass_rate: float | None
    attempts: int
    """Attempts that were judged."""
    refusals: int
    """Attempts at which the model refused the task."""
    caught_by_witness: int
    """Rejected attempts whose test run was manipulated."""
    caught_by_old_checks: int
    """Rejected attempts that passed with their changed checks, but not with the old ones."""
    runs: int
    cost_micros: int
    unknown_costs: int
    """Ended runs of unknown cost: the sum does not include them."""
    cost_estimated: bool
    types: tuple[TypeRecord, ...]


class _Run(NamedTuple):
    """The columns of a run that count."""

    agent: str | None
    model: str | None
    attempt_id: str | None
    started_at: datetime | None
    ended_at: datetime | None
    cost_micros: int | None
    cost_estimated: bool


@dataclass(slots=True)
class _Counts:
    types: dict[str, list[int]] = field(default_factory=dict)
    """Tasks, first passes and attempts by the type of the task."""
    refusals: int = 0
    witness: int = 0
    old_checks: int = 0
    runs: list["_Run"] = field(default_factory=list)


def agent_records(tx: Tx, plans: Mapping[str, Policy]) -> tuple[AgentRecord, ...]:
    """Return the record of each agent and model in plans, by their ids: those with most tasks first."""
    found: dict[tuple[str, str], _Counts] = {}
    ids = list(plans)
    for start in range(0, len(ids), _AT_ONCE):
        part = ids[start : start + _AT_ONCE]
        _count(tx, part, [one for one in part if plans[one].answer is None], found)
    records = (_record(agent, model, counts) for (agent, model), counts in found.items())
    return tuple(sorted(records, key=lambda one: (-one.tasks, -one.runs, one.agent, one.model)))


def _count(tx: Tx, ids: Sequence[str], works: Sequence[str], found: dict[tuple[str, str], _Counts]) -> None:
    rows = map(_Run._make, tx.columns(Run, _Run._fields, plan_id=ids, role=AGENT_ROLES))
    runs = [one for one in rows if one.started_at is not None]
    for run in runs:
        _of(found, run.agent or "", run.model).runs.append(run)
    if not works:
        return
    # Work by the user is not an agent's work.
    started = {one.attempt_id for one in runs}
    types: dict[str, str] = dict(tx.columns(Task, ("id", "type"), plan_id=works))
    tries: dict[str, list[Attempt]] = {}
    for attempt in tx.find(Attempt, plan_id=works, order_by=("n",)):
        if attempt.id not in started:
            continue
        if attempt.failure is Failure.REFUSAL:
            _of(found, attempt.agent, attempt.model).refusals += 1
        # A QA review that found something did its job: it is not a failed attempt.
        if attempt.state in _JUDGED and attempt.failure is not Failure.ISSUES:
            tries.setdefault(attempt.task_id, []).append(attempt)
    verdicts = _verdicts(tx, works, (one for each in tries.values() for one in each))
    for task_id, judged in tries.items():
        task_type, first = types[task_id], judged[0]
        counts = _of(found, first.agent, first.model).types.setdefault(task_type, [0, 0, 0])
        counts[0] += 1
        # If more followed, the user took the first one back.
        counts[1] += len(judged) == 1 and first.state is AttemptState.LANDED
        for attempt in judged:
            mine = _of(found, attempt.agent, attempt.model)
            mine.types.setdefault(task_type, [0, 0, 0])[2] += 1
            if attempt.state is AttemptState.REJECTED:
                by_witness, by_old_checks = _caught(attempt, verdicts)
                mine.witness += by_witness
                mine.old_checks += by_old_checks


def _of(found: dict[tuple[str, str], _Counts], agent: str, model: str | None) -> _Counts:
    return found.setdefault((agent, model or ""), _Counts())


def _verdicts(
    tx: Tx, plans: Sequence[str], attempts: Iterable[Attempt]
) -> dict[tuple[str, str], list[Verdict]]:
    """Return the verdicts on the trees of rejected attempts, by plan and tree."""
    trees = {
        tree
        for one in attempts
        if one.state is AttemptState.REJECTED
        for tree in (one.candidate_tree, one.gate_files.pinned_tree if one.gate_files else None)
        if tree
    }
    found: dict[tuple[str, str], list[Verdict]] = {}
    for record in tx.find(VerdictRecord, plan_id=plans) if trees else ():
        if record.tree in trees:
            found.setdefault((record.plan_id, record.tree), []).append(record.verdict)
    return found


def _caught(attempt: Attempt, verdicts: dict[tuple[str, str], list[Verdict]]) -> tuple[bool, bool]:
    """Return whether the witness rejected an attempt, and whether the old checks did."""
    own = verdicts.get((attempt.plan_id, attempt.candidate_tree or ""), [])
    if any(one.tampered for one in own):
        return True, False
    pinned = attempt.gate_files.pinned_tree if attempt.gate_files else None
    old = verdicts.get((attempt.plan_id, pinned or ""), [])
    if any(one.tampered for one in old):
        return True, False
    return False, attempt.failure is Failure.CONTRADICTION or any(map(is_tampered, old))


def _record(agent: str, model: str, counts: _Counts) -> AgentRecord:
    types = tuple(
        TypeRecord(
            task_type=name,
            tasks=tasks,
            first_pass=passed,
            first_pass_rate=passed / tasks if tasks else 0.0,
            attempts=attempts,
        )
        for name, (tasks, passed, attempts) in sorted(counts.types.items())
    )
    tasks, passed = sum(one.tasks for one in types), sum(one.first_pass for one in types)
    return AgentRecord(
        agent=agent,
        model=model,
        tasks=tasks,
        first_pass=passed,
        first_pass_rate=passed / tasks if tasks else None,
        attempts=sum(one.attempts for one in types),
        refusals=counts.refusals,
        caught_by_witness=counts.witness,
        caught_by_old_checks=counts.old_checks,
        runs=len(counts.runs),
        cost_micros=sum(one.cost_micros or 0 for one in counts.runs),
        unknown_costs=sum(one.cost_micros is None and one.ended_at is not None for one in counts.runs),
        cost_estimated=any(one.cost_estimated for one in counts.runs),
        types=types,
    )
