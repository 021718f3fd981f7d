"""What a transaction does with rows."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta, timezone
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.contracts.store import rows
from tests.contracts.store.rows import AT, attempt, family, filled, loop, plan, project, task

from loopwright.adapters.store.codec import from_document
from loopwright.adapters.store.tables import stored_as
from loopwright.core.rows.model import Attempt, Command, Cursor, Loop, Plan, Project, Task
from loopwright.core.rows.row_types import ROW_TYPES
from loopwright.core.values.documents import document
from loopwright.core.values.errors import StaleVersion
from loopwright.core.values.findings import Check, CheckStatus, Verdict, VerdictStatus
from loopwright.core.values.policy import GateCommand
from loopwright.core.values.states import LIVE_ATTEMPT, AttemptState, PlanState, TaskState
from loopwright.ports import NOT_NULL


async def test_a_row_comes_back_as_it_was_put_in(store: Any) -> None:
    planned = await store.transact("make", family)
    assert await store.read(lambda tx: tx.get(Plan, planned.id)) == planned


async def test_a_row_that_is_not_there_is_none(store: Any) -> None:
    assert await store.read(lambda tx: tx.get(Plan, "plan_none")) is None


async def test_every_row_type_survives_with_every_field_filled(store: Any) -> None:
    """In one home for all of them: to make one takes longer than what is done in it."""
    family_rows = {}

    def make_owners(tx: Any) -> None:
        planned = family(tx)
        done = task(planned)
        tx.insert(done)
        family_rows.update(
            project_id=planned.project_id, loop_id=planned.loop_id, plan_id=planned.id, task_id=done.id
        )

    store.transact_sync("owners", make_owners)
    for kind in ROW_TYPES:
        owners = {column: family_rows[column] for column in stored_as(kind).owners}
        _survives(store, kind, owners)


def _survives(store: Any, kind: type[Any], owners: dict[str, str]) -> None:
    @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(filled(kind, **owners))
    def survives(row: Any) -> None:
        def there_and_back(tx: Any) -> Any:
            tx.insert(row)
            found = tx.get(kind, row.id)
            assert tx.find(kind, id=row.id) == [found]
            tx.delete(kind, row.id)
            return found

        assert store.transact_sync("there and back", there_and_back) == row
        # The export of a plan is the same row as JSON, and lost rows are made from it again.
        assert from_document(kind, json.loads(json.dumps(document(row)))) == row

    survives()


async def test_nested_values_keep_their_types(store: Any) -> None:
    verdict = Verdict(
        status=VerdictStatus.FAILED,
        checks=(Check(id="c", name="n", status=CheckStatus.FAILED, duration_s=1.0),),
    )

    def make(tx: Any) -> str:
        planned = family(tx)
        gates = (GateCommand(name="all", command="make", timeout_s=3.0),)
        tx.update(Plan, planned.id, verdict=verdict, gates=gates, evaluation={"a": [1, {"b": None}]})
        return planned.id

    plan_id = await store.transact("make", make)
    found = await store.read(lambda tx: tx.get(Plan, plan_id))
    assert found.verdict == verdict
    assert isinstance(found.verdict.status, VerdictStatus)
    assert isinstance(found.status, PlanState)
    assert found.gates[0].timeout_s == 3.0
    assert found.evaluation == {"a": [1, {"b": None}]}


async def test_moments_are_aware_and_keep_their_microseconds(store: Any) -> None:
    local = AT.astimezone(timezone(timedelta(hours=5, minutes=30)))
    row = project(created_at=local)
    await store.transact("make", lambda tx: tx.insert(row))
    found = await store.read(lambda tx: tx.get(Project, row.id))
    assert found.created_at == AT
    assert found.created_at.utcoffset() == timedelta(0)
    assert found.created_at.microsecond == 123456


@pytest.mark.trap("naive time")
async def test_a_moment_without_a_time_zone_is_refused(store: Any) -> None:
    row = project(created_at=AT.replace(tzinfo=None))
    with pytest.raises(TypeError, match="time zone"):
        await store.transact("make", lambda tx: tx.insert(row))


async def test_text_of_every_script_and_length_survives(store: Any) -> None:
    name = "Füße 漢字 🐍 \u202e \x01 '; DROP TABLE plans; --" + "x" * 2_000_000
    row = project(name=name)
    await store.transact("make", lambda tx: tx.insert(row))
    assert (await store.read(lambda tx: tx.find(Project, name=name)))[0].name == name


async def test_what_no_database_can_hold_is_replaced_and_nothing_else_is_lost(store: Any) -> None:
    row = project(name="a\x00b\ud800c", path="p\x00")
    await store.transact("make", lambda tx: tx.insert(row))
    found = await store.read(lambda tx: tx.find(Project, name="a\x00b\ud800c"))
    assert [one.name for one in found] == ["a\ufffdb\ufffdc"]


async def test_json_keeps_even_what_text_cannot(store: Any) -> None:
    odd = {"note": "a\x00b\ud800c"}
    command = Command(id="cmd_1", actor="a", verb="v", target="t", arguments=odd, created_at=AT)
    await store.transact("make", lambda tx: tx.insert(command))
    assert (await store.read(lambda tx: tx.get(Command, "cmd_1"))).arguments == odd


def three_tasks(tx: Any) -> list[Task]:
    planned = family(tx)
    made = [
        task(planned, id="ptask_a", key="Zeta", priority=1, agent="codex", status=TaskState.QUEUED),
        task(planned, id="ptask_b", key="alpha", priority=2, status=TaskState.RUNNING),
        task(planned, id="ptask_c", key="ärger", priority=1, agent="claude", status=TaskState.COMPLETE),
    ]
    for one in reversed(made):
        tx.insert(one)
    return made


WHERE: list[tuple[dict[str, Any], str]] = [
    ({}, "abc"),
    ({"status": TaskState.QUEUED}, "a"),
    ({"status": "QUEUED"}, "a"),
    ({"status": {TaskState.QUEUED, TaskState.RUNNING}}, "ab"),
    ({"status": [TaskState.QUEUED], "priority": (1, 2)}, "a"),
    ({"status": frozenset()}, ""),
    ({"agent": None}, "b"),
    ({"agent": ["codex", None]}, "ab"),
    ({"agent": "codex", "priority": 2}, ""),
    ({"agent": NOT_NULL}, "ac"),
    ({"agent": NOT_NULL, "status": TaskState.QUEUED}, "a"),
]


async def test_rows_are_found_by_their_columns(store: Any) -> None:
    await store.transact("make", three_tasks)
    for where, expected in WHERE:
        found = await store.read(lambda tx, where=where: tx.find(Task, **where))
        count = await store.read(lambda tx, where=where: tx.count(Task, **where))
        assert (where, "".join(one.id[-1] for one in found)) == (where, expected)
        assert count == len(expected)


async def test_rows_are_counted_for_each_text_in_a_column(store: Any) -> None:
    await store.transact("make", three_tasks)
    assert await store.read(lambda tx: tx.tally(Task, "status")) == {"QUEUED": 1, "RUNNING": 1, "COMPLETE": 1}
    assert await store.read(lambda tx: tx.tally(Task, "plan_id", status=frozenset())) == {}
    [plan_id] = await store.read(lambda tx: tx.tally(Task, "plan_id"))
    found = await store.read(lambda tx: tx.tally(Task, "plan_id", agent=NOT_NULL))
    assert found == {plan_id: 2}


async def test_some_columns_of_rows_are_read_without_the_rest(store: Any) -> None:
    await store.transact("make", three_tasks)
    names = ("id", "status", "agent", "created_at", "criteria")
    for where, _ in WHERE:
        rows = await store.read(lambda tx, where=where: tx.find(Task, **where))
        found = await store.read(lambda tx, where=where: tx.columns(Task, names, **where))
        assert sorted(found) == [tuple(getattr(one, name) for name in names) for one in rows]


async def test_a_row_that_was_found_and_then_changed_is_known_as_it_is_now(store: Any) -> None:
    await store.transact("make", three_tasks)

    def change(tx: Any) -> Any:
        first = tx.find(Task, key="Zeta")[0]
        tx.update(Task, first.id, priority=9)
        return tx.get(Task, first.id).priority, tx.delete(Task, first.id), tx.get(Task, first.id)

    assert await store.transact("change", change) == (9, True, None)


ORDER: list[tuple[tuple[str, ...], int | None, str]] = [
    ((), None, "abc"),
    (("priority",), None, "acb"),
    (("-priority",), None, "bac"),
    (("-priority", "-key"), None, "bca"),
    (("key",), None, "abc"),  # by code point, whatever language the database speaks
    (("agent",), None, "bca"),  # None is the smallest
    (("-agent",), None, "acb"),
    (("-id",), None, "cba"),
    (("priority",), 2, "ac"),
    ((), 0, ""),
]


async def test_rows_come_in_the_order_that_was_asked_for(store: Any) -> None:
    await store.transact("make", three_tasks)
    for order_by, limit, expected in ORDER:
        find = partial(_find_tasks, order_by=order_by, limit=limit)
        assert (order_by, limit, await store.read(find)) == (order_by, limit, expected)


async def test_pages_in_every_order_have_each_row_once(store: Any) -> None:
    await store.transact("make", three_tasks)
    for order_by, limit, expected in ORDER:
        if limit is not None or any("agent" in term or "id" in term for term in order_by):
            continue
        seen, place = "", ()
        for _ in expected:
            find = partial(_page, order_by=order_by, place=place)
            page, place = await store.read(find)
            seen += page
        assert (order_by, seen, place and await store.read(partial(find, place=place))) == (
            order_by,
            expected,
            ("", ()),
        )
    behind_nothing = await store.read(lambda tx: tx.find(Task, order_by=("priority",), after=(99, "x")))
    assert behind_nothing == []


def _page(tx: Any, order_by: tuple[str, ...], place: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    found = tx.find(Task, order_by=order_by, limit=1, after=place)
    if not found:
        return "", ()
    (one,) = found
    return one.id[-1], (*(getattr(one, term.removeprefix("-")) for term in order_by), one.id)


def _find_tasks(tx: Any, **how: Any) -> str:
    return "".join(one.id[-1] for one in tx.find(Task, **how))


WRONG: list[Callable[[Any], Any]] = [
    lambda tx: tx.find(Task, nonsense=1),
    lambda tx: tx.find(Task, order_by=["nonsense"]),
    lambda tx: tx.find(Task, order_by=["criteria"]),
    lambda tx: tx.count(Task, nonsense=1),
    lambda tx: tx.tally(Task, "nonsense"),
    lambda tx: tx.columns(Task, ("id", "nonsense")),
    lambda tx: tx.get(dict, "x"),
    lambda tx: tx.insert(object()),
    lambda tx: tx.update(Task, "x", nonsense=1),
    lambda tx: tx.update(Task, "x", id="y"),
]


async def test_a_wrong_name_is_a_defect_and_says_so(store: Any) -> None:
    for ask in WRONG:
        with pytest.raises(TypeError):
            await store.transact("ask", ask)


async def test_a_second_row_with_the_same_id_is_refused_and_the_transaction_goes_on(store: Any) -> None:
    row = project()

    def twice(tx: Any) -> None:
        tx.insert(row)
        with pytest.raises(StaleVersion):
            tx.insert(replace(row, name="other"))
        tx.insert(project(id="proj_other"))

    await store.transact("twice", twice)
    assert (await store.read(lambda tx: tx.get(Project, row.id))).name == "demo"
    assert await store.read(lambda tx: tx.count(Project)) == 2


async def test_two_attempts_at_a_task_never_have_the_same_number(store: Any) -> None:
    def make(tx: Any) -> Task:
        one = task(family(tx))
        tx.insert(one)
        tx.insert(attempt(one, n=1))
        tx.insert(attempt(one, n=2, id="att_2"))
        with pytest.raises(StaleVersion):
            tx.insert(attempt(one, n=1))
        with pytest.raises(StaleVersion):
            tx.update(Attempt, "att_2", n=1)
        tx.update(Attempt, "att_2", n=3)
        return one

    one = await store.transact("make", make)
    found = await store.read(lambda tx: tx.find(Attempt, task_id=one.id, order_by=["n"]))
    assert [row.n for row in found] == [1, 3]


async def test_a_source_has_one_loop_in_its_project(store: Any) -> None:
    def make(tx: Any) -> None:
        first, second = project(), project()
        tx.insert(first)
        tx.insert(second)
        tx.insert(loop(first, source_path="plan.md"))
        tx.insert(loop(second, source_path="plan.md"))
        tx.insert(loop(first, source_path="plan.md"))

    with pytest.raises(StaleVersion):
        await store.transact("make", make)
    assert await store.read(lambda tx: tx.count(Loop)) == 0


async def test_an_update_changes_only_what_it_names_and_returns_the_row(store: Any) -> None:
    planned = await store.transact("make", family)
    changed = await store.transact(
        "change", lambda tx: tx.update(Plan, planned.id, title="New", open_tasks=3)
    )
    assert changed == replace(planned, title="New", open_tasks=3)
    assert await store.read(lambda tx: tx.get(Plan, planned.id)) == changed


EXPECT: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"fence": 3}, True),
    ({"fence": 3, "state": AttemptState.WORKING}, True),
    ({"worker_id": None}, True),
    ({"state": LIVE_ATTEMPT}, True),
    ({"fence": 2}, False),
    ({"fence": 3, "state": AttemptState.CHECKING}, False),
    ({"worker_id": "worker_1"}, False),
]


@pytest.mark.parametrize("changes", [{"leg": 9}, {}], ids=["change", "look"])
async def test_an_update_happens_only_if_the_row_is_as_expected(store: Any, changes: dict[str, Any]) -> None:
    def make(tx: Any) -> Task:
        one = task(family(tx))
        tx.insert(one)
        return one

    def change(tx: Any, made: Attempt, expect: dict[str, Any], as_expected: bool) -> None:
        tx.insert(made)
        if as_expected:
            assert tx.update(Attempt, made.id, expect=expect, **changes) == replace(made, **changes)
        else:
            with pytest.raises(StaleVersion):
                tx.update(Attempt, made.id, expect=expect, **changes)

    owner = await store.transact("make", make)
    for n, (expect, as_expected) in enumerate(EXPECT):
        made = attempt(owner, n=n, fence=3, leg=1, state=AttemptState.WORKING)
        await store.transact("change", partial(change, made=made, expect=expect, as_expected=as_expected))
        found = await store.read(lambda tx, made=made: tx.get(Attempt, made.id))
        assert found == (replace(made, **changes) if as_expected else made)


async def test_a_row_that_is_gone_cannot_be_updated(store: Any) -> None:
    with pytest.raises(StaleVersion):
        await store.transact("change", lambda tx: tx.update(Plan, "plan_none", title="x"))


async def test_a_transaction_sees_its_own_changes(store: Any) -> None:
    mine = project()

    def work(tx: Any) -> list[Any]:
        tx.insert(mine)
        seen = [tx.get(Project, mine.id).name]
        tx.update(Project, mine.id, name="second")
        seen.append(tx.get(Project, mine.id).name)
        with pytest.raises(StaleVersion):
            tx.update(Project, mine.id, expect={"name": "first"}, name="third")
        seen.append(tx.get(Project, mine.id).name)
        tx.delete(Project, mine.id)
        return [*seen, tx.get(Project, mine.id)]

    assert await store.transact("work", work) == [mine.name, "second", "second", None]


async def test_a_row_is_deleted_once(store: Any) -> None:
    await store.transact("make", lambda tx: tx.insert(Cursor(id="export", n=1)))
    assert await store.transact("delete", lambda tx: tx.delete(Cursor, "export")) is True
    assert await store.transact("delete", lambda tx: tx.delete(Cursor, "export")) is False


async def test_no_row_is_left_without_the_row_it_belongs_to(store: Any) -> None:
    planned = await store.transact("make", family)
    with pytest.raises(StaleVersion):
        await store.transact("orphan", lambda tx: tx.insert(plan(loop(project()))))
    with pytest.raises(StaleVersion):
        await store.transact("remove", lambda tx: tx.delete(Project, planned.project_id))
    assert await store.read(lambda tx: tx.count(Plan)) == 1
    assert await store.read(lambda tx: tx.count(Project)) == 1


async def test_the_rows_of_one_transaction_may_come_in_any_order(store: Any) -> None:
    def backwards(tx: Any) -> None:
        owner = project()
        driver = loop(owner)
        tx.insert(plan(driver))
        tx.insert(driver)
        tx.insert(owner)

    await store.transact("backwards", backwards)
    assert await store.read(lambda tx: tx.count(Plan)) == 1


async def test_a_reading_transaction_cannot_write(store: Any) -> None:
    for write in (
        lambda tx: tx.insert(project()),
        lambda tx: tx.append(rows.event()),
        lambda tx: tx.delete(Project, "x"),
        lambda tx: tx.update(Project, "x", name="y"),
    ):
        with pytest.raises(TypeError, match="transact"):
            await store.read(write)
    assert await store.read(lambda tx: (tx.count(Project), tx.last_event())) == (0, 0)


async def test_a_value_added_to_the_program_later_has_its_default(shared_home: Any) -> None:
    """A plan keeps the policy that it was dispatched with, and that may be older than the program."""
    from sqlalchemy import text

    store = shared_home.open()
    planned = await store.transact("make", family)
    engine = store._backend.engine
    with engine.begin() as connection:
        connection.execute(text('UPDATE plans SET policy = \'{"agent": "codex", "gone": 1}\''))
    found = await store.read(lambda tx: tx.get(Plan, planned.id))
    assert found.policy == replace(planned.policy, agent="codex")


@settings(max_examples=50, deadline=None)
@given(st.text())
def test_storable_text_is_a_fixed_point(text: str) -> None:
    from loopwright.adapters.store.codec import storable

    kept = storable(text)
    assert storable(kept) == kept
    assert len(kept) == len(text)
    kept.encode()
