"""What is created with a limited token stops at its limit, and continues when the owner raises it."""

import pytest
from tests.acceptance.server.conftest import Served
from tests.waiting import eventually

from loopwright.core.rows.model import Loop, Plan, Project, Role, Run
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.states import LoopState, QuestionState

TEMPLATE = """\
description: Write one file
plan:
  title: Write it
  settings: {autonomy: auto}
  tasks:
    - {id: dear, title: Write it, acceptance: "test -s whole"}
"""


def _spent(dollars: float) -> dict[str, object]:
    return {"usage": {"input_tokens": 10, "output_tokens": 1, "cost_micros": round(dollars * 1_000_000)}}


@pytest.mark.capability("C076")
def test_a_limited_token_pauses_its_plan_and_nothing_but_its_owner_raises_it(served: Served) -> None:
    half = [{"write": "half", "text": "half\n"}, _spent(0.5), _spent(1.2), {"hang": 90}]
    more = ({"run": "cp half whole"}, _spent(0.1), {"claim": "carried on"})
    served.play({"dear": [[{"expect_prompt": "You were interrupted", "otherwise": half}, *more]]})
    assert served("projects", "add").code == 0
    project = served.row(Project).id
    served.serve()
    path = f"/api/projects/{project}/templates/write-file"
    assert served.ask("PUT", path, json={"text": TEMPLATE}).status_code == 200
    made = served("tokens", "create", "agent", "--scope", "admin", "--spending-limit", "1", "--nesting", "1")
    token = made.out.strip()
    with served.client(token) as client:
        wanted = {"project_id": project, "template": "write-file"}
        loop = client.post("/api/loops", json=wanted).json()["id"]
        assert client.post(f"/api/loops/{loop}/start").status_code == 202
        eventually(lambda: served.row(Loop).state is LoopState.PAUSED, timeout=90)
        plan = served.row(Plan)
        (question,) = served.rows(Question, state=QuestionState.OPEN)
        assert (question.key, question.kind) == ("token_spending_limit", "budget")
        assert "$1.20 of $1.00 for the token" in served("status").out
        tries = (
            ("POST", f"/api/loops/{loop}/resume", {}),
            ("POST", f"/api/plans/{plan.id}/tasks/dear/retry", {}),
            ("POST", f"/api/plans/{plan.id}/tasks", {"key": "more", "title": "More"}),
            ("PATCH", f"/api/plans/{plan.id}/budget", {"maxCost": 9_000_000}),
            ("POST", f"/api/questions/{question.id}/answer", {"answer": question.options[0]}),
        )
        codes = {client.request(method, place, json=body).json().get("code") for method, place, body in tries}
        assert codes == {"token_limit_reached"}
    # The owner cannot continue past it either, with whatever limit of the plan.
    assert "spending limit of the token is used up" in served("resume", "--max-cost", "9").err
    assert len(served.rows(Run, role=Role.IMPLEMENTER)) == 1
    assert "$1.20 of $2.00 spent, nesting 1" in served("tokens", "limit", "agent", "2").out
    with served.client(token) as client:
        assert client.post(f"/api/loops/{loop}/resume").status_code == 200
    eventually(lambda: served.row(Loop).state is LoopState.COMPLETED, timeout=90)
    assert "$1.30 of $2.00 spent" in served("tokens").out
