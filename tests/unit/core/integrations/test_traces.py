"""Which events end a span, and what is in it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.cases import each_case
from tests.contracts.store import rows

from loopwright.core.integrations.traces import TYPES, Span, Subject, span_of
from loopwright.core.rows.events import CATALOGUE, RecordedEvent
from loopwright.core.rows.model import Role, Run, Usage
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import CommandResult, Verdict, VerdictStatus
from loopwright.core.values.ids import Kind
from loopwright.core.values.states import AttemptState, RunState

PLAN = rows.plan(rows.loop(rows.project()), title="Add\nlogin", reason="the gate failed")
TASK = rows.task(PLAN, key="limiter", type="feature")
ATTEMPT = replace(rows.attempt(TASK), n=2, state=AttemptState.REJECTED, failure=Failure.GATE, detail="exit 1")
LATER = rows.AT + timedelta(seconds=5)
RUN = Run(
    id=rows.new_id(Kind.RUN),
    plan_id=PLAN.id,
    attempt_id=ATTEMPT.id,
    role=Role.IMPLEMENTER,
    state=RunState.COMPLETE,
    agent="claude",
    model="m1",
    usage=Usage(input_tokens=10, output_tokens=3, cache_read_tokens=100, cache_write_tokens=7),
    cost_micros=2_500_000,
    exit_code=0,
    created_at=rows.AT,
    started_at=rows.AT + timedelta(seconds=1),
    ended_at=LATER,
)
RED = Verdict(
    status=VerdictStatus.FAILED,
    reason="1 of 2 failed",
    commands=tuple(
        CommandResult(
            name="g", command=f"make {n}", exit_code=n, duration_s=n, output_sha256="", output_bytes=0
        )
        for n in (0, 1)
    ),
)
GATE = replace(RUN, role=Role.GATE, agent=None, usage=None, cost_micros=None, verdict=RED)


def said(type: str, **payload: Any) -> RecordedEvent:
    """Return an event as stored."""
    return RecordedEvent(
        type=type, actor="machine", payload=payload, n=7, id="evt_7", at=LATER, prev_hash="", hash=""
    )


def about(**changes: Any) -> Subject:
    """Return the rows of an event of a plan."""
    given: dict[str, Any] = {"plan": PLAN, "task": None, "attempt": None, "run": None, "earlier_end": None}
    return Subject(**{**given, **changes})


def span(type: str, **changes: Any) -> Span:
    """Return the span of an event."""
    found = span_of(said(type), about(**changes))
    assert found is not None
    return found


def test_only_known_types_of_event_end_a_span() -> None:
    assert set(TYPES) <= CATALOGUE.keys()


def test_a_plan_is_the_root_of_its_trace() -> None:
    root = span("plan_verified")
    assert (root.parent_id, root.name, root.error) == (None, "plan", None)
    assert (root.began_at, root.ended_at) == (PLAN.created_at, LATER)
    assert root.attributes["loopwright.plan.title"] == "Add login"
    assert 0 < root.trace_id < 2**128
    assert 0 < root.span_id < 2**64
    assert span("plan_failed").error == "the gate failed"
    assert span("plan_cancelled").error is None
    assert "loopwright.task.key" not in root.attributes


def test_a_plan_that_ended_before_continues_below_its_first_end() -> None:
    first = span("plan_failed")
    again = span("plan_verified", earlier_end=replace(said("plan_failed"), at=rows.AT))
    assert (again.trace_id, again.parent_id) == (first.trace_id, first.span_id)
    assert again.span_id != first.span_id
    assert (again.began_at, again.ended_at) == (rows.AT, LATER)


def test_a_plan_that_only_asks_belongs_to_the_one_that_it_is_for() -> None:
    asking = span_of(said("plan_verified"), about(plan=replace(PLAN, id="plan_asks", made_for=PLAN.id)))
    assert asking is not None
    assert (asking.trace_id, asking.parent_id) == (
        span("plan_verified").trace_id,
        span("plan_verified").span_id,
    )
    alone = span_of(said("plan_verified"), about(plan=replace(PLAN, made_for="")))
    assert alone is not None
    assert alone.parent_id is None


@each_case(
    "state, event, error",
    [
        (AttemptState.REJECTED, "attempt_rejected", "gate: exit 1"),
        (AttemptState.BROKEN, "attempt_broken", "gate: exit 1"),
        (AttemptState.LANDED, "attempt_landed", None),
        (AttemptState.CANCELLED, "attempt_cancelled", None),
    ],
)
def test_an_attempt_is_below_its_plan(state: AttemptState, event: str, error: str | None) -> None:
    one = span(event, task=TASK, attempt=replace(ATTEMPT, state=state))
    assert (one.name, one.error, one.parent_id) == (
        "attempt limiter",
        error,
        span("plan_verified").span_id,
    )
    assert (one.attributes["loopwright.attempt.n"], one.attributes["loopwright.task.type"]) == (2, "feature")


def test_an_attempt_that_says_nothing_has_a_span_too() -> None:
    one = span("attempt_broken", attempt=replace(ATTEMPT, state=AttemptState.BROKEN, failure=None, detail=""))
    assert (one.name, one.error) == ("attempt", "")


def test_a_run_of_an_agent_has_its_tokens_by_the_convention() -> None:
    one = span("run_ended", task=TASK, attempt=ATTEMPT, run=RUN)
    attempt = span("attempt_rejected", task=TASK, attempt=ATTEMPT)
    assert (one.name, one.parent_id, one.error) == ("invoke_agent claude", attempt.span_id, None)
    assert (one.began_at, one.ended_at) == (RUN.started_at, LATER)
    told = one.attributes
    assert (told["gen_ai.usage.input_tokens"], told["gen_ai.usage.output_tokens"]) == (117, 3)
    assert (told["loopwright.cost_usd"], told["gen_ai.request.model"]) == (2.5, "m1")


def test_what_is_unknown_is_left_out() -> None:
    unknown = replace(RUN, usage=Usage(output_tokens=3), cost_micros=None, attempt_id=None, started_at=None)
    one = span("run_ended", run=replace(unknown, state=RunState.ERROR, summary="lost", ended_at=None))
    assert not {"gen_ai.usage.input_tokens", "loopwright.cost_usd"} & one.attributes.keys()
    assert (one.error, one.parent_id) == ("lost", span("plan_verified").span_id)
    assert (one.began_at, one.ended_at) == (rows.AT, LATER)
    assert "gen_ai.usage.output_tokens" not in span("run_ended", run=replace(RUN, usage=None)).attributes


def test_a_gate_has_its_verdict_and_commands() -> None:
    one = span("run_ended", run=GATE)
    assert (one.name, one.error) == ("gate", "1 of 2 failed")
    assert one.attributes["loopwright.gate.commands"] == ["make 0", "make 1"]
    assert one.attributes["loopwright.gate.seconds"] == [0, 1]
    assert one.attributes["loopwright.gate.refused"] == ["make 1"]
    assert not any(name.startswith("gen_ai") for name in one.attributes)
    green = replace(GATE, verdict=replace(RED, status=VerdictStatus.PASSED))
    assert span("run_ended", run=green).error is None


def test_what_is_gone_has_no_span() -> None:
    assert span_of(said("run_ended"), about()) is None
    assert span_of(said("attempt_landed"), about()) is None


def test_a_clock_that_went_back_makes_no_span_of_negative_length() -> None:
    one = span("run_ended", run=replace(RUN, ended_at=rows.AT))
    assert one.ended_at == one.began_at == RUN.started_at
