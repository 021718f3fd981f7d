"""The codec for the scripted agent, and what tests need around it."""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from loopwright.adapters.agents import endings, options, prompt_file
from loopwright.adapters.agents.output import json_object, readable, remembered, whole_number
from loopwright.core.rows.model import Usage
from loopwright.core.values.failures import RULES, Failure
from loopwright.ports import (
    AgentEvent,
    AgentRequest,
    AgentResult,
    Exit,
    Folded,
    Invocation,
    OutputLine,
    QuotaWindow,
    Spent,
)
from loopwright.testing import agent_program

PROGRAM: Final = Path(agent_program.__file__)
_LAST_WORDS: Final = 64_000
_TOOLS: Final = "tools.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedState:
    """What the program has said so far."""

    started: bool = False
    session_ref: str | None = None
    model: str | None = None
    version: str | None = None
    usage: Usage | None = None
    cost_micros: int | None = None
    ok: bool | None = None
    said: str = ""
    failure: Failure | None = None
    retry_at: datetime | None = None
    limit_of: str = ""
    """The one model that a limit is of."""
    tail: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedAgent:
    """Codec for `loopwright.testing.agent_program`; its options are `script`, `python` and `tools`."""

    name: str = field(default="scripted", init=False)
    capabilities: frozenset[str] = field(
        # It does what its script says and nothing else.
        default=frozenset({"resume", "interrupt", "confines", "cost", "reset_time"}),
        init=False,
    )

    def able(self, given: Mapping[str, Any]) -> frozenset[str]:
        """Return what it can do: with the option `tools` also use MCP servers."""
        return self.capabilities | ({"tools"} if given.get("tools") is True else frozenset())

    def invocation(self, request: AgentRequest) -> Invocation:
        """Return how to start it; without the option `script` the environment must name one."""
        options.only(self.name, request.options, ("script", "python", "tools"))
        script = options.text(self.name, request.options, "script")
        argv = (
            options.text(self.name, request.options, "python") or sys.executable,
            *("-S", "-I", str(PROGRAM)),
            *(("--script", script) if script else ()),
            *(("--model", request.model) if request.model else ()),
            *(("--session", request.session_ref) if request.session_ref else ()),
        )
        return Invocation(
            argv=prompt_file.on_stdin(request.run_directory, argv),
            inherit=(agent_program.SCRIPT_VARIABLE,),
            env={agent_program.TOOLS_VARIABLE: str(request.run_directory / _TOOLS)} if request.tools else {},
            files={prompt_file.NAME: request.prompt, **_tools(request)},
            done_pattern=r'^\{"event":"result",',
            interrupt="SIGINT",
            session_ref=request.session_ref,
        )

    def initial(
        self,
        request: AgentRequest | None = None,  # noqa: ARG002 - nothing is ever said to it
        *,
        before: Spent | None = None,  # noqa: ARG002 - it reports each run's own cost
    ) -> ScriptedState:
        """Return the state before the first line."""
        return ScriptedState()

    def fold(self, state: ScriptedState, line: OutputLine) -> Folded:
        """Take in one line of output."""
        event = (json_object(line.text) if line.stream == "out" else None) or {}
        match event.get("event"):
            case "started":
                new = replace(
                    state,
                    started=True,
                    session_ref=readable(event.get("session_ref"), 200) or None,
                    model=readable(event.get("model"), 200) or None,
                    version=readable(event.get("version"), 100) or None,
                )
                data = {"session_ref": new.session_ref, "model": new.model, "version": new.version}
                return Folded(state=new, events=(AgentEvent(kind="Started", data=data),))
            case "usage":
                return _usage(state, event)
            case "result":
                return _result(state, event)
            case "text" | "file" | "tool_start" | "tool_end":
                return Folded(state=state, events=(_happening(event),))
            case _:
                raw = AgentEvent(kind="Raw", text=readable(line.text), data={"stream": line.stream})
                return Folded(state=replace(state, tail=remembered(state.tail, line.text)), events=(raw,))

    def interrupt(self, state: ScriptedState) -> tuple[str, ...]:  # noqa: ARG002 - a signal does it
        """Return nothing: it is interrupted by a signal."""
        return ()

    def result(self, state: ScriptedState, exit: Exit) -> AgentResult:
        """Judge the run by what it reported and how it ended."""
        failure, detail = _judge(state, exit)
        return AgentResult(
            claimed=failure is None,
            summary=readable(state.said) if failure is None else "",
            last_words=state.said if failure is None else "",
            failure=failure,
            detail=detail,
            retry_at=state.retry_at if failure is not None and RULES[failure].honours else None,
            usage=state.usage,
            cost_micros=state.cost_micros,
            session_ref=state.session_ref,
            model=state.model,
            version=state.version,
            windows=(QuotaWindow(name="window", model=state.limit_of, rejected=True),)
            if state.limit_of
            else (),
        )

    def probe(self) -> tuple[str, ...]:
        """Return the command that prints the program's version."""
        return (sys.executable, "-S", "-I", "-c", f"print({agent_program.VERSION!r})")


