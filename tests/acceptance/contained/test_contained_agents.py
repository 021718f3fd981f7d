"""The real Claude Code and Codex in a sandbox, against a model server on this machine."""

import json
from pathlib import Path

import pytest
from tests.acceptance.contained.real_agents import CLAUDE, CODEX, discovering, model
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task
from tests.waiting import eventually

from loopwright.core.replies.discoveries import Discovery
from loopwright.core.rows.model import Plan, Role, Run
from loopwright.core.rows.waiting_rows import Question
from loopwright.testing import scenarios
from loopwright.testing.model_server import Reply, Scenario, ToolCall


@pytest.mark.skipif(CLAUDE is None, reason="the claude-agent-sdk wheel is not installed")
@pytest.mark.parametrize("mode", ["auto", pytest.param("edit", marks=pytest.mark.agents)])
def test_claude_works_in_the_sandbox_and_keeps_its_conversation(mode: str, shop: Workshop) -> None:
    shop.program.env["LOOPWRIGHT_PERMISSION_MODE"] = mode
    scenario = scenarios.edit_file("greet.txt", old="hello", new="hello, loop", summary="Greeted.")
    with model(shop, "claude", scenario):
        said = shop.run(shop.plan("greeting", [task("greet", "grep -qx 'hello, loop' greet.txt")]))
    assert said.code == 0, said.out + said.err
    (run,) = shop.rows(Run, role=Role.IMPLEMENTER)
    wanted = {"auto": "sandboxed-all"}.get(mode, mode)
    assert (run.sandbox, run.permission_mode, run.summary) == ("bubblewrap", wanted, "Greeted.")
    user = shop.program.user
    assert list((user / ".claude" / "projects").rglob(f"{run.session_ref}.jsonl")), "a later leg finds it"
    assert {path.name for path in user.iterdir()} <= {".claude", ".claude.json"}


@pytest.mark.skipif(CODEX is None, reason="the openai-codex wheel is not installed")
@pytest.mark.parametrize("mode", ["auto", pytest.param("edit", marks=pytest.mark.agents)])
def test_codex_works_in_the_sandbox_without_one_of_its_own(mode: str, shop: Workshop) -> None:
    shop.program.env["LOOPWRIGHT_PERMISSION_MODE"] = mode
    scenario = scenarios.write_file("made.txt", text="made\n", summary="Made.", program="codex")
    with model(shop, "codex", scenario):
        said = shop.run(shop.plan("making", [task("make", "grep -qx made made.txt")]))
    assert said.code == 0, said.out + said.err
    (run,) = shop.rows(Run, role=Role.IMPLEMENTER)
    wanted = {"auto": "sandboxed-all"}.get(mode, mode)
    assert (run.sandbox, run.permission_mode, run.summary) == ("bubblewrap", wanted, "Made.")
    assert shop.git("show", f"{shop.row(Plan).branch}:made.txt") == "made\n"
    assert list((shop.program.user / ".codex" / "sessions").rglob(f"*{run.session_ref}.jsonl"))


@pytest.mark.skipif(CLAUDE is None, reason="the claude-agent-sdk wheel is not installed")
def test_a_contained_agent_asks_by_its_tool(shop: Workshop) -> None:
    ask = ToolCall(
        name="mcp__loopwright__ask", input={"question": "Which colour?", "options": ["red", "blue"]}
    )
    with model(shop, "claude", Scenario(turns=(Reply(tools=(ask,)), Reply(text="I wait.")))):
        going = shop.start("run", str(shop.plan("asking", [task("paint", "test -d .")])))
        eventually(lambda: shop.rows(Question), timeout=90)
        going.interrupt()
        going.end()
    (question,) = shop.rows(Question)
    assert question.text == "Which colour?"


@pytest.mark.skipif(CLAUDE is None, reason="the claude-agent-sdk wheel is not installed")
def test_what_a_contained_agent_notes_by_its_tool_is_kept(shop: Workshop) -> None:
    with model(shop, "claude", discovering("Mend the clock", "It stands still.")):
        said = shop.run(shop.plan("noting", [task("make", "grep -qx made made.txt")]))
    assert said.code == 0, said.out + said.err
    assert shop.row(Run, role=Role.IMPLEMENTER).sandbox == "bubblewrap"
    found = shop.row(Discovery)
    assert (found.title, found.reason) == ("Mend the clock", "It stands still.")


@pytest.mark.parametrize(
    ("agent", "program"),
    [
        pytest.param("claude", CLAUDE, id="claude"),
        pytest.param("codex", CODEX, id="codex", marks=pytest.mark.more),
    ],
)
def test_a_command_of_the_model_writes_its_workspace_and_nothing_else(
    agent: str, program: Path | None, shop: Workshop
) -> None:
    if program is None:
        pytest.skip(f"the wheel of {agent} is not installed")
    outside = shop.program.user / "outside"
    command = f"echo made > made.txt; echo x > {outside}; echo x > {shop.repository}/stray; true"
    scenario = scenarios.run_command(command, summary="Made.", program=agent)
    with model(shop, agent, scenario):
        said = shop.run(shop.plan("making", [task("make", "grep -qx made made.txt")]))
    assert said.code == 0, said.out + said.err
    assert not outside.exists()
    shop.untouched()


@pytest.mark.skipif(CLAUDE is None, reason="the claude-agent-sdk wheel is not installed")
def test_the_probe_of_an_agent_has_the_sandbox_that_a_run_would_have(shop: Workshop) -> None:
    with model(shop, "claude", scenarios.answer("ready")):
        said = shop("doctor", "--probe", "--json", timeout=100)
    (found,) = [one for one in said.document["findings"] if one["name"] == "probe of claude"]
    assert found["status"] == "ok", found
    assert not (shop.program.user / ".claude").exists(), "its conversation was in its own HOME"


@pytest.mark.parametrize("level", ["auto", "none"])
def test_what_an_agent_does_in_its_probe_is_contained_as_in_a_run(shop: Workshop, level: str) -> None:
    outside = shop.repository / "stray"
    tries = f"cat > /dev/null; touch {outside} 2> /dev/null; echo ready"
    shop.program.env |= {
        "LOOPWRIGHT_SANDBOX__LEVEL": level,
        "LOOPWRIGHT_AGENTS__COMMAND__COMMAND": json.dumps(["/bin/sh", "-c", tries]),
    }
    said = shop("doctor", "--agent", "command", "--probe", "--json", timeout=100)
    (found,) = [one for one in said.document["findings"] if one["name"] == "probe of command"]
    assert (found["status"], "it answered 'ready'" in found["text"]) == ("ok", True), found
    assert outside.exists() is (level == "none")
