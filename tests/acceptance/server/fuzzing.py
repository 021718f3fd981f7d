"""Schemathesis over the whole OpenAPI document, against a real daemon with real plans.

Half of the requests name things that exist, so that they get past the first look-up.
"""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.acceptance.sandbox import task
from tests.acceptance.server.conftest import Served

from loopwright.core.rows.model import Loop, Plan, Project, Run

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
ENDLESS = "GET /api/events/stream"
"""It has no end, so tests of its own read it."""
COSTLY = frozenset({"POST /api/projects/{project_id}/plan"})
"""What starts an agent and waits for it: few requests of these name a project that exists."""


def prepare(served: Served) -> Mapping[str, list[str]]:
    """Give the home of a daemon something of each kind; return the ids by the names of path parameters."""
    served.play({"one": [[{"write": "one", "text": "1\n"}]], "two": [[{"write": "two", "text": "2\n"}]]})
    assert served.run(served.plan("one", [task("one", "test -s one")])).code == 0
    second = served.plan("two", [task("two", "test -s two")])
    second.rename(served.repository / second.name)
    served.serve()
    project = served.row(Project).id
    made = served.post("/api/loops", {"project_id": project, "source": second.name})
    assert made.status_code == 201, made.text
    run = served.rows(Run)[0].id
    packet = served.post(f"/api/inspection/run/{run}").json()["packetId"]
    token = served.post("/api/tokens", {"name": "spare"}).json()["id"]
    return {
        "project_id": [project],
        "loop_id": [one.id for one in served.rows(Loop)],
        "plan_id": [one.id for one in served.rows(Plan)],
        "task": ["one", "two"],
        "run_id": [run],
        "packet_id": [packet],
        "token_id": [token],
    }


def fuzz(served: Served, *, examples: int, first: int = 0) -> Counter[str]:
    """Ask every operation of the document, and check every reply; return how often each status came."""
    known = prepare(served)
    document = json.loads(Path("docs/reference/openapi.json").read_text())
    assert document == served.get("/api/openapi.json"), "the document is not the daemon's"
    schema = schemathesis.openapi.from_dict(document)
    statuses: Counter[str] = Counter()
    wrong: list[str] = []
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {served.token}"
        for number, found in enumerate(schema.get_all_operations()):
            operation = found.ok()
            if operation.label == ENDLESS:
                continue
            try:
                _ask(operation, served.listening["url"], session, known, statuses, examples, first + number)
            except Exception as failure:  # noqa: BLE001 - all of them are shown together
                wrong.append(f"{operation.label}: {failure}")
    assert not wrong, "\n\n".join(wrong)
    return statuses


def _ask(
    operation: Any,
    url: str,
    session: requests.Session,
    known: Mapping[str, list[str]],
    statuses: Counter[str],
    examples: int,
    number: int,
) -> None:
    right = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    wrong = operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
    costly = operation.label in COSTLY

    @seed(number)
    @settings(
        max_examples=max(1, examples // 4) if costly else examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=right | wrong, choice=st.integers(0, 3 if not costly else 40))
    def ask(case: Any, choice: int) -> None:
        for name in case.path_parameters or {}:
            if choice and (not costly or choice > 38) and name in known:
                case.path_parameters[name] = known[name][choice % len(known[name])]
        if isinstance(case.query, dict) and "wait" in case.query:
            case.query["wait"] = "0.01"
        answer = case.call(base_url=url, session=session, timeout=60)
        statuses[str(answer.status_code)] += 1
        case.validate_response(answer, checks=CHECKS)

    ask()
