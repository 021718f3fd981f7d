"""`inspect`: one packet about a run, or about a project and a goal."""

import json

import jsonschema
import pytest
from tests.acceptance.sandbox import Sandbox, task

SECRET = "sk-" + "ant-" + "Zq7Xw2Lm9" * 6


@pytest.mark.capability("C024")
def test_a_run_is_gathered_with_its_prompt_its_events_and_the_end_of_its_log(sandbox: Sandbox) -> None:
    talk = [{"say": f"line {n} of a long talk"} for n in range(600)]
    sandbox.play({"one": [[*talk, {"say": f"the key is {SECRET}"}, {"write": "one", "text": "no\n"}]]})
    plan = sandbox.plan("sums", [task("one", "grep -q yes one", max_attempts=1)])
    assert sandbox.run(plan).code == 1
    said = sandbox("inspect", "one", "--json")
    assert said.code == 0, said.err
    packet = said.document["packet"]
    jsonschema.validate(packet, sandbox("config", "schema", "packet").document)
    assert (packet["version"], packet["type"]) == ("1.1", "task")
    assert packet["packet_id"].startswith("pkt_")
    assert "Make one" in packet["task"]["prompt"]
    assert {"run_started", "run_ended"} <= {event["type"] for event in packet["events"]}
    assert len(packet["logs"]) == 500
    assert any("before the last 500" in cut for cut in packet["cut"])
    assert any("one is right failed" in error for error in packet["errors"])
    kept = sandbox.repository / ".loopwright" / "inspection-packets"
    assert json.loads((kept / f"{packet['packet_id']}.json").read_text())["run_id"] == packet["run_id"]
    assert SECRET not in said.out
    text = (kept / f"{packet['packet_id']}.md").read_text()
    assert SECRET not in text
    assert "## Task one: Make one" in text
    refused = sandbox("inspect", "nothing")
    assert refused.code == 2
    assert sandbox("inspect", "one", "--goal", "x").code == 2


def test_a_project_is_gathered_without_running_anything(sandbox: Sandbox) -> None:
    (sandbox.repository / "pyproject.toml").write_text("[project]\nname = 'x'\n[tool.pytest.ini_options]\n")
    (sandbox.repository / "AGENTS.md").write_text(f"Use tabs.\nThe token is {SECRET}\n")
    (sandbox.repository / "tests").mkdir()
    (sandbox.repository / "tests" / "test_x.py").write_text("def test_x():\n    raise SystemExit\n")
    sandbox.git("add", "-A")
    sandbox.git("commit", "-qm", "more")
    said = sandbox("inspect", "--goal", "greet in French", "--json")
    assert said.code == 0, said.err
    packet = said.document["packet"]
    jsonschema.validate(packet, sandbox("config", "schema", "packet").document)
    assert (packet["type"], packet["goal"]) == ("project", "greet in French")
    project = packet["project"]
    assert project["languages"] == ["python"]
    assert any("pytest" in gate["command"] for gate in project["gates"])
    assert "tests/ (1)" in project["layout"]
    assert project["texts"]["README.md"] == "# greeter\n"
    assert project["texts"]["AGENTS.md"].startswith("Use tabs.")
    assert SECRET not in said.out
    assert any(line.endswith(" more") for line in project["history"])
    (sandbox.repository / "loopwright.toml").write_text('[[gates]]\nname = "own"\nrun = "make own"\n')
    told = sandbox("inspect", "--goal", "greet in French", "--markdown").out
    assert "gate own: `make own` (the project's own)" in told
    assert "pytest" not in told, "what is settled is not asked about"
    assert "## Goal\n\ngreet in French" in told
    assert "greeter" in sandbox("inspect").out
    below = sandbox.repository / "web"
    below.mkdir()
    (below / "package.json").write_text('{"scripts": {"test": "node --test"}}\n')
    (below / "CLAUDE.md").write_text("Use spaces.\n")
    sandbox.git("add", "-A")
    sandbox.git("commit", "-qm", "a part of its own")
    part = sandbox("inspect", "--json", cwd=below).document["packet"]["project"]
    assert (part["name"], part["languages"], part["layout"]) == (
        "greeter/web",
        ["node"],
        ["CLAUDE.md", "package.json"],
    )
    assert list(part["texts"]) == ["web/CLAUDE.md", "README.md", "AGENTS.md"], "what holds for all holds here"
