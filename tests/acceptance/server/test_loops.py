"""Loops are created, started and deleted without a terminal."""

import json
from pathlib import Path

import pytest
from tests.acceptance.sandbox import task
from tests.acceptance.server.conftest import Served
from tests.waiting import eventually

from loopwright.core.rows.model import Loop, Plan, Project, Run
from loopwright.core.values.states import RunState


def _project(served: Served) -> str:
    """Run a small plan once, so that the project is registered with its environment."""
    served.play(
        {"first": [[{"write": "first", "text": "1\n"}]], "second": [[{"write": "second", "text": "2\n"}]]}
    )
    assert served.run(served.plan("first", [task("first", "test -s first")])).code == 0
    return served.row(Project).id


def _in_repository(served: Served, name: str, tasks: list[dict[str, object]]) -> Path:
    path = served.plan(name, tasks)
    return path.rename(served.repository / path.name)


def test_a_loop_is_created_and_started_with_the_recorded_environment(served: Served) -> None:
    served.program.env["WORD"] = "swordfish"
    project = _project(served)
    _in_repository(served, "second", [task("second", "test -s second")])
    # The daemon has another environment, and nothing of it reaches the plan.
    served.program.env["LANG"] = "C.daemon"
    served.serve()
    made = served.post("/api/loops", {"project_id": project, "source": "second.yaml"})
    assert made.status_code == 201, made.text
    assert (made.json()["status"], made.json()["plan_id"]) == ("idle", None)
    loop = made.json()["id"]
    again = served.post("/api/loops", {"project_id": project, "source": "second.yaml"})
    assert (again.status_code, again.json()["code"]) == (409, "loop_exists")
    for _ in range(2):
        assert served.post(f"/api/loops/{loop}/start").status_code == 202
    eventually(lambda: served.get(f"/api/loops/{loop}")["status"] == "completed", timeout=90)
    plan = served.row(Plan, loop_id=loop)
    assert plan.status == "VERIFIED"
    assert plan.environment is not None
    assert plan.environment.recorded
    assert plan.environment.values.get("LANG") != "C.daemon"
    assert served.get(f"/api/loops/{loop}")["progress"] == {"passed": 1, "total": 1}


def test_a_source_outside_the_project_or_that_cannot_be_read_makes_no_loop(served: Served) -> None:
    project = _project(served)
    (served.repository / "broken.yaml").write_text("title: [\n")
    (served.place / "outside.yaml").write_text("title: x\n")
    served.serve()
    for source, status, code in (
        ("../outside.yaml", 404, "source_not_found"),
        ("/etc/passwd", 422, "source_path_wrong"),
        (".git/config", 404, "source_not_found"),
        ("nothing.yaml", 404, "source_not_found"),
        ("broken.yaml", 422, "bad_plan"),
    ):
        answer = served.post("/api/loops", {"project_id": project, "source": source})
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert answer.json()["errors"][0]["in"].endswith("broken.yaml")
    assert len(served.rows(Loop)) == 1


def test_a_start_that_fails_says_why_on_the_loop(served: Served) -> None:
    project = _project(served)
    _in_repository(served, "third", [task("third", "test -s third", agent="nobody")])
    served.serve()
    loop = served.post("/api/loops", {"project_id": project, "source": "third.yaml"}).json()["id"]
    assert served.post(f"/api/loops/{loop}/start").json()["status"] == "starting"
    eventually(lambda: served.get(f"/api/loops/{loop}")["status"] == "idle", timeout=60)
    (event,) = served.events("loop_not_started")
    assert event.payload["code"]
    reason = served.get(f"/api/loops/{loop}")["reason"]
    assert "nobody" in reason
    assert event.payload["hint"][1:] in reason, "what to do is with it"
    assert served.ask("DELETE", f"/api/loops/{loop}").status_code == 204
    assert served.ask("GET", f"/api/loops/{loop}").status_code == 404


def test_a_project_without_a_recorded_environment_starts_nothing(served: Served) -> None:
    project = _project(served)
    _in_repository(served, "second", [task("second", "test -s second")])
    served._read(lambda tx: None)
    assert served._store is not None
    served._store.transact_sync("test", lambda tx: tx.update(Project, project, environment=None))
    served.serve()
    loop = served.post("/api/loops", {"project_id": project, "source": "second.yaml"}).json()["id"]
    refused = served.post(f"/api/loops/{loop}/start")
    assert (refused.status_code, refused.json()["code"]) == (409, "environment_missing")


