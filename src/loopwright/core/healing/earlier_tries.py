"""What earlier attempts at a task tried and how each failed, for the next attempt's prompt and for a diagnosis."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from loopwright.core.rows.model import Attempt
from loopwright.core.values.failures import RULES, Failure
from loopwright.core.values.healing import CONSULTS
from loopwright.core.values.states import AttemptState
from loopwright.core.values.wording import listed, on_one_line, one_line

MOST: Final = 5
"""The most attempts that are described: the newest ones."""
_FOUND: Final = 600
_SAID: Final = 300
_PATHS: Final = 8

# Details that differ between runs of the same failure: times, addresses, temporary paths, hashes, numbers.
_FOLDERS: Final = re.compile(r"(?<![\w./])(?:/[\w.@+-]+){2,}/")
_MASKS: Final = (
    (re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{7,64}\b"), "<id>"),
    (re.compile(r"(?<!\w)\d+(?:[.:,]\d+)*"), "<n>"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """One attempt that was judged and did not land."""

    n: int
    agent: str
    model: str | None = None
    failure: Failure
    touched: tuple[str, ...] = ()
    said: str = ""
    """What its agent said at the end: a claim."""
    found: str = ""
    """What was wrong with its work."""

    @property
    def mark(self) -> str:
        """Identify how it failed, to recognise the same failure in another attempt."""
        return f"{self.failure.value}: {masked(self.found)}"


def without_folders(text: str) -> str:
    """Return a text with absolute paths reduced to file names."""
    return _FOLDERS.sub("", text)


def masked(text: str) -> str:
    """Return an error without details that differ between runs."""
    line = without_folders(one_line(text, 2_000)).lower()
    for pattern, instead in _MASKS:
        line = pattern.sub(instead, line)
    return line


def tries(attempts: Sequence[Attempt], said: Mapping[str, str]) -> tuple[Try, ...]:
    """Return the attempts whose work was judged and rejected, the oldest first; `said` has a text for each id.

    The finding is on the row of the following attempt, whose prompt contained it in full.
    """
    ordered = sorted(attempts, key=lambda one: one.n)
    # An attempt that only answers judges nothing, and carries the finding of the one before it.
    told = {one.n - 1: one.evidence for one in ordered}
    return tuple(
        _try(one, one.failure, said, told.get(one.n, one.detail))
        for one in ordered
        if one.state is AttemptState.REJECTED and one.failure is not None and one.healing not in CONSULTS
    )


def failed_tries(attempts: Sequence[Attempt], said: Mapping[str, str]) -> tuple[Try, ...]:
    """Return every attempt that failed, including those where the machine was at fault, the oldest first."""
    ended = (AttemptState.REJECTED, AttemptState.BROKEN)
    return tuple(
        _try(one, one.failure, said, one.detail)
        for one in sorted(attempts, key=lambda one: one.n)
        if one.state in ended and one.failure is not None and one.healing not in CONSULTS
    )


def _try(attempt: Attempt, failure: Failure, said: Mapping[str, str], found: str) -> Try:
    return Try(
        n=attempt.n,
        agent=attempt.agent,
        model=attempt.model,
        failure=failure,
        touched=attempt.touched,
        said=said.get(attempt.id, ""),
        found=found or RULES[failure].advice,
    )


def repeated(found: Sequence[Try]) -> int:
    """Return how many of the newest attempts failed in the same way."""
    return next((n for n, one in enumerate(reversed(found)) if one.mark != found[-1].mark), len(found))


def words(found: Sequence[Try], *, known: str = "") -> str:
    """Return what each attempt tried and how it failed, bounded; `known` is what the agent reads anyway."""
    parts = [f"({len(found) - MOST} older attempts are left out.)"] if len(found) > MOST else []
    for one in found[-MOST:]:
        who = " ".join(filter(None, (one.agent, one.model)))
        changed = listed([on_one_line(path) for path in one.touched], _PATHS) if one.touched else "nothing"
        lines = [f"Attempt {one.n} ({who}) changed {changed}."]
        if one.said:
            lines.append(f"  Its agent said: {one_line(one.said, _SAID)}")
        why = "as above" if one.found == known else one_line(one.found, _FOUND)
        parts.append("\n".join([*lines, f"  It failed ({one.failure.value}): {why}"]))
    return "\n".join(parts)
