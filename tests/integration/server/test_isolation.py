"""What a token's projects do not include does not exist for it, on every endpoint of the OpenAPI document."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.contracts.store import rows
from tests.integration.server.api import Api

from loopwright.core.replies.discoveries import Discovery
from loopwright.core.rows.action_rows import Action
from loopwright.core.rows.hold_rows import Hold
from loopwright.core.rows.lesson_rows import Lesson
from loopwright.core.rows.model import Role, Run
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.rows.webhook_rows import Webhook
from loopwright.core.values.access import Scope
from loopwright.core.values.ids import Kind, make
from loopwright.core.values.states import ActionState, HoldState, LessonState, RunState
from loopwright.server.asgi import describe

DOCUMENT = describe().openapi()
ENDLESS = {"/api/events/stream"}
"""A stream has no end; its filter is that of `/api/events`."""


class Foreign:
    """Rows of a project that a token does not see, and the token."""

    def __init__(self, api: Api, place: Path) -> None:
        (place / ".loopwright" / "inspection-packets").mkdir(parents=True)
        mine, *_ = api.family(path="/mine")
        project, loop, plan, task = api.family(path=str(place), name="secret-project")
        run = Run(
            id=make(Kind.RUN, uuid4()),
            plan_id=plan.id,
            task_id=task.id,
            role=Role.IMPLEMENTER,
            state=RunState.COMPLETE,
            created_at=rows.AT,
        )
        question = Question(
            id=make(Kind.QUESTION, uuid4()),
            project_id=project.id,
            loop_id=loop.id,
            plan_id=plan.id,
            task_id=task.id,
            run_id=run.id,
            kind="choice",
            key="",
            text="secret question",
            created_at=rows.AT,
        )
        found = Discovery(
            id=make(Kind.DISCOVERY, uuid4()),
            project_id=project.id,
            plan_id=plan.id,
            task_id=task.id,
            attempt_id=make(Kind.ATTEMPT, uuid4()),
            title="secret work",
            created_at=rows.AT,
        )
        hook = Webhook(
            id=make(Kind.WEBHOOK, uuid4()),
            url="https://example.com/secret",
            secret="whsec_",
            projects=(project.id,),
            cursor=0,
            off_at=rows.AT,
            created_by="secret",
            created_at=rows.AT,
        )
        lesson = Lesson(
            id=make(Kind.LESSON, uuid4()),
            project_id=project.id,
            state=LessonState.PROPOSED,
            text="secret lesson",
            proposed_by="secret",
            created_at=rows.AT,
        )
        hold = Hold(
            id=make(Kind.HOLD, uuid4()),
            project_id=project.id,
            loop_id=loop.id,
            plan_id=plan.id,
            lock="secret",
            state=HoldState.HELD,
            created_at=rows.AT,
        )
        action = Action(
            id=make(Kind.ACTION, uuid4()),
            project_id=project.id,
            kind="pause",
            loop_id=loop.id,
            reason="secret",
            actor="secret",
            state=ActionState.DONE,
            created_at=rows.AT,
        )
        packet = make(Kind.PACKET, uuid4())
        (place / ".loopwright" / "inspection-packets" / f"{packet}.json").write_text(
            f'{{"packet_id": "{packet}"}}'
        )
        (place / ".loopwright" / "inspection-packets" / f"{packet}.md").write_text("secret packet")

        def insert(tx: Any) -> None:
            for row in (run, question, found, hook, lesson, hold, action):
                tx.insert(row)

        api.write(insert)
        api.append(3, project=project.id, loop=loop.id, plan=plan.id)
        self.token = api.make_token(f"other-{uuid4()}", scope=Scope.ADMIN, projects=(mine.id,))
        owner = api.get("/api/tokens")["tokens"][-1]["id"]
        self.ids = {
            "project_id": project.id,
            "loop_id": loop.id,
            "plan_id": plan.id,
            "task": task.key,
            "name": "nightly",
            "run_id": run.id,
            "question_id": question.id,
            "alert_id": f"question:{question.id}",
            "discovery_id": found.id,
            "packet_id": packet,
            "token_id": owner,
            "webhook_id": hook.id,
            "lesson_id": lesson.id,
            "hold_id": hold.id,
            "action_id": action.id,
        }
        self.secrets = {one for name, one in self.ids.items() if name not in ("task", "name")} | {
            "secret",
            str(place),
        }


@pytest.fixture(scope="module")
def foreign(shared_api: Api, tmp_path_factory: pytest.TempPathFactory) -> Foreign:
    """A foreign project."""
    return Foreign(shared_api, tmp_path_factory.mktemp("foreign"))


def endpoints() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the method, the path and the description of every endpoint."""
    for path, methods in DOCUMENT["paths"].items():
        for method, described in methods.items():
            yield method.upper(), path, described


