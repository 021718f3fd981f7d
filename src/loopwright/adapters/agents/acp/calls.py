"""Tool calls as agents tell them: what is known of each, and what leave for it would mean, in the words of policy."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from posixpath import normpath
from types import MappingProxyType
from typing import Final

from loopwright.adapters.agents.acp.profiles import Profile
from loopwright.adapters.agents.acp.state import AcpState, Call
from loopwright.adapters.agents.output import LONGEST_LINE, Object, object_in, readable
from loopwright.adapters.agents.reading import only_reads
from loopwright.core.values.permissions import Wish

_COMMANDS: Final = ("command", "cmd", "script")
_FOLDERS: Final = ("cwd", "workdir", "working_dir", "directory")
_PATHS: Final = (
    "file_path", "filePath", "filepath", "path", "fileName", "abs_path", "notebook_path", "old_path", "new_path",
    "source", "destination",
)  # fmt: skip
"""Names of inputs, as the agents and the models have them."""

_SHELLS: Final = re.compile(r"(?:/\S*/)?(?:ba|z|da|k|fi)?sh")

_MEANING: Final[Mapping[str, str]] = MappingProxyType(
    {
        "read": "read", "search": "read", "think": "read",
        "edit": "edit", "delete": "edit", "move": "edit",
        "execute": "command",
        "fetch": "tool", "switch_mode": "tool", "other": "tool",
    }
)  # fmt: skip
"""The protocol's kinds of tools in the words of policy."""


def learnt(known: Call | None, told: Object) -> Call:
    """Put together what was known of a call and what is told now; what is not told again stays."""
    call = known or Call(id=readable(told.get("toolCallId"), 300))
    given = object_in(told.get("rawInput"))
    kind = readable(told.get("kind"), 50)
    return replace(
        call,
        name=_name(told, call) or call.name,
        # A later "other" tells less than what was told before.
        kind=kind if kind and (kind != "other" or not call.kind) else call.kind,
        title=_whole(told.get("title")) or call.title,
        command=_command(given) or call.command,
        cwd=_first(given, _FOLDERS) or call.cwd,
        url=_whole(given.get("url")) or call.url,
        paths=tuple(dict.fromkeys(_paths(told, given))) or call.paths,
    )


def shown_name(call: Call) -> str:
    """Return what a call is called for people."""
    return readable(call.name or call.kind or "tool", 200)


def kind_of(call: Call, profile: Profile) -> str:
    """Return the kind of a call, in the protocol's words."""
    return call.kind if call.kind not in ("", "other") else profile.tool_kinds.get(call.name, "other")


def wishes(state: AcpState, call: Call, profile: Profile) -> tuple[Wish, ...]:
    """Return what a call needs permission for; what cannot be told exactly is never taken for something harmless."""
    kind = kind_of(call, profile)
    match _MEANING.get(kind, "tool"):
        case "read":
            return (Wish(kind="read", what=call.paths[0] if call.paths else readable(call.title, 500)),)
        case "edit" if call.paths:
            return tuple(_edit(state, path) for path in _without_folders(call.paths))
        case "command" if line := call.command or (call.title if profile.title_is_command else ""):
            return (_run(state, line, call.cwd),)
        case _:
            return (Wish(kind="tool", what=_tool(state, call, kind)),)


def place(state: AcpState, path: str) -> tuple[str, bool]:
    """Return a path from the top of the workspace, and whether it lies in it."""
    if state.aim is None:
        return path, True
    root = normpath(state.aim.workspace)
    clean = normpath(path if path.startswith("/") else f"{state.aim.cwd}/{path}")
    if clean == root:
        return ".", True
    return (clean[len(root) + 1 :], True) if clean.startswith(f"{root}/") else (clean, False)


def _without_folders(paths: Sequence[str]) -> list[str]:
    """Leave out the folder of a file that is told along with it."""
    return [path for path in paths if not any(other.startswith(f"{path.rstrip('/')}/") for other in paths)]


def _edit(state: AcpState, path: str) -> Wish:
    what, inside = place(state, path)
    return Wish(kind="edit", what=what, inside=inside)


def _run(state: AcpState, line: str, cwd: str) -> Wish:
    if only_reads(line):
        return Wish(kind="read", what=line)
    where, inside = place(state, cwd or ".")
    # Elsewhere it is another command.
    return Wish(kind="command", what=line if inside else f"cd {shlex.quote(where)} && {line}")


def _tool(state: AcpState, call: Call, kind: str) -> str:
    """Name a tool as `mcp__server__tool` where it belongs to Loopwright, whatever the agent calls it."""
    if kind == "fetch" and call.url:
        return f"fetch {call.url}"
    if kind not in ("other", "") and kind in _MEANING:
        # What would be changed or run is not told, so it is not permission for any other.
        return f"{kind}: {call.title or call.id}"
    for server in state.aim.servers if state.aim else ():
        for name in (call.name, call.title):
            if found := _of_server(name, server):
                return f"mcp__{server}__{found}"
    return call.name or call.title or kind


def _of_server(name: str, server: str) -> str:
    escaped = re.escape(server)
    found = re.fullmatch(
        rf"(?:mcp__?)?{escaped}(?:__?|-|: )(?P<tool>[\w.-]+)|(?P<titled>[\w.-]+) \({escaped} MCP Server\)",
        name,
    )
    return (found["tool"] or found["titled"]) if found else ""


def _name(told: Object, call: Call) -> str:
    meta = object_in(told.get("_meta"))
    named = (
        told.get("name"),
        meta.get("toolName"),
        object_in(meta.get("claudeCode")).get("toolName"),
        object_in(object_in(meta.get("goose")).get("toolCall")).get("toolName"),
    )
    found = next((name for one in named if (name := readable(one, 200))), "")
    if found or call.name:
        return found
    # The first title of a call whose kind is unknown is the tool itself.
    return readable(told.get("title"), 200) if told.get("kind") == "other" else ""


def _command(given: Object) -> str:
    for name in _COMMANDS:
        value = given.get(name)
        if isinstance(value, str) and value.strip():
            return _whole(value)
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            if len(value) == 3 and _SHELLS.fullmatch(value[0]) and value[1] in ("-c", "-lc"):
                return _whole(value[2])
            return _whole(shlex.join(value))
    return ""


def _paths(told: Object, given: Object) -> Iterator[str]:
    """Yield every path that a call has to do with: one that was left out would be allowed along with the others."""
    for name in ("locations", "content"):
        listed = told.get(name)
        for one in listed if isinstance(listed, list) else ():
            if path := _whole(object_in(one).get("path")):
                yield path
    yield from (path for name in _PATHS if (path := _whole(given.get(name))))
    changes = given.get("changes")
    yield from (_whole(path) for path in changes if path) if isinstance(changes, dict) else ()


def _first(given: Object, names: Sequence[str]) -> str:
    return next((text for name in names if (text := _whole(given.get(name)))), "")


def _whole(value: object) -> str:
    """Return a text of any length: what is decided about must not be cut."""
    return readable(value, LONGEST_LINE)