def _tools(request: AgentRequest) -> dict[str, str]:
    """Return the file with the MCP servers of a run."""
    servers = {
        name: {"command": one.command, "args": list(one.args), "env": dict(one.env)}
        for name, one in request.tools.items()
    }
    return {_TOOLS: json.dumps(servers)} if servers else {}


def _happening(event: Mapping[str, Any]) -> AgentEvent:
    name, text = readable(event.get("name"), 200), readable(event.get("text"))
    match event["event"]:
        case "text":
            return AgentEvent(kind="Text", text=text)
        case "file":
            path = readable(event.get("path"), 1_000)
            data = {"path": path, "change": readable(event.get("change"), 100)}
            return AgentEvent(kind="FileChange", text=path, data=data)
        case "tool_start":
            given = readable(event.get("input"), 500)
            return AgentEvent(
                kind="ToolStart", text=f"{name} {given}", data={"name": name, "input": {"command": given}}
            )
        case _:
            output = readable(event.get("output"), 1_000)
            return AgentEvent(kind="ToolEnd", text=output, data={"name": name, "ok": event.get("ok") is True})


def _usage(state: ScriptedState, event: Mapping[str, Any]) -> Folded:
    usage = Usage(
        input_tokens=whole_number(event.get("input_tokens")),
        output_tokens=whole_number(event.get("output_tokens")),
        cache_read_tokens=whole_number(event.get("cache_read_tokens")),
        cache_write_tokens=whole_number(event.get("cache_write_tokens")),
    )
    new = replace(state, usage=usage, cost_micros=whole_number(event.get("cost_micros")))
    tokens = asdict(usage)
    data = {**tokens, "run": {**tokens, "cost_micros": new.cost_micros}}
    return Folded(state=new, events=(AgentEvent(kind="Usage", data=data),))


def _result(state: ScriptedState, event: Mapping[str, Any]) -> Folded:
    ok = event.get("ok") is True
    named = readable(event.get("failure"), 100)
    retry_at = whole_number(event.get("retry_at"))
    new = replace(
        state,
        ok=ok,
        said=readable(event.get("summary" if ok else "message"), _LAST_WORDS if ok else 4_000),
        failure=None if ok else Failure(named) if named in tuple(Failure) else Failure.AGENT_ERROR,
        retry_at=datetime.fromtimestamp(retry_at, UTC) if retry_at and retry_at < 10**10 else None,
        limit_of=readable(event.get("limit_of"), 100),
    )
    finished = AgentEvent(
        kind="Finished", text=readable(new.said), data={"ok": ok, "reason": new.failure or "completed"}
    )
    return Folded(state=new, events=(finished,))


def _judge(state: ScriptedState, exit: Exit) -> tuple[Failure | None, str]:
    ended = endings.ended_by_us(exit)
    if ended is not None:
        return ended
    if state.ok is False:
        return state.failure, state.said
    if state.ok and (exit.code == 0 or exit.ended_by == "done_hang"):
        return None, ""
    said = " / ".join(state.tail[-5:])
    detail = f"it {endings.in_words(exit.code)} without a result" + (f": {said}" if said else "")
    if not state.started and not endings.is_signal(exit.code) and exit.code != 0:
        return Failure.CANNOT_START, detail
    return Failure.CRASH, detail


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalLine:
    """One line that the program wrote about itself."""

    task: str
    attempt: int
    what: str
    """`start` or `end`."""
    pid: int
    at: float


def write_script(path: Path, script: Mapping[str, Any]) -> Path:
    """Write a script file and return its path."""
    path.write_text(json.dumps(script, indent=1), encoding="utf-8")
    return path


def read_journal(path: Path) -> list[JournalLine]:
    """Return what the runs noted, in order; nothing when there was no run yet."""
    if not path.exists():
        return []
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        task, attempt, what, pid, at = line.rsplit(" ", 4)
        lines.append(JournalLine(task=task, attempt=int(attempt), what=what, pid=int(pid), at=float(at)))
    return lines
