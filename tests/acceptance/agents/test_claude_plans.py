"""From a bare goal to a verified branch with the real Claude Code: it plans, is corrected, and does the work."""

import json
from pathlib import Path

import pytest
from tests.acceptance.agents.programs import CLAUDE
from tests.acceptance.control.greeting import ANSWER, GOAL, NAME, PLAN, changed
from tests.acceptance.control.workshop import Workshop

from loopwright.core.rows.model import Attempt, Plan, Role, Run
from loopwright.core.values.permissions import Access
from loopwright.testing import scenarios
from loopwright.testing.model_server import Reply, Scenario, ToolCall
from loopwright.testing.model_server.scenario import parse

pytestmark = pytest.mark.skipif(CLAUDE.binary is None, reason="the claude-agent-sdk wheel is not installed")

MISTAKE = 'tasks[0].depends_on: unknown task "bonsoir"'


@pytest.mark.timeout(240)
@pytest.mark.capability("C017", "C018")
def test_the_real_program_turns_a_goal_into_a_plan_that_is_judged_edited_and_carried_out(
    shop: Workshop,
) -> None:
    """Its structured result is the plan; the first one waits for a task that there is not, until it is told."""
    broken, mended = (
        (Reply(tools=(ToolCall(name="StructuredOutput", input=answer),)), Reply(text="Planned."))
        for answer in (changed(ANSWER, depends_on=["bonsoir"]), ANSWER)
    )
    page = Path(__file__).parents[3] / "docs/how-to/run-agents-offline.md"
    _, _, example = page.read_text().partition("## Play a planner")
    assert parse(json.loads(example.split("```json\n")[1].split("```")[0]), "the page").turns == mended
    greeted = scenarios.write_file("salut", text="salut\n").turns
    scenario = Scenario(turns=broken, by_prompt={MISTAKE: mended, "Task: salut": greeted})
    with CLAUDE.model(shop, scenario) as server:
        told = shop("plan", GOAL, "--json", timeout=100)
        assert told.code == 0, told.out + told.err
        planning = shop.row(Plan)
        asked = [one.prompt for one in server.asked]
        path = shop.repository / "plans" / NAME
        assert (told.document["path"], path.read_text()) == (str(path), PLAN)
        packet = shop.repository / ".loopwright" / "inspection-packets" / f"{told.document['packet_id']}.md"
        assert "greet.txt" in packet.read_text()
        # A person reads it and changes their mind.
        path.write_text(PLAN.replace("bonjour", "salut"))
        judged = shop("plan", "check", str(path), "--json")
        assert judged.code == 0, judged.out + judged.err
        done = shop.run(path)
        assert done.code == 0, done.out + done.err

    assert all(GOAL in prompt and "greet.txt" in prompt for prompt in asked), "the goal, and the packet"
    assert MISTAKE not in asked[0]
    assert MISTAKE in asked[-1]
    first, second = shop.rows(Attempt, plan_id=planning.id)
    assert (first.failure, second.state) == ("gate", "LANDED")

    work = shop.rows(Plan)[-1]
    assert (work.status, work.outcome) == ("VERIFIED", "verified")
    assert work.evaluation["passed"]
    assert shop.git("show", f"{work.branch}:salut") == "salut\n"
    plans, works = shop.rows(Run, role=Role.PLANNER), shop.row(Run, role=Role.IMPLEMENTER)
    assert [(run.agent, run.state, run.permission_mode) for run in plans] == [
        ("claude", "COMPLETE", Access.READ_ONLY)
    ] * 2
    assert all("--json-schema" in run.argv and run.cost_micros for run in plans)
    assert works.state == "COMPLETE"
    assert shop.git("status", "--porcelain") == "?? plans/\n", "nothing but the plan is in the checkout"
    receipt = shop("receipt", "verify", f".loopwright/receipts/{work.id}.json")
    assert receipt.code == 0, receipt.out + receipt.err
