"""Real programs that speak the Agent Client Protocol, under real keepers, against a model server on this machine.

Run by `make test-agents`.
"""

import asyncio
import json
import os
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest
from tests.agent_programs import installed
from tests.integration.agents import ask_tools

from loopwright.adapters.agents.acp import rpc
from loopwright.adapters.agents.acp.agent import AcpAgent
from loopwright.adapters.agents.acp.profiles import PROFILES
from loopwright.adapters.agents.environment import agent_environment
from loopwright.adapters.processes.keepers import ProcessKeepers
from loopwright.core.values.failures import Failure
from loopwright.core.values.permissions import OWN_TOOL, Access, Permissions
from loopwright.core.values.policy import Limits
from loopwright.engine.processes.runs import Ended, agent_spec, drive_agent
from loopwright.keeper import places
from loopwright.ports import AgentEvent, AgentRequest, AgentResult, OutputLine, Spent, ToolServer
from loopwright.testing import scenarios
from loopwright.testing.model_server import (
    Asked,
    Flaky,
    ModelServer,
    Rejection,
    Reply,
    Scenario,
    ToolCall,
    Trouble,
)

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]

AGENTS = ("goose", "gemini", "opencode")
LIMITS = Limits(hard=500.0, idle=400.0, done_grace=100.0, term_grace=100.0)
"""Far above what any of them takes: some need many seconds to start and to leave where the machine is busy."""
ASIDE = Reply(text="A title")


def goose(home: Path, url: str) -> dict[str, str]:
    return {
        "GOOSE_PROVIDER": "openai",
        "GOOSE_MODEL": "any",
        "GOOSE_DISABLE_KEYRING": "1",
        "OPENAI_HOST": url,
        "OPENAI_API_KEY": "sk-no-real-key",
    }


def gemini(home: Path, url: str) -> dict[str, str]:
    return {
        "GEMINI_API_KEY": "no-real-key",
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_MODEL": "gemini-2.5-pro",
    }


def opencode(home: Path, url: str) -> dict[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "sk-no-real-key"},
        "models": {
            "any": {"limit": {"context": 100_000, "output": 8_000}, "cost": {"input": 5, "output": 10}}
        },
    }
    settings = {"provider": {"local": provider}, "model": "local/any", "small_model": "local/any"}
    path = home / ".config/opencode/opencode.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings))
    return {"OPENCODE_DISABLE_MODELS_FETCH": "1"}


CACHES = (".cache/", ".npm/")
"""What a program may leave in HOME, and make anew where it is gone."""

