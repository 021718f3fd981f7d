"""Scenarios for the model server: what a model, or the service around it, may do to an agent."""

from collections.abc import Callable, Mapping
from typing import Final

from loopwright.testing.model_server import Flaky, Reply, Scenario, ToolCall, Trouble

WRITES: Final[Mapping[str, Callable[[str, str], ToolCall]]] = {
    "claude": lambda path, text: ToolCall(name="Write", input={"file_path": path, "content": text}),
    "codex": lambda path, text: ToolCall(name="apply_patch", input=_patch(path, text)),
    "gemini": lambda path, text: ToolCall(name="write_file", input={"file_path": path, "content": text}),
    "goose": lambda path, text: ToolCall(name="write", input={"path": path, "content": text}),
    "opencode": lambda path, text: ToolCall(name="write", input={"filePath": path, "content": text}),
}
"""How the model creates a file, by the program that offers it the tool."""

RUNS: Final[Mapping[str, Callable[[str], ToolCall]]] = {
    "claude": lambda line: ToolCall(name="Bash", input={"command": line, "description": "run a command"}),
    "codex": lambda line: ToolCall(name="exec_command", input={"cmd": line}),
    "gemini": lambda line: ToolCall(name="run_shell_command", input={"command": line}),
    "goose": lambda line: ToolCall(name="shell", input={"command": line}),
    "opencode": lambda line: ToolCall(name="bash", input={"command": line, "description": "run a command"}),
}
"""How the model runs a shell command, by the program that offers it the tool."""


def _patch(path: str, text: str) -> str:
    added = "".join(f"+{line}\n" for line in text.splitlines())
    return f"*** Begin Patch\n*** Add File: {path}\n{added}*** End Patch\n"


def answer(text: str = "Done.") -> Scenario:
    """Let the model say something and do nothing."""
    return Scenario(turns=(Reply(text=text),))


def edit_file(path: str, *, old: str, new: str, summary: str = "Done.") -> Scenario:
    """Let the model of Claude Code read a file, replace a text in it, and say so."""
    read = ToolCall(name="Read", input={"file_path": path})
    edit = ToolCall(name="Edit", input={"file_path": path, "old_string": old, "new_string": new})
    return Scenario(
        turns=(Reply(text="I look first.", tools=(read,)), Reply(tools=(edit,)), Reply(text=summary))
    )


def write_file(path: str, *, text: str, summary: str = "Done.", program: str = "claude") -> Scenario:
    """Let the model create a file, and say so."""
    return Scenario(turns=(Reply(tools=(WRITES[program](path, text),)), Reply(text=summary)))


def run_command(command: str, *, summary: str = "Done.", program: str = "claude") -> Scenario:
    """Let the model run a shell command, and say so."""
    return Scenario(turns=(Reply(tools=(RUNS[program](command),)), Reply(text=summary)))


def bad_key() -> Scenario:
    """Refuse the credentials."""
    return Scenario(turns=(Trouble(kind="auth"),))


def overloaded() -> Scenario:
    """Have no capacity."""
    return Scenario(turns=(Trouble(kind="overloaded"),))


def overloaded_once(text: str = "Done.") -> Scenario:
    """Have no capacity at first, and answer the second request."""
    return Scenario(turns=(Flaky(fails=Trouble(kind="overloaded"), times=1, then=Reply(text=text)),))


def window_used_up(*, resets_at: int, window: str = "five_hour") -> Scenario:
    """Refuse a subscription whose window is used up until an epoch time."""
    return Scenario(turns=(Trouble(kind="usage_limit", resets_at=resets_at, window=window),))


def slow(*, delay_s: float, text: str = "Done.") -> Scenario:
    """Let the model think for a while before it says anything."""
    return Scenario(turns=(Reply(text=text, delay_s=delay_s),))
