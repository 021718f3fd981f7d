"""The program `bd` of the beads tracker: asked and told through its own commands, and believed when it refuses."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from loopwright.adapters.sources.beads import beads_found
from loopwright.adapters.sources.lists.status_words import mark_of as meaning_of
from loopwright.adapters.sources.text.json_edits import storable
from loopwright.adapters.sources.text.reading import read_file
from loopwright.adapters.sources.text.reasons import blocked_note, theirs
from loopwright.core.values.errors import NotTold, Refused
from loopwright.ports import Discovered, ItemProgress, Mark, Progress

LIMIT_S: Final = 30.0
MAX_OUTPUT: Final = 16 * 1024 * 1024
_PATIENCE: Final = 3
"""After so many refusals in one go nothing more is told, until the next time."""

MARKS: Final[Mapping[str, Mark]] = MappingProxyType(
    {
        "open": Mark.OPEN,
        "in_progress": Mark.RUNNING,
        "hooked": Mark.RUNNING,
        "blocked": Mark.BLOCKED,
        "deferred": Mark.BLOCKED,
        "closed": Mark.DONE,
    }
)
"""What each status of the tracker means here. Deleted and pinned issues are not read as tasks."""
ACTOR: Final = "loopwright"
"""The name of Loopwright in the tracker: it leaves issues alone that another name has claimed."""
NO_WORK: Final = frozenset({"tombstone", "pinned"})
RECORDS: Final = frozenset(
    {
        "event", "message", "gate", "agent", "role", "rig", "convoy", "slot", "merge-request", "molecule", "wisp",
    }
)  # fmt: skip
"""Types of issues by which the tracker and its agents keep records: they are not work."""
RECORD_LABELS: Final = frozenset({f"gt:{kind}" for kind in RECORDS})
"""How older versions of a tracker for many agents label them."""
STATUS: Final[Mapping[Mark, str]] = MappingProxyType(
    {
        Mark.OPEN: "open",
        Mark.RUNNING: "in_progress",
        Mark.BLOCKED: "blocked",
        Mark.DONE: "closed",
        Mark.SKIPPED: "closed",
    }
)


_COMMIT: Final = re.compile(r"Done in ([0-9a-f]{7,64})\b")


_CLAIMED: Final = "claimed by "


def mark_of(status: str) -> Mark:
    """Return what a status means here; a project may add words of its own to those of the tracker."""
    return MARKS.get(status) or meaning_of(status) or Mark.BLOCKED


def is_known(status: str) -> bool:
    """Return whether a status has a meaning here, so that it is not just waiting for the user."""
    return status in MARKS or meaning_of(status) is not None


def claimed_by(status: str, assignee: str) -> str:
    """Return why Loopwright leaves an issue alone that another user works on; nothing if none does."""
    if mark_of(status) is not Mark.RUNNING or assignee in ("", ACTOR):
        return ""
    free = "give it the status open, without an assignee, to have it done here"
    return f"{_CLAIMED}{' '.join(assignee.split())}: {free}"


def is_left(status: str, assignee: str, item: ItemProgress) -> bool:
    """Return whether an issue is claimed by another user, so that Loopwright writes nothing to it."""
    not_ours = item.mark is Mark.SKIPPED or (item.mark is Mark.BLOCKED and item.reason.startswith(_CLAIMED))
    return not_ours and bool(claimed_by(status, assignee))


class Bd:
    """The tracker of one project, each command a process of its own with a time limit."""

    def __init__(self, folder: Path, program: str = "bd", limit_s: float = LIMIT_S) -> None:
        self._folder = folder
        self._program = program
        self._limit_s = limit_s

    def issues(self) -> dict[str, Mapping[str, Any]]:
        """Return every issue by its id."""
        # Newer trackers leave closed issues out unless they are asked for.
        found = (*self._issues("list", limit="0"), *self._issues("list", status="closed", limit="0"))
        return {str(one["id"]): one for one in found if "id" in one}

    def exported(self) -> bytes:
        """Return every issue with all that the tracker knows of it, one on a line."""
        with tempfile.TemporaryDirectory(prefix="loopwright-bd-") as folder:
            # Some versions compare what they print with their own file, so print into another one.
            file = Path(folder) / "issues.jsonl"
            arguments = ("export", f"--output={file}")
            code, out, err = self._called(arguments)
            if code != 0 or not file.exists():
                raise self._refused(arguments[:1], _said(out, err) or f"exit code {code}")
            return read_file(file)

    def create(self, found: Discovered, *, linked: bool) -> None:
        """Create an issue for discovered work, and link it to the issue that it was found in."""
        link = {"deps": f"discovered-from:{found.by}"} if linked else {}
        answer = self._run(
            "create",
            title=found.title,
            description=found.reason,
            type="task",
            labels=beads_found.LABEL,
            **link,
        )
        if not any("id" in one for one in _told_of(answer)):
            raise self._refused(("create",), "its answer has no issue")

    def update(self, key: str, status: str, **more: str) -> None:
        """Give an issue a status, and what else is said: who is at work on it, notes."""
        self._become(status, "update", key, status=status, **more)

    def claim(self, key: str, **more: str) -> None:
        """Claim a free issue; the tracker refuses if another user was faster."""
        try:
            self._become("in_progress", "update", key, claim="true", **more)
        except Refused as no:
            if "unknown flag" not in str(no):
                raise
            # An older tracker knows no way to look and to take it in one.
            self.update(key, "in_progress", assignee=ACTOR, **more)

    def close(self, key: str, reason: str) -> None:
        """Close an issue."""
        self._become("closed", "close", key, reason=reason)

    def reopen(self, key: str) -> None:
        """Open an issue that was closed."""
        self._become("open", "reopen", key)

    def _become(self, status: str, command: str, key: str, /, **options: str) -> None:
        """Run a command that gives an issue a status, and believe only an answer in which it has that one."""
        answer = self._run(command, key, **options)
        now = next((str(one.get("status")) for one in _told_of(answer) if one.get("id") == key), "unknown")
        if now != status:
            raise self._refused((command, key), f"the issue is {now}, not {status}")

    def _issues(self, *arguments: str, **options: str) -> tuple[Mapping[str, Any], ...]:
        found = self._run(*arguments, **options)
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise self._refused(arguments, "its answer is not a list of issues")
        return tuple(found)

    def _run(self, *arguments: str, **options: str) -> Any:
        arguments = (*arguments, *(f"--{name}={storable(value)}" for name, value in options.items()))
        if any(one.startswith("-") for one in arguments[: len(arguments) - len(options)]):
            # Ids come out of a file: one that looks like an option must not become one.
            raise self._refused(arguments, "an id may not begin with a dash")
        code, out, err = self._called((*arguments, "--json"))
        return self._answer(arguments, code, out, err)

    def _called(self, arguments: tuple[str, ...]) -> tuple[int, bytes, bytes]:
        try:
            with subprocess.Popen(
                [self._program, *arguments],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "BEADS_ACTOR": ACTOR, "BD_ACTOR": ACTOR},
                start_new_session=True,
            ) as process:
                try:
                    out, err = process.communicate(timeout=self._limit_s)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.communicate()
                    raise self._refused(arguments, f"it did not end within {self._limit_s:g} s") from None
        except (OSError, ValueError) as broken:
            raise self._refused(arguments, f"it cannot be started: {broken}") from broken
        return process.returncode, out, err

    def _answer(self, arguments: tuple[str, ...], code: int, out: bytes, err: bytes) -> Any:
        said = _said(out, err)
        if code != 0:
            raise self._refused(arguments, said or f"exit code {code}")
        if not out.strip():
            # So it refuses a change: it says why beside its answer, has none, and ends well.
            raise self._refused(arguments, said or "it gave no answer")
        try:
            answer = json.loads(out[:MAX_OUTPUT])
        except (ValueError, RecursionError):
            raise self._refused(arguments, f"its answer is not JSON: {said}") from None
        # Some commands end well and say in their answer that they did not do it.
        if isinstance(answer, dict) and answer.get("error"):
            raise self._refused(arguments, str(answer["error"]))
        return answer

    def _refused(self, arguments: tuple[str, ...], why: str) -> Refused:
        shown = " ".join((Path(self._program).name, *arguments))[:200]
        words = " ".join("".join(char if char.isprintable() else " " for char in why).split())[:500]
        return Refused(
            f"`{shown}`: {words}",
            code="tracker_refused",
            hint="fix it in the tracker; Loopwright then writes the status again",
        )


def _said(out: bytes, err: bytes) -> str:
    return err.decode("utf-8", "replace").strip() or out.decode("utf-8", "replace").strip()


def _told_of(answer: Any) -> list[Mapping[str, Any]]:
    """Return the issues in an answer: versions differ in whether one alone is in a list."""
    return [one for one in (answer if isinstance(answer, list) else [answer]) if isinstance(one, dict)]


def is_there(program: str = "bd") -> bool:
    """Return whether the tracker's program is installed."""
    return shutil.which(program) is not None


