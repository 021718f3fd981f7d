"""How far what a run starts is kept from the rest of the machine."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal


class Containment(StrEnum):
    """What stands between a run and the machine."""

    NONE = "none"
    """Nothing but what the user's own rights forbid."""
    BUBBLEWRAP = "bubblewrap"
    """Namespaces of its own: it writes only where it was let, and sees no other process."""
    CONTAINER = "container"
    """Namespaces of its own around an image of the user's: of the machine it sees only what it was let see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeWith:
    """What a sandbox was made with: a stranger who doubts it has to know."""

    program: str
    """As it names itself, with its version."""
    image: str = ""
    """As the user calls it; empty where none is needed."""
    image_id: str = ""
    """What that name stood for: the hash by which podman and docker know it."""

    def __str__(self) -> str:
        return f"{self.program}, image {self.image} {self.image_id}" if self.image else self.program


Refusal = Literal["write", "missing", "network"]
"""A write that was refused, a file that is not to be seen, a connection that cannot be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """What a program complained of, as far as its words tell."""

    kind: Refusal
    path: str | None = None
    """Absolute; None when the line names none."""


_WORDS: Final = re.compile(
    r"(?P<write>read-only file system|\bEROFS\b|\[Errno 30\]|os error 30)"
    r"|(?P<missing>no such file or directory|\bENOENT\b)"
    r"|(?P<network>network is unreachable|\bENETUNREACH\b|could not resolve host"
    r"|temporary failure in name resolution|\bEAI_AGAIN\b)",
    re.IGNORECASE,
)
_PATH: Final = re.compile(r"(?<![\w.~/-])(?:/[^\s/'\"`:;,<>()\[\]{}|\\‘’“”]+)+")


def refusals(lines: Iterable[str]) -> Iterator[Refused]:
    """Yield what the lines of a program's output complain of, in their order."""
    for line in lines:
        words = list(_WORDS.finditer(line))
        if words:
            kind: Refusal = words[0].lastgroup  # type: ignore[assignment]
            # Some say "open /x: read-only file system", others "[Errno 30] Read-only file system: '/x'".
            after = _PATH.search(line, words[-1].end())
            before = _PATH.findall(line, 0, words[0].start())
            yield Refused(kind=kind, path=after[0] if after else before[-1] if before else None)
