"""The DAG of tasks: what is wrong with it, what is ready, what the longest chain is, who gets in whose way."""

import pytest
from tests.cases import each_case

from loopwright.core.policy.graph import (
    critical_path,
    dependents,
    find_cycle,
    ready,
    scopes_overlap,
    topological,
    unknown_dependencies,
)

DIAMOND = {"plan": [], "left": ["plan"], "right": ["plan"], "join": ["left", "right"]}


@pytest.mark.trap("unknown dependency")
def test_a_dependency_that_is_no_task_is_named_with_who_wants_it() -> None:
    assert unknown_dependencies({"a": ["ghost"], "b": ["a", "spirit"]}) == (("a", "ghost"), ("b", "spirit"))
    assert unknown_dependencies(DIAMOND) == ()


def test_a_cycle_is_told_as_the_way_round_and_nothing_before_it() -> None:
    cycle = find_cycle({"entry": ["a"], "a": ["b"], "b": ["c"], "c": ["a"]})
    assert cycle == ("a", "b", "c", "a")


def test_a_task_that_waits_for_itself_is_a_cycle() -> None:
    assert find_cycle({"a": ["a"]}) == ("a", "a")


def test_two_ways_to_the_same_task_are_no_cycle() -> None:
    assert find_cycle(DIAMOND) is None


def test_unknown_dependencies_do_not_disturb_the_search_for_cycles() -> None:
    assert find_cycle({"a": ["ghost"], "b": ["ghost", "a"]}) is None


def test_a_chain_of_ten_thousand_tasks_is_looked_through() -> None:
    chain = {str(n): [str(n + 1)] if n < 9_999 else [] for n in range(10_000)}
    assert find_cycle(chain) is None
    assert len(critical_path(chain)) == 10_000
    closed = {**chain, "9999": ["0"]}
    assert len(find_cycle(closed) or ()) == 10_001


def test_each_task_knows_who_waits_for_it() -> None:
    assert dependents(DIAMOND) == {"plan": ["left", "right"], "left": ["join"], "right": ["join"], "join": []}


def test_ready_is_what_is_not_done_and_waits_for_nothing_that_is_not() -> None:
    assert ready(DIAMOND, ()) == ("plan",)
    assert ready(DIAMOND, {"plan"}) == ("left", "right")
    assert ready(DIAMOND, {"plan", "left"}) == ("right",)
    assert ready(DIAMOND, set(DIAMOND)) == ()


def test_a_dependency_named_twice_counts_once() -> None:
    assert topological({"a": [], "b": ["a", "a"]}) == ("a", "b")


def test_the_critical_path_is_the_longest_chain_from_its_first_task() -> None:
    edges = {"short": [], "one": [], "two": ["one"], "three": ["two", "short"]}
    assert critical_path(edges) == ("one", "two", "three")


def test_a_plan_without_tasks_has_no_critical_path() -> None:
    assert critical_path({}) == ()


@each_case(
    ("one", "other"),
    [
        (["src/api.py"], ["src/api.py"]),
        (["src/**"], ["src/api/limits.py"]),
        (["src/a*.py"], ["src/b*.py"]),  # only the fixed part before the wildcard is compared
        (["**/*.py"], ["docs/index.md"]),
        (["src"], ["src/api.py"]),
        (["src/"], ["/src/api.py"]),
        (["./src/api.py"], ["src/api.py"]),
        (["src//api.py"], ["src/api.py"]),
        (["."], ["docs"]),
        (["src/{api,web}/**"], ["src/api/limits.py"]),
        (["docs/a", "src/b"], ["tests/c", "src/b/d"]),
    ],
)
def test_scopes_that_may_meet_overlap_both_ways(one: list[str], other: list[str]) -> None:
    assert scopes_overlap(one, other)
    assert scopes_overlap(other, one)


@each_case(
    ("one", "other"),
    [
        (["src/api.py"], ["src/web.py"]),
        (["src/api/**"], ["src/web/**"]),
        (["src"], ["srcs"]),
        ([], ["src"]),
        ([], []),
    ],
)
def test_scopes_that_cannot_meet_do_not_overlap(one: list[str], other: list[str]) -> None:
    assert not scopes_overlap(one, other)
    assert not scopes_overlap(other, one)
