"""Which files of a project decide what its gate says: existing tests, their configuration, gate scripts.

They are recognised by name, with a table per ecosystem; the setting `gate_files` adds or removes some. If an
attempt changed any, its work is also judged with the old ones: see `docs/adr/0028-old-checks-decide.md`.
"""

import json
import posixpath
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Final

from loopwright.core.values.globs import any_covers, names_anything
from loopwright.core.values.shapes import Count, Sha
from loopwright.core.values.templates import FOLDER as PROMPTS


class Kind(StrEnum):
    """How a file affects a gate."""

    TEST = "test"
    """A test, or data that tests read."""
    STEERING = "steering"
    """Configuration, a plugin or a script of the gate."""
    MIXED = "mixed"
    """Contains other things too: only its judging keys are restored."""
    BUILD = "build"
    """A build file whose judging parts cannot be separated: it is never restored, only noted."""


_TEST_FOLDERS: Final = frozenset(
    {"tests", "test", "__tests__", "__snapshots__", "__fixtures__", "testdata", "e2e", "cypress"}
    | {"testutil", "testutils", "test_utils", "test-utils", "testhelpers", "test_helpers", "test_support"}
)
_HELPERS: Final = r"test[-_]?(?:utils?|helpers?|support)\.\w+"
_NAMED_BY_FILE: Final = (".py", ".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".jsx", ".tsx")
"""Name endings of test files whose test ids begin with the file."""
_TEST_NAMES: Final = (
    r"test_.*\.py|.*_test\.py|tests\.py",
    # `node --test` and Deno also pick these up as tests.
    r"(?:.*[._-])?test\.[cm]?[jt]sx?|test-.*\.[cm]?[jt]sx?|.*\.spec\.[cm]?[jt]sx?|.*\.snap",
    r".*_test\.(?:go|exs|dart|c|cc|cpp|cxx|rs|rb|clj|kt)|test_.*\.(?:c|cc|cpp|cxx|rb|jl|lua|sh)",
    r".*_spec\.(?:rb|lua)|.*\.bats|.*\.feature|.*_(?:SUITE|tests)\.erl",
    _HELPERS,
    r".*(?:Tests?|TestCase|[a-z0-9]IT|ITCase)\.(?:java|kt|groovy|scala)|.*Tests?\.(?:cs|fs|swift|php|hs)",
    r".*Spec\.(?:groovy|hs)",
)
_DATA_FOLDERS: Final = re.compile(r"fixtures?|goldens?|golden[-_].*|snapshots?|test[-_]?data")
"""Folders of test data; code in a folder with such a name may belong to the product."""
_CODE: Final = frozenset(
    {
        ".py",
        ".pyi",
        ".js",
        ".jsx",
        ".mjs",
        ".cjs",
        ".ts",
        ".tsx",
        ".mts",
        ".cts",
        ".vue",
        ".svelte",
        ".go",
        ".rs",
    }
    | {
        ".rb",
        ".java",
        ".kt",
        ".scala",
        ".groovy",
        ".cs",
        ".fs",
        ".php",
        ".swift",
        ".c",
        ".h",
        ".cc",
        ".cpp",
        ".cxx",
    }
    | {".hpp", ".dart", ".ex", ".exs", ".erl", ".hs", ".clj", ".lua", ".pl", ".jl", ".sh", ".bash"}
)
_TEST_PLACES: Final = re.compile(
    r"(?:^|/)(?:features/(?:(?:steps|step_definitions|support)/.*|environment\.py)"
    r"|specs?/.*(?:[sS]pec\.[cm]?[jt]sx?|Spec\.(?:scala|kt|java|cs))|src/test/.*)"
)
"""Tests recognised by name and folder together: elsewhere a `features` or a `JobSpec` is as often product code."""
_STEERING_NAMES: Final = (
    r"\.gitattributes",  # says how git writes every other file of the tree, including tests
    r"conftest\.py|\.?pytest\.(?:ini|toml)|tox\.ini|noxfile\.py|\.coveragerc",
    r"\.?ruff\.toml|\.?mypy\.ini|\.flake8|\.?pylintrc|pyrightconfig\.json|\.pre-commit-config\.yaml",
    r"(?:sitecustomize|usercustomize)\.py|.*\.pth",
    r"(?:jest|vitest|vite|playwright|cypress|karma|ava|wdio)\.(?:config|conf|workspace|setup)\.(?:[cm]?[jt]sx?|json)",
    r"setupTests\.[cm]?[jt]sx?",
    r"(?:babel|web-test-runner)\.config\.(?:[cm]?[jt]s|json)|nightwatch\.conf\.js|testem\.js|\.babelrc.*|\.swcrc",
    r"bunfig\.toml|turbo\.json|nx\.json",
    r"\.mocharc\..*|\.nycrc(?:\.json)?|\.c8rc(?:\.json)?|\.taprc|\.eslintrc.*|\.eslintignore|eslint\.config\..*",
    r"biome\.jsonc?|tsconfig.*\.json|\.npmrc|\.yarnrc(?:\.yml)?|\.pnpmfile\.cjs",
    r"\.golangci\.(?:ya?ml|toml)|\.?clippy\.toml|rust-toolchain(?:\.toml)?|\.rspec|phpunit\.xml(?:\.dist)?",
    r"(?:spec|rails|test)_helper\.rb|gradle\.properties|gradlew|mvnw|\.bazelrc|CMakePresets\.json",
    r"hatch\.toml|\.env\.test(?:\.local)?",
    r".*\.mk|\.?[Jj]ustfile|Taskfile(?:\.dist)?\.ya?ml|Rakefile|\.?mise(?:\.[\w-]+)?\.toml",
    r"\.rubocop(?:_todo)?\.yml|\.?rustfmt\.toml|\.clang-(?:tidy|format)|\.swiftlint\.ya?ml|detekt(?:-config)?\.yml",
    r"\.(?:stylelint|prettier)(?:rc.*|ignore)|(?:stylelint|prettier)\.config\..*|\.xo-config\..*",
    r"(?:phpstan|psalm|phpcs)(?:-baseline)?\.(?:neon|xml)(?:\.dist)?",
    r"\.yamllint(?:\.ya?ml)?|\.shellcheckrc|\.hadolint\.ya?ml|\.markdownlint(?:-cli2)?\..*",
    r"(?:docker-)?compose\.override\.ya?ml",
    r".*\.py[co]",
)
_STEERING_FOLDERS: Final = frozenset(
    {"node_modules", "site-packages", ".cargo", "__mocks__", "__pycache__", ".mvn", "buildSrc"}
)
_CI_FOLDERS: Final = frozenset({"ci", ".ci"})
"""Top-level folders in which every file affects checks: scripts, and the lists that they read."""
_VENDORED: Final = frozenset({"vendor", "vendored", "_vendor", "third_party", "third-party", "thirdparty"})
_CHECKERS: Final = re.compile(
    r"testify|stretchr|gomega|ginkgo|go-cmp|gotest\.tools|check\.v1|pytest|unittest|hypothesis|hamcrest|mock"
    r"|assert|expect|chai|jest|vitest|mocha|sinon|googletest|gtest|gmock|catch2|doctest|rspec|minitest|phpunit",
    re.IGNORECASE,
)
"""Names of libraries that tests check with."""
_PLUGGED: Final = (".egg-info", ".dist-info")
"""Endings of the folders from which Python's test runners load plugins."""
_MIXED_NAMES: Final = frozenset(
    {"pyproject.toml", "setup.cfg", "package.json", "composer.json", "Cargo.toml", "go.mod", "go.work"}
    | {"Makefile", "makefile", "GNUmakefile"}
)
_BUILD_NAMES: Final = (
    r"setup\.py|pom\.xml|(?:build|settings)\.gradle(?:\.kts)?|build\.rs|CMakeLists\.txt|meson\.build"
    r"|.*\.gradle(?:\.kts)?|.*\.cmake|BUILD(?:\.bazel)?|WORKSPACE(?:\.bazel)?|MODULE\.bazel|\.pnp\.[cm]?js"
    r"|deno\.jsonc?|pixi\.toml|mix\.exs|Package\.swift|.*\.(?:cs|fs)proj|.*\.sbt|Earthfile|project\.json"
    r"|loopwright\.toml"  # read from the commit that a plan starts from: it affects the gates of the next plan
)
_RUNNERS: Final = frozenset(
    {"pytest", "_pytest", "pluggy", "iniconfig", "unittest", "nose", "nose2", "xdist"}
)
"""Python modules that would replace a test runner if they were added."""
_SHADOWED: Final = frozenset(
    {"argparse", "ast", "contextlib", "doctest", "functools", "importlib", "inspect", "io", "os", "re"}
    | {"runpy", "site", "traceback", "types", "warnings"}
    | {"hypothesis", "parameterized", "freezegun", "time_machine", "responses", "respx", "requests_mock"}
    | {
        "pytest_asyncio",
        "pytest_mock",
        "asynctest",
        "hamcrest",
        "assertpy",
        "syrupy",
        "testfixtures",
        "numpy",
    }
    | {"bandit", "black", "coverage", "flake8", "isort", "mypy", "nox", "pycodestyle", "pyflakes", "pylint"}
    | {"pyright", "ruff", "tox"}
)
"""Modules that test runners load, that tests check with, or that check source.

If a new file in a searched folder has that name, Python loads it instead.
"""
_ROOTS: Final = frozenset({"", "src", "lib", "tests", "test"})
_STANDARD: Final = frozenset(sys.stdlib_module_names)
_FIRST: Final = frozenset({"", "tests", "test"})
"""Folders that Python searches before the standard library, whatever the project configures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What counts as a judging file in one plan."""

    patterns: tuple[str, ...] = ()
    """The patterns of the setting `gate_files`; a pattern that starts with `!` excludes files."""
    scripts: frozenset[str] = frozenset()
    """Files that the gate commands run, and modules that the runner's configuration loads."""
    targets: frozenset[str] = frozenset()
    """Make targets: make does nothing if a new file or folder has that name."""
    test_names: tuple[str, ...] = ()
    """Names of test files, from the configuration of pytest."""
    packages: frozenset[str] = frozenset()
    """Folders that were Python packages before the work: a new module in one replaces no other module."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFiles:
    """What an attempt did to its judging files, and the result: a fact of the receipt."""

    pinned: tuple[str, ...] = ()
    """Judging files that it changed, added or deleted: the gate also ran with the old versions of these."""
    pinned_tree: Sha | None = None
    """The tree of that run."""
    pinned_without: tuple[str, ...] = ()
    """Commands that need a file which the work added, so they ran on the candidate only."""
    exempt: tuple[str, ...] = ()
    """Judging files other than tests that it changed and `may_change` names: they were not restored."""
    build_files: tuple[str, ...] = ()
    """Build files that it changed: they may affect the gate and cannot be restored in part."""
    contradicted: tuple[str, ...] = ()
    """Existing checks that fail, or no longer run, with the new code and the old judging files."""
    allowed_by: tuple[str, ...] = ()
    """Who allowed each of them, in the same order; empty while undecided."""
    removed: tuple[str, ...] = ()
    """Those that do not fail anywhere but no longer run."""
    reason: str = ""
    """The agent's reason for changing what these checks require."""
    missing: tuple[str, ...] = ()
    """Tests that passed before and do not run on the candidate."""
    added_tests: Count = 0
    red_proof: bool | None = None
    """Whether the task's checks failed before the work, as they should; None if they did not run there."""
    red_tree: Sha | None = None
    """The tree of the red proof: the tree before the work, with the tests that the work adds."""
    red_tests: tuple[str, ...] = ()
    """The tests that were added to it."""
    red_skipped: str = ""
    """Why no red proof is needed; empty if it was made, or not required."""
    red_missing: str = ""
    """Why the required red proof is missing."""
    red_seen: tuple[str, ...] = ()
    """Tests that failed on the tree before the work and pass with it: they already prove it."""
    suspicious: tuple[str, ...] = ()
    """Places that a reviewer should read. They never change the outcome."""


def kind_of(path: str, rules: Rules, *, existed: bool) -> Kind | None:
    """Return how a file affects gates, None if it does not; `path` is relative to the project."""
    for pattern in reversed(rules.patterns):
        # The last matching pattern decides, so that you can add a folder and exclude a part of it.
        if any_covers([pattern.removeprefix("!")], path):
            return None if pattern.startswith("!") else _named(path, existed=existed) or Kind.STEERING
    if path in rules.scripts or (not existed and _stops_make(path, rules.targets)):
        return Kind.STEERING
    known = existed or posixpath.dirname(path) in rules.packages
    kind = _named(path, existed=known, searched=rules.scripts)
    by_runner = any(fnmatchcase(posixpath.basename(path), each) for each in rules.test_names)
    return Kind.TEST if kind is None and by_runner else kind


def takes_a_place(path: str, rules: Rules) -> bool:
    """Return whether a new file would hide something else: a module of that name, or a target of make."""
    *folders, name = path.split("/")
    shadows = name.endswith((".py", ".so")) and _shadows(folders, name, rules.scripts)
    return _stops_make(path, rules.targets) or (shadows and posixpath.dirname(path) not in rules.packages)


def is_code(path: str) -> bool:
    """Return whether a file is source code, judged by its name."""
    return posixpath.splitext(path)[1] in _CODE


def is_named_like_a_library(path: str) -> bool:
    """Return whether a module has the name of a third-party library."""
    parts = path.removesuffix(".so").removesuffix(".py").split("/")[-2:]
    return path.endswith((".py", ".so")) and not (_STANDARD | _SHADOWED).isdisjoint(parts)


def _stops_make(path: str, targets: frozenset[str]) -> bool:
    """Return whether a new file has the name of a make target, or is in such a folder, so that make would skip it."""
    return bool(targets) and any(path == each or path.startswith(f"{each}/") for each in targets)


def is_test_file(path: str) -> bool:
    """Return whether a file, judged by its name, contains only tests and nothing that other tests need."""
    name = path.rpartition("/")[2]
    return any(re.fullmatch(each, name) for each in _TEST_NAMES) and _named(path, existed=True) is Kind.TEST


def is_restored_if_permitted(path: str) -> bool:
    """Return whether a judging file is restored even if `may_change` names it.

    This holds for a file that contains only tests whose ids begin with its path: what it contradicts is then
    known to be permitted. If a helper, a snapshot or a Go test were restored, tests of other files would fail
    too.
    """
    name = path.rpartition("/")[2]
    return name.endswith(_NAMED_BY_FILE) and is_test_file(path) and not re.fullmatch(_HELPERS, name)


def _named(path: str, *, existed: bool, searched: Iterable[str] = ()) -> Kind | None:
    *folders, name = path.split("/")
    if (name in _MIXED_NAMES or lists_packages(path)) and not _STEERING_FOLDERS & set(folders):
        return Kind.MIXED
    if _STEERING_FOLDERS & set(folders) or any(folder.endswith(_PLUGGED) for folder in folders):
        return Kind.STEERING
    if any(re.fullmatch(each, name) for each in _STEERING_NAMES):
        return Kind.STEERING
    if not existed and name.endswith((".py", ".so")) and _shadows(folders, name, searched):
        return Kind.STEERING
    if folders and folders[0] in _CI_FOLDERS:
        return Kind.STEERING
    if _VENDORED & set(folders):
        # A vendored library is not work, and a new one only matters if tests check with it.
        return Kind.BUILD if existed or _CHECKERS.search(path) else None
    if _TEST_FOLDERS & set(folders) or _TEST_PLACES.search(path):
        return Kind.TEST
    if any(re.fullmatch(each, name) for each in _TEST_NAMES):
        return Kind.TEST
    if not is_code(path) and any(_DATA_FOLDERS.fullmatch(folder) for folder in folders):
        return Kind.TEST
    # The project's own prompts are read from the same commit as `loopwright.toml`: they affect the next plan's agents.
    return Kind.BUILD if PROMPTS in folders or re.fullmatch(_BUILD_NAMES, name) else None


def _shadows(folders: Sequence[str], name: str, searched: Iterable[str]) -> bool:
    """Return whether a new file would be loaded instead of a module that test runners, tests or scripts load.

    Python first searches the folder of the script that it runs (`searched` has those of the gate).
    """
    stem = name.partition(".")[0]
    if stem in _RUNNERS or _RUNNERS & set(folders):
        return True
    beside = {posixpath.dirname(script) for script in searched if script.endswith(".py")}
    if stem in _SHADOWED and "/".join(folders) in _ROOTS | beside:
        return True
    # Without `__init__.py` a folder replaces no module.
    module = folders if stem == "__init__" and folders else [*folders, stem]
    if module[-1] in _STANDARD and "/".join(module[:-1]) in _FIRST | beside:
        return True
    return bool(folders) and folders[-1] in _SHADOWED and "/".join(folders[:-1]) in _ROOTS | beside


def declared(path: str, scope: Sequence[str]) -> bool:
    """Return whether a task's write scope names this file; a scope of everything names no file in particular."""
    return any_covers((pattern for pattern in scope if not names_anything(pattern)), path)


# What a project installs from elsewhere than its registry: its own folder, an address.

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
    """Return whether a file only lists packages to install."""
    return _LISTS.fullmatch(path) is not None or _LISTS.fullmatch(posixpath.basename(path)) is not None


def redirects(path: str, text: str | None) -> frozenset[str]:
    """Return what a file installs from other places, as texts to compare."""
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
        return frozenset()  # an unreadable file counts as a whole
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
    """Yield every text in nested tables with its key path."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from _texts(value, f"{where}/{key}" if where else str(key))
    elif isinstance(data, list):
        for each in data:
            yield from _texts(each, where)
    elif isinstance(data, str | bool):
        yield where, str(data)