@pytest.mark.capability("C099")
def test_tasks_are_reset_skipped_injected_and_put_in_another_order(served: Served) -> None:
    gate = served.gate("agent")
    served.play(
        {
            "bad": [[{"claim": "done"}], [{"write": "bad", "text": "1\n"}]],
            "slow": [[gate.step, {"write": "slow", "text": "1\n"}]],
            "never": [[{"claim": "done"}]],
            "more": [[{"write": "more", "text": "1\n"}]],
        }
    )
    keys = ("bad", "slow", "never")
    tasks = [task(key, f"test -s {key}", max_attempts=1) for key in keys]
    served.serve("--slots", "3")
    plan = served.plan("three", tasks)
    assert served.run(plan, "--detach", "--max-attempts", "1", "--parallel", "3").code == 0
    loop = served.row(Loop).id
    eventually(lambda: {served.task("bad").status, served.task("never").status} == {"ERROR"}, timeout=90)
    assert served.post(f"/api/loops/{loop}/tests/bad/reset").status_code == 200
    eventually(lambda: served.task("bad").status == "COMPLETE", timeout=90)
    assert [one.n for one in served.attempts("bad")] == [1, 2], "the history is kept"
    assert served.task("bad").attempts <= 1
    refused = served.post(f"/api/loops/{loop}/tests/slow/reset")
    assert (refused.status_code, refused.json()["code"]) == (409, "task_not_resettable")
    assert served.post(f"/api/loops/{loop}/tasks/never/skip").status_code == 200
    assert served.task("never").status == "CANCELLED"
    path = f"/api/plans/{served.row(Plan).id}/tasks"
    made = served.post(path, {"key": "more", "title": "One more", "acceptance": ["test -s more"]})
    assert made.status_code == 201, made.text
    operator = served.post("/api/tokens", {"name": "operator", "scope": "operate"}).json()["token"]
    with served.client(operator) as client:
        commands = client.post(path, json={"key": "x", "title": "X", "acceptance": ["rm -rf /"]})
        assert (commands.status_code, commands.json()["code"]) == (403, "commands_need_admin")
    assert served.ask("PATCH", f"/api/loops/{loop}", json={"priority": 1}).json()["priority"] == 1
    assert served.ask("PATCH", f"{path}/slow", json={"priority": 3}).status_code == 200
    assert served.task("slow").priority == 3
    gate.let_go()
    eventually(lambda: served.task("more").status == "COMPLETE", timeout=90)
    actors = {event.actor for event in served.events("task_reset", "task_injected", "priority_set")}
    assert actors == {"token:owner"}


TEMPLATE = """\
description: Write one file
parameters:
  file: {pattern: "[a-z]+"}
  words: {default: something}
plan:
  title: Write {{file}}
  tasks:
    - {id: "{{file}}", title: "Write {{words}}", acceptance: "test -s {{file}}"}
"""


@pytest.mark.capability("C096")
def test_loops_are_made_from_registered_templates_and_specs(served: Served) -> None:
    project = _project(served)
    served.serve()
    path = f"/api/projects/{project}/templates"
    made = served.ask("PUT", f"{path}/write-file", json={"text": TEMPLATE})
    assert (made.status_code, made.json()["place"]) == (200, "registered"), made.text
    broken = served.ask("PUT", f"{path}/broken", json={"text": TEMPLATE.replace("{{words}}", "{{wrds}}")})
    assert (broken.status_code, broken.json()["code"]) == (422, "bad_plan")
    assert broken.json()["errors"][0]["message"].startswith(
        "broken.yaml:8: plan.tasks[0].title: unknown placeholder"
    )
    assert served.ask("PUT", f"{path}/Up", json={"text": TEMPLATE}).json()["code"] == "template_name_wrong"
    assert [one["name"] for one in served.get(path)] == ["write-file"]

    token = served.post("/api/tokens", {"name": "agent", "scope": "operate", "projects": [project]}).json()[
        "token"
    ]
    spec = {"title": "T", "tasks": [{"id": "first", "title": "First", "acceptance": "rm -rf /"}]}
    with served.client(token) as operator:
        assert operator.put(f"{path}/own", json={"text": TEMPLATE}).status_code == 403
        for body, status, code in (
            ({"spec": spec}, 403, "spec_needs_admin"),
            ({"template": "write-file", "values": {"file": "x; rm -rf /"}}, 422, "bad_plan"),
            ({"template": "../../etc/passwd"}, 404, "template_not_found"),
            ({"template": "write-file", "source": "first.yaml"}, 422, "loop_source_wrong"),
            (
                {"template": "write-file", "values": {"file": "second"}, "max_cost": 5},
                403,
                "budget_needs_admin",
            ),
        ):
            refused = operator.post("/api/loops", json={"project_id": project, **body})
            assert (refused.status_code, refused.json()["code"]) == (status, code), refused.text
        body = {
            "project_id": project,
            "template": "write-file",
            "values": {"file": "second"},
            "name": "write second",
            "priority": 2,
            "max_concurrent": 3,
        }
        answer = operator.post("/api/loops", json=body)
        assert answer.status_code == 201, answer.text
        loop = answer.json()
        assert (loop["name"], loop["priority"]) == ("write second", 2)
        assert loop["resources"] == {"agent": None, "model": None, "max_concurrent": 3}
        assert operator.post(f"/api/loops/{loop['id']}/start").status_code == 202
    eventually(lambda: served.get(f"/api/loops/{loop['id']}")["status"] == "completed", timeout=90)
    assert served.git("status", "--porcelain") == "", "what a template makes is not in the way"
    seen = served.get(f"/api/loops/{loop['id']}")
    assert (seen["priority"], seen["resources"]["max_concurrent"]) == (2, 3)
    (event,) = [one for one in served.events("loop_created") if one.loop == loop["id"]]
    assert (event.actor, event.payload["template"]) == ("token:agent", "write-file")
    # An admin may define commands.
    wrong = served.post("/api/loops", {"project_id": project, "spec": {"title": "T", "tasks": [{}]}})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "bad_plan")
    assert served.post("/api/loops", {"project_id": project, "spec": spec}).status_code == 201
    assert served.ask("DELETE", f"{path}/write-file").status_code == 204
    assert served.get(path) == []


