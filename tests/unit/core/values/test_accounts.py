"""Which of an agent's accounts is drawn from: open, with most left, or the one that has the conversation."""

from datetime import timedelta
from typing import Any

import pytest
from tests.cases import each_case
from tests.contracts.store import rows

from loopwright.core.policy.quotas import (
    UNKNOWN,
    Admission,
    Choice,
    Held,
    envelope_id,
    label,
    noticeable,
    remaining,
)
from loopwright.core.rows.waiting_rows import Envelope, QuotaKind, QuotaWindow
from loopwright.core.values.accounts import Account, account_named, called, usual
from loopwright.core.values.failures import Failure
from loopwright.core.values.states import EnvelopeState

NOW = rows.AT
LATER = NOW + timedelta(hours=1)
MUCH_LATER = NOW + timedelta(days=3)
ME = "att_me"


def account(name: str, *windows: QuotaWindow, **changes: Any) -> Envelope:
    values: dict[str, Any] = {"created_at": NOW, "updated_at": NOW, "windows": windows}
    return Envelope(id=envelope_id("claude", name), agent="claude", account=name, **values | changes)


def closed(name: str, **changes: Any) -> Envelope:
    values: dict[str, Any] = {
        "state": EnvelopeState.CLOSED,
        "failure": Failure.USAGE_LIMIT,
        "until": LATER,
        "closed_at": NOW,
    }
    return account(name, **values | changes)


def used(share: float | None, **changes: Any) -> QuotaWindow:
    return QuotaWindow(**{"name": "five_hour", "used": share, "resets_at": LATER} | changes)


def admission(*envelopes: Envelope, names: tuple[str, ...] = ("work", "home")) -> Admission:
    return Admission({one.id: one for one in envelopes}, NOW, {"claude": names})


@each_case(
    ("before", "after", "is_news"),
    [
        ((), (), False),
        ((), (used(0.0),), True),
        ((used(0.5),), (), False),
        ((used(0.5),), (used(0.54),), False),
        ((used(0.5),), (used(0.55),), True),
        ((used(0.5),), (used(0.45),), True),
        ((used(None),), (used(0.0),), True),
        ((used(0.5),), (used(0.5, rejected=True),), True),
        ((used(0.5, rejected=True),), (used(0.5),), True),
        ((used(0.5),), (used(0.5, resets_at=NOW),), True),
        ((used(0.5, resets_at=NOW),), (used(0.5, resets_at=NOW + timedelta(seconds=2)),), False),
        ((used(0.5, resets_at=NOW),), (used(0.5, resets_at=NOW + timedelta(hours=5)),), True),
        ((used(0.5),), (used(0.5, kind=QuotaKind.WEEKLY),), True),
        ((used(None, left="12.50"),), (used(None, left="12.49"),), False),
    ],
)
def test_what_matters_of_a_quota_is_told_at_once(
    before: tuple[QuotaWindow, ...], after: tuple[QuotaWindow, ...], is_news: bool
) -> None:
    assert noticeable(before, after) is is_news


@each_case(
    ("windows", "left"),
    [
        ((), UNKNOWN),
        ((used(None),), UNKNOWN),
        ((used(0.25),), 0.75),
        ((used(0.25), QuotaWindow(name="credits", kind=QuotaKind.CREDITS, left="12.50")), 0.75),
        ((QuotaWindow(name="api_key", kind=QuotaKind.DOLLARS),), UNKNOWN),
        ((used(0.25), used(0.9, name="individualLimit", kind=QuotaKind.CREDITS)), pytest.approx(0.1)),
        ((used(0.25), used(0.5, name="week")), 0.5),
        ((used(0.99, resets_at=NOW),), 1.0),
        ((used(0.1, rejected=True),), 0.0),
        ((used(1.5),), 0.0),
        ((used(None, resets_at=None),), UNKNOWN),
    ],
)
def test_what_is_left_is_what_the_fullest_window_leaves(
    windows: tuple[QuotaWindow, ...], left: float
) -> None:
    assert remaining(account("work", *windows), NOW) == left


