"""The most likely cause of a task's final failure, from the results of its attempts, and commands that may help.

It is deterministic: each attempt votes for a cause class by its failure class, or by the output of its
checks.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from loopwright.core.gates.verdicts import command_id, is_bad, is_of, refused_commands
from loopwright.core.healing.earlier_tries import Try, masked, without_folders
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Check, CommandResult, Verdict
from loopwright.core.values.healing import MEANINGS, Cause
from loopwright.core.values.wording import command, counted, on_one_line, one_line

LEAST: Final = 2
"""A single attempt is not enough evidence to name a cause in the reason of a task."""
_MANY_FILES: Final = 20
"""An attempt that changes more files than this did not stay within one task."""
_SHOWN: Final = 300
_HASH: Final = 16
"""The number of hexadecimal digits that identify a signature."""
_PATHS: Final = 20


_BY_FAILURE: Final[Mapping[Failure, Cause]] = MappingProxyType(
    {
        **dict.fromkeys((Failure.TURNS, Failure.CONTEXT, Failure.TIMEOUT), Cause.TOO_LARGE),
        **dict.fromkeys((Failure.REFUSAL, Failure.MODEL), Cause.MODEL),
        **dict.fromkeys((Failure.CONFLICT, Failure.TOGETHER), Cause.DEPENDENCY),
        **dict.fromkeys(
            (Failure.NO_CHANGE, Failure.REVIEW, Failure.LOOK, Failure.STRAY_WRITE), Cause.UNCLEAR
        ),
        **dict.fromkeys(
            (
                Failure.AGENT_ERROR, Failure.TOOL, Failure.HANG, Failure.CANNOT_CHECK, Failure.CANNOT_START,
                Failure.SETUP, Failure.HOST_LOST, Failure.CRASH, Failure.ENVIRONMENT, Failure.LINKED_GIT,
                Failure.UNRECORDABLE, Failure.AUTH, Failure.BILLING, Failure.OVERLOADED, Failure.RATE_LIMIT,
                Failure.USAGE_LIMIT,
            ),
            Cause.ENVIRONMENT,
        ),
    }
)  # fmt: skip
"""The cause that a failure class suggests; for a gate, its output decides."""

ASKS: Final = frozenset(
    {
        Failure.UNANSWERED,
        Failure.UNVERIFIED,
        Failure.CONTRADICTION,
        Failure.BUDGET,
        Failure.ISSUES,
        Failure.CANCELLED,
    }
)
"""Failures that already name the missing decision: there is nothing to diagnose."""

_NOT_RUN: Final = (126, 127)
"""Exit codes of a shell that could not run a command."""
_MACHINE: Final = re.compile(
    r"no space left|permission denied|connection refused|ECONNREFUSED|address already in use|could not resolve host"
    r"|temporary failure in name resolution|read-only file system|out of memory|command not found",
    re.IGNORECASE,
)
_MISSING: Final = re.compile(
    r"no module named|cannot import name|cannot find (?:module|package)|unresolved import|module not found"
    r"|is not in (?:std|GOROOT)|could not find a version",
    re.IGNORECASE,
)
_TELLING: Final = re.compile(r"error|fail|assert|exception|not found|no such|refused|denied", re.IGNORECASE)
_FILE: Final = re.compile(r"(?<![\w/])(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.[a-z]{1,5}(?=$|[\s:,\"')\]])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Where and how the newest attempt failed, without details that differ between runs."""

    step: str
    """The command of the gate that failed, else the failure class."""
    test: str = ""
    file: str = ""
    error: str
    id: str = ""
    """A hash of the other fields: two failures with the same id failed in the same way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """One command that may help."""

    command: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Why a task most likely failed, and what you can do about it."""

    cause: Cause
    because: str
    """The cause in words, and how many attempts suggest it."""
    signature: Signature
    repeated: int
    """How many of the newest attempts failed in the same way."""
    tried: tuple[Try, ...]
    """What each attempt tried, bounded."""
    fixes: tuple[Fix, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """An attempt with its gate's verdict; None if no gate ran."""

    tried: Try
    verdict: Verdict | None = None


def diagnose(seen: Sequence[Seen], *, name: str, title: str) -> Diagnosis | None:
    """Return the diagnosis of a task that failed for good; None if no attempt failed.

    `name` is what the user types for the task.
    """
    if not seen:
        return None
    signatures = [signature(one) for one in seen]
    same = next((n for n, one in enumerate(reversed(signatures)) if one != signatures[-1]), len(signatures))
    votes = Counter(voted for one in seen if (voted := vote(one)) is not None)
    # A tie goes to the cause of the newest attempt.
    newest = next((voted for one in reversed(seen) if (voted := vote(one)) is not None), None)
    if newest is None:
        cause = Cause.MODEL if same >= LEAST else Cause.UNCLEAR
        how = (
            f"the last {same} attempts failed in the same way"
            if cause is Cause.MODEL
            else f"{counted(len(seen), 'attempt')} failed, none like the one before"
            if len(seen) > 1
            else "the only attempt failed"
        )
    else:
        cause = max(votes, key=lambda one: (votes[one], one is newest))
        how = f"{votes[cause]} of {counted(len(seen), 'attempt')}"
    return Diagnosis(
        cause=cause,
        because=f"{MEANINGS[cause]} ({how})",
        signature=signatures[-1],
        repeated=same,
        tried=tuple(_bounded(one.tried) for one in seen),
        fixes=fixes(cause, name=name, title=title),
    )


def vote(seen: Seen) -> Cause | None:
    """Return the cause that one failed attempt suggests; None if it suggests none."""
    tried = seen.tried
    if tried.failure is not Failure.GATE:
        return _BY_FAILURE.get(tried.failure)
    failed = refused_commands(seen.verdict) if seen.verdict is not None else []
    said = "\n".join([tried.found, *(one.tail for one in failed)])
    if seen.verdict is not None and any(one.flaky for one in seen.verdict.commands):
        return Cause.FLAKY
    if any(one.exit_code in _NOT_RUN for one in failed) or _MACHINE.search(said):
        return Cause.ENVIRONMENT
    if _MISSING.search(said):
        return Cause.DEPENDENCY
    return Cause.TOO_LARGE if len(tried.touched) > _MANY_FILES else None


def signature(seen: Seen) -> Signature:
    """Return where and how an attempt failed."""
    found = _unsigned(seen)
    said = "\0".join((found.step, found.test, found.file, found.error))
    return replace(found, id=hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:_HASH])