def example(schema: dict[str, Any], ids: dict[str, str]) -> Any:
    """Return a small value that fits a schema; ids are those of the foreign project."""
    if "$ref" in schema:
        return example(DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]], ids)
    if "anyOf" in schema:
        return example(next(one for one in schema["anyOf"] if one.get("type") != "null"), ids)
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            parts = schema.get("properties", {})
            wanted = {*schema.get("required", ()), *(name for name in parts if _snake(name) in ids)}
            return {
                name: ids.get(_snake(name)) or example(parts[name], ids) for name in parts if name in wanted
            }
        case "array":
            return [example(schema["items"], ids)] if schema.get("minItems") else []
        case "integer" | "number":
            return max(1, schema.get("minimum", 1))
        case "boolean":
            return False
        case _:
            return "x" * max(1, schema.get("minLength", 1))


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def body_of(described: dict[str, Any], ids: dict[str, str]) -> Any:
    content = described.get("requestBody", {}).get("content", {}).get("application/json")
    return example(content["schema"], ids) if content else None


@pytest.mark.capability("C118")
@pytest.mark.capability("C119")
def test_every_endpoint_with_an_id_says_that_nothing_of_a_foreign_project_exists(
    shared_api: Api, foreign: Foreign
) -> None:
    seen, wrong = 0, []
    with shared_api.client(foreign.token) as client:
        for method, path, described in endpoints():
            named = re.findall(r"{(\w+)}", path)
            if not named or path in ENDLESS:
                continue
            if any(name not in foreign.ids for name in named):
                wrong.append(f"{path}: this test does not know {named}")
                continue
            url = path.format(**foreign.ids)
            answer = client.request(method, url, json=body_of(described, foreign.ids))
            seen += 1
            if answer.status_code != 404 or not answer.json()["code"].endswith("_not_found"):
                wrong.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
    assert not wrong, "\n".join(wrong)
    assert seen > 50


def test_an_id_of_a_foreign_project_and_an_unknown_one_get_the_same_answer(
    shared_api: Api, foreign: Foreign
) -> None:
    unknown = {name: re.sub(r"_[0-9a-f-]{36}$", f"_{uuid4()}", value) for name, value in foreign.ids.items()}
    differ = []
    with shared_api.client(foreign.token) as client:
        for method, path, described in endpoints():
            if "{" not in path or not set(re.findall(r"{(\w+)}", path)) <= foreign.ids.keys():
                continue
            first, second = (
                client.request(method, path.format(**ids), json=body_of(described, ids))
                for ids in (foreign.ids, unknown)
            )
            one, other = first.text, second.text
            # An id that has another one in it comes first.
            for name, value in sorted(foreign.ids.items(), key=lambda pair: -len(pair[1])):
                one = one.replace(value, name)
                other = other.replace(unknown[name], name)
            if (first.status_code, one) != (second.status_code, other):
                differ.append(f"{method} {path}: {one} / {other}")
    assert not differ, "\n".join(differ)


@pytest.mark.capability("C118")
def test_no_list_and_no_figure_names_anything_of_a_foreign_project(shared_api: Api, foreign: Foreign) -> None:
    leaks, seen = [], 0
    with shared_api.client(foreign.token) as client:
        for method, path, described in endpoints():
            if method != "GET" or "{" in path or path in ENDLESS or path == "/api/openapi.json":
                continue
            filters = {one["name"] for one in described.get("parameters", ()) if one["in"] == "query"}
            answer = client.get(path)
            seen += 1
            if leaked := [one for one in foreign.secrets if one in answer.text]:
                leaks.append(f"{path}: {leaked}")
            for name in filters & {"project", "loop", "plan"}:
                narrowed = client.get(path, params={name: foreign.ids[f"{name}_id"]})
                if any(one in narrowed.text for one in foreign.secrets) and narrowed.status_code != 404:
                    leaks.append(f"{path}?{name}=: {narrowed.text[:200]}")
        owner = shared_api.get("/api/loops")
        assert foreign.ids["loop_id"] in str(owner), "the owner of the home sees it"
        created = client.post(
            "/api/loops", json={"project_id": foreign.ids["project_id"], "source": "x.yaml"}
        )
        assert (created.status_code, created.json()["code"]) == (404, "project_not_found")
    assert not leaks, "\n".join(leaks)
    assert seen > 10
