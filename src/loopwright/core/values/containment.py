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
    """Its own namespaces: it writes only where it may, and sees no other process."""
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
    """What that name meant then: the hash by which podman and docker know it."""

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


# What a run sees of the user's HOME, and what is private to it there.


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A file with a login that its program renews. Keys are joined by dots; `*` means each key."""

    file: str
    """Relative to the agent's folder."""
    at: str = ""
    """Where in the file the login is; empty: it is the whole file. Only that is ever carried back."""
    expires: str
    """Where below that its expiry or the time of its renewal is: the later one is the newer login."""
    tokens: tuple[str, ...]
    """What a login has that is not logged out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HomePath:
    """Something in the user's HOME that an agent needs: the run gets a copy of it, which vanishes with the run."""

    path: str
    """Relative to HOME; a folder ends in `/`."""
    moved_by: str | None = None
    """The variable that names another place for it; in the run it names the copy."""
    below: str = ""
    """Where it is below the folder that the variable names; empty: it is that folder."""
    left: tuple[str, ...] = ()
    """Patterns of names in it that are not copied: what the program writes down of its own work."""
    sessions: tuple[str, ...] = ()
    """Patterns of names in it that later runs of the same attempt find again: conversations to resume."""
    transcript: str = ""
    """A regular expression for the file of one conversation in it, with `{id}` and `{cwd}`: after the run the user has
    a copy of it. Empty: the program keeps them in another form."""
    logins: tuple[Login, ...] = ()
    shared: bool = False
    """It is only read, and too big to copy: the run sees the user's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivatePath:
    """Something of an agent's that is private to a run."""

    path: str
    """Where the run has it, relative to its HOME; a folder ends in `/`."""
    source: str
    """The user's own."""
    left: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    transcript: str = ""
    logins: tuple[Login, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeView:
    """A HOME for one run alone: what is in the user's own is seen in it through links. Paths are relative to it."""

    place: str
    """What HOME is set to: a link to the view, the same for all runs in one workspace."""
    real: str
    """The user's own folder."""
    hidden: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    """Seen even below something hidden."""
    everything: bool = True
    """Whatever is not hidden is seen; False: only what is shown."""
    whole: bool = False
    """Nothing is hidden, in a sandbox neither: the user turned the private HOME off."""
    private: tuple[PrivatePath, ...] = ()
    """What is copied instead of being linked."""
    sessions: str = ""
    """The folder in which conversations wait for the next run."""
