"""How a run is isolated from the rest of the machine."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal


class Containment(StrEnum):
    """The isolation between a run and the machine."""

    NONE = "none"
    """Only the user's own rights."""
    BUBBLEWRAP = "bubblewrap"
    """Its own namespaces: it writes only where it may, and sees no other process."""
    CONTAINER = "container"
    """Its own namespaces and an image of the user: it sees only the parts of the machine that it was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeWith:
    """The program and image of a sandbox, which anyone who verifies the receipt needs to know."""

    program: str
    """Its own name and version."""
    image: str = ""
    """The user's name for it; empty if none is needed."""
    image_id: str = ""
    """The image that the name meant: its hash in podman and docker."""

    def __str__(self) -> str:
        return f"{self.program}, image {self.image} {self.image_id}" if self.image else self.program


Refusal = Literal["write", "missing", "network"]
"""A denied write, a hidden file, or a refused connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """What a program complained about, as far as its output says."""

    kind: Refusal
    path: str | None = None
    """An absolute path; None if the line names none."""


_WORDS: Final = re.compile(
    r"(?P<write>read-only file system|\bEROFS\b|\[Errno 30\]|os error 30)"
    r"|(?P<missing>no such file or directory|\bENOENT\b)"
    r"|(?P<network>network is unreachable|\bENETUNREACH\b|could not resolve host"
    r"|temporary failure in name resolution|\bEAI_AGAIN\b)",
    re.IGNORECASE,
)
_PATH: Final = re.compile(r"(?<![\w.~/-])(?:/[^\s/'\"`:;,<>()\[\]{}|\\‘’“”]+)+")


def refusals(lines: Iterable[str]) -> Iterator[Refused]:
    """Yield the denials in a program's output, in order."""
    for line in lines:
        words = list(_WORDS.finditer(line))
        if words:
            kind: Refusal = words[0].lastgroup  # type: ignore[assignment]
            # Some write "open /x: read-only file system", others "[Errno 30] Read-only file system: '/x'".
            after = _PATH.search(line, words[-1].end())
            before = _PATH.findall(line, 0, words[0].start())
            yield Refused(kind=kind, path=after[0] if after else before[-1] if before else None)


# The parts of the user's HOME that a run sees, and those that are private to it.


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A file with a login that its program renews. Keys are joined by dots; `*` means each key."""

    file: str
    """The path, relative to the agent's folder."""
    at: str = ""
    """The key of the login in the file; empty for the whole file. Only this part is ever copied back."""
    expires: str
    """The key of its expiry or renewal time, below the login: the later time is the newer login."""
    tokens: tuple[str, ...]
    """The keys that a valid login contains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HomePath:
    """A path in the user's HOME that an agent needs: the run gets a copy, which is deleted with the run."""

    path: str
    """Relative to HOME; a folder ends in `/`."""
    moved_by: str | None = None
    """The variable that names another place for it; in the run it points to the copy."""
    below: str = ""
    """Its path below the folder that the variable names; empty if it is that folder."""
    left: tuple[str, ...] = ()
    """Patterns of names that are not copied: the program's own records of its work."""
    sessions: tuple[str, ...] = ()
    """Patterns of names that later runs of the same attempt need: conversations to resume."""
    transcript: str = ""
    """A regular expression for the file of one conversation in it, with `{id}` and `{cwd}`.

    After the run it is copied for the user. Empty if the program stores conversations in another form.
    """
    logins: tuple[Login, ...] = ()
    shared: bool = False
    """Whether it is only read, and too big to copy: the run sees the user's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivatePath:
    """An agent's path that is private to a run."""

    path: str
    """Its path in the run, relative to HOME; a folder ends in `/`."""
    source: str
    """The user's own path."""
    left: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    transcript: str = ""
    logins: tuple[Login, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeView:
    """A HOME for a single run: it links to the contents of the user's own. Paths are relative to it."""

    place: str
    """The value of HOME: a link to the view, the same for all runs in one workspace."""
    real: str
    """The user's own folder."""
    hidden: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    """Visible even below something hidden."""
    everything: bool = True
    """Whether everything that is not hidden is visible; False: only `shown` is."""
    whole: bool = False
    """Whether nothing is hidden, even in a sandbox: the user turned the private HOME off."""
    private: tuple[PrivatePath, ...] = ()
    """What is copied instead of linked."""
    sessions: str = ""
    """The folder in which conversations wait for the next run."""
