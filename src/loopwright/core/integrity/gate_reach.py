"""Find the modules that a test runner's configuration loads before any test: plugins and setup files."""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from loopwright.core.integrity.gate_files import Kind
from loopwright.core.integrity.imports import imported, means, module_at

_QUOTED: Final = re.compile(r"['\"`]([^'\"`\n]{1,200})['\"`]")
_PLUGIN: Final = re.compile(r"(?:^|[\s'\"=,\[])-p[\s'\",=]*([A-Za-z_][\w.]*)")
_PLUGINS: Final = re.compile(r"\bpytest_plugins\b[^=\n]*=\s*(\[[^\]]*\]?|\([^)]*\)?|[^\n]*)")
_LOADED_FIRST: Final = re.compile(
    r"(?:^|[\s'\"=,\[])(?:--(?:require|import|loader|experimental-loader|preload|setupFiles\w*|globalSetup)|-r)"
    r"[\s=,'\"]+([^\s'\",\]]+)"
)
_RUNS_TESTS: Final = re.compile(r"test|mocha|jest|\b(?:ava|tap|c8|nyc)\b")
_VALUE: Final = r"['\"]?\s*[:=]\s*(\[[^\]]*\]?|\{[^}]*\}?|['\"`][^'\"`\n]*['\"`])"
_KEYS: Final = re.compile(
    r"\b(?:setupFiles\w*|globalSetup|globalTeardown|testEnvironment|testRunner|runner|reporters|transform|resolver"
    rf"|snapshotSerializers|testSequencer){_VALUE}"
)
"""Configuration keys of test runners that name modules to load."""
_SHORT_KEYS: Final = re.compile(rf"\b(?:require|file|import|loader|preload){_VALUE}")
_WITH_SHORT_KEYS: Final = re.compile(r"\.mocharc\..*|bunfig\.toml|\.taprc|ava\.config\..*")
"""Files in which the short keys mean the same."""
PYTEST_FILES: Final = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
"""Where pytest is configured."""
_TEST_NAMES: Final = re.compile(r"^python_files[ \t]*=[ \t]*(\[[^\]]*|.*(?:\n[ \t]+\S.*)*)", re.MULTILINE)
_WITH_PYTEST: Final = re.compile(r"^(?:import|from)[ \t]+pytest\b", re.MULTILINE)
_NAME: Final = re.compile(r"[\w.*?-]+")
_TOO_WIDE: Final = frozenset({"*", "*.py", "__init__.py"})
"""Name patterns that product source matches too."""
SOURCE: Final = ("src/", "lib/")
CONFIGURED: Final = frozenset({Kind.STEERING, Kind.MIXED})
COMMANDS: Final = ""
"""The pseudo-path of the gate's own commands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a tree in which a word was found."""

    path: str
    text: str


def word_for(path: str) -> str:
    """Return the word by which configuration names a module."""
    return posixpath.basename(module_at(path)) or posixpath.basename(path)


def names_of_tests(text: str) -> list[str]:
    """Return the test file names in pytest's configuration, without those that any source file has."""
    named = [name for part in _TEST_NAMES.findall(text) for name in _NAME.findall(part)]
    return [name for name in named if name.endswith(".py") and name not in _TOO_WIDE]


def loads(text: str, by: str, path: str) -> bool:
    """Return whether a test runner's configuration names a module to load: a plugin, a setup file."""
    if path.endswith(".py"):
        given = by.endswith((".ini", ".toml", ".cfg")) or "pytest" in text
        plugins = _PLUGIN.findall(text) if given else []
        plugins += [name for part in _PLUGINS.findall(text) for name in _QUOTED.findall(part)]
        return any(means(name.replace(".", "/"), path) for name in plugins)
    if by.endswith(".py"):
        return False
    lines = [line for line in text.splitlines() if by == COMMANDS or _RUNS_TESTS.search(line)]
    named = [name for line in lines for name in _LOADED_FIRST.findall(line)]
    if by != COMMANDS:
        parts = _KEYS.findall(text)
        parts += _SHORT_KEYS.findall(text) if _WITH_SHORT_KEYS.fullmatch(posixpath.basename(by)) else []
        named += [name for part in parts for name in _QUOTED.findall(part)]
    places = {place for name in named for place in _places(name, posixpath.dirname(by))}
    return bool(places & {path, posixpath.splitext(path)[0], module_at(path)})


def has_fixtures_for(text: str, by: str, path: str, own: str) -> bool:
    """Return whether a `conftest.py` imports a module that itself uses pytest: then they belong together."""
    if posixpath.basename(by) != "conftest.py" or not _WITH_PYTEST.search(own):
        return False
    return any(means(place, path) for place in imported(by, text))


def _places(name: str, folder: str) -> Iterator[str]:
    plain = re.sub(r"^(?:<rootDir>|\$\{?\w+\}?)/?", "", name)
    for top in ("", folder):
        yield posixpath.normpath(posixpath.join(top, plain))
