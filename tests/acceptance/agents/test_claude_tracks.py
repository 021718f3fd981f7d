"""A conductor track from a goal to COMPLETE, with the real Claude Code as planner, evaluator, executor and fixer."""

import json
from typing import Any

import pytest
from tests.acceptance.agents.programs import CLAUDE
from tests.acceptance.control.greeting import ANSWER, GOAL, changed
from tests.acceptance.control.workshop import Workshop

from loopwright.core.rows.model import Plan, Role, Run
from loopwright.testing import scenarios
from loopwright.testing.model_server import Reply, Scenario, ToolCall

pytestmark = pytest.mark.skipif(CLAUDE.binary is None, reason="the claude-agent-sdk wheel is not installed")

SETTINGS = '[[gates]]\nname = "greeting"\nrun = "grep -q hello greet.txt"\n'


def answers(value: dict[str, Any]) -> tuple[Reply, ...]:
    """Return the turns of a model that gives a structured result."""
    return (Reply(tools=(ToolCall(name="StructuredOutput", input=value),)), Reply(text="Done."))


def report(*issues: str) -> dict[str, Any]:
    """Return what an evaluator of the execution reports."""
    result = "issues" if issues else "fine"
    parts = dict.fromkeys(("where", "steps", "expected", "actual", "screenshot"), "")
    return {
        "summary": "I read and tried it.",
        "checked": [
            {"area": "structure", "result": "fine", "how": "I compared plan and commits."},
            {"area": "code_quality", "result": result, "how": "I ran it."},
        ],
        "issues": [{"what": one, **parts, "severity": "high"} for one in issues],
    }


@pytest.mark.more
@pytest.mark.timeout(300)
@pytest.mark.capability("C017", "C020", "C044")
def test_the_real_program_carries_a_track_from_a_goal_over_a_failed_evaluation_to_complete(
    shop: Workshop,
) -> None:
    (shop.repository / "conductor" / "tracks").mkdir(parents=True)
    (shop.repository / "conductor" / "workflow.md").write_text("# Workflow\n")
    (shop.repository / "loopwright.toml").write_text(SETTINGS)
    shop.git("add", "-A")
    shop.git("commit", "-qm", "conductor")
    shop.program.env["LOOPWRIGHT_EVALUATOR__AGENT"] = "claude"
    plan = {key: value for key, value in changed(ANSWER, scope=[]).items() if key != "gates"}
    scenario = Scenario(
        turns=scenarios.answer().turns,
        by_prompt={
            "You are the planner.": answers(plan),
            "You judge a plan before anything of it runs.": answers(
                {"summary": "It is fine.", "findings": []}
            ),
            "An earlier QA review found": answers(report()),
            "You evaluate what the tasks of a track made.": answers(report("It ends without a full stop")),
            "Task: fix-evaluate-execution-001": scenarios.write_file("stop", text=".\n").turns,
            "Task: 1.1": scenarios.write_file("bonjour", text="bonjour\n").turns,
        },
    )
    with CLAUDE.model(shop, scenario) as server:
        said = shop("run", GOAL, "--yes", timeout=250)
        prompts = [one.prompt for one in server.asked]
    assert said.code == 4, said.out + said.err
    (track,) = (shop.repository / "conductor" / "tracks").iterdir()
    told = json.loads((track / "metadata.json").read_text())
    loop = told["loop_state"]
    steps = loop["checkpoints"]
    assert (told["status"], loop["current_step"], loop["step_status"]) == ("complete", "COMPLETE", "PASSED")
    assert {
        name: (steps[name]["status"], steps[name]["agent"], steps[name]["run_by"]) for name in STEPS
    } == STEPS
    assert (loop["fix_cycle_count"], steps["FIX"]["cycle"]) == (1, 1)
    assert [one["evaluator"] for one in steps["EVALUATE_EXECUTION"]["evaluators_run"]] == [
        "loop-execution-evaluator",
        "eval-code-quality",
        "gate:all",
    ]
    work = shop.rows(Plan)[-1]
    assert work.status == "VERIFIED"
    runs = shop.rows(Run, role=(Role.PLANNER, Role.PLAN_EVALUATOR, Role.IMPLEMENTER))
    assert [run.agent for run in runs] == ["claude"] * 6
    assert len({run.session_ref for run in runs}) == 6, "no role continues the conversation of another"
    assert not [one for one in prompts if "You evaluate what" in one and "You do one task" in one]
    assert shop("receipt", "verify", work.id).code == 0


STEPS = {
    "PLAN": ("PASSED", "loop-planner", "claude"),
    "EVALUATE_PLAN": ("PASSED", "loop-plan-evaluator", "claude"),
    "EXECUTE": ("PASSED", "loop-executor", "claude"),
    "EVALUATE_EXECUTION": ("PASSED", "loop-execution-evaluator", "claude"),
    "FIX": ("PASSED", "loop-fixer", "claude"),
}
