"""Scenarios as files, and the server as a program of its own."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration.model_server.clients import CLIENTS, ask

from loopwright.core.rows.model import Usage
from loopwright.core.values.errors import BadConfig
from loopwright.testing.model_server import (
    Flaky,
    ModelServer,
    Rejection,
    Reply,
    Scenario,
    ToolCall,
    Trouble,
    load,
)
from loopwright.testing.model_server.scenario import parse

EVERYTHING = {
    "turns": [
        {
            "text": "I look.",
            "tools": [
                {"name": "shell", "input": {"command": "ls"}},
                {"name": "add", "namespace": "mcp__toy", "input": {}},
                {"name": "apply_patch", "input": "*** Begin Patch"},
            ],
            "usage": {"output_tokens": 3},
            "headers": {"x-codex-primary-used-percent": "40"},
            "delay_s": 0.5,
            "pace_s": 0.1,
        },
        {"trouble": "usage_limit", "resets_at": 5},
        {"status": 418, "kind": "teapot", "message": "no", "more": {"a": 1}, "in_stream": True},
        {"fails": {"trouble": "overloaded"}, "times": 2, "then": {"text": "done"}},
    ],
    "by_prompt": {"Task: a": [{"text": "cut", "stop_reason": "max_tokens"}]},
    "aside": {"text": "A title"},
}


def write(path: Path, value: Any) -> Path:
    file = path / "scenario.json"
    file.write_text(json.dumps(value))
    return file


def test_a_file_says_all_that_a_scenario_can(tmp_path: Path) -> None:
    assert load(write(tmp_path, EVERYTHING)) == Scenario(
        turns=(
            Reply(
                text="I look.",
                tools=(
                    ToolCall(name="shell", input={"command": "ls"}),
                    ToolCall(name="add", namespace="mcp__toy", input={}),
                    ToolCall(name="apply_patch", input="*** Begin Patch"),
                ),
                usage=Usage(output_tokens=3),
                headers={"x-codex-primary-used-percent": "40"},
                delay_s=0.5,
                pace_s=0.1,
            ),
            Trouble(kind="usage_limit", resets_at=5),
            Rejection(status=418, kind="teapot", message="no", more={"a": 1}, in_stream=True),
            Flaky(fails=Trouble(kind="overloaded"), times=2, then=Reply(text="done")),
        ),
        by_prompt={"Task: a": (Reply(text="cut", stop_reason="max_tokens"),)},
        aside=Reply(text="A title"),
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "it must be an object"),
        ({}, "turns: it must be a list"),
        ({"turns": []}, "turns: at least one turn is needed"),
        ({"turns": [{"txt": "x"}]}, "turns[0]: unknown txt"),
        ({"turns": [{"text": "x"}], "turn": []}, "unknown turn"),
        ({"turns": [{"text": "x", "tools": [{"name": "a"}]}]}, "turns[0].tools[0]: input is missing"),
        ({"turns": [{"text": "x"}, {"trouble": "flood"}]}, "turns[1]: unknown trouble 'flood'"),
        ({"turns": [{"status": 500}]}, "turns[0]: kind, message is missing"),
        (
            {"turns": [{"fails": {"text": "x"}, "times": 1, "then": {}}]},
            "turns[0].fails: it must be a trouble",
        ),
        ({"turns": [{"fails": {"trouble": "auth"}, "times": 0, "then": {}}]}, "turns[0].times"),
        ({"turns": [{"text": "x"}], "by_prompt": {"a": {}}}, "by_prompt['a']: it must be a list"),
    ],
    ids=str,
)
def test_a_mistake_in_a_file_is_named_with_its_place(tmp_path: Path, value: Any, words: str) -> None:
    with pytest.raises(BadConfig) as caught:
        load(write(tmp_path, value))
    assert words in str(caught.value)


def test_a_file_that_is_no_json_says_so(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text("{")
    with pytest.raises(BadConfig, match=r"s\.json cannot be read as a scenario"):
        load(tmp_path / "s.json")
    with pytest.raises(BadConfig, match="cannot be read as a scenario"):
        load(tmp_path / "missing.json")


def test_the_scenarios_shown_in_the_documentation_are_good_ones() -> None:
    page = Path(__file__).parents[3] / "docs/how-to/run-agents-offline.md"
    shown = re.findall(r"^```json\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    assert len(shown) == 3
    for text in shown:
        assert parse(json.loads(text), page.name).turns


MODULE = (sys.executable, "-m", "loopwright.testing.model_server")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=str)
def test_as_a_program_it_says_its_address_tells_what_is_asked_and_ends_in_order(
    tmp_path: Path, number: signal.Signals
) -> None:
    scenario = write(tmp_path, {"turns": [{"text": "hello"}]})
    with subprocess.Popen(
        [*MODULE, str(scenario)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        url = program.stdout.readline().strip()
        try:
            said = [ask(client, url, "say it", stream=True).text for client in CLIENTS.values()]
        finally:
            program.send_signal(number)
        _, told = program.communicate(timeout=20)
    assert said == ["hello"] * 4
    assert program.returncode == 0
    assert told.splitlines()[0] == "/v1/messages m-1 turn 1: say it"
    assert len(told.splitlines()) == 4


def test_as_a_program_it_refuses_a_bad_file_in_one_line(tmp_path: Path) -> None:
    scenario = write(tmp_path, {"turns": [{"trouble": "flood"}]})
    done = subprocess.run([*MODULE, str(scenario)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "unknown trouble 'flood' (known are: auth," in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_as_a_program_it_says_in_one_line_that_its_port_is_taken(tmp_path: Path) -> None:
    scenario = write(tmp_path, {"turns": [{"text": "hello"}]})
    with ModelServer(load(scenario)) as server:
        port = server.url.rpartition(":")[2]
        command = [*MODULE, str(scenario), "--port", port]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith(f"port {port} cannot be used: ")
    assert len(done.stderr.splitlines()) == 1
