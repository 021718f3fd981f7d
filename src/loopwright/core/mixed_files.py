"""Files that steer the gate among other things: which parts do, and how those are put back without the rest.

A new dependency in pyproject.toml is no tampering; a new `addopts` beside it is. `pinned_text` returns the file with
the steering parts as they were before and everything else as it is now.
"""

import configparser
import json
import posixpath
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from loopwright.core.makefiles import make_steering

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
    "Cargo.toml": (("test",), ("lib",), ("lints",), ("profile",), ("workspace", "lints")),
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
_ON_INSTALL: Final = frozenset({"preinstall", "install", "postinstall", "prepare", "prepublish"})
_HEADER: Final = re.compile(r"\s*\[.*\]\s*(?:[#;].*)?")


def steers_differently(path: str, before: str | None, after: str | None, commands: Sequence[str]) -> bool:
    """Say whether a change of a mixed file touched what steers the gate; None stands for no file."""
    return bool(_steering(path, before, before, commands) != _steering(path, after, before, commands))


def pinned_text(path: str, before: str | None, after: str | None) -> str | None:
    """Return the file with its steering parts as they were `before` and the rest as it is `after`; None for no file.

    Where the two cannot be put together so that both hold, the file is what it was before.
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
    """Return what steers in a file, as a value to compare; a file that cannot be read steers as a whole."""
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
        parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
        parser.read_string(text)
        return {section: dict(parser[section]) for section in parser.sections()}
    except (ValueError, RecursionError, configparser.Error):
        return None


def _split(name: str, data: Data, before: Data) -> tuple[Data, Data]:
    """Return what steers and what does not."""
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
    steering = {key: value for key, value in data.items() if key in _JSON[name]}
    rest = {key: value for key, value in data.items() if key not in _JSON[name] and key != "scripts"}
    scripts, old = (
        each if isinstance(each, dict) else {} for each in (data.get("scripts"), before.get("scripts"))
    )
    # A new script that nothing calls steers nothing; one that runs before or after an old one does.
    around = {f"{when}{script}" for script in old for when in ("pre", "post")}
    steers = {key for key in scripts if key in old or key in around or key in _ON_INSTALL}
    steering["scripts"] = {key: scripts[key] for key in steers}
    rest["scripts"] = {key: value for key, value in scripts.items() if key not in steers}
    return steering, rest


# --- putting together --------------------------------------------------------------------------------


def _sections(text: str, steers: Callable[[str], bool]) -> tuple[str, str]:
    """Return the steering sections of a text in TOML or INI, and the others, each as text."""
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
        steering, (_, rest) = _split(name, old, old)[0], _split(name, new, old)
        scripts = {**steering.pop("scripts"), **rest.pop("scripts")}
        whole = {**rest, **steering, **({"scripts": scripts} if scripts else {})}
        return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"

    return compose


_COMPOSERS: Final[Mapping[str, Callable[[str, str], str | None]]] = {
    **{name: _toml_composer(name) for name in _TOML},
    **{name: _json_composer(name) for name in _JSON},
    "setup.cfg": _ini_composer,
}
