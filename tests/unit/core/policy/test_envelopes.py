"""Who may draw from an account now: everyone, one that finds out, someone else, or nobody."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.cases import each_case
from tests.contracts.store import rows
from tests.wording_plugin import Wording

from loopwright.core.policy.budget import WAITS
from loopwright.core.policy.decide import (
    Decided,
    Front,
    Frontier,
    OpenEnvelope,
    PauseLoop,
    StartAttempt,
    WakeAttempt,
    decide,
)
from loopwright.core.policy.quotas import (
    PROVEN_AFTER,
    Admission,
    Choice,
    Held,
    because,
    envelope_id,
    limited_model,
    named,
    newest,
    noticeable,
    remaining,
    standing,
    unwilling,
)
from loopwright.core.rows.model import Attempt, Plan, Role, Run, Task
from loopwright.core.rows.waiting_rows import Envelope, QuotaKind, QuotaWindow
from loopwright.core.values.failures import Failure
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import EnvelopeState, LoopState, PlanState, RunState

NOW = rows.AT
LATER = NOW + timedelta(hours=1)
ANY = rows.plan(rows.loop(rows.project()))


def envelope(agent: str = "claude", **changes: Any) -> Envelope:
    values = {
        "id": envelope_id(agent),
        "agent": agent,
        "state": EnvelopeState.CLOSED,
        "failure": Failure.USAGE_LIMIT,
        "until": LATER,
        "closed_at": NOW,
        "created_at": NOW,
        "updated_at": NOW,
    }
    return Envelope(**values | changes)


def admission(*envelopes: Envelope) -> Admission:
    return Admission({one.id: one for one in envelopes}, NOW)


def decided(plan: Plan, *envelopes: Envelope, **front: Any) -> Decided:
    loop = rows.loop(rows.project(), state=LoopState.RUNNING)
    fronts = (Front(loop=loop, plan=plan, **front),)
    return decide(Frontier(fronts=fronts, room=4, envelopes={one.id: one for one in envelopes}), NOW)


def plan(**policy: Any) -> Plan:
    return rows.plan(rows.loop(rows.project()), status=PlanState.RUNNING, policy=Policy(parallel=4, **policy))


def task(**changes: Any) -> Task:
    return rows.task(ANY, **changes)


def parked(**changes: Any) -> Attempt:
    return rows.attempt(task(), **{"wake_at": LATER, "envelope_id": "claude/default"} | changes)


def test_an_agent_of_which_nothing_is_known_may_start() -> None:
    assert admission().choose("claude", "m") == Choice(agent="claude", model="m")
    assert admission(envelope(state=EnvelopeState.OPEN)).choose("claude", None).agent == "claude"  # type: ignore[union-attr]


def test_nobody_draws_from_a_closed_envelope_before_its_time() -> None:
    closed = envelope()
    assert admission(closed).choose("claude", None) == Held(envelope=closed, look_again_at=LATER)
    assert isinstance(admission(closed).choose("codex", None), Choice), "another account is another matter"


def test_work_that_a_person_accepted_is_judged_while_its_account_is_closed() -> None:
    accepted = parked(wake_at=NOW, envelope_id=None)
    held = decided(plan(), envelope(agent=accepted.agent), waiting=(accepted,))
    assert held.decisions == ()
    made = decided(
        plan(), envelope(agent=accepted.agent), waiting=(accepted,), decided=frozenset({accepted.id})
    )
    assert made.decisions == (WakeAttempt(attempt_id=accepted.id),)


@pytest.mark.trap("breaker by hand")
@each_case("until", [None, NOW, NOW - timedelta(seconds=1)])
def test_when_the_time_is_over_one_finds_out_and_the_others_wait_for_it(until: Any) -> None:
    half_open = envelope(until=until)
    door = admission(half_open)
    assert door.choose("claude", None) == Choice(agent="claude", model=None, probes=("claude/default",))
    assert door.choose("claude", None) == Held(envelope=half_open, look_again_at=None)


def test_a_clock_that_was_set_back_makes_nobody_wait_for_hours() -> None:
    choice = admission(envelope(updated_at=NOW + timedelta(seconds=1))).choose("claude", None)
    assert isinstance(choice, Choice)
    assert choice.probes == ("claude/default",)


def test_while_one_finds_out_nobody_else_starts_until_it_has_worked_for_a_while() -> None:
    starting = envelope(until=NOW, probe="att_1")
    assert admission(starting).choose("claude", None) == Held(envelope=starting, look_again_at=None)
    working = envelope(until=NOW, probe="att_1", probed_at=NOW - PROVEN_AFTER / 2)
    held = admission(working).choose("claude", None)
    assert held == Held(envelope=working, look_again_at=NOW + PROVEN_AFTER / 2)
    proven = envelope(until=NOW, probe="att_1", probed_at=NOW - PROVEN_AFTER)
    assert list(admission(proven, envelope("codex")).proven) == [proven]
    assert isinstance(admission(proven).choose("claude", None), Choice)


def test_the_first_open_agent_of_the_list_takes_over_and_says_why() -> None:
    door = admission(envelope(), envelope("codex"))
    choice = door.choose("claude", "big", ("codex", "claude:small", "goose:m:7b"))
    assert choice == Choice(
        agent="goose", model="m:7b", because="claude is closed: The account's limit is reached."
    )
    assert isinstance(door.choose("claude", None, ("codex",)), Held)


def of_opus(**changes: Any) -> Envelope:
    return envelope(**{"id": "claude/default:opus", "models": ("opus", "")} | changes)


@each_case("model", ["opus", "claude-opus-5-5", "Claude-Opus-5", None])
def test_a_limit_of_one_model_keeps_that_model_back_and_whoever_was_refused(model: str | None) -> None:
    door = admission(envelope(state=EnvelopeState.OPEN), of_opus())
    assert door.choose("claude", model) == Held(envelope=of_opus(), look_again_at=LATER)
    assert door.account("claude", "att_1", model=model) is None


@each_case("model", ["haiku", "claude-sonnet-5", "opusplan"])
def test_other_models_of_the_account_go_on_and_may_stand_in(model: str) -> None:
    door = admission(of_opus())
    assert door.choose("claude", model) == Choice(agent="claude", model=model)
    assert door.account("claude", "att_1", model=model) == "default"
    stands_in = door.choose("claude", "opus", ("claude:opus-2", f"claude:{model}"))
    told = "claude:opus is closed: The account's limit of opus is reached."
    assert stands_in == Choice(agent="claude", model=model, because=told)


def test_a_name_that_only_begins_with_that_of_the_limited_model_is_another_model() -> None:
    door = admission(of_opus(models=("gemini-2.5-flash",)))
    assert isinstance(door.choose("claude", "gemini-2.5-flash-lite"), Choice)
    assert isinstance(door.choose("claude", "gemini-2.5-flash"), Held)


def test_who_finds_out_about_a_model_of_a_closed_account_finds_out_about_both() -> None:
    both = admission(envelope(until=NOW), of_opus(until=NOW))
    ids = ("claude/default", "claude/default:opus")
    assert both.choose("claude", "opus") == Choice(agent="claude", model="opus", probes=ids)
    assert isinstance(both.choose("claude", "haiku"), Held), "one finds out about the account"
    one = admission(envelope(until=NOW), of_opus())
    assert one.choose("claude", "opus") == Held(envelope=of_opus(), look_again_at=LATER)
    assert one.choose("claude", "haiku") == Choice(agent="claude", model="haiku", probes=ids[:1])
    probing = admission(envelope(until=NOW, probe="att_1"), of_opus(until=NOW, probe="att_1"))
    assert probing.account("claude", "att_1", model="opus") == "default"
    assert probing.account("claude", "att_2", model="opus") is None


@each_case(
    ("windows", "model"),
    [
        ((), ""),
        ((QuotaWindow(name="a", model="Opus", rejected=True), QuotaWindow(name="b")), "opus"),
        ((QuotaWindow(name="a", model="opus", rejected=True), QuotaWindow(name="b", rejected=True)), ""),
        ((QuotaWindow(name="a", model="opus"), QuotaWindow(name="b", rejected=True)), ""),
    ],
)
def test_a_limit_is_of_one_model_if_nothing_else_refused(
    windows: tuple[QuotaWindow, ...], model: str
) -> None:
    assert limited_model(windows) == model


def test_a_window_of_one_model_leaves_others_what_they_have() -> None:
    full = QuotaWindow(name="week", model="opus", used=1.0, resets_at=LATER)
    half = QuotaWindow(name="hours", kind=QuotaKind.SUBSCRIPTION, used=0.25)
    account = envelope(windows=(full, half))
    assert (remaining(account, NOW, "claude-opus-5"), remaining(account, NOW, "haiku")) == (0.0, 0.75)
    assert remaining(account, NOW) == 0.75, "who names none may be another"


def test_of_what_only_refused_nothing_is_kept() -> None:
    assert newest((), (QuotaWindow(name="pro", model="pro", rejected=True),)) == ()


def test_an_envelope_that_nothing_is_known_of_lets_nobody_take_over() -> None:
    assert isinstance(admission(envelope(failure=None)).choose("claude", None, ("codex",)), Held)


@each_case(("entry", "agent", "model"), [("codex", "codex", None), ("a:b:c", "a", "b:c")])
def test_an_entry_of_the_list_is_an_agent_and_perhaps_a_model(
    entry: str, agent: str, model: str | None
) -> None:
    assert named(entry) == (agent, model)


def test_tasks_and_parked_attempts_of_a_closed_envelope_wait_and_others_start() -> None:
    other = task(agent="codex")
    scene = decided(plan(), envelope(), ready=(task(), other), waiting=(parked(),))
    assert scene == Decided(decisions=(StartAttempt(task_id=other.id),), look_again_at=LATER)


def test_who_was_told_that_budget_is_free_keeps_nobody_back_while_its_account_is_closed() -> None:
    other = task(agent="codex")
    told = parked(envelope_id=None, wake_at=NOW, wait_reason=WAITS)
    assert decided(plan(), envelope(), ready=(other,), waiting=(told,)).decisions == (
        StartAttempt(task_id=other.id),
    )
    assert decided(plan(), ready=(other,), waiting=(told,)).decisions == (WakeAttempt(attempt_id=told.id),)
    waits = parked(envelope_id=None, wake_at=None, wait_reason=WAITS)
    assert decided(plan(), envelope(), ready=(other,), waiting=(waits,)).decisions == ()


def test_one_of_many_is_the_probe_and_it_is_a_parked_one() -> None:
    waiting = (parked(), parked())
    scene = decided(plan(), envelope(until=NOW), ready=(task(),), waiting=waiting)
    probing = Choice(agent="claude", model=None, probes=("claude/default",))
    assert scene.decisions == (WakeAttempt(attempt_id=waiting[0].id, instead=probing),)


def test_what_waited_for_an_envelope_goes_on_as_soon_as_it_is_open() -> None:
    waiting = parked()
    opened = envelope(state=EnvelopeState.OPEN)
    assert decided(plan(), opened, waiting=(waiting,)).decisions == (WakeAttempt(attempt_id=waiting.id),)
    proven = envelope(until=NOW, probe="att_1", probed_at=NOW - PROVEN_AFTER)
    assert decided(plan(), proven, waiting=(waiting,)).decisions == (
        OpenEnvelope(envelope_id="claude/default"),
        WakeAttempt(attempt_id=waiting.id),
    )


def test_another_agent_takes_over_what_is_parked_and_what_is_new() -> None:
    waiting, ready = parked(), task()
    scene = decided(plan(fallback=("codex",)), envelope(), waiting=(waiting,), ready=(ready,))
    codex = Choice(agent="codex", model=None, because="claude is closed: The account's limit is reached.")
    assert scene.decisions == (
        WakeAttempt(attempt_id=waiting.id, instead=codex),
        StartAttempt(task_id=ready.id, instead=codex),
    )


def test_an_attempt_that_waits_for_its_reviewer_goes_on_when_the_reviewers_envelope_lets_it() -> None:
    waiting = parked(agent="claude", wake_at=NOW)
    by_codex = Run(
        id="run_1", plan_id="p", role=Role.REVIEWER, state=RunState.QUEUED, agent="codex", created_at=NOW
    )
    at_work = {"waiting": (waiting,), "reviewers": {waiting.id: by_codex}}
    assert decided(plan(fallback=("codex",)), envelope(), **at_work).decisions == (
        WakeAttempt(attempt_id=waiting.id),
    ), "its author's account does not matter"
    its_own = envelope("codex")
    assert decided(plan(fallback=("claude",)), its_own, **at_work).decisions == (), "nobody stands in for it"


@each_case(
    ("policy", "words"),
    [
        ({"wait_for_limits": False}, "claude is closed until 2031-05-06"),
        ({"longest_wait": 3599.0}, "longer than `longest_wait`"),
    ],
)
def test_a_plan_that_does_not_wait_pauses_and_says_why(policy: dict[str, Any], words: str) -> None:
    reluctant = plan(**policy)
    [pause] = decided(reluctant, envelope(), ready=(task(),)).decisions
    assert isinstance(pause, PauseLoop)
    assert words in pause.reason
    busy = decided(reluctant, envelope(), ready=(task(),), working=(task(),))
    assert busy.decisions == (), "what works may finish first"
    going = decided(reluctant, envelope(), ready=(task(), task(agent="codex")))
    assert len(going.decisions) == 1, "what can be done is done first"


def test_a_plan_waits_as_long_as_it_was_told() -> None:
    assert unwilling(Policy(longest_wait=3600.0), envelope(), NOW) == ""
    assert unwilling(Policy(longest_wait=None), envelope(until=NOW + timedelta(days=99)), NOW) == ""
    since = envelope(until=None, closed_at=NOW - timedelta(days=8))
    assert unwilling(Policy(), since, NOW), "for a week, and nobody came"
    assert unwilling(Policy(), envelope(until=None, closed_at=None), NOW) == ""


def test_how_an_envelope_stands_is_said_in_plain_words(wording: Wording) -> None:
    assert standing(envelope(state=EnvelopeState.OPEN)) == "open"
    window = "The account's limit is reached."
    assert standing(envelope()) == f"closed until {LATER:%Y-%m-%d %H:%M:%S} UTC: {window}"
    assert standing(envelope(until=None)) == f"closed: {window}"
    locked = envelope(failure=Failure.AUTH)
    wording(standing(locked))
    assert standing(envelope(failure=Failure.AUTH, until=None)).endswith("quota open claude`")
    assert because(envelope(failure=None, reason="somebody said so")) == "somebody said so"


@each_case(
    ("known", "told", "noticed"),
    [(None, None, False), (None, rows.AT, True), (rows.AT, None, True), (rows.AT, rows.AT, False)],
)
def test_a_reset_time_that_appears_or_goes_is_noticed(
    known: datetime | None, told: datetime | None, noticed: bool
) -> None:
    before, now = (QuotaWindow(name="five_hour", used=0.5, resets_at=one) for one in (known, told))
    assert noticeable([before], [now]) is noticed
