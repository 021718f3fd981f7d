"""Who takes a task over for good, and after which failures."""

from datetime import timedelta
from typing import Any

from tests.cases import each_case
from tests.contracts.store import rows
from tests.wording_plugin import Wording

from loopwright.core.policy.decide import Front, Frontier, StartAttempt, WakeAttempt, decide
from loopwright.core.policy.fallback import after, chain, entry, handed_on, meant, named, why
from loopwright.core.policy.quotas import Choice, envelope_id
from loopwright.core.rows.model import Task
from loopwright.core.rows.waiting_rows import Envelope
from loopwright.core.values.failures import RULES, Failure
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import AttemptState, EnvelopeState, LoopState, PlanState

PLAN = rows.plan(rows.loop(rows.project()))
POLICY = Policy(agent="claude", model="big", fallback=("codex", "claude:small"), max_call_retries=2)
FOR_GOOD = {Failure.OVERLOADED, Failure.MODEL, Failure.REFUSAL, Failure.CONTEXT}


def task(**changes: Any) -> Task:
    return rows.task(PLAN, **changes)


def test_an_entry_is_an_agent_and_perhaps_a_model() -> None:
    assert [named("codex"), named("opencode:vendor/model:free")] == [
        ("codex", None),
        ("opencode", "vendor/model:free"),
    ]
    assert [entry(*named(one)) for one in POLICY.fallback] == list(POLICY.fallback)


def test_the_chain_begins_with_the_agent_that_was_meant_and_names_nobody_twice() -> None:
    assert chain(task(), POLICY) == ("claude:big", "codex", "claude:small")
    assert chain(task(agent="codex", model=""), Policy(fallback=("codex", "goose"))) == ("codex", "goose")


def test_each_that_handed_it_on_is_passed_over() -> None:
    assert [meant(task(passed_over=n), POLICY) for n in range(4)] == [
        ("claude", "big"),
        ("codex", None),
        ("claude", "small"),
        ("claude", "small"),
    ]
    assert after(task(passed_over=1), POLICY) == ("claude:small",)


@each_case("failure", Failure)
def test_only_what_another_model_may_do_is_handed_on_for_good(failure: Failure) -> None:
    tried = task(call_failures=2)
    assert handed_on(tried, failure, POLICY) == (("codex", None) if failure in FOR_GOOD else None)
    assert handed_on(task(call_failures=2, passed_over=2), failure, POLICY) is None, "nobody is left"
    assert handed_on(tried, failure, Policy(max_call_retries=2)) is None


def test_an_overload_is_handed_on_only_when_its_retries_are_used_up() -> None:
    assert handed_on(task(call_failures=1), Failure.OVERLOADED, POLICY) is None
    assert handed_on(task(call_failures=2), Failure.OVERLOADED, POLICY) == ("codex", None)
    assert handed_on(task(), Failure.MODEL, POLICY) == ("codex", None), "there a retry is of no use"


def test_why_is_said_with_who_it_was(wording: Wording) -> None:
    wording(why("claude", "big", Failure.REFUSAL))
    wording(why("codex", None, Failure.MODEL))


def decided(*envelopes: Envelope, **front: Any) -> tuple[Any, ...]:
    loop = rows.loop(rows.project(), state=LoopState.RUNNING)
    plan = rows.plan(loop, status=PlanState.RUNNING, policy=POLICY)
    seen = Frontier(
        fronts=(Front(loop=loop, plan=plan, **front),),
        room=4,
        envelopes={one.id: one for one in envelopes},
    )
    return decide(seen, rows.AT).decisions


def closed(agent: str) -> Envelope:
    return Envelope(
        id=envelope_id(agent),
        agent=agent,
        state=EnvelopeState.CLOSED,
        failure=Failure.USAGE_LIMIT,
        until=rows.AT + timedelta(hours=1),
        created_at=rows.AT,
        updated_at=rows.AT,
    )


def test_who_was_passed_over_does_not_take_over_from_a_closed_account_either() -> None:
    passed = task(passed_over=1)
    assert decided(ready=(passed,)) == (StartAttempt(task_id=passed.id),)
    [start] = decided(closed("codex"), ready=(passed,))
    assert isinstance(start, StartAttempt)
    assert start.instead is not None
    assert (start.instead.agent, start.instead.model) == ("claude", "small")
    attempt = rows.attempt(passed, agent="codex", state=AttemptState.WAITING, wake_at=rows.AT)
    woken = decided(closed("codex"), waiting=(attempt,), handed_on={attempt.id: passed})
    because = f"codex is closed: {RULES[Failure.USAGE_LIMIT].advice}"
    assert woken == (
        WakeAttempt(attempt_id=attempt.id, instead=Choice(agent="claude", model="small", because=because)),
    )
    last = task(passed_over=2)
    waiting = rows.attempt(last, agent="claude", state=AttemptState.WAITING, wake_at=rows.AT)
    assert decided(closed("claude"), waiting=(waiting,), handed_on={waiting.id: last}) == ()
