"""Comments and files by which source is spared a check that one of the commands makes."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from loopwright.core.literals import LONGEST
from loopwright.core.seeming import CODE

SILENCES: Final = "silences"
UNSEEN: Final = "stands in the place of the source that it is beside, for"

_TYPES: Final = r"#\s*type:\s*ignore|\bno_type_check\b|\bnot\s+(?:typing\.)?TYPE_CHECKING\b"
_NOQA: Final = r"#\s*noqa|#\s*(?:ruff|flake8):\s*(?:noqa|ignore|disable)|#\s*flake8[:=]"
_FORMAT: Final = r"#\s*fmt:\s*(?:off|skip)|#\s*yapf:\s*disable"
_IMPORTS: Final = r"#\s*isort:\s*(?:skip|off|split|dont)"
_RUST: Final = r"#!?\[\s*(?:allow|expect)\("
_SILENCED: Final = {
    "mypy": rf"{_TYPES}|#\s*mypy:"
    r"(?!\s*(?:strict|(?:disallow|warn|check|enable|no-implicit)[\w-]*(?:=\s*[Tt]rue)?)\s*$)",
    "pyright": rf"{_TYPES}|#\s*pyright:(?!\s*strict\s*$)",
    "basedpyright": rf"{_TYPES}|#\s*(?:based)?pyright:(?!\s*strict\s*$)",
    "ty": rf"{_TYPES}|#\s*ty:\s*ignore",
    "pyrefly": rf"{_TYPES}|#\s*pyrefly:\s*ignore",
    "pyre": rf"{_TYPES}|#\s*pyre-(?:ignore|fixme|unsafe)",
    "ruff": rf"{_NOQA}|{_FORMAT}|{_IMPORTS}",
    "flake8": _NOQA,
    "pycodestyle": _NOQA,
    "pydocstyle": _NOQA,
    "black": _FORMAT,
    "yapf": _FORMAT,
    "isort": _IMPORTS,
    "pylint": r"#\s*pylint:\s*(?:disable|skip-file)",
    "bandit": r"#\s*nosec",
    "semgrep": r"\bnosemgrep\b",
    "cov": r"#\s*pragma:\s*no (?:cover|branch)|istanbul ignore|[cv]8 ignore|node:coverage (?:ignore|disable)",
    "coverage": r"#\s*pragma:\s*no (?:cover|branch)|istanbul ignore|[cv]8 ignore|node:coverage (?:ignore|disable)",
    "eslint": r"eslint-disable|/\*\s*eslint\s+[^*]*:\s*\[?\s*(?:0|['\"]?off)",
    "oxlint": r"(?:oxlint|eslint)-disable",
    "biome": r"biome-ignore",
    "prettier": r"prettier-ignore",
    "stylelint": r"stylelint-disable",
    "tsc": r"@ts-(?:ignore|nocheck|expect-error)",
    "vue-tsc": r"@ts-(?:ignore|nocheck|expect-error)",
    "golangci-lint": r"//\s*nolint|//\s*lint:(?:file-)?ignore|#nosec",
    "staticcheck": r"//\s*lint:(?:file-)?ignore",
    "gosec": r"#nosec",
    "clippy": _RUST,
    "cargo": rf"{_RUST}|rustfmt::skip",
    "rustc": _RUST,
    "rustfmt": r"rustfmt::skip",
    "rubocop": r"rubocop:(?:disable|todo)",
    "phpstan": r"@phpstan-ignore",
    "psalm": r"@psalm-suppress",
    "phpcs": r"phpcs:(?:ignore|disable)",
}
"""Comments by which source is spared a check, by the program that makes it."""
_READ_STUBS: Final = ("mypy", "pyright", "basedpyright", "ty", "pyrefly", "pyre")
_STUB_FOLDERS: Final = ("typings/", "stubs/")


def silenced(path: str, before: str, after: str, commands: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the added lines that a checker is told to pass over, where one of the commands runs just that checker."""
    wanted = [(tool, re.compile(words)) for tool, words in _SILENCED.items() if _is_run(tool, commands)]
    if not wanted or not path.endswith(CODE):
        return
    old = {line.strip() for line in before.splitlines()}
    for n, line in enumerate(after.splitlines(), 1):
        if len(line) <= LONGEST and line.strip() not in old:
            yield from ((n, f"{SILENCES} {tool}") for tool, words in wanted if words.search(line))


def _is_run(tool: str, commands: Sequence[str]) -> bool:
    return any(re.search(rf"(?<![\w./-]){tool}\b(?!\.)|-{tool}\b|/{tool}(?:\s|$)", said) for said in commands)


def stands_for(path: str) -> tuple[str, ...]:
    """Return the source files that type checkers would not look at any more because of this one."""
    if not path.endswith(".pyi"):
        return ()
    beside = path.removesuffix("i")
    for folder in _STUB_FOLDERS:
        beside = beside.removeprefix(folder)
    beside = re.sub(r"-stubs/", "/", beside)
    # A package's own file, or a module of the same name.
    both = (
        (beside, beside.removesuffix("/__init__.py") + ".py")
        if beside.endswith("/__init__.py")
        else (beside,)
    )
    return (*both, *(f"src/{one}" for one in both))


def unseen_by(path: str, files: Collection[str], commands: Sequence[str]) -> str | None:
    """Return the words for a new file that keeps a type checker from the source, None if it does not."""
    tools = [tool for tool in _READ_STUBS if _is_run(tool, commands)]
    if not tools or not any(one in files for one in stands_for(path)):
        return None
    return f"{UNSEEN} {tools[0]}"
