"""What a run may do without asking the user: data on the run, and one pure function over it.

Codecs translate the requests of every protocol into a `Wish`, so that the same request of two agents gets the
same answer, and the same request of twenty runs is one question.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final, Literal


class Access(StrEnum):
    """How much a run may do without asking."""

    READ_ONLY = "read-only"
    EDIT = "edit"
    SANDBOXED_ALL = "sandboxed-all"


def access_of(mode: str, *, contained: bool) -> Access:
    """Return the access for a permission mode; `auto` asks for nothing if a sandbox contains the agent."""
    if mode != "auto":
        return Access(mode)
    return Access.SANDBOXED_ALL if contained else Access.EDIT


KEEPING: Final = frozenset({"permissions", "confines"})
"""The abilities that limit an agent without a sandbox; one of them is enough."""


def is_kept(access: Access, able: Collection[str], *, contained: bool) -> bool:
    """Return whether anything enforces limits on an agent with these abilities."""
    return contained or access is Access.SANDBOXED_ALL or not KEEPING.isdisjoint(able)


def mode_in_words(access: Access, able: Collection[str], *, contained: bool) -> str:
    """Return the permission mode for the record of a run, which says if nothing enforces it."""
    return access.value if is_kept(access, able, contained=contained) else f"{access.value} (not kept)"


class Settled(StrEnum):
    """The decision of policy about a wish."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"


WishKind = Literal["read", "edit", "command", "tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A permission that an agent requests."""

    kind: WishKind
    what: str
    """A path, a command line, or a tool's name."""
    inside: bool = True
    """For a path: whether it is in the workspace."""

    @property
    def key(self) -> str:
        """Equal for equal wishes in any run: paths are relative to the workspace.

        Nothing is normalised: to a shell, a line break is not a space, and in quotes two spaces are not one.
        """
        return f"{self.kind}:{self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """What was decided before a run began.

    It is recorded on the run, so that its output always leads to the same decisions.
    """

    access: Access = Access.EDIT
    commands: tuple[str, ...] = ()
    """Allowed commands as words; the last may be `*` for any further words."""
    granted: tuple[str, ...] = ()
    """Keys of wishes that the user granted."""
    refused: tuple[str, ...] = ()
    """Keys of wishes that the user denied."""


LONGEST_ASKED: Final = 16_000
"""A longer wish is denied without asking: the user would not read all that a yes allows."""

OWN_TOOL: Final = "mcp__loopwright__ask"
"""The tool with which a run asks the user."""

OWN_TOOLS: Final = (OWN_TOOL, "mcp__loopwright__discovered")
"""Loopwright's own tools in a run: they never need permission."""

LOOP_TOOLS: Final = "mcp__loops"
"""The server of the tools for loops in a run of a manager or an orchestrator: their token limits them."""

_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t]+)
    | (?P<quiet>(?<!\S)(?:2>/dev/null|2>&1)(?=[ \t;|&]|$))   # where complaints go changes nothing else
    | (?P<next>&&|\|\||;|\|)
    | '(?P<single>[^'\n]*)'
    | "(?P<double>(?:[^"$`\\\n]|\\[^"$`\\\n])*)"
    | (?P<plain>[^\s'"`$<>(){}\\&;|]+)""",
    re.VERBOSE,
)
"""The characters of a plain command line. Others let a shell do more than the words say."""


_TEST_RUNNER: Final = re.compile(
    r"(?:(?:uv|poetry|pdm|rye|hatch|pipenv) run |bundle exec |npx )?(?:\S*/)?"
    r"(?:py\.?test|python[\d.]*(?: -[A-Za-z])* -m (?:pytest|unittest)|jest|vitest(?: run)?|node --test|rspec|phpunit"
    r"|go test|cargo test)(?: .*)?"
)
"""Calls of test runners, after which further words only select tests and options.

They run the agent's code in any case.
"""


def settle(permissions: Permissions, wish: Wish) -> Settled:
    """Answer a wish from what is known, or return that the user must decide."""
    settled = _settled(permissions, wish)
    return Settled.DENY if settled is Settled.ASK and len(wish.what) > LONGEST_ASKED else settled


def _settled(permissions: Permissions, wish: Wish) -> Settled:
    is_ours = wish.what in OWN_TOOLS or wish.what.startswith(f"{LOOP_TOOLS}__")
    if permissions.access is Access.SANDBOXED_ALL or is_ours:
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

    Those are the files of a repository, under any name, and `HEAD`, without which a folder is not a
    repository.
    """
    # Some file systems ignore case and invisible characters.
    named = ["".join(filter(str.isprintable, part)).casefold() for part in path.split("/")]
    return any(part.endswith(".git") for part in named) or named[-1] == "head"


def may_run(line: str, patterns: Sequence[str]) -> bool:
    """Return whether every part of a command line is allowed; unclear parts are not.

    A line that was allowed literally may contain anything.
    """
    if line.strip() in patterns or _literal(line.strip()) in patterns:
        return True
    told = parts(line)
    return bool(told) and all(any(_fits(part, pattern) for pattern in patterns) for part in told)


def to_run_checks(checks: Iterable[str]) -> Iterator[str]:
    """Yield the patterns that let an agent run these commands, and nothing that only begins like one of them.

    A test runner may get more words, which select tests. For `make` or `npm install`, another word is another
    job.
    """
    for check in checks:
        yield _literal(check)
        told = parts(check)
        if len(told) == 1 and _TEST_RUNNER.fullmatch(" ".join(told[0])):
            yield f"{_literal(check)} *"


def _literal(line: str) -> str:
    """Return the pattern that matches only this line: in a check, `*` is for the shell and means files."""
    return re.sub(r"[*?\[]", r"[\g<0>]", line)


def parts(line: str) -> list[list[str]]:
    """Split at the shell's separators; empty if the line does something that its words do not show."""
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