SETTINGS: Mapping[str, Callable[[Path, str], dict[str, str]]] = {
    "goose": goose,
    "gemini": gemini,
    "opencode": opencode,
}


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What came of one run."""

    ended: Ended
    events: tuple[AgentEvent, ...]
    lines: tuple[OutputLine, ...]
    asked: tuple[Asked, ...]
    """What the model server was asked."""

    @property
    def result(self) -> AgentResult:
        assert self.ended.result is not None
        return self.ended.result

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    def requests(self, method: str = "session/request_permission") -> int:
        return sum(f'"method":"{method}"' in line.text for line in self.lines)


Run = Callable[..., Awaitable[Ran]]


@pytest.fixture(params=AGENTS)
def name(request: pytest.FixtureRequest) -> str:
    if installed(request.param) is None:
        pytest.skip(f"{request.param} is not installed: `make test-agents` does it")
    return str(request.param)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    path = tmp_path / "workspace"
    path.mkdir()
    return path


@pytest.fixture
def run(name: str, tmp_path: Path, workspace: Path) -> Run:
    """Start the program by its adapter, drive it as the engine does, and judge it."""
    home = tmp_path / "home"
    home.mkdir()
    number = 0

    async def start(
        scenario: Scenario,
        *,
        stop_at: str = "",
        env: Mapping[str, str] | None = None,
        before: Spent | None = None,
        **given: Any,
    ) -> Ran:
        nonlocal number
        number += 1
        agent, keepers = AcpAgent(profile=PROFILES[name]), ProcessKeepers()
        directory = tmp_path / f"run-{number}"
        asked = replace(
            AgentRequest(prompt="Please do it.", workspace=workspace, run_directory=directory),
            **{"options": {"binary": str(installed(name))}, **given},
        )
        invocation = agent.invocation(asked)
        events: list[AgentEvent] = []
        interrupt = asyncio.Event()

        def heard(event: AgentEvent) -> None:
            events.append(event)
            if event.kind == stop_at:
                interrupt.set()

        with ModelServer(replace(scenario, aside=ASIDE)) as server:
            host = {**os.environ, **SETTINGS[name](home, server.url), "NO_PROXY": "127.0.0.1", **(env or {})}
            given_env = agent_environment(host, invocation, (), {"HOME": str(home)})
            spec = agent_spec(asked, invocation, run_id=f"run_{uuid4().hex}", env=given_env, limits=LIMITS)
            try:
                ended = await drive_agent(
                    keepers,
                    agent,
                    spec,
                    request=asked,
                    before=before or Spent(),
                    interrupt=interrupt,
                    heard=heard,
                )
                lines = tuple([line async for line in keepers.follow(directory)])
            finally:
                if keepers.look(directory).state != "absent":
                    await keepers.end(directory, polite=False)
                keepers.close()
            return Ran(ended=ended, events=tuple(events), lines=lines, asked=server.asked)

    return start


@pytest.mark.capability("C025", "C027", "C028")
async def test_it_writes_a_file_with_its_own_tool_and_leaves_when_its_turn_is_over(
    name: str, run: Run, workspace: Path
) -> None:
    path = workspace / "made.txt"
    quoted = '{"jsonrpc":"2.0","id":6,"result":{"stopReason":"end_turn"}}'
    ran = await run(scenarios.write_file(str(path), text="made\n", summary=quoted, program=name))
    assert path.read_text() == "made\n"
    assert ran.result.claimed, ran.result
    assert ran.result.summary.strip() == quoted
    (found,) = [line.text for line in ran.lines if re.search(rpc.DONE, line.text)]
    assert json.loads(found)["result"]["stopReason"] == "end_turn", "not where the end is only quoted"
    assert ran.requests() == 1, "it asked, and policy answered"
    assert "made.txt" in [event.text for event in ran.events if event.kind == "FileChange"]
    assert ran.ended.exit.code == 0
    assert ran.ended.exit.ended_by == "itself"
    assert ran.result.version in (PROFILES[name].tested or ())
    capabilities = PROFILES[name].capabilities
    assert (ran.result.usage is not None) is ("usage" in capabilities)
    assert (ran.result.cost_micros is not None) is ("cost" in capabilities)
    home = workspace.parent / "home"
    kept = [one.path for one in PROFILES[name].home]
    left = [str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()]
    assert left
    assert [path for path in left if not path.startswith((*kept, *CACHES))] == [], (
        "it keeps more than it declares"
    )


@pytest.mark.capability("C034")
async def test_a_command_that_nobody_settled_is_asked_for_and_done_once_it_is_granted(
    name: str, run: Run, workspace: Path
) -> None:
    (workspace / "Makefile").write_text("dist:\n\ttouch dist.txt\n")
    scenario = scenarios.run_command("make dist", program=name)
    first = await run(scenario)
    (asking,) = first.result.asked
    assert asking.wish is not None
    assert asking.wish.key == "command:make dist"
    assert (first.result.claimed, first.result.failure) == (False, None)
    assert first.ended.exit.ended_by == "itself", "it stopped when it was told to"
    assert not (workspace / "dist.txt").exists()

    granted = Permissions(granted=("command:make dist",))
    goes_on = "resume" in PROFILES[name].capabilities
    ref = first.result.session_ref if goes_on else None
    second = await run(scenario, permissions=granted, session_ref=ref)
    assert second.result.claimed, second.result
    assert (workspace / "dist.txt").exists()
    if goes_on:
        assert second.result.session_ref == ref


@pytest.mark.capability("C034")
async def test_who_may_only_read_changes_nothing_and_works_on(name: str, run: Run, workspace: Path) -> None:
    path = workspace / "made.txt"
    write, shell = (
        scenarios.WRITES[name](str(path), "x"),
        scenarios.RUNS[name]("touch made-by-shell.txt"),
    )
    looks = scenarios.RUNS[name]("cat there.txt")
    (workspace / "there.txt").write_text("it is there\n")
    turns = (
        Reply(tools=(write,)),
        Reply(tools=(shell,)),
        Reply(tools=(looks,)),
        Reply(text="I only looked."),
    )
    ran = await run(Scenario(turns=turns), permissions=Permissions(access=Access.READ_ONLY))
    assert sorted(one.name for one in workspace.iterdir()) == ["there.txt"]
    assert ran.result.claimed, ran.result
    assert ran.result.summary.strip() == "I only looked."
    assert "permission was denied for made.txt, touch made-by-shell.txt" in ran.result.detail
    assert "it is there" in json.dumps(ran.asked[-1].body), "it was told what it had looked at"


async def test_it_is_stopped_in_its_own_words_while_it_works(name: str, run: Run, workspace: Path) -> None:
    sleeps = scenarios.RUNS[name]("python3 -c 'import time; time.sleep(100)'")
    scenario = Scenario(turns=(Reply(text="I sleep.", tools=(sleeps,)), Reply(text="I woke.")))
    ran = await run(scenario, stop_at="ToolStart", permissions=Permissions(commands=("python3 *",)))
    assert ran.ended.interrupted
    assert ran.result.failure is Failure.CANCELLED
    assert ran.ended.exit.ended_by == "itself", "it needed no signal"
    assert ran.ended.exit.code == 0


async def test_a_conversation_goes_on_and_costs_only_what_it_adds(name: str, run: Run) -> None:
    if "resume" not in PROFILES[name].capabilities:
        pytest.skip("it cannot go on with a conversation")
    first = await run(scenarios.answer("First."))
    before = Spent(cost_micros=first.result.cost_micros or 0)
    second = await run(scenarios.answer("Second."), session_ref=first.result.session_ref, before=before)
    assert second.result.claimed, second.result
    assert second.result.session_ref == first.result.session_ref
    assert second.result.summary.strip() == "Second."
    assert second.result.cost_micros == first.result.cost_micros
    told = [event.text.strip() for event in second.events if event.kind == "Text"]
    assert told == ["Second."], "what was said before is not told again"


async def test_a_conversation_that_is_gone_leaves_it_to_a_fresh_attempt(name: str, run: Run) -> None:
    if "resume" not in PROFILES[name].capabilities:
        pytest.skip("it cannot go on with a conversation")
    ran = await run(scenarios.answer(), session_ref="01234567-89ab-4def-8123-456789abcdef")
    assert ran.result.failure is Failure.CRASH
    assert ran.result.session_ref is None
    assert ran.asked == ()


TROUBLES = {
    "auth": (Failure.AUTH,),
    "forbidden": (Failure.AUTH,),
    "model": (Failure.MODEL,),
    "rate_limit": (Failure.RATE_LIMIT,),
    "usage_limit": (Failure.USAGE_LIMIT,),
    # goose sums up what it has, fails again, and ends its turn without a word.
    "context": (Failure.CONTEXT, Failure.AGENT_ERROR),
}


@pytest.mark.capability("C028", "C029")
@pytest.mark.parametrize("kind", TROUBLES)
async def test_a_trouble_of_the_service_is_known_for_what_it_is(run: Run, kind: Any) -> None:
    ran = await run(Scenario(turns=(Trouble(kind=kind),)))
    assert ran.result.failure in TROUBLES[kind], ran.result
    assert ran.result.detail
    assert not ran.result.claimed


HOURS = 31_447
"""8 hours, 44 minutes and 7 seconds."""

USED_UP: Mapping[str, Rejection] = {
    # Gemini Code Assist, which Gemini CLI would wait for.
    "gemini": Rejection(
        status=429,
        kind="RESOURCE_EXHAUSTED",
        message="You have exhausted your capacity on this model. Your quota will reset after 8h44m7s.",
        more={
            "details": [
                {
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": "QUOTA_EXHAUSTED",
                    "domain": "cloudcode-pa.googleapis.com",
                },
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{HOURS}s"},
            ]
        },
    ),
    # OpenCode's own subscription.
    "opencode": Rejection(
        status=429,
        kind="GoUsageLimitError",
        message="5-hour usage limit reached. Resets in 8hr 45min",
        headers={"retry-after": str(HOURS)},
    ),
}
"""Limits whose end is hours ahead."""


@pytest.mark.capability("C029")
@pytest.mark.parametrize("name", USED_UP, indirect=True)
async def test_a_limit_whose_end_is_far_ahead_is_not_waited_for_but_told(name: str, run: Run) -> None:
    ran = await run(Scenario(turns=(USED_UP[name],)))
    assert ran.result.failure is Failure.USAGE_LIMIT, ran.result
    assert ran.result.retry_at is not None
    ahead = ran.result.retry_at - ran.ended.exit.ended_at
    assert timedelta(seconds=HOURS - 1) < ahead < timedelta(seconds=HOURS + 61), "some tell whole minutes"
    assert ran.ended.exit.ended_by == "itself", "it stopped when it was told to"


@pytest.mark.parametrize("kind", ["overloaded", "rate_limit"])
async def test_a_refusal_that_it_gets_over_is_no_failure(run: Run, kind: Any) -> None:
    once = Flaky(fails=Trouble(kind=kind), times=1, then=Reply(text="Recovered."))
    ran = await run(Scenario(turns=(once,)))
    assert ran.result.claimed, ran.result
    assert ran.result.summary.strip() == "Recovered."


async def test_a_model_that_it_does_not_have_is_never_silently_replaced(name: str, run: Run) -> None:
    if PROFILES[name].model is not None:
        pytest.skip("it is told its model before it starts, and asks the service for it")
    ran = await run(scenarios.answer(), model="local/nosuch")
    assert ran.result.failure is Failure.MODEL
    assert ran.asked == (), "nobody else got the prompt"


async def test_the_tool_to_ask_with_is_used_without_leave(name: str, run: Run, tmp_path: Path) -> None:
    used = tmp_path / "used.txt"
    server = ToolServer(command=sys.executable, args=(ask_tools.__file__,), env={"USED": str(used)})
    called = {"goose": "loopwright__ask", "gemini": "mcp_loopwright_ask", "opencode": "loopwright_ask"}[name]
    ask = ToolCall(name=called, input={"question": "Which one?"})
    scenario = Scenario(turns=(Reply(tools=(ask,)), Reply(text="I have asked.")))
    ran = await run(
        scenario, tools={OWN_TOOL.split("__")[1]: server}, permissions=Permissions(access=Access.READ_ONLY)
    )
    assert ran.result.claimed, ran.result
    assert used.read_text() == "Which one?\n"
    stays = PROFILES[name].lingers_with_tools
    assert ran.ended.exit.ended_by == ("done_hang" if stays else "itself"), (
        "whether it leaves is as its profile says"
    )
    assert "Error" not in ran.kinds()


async def test_who_may_do_everything_is_not_asked_and_what_it_leaves_running_is_ended_with_it(
    name: str, run: Run, workspace: Path
) -> None:
    late = "setsid sh -c 'while :; do echo late >> late.txt; sleep 0.02; done' >/dev/null 2>&1 &"
    ran = await run(
        scenarios.run_command(f"{late} while [ ! -e late.txt ]; do sleep 0.02; done", program=name),
        permissions=Permissions(access=Access.SANDBOXED_ALL),
    )
    assert ran.result.claimed, ran.result
    assert (workspace / "late.txt").read_text().startswith("late")
    assert ran.requests() == 0
    assert left_in(workspace) == []


def left_in(folder: Path) -> list[str]:
    """Return the processes that still work in a folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.cwd() == str(folder) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.name())
        except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
            continue
    return found


