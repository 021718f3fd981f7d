"""Traces: one per plan, with a span for each attempt and for each run of an agent, a gate or a setup.

The ids come from those of the rows, so a span that is sent twice is the same span.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from loopwright.core.rows.events import RecordedEvent
from loopwright.core.rows.model import AGENT_ROLES, Attempt, Plan, Run, Task, Usage
from loopwright.core.values.findings import VerdictStatus
from loopwright.core.values.states import AttemptState, PlanState, RunState
from loopwright.core.values.wording import clean, one_line, shortened

OF_USE: Final = timedelta(days=1)
"""An older event makes no span: it is from before the time when traces were wanted."""
_LONGEST: Final = 300
_MOST: Final = 50
PLAN_ENDS: Final = ("plan_verified", "plan_failed", "plan_cancelled")
_ATTEMPT_ENDS: Final = ("attempt_landed", "attempt_rejected", "attempt_broken", "attempt_cancelled")
TYPES: Final = (*PLAN_ENDS, *_ATTEMPT_ENDS, "run_ended")
"""The types of event that make a span."""

Value = str | bool | int | float | Sequence[str] | Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What lasted from one moment to another."""

    trace_id: int
    span_id: int
    parent_id: int | None
    name: str
    began_at: datetime
    ended_at: datetime
    error: str | None
    """Why it failed, perhaps empty; None if it did not."""
    attributes: Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The rows that an event is about."""

    plan: Plan
    task: Task | None
    attempt: Attempt | None
    run: Run | None
    earlier_end: RecordedEvent | None
    """The last end of the plan before this event, if it is not the first one."""


def span_of(event: RecordedEvent, about: Subject) -> Span | None:
    """Return the span that an event of one of these types ends; None if its rows are gone."""
    if event.type in PLAN_ENDS:
        return _of_plan(event, about)
    if event.type in _ATTEMPT_ENDS:
        return None if about.attempt is None else _of_attempt(event, about, about.attempt)
    return None if about.run is None else _of_run(event, about, about.run)


def _of_plan(event: RecordedEvent, about: Subject) -> Span:
    plan, earlier = about.plan, about.earlier_end
    # An ended plan that was given more to do continues in its trace, below its first end.
    own, parent, began = (
        (plan.id, plan.made_for, plan.created_at) if earlier is None else (event.id, plan.id, earlier.at)
    )
    status = PlanState(event.type.removeprefix("plan_").upper())
    more: dict[str, Value | None] = {
        "loopwright.plan.title": one_line(plan.title),
        "loopwright.plan.status": status.value,
        "loopwright.plan.base": plan.base_sha,
        "loopwright.plan.result": plan.result_sha,
        "loopwright.cost_usd": plan.spent_micros / 1_000_000,
        "loopwright.unknown_costs": plan.unknown_costs,
    }
    return _span(
        about,
        own,
        parent,
        name="plan",
        began_at=began,
        ended_at=event.at,
        error=plan.reason if status is PlanState.FAILED else None,
        more=more,
    )


def _of_attempt(event: RecordedEvent, about: Subject, attempt: Attempt) -> Span:
    failed = attempt.state in (AttemptState.REJECTED, AttemptState.BROKEN)
    why = [attempt.failure.value if attempt.failure else "", attempt.detail]
    more: dict[str, Value | None] = {
        "loopwright.attempt.id": attempt.id,
        "loopwright.attempt.n": attempt.n,
        "loopwright.attempt.state": attempt.state.value,
        "loopwright.attempt.failure": attempt.failure.value if attempt.failure else None,
        "gen_ai.agent.name": attempt.agent,
        "gen_ai.request.model": attempt.model,
    }
    return _span(
        about,
        attempt.id,
        about.plan.id,
        name=f"attempt {one_line(about.task.key)}" if about.task else "attempt",
        began_at=attempt.created_at,
        ended_at=attempt.ended_at or event.at,
        error=": ".join(filter(None, why)) if failed else None,
        more=more,
    )


def _of_run(event: RecordedEvent, about: Subject, run: Run) -> Span:
    is_agent = run.role in AGENT_ROLES
    verdict = run.verdict
    failed = run.state is RunState.ERROR or (verdict is not None and verdict.status is VerdictStatus.FAILED)
    more: dict[str, Value | None] = {
        "loopwright.run.id": run.id,
        "loopwright.run.role": run.role.value,
        "loopwright.run.state": run.state.value,
        "loopwright.run.failure": run.failure.value if run.failure else None,
        "loopwright.run.sandbox": run.sandbox,
        "process.exit.code": run.exit_code,
    }
    if is_agent:
        more |= {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": run.agent,
            "gen_ai.agent.version": run.agent_version,
            "gen_ai.request.model": run.model,
            "gen_ai.conversation.id": run.session_ref,
            **(_tokens(run.usage) if run.usage else {}),
            "loopwright.cost_usd": None if run.cost_micros is None else run.cost_micros / 1_000_000,
            "loopwright.cost_estimated": run.cost_estimated,
        }
    if verdict is not None:
        more |= {
            "loopwright.gate.status": verdict.status.value,
            "loopwright.gate.commands": [one_line(one.command) for one in verdict.commands[:_MOST]],
            "loopwright.gate.seconds": [one.duration_s for one in verdict.commands[:_MOST]],
            "loopwright.gate.refused": [one_line(one.command) for one in verdict.commands if one.refused][
                :_MOST
            ],
            "loopwright.gate.reused_run": run.reused_run_id,
        }
    return _span(
        about,
        run.id,
        run.attempt_id or about.plan.id,
        name=f"invoke_agent {run.agent}" if is_agent else run.role.value,
        began_at=run.started_at or run.created_at,
        ended_at=run.ended_at or event.at,
        error=(verdict.reason if verdict else run.summary) if failed else None,
        more=more,
    )


def _tokens(usage: Usage) -> dict[str, Value | None]:
    """Return the tokens of a run; the convention counts those from and for the cache as input too."""
    read, written = usage.cache_read_tokens, usage.cache_write_tokens
    given = None if usage.input_tokens is None else usage.input_tokens + (read or 0) + (written or 0)
    return {
        "gen_ai.usage.input_tokens": given,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": read,
        "gen_ai.usage.cache_creation.input_tokens": written,
    }


def _span(
    about: Subject,
    own: str,
    parent: str | None,
    *,
    name: str,
    began_at: datetime,
    ended_at: datetime,
    error: str | None,
    more: Mapping[str, Value | None],
) -> Span:
    plan, task = about.plan, about.task
    every: dict[str, Value | None] = {
        "loopwright.plan.id": plan.id,
        "loopwright.project.id": plan.project_id,
        "loopwright.loop.id": plan.loop_id,
        "loopwright.task.key": one_line(task.key) if task else None,
        "loopwright.task.type": one_line(task.type) if task and task.type else None,
        **more,
    }
    return Span(
        # A plan that only asks an agent something belongs to the one that the answer is for.
        trace_id=_number(f"trace of {plan.made_for or plan.id}", 16),
        span_id=_number(own, 8),
        parent_id=_number(parent, 8) if parent else None,
        name=name,
        began_at=began_at,
        ended_at=max(began_at, ended_at),
        error=None if error is None else shortened(clean(error), _LONGEST),
        attributes=MappingProxyType({name: value for name, value in every.items() if value is not None}),
    )


def _number(id: str, size: int) -> int:
    """Return a number for an id: of 16 bytes for a trace, of 8 for a span. Zero would mean that there is none."""
    return int.from_bytes(hashlib.sha256(id.encode()).digest()[-size:]) or 1
