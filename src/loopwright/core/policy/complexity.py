"""How complex a task is, from its source.

A level that the user gave wins; otherwise these rules decide, as data.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

LEVELS: Final = ("low", "medium", "high")
HIGH_FROM: Final = 3
LOW_TO: Final = 0
_SHORT: Final = 40
_MANY_DEPENDENCIES: Final = 3
_MANY_CHECKS: Final = 5

_SECURITY: Final = frozenset(
    {"auth", "authentication", "authorization", "crypto", "encryption", "login", "password", "passwords"}
    | {"payment", "payments", "permission", "permissions", "secret", "secrets", "security", "token", "tokens"}
)
_DATA: Final = frozenset(
    {"api", "cache", "concurrency", "database", "db", "migration", "migrations", "queue", "schema"}
    | {"service", "services"}
)
_TIDYING: Final = frozenset(
    {"comment", "comments", "docs", "documentation", "readme", "refactor", "refactoring", "rename", "typo"}
)
WORDS: Final[Mapping[str, tuple[int, frozenset[str]]]] = {
    "it is about security": (2, _SECURITY),
    "it is about interfaces or data": (1, _DATA),
    "it only tidies or describes": (-2, _TIDYING),
}
"""Points for words in title and description: each row counts once."""
SMALL: Final = frozenset({"simple", "minor", "small", "trivial"})
"""Any of these words in the title takes away one point."""
_WORD: Final = re.compile(r"[a-z]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Complexity:
    """A level, and the reason."""

    level: str
    why: tuple[str, ...]


def complexity_of(
    *, title: str, description: str, kind: str, dependencies: int, checks: int, said: str | None
) -> Complexity:
    """Return how complex a task is."""
    if said in LEVELS:
        return Complexity(level=str(said), why=("a person said so",))
    words = set(_WORD.findall(f"{title} {description} {kind}".lower()))
    points = [(worth, why) for why, (worth, meant) in WORDS.items() if words & meant]
    if dependencies > _MANY_DEPENDENCIES:
        points.append((1, f"it waits for {dependencies} others"))
    if checks > _MANY_CHECKS:
        points.append((1, f"it has {checks} checks"))
    if set(_WORD.findall(title.lower())) & SMALL:
        points.append((-1, "its title calls it small"))
    if len(description) < _SHORT:
        points.append((-1, "it is described in few words"))
    score = sum(worth for worth, _ in points)
    level = "high" if score >= HIGH_FROM else "low" if score <= LOW_TO else "medium"
    return Complexity(level=level, why=tuple(why for _, why in points))
