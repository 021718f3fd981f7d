"""A plan is judged before anything runs."""

from dataclasses import dataclass, replace

import pytest
from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright.core.plans.evaluating import MOST_TASKS, Weight, alone, cannot_fail, findings, impossible
from loopwright.core.values.policy import GateCommand


@dataclass(frozen=True, kw_only=True)
class Item:
    key: str
    title: str = ""
    depends_on: tuple[str, ...] = ()
    acceptance: tuple[GateCommand, ...] = ()
    criteria: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    manual: bool = False


def item(key: str, *, run: str = "", after: tuple[str, ...] = (), **more: tuple[str, ...]) -> Item:
    checks = (GateCommand(name=run, command=run),) if run else ()
    return Item(key=key, title=f"Make {key}", depends_on=after, acceptance=checks, **more)


def found(*tasks: Item) -> list[tuple[str, Weight]]:
    return [(one.check, one.weight) for one in findings(tasks)]


@pytest.mark.capability("C020")
def test_a_good_plan_has_nothing_to_be_said_about() -> None:
    assert found(item("a", run="pytest"), item("b", run="make", after=("a",))) == []


def test_what_cannot_run_is_impossible(wording: Wording) -> None:
    assert ("ids", Weight.IMPOSSIBLE) in found(item("a"), item("a"))
    assert found(item("a", run="x", after=("b",))) == [("dependencies", Weight.IMPOSSIBLE)]
    circle = (item("a", run="x", after=("b",)), item("b", run="x", after=("a",)))
    assert found(*circle) == [("cycles", Weight.IMPOSSIBLE)]
    wording(impossible(circle))
    many = [item(str(n)) for n in range(MOST_TASKS + 1)]
    assert ("size", Weight.IMPOSSIBLE) in found(*many)


@each_case(
    "command",
    ["true", ":", " exit 0 ", "echo it works", "pytest || true", "pytest; true", "make test || exit 0"],
)
def test_a_check_that_always_passes_proves_nothing(command: str) -> None:
    assert cannot_fail(command)
    assert found(item("a", run=command)) == [("can_fail", Weight.POINTLESS)]


def test_tasks_without_acceptance_of_their_own_are_named_unless_they_are_done(wording: Wording) -> None:
    tasks = (item("a"), item("b", run="x"), item("c"))
    assert found(*tasks) == [("acceptance", Weight.TOLD)]
    [told] = findings(tasks, settled=("a",))
    wording(told.text)
    assert findings(tasks, settled=("a", "c")) == ()


@each_case(
    "command", ["pytest", "grep -q true file", "test -f a && echo yes", "echo $(cat a)", "exit 1", "truely"]
)
def test_a_check_that_can_fail_is_left_alone(command: str) -> None:
    assert not cannot_fail(command)


def test_tasks_side_by_side_that_write_to_the_same_places_are_named() -> None:
    one, two = item("a", run="x", scope=("src/**",)), item("b", run="x", scope=("src/a.py",))
    assert found(one, two) == [("scopes", Weight.TOLD)]
    after = item("b", run="x", scope=("src/a.py",), after=("c",))
    assert found(one, item("c", run="x", after=("a",)), after) == [], (
        "one waits for the other, through a third"
    )


def test_a_thousand_tasks_are_compared_without_comparing_each_with_all() -> None:
    """Chains of three, each in a folder of its own, and one task that writes everywhere at the end of none."""
    chained = [
        item(f"t{n}", run="x", scope=(f"src/m{n // 3}/**",), after=(f"t{n - 1}",) if n % 3 else ())
        for n in range(1000)
    ]
    assert found(*chained) == []
    (told,) = findings([*chained, item("all", run="x", scope=("src",))])
    assert "t0 and all" in told.text
    assert "and 995 more" in told.text


def test_twins_and_tasks_that_are_too_large_are_named() -> None:
    twin = replace(item("b", run="x"), title="make  A")
    assert found(item("a", run="x"), twin) == [("twins", Weight.TOLD)]
    assert found(item("a", run="x", criteria=tuple("x" * 21))) == [("size", Weight.TOLD)]


def test_a_task_that_is_added_later_is_judged_by_itself() -> None:
    assert alone(item("a", run="test -s a")) == ()
    assert [one.weight for one in alone(item("a", run="true"))] == [Weight.POINTLESS]


def test_an_order_that_does_not_fit_is_named_and_never_refused(wording: Wording) -> None:
    first = replace(item("a", run="x", after=("b",)), after=("ghost",))
    second = replace(item("b", run="x"), after=("a",))
    texts = [one.text for one in findings([first, second])]
    wording(texts)
    assert impossible([first, second]) == ()


def test_a_manual_step_needs_no_acceptance_and_order_keeps_scopes_apart() -> None:
    step = replace(item("look"), manual=True)
    one = replace(item("a", run="x"), scope=("src",))
    assert found(step, one, replace(item("b", run="x"), scope=("src",), after=("a",))) == []