def tell(folder: Path, progress: Progress, program: str = "bd", limit_s: float = LIMIT_S) -> bool:
    """Write progress to the tracker; return whether its program is there."""
    found = shutil.which(program)
    if found is None:
        return False
    tracker = Bd(folder, found, limit_s)
    present = tracker.issues()
    refused: dict[str, Refused] = {}
    # An issue that was deleted in the meantime gets no status.
    behind = [key for key, item in progress.items.items() if key in present and _differs(present[key], item)]
    for number, key in enumerate(behind, 1):
        try:
            _tell(tracker, key, present[key], progress.items[key])
        except Refused as no:
            # The others are told all the same, unless it seems to refuse everything.
            refused[key] = no
            if len(refused) == _PATIENCE:
                left = (*refused, *behind[number:])
                break
    else:
        left = tuple(refused)
    if left:
        first = refused[left[0]]
        raise NotTold(str(first), hint=first.hint, items=left)
    for one in beads_found.missing(progress, present.values()):
        with _about(one.title):
            tracker.create(one, linked=one.by in present)
    for key, issue in present.items():
        if beads_found.settled(progress, issue):
            with _about(key):
                tracker.close(key, "Decided in the plan in which it was found")
    return True


@contextmanager
def _about(item: str) -> Iterator[None]:
    """Say of a refusal which item it is about."""
    try:
        yield
    except Refused as no:
        raise NotTold(str(no), hint=no.hint, items=(item,)) from no


