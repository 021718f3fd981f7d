"""Which commits on a plan branch are ours: those that the rows know, whatever the messages of others say.

Anybody can write a trailer. It says where to look; that a commit is a landing, is what the row of its attempt says.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from loopwright.core.model import Attempt, Command, Plan
from loopwright.ports import Repository, Step, Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCommits:
    """What the rows know of a plan's branch."""

    landings: frozenset[str]
    """The candidates of its attempts, and the bookkeeping that landed with them."""
    commands: frozenset[str]
    """What people asked for."""


def own_commits(tx: Tx, plan: Plan) -> OwnCommits:
    """Return what the rows know of a plan's branch."""
    attempts = tx.find(Attempt, plan_id=plan.id)
    made = (sha for one in attempts for sha in (one.candidate_sha, one.books_sha) if sha is not None)
    return OwnCommits(
        landings=frozenset(made),
        commands=frozenset(one.id for one in tx.find(Command, verb=("rollback", "reject"))),
    )


async def foreign(
    repository: Repository, plan: Plan, steps: Sequence[Step], own: OwnCommits
) -> tuple[Step, ...]:
    """Return the commits that neither land a task, nor carry out a person's word, nor keep the plan's books."""
    return tuple([step for step in steps if not await _is_ours(repository, plan, step, own)])


async def _is_ours(repository: Repository, plan: Plan, step: Step, own: OwnCommits) -> bool:
    if step.sha in own.landings or step.command in own.commands:
        return True
    # Bookkeeping says nothing of landings, and changes the files of the source and nothing else.
    if not step.books or step.tasks or step.takes_out:
        return False
    return set(await repository.changed(step.parent, step.sha)) <= set(plan.books)
