"""What a person changes in loops: agents, models, priorities, and what becomes of deleted loops."""

from typing import Any

import pytest
from tests.doubles import Home, Numbered, planned

from loopwright.core.rows.model import Attempt, Loop, Project, Run
from loopwright.core.values.errors import Refused
from loopwright.core.values.states import LoopState, TaskState
from loopwright.engine.intake.loops import (
    ask_to_start,
    delete_loop,
    note_started,
    register_loop,
    stop_unstarted,
)


def _loop(home: Home) -> Loop:
    (loop,) = home.all(Loop)
    return loop


@pytest.mark.capability("C099")
async def test_another_agent_of_a_loop_gets_what_has_not_begun() -> None:
    home = await Home().launch()
    home.submit(planned("a"), planned("b", "a"))
    [leg, *_] = await home.turn()
    assert (await home.command("set_agent", _loop(home).id, agent="codex", parallel=3)).state == "APPLIED"
    agents = {one.id: (one.agent, one.model) for one in home.all(Attempt)}
    assert agents.pop(leg.subject)[0] != "codex", "an agent that works is not replaced"
    assert set(agents.values()) == {("codex", None)}
    queued = [one for one in home.all(Run) if one.attempt_id in agents]
    assert [(one.agent, one.model) for one in queued] == [("codex", None)]
    assert (home.plan().policy.agent, home.plan().policy.parallel) == ("codex", 3)
    assert _loop(home).settings == {"agent": "codex", "parallel": 3}
    (event,) = home.events("agent_set")
    assert (event.actor, event.loop) == ("me", _loop(home).id)


async def test_another_agent_of_a_task_gets_its_queued_attempt() -> None:
    home = await Home().launch()
    home.submit(planned("a"), planned("b", "a"))
    await home.turn()
    task = home.task("b")
    assert task.status is TaskState.QUEUED
    await home.command("set_agent", task.id, agent="codex", model="small")
    (attempt,) = [one for one in home.all(Attempt) if one.task_id == task.id]
    assert (attempt.agent, attempt.model) == ("codex", "small")


async def test_a_priority_that_a_person_gave_to_a_loop_survives_its_next_plan() -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    await home.command("set_priority", _loop(home).id, priority=1)
    [leg] = await home.turn()
    home.hand.land(leg)
    [verify] = await home.turn()
    await home.verify(verify)
    home.submit(planned("b"), sha256="b" * 64)
    assert _loop(home).priority == 1


def _at_rest(home: Home) -> Loop:
    def register(tx: Any) -> Loop:
        project = Project(id=home.ids("proj"), name="p", path="/p", created_at=tx.now())
        tx.insert(project)
        return register_loop(
            tx, home.ids, project, "token:ci", name="l", kind="yaml", source="plan.yaml", priority=5
        )

    return home.store.transact_sync("loop", register)


@pytest.mark.capability("C097")
async def test_a_loop_is_deleted_only_at_rest_and_comes_back_with_its_source() -> None:
    home = await Home().launch()
    loop = _at_rest(home)

    def delete(tx: Any) -> None:
        delete_loop(tx, tx.get(Loop, loop.id), "token:ci")

    home.store.transact_sync("start", lambda tx: ask_to_start(tx, loop, "token:ci", {}))
    with pytest.raises(Refused, match="is starting") as refused:
        home.store.transact_sync("delete", delete)
    assert refused.value.code == "loop_at_work"
    home.store.transact_sync("started", lambda tx: note_started(tx, loop))
    for _ in range(2):
        home.store.transact_sync("delete", delete)
    assert len(home.events("loop_deleted")) == 1
    assert _loop(home).deleted_at is not None

    def again(tx: Any) -> Loop:
        (project,) = tx.find(Project)
        return register_loop(
            tx, Numbered(), project, "token:ci", name="m", kind="yaml", source="plan.yaml", priority=2
        )

    back = home.store.transact_sync("again", again)
    assert (back.id, back.name, back.priority, back.deleted_at) == (loop.id, "m", 2, None)
    with pytest.raises(Refused, match="already"):
        home.store.transact_sync("again", again)


async def test_stopping_a_loop_without_a_plan_takes_its_start_back() -> None:
    home = await Home().launch()
    loop = _at_rest(home)
    home.store.transact_sync("start", lambda tx: ask_to_start(tx, loop, "token:ci", {}))

    def stop(tx: Any) -> Loop:
        return stop_unstarted(tx, tx.get(Loop, loop.id), "token:ci")

    for _ in range(2):
        stopped = home.store.transact_sync("stop", stop)
        assert (stopped.state, stopped.start) == (LoopState.STOPPED, None)
    assert len(home.events("loop_stopped")) == 1
