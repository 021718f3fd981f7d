"""A token with a spending limit or a nesting depth creates work only within them, whatever it is used for."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.store import rows
from tests.integration.server.api import Api
from tests.integration.server.operations import OPERATIONS

from loopwright.core.replies.discoveries import Discovery
from loopwright.core.rows.access_rows import Token
from loopwright.core.rows.action_rows import Action
from loopwright.core.rows.hold_rows import Hold
from loopwright.core.rows.model import Loop, Plan, Role, Run
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.access import Bounds, Scope
from loopwright.core.values.environments import PlanEnvironment
from loopwright.core.values.ids import Kind
from loopwright.core.values.states import ActionState, HoldState, LoopState, PlanState, RunState
from loopwright.engine.money.charges import charge
from loopwright.services.access import tokens

DOLLAR = 1_000_000
TASK = {"key": "k", "title": "t"}
SPENDING: Mapping[str, Mapping[str, Any]] = {
    "PATCH /api/loops/{loop_id}": {"agent": "scripted"},
    "PATCH /api/plans/{plan_id}": {"title": "another"},
    "PATCH /api/plans/{plan_id}/budget": {"maxCost": 5},
    "PATCH /api/plans/{plan_id}/tasks/{task}": {"agent": "scripted"},
    "POST /api/actions": {
        "kind": "answer",
        "reason": "r",
        "question_id": "{question_id}",
        "text": "yes",
    },
    "POST /api/actions/{action_id}/undo": {},
    "POST /api/discoveries/{discovery_id}/accept": {"way": "current"},
    "POST /api/locks/{hold_id}/release": {},
    "POST /api/loops/{loop_id}/resume": {},
    "POST /api/loops/{loop_id}/start": {},
    "POST /api/loops/{loop_id}/tasks": TASK,
    "POST /api/loops/{loop_id}/tasks/{task}/reset": {},
    "POST /api/loops/{loop_id}/tests": TASK,
    "POST /api/loops/{loop_id}/tests/{task}/reset": {},
    "POST /api/plans/{plan_id}/dispatch": {},
    "POST /api/plans/{plan_id}/resume": {},
    "POST /api/plans/{plan_id}/reverify": {},
    "POST /api/plans/{plan_id}/tasks": TASK,
    "POST /api/plans/{plan_id}/tasks/{task}/give-back": {},
    "POST /api/plans/{plan_id}/tasks/{task}/reject": {"note": "no"},
    "POST /api/plans/{plan_id}/tasks/{task}/reset": {},
    "POST /api/plans/{plan_id}/tasks/{task}/retry": {"agent": "scripted"},
    "POST /api/plans/{plan_id}/verify": {},
    "POST /api/questions/{question_id}/answer": {"answer": "yes"},
    "POST /api/quota/open": {"account": "scripted"},
    "POST /api/runs/{run_id}/interrupt": {},
    "POST /api/runs/{run_id}/respond": {"response": "yes"},
}
"""What lets agents work, by operation: refused for work that was not created with the token."""
CREATING: Mapping[str, Mapping[str, Any]] = {
    "POST /api/loops": {"project_id": "{project_id}", "source": "x.yaml"},
    "POST /api/plans/{plan_id}/replan": {},
    "POST /api/projects/{project_id}/delegate": {"goal": "g"},
    "POST /api/projects/{project_id}/plan": {"goal": "g"},
}
"""What creates work: refused once the limit is used up, or at the depth 0."""
FREE = {
    "DELETE /api/loops/{loop_id}",
    "DELETE /api/projects/{project_id}/templates/{name}",
    "DELETE /api/tokens/{token_id}",
    "DELETE /api/webhooks/{webhook_id}",
    "POST /api/alerts/{alert_id}/acknowledge",
    "POST /api/discoveries/{discovery_id}/dismiss",
    "POST /api/inspection/project/{project_id}",
    "POST /api/inspection/run/{run_id}",
    "POST /api/lessons/{lesson_id}/approve",
    "POST /api/lessons/{lesson_id}/promote",
    "POST /api/lessons/{lesson_id}/remove",
    "POST /api/locks",
    "POST /api/loops/{loop_id}/pause",
    "POST /api/loops/{loop_id}/stop",
    "POST /api/loops/{loop_id}/tasks/{task}/skip",
    "POST /api/loops/{loop_id}/tests/{task}/skip",
    "POST /api/plans/{plan_id}/accept",
    "POST /api/plans/{plan_id}/cancel",
    "POST /api/plans/{plan_id}/fail",
    "POST /api/plans/{plan_id}/pause",
    "POST /api/plans/{plan_id}/receipt/verify",
    "POST /api/plans/{plan_id}/reviewed",
    "POST /api/plans/{plan_id}/stop",
    "POST /api/plans/{plan_id}/tasks/{task}/hand-back",
    "POST /api/plans/{plan_id}/tasks/{task}/rollback",
    "POST /api/plans/{plan_id}/tasks/{task}/skip",
    "POST /api/plans/{plan_id}/tasks/{task}/take-over",
    "POST /api/projects",
    "POST /api/projects/{project_id}/lessons",
    "POST /api/projects/{project_id}/lessons/propose",
    "POST /api/tokens/login-links",
    "POST /api/webhooks",
    "POST /api/webhooks/{webhook_id}/replay",
    "PUT /api/projects/{project_id}/templates/{name}",
}
"""What lets no agent work."""


def test_every_operation_that_lets_agents_work_is_known() -> None:
    changing = {str(one) for one in OPERATIONS if one.method != "GET"} - {"POST /api/tokens"}
    assert changing == {*SPENDING, *CREATING, *FREE}


class Home:
    """A home with a plan that was not created with the token, and what can be asked about it."""

    def __init__(self, api: Api, place: Path) -> None:
        self.api = api
        subprocess.run(["git", "init", "-q", str(place)], check=True)
        self.project, self.loop, self.plan, task = api.family(
            path=str(place), environment=PlanEnvironment(host_id="h", submitter="s")
        )
        attempt = rows.attempt(task)
        self.run_id = rows.new_id(Kind.RUN)
        run = Run(
            id=self.run_id,
            plan_id=self.plan.id,
            task_id=task.id,
            attempt_id=attempt.id,
            role=Role.IMPLEMENTER,
            state=RunState.RUNNING,
            created_at=rows.AT,
        )
        question = Question(
            id=rows.new_id(Kind.QUESTION),
            project_id=self.project.id,
            loop_id=self.loop.id,
            plan_id=self.plan.id,
            task_id=task.id,
            run_id=run.id,
            kind="question",
            key="k",
            text="May I?",
            options=("yes", "no"),
            created_at=rows.AT,
        )
        found = Discovery(
            id=rows.new_id(Kind.DISCOVERY),
            project_id=self.project.id,
            plan_id=self.plan.id,
            task_id=task.id,
            attempt_id=attempt.id,
            title="more",
            created_at=rows.AT,
        )

        hold = Hold(
            id=rows.new_id(Kind.HOLD),
            project_id=self.project.id,
            loop_id=self.loop.id,
            plan_id=self.plan.id,
            lock="staging",
            state=HoldState.HELD,
            created_at=rows.AT,
        )

        action = Action(
            id=rows.new_id(Kind.ACTION),
            project_id=self.project.id,
            kind="pause",
            loop_id=self.loop.id,
            reason="r",
            actor="agent",
            state=ActionState.DONE,
            about={"was": "RUNNING"},
            created_at=rows.AT,
        )

        def insert(tx: Any) -> None:
            for row in (attempt, run, question, found, hold, action):
                tx.insert(row)
            tx.update(Loop, self.loop.id, state=LoopState.PAUSED, source_kind="yaml")

        api.write(insert)
        self.names = {
            "project_id": self.project.id,
            "loop_id": self.loop.id,
            "plan_id": self.plan.id,
            "task": task.key,
            "run_id": run.id,
            "question_id": question.id,
            "discovery_id": found.id,
            "hold_id": hold.id,
            "action_id": action.id,
        }

    def token(self, name: str, **limits: Any) -> str:
        """Make a token of an admin."""

        async def make() -> tokens.NewToken:
            return await tokens.create_token(self.api.at, name, scope=Scope.ADMIN, **limits)

        return str(self.api.run(make).text)

    def code(self, token: str, operation: str, body: Mapping[str, Any], **headers: str) -> str | None:
        """Return the code with which something is refused."""
        one = next(one for one in OPERATIONS if str(one) == operation)
        text = json.dumps(dict(body)).replace("{project_id}", self.project.id)
        body = json.loads(text.replace("{question_id}", self.names["question_id"]))
        with self.api.client(token) as client:
            reply = client.request(one.method, one.fill(self.names), json=body, headers=headers)
        code: str | None = reply.json().get("code") if reply.is_error else None
        return code

    def spend(self, token: str, micros: int) -> Plan:
        """Charge a plan with a cost to a token."""
        plan = rows.plan(self.loop, status=PlanState.RUNNING, spent_micros=micros)
        self.api.write(lambda tx: tx.insert(plan))
        self.charge(token, plan.id)
        return plan

    def charge(self, token: str, subject: str, *, depth: int | None = None) -> None:
        """Charge a plan to a token that could create so many levels."""
        bounds = Bounds(token_id=self.row(token).id, depth=depth)
        self.api.write(lambda tx: charge(tx, bounds, subject))

    def row(self, token: str) -> Token:
        """Return the row of a token."""
        wanted = tokens._hash(token)
        return self.api.write(lambda tx: tx.find(Token, sha256=wanted)[0])


@pytest.fixture
def home(api: Api, tmp_path: Path) -> Home:
    return Home(api, tmp_path / "shop")


@pytest.mark.parametrize("limits", [{"limit": DOLLAR}, {"nesting": 3}])
def test_a_limited_token_lets_no_work_continue_that_it_did_not_create(
    home: Home, limits: Mapping[str, int]
) -> None:
    token = home.token("agent", **limits)
    found = {name: home.code(token, name, body) for name, body in SPENDING.items()}
    assert found == dict.fromkeys(SPENDING, "work_of_another_token")


def test_a_limited_token_that_steers_lets_other_work_continue_but_spends_no_more(home: Home) -> None:
    token = home.token("manager", limit=DOLLAR, steers=True)
    answer = "POST /api/questions/{question_id}/answer"
    # No worker runs here, so what is allowed waits for one: the request is in the queue.
    with home.api.client(token) as client:
        made = client.post("/api/tokens", json={"name": "child", "scope": "admin", "steers": True}).json()
    assert made["steers"] is True
    plain = home.token("plain", limit=DOLLAR)
    with home.api.client(plain) as client:
        wider = client.post("/api/tokens", json={"name": "wider", "scope": "admin", "steers": True}).json()
    assert wider["steers"] is False, "a token makes no stronger one"
    assert home.code(plain, answer, SPENDING[answer]) == "work_of_another_token"
    assert home.code(token, answer, SPENDING[answer]) is None
    home.spend(token, DOLLAR)
    start = "POST /api/loops/{loop_id}/start"
    assert home.code(token, start, SPENDING[start]) == "token_limit_reached"


def test_nothing_is_created_once_the_limit_is_used_up(home: Home) -> None:
    token = home.token("agent", limit=DOLLAR)
    assert home.code(token, "POST /api/loops", CREATING["POST /api/loops"]) == "source_not_found"
    home.spend(token, DOLLAR)
    found = {name: home.code(token, name, body) for name, body in CREATING.items()}
    assert found == dict.fromkeys(CREATING, "token_limit_reached")
    (shown,) = (one for one in home.api.get("/api/tokens")["tokens"] if one["name"] == "agent")
    assert (shown["spending_limit"], shown["spent"], shown["nesting"]) == (DOLLAR, DOLLAR, None)


def test_tokens_that_a_limited_token_makes_spend_from_its_limit(home: Home) -> None:
    token = home.token("agent", limit=DOLLAR)
    with home.api.client(token) as client:
        child = client.post("/api/tokens", json={"name": "child", "scope": "admin"}).json()["token"]
    with home.api.client(child) as client:
        made = client.post("/api/tokens", json={"name": "grandchild", "scope": "admin"}).json()["token"]
    home.spend(made, DOLLAR)
    for one in (made, child, token):
        assert home.code(one, "POST /api/loops", CREATING["POST /api/loops"]) == "token_limit_reached"
    # Revoking the token that spent gives nothing back.
    with home.api.client(token) as client:
        assert client.delete(f"/api/tokens/{home.row(made).id}").status_code == 200
    assert home.code(token, "POST /api/loops", CREATING["POST /api/loops"]) == "token_limit_reached"


def test_an_unknown_cost_uses_a_limit_up_until_it_is_set_again(home: Home) -> None:
    token = home.token("agent", limit=DOLLAR)
    plan = home.spend(token, 1)
    home.api.write(lambda tx: tx.update(Plan, plan.id, unknown_costs=1))
    create = "POST /api/loops"
    assert home.code(token, create, CREATING[create]) == "token_limit_reached"
    home.api.run(lambda: tokens.set_limit(home.api.at, home.row(token).id, 2 * DOLLAR))
    assert home.code(token, create, CREATING[create]) == "source_not_found"


def test_each_level_of_tokens_has_one_level_of_loops_less(home: Home) -> None:
    token = home.token("agent", nesting=2)
    with home.api.client(token) as client:
        deeper = client.post("/api/tokens", json={"name": "a", "scope": "admin", "nesting": 2})
        child = client.post("/api/tokens", json={"name": "b", "scope": "admin"}).json()
    assert deeper.json()["code"] == "nesting_too_deep"
    assert child["nesting"] == 1
    with home.api.client(child["token"]) as client:
        last = client.post("/api/tokens", json={"name": "c", "scope": "admin"}).json()
    assert last["nesting"] == 0
    with home.api.client(last["token"]) as client:
        assert client.post("/api/tokens", json={"name": "d"}).json()["code"] == "nesting_too_deep"
    found = {name: home.code(last["token"], name, body) for name, body in (CREATING | SPENDING).items()}
    assert set(found.values()) == {"nesting_too_deep"}


def test_what_a_run_creates_is_one_level_deeper(home: Home) -> None:
    token = home.token("agent", nesting=2)
    create, body = "POST /api/loops", CREATING["POST /api/loops"]
    # In a run that no token created, the token's own depth counts, and a token without one creates nothing.
    inside = {"Loopwright-Run": home.run_id}
    assert home.code(token, create, body, **inside) == "source_not_found"
    assert home.code(home.api.token, create, body, **inside) == "nesting_too_deep"
    # What was created at the last level is the end, whichever token its agents have.
    home.charge(token, home.plan.id, depth=1)
    wide = home.token("wide", nesting=50)
    for one in (token, wide, home.api.token):
        assert home.code(one, create, body, **inside) == "nesting_too_deep"
        assert home.code(one, create, body, **{"Loopwright-Run": "run_unknown"}) == (
            "nesting_too_deep" if one is home.api.token else "source_not_found"
        )


def test_a_program_inside_a_run_cannot_hide_where_it_is(home: Home) -> None:
    token = home.token("agent", nesting=1)
    home.charge(token, home.plan.id, depth=1)
    program = (
        "import json, sys, urllib.request, urllib.error\n"
        "url, token, project = sys.argv[1:]\n"
        "body = json.dumps({'project_id': project, 'source': 'x.yaml'}).encode()\n"
        "head = {'Authorization': 'Bearer ' + token, 'Content-Type': 'application/json'}\n"
        "try: urllib.request.urlopen(urllib.request.Request(url + '/api/loops', body, head))\n"
        "except urllib.error.HTTPError as refused: print(json.loads(refused.read())['code'])\n"
    )
    words = [sys.executable, "-c", program, home.api.url, token, home.project.id]
    env = {name: value for name, value in os.environ.items() if name != "LOOPWRIGHT_RUN"}

    def code(words: list[str], run: str) -> str:
        done = subprocess.run(
            words, env={**env, "LOOPWRIGHT_RUN": run}, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    assert code(words, home.run_id) == "nesting_too_deep"
    shell = ["sh", "-c", 'env -u LOOPWRIGHT_RUN "$@"; exit $?', "sh", *words]
    assert code(shell, home.run_id) == "nesting_too_deep"
    assert code(words, "run_of_another_home") == "source_not_found"


def test_tools_over_http_count_as_the_run_that_uses_them(home: Home) -> None:
    token = home.token("agent", nesting=1)
    home.charge(token, home.plan.id, depth=1)
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "create",
            "arguments": {"project": home.project.id, "template": "any", "reason": "r"},
        },
    }
    accept = {"Accept": "application/json, text/event-stream"}

    def said(**headers: str) -> str:
        with home.api.client(token) as client:
            return client.post("/mcp", json=call, headers={**accept, **headers}).text

    assert "nesting_too_deep" in said(**{"Loopwright-Run": home.run_id})
    assert "template_not_found" in said()


def test_the_page_makes_limited_tokens_and_shows_what_they_spent(home: Home) -> None:
    with home.api.client(follow_redirects=True) as client:
        made = client.post(
            "/tokens",
            data={"name": "page", "scope": "operate", "limit": "2.50", "nesting": "1"},
            headers={"Origin": home.api.url},
        )
        wrong = client.post("/tokens", data={"name": "w", "limit": "much"}, headers={"Origin": home.api.url})
        shown = client.get("/tokens").text
    assert (made.status_code, wrong.status_code) == (200, 200)
    (row,) = home.api.write(lambda tx: tx.find(Token, name="page"))
    assert (row.limit_micros, row.nesting) == (2_500_000, 1)
    assert "$0.00 of $2.50" in shown
    assert not home.api.write(lambda tx: tx.find(Token, name="w"))
