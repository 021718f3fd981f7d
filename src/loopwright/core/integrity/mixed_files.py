"""Files that affect the gate only in part: which parts do, and how to restore those without the rest.

A new dependency in pyproject.toml is harmless; a new `addopts` beside it is tampering. `pinned_text` returns
the file with the judging parts as they were before and everything else as it is now.
"""

import configparser
import json
import posixpath
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from loopwright.core.integrity.gate_files import lists_packages, redirects
from loopwright.core.integrity.makefiles import make_steering

Key = tuple[str, ...]
Data = dict[str, Any]

_TOOLS: Final = (
    "pytest coverage tox nox ruff mypy pyright basedpyright ty pyrefly pylint flake8 isort black bandit vulture "
    "importlinter deptry typos poe taskipy invoke hypothesis nose2"
)
_TOML: Final[Mapping[str, tuple[Key, ...]]] = {
    "pyproject.toml": (
        *(("tool", name) for name in _TOOLS.split()),
        ("tool", "hatch", "envs"),
        ("tool", "pdm", "scripts"),
        ("tool", "rye", "scripts"),
        ("tool", "pixi", "tasks"),
        ("project", "entry-points", "pytest11"),
        ("tool", "poetry", "plugins", "pytest11"),
    ),
    "Cargo.toml": (
        *(("test",), ("lib",), ("lints",), ("profile",), ("workspace", "lints")),
        *(("patch",), ("replace",)),
    ),
}
_INI: Final = re.compile(
    r"tool:pytest|pytest|flake8.*|mypy.*|coverage:.*|pycodestyle|pydocstyle|pylint.*|isort|aliases|nosetests|tox.*"
    r"|options\.entry_points",
    re.IGNORECASE,
)
_JSON: Final[Mapping[str, frozenset[str]]] = {
    "package.json": frozenset(
        {"jest", "vitest", "mocha", "ava", "nyc", "c8", "tap", "eslintConfig", "eslintIgnore"}
        | {"babel", "stylelint", "prettier", "xo", "standard", "wireit"}
    ),
    "composer.json": frozenset({"config"}),
}
_OLD_ENTRIES: Final[Mapping[str, frozenset[str]]] = {
    "package.json": frozenset({"scripts", "imports", "exports"}),
    "composer.json": frozenset({"scripts"}),
}
"""Tables in which only existing entries affect tests, which load what they point to.

A new entry redirects nothing.
"""
_GO: Final = frozenset({"go.mod", "go.work"})
_GO_STEERS: Final = re.compile(r"(replace|exclude|use)\b\s*(.*)")
_ON_INSTALL: Final = frozenset({"preinstall", "install", "postinstall", "prepare", "prepublish"})
_HEADER: Final = re.compile(r"\s*\[.*\]\s*(?:[#;].*)?")


def steers_differently(path: str, before: str | None, after: str | None, commands: Sequence[str]) -> bool:
    """Return whether a change of a mixed file touched its judging parts; None means no file."""
    return redirects(path, before) != redirects(path, after) or _steers_differently(
        path, before, after, commands
    )


def only_redirects(path: str, before: str | None, after: str | None, commands: Sequence[str]) -> bool:
    """Return whether only the places from which packages are installed changed among the judging parts."""
    return not _steers_differently(path, before, after, commands)


def _steers_differently(path: str, before: str | None, after: str | None, commands: Sequence[str]) -> bool:
    if lists_packages(path):
        return False
    return bool(_steering(path, before, before, commands) != _steering(path, after, before, commands))


def pinned_text(path: str, before: str | None, after: str | None) -> str | None:
    """Return the file with its judging parts as they were `before` and the rest as it is `after`; None for no file.

    If the two cannot be combined, the file is returned as it was before.
    """
    if after is None or (before is None and _is_make(path)):
        return before
    compose = _COMPOSERS.get(posixpath.basename(path))
    text = compose(before or "", after) if compose is not None else None
    if text is None:
        return before
    kept = _steering(path, text, before, ()) == _steering(path, before, before, ())
    return text if kept and _rest(path, text, before) == _rest(path, after, before) else before


def _is_make(path: str) -> bool:
    return posixpath.basename(path) not in _COMPOSERS


def _steering(path: str, text: str | None, before: str | None, commands: Sequence[str]) -> Any:
    """Return the judging parts of a file, as a value to compare; an unreadable file counts as a whole."""
    name = posixpath.basename(path)
    if _is_make(path):
        return make_steering(text or "", commands)
    data = _parsed(name, text)
    if data is None:
        return ("unreadable", text)
    return _split(name, data, _parsed(name, before) or {})[0]


def _rest(path: str, text: str, before: str | None) -> Data | None:
    name = posixpath.basename(path)
    data = _parsed(name, text)
    return None if data is None else _split(name, data, _parsed(name, before) or {})[1]


def _parsed(name: str, text: str | None) -> Data | None:
    if text is None:
        return {}
    try:
        if name in _TOML:
            return tomllib.loads(text)
        if name in _JSON:
            data = json.loads(text or "{}")
            return data if isinstance(data, dict) else None
        if name in _GO:
            return _go_parsed(text)
        parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
        parser.read_string(text)
        return {section: dict(parser[section]) for section in parser.sections()}
    except (ValueError, RecursionError, configparser.Error):
        return None


def _split(name: str, data: Data, before: Data) -> tuple[Data, Data]:
    """Return the judging parts and the rest."""
    if name in _TOML:
        steering: Data = {}
        rest = data
        for key in _TOML[name]:
            found, rest = _taken(rest, key)
            if found is not None:
                steering[".".join(key)] = found
        return steering, rest
    if name in _JSON:
        return _split_json(name, data, before)
    if name in _GO:
        return {"steers": data.get("steers", [])}, {"rest": data.get("rest", [])}
    steers = {section for section in data if _INI.fullmatch(section)}
    return {s: data[s] for s in steers}, {s: data[s] for s in data if s not in steers}


