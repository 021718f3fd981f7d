"""What Codex does, item by item, as normalised events. `exec` has the same items in snake case."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Any, Final

from loopwright.adapters.agents.codex.state import Item
from loopwright.adapters.agents.output import LONGEST_LINE, readable
from loopwright.ports import AgentEvent

_SNAKE: Final = re.compile(r"_([a-z])")
_SHELLS: Final = frozenset({"bash", "zsh", "sh", "dash", "ksh", "fish"})
_CHANGES: Final[Mapping[str, str]] = {"add": "created", "delete": "deleted"}
_SILENT: Final = frozenset({"userMessage", "hookPrompt", "todoList"})
_MOST_PATHS: Final = 200


def camel(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item of `exec` as the app server would tell it."""
    told = {_SNAKE.sub(lambda letter: letter[1].upper(), str(key)): value for key, value in item.items()}
    kind = told.get("type")
    return {
        **told,
        "type": _SNAKE.sub(lambda letter: letter[1].upper(), kind) if isinstance(kind, str) else "",
    }


def whole(value: object) -> str:
    """Return a text of any length: what is decided about must not be cut."""
    return readable(value, LONGEST_LINE)


def command_line(command: object) -> str:
    """Return the line that Codex hands to a shell, without the shell."""
    text = whole(command)
    try:
        words = shlex.split(text)
    except ValueError:
        return text
    if len(words) == 3 and PurePosixPath(words[0]).name in _SHELLS and words[1] in ("-c", "-lc"):
        return words[2]
    return text


def place(path: str, roots: Sequence[str]) -> tuple[str, bool]:
    """Return a path from the top of the workspace, and whether it lies in it."""
    clean = normpath(path) if path.startswith("/") or not roots else normpath(f"{roots[0]}/{path}")
    for root in roots:
        if clean == normpath(root):
            return ".", True
        if clean.startswith(f"{normpath(root)}/"):
            return clean[len(normpath(root)) + 1 :], True
    return clean, not roots


def remembered(item: Mapping[str, Any]) -> Item:
    """Take from an item what a request about it may need."""
    return Item(
        id=readable(item.get("id"), 200),
        type=readable(item.get("type"), 100),
        # Where not all of them are known, leave is asked as for any file.
        paths=() if _has_more(item) else tuple(path for path, _ in changed_paths(item)),
        server=readable(item.get("server"), 200),
        tool=readable(item.get("tool"), 200),
        arguments=item.get("arguments"),
    )


def changed_paths(item: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the paths that a file change touches, as they were told, with what becomes of each."""
    changes = item.get("changes")
    for change in changes[:_MOST_PATHS] if isinstance(changes, list) else ():
        if not isinstance(change, dict):
            continue
        kind = change.get("kind")
        facts = kind if isinstance(kind, dict) else {"type": kind}
        if path := whole(change.get("path")):
            yield path, _CHANGES.get(readable(facts.get("type"), 100), "changed")
        if moved := whole(facts.get("move_path")):
            yield moved, "created"


def _has_more(item: Mapping[str, Any]) -> bool:
    changes = item.get("changes")
    return isinstance(changes, list) and len(changes) > _MOST_PATHS


def is_of_agent(item: Mapping[str, Any]) -> bool:
    """Return whether the agent did or said something; words that never came, or of another agent, do not count."""
    if item.get("type") == "agentMessage":
        return bool(item.get("text"))
    return item.get("type") not in ("userMessage", "hookPrompt", "reasoning", "error")


def started(item: Mapping[str, Any]) -> tuple[AgentEvent, ...]:
    """Report that a tool was called; words are told when they are complete."""
    tool = _tool(item)
    if tool is None:
        return ()
    name, inputs = tool
    text = f"{name} {next(iter(inputs.values()), '')}".strip()
    data = {"id": readable(item.get("id"), 200), "name": name, "input": inputs}
    return (AgentEvent(kind="ToolStart", text=text, data=data),)


def completed(item: Mapping[str, Any]) -> tuple[AgentEvent, ...]:
    """Report what was said, or how a tool's call ended."""
    match item.get("type"):
        case "agentMessage" | "plan":
            return (AgentEvent(kind="Text", text=readable(item.get("text"))),)
        case "reasoning":
            return (AgentEvent(kind="Text", text=_thoughts(item), data={"thinking": True}),)
        case "error":
            warning = {"class": "warning"}
            return (AgentEvent(kind="Error", text=readable(item.get("message")), data=warning),)
        case str(kind) if kind in _SILENT:
            return ()
    tool = _tool(item)
    if tool is None:
        return (AgentEvent(kind="Raw", data={"item": readable(item.get("type"), 100)}),)
    status = readable(item.get("status"), 100)
    data: dict[str, Any] = {
        "id": readable(item.get("id"), 200),
        "name": tool[0],
        "ok": status in ("", "completed"),
        "status": status,
    }
    return (AgentEvent(kind="ToolEnd", text=_outcome(item), data=data),)


def _tool(item: Mapping[str, Any]) -> tuple[str, dict[str, str]] | None:
    match item.get("type"):
        case "commandExecution":
            return "shell", {"command": readable(command_line(item.get("command")), 500)}
        case "fileChange":
            return "apply_patch", {"path": ", ".join(path for path, _ in changed_paths(item))[:500]}
        case "mcpToolCall":
            return f"mcp__{readable(item.get('server'), 100)}__{readable(item.get('tool'), 100)}", {}
        case "dynamicToolCall" | "collabAgentToolCall" | "collabToolCall":
            return readable(item.get("tool"), 100) or "tool", {}
        case "webSearch":
            return "web_search", {"query": readable(item.get("query"), 500)}
        case "imageView":
            return "view_image", {"path": readable(item.get("path"), 500)}
        case _:
            return None


def _thoughts(item: Mapping[str, Any]) -> str:
    texts = [item.get("text")]
    for name in ("summary", "content"):
        value = item.get(name)
        texts += value if isinstance(value, list) else []
    return readable("\n".join(text for text in texts if isinstance(text, str)))


def _outcome(item: Mapping[str, Any]) -> str:
    error, result = item.get("error"), item.get("result")
    if isinstance(error, dict):
        return readable(error.get("message"), 1_000)
    content = result.get("content") if isinstance(result, dict) else None
    if isinstance(content, list):
        blocks = [block.get("text") for block in content if isinstance(block, dict)]
        return readable("\n".join(text for text in blocks if isinstance(text, str)), 1_000)
    return readable(item.get("aggregatedOutput"), 1_000)
