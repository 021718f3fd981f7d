"""Issues of a forge, and the comments and checks of a pull request."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """An issue with a label, and its history."""

    n: int
    url: str
    title: str
    body: str
    author: str
    labels: tuple[str, ...]
    is_open: bool
    labelled_by: str
    """The account that set the label last; empty for a program or an unknown account."""
    labelled_at: datetime | None
    """When it was set last; None if it never was."""
    edited_at: datetime | None
    """When the title or the text was changed last; None if never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A comment on an issue or on a pull request."""

    id: str
    author: str
    text: str
    place: str = ""
    """FILE:LINE of a comment on a change; else empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedCheck:
    """A check of a commit that failed."""

    id: str
    name: str
    text: str
    """Its own explanation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """The results of a commit's checks."""

    running: bool
    failed: tuple[FailedCheck, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestStatus:
    """The status of a pull request."""

    state: Literal["open", "merged", "closed"]
    head: str
    """The commit that it is about."""


class Issues(Protocol):
    """The issues and pull requests of one repository on a forge.

    Every method raises `Refused` with what to do, or `Busy` if it should be called again later.
    """

    @property
    def name(self) -> str:
        """The host and the path of the repository."""

    async def labelled(self, label: str) -> Sequence[int]:
        """Return the numbers of the open issues with a label, the lowest first."""

    async def issue(self, n: int, label: str) -> Issue:
        """Return an issue; its text is never newer than what `edited_at` says."""

    async def may_write(self, account: str) -> bool:
        """Return whether an account may write to the repository."""

    async def remarks(self, n: int) -> Sequence[Remark]:
        """Return the comments on an issue, the oldest first."""

    async def comment(self, n: int, text: str) -> None:
        """Comment on an issue."""

    async def change(self, n: int, *, labels: Sequence[str], close: bool = False) -> None:
        """Give an issue these labels and no others; with `close`, close it."""

    async def request_status(self, n: int) -> RequestStatus:
        """Return the status of a pull request."""

    async def request_remarks(self, n: int) -> Sequence[Remark]:
        """Return the unresolved comments on a pull request, the oldest first."""

    async def request_comment(self, n: int, text: str) -> None:
        """Comment on a pull request."""

    async def checks(self, sha: str) -> Checks:
        """Return the results of a commit's checks."""
