"""Several accounts of one agent, as rows: who draws from which, what parks nobody, and how an agent is started."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.doubles import Home, planned
from tests.refusals import raises_code
from tests.wording_plugin import Wording

from loopwright.adapters.agents.claude.claude import ClaudeAgent
from loopwright.adapters.agents.command import CommandAgent
from loopwright.adapters.agents.environment import agent_environment
from loopwright.core.policy.quotas import SPREAD
from loopwright.core.rows.model import Attempt, Leg, Run
from loopwright.core.rows.waiting_rows import Envelope, QuotaWindow
from loopwright.core.values.accounts import Account
from loopwright.core.values.failures import Failure
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import AttemptState, EnvelopeState
from loopwright.engine.money import quotas
from loopwright.ports import AgentRequest, Invocation

HOUR = timedelta(hours=1)
TWO = {"claude": (Account(name="work", home="/homes/work"), Account(name="private", home="/homes/private"))}


async def working(tasks: str, *, slots: int = 1, **policy: Any) -> tuple[Home, list[Leg]]:
    home = await Home(slots=slots, accounts=TWO).launch()
    home.submit(*(planned(key) for key in tasks), policy=Policy(parallel=slots, **policy))
    return home, await home.turn()


def leg_of(home: Home, key: str) -> Leg:
    """Return the leg that a task's attempt is in: some were admitted before they were needed."""
    attempt = home.attempt(key)
    return Leg(subject=attempt.id, n=attempt.leg, fence=attempt.fence)


def state(home: Home, account: str) -> EnvelopeState:
    return home.get(Envelope, f"claude/{account}").state


async def test_a_limit_on_one_account_lets_the_attempt_go_on_with_the_other_at_once(wording: Wording) -> None:
    home, [leg, *_] = await working("ab")
    home.hand.work(leg)
    home.hand.limit(leg, Failure.USAGE_LIMIT, retry_at=home.clock.now() + HOUR)
    await home.ended(leg)
    assert home.attempt("a").account == "work"
    legs = await home.turn()
    going = next(one for one in legs if one.subject == leg.subject)
    assert home.hand.work(going).state is AttemptState.WORKING
    attempt = home.attempt("a")
    assert (attempt.account, attempt.stands_in) == ("private", ""), "the same agent, and not for another one"
    runs = sorted(home.all(Run, attempt_id=leg.subject), key=lambda run: run.id)
    assert [run.account for run in runs] == ["work", "private"]
    assert (state(home, "work"), state(home, "private")) == (EnvelopeState.CLOSED, EnvelopeState.OPEN)
    told = home.events("account_changed")[-1].payload
    assert (told["was"], told["account"]) == ("work", "private")
    wording(told["because"])
    assert [event.payload["account"] for event in home.events("run_started")] == ["work", "private"]


async def test_nobody_returns_before_the_reset() -> None:
    home, [leg, *_] = await working("abc")
    home.hand.limit(leg, Failure.USAGE_LIMIT, retry_at=home.clock.now() + HOUR)
    await home.ended(leg)
    for key in "abc":
        await home.turn()
        home.hand.land(leg_of(home, key))
        await home.ended(leg_of(home, key))
        assert home.attempt(key).account == "private"
    assert state(home, "work") is EnvelopeState.CLOSED
    assert home.told("envelope_probing") == []


async def test_after_the_reset_one_new_attempt_finds_out() -> None:
    home, [leg, *_] = await working("ab")
    home.hand.limit(leg, Failure.USAGE_LIMIT, retry_at=home.clock.now() + HOUR)
    await home.ended(leg)
    home.clock.advance((HOUR + SPREAD).total_seconds())
    [*legs] = await home.turn()
    probe = home.get(Envelope, "claude/work").probe
    mine = next(one for one in legs if one.subject == probe)
    assert home.hand.work(mine).account == "work"
    home.hand.land(mine)
    assert state(home, "work") is EnvelopeState.OPEN


async def test_an_attempt_is_parked_only_where_all_accounts_are_closed() -> None:
    home, [leg, *_] = await working("a")
    for hours in (3, 1):
        home.hand.limit(leg, Failure.USAGE_LIMIT, retry_at=home.clock.now() + hours * HOUR)
        await home.ended(leg)
        found = await home.turn()
        leg = found[0] if found else leg
    assert home.attempt("a").state is AttemptState.WAITING
    assert home.attempt("a").envelope_id == "claude/private"
    home.clock.advance((HOUR + SPREAD).total_seconds())
    [again] = await home.turn()
    assert home.hand.work(again).account == "private", "the one that opens first"


