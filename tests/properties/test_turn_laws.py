"""Laws of taking turns: one holder at a time, and no plans that wait for each other."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from loopwright.core.policy.turns import blocking, collide, victims
from loopwright.core.rows.hold_rows import Hold
from loopwright.core.values.states import HoldState

LAW = settings(max_examples=100, deadline=None)
START = datetime(2030, 1, 1, tzinfo=UTC)
PATHS = ("a/x.py", "a/**", "b.py", "**")


@st.composite
def holds(draw: st.DrawFn) -> list[Hold]:
    """Any requests of a few plans, some of them granted."""
    return [
        Hold(
            id=f"hold_{n}",
            project_id=draw(st.sampled_from(("one", "two"))),
            loop_id="loop",
            plan_id=draw(st.sampled_from("ABCDE")),
            lock=draw(st.sampled_from(("", "", "staging", "database"))),
            paths=tuple(draw(st.lists(st.sampled_from(PATHS), max_size=2))),
            state=draw(st.sampled_from(HoldState)),
            created_at=START + timedelta(seconds=draw(st.integers(0, 5))),
        )
        for n in range(draw(st.integers(0, 9)))
    ]


def without(rows: list[Hold], refused: set[str]) -> list[Hold]:
    return [replace(one, state=HoldState.REFUSED) if one.id in refused else one for one in rows]


def reached(rows: list[Hold], plan: str) -> set[str]:
    """Return every plan that a plan waits for, directly or not."""
    seen: set[str] = set()
    todo = [plan]
    while todo:
        at = todo.pop()
        for one in rows:
            if one.plan_id == at and one.state is HoldState.WAITING:
                found = {other.plan_id for other in blocking(one, rows)} - seen
                seen |= found
                todo += found
    return seen


@LAW
@given(rows=holds())
def test_after_the_refusals_no_plan_waits_for_itself(rows: list[Hold]) -> None:
    left = without(rows, {one.hold.id for one in victims(rows)})
    assert not [plan for plan in "ABCDE" if plan in reached(left, plan)]


@LAW
@given(rows=holds())
def test_only_a_request_that_waits_in_a_circle_is_refused_and_one_that_need_not_be_is_not(
    rows: list[Hold],
) -> None:
    refused: set[str] = set()
    for victim in victims(rows):
        before = without(rows, refused)
        assert victim.hold.state is HoldState.WAITING
        assert victim.hold.plan_id in reached(before, victim.hold.plan_id)
        assert victim.cycle[0] == victim.cycle[-1]
        refused.add(victim.hold.id)


@LAW
@given(rows=holds(), order=st.randoms(use_true_random=False))
def test_who_is_refused_does_not_depend_on_the_order_of_the_rows(rows: list[Hold], order: object) -> None:
    mixed = list(rows)
    order.shuffle(mixed)  # type: ignore[attr-defined]
    assert [one.hold.id for one in victims(mixed)] == [one.hold.id for one in victims(rows)]


@LAW
@given(rows=holds())
def test_whoever_asks_first_is_never_kept_waiting_by_a_later_request(rows: list[Hold]) -> None:
    for one in rows:
        for other in blocking(one, rows):
            assert collide(one, other)
            assert collide(other, one)
            assert other.state is HoldState.HELD or other.created_at <= one.created_at
