"""Turns of loops: who waits for whom, and which request is refused when they wait for each other."""

from datetime import timedelta
from typing import Any

from tests.cases import each_case
from tests.contracts.store import rows

from loopwright.core.policy.turns import Victim, blocking, collide, victims
from loopwright.core.rows.hold_rows import Hold
from loopwright.core.values.states import HoldState

HELD, WAITING, REFUSED = HoldState.HELD, HoldState.WAITING, HoldState.REFUSED


def hold(plan: str, n: int, state: HoldState = HELD, **values: Any) -> Hold:
    """Return the request `n` of a plan, later than every request with a smaller number."""
    return Hold(
        id=f"hold_{n}",
        project_id=values.pop("project", "project"),
        loop_id=f"loop_{plan}",
        plan_id=plan,
        state=state,
        created_at=rows.AT + timedelta(seconds=n),
        **values,
    )


@each_case(
    ("one", "other", "expected"),
    [
        ({"lock": "staging"}, {"lock": "staging"}, True),
        ({"lock": "staging"}, {"lock": "database"}, False),
        ({"lock": "staging"}, {"paths": ("a.py",)}, False),
        ({"paths": ("src/a.py",)}, {"paths": ("src/**",)}, True),
        ({"paths": ("src/a.py",)}, {"paths": ("docs/**",)}, False),
        ({"paths": ()}, {"paths": ("**",)}, False),
        ({"lock": "staging", "project": "one"}, {"lock": "staging", "project": "two"}, False),
    ],
)
def test_two_plans_collide_over_the_same_lock_or_overlapping_files_of_one_project(
    one: dict[str, Any], other: dict[str, Any], expected: bool
) -> None:
    assert collide(hold("A", 1, **one), hold("B", 2, **other)) is expected


def test_a_plan_never_collides_with_itself() -> None:
    assert not collide(hold("A", 1, lock="staging"), hold("A", 2, lock="staging"))


def test_a_request_waits_for_holders_and_for_earlier_requests_only() -> None:
    held = hold("A", 9, lock="staging")
    earlier = hold("B", 1, WAITING, lock="staging")
    refused = hold("C", 2, REFUSED, lock="staging")
    later = hold("D", 4, WAITING, lock="staging")
    wish = hold("E", 3, WAITING, lock="staging")
    assert blocking(wish, [held, earlier, refused, later, wish]) == (held, earlier)


def test_of_plans_that_wait_for_each_other_the_newest_request_is_refused() -> None:
    rows_ = [
        hold("A", 1, lock="staging"),
        hold("B", 2, lock="database"),
        hold("A", 3, WAITING, lock="database"),
        hold("B", 4, WAITING, lock="staging"),
    ]
    assert victims(rows_) == (Victim(hold=rows_[3], cycle=("A", "B", "A")),)


def test_each_cycle_loses_one_request() -> None:
    rows_ = [
        *(hold(plan, n, lock=plan) for n, plan in enumerate("ABCD")),
        *(hold(plan, n, WAITING, lock=wish) for n, (plan, wish) in enumerate(("AB", "BA", "CD", "DC"), 4)),
    ]
    assert [(one.hold.plan_id, set(one.cycle)) for one in victims(rows_)] == [
        ("B", {"A", "B"}),
        ("D", {"C", "D"}),
    ]


def test_a_request_outside_of_the_cycle_is_not_refused() -> None:
    rows_ = [
        hold("A", 1, lock="staging"),
        hold("B", 2, lock="database"),
        hold("A", 3, WAITING, lock="database"),
        hold("B", 4, WAITING, lock="staging"),
        hold("C", 5, WAITING, lock="staging"),
    ]
    assert [one.hold.id for one in victims(rows_)] == ["hold_4"]


def test_without_a_cycle_nothing_is_refused() -> None:
    assert victims([hold("A", 1, lock="staging"), hold("B", 2, WAITING, lock="staging")]) == ()
