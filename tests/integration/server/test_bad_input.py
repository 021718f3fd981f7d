"""Bad input gets a problem document, on every endpoint."""

import posixpath

import pytest
from tests.integration.server.api import Api
from tests.integration.server.operations import OPERATIONS, Operation

from loopwright.core.values.access import Scope

WITH_NAMES = [one for one in OPERATIONS if one.names]
ENDPOINTS = {one.path for one in OPERATIONS}
WITH_BODY = [one for one in OPERATIONS if one.body]
HOSTILE = [
    "..%2f..%2f..%2fetc%2fpasswd",
    "..%2f..",
    "%2e%2e",
    "%00",
    "plan_00000000-0000-0000-0000-000000000000%00",
    "%ff%fe",
    "a" * 3000,
    "' OR 1=1 --",
    "${HOME}",
    "𝓹𝓵𝓪𝓷",
    "plan_*",
]


def test_no_name_in_a_path_leads_anywhere_else(shared_api: Api) -> None:
    with shared_api.client() as client:
        for number, operation in enumerate(WITH_NAMES):
            # Endpoints share their look-ups, so each gets some of them, and every one is tried on many.
            for hostile in HOSTILE[number % 6 :: 6]:
                path = operation.fill(dict.fromkeys(operation.names, hostile))
                if posixpath.normpath(path) in ENDPOINTS:
                    continue  # the client resolves `..` itself: it is a request for that endpoint
                answer = client.request(operation.method, path, json={})
                assert answer.status_code in (404, 405, 422), (operation, hostile, answer.text)
                assert answer.headers["content-type"] == "application/problem+json"
                assert "root:" not in answer.text


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b"null", b'"x"', b"7", b"\xff\xfe", b"[" * 50_000, b'{"a":' * 20_000, b""]
)
def test_a_body_that_is_not_the_right_json_is_refused(shared_api: Api, body: bytes) -> None:
    with shared_api.client() as client:
        for operation in WITH_BODY:
            path = operation.fill(dict.fromkeys(operation.names, "unknown"))
            headers = {"Content-Type": "application/json"}
            answer = client.request(operation.method, path, content=body, headers=headers)
            assert answer.status_code in (400, 404, 422), (operation, body[:20], answer.text)
            assert answer.json()["code"]


def test_fields_of_a_wrong_type_are_named(shared_api: Api) -> None:
    with shared_api.client() as client:
        for operation in WITH_BODY:
            path = operation.fill(dict.fromkeys(operation.names, "unknown"))
            wrong = {name: {"wrong": ["type"]} for name in operation.fields}
            answer = client.request(operation.method, path, json=wrong)
            assert answer.status_code == 422, (operation, answer.text)
            assert answer.json()["errors"], operation


def test_what_another_project_has_is_as_unknown_as_what_nobody_has(api: Api) -> None:
    project, loop, plan, task = api.family()
    other, *_ = api.family()
    stranger = api.make_token("stranger", scope=Scope.ADMIN, projects=(other.id,))
    mine = {"project_id": project.id, "loop_id": loop.id, "plan_id": plan.id, "task": task.key}
    with api.client(stranger) as client:
        for operation in WITH_NAMES:
            names = {name: mine.get(name) for name in operation.names}
            if None in names.values():
                continue
            body = _usual_body(operation)
            found = client.request(operation.method, operation.fill(names), json=body)
            assert found.status_code == 404, (operation, found.text)
            nobody = {name: f"{value[:-1]}x" if name != "task" else value for name, value in names.items()}
            unknown = client.request(operation.method, operation.fill(nobody), json=body)
            assert found.json()["code"] == unknown.json()["code"], operation
        assert client.get("/api/loops").json()["loops"] != []
        for path in ("/api/loops", "/api/projects", "/api/needs-response", "/api/events", "/api/inspection"):
            assert project.id not in client.get(path).text


def test_a_name_that_a_request_does_not_have_is_refused_and_either_spelling_is_taken(
    shared_api: Api,
) -> None:
    with shared_api.client() as client:
        for operation in (one for one in OPERATIONS if one.names_in_body):
            names = dict.fromkeys(operation.names, "x")
            body = {**_usual_body(operation), "prioritty": 1}
            answer = client.request(operation.method, operation.fill(names), json=body)
            places = [one["in"] for one in answer.json().get("errors", ())]
            assert (answer.status_code, "body.prioritty" in places) == (422, True), (operation, answer.text)
        for key in ("project_id", "projectId"):
            answer = client.post("/api/loops", json={key: "proj_x", "source": "x.yaml"})
            assert answer.json()["code"] == "project_not_found"


def _usual_body(operation: Operation) -> dict[str, object]:
    """Return a body that passes the first look, so that the names in the path are looked at."""
    usual: dict[str, object] = {
        "answer": "yes",
        "response": "yes",
        "priority": 3,
        "key": "more",
        "title": "More",
        "goal": "More",
        "note": "no",
        "reason": "no",
        "text": "More",
    }
    return {name: value for name, value in usual.items() if name in operation.names_in_body}