@each_case(
    ("envelopes", "chosen"),
    [
        ((), "work"),
        ((account("work", used(0.9)), account("home", used(0.2))), "home"),
        ((account("work", used(0.2)), account("home", used(0.2))), "work"),
        # Of the other one nothing is known: half is what it counts for.
        ((account("work", used(0.6)),), "home"),
        ((account("work", used(0.4)),), "work"),
        ((account("home", used(0.4)),), "home"),
        # Open goes before closed, whatever is left.
        ((closed("work"), account("home", used(0.99))), "home"),
        ((closed("work"), closed("home")), None),
    ],
)
def test_an_open_account_with_most_left_is_chosen_and_the_order_of_the_settings_decides_ties(
    envelopes: tuple[Envelope, ...], chosen: str | None
) -> None:
    assert admission(*envelopes).account("claude", ME) == chosen


def test_a_conversation_stays_with_its_account_while_that_is_open() -> None:
    full = account("work", used(0.95))
    assert admission(full).account("claude", ME, "work") == "work"
    assert admission(closed("work")).account("claude", ME, "work") == "home"
    assert admission().account("claude", ME, "gone") == "work", "the settings do not have it any more"


def test_who_finds_out_draws_from_what_it_finds_out_about() -> None:
    probing = closed("home", until=NOW, probe=ME, probed_at=None)
    assert admission(probing).account("claude", ME) == "home"
    assert admission(probing).account("claude", "att_other") == "work"


def test_an_account_that_hit_its_limit_is_not_returned_to_before_its_reset() -> None:
    for stays in (None, "work"):
        chosen = admission(closed("work")).choose("claude", None, stays=stays)
        assert chosen == Choice(agent="claude", model=None), "the other one is open, and nobody is parked"
    due = admission(closed("work", until=NOW))
    first = due.choose("claude", None)
    assert first == Choice(agent="claude", model=None, probes=("claude/work",)), (
        "one finds out after the reset"
    )
    assert due.choose("claude", None) == Choice(agent="claude", model=None), "and only one"


def test_a_conversation_on_an_open_account_does_not_go_to_find_out_about_another() -> None:
    chosen = admission(closed("work", until=NOW)).choose("claude", None, stays="home")
    assert chosen == Choice(agent="claude", model=None)


def test_the_account_of_the_conversation_is_found_out_about_first() -> None:
    due = admission(closed("work", until=NOW), closed("home", until=NOW))
    chosen = due.choose("claude", None, stays="home")
    assert chosen == Choice(agent="claude", model=None, probes=("claude/home",))


def test_a_lost_login_is_not_tried_while_another_account_is_open() -> None:
    locked = closed("work", until=NOW, failure=Failure.AUTH)
    assert admission(locked).choose("claude", None) == Choice(agent="claude", model=None)
    both = admission(locked, closed("home"))
    assert both.choose("claude", None) == Choice(agent="claude", model=None, probes=("claude/work",))


def test_where_all_are_closed_the_first_to_open_is_waited_for() -> None:
    envelopes = (closed("work", until=MUCH_LATER), closed("home"))
    assert admission(*envelopes).choose("claude", None) == Held(envelope=envelopes[1], look_again_at=LATER)


def test_another_agent_takes_over_only_when_all_accounts_are_closed() -> None:
    one = admission(closed("work")).choose("claude", "big", ("codex:small",))
    assert one == Choice(agent="claude", model="big")
    all_of_them = admission(closed("work"), closed("home")).choose("claude", "big", ("codex:small",))
    assert isinstance(all_of_them, Choice)
    assert (all_of_them.agent, all_of_them.model) == ("codex", "small")


def test_an_account_that_the_settings_do_not_have_is_none() -> None:
    assert admission(account("old", used(0.0))).account("claude", ME) == "work"
    assert admission(names=()).account("claude", ME) == "default"


def test_people_call_the_usual_account_by_its_agent() -> None:
    assert (label(account("default")), label(account("work"))) == ("claude", "claude/work")
    assert (called("claude", None), called("codex", "b")) == ("claude", "codex/b")


def test_accounts_are_found_by_name() -> None:
    work = Account(name="work", home="/w")
    known = {"claude": (work,)}
    assert account_named(known, "claude", "work") == work
    assert account_named(known, "claude", None) is None
    assert account_named(known, "codex", None) == Account()
    assert (usual(known, "claude"), usual(known, "codex")) == ("work", "default")
