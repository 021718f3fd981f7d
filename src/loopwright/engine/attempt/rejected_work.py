"""Work that a person has rejected does not come back as it was."""

from typing import Final

from loopwright.core.rows.model import Attempt, Task
from loopwright.core.values.errors import CommitGone
from loopwright.engine.people.handover import HUMAN
from loopwright.ports import Candidate, Repository, Tx

_REJECTED: Final = ("task_reopened", "task_rejected")
_MOST: Final = 5
"""So many of the newest rejections are looked at."""


def rejected(tx: Tx, task: Task, attempt: Attempt) -> list[tuple[Attempt, str]]:
    """Return the attempts at a task that a person sent back, the newest first, each with what was said."""
    # A person who hands the same in again has decided so.
    if attempt.n == 1 or attempt.agent == HUMAN:
        return []
    tried = [one for one in tx.find(Attempt, task_id=task.id, order_by=("n",)) if one.tip_sha is not None]
    found = []
    for event in reversed(tx.events(plan=task.plan_id, task=task.id, types=_REJECTED)):
        about = event.payload
        # What builds on rejected work is done anew as well, and nothing was said about it.
        before = [one for one in tried if one.n < about["n"]] if about.get("note") else []
        if before and about["why"] == "reject":
            found.append((before[-1], str(about["note"])))
    return found[:_MOST]


async def as_rejected(
    repository: Repository, candidate: Candidate, sent_back: list[tuple[Attempt, str]]
) -> tuple[int, str] | None:
    """Return the rejected attempt with exactly this change, by its number, and what was said; None if there is none."""
    if candidate.empty or not sent_back:
        return None
    mine = (await repository.patch(candidate.parent, candidate.sha)).sha256
    for attempt, said in sent_back:
        landed = (attempt.candidate_parent, attempt.candidate_sha)
        old, new = landed if all(landed) else (attempt.base_sha, attempt.tip_sha)
        try:
            for sha in (old, new):
                await repository.tree_of(sha or "")
        except CommitGone:
            continue  # it was cleaned away: then nobody can tell
        if (await repository.patch(old or "", new or "")).sha256 == mine:
            return attempt.n, said
    return None
