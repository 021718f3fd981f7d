"""The recovery ladder: what to try next for a stage without a result, and when to stop trying."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Literal

from loopwright.core.orchestrator.records import Retry, RetryRecord

SAME_MECHANISM: Final = 3
"""After this many tries in one way, another allowed way is next."""
OBSERVATIONS: Final = 3
"""After this many observations without a change, a stage is non-observable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What the last observation of a live stage showed, and how many later ones showed the same."""

    sign: str
    unchanged: int = 0

    @property
    def is_lost(self) -> bool:
        """Return whether the stage is no longer observable.

        Its agent is not interrupted: a limit may end it.
        """
        return self.unchanged >= OBSERVATIONS


def watched(before: Watched | None, sign: str) -> Watched | None:
    """Return a stage after one more observation; None if no agent works, so that nothing could change."""
    if not sign:
        return None
    return Watched(sign=sign, unchanged=before.unchanged + 1 if before and before.sign == sign else 0)


class Rung(StrEnum):
    """The steps, cheapest first."""

    RESUME = "resume from what the files prove"
    RECREATE = "recreate the worktree"
    INVESTIGATE = "ask the recovery investigator"
    SAME_ROLE = "delegate the stage again"
    FRESH_AGENT = "delegate the stage to another agent"
    STEP_BACK = "return to the stage whose files are gone"
    BLOCK = "record the blockage"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What was observed after everything was read again."""

    has_worktree: bool = True
    is_proven: bool = False
    is_investigated: bool = False
    """Whether the investigator already diagnosed this try, or cannot be started."""
    is_undermined: bool = False
    """Whether files that the stage needs and its role may not write are missing."""
    may_step_back: bool = False
    """Whether the table allows a step back from this stage."""
    retry: Retry | None = None


def next_rung(trouble: Trouble) -> Rung:
    """Return the lowest step that is left."""
    if not trouble.has_worktree:
        return Rung.RECREATE
    if trouble.is_proven:
        return Rung.RESUME
    if not trouble.is_investigated:
        return Rung.INVESTIGATE
    if trouble.is_undermined:
        # The same stage cannot create what an earlier one has to.
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
    """Return the record of one more try; the attempt number never restarts, because it identifies plans."""
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
    """Return the record without a subject; None if nothing is left."""
    left = tuple(one for one in (record.entries if record else ()) if one.subject_id != subject_id)
    return replace(record, entries=left) if record and left else None
