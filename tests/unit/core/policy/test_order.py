"""What comes first holds up what comes after it, as long as it continues without you."""

from typing import Any

from tests.contracts.store import rows

from loopwright.core.policy.graph import order_among, ordered
from loopwright.core.policy.order import holds_up, is_early, is_met, is_stuck
from loopwright.core.rows.model import Task
from loopwright.core.values.states import TaskState

PLAN = rows.plan(rows.loop(rows.project()))


def task(key: str, status: TaskState = TaskState.QUEUED, **more: Any) -> Task:
    return rows.task(PLAN, id=key, key=key, status=status, **more)


def test_an_order_that_contradicts_a_dependency_is_dropped_and_named() -> None:
    edges = {"a": ["b"], "b": [], "c": []}
    order, dropped = ordered(edges, {"b": ["a"], "c": ["b", "b", "c", "ghost"]})
    assert order == {"a": (), "b": (), "c": ("b",)}
    assert dropped == (("b", "a"),)


def test_a_cycle_of_dependencies_is_left_to_those_who_refuse_it() -> None:
    assert ordered({"a": ["b"], "b": ["a"]}, {}) == ({"a": (), "b": ()}, ())


def test_an_order_full_of_contradictions_is_dropped_as_a_whole() -> None:
    names = [f"t{n}" for n in range(12)]
    order, dropped = ordered(dict.fromkeys(names, ()), dict.fromkeys(names, names))
    assert not any(order.values())
    assert len(dropped) == 12 * 11


def test_the_order_leads_through_what_is_out_of_the_way() -> None:
    chain = {"b": ["a"], "c": ["b"], "d": ["c", "b"]}
    assert order_among(["a", "d"], chain) == {"a": (), "d": ("a",)}


def test_a_task_that_waits_for_you_holds_up_nothing_and_passes_on_what_comes_before_it() -> None:
    tasks = {
        one.id: one
        for one in (
            task("moving", TaskState.RUNNING),
            task("failed", TaskState.ERROR, after=("moving",), early=True),
            task("after failed", after=("failed",)),
            task("asks", TaskState.AWAITING_RESPONSE),
            task("after asks", after=("asks",)),
            task("taken", taken_by="me"),
            task("after taken", after=("taken",)),
            task("needs failed", depends_on=("failed",)),
            task("needs that", depends_on=("needs failed", "done")),
            task("after those", after=("needs that",)),
            task("done", TaskState.COMPLETE),
            task("after done", after=("done",)),
            task("after moving", after=("moving",)),
        )
    }
    early = {key for key, one in tasks.items() if is_early(one, tasks.__getitem__)}
    assert early == {"failed", "after failed", "after moving"}
    assert is_stuck(tasks["needs that"], tasks.__getitem__)
    assert holds_up(tasks["moving"], tasks.__getitem__)
    assert not holds_up(tasks["done"], tasks.__getitem__)


def test_a_manual_step_that_was_skipped_is_out_of_the_way() -> None:
    assert is_met(task("step", TaskState.CANCELLED, manual=True))
    assert not is_met(task("work", TaskState.CANCELLED))
