"""A token for an agent defines nothing: no command, sandbox, environment, path, remote, budget or token."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.store import rows
from tests.integration.server.api import Api
from tests.integration.server.operations import OPERATIONS

from loopwright.core.rows.model import Loop
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.access import Scope
from loopwright.core.values.ids import Kind

DEFINING = re.compile(
    "accept|argument|binary|budget|command|cost|cwd|env|executable|flags|gate|hook|host|image|limit|mount|path"
    "|permission|remote|run$|sandbox|script|secret|setting|setup|shell|source|spec|template|token|url|value|verify"
)
"""Words in the names of fields that could define something."""
HARMLESS = {
    # A file of a registered project, or a registered template whose values are prose or limited by it.
    "POST /api/loops": {"source", "template", "values"},
    # Registered templates, and the prose of the parts of a task.
    "POST /api/actions": {"template", "values", "description"},
    # An operator may lower a limit; `test_attention` tries to raise one.
    "PATCH /api/plans/{plan_id}/budget": {
        *(
            "maxCost",
            "maxCostPerDay",
            "maxCostPerLoop",
            "maxCostPerProject",
            "maxCostPerRun",
            "maxCostPerTask",
        )
    },
}
BUDGETS = {"max_cost"}
"""Fields that set a budget; a test of its own tries them."""
REFUSALS = {"commands_need_admin", "scope_missing", "spec_needs_admin", "budget_needs_admin"}
TRIED: Mapping[str, Mapping[str, Any]] = {
    "POST /api/loops": {"project_id": "{project_id}", "spec": {"title": "t", "gates": [{"run": "rm -rf /"}]}},
    "POST /api/loops/{loop_id}/tasks": {"key": "k", "title": "t", "acceptance": ["rm -rf /"]},
    "POST /api/loops/{loop_id}/tests": {"key": "k", "title": "t", "acceptance": ["rm -rf /"]},
    "POST /api/plans/{plan_id}/tasks": {"key": "k", "title": "t", "acceptance": ["rm -rf /"]},
    "PATCH /api/plans/{plan_id}": {"tasks": [{"taskId": "{task_id}", "acceptance": ["rm -rf /"]}]},
    "POST /api/projects": {"path": "/etc"},
    "POST /api/tokens": {"name": "mine", "scope": "admin"},
    "GET /api/tokens": {},
    "DELETE /api/tokens/{token_id}": {},
    "GET /api/webhooks": {},
    "POST /api/webhooks": {"url": "https://example.com/"},
    "GET /api/webhooks/{webhook_id}": {},
    "DELETE /api/webhooks/{webhook_id}": {},
    "GET /api/webhooks/{webhook_id}/dead-letters": {},
    "POST /api/webhooks/{webhook_id}/replay": {},
}
"""What an operator asks for in vain, by operation."""


def _filled(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return value.format(**names) if value.startswith("{") else value
    if isinstance(value, list):
        return [_filled(one, names) for one in value]
    return {key: _filled(one, names) for key, one in value.items()} if isinstance(value, dict) else value


def test_a_token_for_an_agent_cannot_define_anything(api: Api) -> None:
    project, loop, plan, task = api.family()
    api.write(lambda tx: tx.update(Loop, loop.id, source_kind="yaml"))
    agent = api.make_token("agent", scope=Scope.OPERATE, projects=(project.id,))
    names = {
        "project_id": project.id,
        "loop_id": loop.id,
        "plan_id": plan.id,
        "task_id": task.id,
        "token_id": "tok_x",
        "webhook_id": "hook_x",
    }
    operations = {str(one): one for one in OPERATIONS}
    with api.client(agent) as client:
        for name, body in TRIED.items():
            operation = operations[name]
            answer = client.request(operation.method, operation.fill(names), json=_filled(body, names))
            assert answer.status_code in (403, 409), (name, answer.text)
            assert answer.json()["code"] in REFUSALS, (name, answer.text)
        for operation in OPERATIONS:
            for field in operation.fields & BUDGETS:
                body = {"project_id": project.id, "source": "x", field: 1}
                answer = client.request(operation.method, operation.fill(names), json=body)
                assert answer.json()["code"] in REFUSALS, (operation, answer.text)


def test_every_field_that_could_define_something_is_tried_or_known_to_be_harmless() -> None:
    found = {}
    for operation in OPERATIONS:
        names = {name for name in operation.fields if DEFINING.search(name.lower())}
        names -= HARMLESS.get(str(operation), set())
        if names - BUDGETS and str(operation) not in TRIED:
            found[str(operation)] = names
    assert found == {}, "try these with a token of the scope `operate`"


@pytest.mark.parametrize("kind", ["permission", "contradiction", "budget"])
def test_an_answer_that_widens_what_agents_may_do_needs_an_admin(api: Api, kind: str) -> None:
    project, loop, plan, task = api.family()
    question = Question(
        id=rows.new_id(Kind.QUESTION),
        project_id=project.id,
        loop_id=loop.id,
        plan_id=plan.id,
        task_id=task.id,
        run_id="run_x",
        kind=kind,
        key="k",
        text="May I?",
        options=("yes", "no"),
        created_at=rows.AT,
    )
    api.write(lambda tx: tx.insert(question))
    agent = api.make_token("agent", scope=Scope.OPERATE, projects=(project.id,))
    with api.client(agent) as client:
        answer = client.post(f"/api/questions/{question.id}/answer", json={"answer": "yes"})
    assert (answer.status_code, answer.json()["code"]) == (403, "answer_needs_admin")
    assert len(api.get("/api/needs-response", token=agent)["questions"]) == 1


def test_an_admin_of_some_projects_gains_no_others(api: Api) -> None:
    project, *_ = api.family()
    other, *_ = api.family()
    some = api.make_token("some", scope=Scope.ADMIN, projects=(project.id,))
    with api.client(some) as client:
        everything = client.post("/api/tokens", json={"name": "a", "scope": "admin"})
        foreign = client.post("/api/tokens", json={"name": "b", "projects": [project.id, other.id]})
        own = client.post("/api/tokens", json={"name": "c", "projects": [project.id]})
        seen = {one["name"] for one in client.get("/api/tokens").json()["tokens"]}
        owner = next(one["id"] for one in api.get("/api/tokens")["tokens"] if one["name"] == "owner")
        revoked = client.delete(f"/api/tokens/{owner}")
    assert (everything.status_code, everything.json()["code"]) == (403, "token_reaches_too_far")
    assert (foreign.status_code, foreign.json()["code"]) == (404, "project_not_found")
    assert own.status_code == 201
    assert seen == {"some", "c"}
    assert (revoked.status_code, revoked.json()["code"]) == (404, "token_not_found")


def test_a_source_outside_of_its_project_does_not_exist(api: Api, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    (repository / ".git").mkdir(parents=True)
    (tmp_path / "outside.yaml").write_text("title: x\n")
    (repository / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    (repository / "folder").symlink_to(tmp_path)
    (repository / ".git" / "config").write_text("")
    project, *_ = api.family(path=str(repository))
    agent = api.make_token("agent", scope=Scope.OPERATE, projects=(project.id,))
    with api.client(agent) as client:
        for source in (
            "link.yaml",
            "folder/outside.yaml",
            "../outside.yaml",
            ".git/config",
            "a\0b",
            "/etc/passwd",
        ):
            answer = client.post("/api/loops", json={"project_id": project.id, "source": source})
            assert answer.json()["code"] in ("source_not_found", "source_path_wrong"), (source, answer.text)


@pytest.mark.parametrize("name", ["--dangerously-skip-permissions", "-x", "a b", "a\nb", ""])
def test_the_name_of_a_model_or_agent_is_not_an_option(shared_api: Api, name: str) -> None:
    project, _, plan, task = shared_api.family()
    with shared_api.client() as client:
        for field in ("model", "agent"):
            path = f"/api/plans/{plan.id}/tasks/{task.key}"
            answers = [
                client.post(f"{path}/retry", json={field: name}),
                client.patch(path, json={field: name}),
            ]
            if field == "model":
                answers.append(
                    client.post(f"/api/projects/{project.id}/plan", json={"goal": "g", field: name})
                )
            assert [one.status_code for one in answers] == [422] * len(answers), answers[0].text