def _unsigned(seen: Seen) -> Signature:
    bad = [one for one in seen.verdict.checks if is_bad(one)] if seen.verdict is not None else []
    failed = refused_commands(seen.verdict) if seen.verdict is not None else []
    if seen.tried.failure is not Failure.GATE or seen.verdict is None or not (bad or failed):
        found = seen.tried.found
        return Signature(
            step=seen.tried.failure.value, file=_file(found), error=one_line(masked(_telling(found)), _SHOWN)
        )
    check = bad[0] if bad else None
    step = _command(check, seen.verdict) or (failed[0] if failed else None)
    printed = step.tail if step is not None else ""
    test = check.name if check is not None and step is not None and check.name != step.name else ""
    error = (check.message if check is not None and test else "") or printed or seen.tried.found
    return Signature(
        step=on_one_line(step.name) if step is not None else seen.tried.failure.value,
        test=one_line(test, _SHOWN),
        file=_file(f"{test.partition('::')[0]}\n{error}\n{printed}"),
        error=one_line(masked(_telling(error)), _SHOWN),
    )


def _command(check: Check | None, verdict: Verdict) -> CommandResult | None:
    if check is None:
        return None
    numbered = enumerate(verdict.commands, 1)
    return next((one for n, one in numbered if is_of(check, command_id(n, one.name))), None)


def _telling(text: str) -> str:
    """Return the line of a text that states the error: the last one that looks like it, else the last one."""
    lines = [line for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if _TELLING.search(line)]
    return (telling or lines or [""])[-1]


def _file(text: str) -> str:
    found = _FILE.search(without_folders(text))
    return found[0] if found else ""


def _bounded(tried: Try) -> Try:
    return replace(
        tried,
        touched=tried.touched[:_PATHS],
        said=one_line(tried.said, _SHOWN),
        found=one_line(tried.found, _SHOWN),
    )


def fixes(cause: Cause, *, name: str, title: str) -> tuple[Fix, ...]:
    """Return the commands that may help against a cause, the most useful one first."""
    noted = command("retry", name, note="…")
    model, agent = command("retry", name, model="NAME"), command("retry", name, agent="NAME")
    by_hand = Fix(command=command("take-over", name), why="do it yourself, and hand your work in")
    match cause:
        case Cause.UNCLEAR:
            return (
                Fix(command=noted, why="say what it must do, and how you will see that it is done"),
                by_hand,
            )
        case Cause.TOO_LARGE:
            split = Fix(command=command("plan", title), why="have it planned as several smaller tasks")
            return (
                split,
                Fix(command=noted, why="name the part to do first"),
                Fix(command=model, why="let a model with more room try"),
            )
        case Cause.ENVIRONMENT:
            return (
                Fix(command=command("doctor"), why="check what this machine lacks"),
                Fix(command=command("logs", name), why="what the agent and the check printed"),
                Fix(command=command("retry", name), why="try again once that is fixed"),
            )
        case Cause.DEPENDENCY:
            return (
                Fix(command=command("logs", name), why="which module or which other work it misses"),
                Fix(command=noted, why="name what it needs, or install it with the setting `setup`"),
            )
        case Cause.FLAKY:
            return (
                Fix(command=command("stats", "flaky"), why="which checks passed and failed on the same tree"),
                Fix(command=command("retry", name), why="try again once the check is steady"),
            )
        case _:
            return (
                Fix(command=model, why="let another model try"),
                Fix(command=agent, why="let another agent try"),
            )
