"""What a project's page says before a plan is dispatched, and while its gate runs."""

import json
from collections.abc import Sequence
from pathlib import Path

from tests.cases import each_case
from tests.contracts.store import rows

from loopwright.adapters.store.sql import SqlStore
from loopwright.core.values.states import PlanState
from loopwright.services.dashboard.estimate import Taken, expected
from loopwright.services.dashboard.gate import gate_steps
from loopwright.services.dashboard.plan import planner_of, ranks

TAKEN = (
    Taken(seconds=10, cost_micros=100),
    Taken(seconds=20, cost_micros=300),
    Taken(seconds=90, cost_micros=None),
)
CHAIN = {"a": [], "b": ["a"], "c": ["b"]}
APART: dict[str, list[str]] = {name: [] for name in "abcd"}


@each_case(
    "needs, slots, at_once, seconds",
    [(CHAIN, 4, 3, 60), (APART, 2, 2, 40), (APART, 1, 1, 80), (APART, 9, 4, 20), ({"a": []}, 3, 1, 20)],
)
def test_time_follows_from_the_longest_chain_or_from_few_slots(
    needs: dict[str, Sequence[str]], slots: int, at_once: int, seconds: float
) -> None:
    found = expected(needs, TAKEN, slots)
    assert (found.slots, found.seconds) == (at_once, seconds)
    assert found.cost_micros == 200 * len(needs)


def test_without_finished_tasks_nothing_is_estimated() -> None:
    found = expected(CHAIN, (), 2)
    assert (found.tasks, found.known, found.seconds, found.cost_micros) == (3, 0, None, None)


def test_the_commands_of_a_gate_are_shown_as_they_end(tmp_path: Path) -> None:
    assert gate_steps(tmp_path) == ()
    folder = tmp_path / "gate"
    folder.mkdir()
    commands = [{"name": name, "command": f"run {name}"} for name in ("a", "b", "c", "d")]
    (folder / "job.json").write_text(json.dumps({"commands": commands}))
    assert [one.state for one in gate_steps(tmp_path)] == ["RUNNING", "QUEUED", "QUEUED", "QUEUED"]
    ended = {"duration_s": 1.5, "timed_out": False}
    results = [{**commands[0], **ended, "exit_code": 0}, {**commands[2], **ended, "exit_code": 1}]
    (folder / "results.json").write_text(json.dumps({"commands": results}))
    steps = gate_steps(tmp_path)
    # A command may end before an earlier one, which was put off.
    assert [one.state for one in steps] == ["passed", "RUNNING", "failed", "QUEUED"]
    assert [one.duration_s for one in steps] == [1.5, None, 1.5, None]


def test_a_rank_is_the_longest_chain_before_a_task() -> None:
    assert ranks({"d": ["c", "a"], **CHAIN, "x": ["gone"]}) == {"a": 0, "b": 1, "c": 2, "d": 3, "x": 0}


def test_a_draft_leads_to_the_agent_that_writes_it_until_it_is_written(tmp_path: Path) -> None:
    project = rows.project()
    loop = rows.loop(project)
    draft = rows.plan(loop, status=PlanState.DRAFT, wish={"goal": "x"})
    written = rows.plan(loop, status=PlanState.DRAFT, wish={"goal": "x", "written": True})
    asked = [rows.plan(loop, made_for=one.id) for one in (draft, written)]
    store = SqlStore.open(tmp_path / "home.db")
    try:
        store.transact_sync(
            "test", lambda tx: [tx.insert(one) for one in (project, loop, draft, written, *asked)]
        )
        assert store.read_sync(lambda tx: planner_of(tx, draft)) == asked[0].id
        assert store.read_sync(lambda tx: planner_of(tx, written)) is None
    finally:
        store.close_sync()
