"""Access over the network: scopes, and the caller with a token."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Scope(StrEnum):
    """How much a token allows. Each scope includes the ones before it."""

    READ = "read"
    """See everything of the projects."""
    OPERATE = "operate"
    """Start, steer and answer work within what the projects have already registered."""
    ADMIN = "admin"
    """Also define commands, environments, sandboxes, paths, remotes and tokens."""


_RANKS: Final = {scope: rank for rank, scope in enumerate(Scope)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits of the work that a token creates, besides its scope: its cost, and its nesting depth."""

    token_id: str
    """The token that the work is charged to."""
    depth: int | None = None
    """How many levels of nested loops may still be created; None for any number."""
    steers: bool = False
    """Whether it may also continue work that was not created with the token."""
    run_id: str | None = None
    """The run that uses the token, if any."""

    @property
    def inner_depth(self) -> int | None:
        """Return the depth for agents of what is created now."""
        return None if self.depth is None else max(0, self.depth - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The holder of a token."""

    token_id: str
    name: str
    scope: Scope
    projects: frozenset[str] | None = None
    """The projects that it can see; None for all of them."""
    bounds: Bounds | None = None
    """None if nothing limits what it creates."""

    @property
    def actor(self) -> str:
        """Its name in the record."""
        return f"token:{self.name}" if self.token_id else self.name

    def may(self, scope: Scope) -> bool:
        """Return whether the token includes a scope."""
        return _RANKS[self.scope] >= _RANKS[scope]

    def sees(self, project_id: str | None) -> bool:
        """Return whether the caller can see something of this project; None is something of the whole home."""
        if self.projects is None:
            return True
        return project_id is not None and project_id in self.projects


OWNER: Final = Caller(token_id="", name="terminal", scope=Scope.ADMIN)
"""You, at the terminal."""
