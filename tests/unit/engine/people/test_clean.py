"""Which plans are over for good, and what is written down when a person lets go of them."""

import pytest
from tests.doubles import FAILED, Home, planned
from tests.refusals import raises_code

from loopwright.core.rows.model import Attempt, Plan
from loopwright.core.values.errors import Refused
from loopwright.engine.people.clean import check_clean, cleanable, record_cleaned


async def _verified() -> Home:
    home = await Home().launch()
    home.submit(planned("a"))
    [leg] = await home.turn()
    home.hand.land(leg)
    [verify] = await home.turn()
    await home.verify(verify)
    return home


def _tidied(home: Home) -> None:
    for attempt in home.all(Attempt):
        home.store.transact_sync("t", lambda tx, one=attempt: tx.update(Attempt, one.id, cleaned_at=tx.now()))


def _cleanable(home: Home) -> list[str]:
    found: list[Plan] = home.store.read_sync(lambda tx: cleanable(tx, project_path="/somewhere/repo"))
    return [plan.id for plan in found]


async def test_a_verified_plan_is_over_once_its_workspaces_are_tidied() -> None:
    home = await _verified()
    assert _cleanable(home) == []
    with raises_code("plan_still_needed"):
        home.store.read_sync(lambda tx: check_clean(tx, home.plan()))
    _tidied(home)
    assert _cleanable(home) == [home.plan().id]
    home.store.read_sync(lambda tx: check_clean(tx, home.plan()))


async def test_a_plan_that_can_still_be_carried_on_is_not_cleaned_up() -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    [leg] = await home.turn()
    home.hand.land(leg)
    _tidied(home)
    with pytest.raises(Refused, match="is RUNNING"):
        home.store.read_sync(lambda tx: check_clean(tx, home.plan()))
    [verify] = await home.turn()
    await home.verify(verify, FAILED)
    assert _cleanable(home) == [], "it can be verified again"
    failed = home.plan().id
    home.clock.advance(1)
    home.submit(planned("a"), sha256="b" * 64)
    assert _cleanable(home) == [failed], "a newer plan took its place"


async def test_what_was_let_go_is_on_the_record() -> None:
    home = await _verified()
    plan = home.plan()
    home.store.transact_sync(
        "cleaned",
        lambda tx: record_cleaned(
            tx,
            plan,
            "me",
            deleted=["refs/x"],
            unproven=["refs/x 12"],
            commits={plan.result_sha or "", "somebody's"},
        ),
    )
    [told] = home.events("plan_cleaned")
    assert (told.plan, told.actor) == (plan.id, "me")
    assert told.payload == {
        "deleted": ["refs/x"],
        "unproven": ["refs/x 12"],
        "commits": [plan.result_sha],
    }