@pytest.mark.capability("C095", "C097", "C098")
def test_a_loop_is_paused_resumed_stopped_and_deleted_once_or_twice(served: Served) -> None:
    gate = served.gate("agent")
    served.play(
        {
            "first": [[{"write": "first", "text": "1\n"}]],
            "slow": [[gate.step, {"write": "slow", "text": "1\n"}], [{"write": "slow", "text": "1\n"}]],
            "next": [[{"write": "next", "text": "1\n"}]],
        }
    )
    assert served.run(served.plan("first", [task("first", "test -s first")])).code == 0
    project = served.row(Project).id
    _in_repository(
        served, "two", [task("slow", "test -s slow"), task("next", "test -s next", depends_on=["slow"])]
    )
    served.serve()
    loop = served.post("/api/loops", {"project_id": project, "source": "two.yaml"}).json()["id"]

    def do(action: str, body: dict[str, object] | None = None) -> tuple[int, str]:
        answer = served.post(f"/api/loops/{loop}/{action}", body)
        found = answer.json()
        return answer.status_code, found.get("status") if answer.is_success else found["code"]

    assert [do("pause"), do("resume")] == [(409, "loop_without_plan")] * 2
    assert do("start")[0] == 202
    served.until_started("slow")
    file = served.home / "loop_registry.json"
    registry = eventually(lambda: json.loads(file.read_text())["loops"].get(loop), timeout=30)
    seen = served.get(f"/api/loops/{loop}")
    assert (seen["current_test"], seen["status"], seen["pid"]) == ("slow", "running", served.pid)
    assert (registry["status"], registry["project_id"]) == ("running", project)
    assert served.get(f"/api/loops/{loop}/health")["live"]
    assert served.ask("DELETE", f"/api/loops/{loop}").json()["code"] == "loop_at_work"
    for _ in range(2):
        assert do("pause") == (200, "paused")
    assert served.rows(Plan)[-1].id == seen["plan_id"]
    assert served.rows(Run, state=RunState.RUNNING), "an agent that works may finish"
    assert do("pause", {"now": True}) == (200, "paused")
    eventually(lambda: not served.rows(Run, state=RunState.RUNNING), timeout=30)
    gate.let_go()
    for _ in range(2):
        assert do("resume") == (200, "running")
    eventually(lambda: served.get(f"/api/loops/{loop}")["status"] == "completed", timeout=90)
    assert do("pause") == (409, "plan_ended")
    assert do("resume") == (409, "plan_ended")
    for _ in range(2):
        assert served.ask("DELETE", f"/api/loops/{loop}").status_code == 204
    assert served.ask("GET", f"/api/loops/{loop}").status_code == 404
    assert loop not in [one["id"] for one in served.get("/api/loops")["loops"]]
    again = served.post("/api/loops", {"project_id": project, "source": "two.yaml"})
    assert (again.status_code, again.json()["id"]) == (201, loop)


def test_no_request_has_a_place_for_environment_values() -> None:
    from loopwright.server.asgi import describe

    document = describe().openapi()
    shapes = document["components"]["schemas"]
    bodies = json.dumps(
        [
            one["requestBody"]
            for path in document["paths"].values()
            for one in path.values()
            if "requestBody" in one
        ]
    )
    sent = {name: shape for name, shape in shapes.items() if f"#/components/schemas/{name}" in bodies}
    fields = {key for shape in sent.values() for key in shape.get("properties", {})}
    assert len(fields) > 20, "the requests were found"
    assert not [one for one in fields if "env" in one.lower() or "secret" in one.lower()]