@pytest.mark.parametrize("name", ["gemini"], indirect=True)
async def test_what_it_reports_of_an_error_goes_with_the_run(run: Run, tmp_path: Path) -> None:
    """It writes a file for each into the folder for temporary files, with all that was said in it."""
    ran = await run(Scenario(turns=(Trouble(kind="context"),)))
    assert ran.result.failure is Failure.CONTEXT, ran.result
    said = "\n".join(line.text for line in ran.lines)
    reports = [Path(one) for one in re.findall(r"\S*gemini-client-error-\S+\.json", said)]
    assert {path.parent for path in reports} == {tmp_path / "run-1" / places.TMP}
    assert not (tmp_path / "run-1" / places.TMP).exists()


@pytest.mark.parametrize("name", ["opencode"], indirect=True)
async def test_settings_in_the_workspace_do_not_act_on_it(
    name: str, run: Run, workspace: Path, tmp_path: Path
) -> None:
    planted = tmp_path / "planted"
    server = {"type": "local", "command": ["touch", str(planted)], "enabled": True}
    (workspace / "opencode.json").write_text(json.dumps({"mcp": {"planted": server}}))
    ran = await run(Scenario(turns=(Reply(text="Nothing to do."),)))
    assert ran.result.claimed, ran.result
    assert not planted.exists()
    assert any("Read AGENTS.md" in json.dumps(asked.body) for asked in ran.asked), "it leaves that out too"
