"""A report has what happened in a while, for those who may see it, and nothing in it is taken for markup."""

from html.parser import HTMLParser
from typing import Any

import pytest
from tests.contracts.store import rows
from tests.integration.server.api import Api

from loopwright.core.policy.price_table import AS_OF
from loopwright.core.rows.events import Event, happened
from loopwright.core.rows.model import Loop, Project, Role, Run
from loopwright.core.values.ids import Kind
from loopwright.core.values.states import LoopState, PlanState, RunState, TaskState

HOSTILE = "<script>alert(1)</script> [x](javascript:1) | `y` \n# head"


def _night(api: Api) -> Project:
    """Insert a plan that was verified, one that failed, one with a question, and what they cost."""

    def insert(tx: Any) -> Project:
        project = rows.project(name="shop")
        tx.insert(project)
        for title, status, loop_state in (
            ("good", PlanState.VERIFIED, LoopState.COMPLETED),
            (HOSTILE, PlanState.FAILED, LoopState.FAILED),
            ("open", PlanState.RUNNING, LoopState.RUNNING),
        ):
            loop = rows.loop(project, state=loop_state)
            ended = tx.now() if status is not PlanState.RUNNING else None
            plan = rows.plan(
                loop,
                title=title,
                status=status,
                reason="it broke" * (status is PlanState.FAILED),
                updated_at=tx.now(),
            )
            task = rows.task(plan, status=TaskState.COMPLETE if title == "good" else TaskState.ERROR)
            run = Run(
                id=rows.new_id(Kind.RUN),
                plan_id=plan.id,
                role=Role.IMPLEMENTER,
                state=RunState.COMPLETE,
                agent="claude",
                cost_micros=None if title == "open" else 1_500_000,
                cost_estimated=title == "good",
                created_at=tx.now(),
                started_at=tx.now(),
                ended_at=ended,
            )
            for row in (loop, plan, task, run):
                tx.insert(row)
            tx.update(Loop, loop.id, plan_id=plan.id)
            if ended:
                tx.append(happened(f"plan_{status.value.lower()}", "test", plan=plan))
        tx.append(Event(type="envelope_closed", actor="test", payload={"envelope": "claude"}))
        return project

    return api.write(insert)


@pytest.mark.capability("C107")
def test_a_night_is_one_page(api: Api) -> None:
    project = _night(api)
    found = api.get("/api/report")
    assert [one["title"] for one in found["verified"]] == ["good"]
    assert [(one["title"], one["reason"]) for one in found["failed"]] == [(HOSTILE, "it broke")]
    assert [(one["title"], one["passed"], one["total"]) for one in found["next"]] == [("open", 0, 1)]
    assert [one["kind"] for one in found["waiting"]] == ["task_failed"]
    assert (found["spent"]["costMicros"], found["spent"]["unknownCosts"]) == (3_000_000, 1)
    assert found["spent"]["estimatedCosts"] == 1
    assert [(one["account"], one["until"]) for one in found["quotaWaits"]] == [("claude", None)]
    mine = api.get("/api/report", project=project.id)
    assert (len(mine["verified"]), mine["quotaWaits"]) == (1, [])
    for since in ("0001-01-01T00:00:00%2B14:00", "9999-12-31T23:59:59-14:00"):
        with api.client() as client:
            assert client.get(f"/api/report?since={since}&format=markdown").status_code == 200
    late = api.get("/api/report", since="2999-01-01T00:00:00Z")
    assert (late["verified"], late["failed"], late["spent"]["runs"]) == ([], [], 0)


def test_what_is_estimated_is_said_with_the_date_of_the_prices(api: Api) -> None:
    _night(api)
    found = api.get("/api/costs")
    assert (found["pricesAsOf"], found["costs"][0]["estimatedCosts"]) == (str(AS_OF), 1)
    with api.client() as client:
        texts = [client.get(f"/api/report?format={one}").text for one in ("markdown", "html")]
    assert all(f"estimated with model prices of {AS_OF}" in one.replace("\\", "") for one in texts)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)
        assert not {name for name, _ in attrs} & {"src", "href", "onload"}


def test_what_agents_wrote_is_text_in_a_report(api: Api) -> None:
    _night(api)
    with api.client() as client:
        page = client.get("/api/report?format=html")
        text = client.get("/api/report?format=markdown").text
    tags = _Tags()
    tags.feed(page.text)
    assert tags.seen == {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "ul", "li"}
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert "<script>" not in text
    assert "\\[x\\]" in text
    assert [line for line in text.splitlines() if line.startswith("#")][1:] == [
        "## Waiting for you",
        "## Failed",
        "## Verified",
        "## Spent",
        "## Quota waits",
        "## Next",
    ]


def test_a_report_of_some_projects_has_nothing_of_others(api: Api) -> None:
    project = _night(api)
    other = api.family(path="/other", name="other")[0]
    theirs = api.make_token("other", projects=(other.id,))
    found = api.get("/api/report", token=theirs)
    assert not (found["verified"])
    assert not (found["failed"])
    assert not (found["quotaWaits"])
    assert not (found["spent"]["runs"])
    with api.client(theirs) as client:
        assert client.get(f"/api/report?project={project.id}").status_code == 404
