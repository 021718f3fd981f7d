"""From a bare goal to a verified branch with the real Claude Code: it plans, is corrected, and does the work."""

import pytest
from tests.acceptance.agents.programs import CLAUDE
from tests.acceptance.control.workshop import Workshop

from loopwright.core.model import Attempt, Plan, Role, Run
from loopwright.testing import scenarios
from loopwright.testing.model_server import Scenario

pytestmark = pytest.mark.skipif(CLAUDE.binary is None, reason="the claude-agent-sdk wheel is not installed")

GOAL = "Greet in French, please"
GOOD = """\
title: Greet in French
gates: [grep -q hello greet.txt]
tasks:
  - id: bonjour
    title: Say bonjour
    description: Write bonjour into the file bonjour.
    acceptance: [grep -q bonjour bonjour]
    scope: [bonjour]
"""
BROKEN = GOOD.replace("tasks:", "task:")
MISTAKE = "loopwright.plan.yaml:3: task: unknown key"


@pytest.mark.timeout(240)
@pytest.mark.capability("C017", "C018")
def test_the_real_program_turns_a_goal_into_a_plan_that_is_judged_edited_and_carried_out(
    shop: Workshop,
) -> None:
    """The model writes a plan that fits the format only once it is told where the first one did not."""
    broken, mended = (
        scenarios.write_file("loopwright.plan.yaml", text=text).turns for text in (BROKEN, GOOD)
    )
    greeted = scenarios.write_file("salut", text="salut\n").turns
    scenario = Scenario(turns=broken, by_prompt={MISTAKE: mended, "Task: salut": greeted})
    with CLAUDE.model(shop, scenario) as server:
        told = shop("plan", GOAL, "--json", timeout=100)
        assert told.code == 0, told.out + told.err
        planning = shop.row(Plan)
        asked = [one.prompt for one in server.asked]
        path = shop.repository / "plans" / "greet-in-french-please.yaml"
        assert (told.document["path"], path.read_text()) == (str(path), GOOD)
        packet = shop.repository / ".loopwright" / "packets" / f"{told.document['packet_id']}.md"
        assert "greet.txt" in packet.read_text()
        # A person reads it and changes their mind.
        path.write_text(GOOD.replace("bonjour", "salut"))
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
    runs = shop.rows(Run, role=Role.IMPLEMENTER)
    assert [(run.agent, run.state) for run in runs] == [("claude", "COMPLETE")] * 3
    assert shop.git("status", "--porcelain") == "?? plans/\n", "nothing but the plan is in the checkout"
    receipt = shop("receipt", "verify", f".loopwright/receipts/{work.id}.json")
    assert receipt.code == 0, receipt.out + receipt.err
