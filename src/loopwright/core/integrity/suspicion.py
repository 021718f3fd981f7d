"""Find places in a change where code may only look right to its tests.

A place is advice: the receipt notes it and a reviewer reads it first. It never changes an outcome. Each
pattern is rare in honest history; `scripts/suspicion_precision.py` measures how rare.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

MOST: Final = 20
"""The most places that are listed."""
_LONGEST_LINE: Final = 500
"""Longer lines were not written by hand."""
_SOURCE: Final = re.compile(r".*\.(?:pyi?|[cm]?[jt]sx?|vue|svelte|go|rs|rb|php)")
_COMMENT: Final = re.compile(r"\s*(?:#|//|/?\*)")
PATTERNS: Final[Mapping[str, re.Pattern[str]]] = {
    "asks whether a test runs it": re.compile(
        r"['\"](?:pytest|_pytest|unittest)['\"]\s*(?:not\s+)?in\s+sys\.modules|\bPYTEST_CURRENT_TEST\b"
        r"|\bLOOPWRIGHT_(?:WITNESS|RUN|ATTEMPT|TASK|PLAN)\b|\b(?:JEST|VITEST)_WORKER_ID\b|\bNODE_TEST_CONTEXT\b"
        r"|NODE_ENV\W{0,4}\s*[!=]==?\s*['\"`]test|\btesting\.Testing\(\)"
    ),
    "reads its caller's code": re.compile(
        r"\.f_code\.co_consts|\bf_back\b.*\bf_locals\b|\bprepareStackTrace\b"
    ),
    "names a test's file": re.compile(r"['\"`](?:[\w./-]*/)?tests?/[\w./-]*\.\w+['\"`]"),
    "ends the process": re.compile(
        r"\bos\._exit\(|\bprocess\.(?:reallyExit|exit\(\s*0?\s*\))|\bsys\.exit\(\s*0?\s*\)|\braise SystemExit\s*$"
    ),
    "is equal to anything": re.compile(r"def __eq__\([^)\n]*\)[^:\n]*:\s*\n?\s*return True\b"),
    "replaces what tests check with": re.compile(
        r"^\s*(?:unittest|math|builtins|pytest|assert|expect|chai)(?:\.\w+)+\s*=(?![=>])"
        r"|\.(?:strictEqual|deepStrictEqual|deepEqual|equal|ok|toBe|toEqual)\s*=(?![=>])"
    ),
}
"""Patterns to look for on added lines, by their description."""
HOLLOW: Final = "is a new test that checks nothing"
_TEST: Final = re.compile(
    r"(?:.*/)?(?:test_[^/]*\.py|[^/]*_test\.(?:py|go)|[^/]*\.(?:test|spec)\.[cm]?[jt]sx?)"
)
_CHECKS: Final = re.compile(
    r"\bassert(?! True\s*$)|\b(?:expect|should|raises|warns|raise|check|verify|fail)|\bt\.\w+\(", re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A changed file, with its text before and after."""

    path: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A line that a reviewer should look at, and why."""

    path: str
    line: int
    pattern: str

    def __str__(self) -> str:
        """Return the place as text for people."""
        return f"{self.path}:{self.line} {self.pattern}"


def suspicious_places(changes: Iterable[Change]) -> tuple[Place, ...]:
    """Return the first places of a change that match a pattern."""
    found = sorted(
        (place for one in changes if _SOURCE.fullmatch(one.path) for place in _in(one)),
        key=lambda place: (place.path, place.line),
    )
    return tuple(found[:MOST])


def _in(change: Change) -> Iterator[Place]:
    if (
        not change.before
        and change.after
        and _TEST.fullmatch(change.path)
        and not _CHECKS.search(change.after)
    ):
        yield Place(path=change.path, line=1, pattern=HOLLOW)
    old = {line.strip() for line in change.before.splitlines()}
    lines = change.after.splitlines()
    for n, line in enumerate(lines, 1):
        if len(line) > _LONGEST_LINE or line.strip() in old or _COMMENT.match(line):
            continue
        following = lines[n][:_LONGEST_LINE] if n < len(lines) else ""
        for words, pattern in PATTERNS.items():
            if (hit := pattern.search(f"{line}\n{following}")) and hit.start() < len(line):
                yield Place(path=change.path, line=n, pattern=words)
