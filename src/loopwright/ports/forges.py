"""Places such as GitHub and GitLab that review and merge branches."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A pull request, or merge request, that exists."""

    n: int
    url: str
    created: bool
    """False when it was there before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A pull request that should exist: at most one per branch."""

    branch: str
    base: str
    title: str
    body: str


class Forge(Protocol):
    """One repository on a forge."""

    async def request(self, wanted: Wanted) -> Request:
        """Find the open request of this branch into its base, or create it; called again it finds its own.

        Raise `Refused` with what to do, or `Busy` when it should be asked again later.
        """
