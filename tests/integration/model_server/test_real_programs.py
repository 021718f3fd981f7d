"""Real agent programs against the model server: they take it for the service, its refusals included."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.fakes.agent_binaries import bundled_claude, bundled_codex

from loopwright.testing import scenarios
from loopwright.testing.model_server import ModelServer, Reply, Scenario, ToolCall, Trouble

CODEX, CLAUDE = bundled_codex(), bundled_claude()
with_codex = pytest.mark.skipif(CODEX is None, reason="the openai-codex wheel is not installed")
with_claude = pytest.mark.skipif(CLAUDE is None, reason="the claude-agent-sdk wheel is not installed")

TOYS = Path(__file__).with_name("toy_tools.py")
ADDING = Scenario(
    turns=(
        Reply(tools=(ToolCall(name="add", namespace="mcp__toy", input={"a": 2, "b": 3}),)),
        Reply(text="Added."),
    )
)


@dataclass(frozen=True, kw_only=True)
class Ran:
    code: int
    events: list[dict[str, object]]
    asked: int
    last_request: str

    @property
    def last(self) -> str:
        return json.dumps(self.events[-1])


Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def start(scenario: Scenario, command: Callable[[str], list[str]]) -> Ran:
        # Apart from each other: below its TMPDIR, codex does not trust its own home.
        places = {"HOME": "home", "CODEX_HOME": "codex", "TMPDIR": "tmp"}
        for name in (*places.values(), "work"):
            (tmp_path / name).mkdir(exist_ok=True)
        with ModelServer(scenario) as server:
            env = {
                "PATH": os.environ["PATH"],
                **{name: str(tmp_path / folder) for name, folder in places.items()},
                "SCRIPTED_KEY": "no-real-key",
                "ANTHROPIC_API_KEY": "sk-ant-no-real-key",
                "ANTHROPIC_BASE_URL": server.url,
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "CLAUDE_CODE_MAX_RETRIES": "2",
            }
            done = subprocess.run(
                command(server.url),
                cwd=tmp_path / "work",
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60,
            )
            asked = server.asked
        events = [json.loads(line) for line in done.stdout.splitlines()]
        assert events, done.stderr
        return Ran(
            code=done.returncode, events=events, asked=len(asked), last_request=json.dumps(asked[-1].body)
        )

    return start


def codex(url: str) -> list[str]:
    settings = {
        "model_provider": '"scripted"',
        "model_providers.scripted": "{"
        f'name="scripted",base_url="{url}/v1",env_key="SCRIPTED_KEY",wire_api="responses",'
        "request_max_retries=2,stream_max_retries=0}",
        "mcp_servers.toy": f'{{command="{sys.executable}",args=["{TOYS}"]}}',
        "check_for_update_on_startup": "false",
        "analytics.enabled": "false",
    }
    given = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    bare = ["--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return [str(CODEX), "exec", *bare, "-m", "gpt-5.5", *given, "do it"]


def claude(url: str) -> list[str]:
    tools = {"mcpServers": {"toy": {"command": sys.executable, "args": [str(TOYS)]}}}
    return [
        str(CLAUDE),
        *("-p", "do it", "--output-format", "stream-json", "--verbose"),
        *("--mcp-config", json.dumps(tools), "--allowedTools", "mcp__toy__add"),
    ]


@with_codex
def test_codex_writes_a_file_with_its_own_tool(run: Run, tmp_path: Path) -> None:
    ran = run(scenarios.write_file("made.txt", text="one\ntwo\n", program="codex"), codex)
    assert (tmp_path / "work/made.txt").read_text() == "one\ntwo\n"
    assert (ran.code, ran.asked) == (0, 2)
    assert ran.events[-1] == {
        "type": "turn.completed",
        "usage": {
            "input_tokens": 360,
            "cached_input_tokens": 100,
            "cache_write_input_tokens": 20,
            "output_tokens": 50,
            "reasoning_output_tokens": 0,
        },
    }


@with_codex
def test_codex_runs_two_commands_of_one_turn(run: Run, tmp_path: Path) -> None:
    shell = scenarios.RUNS["codex"]
    both = Reply(text="Two things.", tools=(shell("echo 1 > one"), shell("echo 2 > two")))
    ran = run(Scenario(turns=(both, Reply(text="Done."), Reply(text="Never asked."))), codex)
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["one", "two"]
    assert ran.asked == 2
    assert "Never asked." not in json.dumps(ran.events)


@pytest.mark.parametrize(
    "command", [pytest.param(codex, marks=with_codex), pytest.param(claude, marks=with_claude)]
)
def test_a_call_of_a_tool_server_reaches_it(run: Run, command: Callable[[str], list[str]]) -> None:
    ran = run(ADDING, command)
    assert ran.code == 0, ran.events
    assert "the sum is 5" in ran.last_request


@pytest.mark.parametrize(
    "command", [pytest.param(codex, marks=with_codex), pytest.param(claude, marks=with_claude)]
)
def test_an_overload_that_passes_is_asked_again(run: Run, command: Callable[[str], list[str]]) -> None:
    ran = run(scenarios.overloaded_once("Now it works."), command)
    assert (ran.code, ran.asked) == (0, 2)
    assert "Now it works." in json.dumps(ran.events)


@pytest.mark.parametrize(
    "command", [pytest.param(codex, marks=with_codex), pytest.param(claude, marks=with_claude)]
)
@pytest.mark.agents
def test_a_slow_model_is_waited_for(run: Run, command: Callable[[str], list[str]]) -> None:
    began = time.monotonic()
    ran = run(scenarios.slow(delay_s=1.0, text="At last."), command)
    assert time.monotonic() - began >= 1.0
    assert "At last." in json.dumps(ran.events)
    assert ran.code == 0


@with_codex
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("auth", "401 Unauthorized"),
        ("forbidden", "403 Forbidden"),
        ("model", "404 Not Found"),
        ("rate_limit", "429 Too Many Requests"),
        ("usage_limit", "hit your usage limit"),
        ("billing", "Quota exceeded. Check your plan and billing details."),
        ("overloaded", "at capacity"),
        ("context", "ran out of room in the model's context window"),
    ],
)
@pytest.mark.agents
def test_codex_understands_every_trouble(run: Run, kind: str, words: str) -> None:
    ran = run(Scenario(turns=(Trouble(kind=kind),)), codex)
    assert ran.code == 1
    assert ran.events[-1]["type"] == "turn.failed"
    assert words in ran.last


@with_claude
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("forbidden", "403"),
        ("model", "404"),
        ("rate_limit", "429"),
        ("billing", "Credit balance is too low"),
        ("context", "prompt_too_long"),
    ],
)
@pytest.mark.agents
def test_claude_understands_the_troubles_that_no_other_test_has(run: Run, kind: str, words: str) -> None:
    ran = run(Scenario(turns=(Trouble(kind=kind),)), claude)
    assert ran.code == 1
    assert words in ran.last
