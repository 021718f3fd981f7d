"""What a run may do without asking a person: data on the run, and one pure function over it.

Codecs put the requests of every protocol into the same words (a `Wish`), so the same request of two agents gets the
same answer, and the same request of twenty runs is one question.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final, Literal


class Access(StrEnum):
    """How far a run may go by itself."""

    READ_ONLY = "read-only"
    EDIT = "edit"
    SANDBOXED_ALL = "sandboxed-all"


def access_of(mode: str, *, contained: bool) -> Access:
    """Return how far a run may go in a permission mode; `auto` asks for nothing where a sandbox contains it."""
    if mode != "auto":
        return Access(mode)
    return Access.SANDBOXED_ALL if contained else Access.EDIT


KEEPING: Final = frozenset({"permissions", "confines"})
"""What an agent has to be able to, one or the other, to be kept to less than everything without a sandbox."""


def is_kept(access: Access, able: Collection[str], *, contained: bool) -> bool:
    """Return whether anything keeps an agent that is able to this to what it may do."""
    return contained or access is Access.SANDBOXED_ALL or not KEEPING.isdisjoint(able)


def mode_in_words(access: Access, able: Collection[str], *, contained: bool) -> str:
    """Return the permission mode as it is recorded on a run: a promise that nothing keeps is none."""
    return access.value if is_kept(access, able, contained=contained) else f"{access.value} (not kept)"


class Settled(StrEnum):
    """What policy says to a wish."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"


WishKind = Literal["read", "edit", "command", "tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Something that an agent asks permission for."""

    kind: WishKind
    what: str
    """A path, a command line, or a tool's name."""
    inside: bool = True
    """For a path: whether it lies in the workspace."""

    @property
    def key(self) -> str:
        """What makes two wishes the same in any run: paths are relative to the workspace.

        Nothing is normalised: to a shell a line break is not a blank, and in quotes two blanks are not one.
        """
        return f"{self.kind}:{self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """What was decided before a run began. Recorded on it, so that reading its output again decides the same."""

    access: Access = Access.EDIT
    commands: tuple[str, ...] = ()
    """Commands that may be run: words, of which the last may be `*` for any further ones."""
    granted: tuple[str, ...] = ()
    """Keys of wishes that a person said yes to."""
    refused: tuple[str, ...] = ()
    """Keys of wishes that a person said no to."""


LONGEST_ASKED: Final = 16_000
"""A longer wish is denied without asking: a yes would hold for text that no person has read."""

OWN_TOOL: Final = "mcp__loopwright__ask"
"""The tool by which a run asks a person."""

OWN_TOOLS: Final = (OWN_TOOL, "mcp__loopwright__discovered")
"""Loopwright's own tools in a run: they never need permission."""

_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t]+)
    | (?P<quiet>(?<!\S)(?:2>/dev/null|2>&1)(?=[ \t;|&]|$))   # where complaints go changes nothing else
    | (?P<next>&&|\|\||;|\|)
    | '(?P<single>[^'\n]*)'
    | "(?P<double>(?:[^"$`\\\n]|\\[^"$`\\\n])*)"
    | (?P<plain>[^\s'"`$<>(){}\\&;|]+)""",
    re.VERBOSE,
)
"""What a command line may be made of. Other marks let a shell do more than the words say."""


_TEST_RUNNER: Final = re.compile(
    r"(?:(?:uv|poetry|pdm|rye|hatch|pipenv) run |bundle exec |npx )?(?:\S*/)?"
    r"(?:py\.?test|python[\d.]*(?: -[A-Za-z])* -m (?:pytest|unittest)|jest|vitest(?: run)?|node --test|rspec|phpunit"
    r"|go test|cargo test)(?: .*)?"
)
"""A call after which further words only say which tests are run, and how. They run what the agent wrote in any case."""


def settle(permissions: Permissions, wish: Wish) -> Settled:
    """Answer a wish from what is known, or say that a person must."""
    settled = _settled(permissions, wish)
    return Settled.DENY if settled is Settled.ASK and len(wish.what) > LONGEST_ASKED else settled


def _settled(permissions: Permissions, wish: Wish) -> Settled:
    if permissions.access is Access.SANDBOXED_ALL or wish.what in OWN_TOOLS:
        return Settled.ALLOW
    if wish.key in permissions.refused:
        return Settled.DENY
    if wish.key in permissions.granted:
        return Settled.ALLOW
    match wish.kind:
        case "read":
            return Settled.ALLOW
        case "edit" | "command" | "tool" if permissions.access is Access.READ_ONLY:
            return Settled.DENY
        case "edit":
            return Settled.ALLOW if wish.inside and not steers_git(wish.what) else Settled.ASK
        case "command":
            return Settled.ALLOW if may_run(wish.what, permissions.commands) else Settled.ASK
        case _:
            return Settled.ASK


def steers_git(path: str) -> bool:
    """Return whether a file may make git run a command even when git only reads, by `core.fsmonitor` for example.

    Those are the files of a repository, under whatever name; and `HEAD`, without which no folder is taken for one.
    """
    # Some file systems take letters of either case for the same, and pass over those that are not shown.
    named = ["".join(filter(str.isprintable, part)).casefold() for part in path.split("/")]
    return any(part.endswith(".git") for part in named) or named[-1] == "head"


def may_run(line: str, patterns: Sequence[str]) -> bool:
    """Return whether every part of a command line is allowed; what cannot be told from its words is not.

    A line that was allowed word for word may hold anything.
    """
    if line.strip() in patterns or _literal(line.strip()) in patterns:
        return True
    told = parts(line)
    return bool(told) and all(any(_fits(part, pattern) for pattern in patterns) for part in told)


def to_run_checks(checks: Iterable[str]) -> Iterator[str]:
    """Yield the patterns that let an agent run these commands, and nothing that only begins like one of them.

    A test runner may be told more: which tests. To `make` or `npm install` a further word is something else to do.
    """
    for check in checks:
        yield _literal(check)
        told = parts(check)
        if len(told) == 1 and _TEST_RUNNER.fullmatch(" ".join(told[0])):
            yield f"{_literal(check)} *"


def _literal(line: str) -> str:
    """Return the pattern that a line alone fits: in a check `*` is for the shell, and means files."""
    return re.sub(r"[*?\[]", r"[\g<0>]", line)


def parts(line: str) -> list[list[str]]:
    """Split at the shell's separators; empty when the line does something that its words do not tell."""
    found: list[list[str]] = [[]]
    at, fresh = 0, True
    while at < len(line):
        token = _TOKEN.match(line, at)
        if token is None:
            return []
        at = token.end()
        match token.lastgroup:
            case "space" | "quiet":
                fresh = True
            case "next":
                found.append([])
                fresh = True
            case quoting:
                if fresh:
                    found[-1].append("")
                found[-1][-1] += token[quoting or 0]
                fresh = False
    return found if all(found) else []


def _fits(words: list[str], pattern: str) -> bool:
    wanted = pattern.split()
    if wanted and wanted[-1] == "*":
        return len(words) >= len(wanted) - 1 and _same(words[: len(wanted) - 1], wanted[:-1])
    return len(words) == len(wanted) and _same(words, wanted)


def _same(words: Sequence[str], wanted: Sequence[str]) -> bool:
    return all(fnmatchcase(word, pattern) for word, pattern in zip(words, wanted, strict=True))
