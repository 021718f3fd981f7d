"""Caps on what may be spent, and what follows from how far they are used up."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright.core.policy.budget import (
    Cap,
    allowance,
    caps,
    expected,
    has_caps,
    next_day,
    over_budget,
    review_cap,
    spent_today,
    used_up,
)
from loopwright.core.rows.model import Plan, Project
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import PlanState

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ALL = Policy(
    max_cost_per_run=10,
    max_cost_per_task=20,
    max_cost=30,
    max_cost_per_loop=33,
    max_cost_per_project=36,
    max_cost_per_day=40,
)


def plan(policy: Policy, **facts: int) -> Plan:
    made = Plan(
        id="p",
        project_id="r",
        loop_id="l",
        title="",
        status=PlanState.RUNNING,
        source_sha256="",
        base_ref="",
        base_sha="",
        branch="",
        policy=policy,
        created_at=NOW,
        updated_at=NOW,
    )
    return replace(made, **facts)  # type: ignore[arg-type]


def test_only_caps_that_are_set_are_caps() -> None:
    assert not has_caps(Policy())
    assert caps(Policy(), {"max_cost": 5}) == ()
    assert has_caps(Policy(max_cost_per_day=1))
    assert [cap.limit for cap in caps(ALL, {})] == [10, 20, 30, 33, 36, 40]
    assert [cap.limit for cap in caps(Policy(max_cost=30), {}, token_limit=50)] == [30, 50]


@each_case(
    ("setting", "spent", "reason"),
    [
        (
            "max_cost_per_run",
            10,
            (
                "a run has cost what one may: $0.00001 of $0.00001; `loopwright resume plan_1` continues with another "
                "run; `loopwright resume plan_1 --max-cost-per-run 0.00002` raises it and continues"
            ),
        ),
        (
            "max_cost_per_task",
            21,
            (
                "the budget of a task is used up: $0.000021 of $0.00002; "
                "`loopwright resume plan_1 --max-cost-per-task 0.000041` raises it and continues"
            ),
        ),
        (
            "max_cost",
            30,
            (
                "the budget is used up: $0.00003 of $0.00003; "
                "`loopwright resume plan_1 --max-cost 0.00006` raises it and continues"
            ),
        ),
        (
            "max_cost_per_loop",
            33,
            (
                "the budget of the loop is used up: $0.000033 of $0.000033; "
                "`loopwright resume plan_1 --max-cost-per-loop 0.000066` raises it and continues"
            ),
        ),
        (
            "max_cost_per_project",
            36,
            (
                "the budget of the project is used up: $0.000036 of $0.000036; "
                "`loopwright resume plan_1 --max-cost-per-project 0.000072` raises it and continues"
            ),
        ),
        (
            "max_cost_per_day",
            40,
            (
                "the budget of the day is used up: $0.00004 of $0.00004; it continues by itself at 2026-03-02 00:00 "
                "UTC; `loopwright resume plan_1 --max-cost-per-day 0.00008` raises it and continues"
            ),
        ),
    ],
)
def test_a_cap_that_is_reached_says_so_and_what_to_type(setting: str, spent: int, reason: str) -> None:
    over = used_up(caps(ALL, {setting: spent}, now=NOW))
    assert over is not None
    assert over.reason("plan_1") == reason
    assert used_up(caps(ALL, {setting: 9})) is None


def test_what_is_only_estimated_is_marked() -> None:
    over = used_up(caps(ALL, {"max_cost": 30}, estimated=True))
    assert over is not None
    assert over.why == "the budget is used up: ~$0.00003 of $0.00003"


@each_case(
    ("limit", "spent", "proposed"),
    [(1_000_000, 1_200_000, 2_200_000), (50_000, 50_001, 110_000), (30, 31, 61)],
)
def test_as_much_again_is_proposed_to_the_cent(limit: int, spent: int, proposed: int) -> None:
    assert Cap(setting="max_cost", limit=limit, spent=spent).over.raise_to == proposed


@each_case(("spent", "is_near"), [(7, False), (8, True), (9, True), (10, False)])
def test_a_cap_is_near_from_four_fifths_on_until_it_is_used_up(spent: int, *, is_near: bool) -> None:
    assert Cap(setting="max_cost", limit=10, spent=spent).is_near is is_near


def test_every_cap_has_words_for_that_it_is_nearly_used_up(wording: Wording) -> None:
    said = [replace(cap, limit=1_000_000, spent=850_000, estimated=True).warning for cap in caps(ALL, {})]
    assert len(set(said)) == 6
    wording(said)


def test_a_run_may_cost_what_the_tightest_cap_leaves() -> None:
    assert allowance(()) is None
    assert allowance(caps(ALL, {})) == 10
    assert allowance(caps(ALL, {"max_cost_per_task": 13})) == 7
    assert allowance(caps(ALL, {"max_cost": 30})) == 0


def test_while_others_run_there_must_be_enough_for_a_whole_run() -> None:
    assert allowance(caps(ALL, {}, {"max_cost": 20})) == 10
    assert allowance(caps(ALL, {}, {"max_cost": 21})) == 0, "it waits until they have ended"
    assert allowance(caps(ALL, {"max_cost": 25})) == 5, "with nobody to wait for, it takes what there is"
    whole = Policy(max_cost=30)
    assert allowance(caps(whole, {}, {"max_cost": 29})) == 1, "without a cap on runs nobody needs all of it"
    assert allowance(caps(whole, {}, {"max_cost": 30})) == 0


def test_a_plan_is_over_its_budget_when_that_is_spent_or_cannot_be_counted(wording: Wording) -> None:
    assert over_budget(plan(ALL, spent_micros=29)) is None
    over = over_budget(plan(ALL, spent_micros=30))
    assert over is not None
    assert "$0.00003 of $0.00003" in over.why
    unknown = over_budget(plan(Policy(max_cost_per_task=1), unknown_costs=1))
    assert unknown is not None
    wording(unknown.why)
    assert "`loopwright resume plan_1 --max-cost-per-task AMOUNT`" in unknown.reason("plan_1")
    assert over_budget(plan(Policy(), spent_micros=10**9, unknown_costs=3)) is None


def test_a_day_ends_at_midnight_by_utc() -> None:
    project = Project(
        id="r", name="", path="", created_at=NOW, spent_on="2026-03-01", spent_micros=7, unknown_costs=1
    )
    assert spent_today(project, NOW) == (7, 1)
    assert spent_today(project, NOW + timedelta(hours=12)) == (0, 0)
    assert next_day(NOW) == next_day(NOW - timedelta(hours=12)) == NOW + timedelta(hours=12)


def test_what_others_will_probably_cost_is_kept_free_but_not_withheld() -> None:
    policy = Policy(max_cost=30)
    assert allowance(caps(policy, {}, {}, {"max_cost": 20}), expected=10) == 30
    assert allowance(caps(policy, {}, {}, {"max_cost": 21}), expected=10) == 0, (
        "it waits until they have ended"
    )
    assert allowance(caps(policy, {"max_cost": 25}), expected=10) == 5, "alone it takes what there is"
    assert allowance(caps(policy, {}, {"max_cost": 5}, {"max_cost": 15}), expected=10) == 25
    each = replace(policy, max_cost_per_run=12)
    assert allowance(caps(each, {}, {}, {"max_cost": 18}), expected=30) == 12, (
        "its own limit goes before a guess"
    )
    assert allowance(caps(each, {}, {}, {"max_cost": 19}), expected=1) == 0


def test_a_run_is_expected_to_cost_the_average_and_at_least_what_is_set() -> None:
    assert expected((), least=None) == 0
    assert expected((), least=7) == 7
    assert expected((10, 5), least=7) == 8
    assert expected((10, 5), least=9) == 9
    assert expected((10, 5), least=None) == 8


def test_reviews_may_cost_a_share_of_the_work() -> None:
    policy = Policy()
    cap = review_cap(policy, worked=1000, reviewed=7)
    assert cap is not None
    assert (cap.limit, cap.spent) == (10 * policy.review.max_share, 7)
    assert review_cap(policy, worked=0, reviewed=0) is None
