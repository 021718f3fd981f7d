"""Who may do what over the network: scopes, and the caller with a token."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Scope(StrEnum):
    """How much a token allows. Each scope includes the ones before it."""

    READ = "read"
    """See everything of the projects."""
    OPERATE = "operate"
    """Start, steer and answer work with what the projects have already registered."""
    ADMIN = "admin"
    """Also define commands, environments, sandboxes, paths, remotes and tokens."""


_RANKS: Final = {scope: rank for rank, scope in enumerate(Scope)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What limits the work that a token creates, besides its scope: what it costs, and how deep it nests."""

    token_id: str
    """The token that the work is charged to."""
    depth: int | None = None
    """How many levels of loops may still be created; None for any number."""
    run_id: str | None = None
    """The run that the token is used in, if it is one."""

    @property
    def inner_depth(self) -> int | None:
        """Return the depth that agents have in what is created now."""
        return None if self.depth is None else max(0, self.depth - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The holder of a token."""

    token_id: str
    name: str
    scope: Scope
    projects: frozenset[str] | None = None
    """The projects that it may see; None for all of them."""
    bounds: Bounds | None = None
    """None if nothing limits what it creates."""

    @property
    def actor(self) -> str:
        """What the record calls it."""
        return f"token:{self.name}" if self.token_id else self.name

    def may(self, scope: Scope) -> bool:
        """Return whether the token includes a scope."""
        return _RANKS[self.scope] >= _RANKS[scope]

    def sees(self, project_id: str | None) -> bool:
        """Return whether something of this project exists for the caller; None is something of the whole home."""
        if self.projects is None:
            return True
        return project_id is not None and project_id in self.projects


OWNER: Final = Caller(token_id="", name="terminal", scope=Scope.ADMIN)
"""You, at the terminal."""
