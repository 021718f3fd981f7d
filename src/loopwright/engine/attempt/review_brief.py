"""What a reviewer is given: the change as text, and a tree with the change in it that is nobody's work."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loopwright.core.gates.gates import task_commands
from loopwright.core.prompts.review_prompts import reviewer
from loopwright.core.replies.reviews import Finding, blocking
from loopwright.core.rows.model import Attempt, Review, Role, Run
from loopwright.core.values.permissions import Access, Permissions
from loopwright.core.values.states import ReviewState, RunState
from loopwright.core.values.templates import Template
from loopwright.engine.processes.redaction import without_secrets
from loopwright.engine.rows.moves import need
from loopwright.engine.rows.world import World
from loopwright.ports import Tx

if TYPE_CHECKING:
    from loopwright.engine.attempt.leg_rows import Rows

READS = Permissions(access=Access.READ_ONLY)
"""What a reviewer may do, whatever the plan allows its agents."""


async def review_of(world: World, run: Run) -> Review | None:
    """Return the review that a run belongs to; None for any but a reviewer's."""
    if run.role is not Role.REVIEWER:
        return None
    return need(await world.store.read(lambda tx: tx.get(Review, run.label)), "the review")


def place_of(world: World, attempt: Attempt, review: Review | None) -> Path:
    """Return where a run works: in its attempt's workspace, or in a tree that is thrown away after the review."""
    return Path(need(attempt.workspace, "a workspace")) if review is None else world.paths.tree(review.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mending:
    """What an attempt's agent is to mend."""

    findings: tuple[Finding, ...] = ()
    is_new: bool = False
    """Whether it is told for the first time."""


def mending(tx: Tx, attempt: Attempt, before: Run | None) -> Mending:
    """Return the blocking findings that an attempt was sent back with."""
    review = tx.get(Review, attempt.review_id) if attempt.review_id else None
    if review is None or review.state is not ReviewState.BLOCKING:
        return Mending()
    is_new = before is not None and review.ended_at is not None and before.created_at < review.ended_at
    return Mending(findings=blocking(review.findings), is_new=is_new)


async def brief_reviewer(
    world: World,
    rows: "Rows",
    review: Review,
    run: Run,
    can: frozenset[str],
    template: Template,
    *,
    goes_on: bool,
) -> str:
    """Return what a reviewer is told, and see to it that the tree is there before it starts."""
    repository = world.repository(rows.project)
    patch = await repository.patch(review.parent_sha, review.candidate_sha)
    if run.state is RunState.QUEUED:
        await repository.checkout(world.paths.tree(review.id), review.candidate_sha)
    told = reviewer(
        template,
        rows.plan,
        rows.task,
        rows.attempt,
        review,
        patch,
        gates=task_commands(rows.plan, rows.task),
        by_schema="schema" in can,
        goes_on=goes_on,
    )
    # What the author wrote into a file is in the change, and the prompt is kept.
    return without_secrets(world, rows.plan, rows.attempt, told)
