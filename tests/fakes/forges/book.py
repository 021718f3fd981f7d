"""What people and checks do on a fake forge: issues, labels, comments, reviews and failed checks."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

ROBOT = "robot"
"""The account of the token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A comment."""

    id: int
    by: str
    text: str
    place: str = ""
    review: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """Something that happened to an issue."""

    what: Literal["labeled", "renamed", "edited"]
    by: str
    at: str
    label: str = ""
    is_person: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A check of a commit."""

    id: int
    name: str
    failed: bool
    running: bool
    text: str


@dataclass(slots=True, kw_only=True)
class FakeIssue:
    """An issue."""

    n: int
    title: str
    body: str
    author: str
    labels: list[str] = field(default_factory=list)
    is_open: bool = True
    history: list[Noted] = field(default_factory=list)


class Book:
    """The issues of the one repository, its accounts, and what is said about its pull requests."""

    def __init__(self) -> None:
        self.writers = {ROBOT}
        self.issues: dict[int, FakeIssue] = {}
        self.said: dict[int, list[Said]] = {}
        """Of issues and requests, by their numbers."""
        self.checks: dict[str, list[Check]] = {}
        """By commit."""
        self.merged: set[int] = set()
        self.head: Callable[[str], str] = lambda branch: branch
        """Returns the commit of a branch."""
        self._ids = 100
        self._now = datetime(2026, 1, 1, tzinfo=UTC)

    def write(self, title: str, body: str, *, by: str = "alice") -> int:
        """Write an issue and return its number."""
        n = len(self.issues) + 1
        self.issues[n] = FakeIssue(n=n, title=title, body=body, author=by)
        return n

    def label(self, n: int, label: str, *, by: str, is_person: bool = True) -> None:
        """Set a label."""
        issue = self.issues[n]
        issue.labels = [*dict.fromkeys((*issue.labels, label))]
        issue.history.append(Noted(what="labeled", by=by, at=self._later(), label=label, is_person=is_person))

    def edit(self, n: int, body: str, *, by: str = "alice") -> None:
        """Change the text of an issue."""
        self.issues[n].body = body
        self.issues[n].history.append(Noted(what="edited", by=by, at=self._later()))

    def rename(self, n: int, title: str, *, by: str = "alice") -> None:
        """Change the title of an issue."""
        self.issues[n].title = title
        self.issues[n].history.append(Noted(what="renamed", by=by, at=self._later()))

    def say(self, n: int, text: str, *, by: str = ROBOT, place: str = "", review: bool = False) -> Said:
        """Comment on an issue or a request."""
        said = Said(id=self._id(), by=by, text=text, place=place, review=review)
        self.said.setdefault(n, []).append(said)
        return said

    def check(
        self, sha: str, name: str, *, failed: bool = False, running: bool = False, text: str = ""
    ) -> None:
        """Let a check of a commit say something; the last one with a name counts."""
        others = [one for one in self.checks.get(sha, []) if one.name != name]
        made = Check(id=self._id(), name=name, failed=failed, running=running, text=text)
        self.checks[sha] = [*others, made]

    def merge(self, n: int) -> None:
        """Merge a request."""
        self.merged.add(n)

    def ours(self, n: int) -> list[str]:
        """Return what the token's account said about an issue or a request."""
        return [one.text for one in self.said.get(n, []) if one.by == ROBOT]

    def _id(self) -> int:
        self._ids += 1
        return self._ids

    def _later(self) -> str:
        self._now += timedelta(minutes=1)
        return self._now.isoformat().replace("+00:00", "Z")
