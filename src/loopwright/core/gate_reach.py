"""What the tests of a project and their configuration use besides themselves: modules they load, data they read.

Nothing in the name of such a file tells it, so it is told by who names it. Whoever has the tree looks for the words of
the files that the work changed, and hands the lines in here: each with the file that it stands in.
"""

import ast
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
_HANDED_OUT: Final = re.compile(r"^[ \t]*export\b|\bmodule\.exports\b|\bexports\.\w+\s*=", re.MULTILINE)
_SOURCE: Final = ("src/", "lib/")
_CONFIGURED: Final = frozenset({Kind.STEERING, Kind.MIXED})
_JUDGES: Final = frozenset({Kind.STEERING, Kind.TEST})
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
    held: bool = False
    """Whether tests were seen in it."""


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
        own = {path for path, one in self.asked.items() if one.imported or one.held}
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


class _Index:
    """Lines by what they name, so that a question is not one for each of them."""

    def __init__(self, lines: Iterable[Line], rules: Rules) -> None:
        found: dict[str, list[str]] = {}
        for line in lines:
            found.setdefault(line.path, []).append(line.text)
        self.texts = {path: "\n".join(texts) for path, texts in found.items()}
        self.kinds = {
            path: Kind.STEERING if path == COMMANDS else kind_of(path, rules, existed=True) for path in found
        }
        self.configuration = [path for path, kind in self.kinds.items() if kind in _CONFIGURED]
        self._imports: dict[str, set[tuple[str, str]]] = {}
        self._tokens: dict[str, set[tuple[str, tuple[str, ...]]]] = {}
        self._folders: dict[str, set[tuple[str, tuple[str, ...]]]] = {}
        self._words: dict[str, set[str]] = {}
        for path, text in self.texts.items():
            for place in imported(path, text):
                stem = posixpath.splitext(posixpath.basename(place))[0]
                self._imports.setdefault(stem, set()).add((path, place))
            if self.kinds[path] in _JUDGES and path != COMMANDS:
                self._read(path, text)
        self._entries = [
            name.replace(".", "/")
            for path, text in self.texts.items()
            if posixpath.basename(path) in _PACKAGES
            for line in text.splitlines()
            for name in _ENTRY.findall(line.strip())
        ]

    def _read(self, path: str, text: str) -> None:
        for token in map(_parts, set(_TOKEN.findall(text))):
            if token:
                self._tokens.setdefault(token[-1], set()).add((path, tuple(token)))
                self._words.setdefault(path, set()).update(token)
        for line in filter(_LOOKS_THROUGH.search, text.splitlines()):
            for name in filter(None, map(_parts, _QUOTED.findall(line))):
                self._folders.setdefault(name[-1], set()).add((path, tuple(name)))

    def importers(self, path: str) -> set[str]:
        """Return who imports a file."""
        stem = posixpath.basename(module_at(path))
        found = self._imports.get(stem, set())
        return {by for by, place in found if by != path and means(place, path)}

    def is_packaged(self, path: str) -> bool:
        """Say whether the project hands a module out to others, as one that is a plugin itself does."""
        return any(means(name, path) for name in self._entries)

    def readers(self, path: str) -> Iterator[str]:
        """Yield what judges and names a file by its path, or the folder of it that is looked through."""
        parts = tuple(path.split("/"))
        folder = posixpath.dirname(path)
        for by, token in self._tokens.get(parts[-1], ()):
            near = folder in ("", posixpath.dirname(by)) or parts[-2] in self._words[by]
            if parts[-len(token) :] == token and (len(token) > 1 or near):
                yield by
        for by, name in self._folders.get(parts[-2] if folder else "", ()):
            if parts[-1 - len(name) : -1] == name:
                yield by


def reach(paths: Iterable[str], lines: Sequence[Line], rules: Rules, seen: Iterable[str] = ()) -> Reach:
    """Say of files that existed how the gate uses them, by the lines that name them.

    In those of `seen` tests were seen to run.
    """
    index = _Index(lines, rules)
    kinds = index.kinds
    scripts, tests, shared = set[str](), set[str](), set[str]()
    asked: dict[str, Asked] = {}
    held = set(seen)
    for path in paths:
        if not is_code(path):
            if any(kinds[each] in _JUDGES for each in index.readers(path)):
                shared.add(path)
            continue
        users = index.importers(path)
        product = {each for each in users if kinds[each] is None}
        within = bool(product) or path.startswith(_SOURCE) or index.is_packaged(path)
        configuration = [each for each in index.configuration if each != path]
        if path in held:
            asked[path] = Asked(within=within, held=True)
        elif any(loads(index.texts[each], each, path) for each in configuration):
            (shared if within else scripts).add(path)
        else:
            beside = {each for each in product if posixpath.dirname(each) == posixpath.dirname(path)}
            used = any(kinds[each] in _JUDGES for each in users) and product == beside
            unsure = {each for each in configuration if each and _names(path, index.texts[each])}
            if used or unsure:
                asked[path] = Asked(configuration=frozenset(unsure), imported=used, within=within)
    return Reach(scripts=frozenset(scripts), tests=frozenset(tests), shared=frozenset(shared), asked=asked)


def settled(found: Reach, texts: Mapping[str, str]) -> Reach:
    """Return the same with what reading whole files told."""
    scripts, tests, shared = set(found.scripts), set(found.tests), set(found.shared)
    for path, one in found.asked.items():
        if one.held:
            (shared if one.within or not is_all_tests(path, texts.get(path, "")) else tests).add(path)
        elif any(loads(texts.get(each, ""), each, path) for each in one.configuration):
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


def _names(path: str, text: str) -> bool:
    """Say whether a line names a file in a way that a loader would: on a line of its own it tells no more."""
    name, stem = posixpath.basename(path), posixpath.basename(module_at(path))
    quoted = (each.replace(".", "/") if path.endswith(".py") else each for each in _QUOTED.findall(text))
    return any(_parts(each)[-1:] in ([name], [stem]) for each in quoted)


def _parts(text: str) -> list[str]:
    return [part for part in text.split("/") if part not in ("", ".", "..")]


def is_all_tests(path: str, text: str) -> bool:
    """Say whether there is nothing in a file but tests and what they need: such a file is no product."""
    if not path.endswith(".py"):
        return _HANDED_OUT.search(text) is None
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return all(_is_for_tests(node) for node in tree.body)


def _is_for_tests(node: ast.stmt) -> bool:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            fixture = any("fixture" in ast.unparse(each) for each in node.decorator_list)
            return fixture or re.match(r"_|test|check|setup|teardown|setUp|tearDown", name) is not None
        case ast.ClassDef(name=name):
            return (
                name.startswith("_")
                or "Test" in name
                or any("Test" in ast.unparse(one) for one in node.bases)
            )
    return True


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
