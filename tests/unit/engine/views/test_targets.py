"""What a person means by a name, and what is taken when they name nothing."""

from typing import Any
from uuid import UUID

import pytest
from tests.doubles import Home, planned
from tests.fakes.world import Numbered
from tests.refusals import raises_code
from tests.wording_plugin import Wording

from loopwright.core.rows.model import Plan, Run, Task
from loopwright.core.values.errors import Ambiguous
from loopwright.core.values.failures import Failure
from loopwright.core.values.ids import Kind, make, short_id
from loopwright.engine.views.targets import handle, obvious_target, resolve_target
from loopwright.engine.views.views import plan_view
from loopwright.ports import PlannedWork


class _Spread(Numbered):
    """Draws ids that differ from their first character on, as random ones do."""

    def __call__(self, prefix: str) -> str:
        self._n += 1
        return make(Kind(prefix), UUID(int=self._n * 2**116 + self._n))


async def _home() -> Home:
    return await Home(ids=_Spread()).launch()


def _submit(home: Home, title: str, *keys: str, **changes: Any) -> Plan:
    home.clock.advance(60)
    tasks = tuple(planned(key) for key in keys)
    sha256 = f"{len(home.all(Plan)):064x}"
    work = PlannedWork(title=title, tasks=tasks, sha256=sha256)
    return home.submit(*tasks, **{"source_path": f"{title}.yaml", "work": work} | changes)


async def _finish(home: Home) -> None:
    """Carry everything that can start to its end."""
    while legs := await home.turn():
        for leg in legs:
            if leg.subject.startswith("plan"):
                await home.verify(leg)
            else:
                home.hand.land(leg)
                await home.ended(leg)


def _meant(home: Home, text: str) -> Any:
    return home.store.read_sync(lambda tx: resolve_target(tx, text))


def _in(home: Home, plan: Plan, key: str) -> Task:
    [task] = home.all(Task, plan_id=plan.id, key=key)
    return task


async def test_a_task_is_named_by_its_plan_in_every_way_that_names_a_plan() -> None:
    home = await _home()
    first, second = _submit(home, "one", "mul"), _submit(home, "two", "mul")
    for name in (
        first.id,
        short_id(first.id),
        first.id[5:11],
        "one",
        "ONE",
        "repo/one",
        "one.yaml",
        "./one.yaml",
    ):
        assert _meant(home, f"{name}/mul").id == _in(home, first, "mul").id, name
    assert _meant(home, "two/mul").id == _in(home, second, "mul").id
    assert _meant(home, "two") == second


async def test_a_slash_may_be_part_of_a_tasks_own_name() -> None:
    home = await _home()
    plan = _submit(home, "one", "api/limits", "limits")
    for name in ("api/limits", "one/api/limits", "repo/one/api/limits"):
        assert _meant(home, name).key == "api/limits", name
    assert _meant(home, f"{plan.id}/limits").key == "limits"


async def test_the_only_unfinished_plan_is_meant_even_if_another_one_is_newer() -> None:
    home = await _home()
    older = _submit(home, "one", "mul")
    await home.command("pause", older.id)
    newer = _submit(home, "two", "mul")
    await _finish(home)
    assert home.get(Plan, newer.id).status == "VERIFIED"
    assert _meant(home, "mul").plan_id == older.id
    read = home.store.read_sync
    assert read(lambda tx: handle(tx, _in(home, older, "mul"))) == "mul"
    assert read(lambda tx: handle(tx, _in(home, newer, "mul"))) == f"{short_id(newer.id)}/mul"
    assert read(lambda tx: plan_view(tx, older.id, home.world.paths)).prefix == ""
    assert read(lambda tx: plan_view(tx, newer.id, home.world.paths)).prefix == f"{short_id(newer.id)}/"


async def test_a_newer_run_of_the_same_file_takes_its_place() -> None:
    home = await _home()
    _submit(home, "one", "mul")
    await _finish(home)
    again = _submit(home, "one", "mul", new=True)
    await _finish(home)
    assert _meant(home, "mul").plan_id == again.id
    assert _meant(home, "one/mul").plan_id == again.id
    assert home.store.read_sync(lambda tx: plan_view(tx, again.id, home.world.paths)).prefix == ""


async def test_what_could_be_several_is_listed_with_its_plan_its_state_and_its_age() -> None:
    home = await _home()
    first, second = _submit(home, "one", "mul"), _submit(home, "two", "mul")
    home.clock.advance(30)
    with pytest.raises(Ambiguous) as unclear:
        _meant(home, "mul")
    told = [(one.handle, one.state, one.title, one.changed_s) for one in unclear.value.choices]
    assert told == [
        (f"{short_id(second.id)}/mul", "CREATED", "two", 30.0),
        (f"{short_id(first.id)}/mul", "CREATED", "one", 90.0),
    ]
    assert all(_meant(home, one.handle).key == "mul" for one in unclear.value.choices)
    view = home.store.read_sync(lambda tx: plan_view(tx, first.id, home.world.paths))
    assert view.prefix == f"{short_id(first.id)}/"


async def test_a_task_that_its_plan_does_not_have_is_told_with_those_it_has(wording: Wording) -> None:
    home = await _home()
    _submit(home, "one", "mul", "div")
    with raises_code("task_not_found") as missing:
        _meant(home, "one/sub")
    wording(missing.value.hint)
    with raises_code("target_not_found"):
        _meant(home, "none/mul")


def _obvious(home: Home, *, with_output: bool = False) -> tuple[str, str]:
    found = home.store.read_sync(lambda tx: obvious_target(tx, with_output=with_output))
    return (found.row.key if isinstance(found.row, Task) else found.row.title), found.why


async def test_nothing_named_is_the_task_that_needs_a_person_then_a_running_one_then_the_newest_plan(
    wording: Wording,
) -> None:
    home = await _home()
    with raises_code("no_plan"):
        _obvious(home)
    _submit(home, "one", "mul", "div")
    wording(_obvious(home))
    mul, div = await home.turn()
    wording(_obvious(home))
    home.hand.fail(div, Failure.AUTH)
    wording(_obvious(home))
    await home.command("cancel", home.task("div").id)
    wording(_obvious(home))
    home.hand.land(mul)
    await home.turn()
    wording(_obvious(home))


async def test_of_a_finished_plan_the_output_that_was_printed_last_is_meant(wording: Wording) -> None:
    home = await _home()
    _submit(home, "one", "mul")
    [leg] = await home.turn()
    home.hand.land(leg)
    wording(_obvious(home, with_output=True))
    home.clock.advance(1)
    await _finish(home)
    assert home.all(Run, role="verify")
    wording(_obvious(home, with_output=True))
