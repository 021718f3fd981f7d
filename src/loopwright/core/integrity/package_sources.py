"""What a project has installed from somewhere else than its registry: a folder of its own, an address.

Whoever lists packages can have another one installed in the place of a library that tests check with. It is as often an
honest package of the same project, so such a change is named, and nothing is put back.
"""

import json
import posixpath
import re
import tomllib
from collections.abc import Iterator
from typing import Any, Final

_LISTS: Final = re.compile(
    r"(?:.*[-_.])?(?:requirements|constraints|overrides)(?:[-_.].*)?\.(?:txt|in)|(?:.*/)?requirements/[^/]+\.(?:txt|in)"
)
_LINE: Final = re.compile(
    r"(?:-e|--editable|-i|--index-url|--extra-index-url|-f|--find-links|-c|--constraint)\b.*|\.{0,2}/.*|file:.*"
    r"|[\w.\[\],-]+\s*@\s*\S+.*|\w+\+\w+://.*|https?://.*"
)
_ELSEWHERE: Final = re.compile(r"(?:file|link|portal|git|https?|git\+\w+|github|npm):.*|\.{1,2}/.*|/.*")
_NODE_TABLES: Final = (
    *("dependencies", "devDependencies", "optionalDependencies", "peerDependencies"),
    *("overrides", "resolutions", "pnpm"),
)
_PLACES: Final = frozenset({"path", "git", "url", "file", "workspace", "index"})


def lists_packages(path: str) -> bool:
    """Say whether a file does nothing but list packages to install."""
    return _LISTS.fullmatch(path) is not None or _LISTS.fullmatch(posixpath.basename(path)) is not None


def redirects(path: str, text: str | None) -> frozenset[str]:
    """Return what a file has installed from elsewhere, as texts to compare."""
    name = posixpath.basename(path)
    try:
        if name == "package.json":
            data = json.loads(text or "{}")
            tables = {key: data.get(key) for key in _NODE_TABLES} if isinstance(data, dict) else {}
            return frozenset(
                f"{where}: {value}" for where, value in _texts(tables) if _ELSEWHERE.fullmatch(value)
            )
        if name == "pyproject.toml":
            return frozenset(_python_packages(tomllib.loads(text or "")))
    except (ValueError, RecursionError):
        return frozenset()  # what cannot be read steers as a whole
    if not lists_packages(path):
        return frozenset()
    lines = (re.sub(r"(?:^|\s)#.*", "", line).strip() for line in (text or "").splitlines())
    return frozenset(line for line in lines if _LINE.fullmatch(line))


def _python_packages(data: dict[str, Any]) -> Iterator[str]:
    tool = data.get("tool")
    known = tool if isinstance(tool, dict) else {}
    for name in ("uv", "poetry", "pdm"):
        for where, value in _texts({name: known.get(name)}):
            if _PLACES & set(where.split("/")[2:]):
                yield f"{where}: {value}"
    project = data.get("project")
    for where, value in _texts({"project": project if isinstance(project, dict) else {}}):
        if "ependencies" in where and re.search(r"\s@\s", value):
            yield f"{where}: {value}"


def _texts(data: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text in nested tables with where it stands."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _texts(value, f"{where}/{key}" if where else str(key))
    elif isinstance(data, list):
        for each in data:
            yield from _texts(each, where)
    elif isinstance(data, str | bool):
        yield where, str(data)
