"""Lists are read page by page, and each item comes once."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

from tests.contracts.store import rows
from tests.integration.server.api import Api

from loopwright.core.rows.model import Role, Run
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.ids import Kind, make
from loopwright.core.values.states import RunState


def pages(api: Api, path: str, name: str, **query: Any) -> list[Any]:
    """Return all items of a list, read in small pages."""
    found, after = [], ""
    while True:
        page = api.get(path, limit=3, after=after, **query)
        assert len(page[name]) <= 3
        found += page[name]
        after = page["next"]
        if after is None:
            return found


def test_every_list_has_each_item_once_whatever_the_page_size(api: Api) -> None:
    project, loop, plan, task = api.family()
    plans = [rows.plan(loop, created_at=rows.AT + timedelta(seconds=n // 3)) for n in range(8)]
    runs = [
        Run(
            id=make(Kind.RUN, uuid4()),
            plan_id=plan.id,
            role=Role.GATE,
            state=RunState.COMPLETE,
            created_at=rows.AT + timedelta(seconds=n // 4),
        )
        for n in range(10)
    ]
    questions = [
        Question(
            id=make(Kind.QUESTION, uuid4()),
            project_id=project.id,
            loop_id=loop.id,
            plan_id=plan.id,
            task_id=task.id,
            run_id=runs[0].id,
            kind="choice",
            key=str(n),
            text="?",
            created_at=rows.AT,
        )
        for n in range(7)
    ]
    projects = [rows.project(name=f"p{n % 2}", path=f"/p{n}") for n in range(5)]
    asked = rows.plan(loop, made_for="")

    def insert(tx: Any) -> None:
        for row in (*plans, *runs, *questions, *projects, asked):
            tx.insert(row)

    api.write(insert)
    for name in range(4):
        api.make_token(f"t{name}")
    found = pages(api, "/api/plans", "plans")
    assert [one["planId"] for one in found] == [
        one.id for one in sorted([plan, *plans], key=lambda one: (-one.created_at.timestamp(), one.id))
    ], "the newest first, without the plan that only asks an agent"
    assert found == pages(api, f"/api/projects/{project.id}/plans", "plans")
    for path in (f"/api/plans/{plan.id}/runs", f"/api/loops/{loop.id}/transcripts"):
        assert [one["runId"] for one in pages(api, path, "runs")] == [
            one.id for one in sorted(runs, key=lambda one: (one.created_at, one.id))
        ]
    assert {one["runId"] for one in pages(api, "/api/runs", "runs")} == {one.id for one in runs}
    waiting = pages(api, "/api/needs-response", "questions")
    assert [one["id"] for one in waiting] == sorted(one.id for one in questions)
    named = pages(api, "/api/projects", "projects")
    assert [one["projectId"] for one in named] == [
        one.id for one in sorted([project, *projects], key=lambda one: (one.name, one.id))
    ]
    assert len(pages(api, "/api/tokens", "tokens")) == 5
    assert [one["id"] for one in pages(api, "/api/loops", "loops")] == [loop.id]


def test_an_item_that_comes_between_two_pages_moves_no_other(api: Api) -> None:
    _, loop, plan, _ = api.family()
    older = [rows.plan(loop, created_at=rows.AT - timedelta(days=n)) for n in range(1, 4)]
    api.write(lambda tx: [tx.insert(one) for one in older])
    first = api.get("/api/plans", limit=2)
    newer = rows.plan(loop, created_at=rows.AT + timedelta(days=1))
    api.write(lambda tx: tx.insert(newer))
    second = api.get("/api/plans", limit=2, after=first["next"])
    shown = [one["planId"] for one in (*first["plans"], *second["plans"])]
    assert shown == [plan.id, *(one.id for one in older)]


def test_a_cursor_of_another_list_and_a_page_that_is_too_large_are_refused(api: Api) -> None:
    _, loop, *_ = api.family()
    api.write(lambda tx: [tx.insert(rows.plan(loop)) for _ in range(2)])
    of_plans = api.get("/api/plans", limit=1)["next"]
    wrong = [of_plans, "x", "bnVsbA", "WzEsMl0", "W251bGxd", "WyJcdTAwMDAiXQ", "WzFlOTld", "é"]
    with api.client() as client:
        for cursor in wrong:
            answer = client.get("/api/loops", params={"after": cursor})
            assert (answer.status_code, answer.json()["code"]) == (422, "cursor_wrong"), cursor
        assert client.get("/api/plans", params={"limit": 201}).status_code == 422
        assert client.get("/api/plans", params={"limit": 0}).status_code == 422
