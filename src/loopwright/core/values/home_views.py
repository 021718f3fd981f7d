"""What a run sees of the user's HOME, and what it has there of its own."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A file with a login that its program renews. Keys are joined by dots; `*` stands for each key."""

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