async def test_the_account_with_most_left_is_drawn_from_and_each_has_its_windows() -> None:
    home, [leg, *_] = await working("ab")
    run = home.get(Run, home.hand.work(leg).run_id)
    report = quotas.AccountReport(windows=(QuotaWindow(name="five_hour", used=0.8),), answered=True)
    home.store.transact_sync("settle", lambda tx: quotas.settle_account(tx, run, report, chance=0.0))
    home.hand.land(leg)
    await home.ended(leg)
    await home.turn()
    assert home.hand.work(leg_of(home, "b")).account == "private", (
        "of which nothing is known, and that counts for half"
    )
    assert home.get(Envelope, "claude/private").windows == ()


async def test_a_person_names_the_account_where_several_are_closed(wording: Wording) -> None:
    home, [leg, *_] = await working("a")
    for _ in range(2):
        home.hand.limit(leg, Failure.AUTH)
        await home.ended(leg)
        found = await home.turn()
        leg = found[0] if found else leg
    refused = await home.command("open", "claude")
    assert (
        refused.result
        == "claude has several closed accounts\nname one of claude/private, claude/work\naccount_ambiguous"
    )
    assert (await home.command("open", "claude/work")).result == "open; 1 task continues"
    assert (await home.command("open", "claude")).result == "open; 1 task continues"
    wording(home.attempt("a").wait_reason)


def claude() -> Invocation:
    request = AgentRequest(prompt="p", workspace=Path("/w"), run_directory=Path("/r"))
    return ClaudeAgent().invocation(request)


USERS = {
    "HOME": "/home/me",
    "ANTHROPIC_API_KEY": "sk-mine",
    "ANTHROPIC_BASE_URL": "http://x",
    "WORK_KEY": "sk-work",
}


def test_an_account_with_a_home_has_that_and_none_of_the_users_own_credentials() -> None:
    drawn = quotas.drawing(claude(), "claude", Account(name="work", home="/home/me/.claude-work"))
    env = agent_environment(USERS, drawn)
    assert env["CLAUDE_CONFIG_DIR"] == "/home/me/.claude-work"
    assert "ANTHROPIC_API_KEY" not in env, "it would win over the login in that home"
    assert env["ANTHROPIC_BASE_URL"] == "http://x"


def test_an_account_takes_a_variable_from_another_name() -> None:
    work = Account(name="work", variables={"ANTHROPIC_API_KEY": "WORK_KEY"})
    drawn = quotas.drawing(claude(), "claude", work)
    env = agent_environment(USERS, drawn)
    assert env["ANTHROPIC_API_KEY"] == "sk-work"
    assert {"WORK_KEY", "CLAUDE_CONFIG_DIR"}.isdisjoint(env)
    with raises_code("agent_variable_missing"):
        agent_environment({"HOME": "/home/me"}, drawn)


def test_the_usual_account_changes_nothing() -> None:
    for one in (Account(), Account(name="mine")):
        assert quotas.drawing(claude(), "claude", one) == claude()


def test_an_agent_without_a_variable_for_its_home_says_what_to_do(wording: Wording) -> None:
    request = AgentRequest(
        prompt="p", workspace=Path("/w"), run_directory=Path("/r"), options={"command": "true"}
    )
    plain = CommandAgent().invocation(request)
    with raises_code("account_home_conflict") as raised:
        quotas.drawing(plain, "command", Account(name="b", home="/b"))
    wording(str(raised.value.hint))


def test_an_account_that_this_machine_does_not_have_is_refused_with_what_to_do() -> None:
    with raises_code("account_unknown") as raised:
        quotas.account(TWO, "claude", "gone")
    assert "[agents.claude.accounts.gone]" in str(raised.value.hint)
    assert quotas.account({}, "claude", None) == Account()


async def test_what_an_attempt_left_is_said_only_where_it_left() -> None:
    home, [leg, *_] = await working("a")
    home.hand.work(leg)
    assert home.events("account_changed") == []
    assert home.all(Attempt)[0].account == "work"
