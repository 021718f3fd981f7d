"""What a run sees of the user's HOME."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HomePath:
    """Something in the user's HOME that an agent needs."""

    path: str
    """Relative to HOME; a folder ends in `/`."""
    writable: bool = False
    """The agent keeps it up to date itself, a login for example: its changes outlive the run."""
    moved_by: str | None = None
    """The variable that names another place for it; where that is set, nothing in HOME is needed."""


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
    """Whatever is not hidden is seen; False: only what is shown or kept."""
    kept: tuple[str, ...] = ()
    """Seen too, and what the run makes of it stays: a file, or with a `/` at its end a folder."""
