"""The recovery ladder: what is tried next for a stage that left no result, and when trying ends."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Literal

from loopwright.core.orchestrator.records import Retry, RetryRecord

SAME_MECHANISM: Final = 3
"""After so many tries in one way, another lawful way is next."""
OBSERVATIONS: Final = 3
"""So many observations without a change make a stage non-observable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What the last observation of a live stage showed, and how many after it showed the same."""

    sign: str
    unchanged: int = 0

    @property
    def is_lost(self) -> bool:
        """Return whether the stage is not observable any more. Its agent is not interrupted: a limit may end it."""
        return self.unchanged >= OBSERVATIONS


def watched(before: Watched | None, sign: str) -> Watched | None:
    """Return a stage after one more observation; None where no agent works, so that nothing could change."""
    if not sign:
        return None
    return Watched(sign=sign, unchanged=before.unchanged + 1 if before and before.sign == sign else 0)


class Rung(StrEnum):
    """What to do, from the cheapest up."""

    RESUME = "resume from what the files prove"
    RECREATE = "recreate the worktree"
    INVESTIGATE = "ask the recovery investigator"
    SAME_ROLE = "delegate the stage again"
    FRESH_AGENT = "delegate the stage to another agent"
    STEP_BACK = "return to the stage whose files are gone"
    BLOCK = "record the blockage"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What was observed, after everything was read again."""

    has_worktree: bool = True
    is_proven: bool = False
    is_investigated: bool = False
    """Whether the investigator already diagnosed this try, or cannot be started at all."""
    is_undermined: bool = False
    """Whether files are gone that the stage builds on and its role may not write."""
    may_step_back: bool = False
    """Whether the table leads from the stage to an earlier one."""
    retry: Retry | None = None


def next_rung(trouble: Trouble) -> Rung:
    """Return the lowest rung that is left."""
    if not trouble.has_worktree:
        return Rung.RECREATE
    if trouble.is_proven:
        return Rung.RESUME
    if not trouble.is_investigated:
        return Rung.INVESTIGATE
    if trouble.is_undermined:
        # The same stage cannot make what an earlier one has to.
        return Rung.STEP_BACK if trouble.may_step_back else Rung.BLOCK
    retry = trouble.retry
    if retry is None or retry.same_mechanism < SAME_MECHANISM:
        return Rung.SAME_ROLE if retry is None or retry.mechanism == "same-role" else Rung.FRESH_AGENT
    return Rung.FRESH_AGENT if retry.mechanism == "same-role" else Rung.BLOCK


def tried_again(
    before: Retry | None,
    *,
    subject_id: str,
    stage: str,
    mechanism: Literal["same-role", "fresh-agent"],
    reason: str,
    is_review: bool = False,
) -> Retry:
    """Return the record of one more try; the attempt never starts over, because plans are known by it."""
    cycles = (before.review_cycles if before else 0) + is_review
    attempt = (before.attempt if before else 1) + 1
    is_same = before is not None and before.mechanism == mechanism and before.stage == stage
    return Retry(
        subject_id=subject_id,
        stage=stage,
        mechanism=mechanism,
        attempt=attempt,
        same_mechanism=(before.same_mechanism + 1) if before is not None and is_same else 1,
        review_cycles=cycles,
        reason=" ".join(reason.split())[:2_000],
    )


def with_retry(record: RetryRecord | None, retry: Retry) -> RetryRecord:
    """Return the record with the newest retry of its subject."""
    others = without_retry(record, retry.subject_id)
    entries = (*(others.entries if others else ()), retry)
    return RetryRecord(schema_version="retry-v1", entries=entries)


def without_retry(record: RetryRecord | None, subject_id: str) -> RetryRecord | None:
    """Return the record without a subject; None when nothing is left."""
    left = tuple(one for one in (record.entries if record else ()) if one.subject_id != subject_id)
    return replace(record, entries=left) if record and left else None
