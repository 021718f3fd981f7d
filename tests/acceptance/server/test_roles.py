"""The manager and the orchestrator: agents that change loops with the MCP tools, within a token, for a reason."""

import json
import tomllib
from typing import Any

import pytest
from tests.acceptance.sandbox import task
from tests.acceptance.server.conftest import Served
from tests.waiting import eventually

from loopwright.core.rows.access_rows import Token
from loopwright.core.rows.action_rows import Action
from loopwright.core.rows.model import Loop, Plan, Project, Role, Run
from loopwright.core.values.states import PlanState
from loopwright.services.access.nesting import is_inside_run

pytestmark = pytest.mark.skipif(is_inside_run(), reason="inside a run the tools only look")
FAST = ("LOOPWRIGHT_MONITOR__EVERY", "0.2s")
TOOLS = ("LOOPWRIGHT_AGENTS__SCRIPTED__TOOLS", "true")
SUMS = {
    "title": "sums",
    "settings": {"max_attempts": 1, "autonomy": "auto"},
    "gates": [{"name": "greeting", "run": "grep -q hello greet.txt"}],
    "tasks": [task("sum", "grep -q right sum.txt")],
}
TEMPLATE = """\
description: Write one file
parameters:
  file: {pattern: "[a-z]+"}
plan:
  title: Write {{file}}
  settings: {autonomy: auto, max_attempts: 1}
  tasks:
    - {id: "{{file}}", title: "Write {{file}}", acceptance: "test -s {{file}}"}
"""


def report(role: str, summary: str) -> dict[str, str]:
    """Return the step with which a role ends."""
    return {"claim": f"{summary}\n```loopwright-{role}\n{json.dumps({'summary': summary})}\n```"}


def settled(served: Served, role: Role) -> list[Plan]:
    """Return the ended rounds of a role."""
    loops = [one.id for one in served.rows(Loop) if one.source_kind == "role"]
    found = [one for one in served.rows(Plan) if one.loop_id in loops and one.title]
    runs = {one.plan_id for one in served.rows(Run, role=role)}
    return [one for one in found if one.id in runs and one.status in (PlanState.VERIFIED, PlanState.FAILED)]


@pytest.mark.timeout(300)
@pytest.mark.capability("C068")
def test_a_manager_sees_a_failed_task_and_acts_for_a_reason_that_you_can_read_and_undo(
    served: Served,
) -> None:
    why = "The task only needs another attempt."
    look: list[dict[str, Any]] = [
        {"tool": "list", "with": {"what": "questions"}, "keep": {"question": "questions.0.id"}},
        {"tool": "answer", "with": {"question": "@question", "text": "retry", "reason": why}},
        {"tool": "list", "with": {"what": "loops"}, "keep": {"loop": "loops.0.id"}},
        {"tool": "prioritise", "with": {"loop": "@loop", "priority": 2, "reason": "It was late."}},
        report("manager", "I had one task tried again."),
    ]
    served.play({"sum": [[{"claim": "done"}], [{"write": "sum.txt", "text": "right\n"}]], "manage": [look]})
    served.program.env |= dict([FAST, TOOLS])
    (served.repository / "loopwright.toml").write_text('[manager]\nagent = "scripted"\nper_day = 1\n')
    served.git("add", "-A")
    served.git("commit", "-qm", "manager")
    assert served("projects", "add").code == 0
    project = served.row(Project)
    served.serve()
    made = served.post("/api/loops", {"project_id": project.id, "spec": SUMS})
    assert made.status_code == 201, made.text
    loop = made.json()["id"]
    served.post(f"/api/loops/{loop}/start")
    eventually(lambda: served.get(f"/api/loops/{loop}")["status"] == "completed", timeout=120)
    eventually(lambda: len(settled(served, Role.MANAGER)) == 1, timeout=60)
    (round_,) = settled(served, Role.MANAGER)
    assert round_.status is PlanState.VERIFIED, round_.reason
    answered, prioritised = served.rows(Action)
    assert (answered.kind, answered.state, answered.reason) == ("answer", "DONE", why)
    run = served.row(Run, role=Role.MANAGER)
    assert answered.run_id == run.id
    # The list has the loop of the manager too, in no order that the test could know.
    assert served.row(Loop, id=prioritised.loop_id).priority == 2
    said = served("actions")
    assert why in said.out
    assert served("actions", "undo", prioritised.id).code == 0
    assert served.row(Loop, id=prioritised.loop_id).priority == 5
    refused = served("actions", "undo", answered.id)
    assert (refused.code, "has landed" in refused.err) == (2, True)
    # The token of the round is gone, and what it spends from has the limit of the setting.
    purse, given = (one for one in served.rows(Token) if one.name != "owner")
    assert (purse.limit_micros, purse.projects) == (20_000_000, (project.id,))
    assert (given.maker_id, given.nesting, given.revoked_at is not None) == (purse.id, 2, True)
    assert not list((served.home / "roles").iterdir())
    # It did its one look of the day: nothing wakes it again.
    assert len(served.rows(Run, role=Role.MANAGER)) == 1


@pytest.mark.more
@pytest.mark.timeout(300)
@pytest.mark.capability("C068")
def test_an_orchestrator_turns_a_goal_into_a_loop_that_is_verified_within_its_limits(served: Served) -> None:
    work: list[dict[str, Any]] = [
        {"tool": "list", "with": {"what": "projects"}, "keep": {"project": "projects.0.id"}},
        {
            "tool": "create",
            "with": {
                "project": "@project",
                "template": "write-file",
                "values": {"file": "first"},
                "reason": "The goal is one file.",
            },
            "keep": {"loop": "id"},
        },
        {"tool": "start", "with": {"loop": "@loop", "reason": "It is ready."}},
        report("orchestrator", "One loop writes the file."),
    ]
    served.play({"first": [[{"write": "first", "text": "1\n"}]], "orchestrate": [work]})
    served.program.env |= dict([TOOLS])
    assert served("projects", "add").code == 0
    project = served.row(Project).id
    served.serve()
    path = f"/api/projects/{project}/templates/write-file"
    assert served.ask("PUT", path, json={"text": TEMPLATE}).status_code == 200
    none = served("delegate", "There is a file called first.")
    assert (none.code, "orchestrator.agent" in none.err) == (2, True)
    (served.repository / "loopwright.toml").write_text('[orchestrator]\nagent = "scripted"\nspending = "3"\n')
    assert tomllib.loads((served.repository / "loopwright.toml").read_text())
    served.git("add", "-A")
    served.git("commit", "-qm", "orchestrator")
    said = served("delegate", "There is a file called first.", "--json")
    assert said.code == 0, said.err
    eventually(lambda: len(settled(served, Role.ORCHESTRATOR)) == 1, timeout=120)
    (round_,) = settled(served, Role.ORCHESTRATOR)
    assert round_.id == json.loads(said.out)["plan_id"]
    assert round_.status is PlanState.VERIFIED, round_.reason
    created, started = served.rows(Action)
    assert (created.kind, started.kind, started.loop_id) == ("create", "start", created.loop_id)
    eventually(lambda: served.get(f"/api/loops/{created.loop_id}")["status"] == "completed", timeout=120)
    prompt = (served.home / "runs" / served.row(Run, role=Role.ORCHESTRATOR).id / "prompt.md").read_text()
    assert "    There is a file called first." in prompt
    # What it started is charged to its own token, two levels down, and may create nothing more.
    purse = next(
        one for one in served.get("/api/tokens")["tokens"] if one["name"].startswith("orchestrator of")
    )
    assert purse["spending_limit"] == 3_000_000
