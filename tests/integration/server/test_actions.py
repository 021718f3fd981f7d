"""What agents do with their tools is recorded with a reason, refused with a record, and undone."""

from pathlib import Path
from typing import Any

import pytest
from tests.contracts.store import rows
from tests.integration.server.api import Api

from loopwright.core.rows.action_rows import Action
from loopwright.core.rows.model import Loop
from loopwright.core.values.access import Scope
from loopwright.core.values.environments import PlanEnvironment
from loopwright.core.values.ids import Kind
from loopwright.core.values.states import ActionState, LoopState
from loopwright.services.access import tokens
from loopwright.services.remote.actions import MOST_PER_RUN

HERE = PlanEnvironment(host_id="h", submitter="s")


class Acting:
    """A project with a loop, and an agent with a token."""

    def __init__(self, api: Api, place: Path) -> None:
        self.api = api
        place.mkdir()
        self.project, self.loop, self.plan, self.task = api.family(path=str(place), environment=HERE)
        self.token = api.make_token("manager", scope=Scope.OPERATE, projects=(self.project.id,))

    def ask(self, **wanted: Any) -> Any:
        """Ask for an action, and return the reply."""
        body = {"kind": "prioritise", "loop_id": self.loop.id, "priority": 2, "reason": "It is urgent."}
        with self.api.client(self.token) as client:
            return client.post("/api/actions", json=body | wanted)

    def undo(self, action: str) -> Any:
        with self.api.client(self.token) as client:
            return client.post(f"/api/actions/{action}/undo")

    def rows(self) -> list[Action]:
        found: list[Action] = self.api.write(lambda tx: tx.find(Action, order_by=("created_at", "id")))
        return found

    def priority(self) -> int:
        found: Loop = self.api.write(lambda tx: tx.get(Loop, self.loop.id))
        return found.priority


@pytest.fixture
def acting(api: Api, tmp_path: Path) -> Acting:
    return Acting(api, tmp_path / "shop")


@pytest.mark.capability("C068")
def test_an_action_is_recorded_with_its_reason_and_undone_once(acting: Acting) -> None:
    before = acting.priority()
    done = acting.ask().json()
    assert (done["state"], done["reason"], done["actor"]) == ("DONE", "It is urgent.", "token:manager")
    assert acting.priority() == 2
    undone = acting.undo(done["id"]).json()
    assert (undone["state"], undone["undone_by"], acting.priority()) == ("UNDONE", "token:manager", before)
    assert acting.undo(done["id"]).json()["code"] == "action_not_undoable"
    (listed,) = acting.api.get("/api/actions", project=acting.project.id)["actions"]
    assert listed["id"] == done["id"]


def test_what_was_refused_is_in_the_record_too_and_nothing_happens_without_a_reason(acting: Acting) -> None:
    assert acting.ask(reason="  ").json()["code"] == "reason_missing"
    refused = acting.ask(kind="create", project_id=acting.project.id, template="none")
    assert refused.json()["code"] == "template_not_found"
    (row,) = acting.rows()
    assert (row.kind, row.state) == ("create", ActionState.REFUSED)
    assert row.result.startswith("template_not_found")
    assert acting.undo(row.id).json()["code"] == "action_not_undoable"


def test_an_action_in_another_project_is_not_there(acting: Acting, tmp_path: Path) -> None:
    _, loop, *_ = acting.api.family(path=str(tmp_path / "other"))
    assert acting.ask(loop_id=loop.id).json()["code"] == "loop_not_found"
    assert acting.rows() == []


def test_one_run_does_only_so_much(acting: Acting) -> None:
    async def make() -> tokens.NewToken:
        return await tokens.create_token(
            acting.api.at, "bounded", scope=Scope.OPERATE, nesting=2, steers=True
        )

    token = acting.api.run(make).text

    def fill(tx: Any) -> None:
        for _ in range(MOST_PER_RUN):
            tx.insert(
                Action(
                    id=rows.new_id(Kind.ACTION),
                    project_id=acting.project.id,
                    kind="pause",
                    reason="r",
                    actor="agent",
                    run_id="run_busy",
                    state=ActionState.DONE,
                    created_at=rows.AT,
                )
            )

    acting.api.write(fill)
    body = {"kind": "pause", "loop_id": acting.loop.id, "reason": "r"}
    with acting.api.client(token) as client:
        reply = client.post("/api/actions", json=body, headers={"Loopwright-Run": "run_busy"})
        assert reply.json()["code"] == "too_many_actions"


def test_a_start_of_a_paused_loop_pauses_it_again_when_undone(acting: Acting) -> None:
    acting.api.write(lambda tx: tx.update(Loop, acting.loop.id, state=LoopState.PAUSED))
    row = Action(
        id=rows.new_id(Kind.ACTION),
        project_id=acting.project.id,
        kind="pause",
        loop_id=acting.loop.id,
        reason="r",
        actor="agent",
        state=ActionState.DONE,
        about={"was": "PAUSED"},
        created_at=rows.AT,
    )
    acting.api.write(lambda tx: tx.insert(row))
    assert "nothing to do" in acting.undo(row.id).json()["result"], "it was paused before the agent paused it"
