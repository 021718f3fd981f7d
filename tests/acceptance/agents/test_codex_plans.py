"""The real Codex as a planner: it is held to our schema, and its answer is the plan."""

import json

import pytest
from tests.acceptance.agents.programs import CODEX
from tests.acceptance.control.greeting import ANSWER, GOAL, NAME, PLAN
from tests.acceptance.control.workshop import Workshop

from loopwright.core.rows.model import Role, Run
from loopwright.core.values.permissions import Access
from loopwright.testing import scenarios

pytestmark = pytest.mark.skipif(CODEX.binary is None, reason="the openai-codex wheel is not installed")


@pytest.mark.capability("C017", "C018")
def test_the_real_program_answers_with_a_plan_that_fits_the_schema(shop: Workshop) -> None:
    with CODEX.model(shop, scenarios.answer(json.dumps(ANSWER))) as server:
        said = shop("plan", GOAL, timeout=100)
        (asked,) = server.asked
    assert said.code == 0, said.out + said.err
    assert (shop.repository / "plans" / NAME).read_text() == PLAN
    assert "no estimate: no task was done in this project yet" in said.out
    assert '"acceptance"' in json.dumps(asked.body), "it is given the schema"
    run = shop.row(Run, role=Role.PLANNER)
    assert (run.agent, run.state, run.permission_mode) == ("codex", "COMPLETE", Access.READ_ONLY)
    assert run.cost_micros
