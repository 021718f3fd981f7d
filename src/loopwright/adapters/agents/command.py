"""Any program as an agent: it gets the prompt, and is judged by what it changed.

Its exit code is only its word: with 0 it claims to be done. With another it does not, but what it changed is checked
like the work of any agent; where it changed nothing, or nothing checks it, the code is the failure.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from loopwright.adapters.agents import endings, options, prompt_file
from loopwright.adapters.agents.output import readable, remembered
from loopwright.core.replies.questions import Block
from loopwright.core.values.errors import BadConfig
from loopwright.core.values.failures import Failure
from loopwright.ports import (
    AgentEvent,
    AgentRequest,
    AgentResult,
    Exit,
    Folded,
    Invocation,
    OutputLine,
    Spent,
)

_WAYS: Final = ("stdin", "file", "argument")
_PLACEHOLDER: Final = re.compile(r"\{(prompt_file|prompt|model|workspace)\}")
_LONGEST_ARGUMENT: Final = 120_000
"""Linux refuses a single argument of 128 KiB or more."""
_LAST_WORDS: Final = 16_000
_LONGEST_LINE: Final = 20_000
"""No line of a question is longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandState:
    """The last lines that the program printed, and what it asks in them."""

    tail: tuple[str, ...] = ()
    words: str = ""
    """The end of what it printed, line by line as it was."""
    asking: Block = field(default_factory=Block)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandAgent:
    """Codec for a program that knows nothing of us."""

    name: str = field(default="command", init=False)
    capabilities: frozenset[str] = field(default=frozenset({"interrupt"}), init=False)

    def invocation(self, request: AgentRequest) -> Invocation:
        """Return how to start it, with the placeholders of the command filled in."""
        options.only(self.name, request.options, ("command", "prompt"))
        way = options.text(self.name, request.options, "prompt") or "stdin"
        if way not in _WAYS:
            message = f"agent command: option prompt must be one of {', '.join(_WAYS)}, not {way!r}"
            raise BadConfig(message, code="agent_option_wrong", options=("prompt",))
        argv = _filled(request, way)
        if way == "stdin":
            argv = prompt_file.on_stdin(request.run_directory, argv)
        return Invocation(argv=argv, files={prompt_file.NAME: request.prompt}, interrupt="SIGINT")

    def initial(
        self,
        request: AgentRequest | None = None,  # noqa: ARG002 - nothing is ever said to it
        *,
        before: Spent | None = None,  # noqa: ARG002 - it reports no cost
    ) -> CommandState:
        """Return the state before the first line."""
        return CommandState()

    def fold(self, state: CommandState, line: OutputLine) -> Folded:
        """Take in one line of output."""
        event = AgentEvent(
            kind="Text" if line.stream == "out" else "Raw",
            text=readable(line.text),
            data={"stream": line.stream},
        )
        said = line.stream == "out"
        asking = state.asking.with_line(readable(line.text, _LONGEST_LINE)) if said else state.asking
        words = f"{state.words}{readable(line.text, _LONGEST_LINE)}\n"[-_LAST_WORDS:] if said else state.words
        new = replace(state, tail=remembered(state.tail, line.text), asking=asking, words=words)
        return Folded(state=new, events=(event,))

    def interrupt(self, state: CommandState) -> tuple[str, ...]:  # noqa: ARG002 - a signal does it
        """Return nothing: it is interrupted by a signal."""
        return ()

    def result(self, state: CommandState, exit: Exit) -> AgentResult:
        """Return how it ended: an exit code that it chose says nothing about its work, a signal is a crash."""
        last = state.tail[-1] if state.tail else ""
        failure, detail = _judge(exit)
        if failure is None and (asked := state.asking.asked):
            return AgentResult(claimed=False, asked=asked, last_words=state.words)
        if failure is None:
            return AgentResult(claimed=True, summary=last, last_words=state.words)
        chosen = exit.ended_by == "itself" and exit.code is not None and not endings.is_signal(exit.code)
        said = f"{detail}: {last}" if last else detail
        return AgentResult(claimed=False, failure=failure, detail=said, by_work=chosen)

    def probe(self) -> tuple[str, ...]:
        """Return a command that works wherever such an agent can: its own program is only known per run."""
        return ("/bin/sh", "-c", "echo command")


def _judge(exit: Exit) -> tuple[Failure | None, str]:
    ended = endings.ended_by_us(exit)
    if ended is not None:
        return ended
    if exit.code == 0:
        return None, ""
    detail = f"the command {endings.in_words(exit.code)}"
    if endings.is_missing_program(exit.code):
        return Failure.CANNOT_START, detail
    if exit.code is None or endings.is_signal(exit.code):
        return Failure.CRASH, detail
    return Failure.AGENT_ERROR, detail


def _filled(request: AgentRequest, way: str) -> tuple[str, ...]:
    command = request.options.get("command")
    values = _values(request, way)
    if isinstance(command, str) and command.strip():
        _check(command, way)
        quoted = {name: shlex.quote(value) for name, value in values.items()}
        line = _fill(command, quoted)
        if way == "argument" and "{prompt}" not in command:
            line = f"{line} {quoted['prompt']}"
        return ("/bin/sh", "-c", line)
    argv = options.texts("command", request.options, "command")
    if not argv:
        raise BadConfig(
            "agent command: option command is missing",
            code="agent_option_missing",
            hint="give a shell line, or a list of arguments",
            options=("command",),
        )
    _check(" ".join(argv), way)
    filled = tuple(_fill(argument, values) for argument in argv)
    given_already = any("{prompt}" in argument for argument in argv)
    return (*filled, request.prompt) if way == "argument" and not given_already else filled


def _check(command: str, way: str) -> None:
    if way == "file" and "{prompt_file}" not in command:
        message = "agent command: with prompt = file the command must contain {prompt_file}"
        raise BadConfig(message, code="agent_option_wrong", options=("command",))
    if way != "argument" and "{prompt}" in command:
        message = "agent command: {prompt} in the command needs prompt = argument"
        raise BadConfig(message, code="agent_option_wrong", options=("command",))


def _values(request: AgentRequest, way: str) -> dict[str, str]:
    values = {
        "prompt_file": str(prompt_file.path_in(request.run_directory)),
        "workspace": str(request.workspace),
    }
    if request.model:
        values["model"] = request.model
    if way == "argument":
        if len(request.prompt.encode("utf-8", "replace")) > _LONGEST_ARGUMENT or "\0" in request.prompt:
            raise BadConfig(
                "agent command: the prompt is too long for an argument",
                code="prompt_too_long",
                hint="use prompt = file or stdin",
            )
        values["prompt"] = request.prompt
    return values


def _fill(text: str, values: Mapping[str, Any]) -> str:
    # One pass: braces inside the prompt itself are text, not placeholders.
    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in values:
            message = f"agent command: {{{name}}} has no value"
            raise BadConfig(message, code="agent_option_wrong", hint=f"set a {name}", options=("command",))
        return str(values[name])

    return _PLACEHOLDER.sub(value, text)
