"""Accounts as rows: what closes them, who finds out whether they are open again, and what goes on then."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.cases import each_case
from tests.contracts.store.rows import AT
from tests.doubles import Home, planned
from tests.unit.engine.attempt.plain_values import ended_with
from tests.wording_plugin import Wording

from loopwright.core.policy.quotas import PROVEN_AFTER, SPREAD
from loopwright.core.policy.retry import Failed
from loopwright.core.rows.model import Attempt, CommandState, Leg, Run
from loopwright.core.rows.waiting_rows import Envelope, QuotaKind, QuotaWindow
from loopwright.core.values.failures import RULES, Failure
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import AttemptState, EnvelopeState, LoopState, RunState, TaskState
from loopwright.engine.attempt.agent_ends import account_report, refusal_of
from loopwright.engine.money import quotas
from loopwright.engine.money.quotas import QuotaWatch
from loopwright.engine.people import commands
from loopwright.ports import AgentResult

HOUR = timedelta(hours=1)


async def working(tasks: str, *, slots: int = 2, **policy: Any) -> tuple[Home, list[Leg]]:
    """Return a home in which as many tasks as possible have their leg."""
    home = await Home(slots=slots).launch()
    home.submit(*(planned(key) for key in tasks), policy=Policy(parallel=slots, **policy))
    return home, await home.turn()


async def limited(
    tasks: str, failure: Failure = Failure.USAGE_LIMIT, *, after: timedelta | None = HOUR, **more: Any
) -> tuple[Home, list[Leg]]:
    """Return a home whose first agent found the account closed, with the legs that are left."""
    home, [first, *others] = await working(tasks, **more)
    home.hand.limit(first, failure, retry_at=home.clock.now() + after if after else None)
    await home.ended(first)
    return home, others


def envelope(home: Home, id: str = "claude/default") -> Envelope:
    return home.get(Envelope, id)


async def test_a_usage_limit_parks_everyone_until_the_reset_with_one_alert() -> None:
    home, others = await limited("abcdef")
    until = home.clock.now() + HOUR + SPREAD * home.chance
    for leg in others:
        assert home.hand.work(leg).state is AttemptState.WAITING, "made ready, but not started"
        await home.ended(leg)
    parked = home.all(Attempt, state=AttemptState.WAITING)
    assert len(parked) == len(others) + 1
    assert {(one.wake_at, one.wait_reason) for one in parked} == {(until, "it said usage_limit")}
    assert await home.turn() == [], "no other task starts either"
    home.clock.advance((HOUR - timedelta(seconds=1)).total_seconds())
    assert await home.turn() == []
    assert home.told("envelope_closed") == ["envelope_closed"]
    assert {task.status for task in map(home.task, "abcdef")} <= {TaskState.RUNNING, TaskState.QUEUED}
    assert [home.task(key).call_failures for key in "abcdef"] == [0] * 6, "waiting is not counted"
    assert home.loop().state is LoopState.RUNNING


async def test_a_reset_that_came_before_the_agent_had_ended_is_tried_at_once_but_not_again_and_again() -> (
    None
):
    home, [leg] = await working("a", slots=1)
    home.hand.work(leg)
    named = home.clock.now() + timedelta(seconds=3)
    home.clock.advance(10)
    home.hand.limit(leg, Failure.USAGE_LIMIT, retry_at=named)
    await home.ended(leg)
    assert envelope(home).until == home.clock.now() + SPREAD * home.chance
    home.clock.advance(SPREAD.total_seconds())
    [again] = await home.turn()
    home.hand.work(again)
    named = home.clock.now() + timedelta(seconds=3)
    home.clock.advance(10)
    home.hand.limit(again, Failure.USAGE_LIMIT, retry_at=named)
    until = envelope(home).until
    assert until is not None
    assert until >= home.clock.now() + timedelta(seconds=30), "it is not believed a second time"


async def test_a_limit_of_one_model_leaves_the_account_open_to_the_others() -> None:
    home = await Home(slots=1).launch()
    tasks = [planned("a", model="claude-opus-5"), planned("b"), planned("c", model="haiku")]
    home.submit(*tasks, policy=Policy(parallel=1))
    [first, second] = await home.turn()
    home.hand.limit(first, Failure.USAGE_LIMIT, retry_at=home.clock.now() + HOUR, of="opus")
    await home.ended(first)
    assert (envelope(home).state, envelope(home).runs) == (EnvelopeState.OPEN, 1)
    limit = envelope(home, "claude/default:opus")
    assert (limit.state, limit.models) == (EnvelopeState.CLOSED, ("opus",))
    parked = home.hand.limit(second, Failure.USAGE_LIMIT, retry_at=home.clock.now() + HOUR, of="opus")
    assert parked.envelope_id == limit.id
    assert envelope(home, limit.id).models == ("opus", ""), "the one that named no model was of it too"
    await home.ended(second)
    [third] = await home.turn()
    assert home.get(Attempt, third.subject).model == "haiku"
    home.hand.limit(third, Failure.USAGE_LIMIT, retry_at=home.clock.now() + HOUR)
    await home.ended(third)
    assert envelope(home).state is EnvelopeState.CLOSED
    home.clock.advance((HOUR + SPREAD).total_seconds())
    [probe] = await home.turn()
    assert [envelope(home).probe, envelope(home, limit.id).probe] == [probe.subject] * 2
    home.hand.land(probe)
    await home.ended(probe)
    opened = (envelope(home), envelope(home, limit.id))
    assert [(one.state, one.models) for one in opened] == [
        (EnvelopeState.OPEN, ()),
        (EnvelopeState.OPEN, ("opus",)),
    ]


async def test_another_plan_draws_from_the_same_account_and_waits_too() -> None:
    home, _ = await limited("a", slots=1)
    home.submit(planned("z"), source_path="other.yaml", sha256="b" * 64)
    assert await home.turn() == []
    assert home.task("z").status is TaskState.QUEUED
    home.clock.advance((HOUR + SPREAD).total_seconds())
    assert len(await home.turn()) == 1, "one finds out for both"


@pytest.mark.trap("breaker by hand")
async def test_after_the_reset_one_finds_out_and_then_everyone_goes_on() -> None:
    home, others = await limited("abcdef")
    for leg in others:
        home.hand.work(leg)
        await home.ended(leg)
    home.clock.advance((HOUR + SPREAD).total_seconds())
    [probe] = await home.turn()
    assert envelope(home).probe == probe.subject
    assert home.told("envelope_probing") == ["envelope_probing"]
    assert await home.turn() == []
    assert home.hand.work(probe).state is AttemptState.WORKING
    assert await home.turn() == [], "it has only just begun"
    home.hand.land(probe)
    await home.ended(probe)
    opened = envelope(home)
    assert (opened.state, opened.probe, opened.until, opened.closings) == (EnvelopeState.OPEN, None, None, 0)
    assert home.told("envelope_opened") == ["envelope_opened"]
    going = await home.turn()
    assert len(going) > 1
    for leg in (probe, *going):
        assert home.get(Attempt, leg.subject).envelope_id is None
    for leg in others:
        assert len(home.all(Run, attempt_id=leg.subject)) == 1, "its only run was still to be done"


async def test_a_probe_that_works_for_a_minute_was_let_in() -> None:
    home, others = await limited("abc", slots=3)
    for leg in others:
        home.hand.work(leg)
        await home.ended(leg)
    home.clock.advance((HOUR + SPREAD).total_seconds())
    [probe] = await home.turn()
    home.hand.work(probe)
    home.clock.advance(PROVEN_AFTER.total_seconds())
    assert len(await home.turn()) == 2
    assert envelope(home).state is EnvelopeState.OPEN


async def test_a_probe_that_fails_closes_it_for_longer_without_another_alert() -> None:
    home, _ = await limited("a", Failure.AUTH, after=None)
    rule = RULES[Failure.AUTH]
    expected = [rule.first_s, rule.first_s * 2, rule.first_s * 4, rule.first_s * 8, rule.longest_s]
    pauses = []
    for _ in range(len(expected)):
        now, until = home.clock.now(), envelope(home).until
        assert until is not None
        pauses.append((until - now).total_seconds())
        assert await home.turn() == []
        home.clock.advance(pauses[-1])
        [probe] = await home.turn()
        home.hand.limit(probe, Failure.AUTH)
        await home.ended(probe)
    assert pauses == expected, "longer each time, up to an hour"
    assert home.told("envelope_closed") == ["envelope_closed"], "one alert"
    assert len(home.told("envelope_still_closed")) == len(expected)
    assert home.task("a").status is TaskState.RUNNING, "it waits, it has not failed"


@each_case("failure", [Failure.AUTH, Failure.BILLING])
async def test_many_that_run_at_the_time_are_one_alert_and_no_failed_task(
    failure: Failure, wording: Wording
) -> None:
    home, legs = await working("abcd", slots=4)
    for leg in legs:
        home.hand.work(leg)
    for leg in legs:
        home.hand.limit(leg, failure)
        await home.ended(leg)
    assert home.told("envelope_closed") == ["envelope_closed"]
    assert home.told("envelope_still_closed") == [], "the others only say what is known"
    assert home.told("task_failed") == []
    closed = envelope(home)
    assert (closed.failure, closed.closings, closed.runs) == (failure, 1, 4)
    assert {one.wake_at for one in home.all(Attempt)} == {closed.until}
    wording(home.attempt("d").wait_reason)


async def test_one_that_names_a_later_time_is_believed() -> None:
    home, legs = await working("ab", slots=2)
    for leg in legs:
        home.hand.work(leg)
    for leg, hours in zip(legs, (1, 3), strict=True):
        home.hand.limit(leg, Failure.USAGE_LIMIT, retry_at=home.clock.now() + hours * HOUR)
        await home.ended(leg)
    until = home.clock.now() + 3 * HOUR + SPREAD * home.chance
    assert envelope(home).until == until
    assert [home.attempt(key).wake_at for key in "ab"] == [until, until]


async def test_a_person_opens_it_and_everything_goes_on() -> None:
    home, _ = await limited("ab", Failure.AUTH, after=None, slots=1)
    done = await home.command("open", "claude")
    assert (done.state, done.result) == (CommandState.APPLIED, "open; 1 task continues")
    assert (await home.command("open", "claude/default")).result == "already open"
    [leg, *_] = await home.turn()
    assert home.hand.land(leg).status is TaskState.COMPLETE
    refused = await home.command("open", "goose")
    told = commands.refusal(refused)
    assert (told.code, told.hint) == ("account_not_found", "one of claude")


async def test_nobody_opens_what_was_never_drawn_from(wording: Wording) -> None:
    home = await Home().launch()
    refused = await home.command("open", "claude")
    wording(refused.result)


async def test_parked_survives_a_restart_and_a_probe_that_nobody_drives_is_none() -> None:
    home, _ = await limited("ab", slots=1)
    again = home.beside("host-b")
    home.clock.advance((HOUR + SPREAD).total_seconds())
    [probe] = await home.turn()
    await home.ended(probe)
    home.store.transact_sync("stop", lambda tx: tx.update(Attempt, probe.subject, wait_reason="stopped"))
    seen = again.store.read_sync(quotas.standing)["claude/default"]
    assert (seen.state, seen.probe) == (EnvelopeState.CLOSED, None)
    assert envelope(home).probe == probe.subject


async def test_an_overload_of_the_probe_tells_nothing_and_a_failed_check_tells_enough() -> None:
    home, _ = await limited("a", slots=1)
    home.clock.advance((HOUR + SPREAD).total_seconds())
    [probe] = await home.turn()
    home.hand.work(probe)
    run = home.get(Run, home.attempt("a").run_id)

    def hear(state: RunState, failure: Failure | None) -> EnvelopeState:
        report = account_report(ended_with(AgentResult(claimed=False, failure=failure)), state, failure)
        home.store.transact_sync("settle", lambda tx: quotas.settle_account(tx, run, report, chance=0.0))
        return envelope(home).state

    assert hear(RunState.ERROR, Failure.OVERLOADED) is EnvelopeState.CLOSED
    assert hear(RunState.CANCELLED, None) is EnvelopeState.CLOSED
    assert hear(RunState.ERROR, Failure.REFUSAL) is EnvelopeState.OPEN


async def test_the_newest_word_on_each_window_is_kept() -> None:
    home, [leg] = await working("a", slots=1)
    run = home.get(Run, home.hand.work(leg).run_id)
    for used in (0.1, 0.9):
        report = quotas.AccountReport(windows=(QuotaWindow(name="five_hour", used=used),), answered=True)
        home.store.transact_sync(
            "settle", lambda tx, told=report: quotas.settle_account(tx, run, told, chance=0.0)
        )
    assert envelope(home).windows == (QuotaWindow(name="five_hour", used=0.9),)
    assert (envelope(home).runs, envelope(home).last_run_id) == (1, run.id)


async def test_what_is_told_while_a_run_goes_on_is_written_where_it_matters() -> None:
    home, [leg] = await working("a", slots=1)
    run = home.get(Run, home.hand.work(leg).run_id)

    async def told(watch: QuotaWatch, *windows: QuotaWindow) -> list[float | None]:
        await watch.hear(windows)
        return [one.used for one in envelope(home).windows]

    def window(used: float, **more: Any) -> QuotaWindow:
        return QuotaWindow(name="five_hour", kind=QuotaKind.SUBSCRIPTION, used=used, **more)

    watch = QuotaWatch(home.world, run)
    assert await told(watch, window(0.10)) == [0.10]
    assert await told(watch, window(0.14)) == [0.10], "a little more is nothing new"
    assert await told(watch, window(0.15)) == [0.15]
    assert await told(watch, window(0.16), QuotaWindow(name="seven_day", used=0.4)) == [0.16, 0.4]
    assert await told(watch, window(0.16, rejected=True)) == [0.16, 0.4]
    assert envelope(home).windows[0].rejected
    # Whoever takes the run over knows what is written.
    assert await told(QuotaWatch(home.world, run), window(0.17, rejected=True)) == [0.16, 0.4]


async def test_who_logs_in_otherwise_pays_otherwise() -> None:
    home, [leg] = await working("a", slots=1)
    run = home.get(Run, home.hand.work(leg).run_id)
    key = QuotaWindow(name="api_key", kind=QuotaKind.DOLLARS)
    week = QuotaWindow(name="seven_day", kind=QuotaKind.WEEKLY, used=0.4)
    bought = QuotaWindow(name="credits", kind=QuotaKind.CREDITS, left="12.50")

    def hear(*windows: QuotaWindow) -> tuple[QuotaWindow, ...]:
        report = quotas.AccountReport(windows=windows, answered=True)
        home.store.transact_sync("settle", lambda tx: quotas.settle_account(tx, run, report, chance=0.0))
        return envelope(home).windows

    assert hear(key) == (key,)
    assert hear(week, bought) == (week, bought)
    assert hear(key) == (bought, key)


async def test_one_that_was_cancelled_meanwhile_is_over() -> None:
    home, [other] = await limited("ab")
    home.store.transact_sync("cancel", lambda tx: tx.update(Attempt, other.subject, interrupt="cancel"))
    attempt = home.get(Attempt, other.subject)
    run = home.get(Run, attempt.run_id)
    let = home.store.transact_sync("admit", lambda tx: quotas.admit(tx, attempt, run, fence=other.fence))
    assert not let
    assert home.get(Attempt, other.subject).state is AttemptState.CANCELLED


async def test_another_agent_takes_over_in_the_same_workspace_and_hands_back_after_the_reset(
    wording: Wording,
) -> None:
    home, _ = await limited("abc", slots=1, fallback=("other:small",))
    legs = await home.turn()
    first = home.attempt("a")
    assert (first.agent, first.model) == ("other", "small")
    wording(first.stands_in)
    assert home.get(Run, first.run_id).agent == "other"
    told = home.events("attempt_working")[-1].payload
    assert (told["agent"], told["because"]) == ("other", first.stands_in)
    assert len(home.all(Run, attempt_id=first.id)) == 2, "a leg of the same attempt"
    home.hand.land(legs[0])
    await home.ended(legs[0])
    home.clock.advance((HOUR + SPREAD).total_seconds())
    await home.turn()
    started = {home.attempt(key).agent for key in "bc" if home.task(key).status is TaskState.RUNNING}
    assert "claude" in started, "it is asked again after the reset, not before"


async def test_a_loop_that_does_not_wait_pauses_with_the_reason() -> None:
    home, _ = await limited("a", slots=1, wait_for_limits=False)
    assert await home.turn() == []
    loop = home.loop()
    assert loop.state is LoopState.PAUSED
    assert "claude is closed until" in loop.reason
    assert home.attempt("a").state is AttemptState.WAITING, "its work is kept"


# --- what the end of a run tells about its account -------------------------------------------------------

LIMITED = AgentResult(
    claimed=False,
    failure=Failure.USAGE_LIMIT,
    detail="come back later",
    retry_at=AT,
    windows=(QuotaWindow(name="week", model="Opus", rejected=True),),
)


def test_a_limit_closes_the_account_whatever_else_ended_the_attempt() -> None:
    for state, failure in ((RunState.ERROR, Failure.USAGE_LIMIT), (RunState.ERROR, Failure.LINKED_GIT)):
        report = account_report(ended_with(LIMITED), state, failure)
        assert report.refused is not None
        assert (report.refused.failure, report.refused.retry_at) == (Failure.USAGE_LIMIT, AT)
        assert report.refused.limited_model == "opus"
        assert report.windows == LIMITED.windows
        assert report.answered is (failure is Failure.LINKED_GIT)


@each_case(
    "result, more",
    [
        (LIMITED, {"interrupted": True}),
        (LIMITED, {"excess": "it filled the disk"}),
        (LIMITED, {"denial": "the sandbox refused it"}),
        (replace(LIMITED, claimed=True), {}),
        (replace(LIMITED, failure=Failure.OVERLOADED), {}),
        (replace(LIMITED, failure=None), {}),
        (None, {}),
    ],
)
def test_any_other_end_closes_nothing(result: AgentResult | None, more: Any) -> None:
    assert refusal_of(ended_with(result, **more)) is None


@each_case(
    "state, failure, answered",
    [
        (RunState.COMPLETE, None, True),
        (RunState.AWAITING_RESPONSE, None, True),
        (RunState.ERROR, Failure.GATE, True),
        (RunState.ERROR, Failure.OVERLOADED, False),
        (RunState.ERROR, Failure.CRASH, False),
        (RunState.CANCELLED, None, False),
    ],
)
def test_a_service_answered_when_the_work_could_be_judged(
    state: RunState, failure: Failure | None, answered: bool
) -> None:
    assert account_report(ended_with(None), state, failure) == quotas.AccountReport(answered=answered)


async def test_one_transaction_closes_the_account_and_keeps_its_windows() -> None:
    home, [leg] = await working("a", slots=1)
    run = home.get(Run, home.hand.work(leg).run_id)
    week = QuotaWindow(name="week", used=1.0, rejected=True)
    failed = Failed(failure=Failure.USAGE_LIMIT, detail="come back later")
    report = quotas.AccountReport(windows=(week,), refused=failed)
    home.store.transact_sync("settle", lambda tx: quotas.settle_account(tx, run, report, chance=0.0))
    assert (envelope(home).state, envelope(home).windows) == (EnvelopeState.CLOSED, (week,))
    assert envelope(home).reason == "come back later"