def _taken(data: Data, key: Key) -> tuple[Any, Data]:
    """Return the part of nested tables at a key, and the tables without it."""
    if key[0] not in data:
        return None, data
    if len(key) == 1:
        return data[key[0]], {name: value for name, value in data.items() if name != key[0]}
    inner = data[key[0]]
    if not isinstance(inner, dict):
        return None, data
    found, left = _taken(inner, key[1:])
    if found is None:
        return None, data
    without = {name: value for name, value in data.items() if name != key[0]}
    return found, {**without, key[0]: left} if left else without


def _split_json(name: str, data: Data, before: Data) -> tuple[Data, Data]:
    tables = _OLD_ENTRIES[name]
    keys = set(_JSON[name])
    if data.get("exports") is not None and data.get("name") != before.get("name"):
        keys.add("name")  # a package with exports is found under its own name before an installed one
    steering = {key: value for key, value in data.items() if key in keys}
    rest = {key: value for key, value in data.items() if key not in keys and key not in tables}
    for table in tables:
        entries, old = (_entries(table, each.get(table)) for each in (data, before))
        steers = set(entries) & set(old)
        if table == "scripts":
            # A new script that nothing calls has no effect; one that runs before or after an old one has.
            around = {f"{when}{script}" for script in old for when in ("pre", "post")}
            steers |= {key for key in entries if key in around or key in _ON_INSTALL}
        steering[table] = {key: entries[key] for key in steers}
        rest[table] = {key: value for key, value in entries.items() if key not in steers}
    return steering, rest


def _entries(table: str, value: Any) -> Data:
    """Return a table of package.json; its targets may be given without a table, or by conditions alone."""
    if isinstance(value, dict) and (table != "exports" or all(key.startswith(".") for key in value)):
        return value
    return {".": value} if table == "exports" and value is not None else {}


def _go_parsed(text: str) -> Data:
    """Return the replacement lines of a Go module file, and the other lines."""
    found: dict[str, list[str]] = {"steers": [], "rest": []}
    for steers, line in _go_lines(text):
        bare = " ".join(line.partition("//")[0].split())
        if bare and (steers or bare not in ("require (", ")")):
            found["steers" if steers else "rest"].append(bare)
    return {name: sorted(lines) for name, lines in found.items()}


def _go_lines(text: str) -> Iterator[tuple[bool, str]]:
    """Yield each line with whether it affects checks, the lines of a block separately."""
    block = ""
    for line in text.splitlines():
        bare = line.partition("//")[0].strip()
        found = _GO_STEERS.fullmatch(bare)
        if block:
            if bare == ")":
                block = ""
            elif bare:
                yield True, f"{block} {line.strip()}"
        elif found is not None and found[2] == "(":
            block = found[1]
        else:
            yield found is not None, line


# --- putting together --------------------------------------------------------------------------------


def _sections(text: str, steers: Callable[[str], bool]) -> tuple[str, str]:
    """Return the judging sections of a TOML or INI text, and the others, each as text."""
    steering: list[str] = []
    rest: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        if _HEADER.fullmatch(line.rstrip("\n")):
            inside = steers(line)
        (steering if inside else rest).append(line)
    return "".join(steering), "".join(rest)


def _compose(before: str, after: str, steers: Callable[[str], bool]) -> str:
    kept, _ = _sections(before, steers)
    _, rest = _sections(after, steers)
    return f"{rest.rstrip()}\n\n{kept.strip()}\n" if kept.strip() else rest


def _toml_composer(name: str) -> Callable[[str, str], str | None]:
    def steers(line: str) -> bool:
        try:
            data: Any = tomllib.loads(line)
        except tomllib.TOMLDecodeError:
            return False
        key: list[str] = []
        while isinstance(data, dict | list) and data:
            if isinstance(data, list):
                data = data[0]
                continue
            (part,) = data
            key.append(part)
            data = data[part]
        return any(tuple(key[: len(each)]) == each for each in _TOML[name])

    return lambda before, after: _compose(before, after, steers)


def _ini_composer(before: str, after: str) -> str:
    def steers(line: str) -> bool:
        return _INI.fullmatch(line.strip().partition("]")[0].removeprefix("[").strip()) is not None

    return _compose(before, after, steers)


def _json_composer(name: str) -> Callable[[str, str], str | None]:
    def compose(before: str, after: str) -> str | None:
        old, new = _parsed(name, before), _parsed(name, after)
        if old is None or new is None:
            return None
        steering, (own, rest) = _split(name, old, old)[0], _split(name, new, old)
        tables = {each: {**steering.pop(each), **rest.pop(each)} for each in sorted(_OLD_ENTRIES[name])}
        whole = {**rest, **steering, **{each: table for each, table in tables.items() if table}}
        whole |= {"name": old["name"]} if "name" in old and "name" in own else {}
        return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"

    return compose


def _go_composer(before: str, after: str) -> str:
    kept = [line for steers, line in _go_lines(before) if steers]
    rest = [line for steers, line in _go_lines(after) if not steers]
    return "\n".join([*rest, *kept]) + "\n"


_COMPOSERS: Final[Mapping[str, Callable[[str, str], str | None]]] = {
    **{name: _toml_composer(name) for name in _TOML},
    **{name: _json_composer(name) for name in _JSON},
    "setup.cfg": _ini_composer,
    **dict.fromkeys(_GO, _go_composer),
}
