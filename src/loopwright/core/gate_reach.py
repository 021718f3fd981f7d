"""What the tests of a project and their configuration use besides themselves: modules they load, data they read.

Nothing in the name of such a file tells it, so it is told by who names it. Whoever has the tree looks for the words of
the files that the work changed, and hands the lines in here: each with the file that it stands in.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from loopwright.core.gate_files import Kind, Rules, is_code, kind_of
from loopwright.core.imports import imported, means, module_at

_READ_BY_PEOPLE: Final = re.compile(
    r".*\.(?:md|rst|adoc|mdx|png|jpe?g|gif|svg|ico|woff2?)|(?:LICEN[CS]E|NOTICE|AUTHORS|CODEOWNERS|\.git\w+)(?:\..*)?"
)
"""What is no data of any program: where a test reads it, it is what the test is about."""
_TOKEN: Final = re.compile(r"[\w.@+~-]+(?:/+[\w.@+~-]+)*")
_QUOTED: Final = re.compile(r"['\"`]([^'\"`\n]{1,200})['\"`]")
_LOOKS_THROUGH: Final = re.compile(
    r"\br?glob\b|\biterdir\b|\b(?:list|scan|read|open)_?dir\w*|\bwalk\b|\bDir[.\[]|\bfind\b", re.IGNORECASE
)
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
"""What in the configuration of test runners names modules that these load."""
_SHORT_KEYS: Final = re.compile(rf"\b(?:require|file|import|loader|preload){_VALUE}")
_WITH_SHORT_KEYS: Final = re.compile(r"\.mocharc\..*|bunfig\.toml|\.taprc|ava\.config\..*")
"""Where these words mean just that."""
_OF_TESTS: Final = re.compile(
    r"(?:^|[/_-])(?:fixtures?|mocks?|fakes?|stubs?|doubles|tests?|testing|conftest|asserts?|assertions?|matchers)(?:[/_.-]|$)"
)
_CHECKS_WITH: Final = re.compile(
    r"^[ \t]*(?:import|from)[ \t]+(?:pytest|hypothesis|nose2?)\b"
    r"|['\"](?:node:test|vitest|jest|@jest/globals|chai|sinon|mocha|@testing-library/[\w-]+)['\"]"
    r"|\bexpect\.extend\(|^[ \t]*(?:before|after)(?:Each|All)\(",
    re.MULTILINE,
)
"""What only a module for tests has in it; `assert` and `unittest` are in others too."""
_PACKAGES: Final = frozenset({"pyproject.toml", "setup.cfg", "setup.py"})
_ENTRY: Final = re.compile(r"=\s*['\"]?([A-Za-z_][\w.]*)(?::[\w.]+)?['\"]?\s*(?:[,\])}].*)?$")
_SOURCE: Final = ("src/", "lib/")
_CONFIGURED: Final = frozenset({Kind.STEERING, Kind.MIXED})
COMMANDS: Final = ""
"""Stands for the gate's own commands, as where a line stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a tree in which a word was found."""

    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What must be read as a whole before it is known how a file is used."""

    configuration: frozenset[str] = frozenset()
    """Who may load it."""
    imported: bool = False
    """Whether tests import it, and nothing of the product elsewhere: the file itself says whether it is for them."""
    within: bool = False
    """Whether it is part of the product all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What is known of the files that the work changed and whose names tell nothing."""

    scripts: frozenset[str] = frozenset()
    """Loaded by the test runner before any test."""
    tests: frozenset[str] = frozenset()
    """Used by tests and by nothing else."""
    shared: frozenset[str] = frozenset()
    """Read by tests, or used by them and by others: what of it judges cannot be told apart."""
    asked: Mapping[str, Asked] = field(default_factory=dict)
    """Files of which lines tell too little."""

    @property
    def unread(self) -> frozenset[str]:
        """What to read for these."""
        own = {path for path, one in self.asked.items() if one.imported}
        return frozenset(own.union(*(one.configuration for one in self.asked.values())))


def is_telling(path: str) -> bool:
    """Say whether it is worth while to ask who names a file."""
    return _READ_BY_PEOPLE.fullmatch(posixpath.basename(path)) is None


def words_for(path: str) -> tuple[str, ...]:
    """Return the words by which others name a file."""
    if is_code(path):
        return (posixpath.basename(module_at(path)) or posixpath.basename(path),)
    folder = posixpath.basename(posixpath.dirname(path))
    return (posixpath.basename(path), *((folder,) if folder else ()))


def reach(paths: Iterable[str], lines: Sequence[Line], rules: Rules, seen: Iterable[str] = ()) -> Reach:
    """Say of files that existed how the gate uses them, by the lines that name them.

    In those of `seen` tests were seen to run.
    """
    by: dict[str, list[str]] = {}
    for line in lines:
        by.setdefault(line.path, []).append(line.text)
    kinds = {path: Kind.STEERING if path == COMMANDS else kind_of(path, rules, existed=True) for path in by}
    scripts, tests, shared = set[str](), set[str](), set[str]()
    asked: dict[str, Asked] = {}
    held = set(seen)
    for path in paths:
        others = {each: texts for each, texts in by.items() if each != path}
        if not is_code(path):
            judges = [each for each in others if each and kinds[each] in (Kind.TEST, Kind.STEERING)]
            if any(_reads(path, each, others[each]) for each in judges):
                shared.add(path)
            continue
        users = {each for each, texts in others.items() if _imports(path, each, texts)}
        product = {each for each in users if kinds[each] is None}
        within = bool(product) or path.startswith(_SOURCE) or _is_packaged(path, others)
        configuration = {each for each in others if kinds[each] in _CONFIGURED}
        if path in held:
            (shared if within else tests).add(path)
        elif any(loads("\n".join(others[each]), each, path) for each in configuration):
            (shared if within else scripts).add(path)
        else:
            beside = {each for each in product if posixpath.dirname(each) == posixpath.dirname(path)}
            used = any(kinds[each] in (Kind.TEST, Kind.STEERING) for each in users) and product == beside
            unsure = {each for each in configuration if each and _names(path, others[each])}
            if used or unsure:
                asked[path] = Asked(configuration=frozenset(unsure), imported=used, within=within)
    return Reach(scripts=frozenset(scripts), tests=frozenset(tests), shared=frozenset(shared), asked=asked)


def settled(found: Reach, texts: Mapping[str, str]) -> Reach:
    """Return the same with what reading whole files told."""
    scripts, tests, shared = set(found.scripts), set(found.tests), set(found.shared)
    for path, one in found.asked.items():
        if any(loads(texts.get(each, ""), each, path) for each in one.configuration):
            (shared if one.within else scripts).add(path)
        elif one.imported and (_OF_TESTS.search(path) or _CHECKS_WITH.search(texts.get(path, ""))):
            (shared if one.within else tests).add(path)
    return Reach(scripts=frozenset(scripts), tests=frozenset(tests), shared=frozenset(shared))


def loads(text: str, by: str, path: str) -> bool:
    """Say whether configuration of a test runner names a module to load: a plugin, a setup file."""
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


def _places(name: str, folder: str) -> Iterator[str]:
    plain = re.sub(r"^(?:<rootDir>|\$\{?\w+\}?)/?", "", name)
    for top in ("", folder):
        yield posixpath.normpath(posixpath.join(top, plain))


def _is_packaged(path: str, lines: Mapping[str, Iterable[str]]) -> bool:
    """Say whether the project hands a module out to others, as one that is a plugin itself does."""
    entries = (
        name
        for by, texts in lines.items()
        if posixpath.basename(by) in _PACKAGES
        for text in texts
        for name in _ENTRY.findall(text.strip())
    )
    return any(means(name.replace(".", "/"), path) for name in entries)


def _imports(path: str, by: str, texts: Iterable[str]) -> bool:
    return any(means(place, path) for text in texts for place in imported(by, text))


def _names(path: str, lines: Iterable[str]) -> bool:
    """Say whether a line names a file in a way that a loader would: on a line of its own it tells no more."""
    name, stem = posixpath.basename(path), posixpath.basename(module_at(path))
    quoted = (text for line in lines for text in _QUOTED.findall(line))
    return any(
        _parts(text.replace(".", "/") if path.endswith(".py") else text)[-1:] in ([name], [stem])
        for text in quoted
    )


def _reads(path: str, by: str, lines: Sequence[str]) -> bool:
    """Say whether lines of a file name another one by its path, or the folder that they look through."""
    parts = path.split("/")
    folder = posixpath.dirname(path)
    tokens = [_parts(token) for line in lines for token in _TOKEN.findall(line)]
    for token in tokens:
        if len(token) > 1 and parts[-len(token) :] == token:
            return True
        if token == parts[-1:] and (
            folder in ("", posixpath.dirname(by)) or any(parts[-2] in other for other in tokens)
        ):
            return True
    through = [
        _parts(name) for line in lines if _LOOKS_THROUGH.search(line) for name in _QUOTED.findall(line)
    ]
    return any(name and parts[-1 - len(name) : -1] == name for name in through)


def _parts(text: str) -> list[str]:
    return [part for part in text.split("/") if part not in ("", ".", "..")]


def holds_tests(path: str, tests: Iterable[str]) -> bool:
    """Say whether one of the tests that were seen stands in a file, by the ids of the tests.

    Examples in a docstring or a page are no file of tests: they stand where they explain something.
    """
    dotted = f"{posixpath.splitext(path)[0].replace('/', '.')}."
    for test in tests:
        file, sign, name = test.partition("::")
        if sign and (path == file or path.endswith(f"/{file}")):
            if "." not in name.partition("[")[0].partition(" ")[0] or not path.endswith(".py"):
                return is_code(path)
        elif not sign and path.endswith(".py") and test.startswith(dotted):
            return True
    return False