def _differs(issue: Mapping[str, Any], item: ItemProgress) -> bool:
    """Return whether the status of an issue has to be written to the tracker."""
    status, assignee = str(issue.get("status", "open")), str(issue.get("assignee") or "")
    is_told = mark_of(status) is MARKS[STATUS[item.mark]] or status in NO_WORK
    return not is_told and not is_left(status, assignee, item)


def _tell(tracker: Bd, key: str, issue: Mapping[str, Any], item: ItemProgress) -> None:
    status, wanted = str(issue.get("status", "open")), STATUS[item.mark]
    assignee = str(issue.get("assignee") or "")
    if status == "closed":
        tracker.reopen(key)
    notes = _notes(str(issue.get("notes") or ""), item)
    if wanted == "closed":
        tracker.close(key, closing(item))
    elif wanted == "in_progress" and not assignee:
        tracker.claim(key, **notes)
    elif wanted == "in_progress":
        tracker.update(key, wanted, assignee=ACTOR, **notes)
    elif wanted != "open" or status != "closed":
        tracker.update(key, wanted, **notes)


def _notes(present: str, item: ItemProgress) -> dict[str, str]:
    """Return the notes to give an issue: why it is blocked, or nothing where that was said; a person's stay."""
    wanted = blocked_note(item.reason or "no reason was given") if item.mark is Mark.BLOCKED else ""
    return {"notes": wanted} if wanted != present and not theirs(present).strip() else {}


def closing(item: ItemProgress) -> str:
    """Return why an issue is closed, on one line."""
    if item.mark is Mark.SKIPPED:
        return " ".join(f"Not done: {item.reason or 'no longer wanted'}".split())
    parts = [
        f"Done{f' in {item.commit}' if item.commit else ''}",
        *([item.summary] if item.summary.strip() else []),
    ]
    return " ".join(": ".join(parts).split())


def commit_in(reason: str) -> str | None:
    """Return the commit that `closing` named."""
    found = _COMMIT.match(reason)
    return found[1] if found is not None else None
