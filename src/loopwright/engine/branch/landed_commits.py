"""Which commits on a plan branch are ours: those that the rows know, whatever the messages of others say.

Anybody can write a trailer. It says where to look; that a commit is a landing, is what the row of its attempt says, and
that it takes work back, is what the row of the command says.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from loopwright.core.rows.model import Attempt, Command, CommandState, Plan, Task
from loopwright.engine.people.commands import BY_GIT
from loopwright.ports import Repository, Step, Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCommits:
    """What the rows know of a plan's branch."""

    landings: frozenset[str]
    """The candidates of its attempts, and the bookkeeping that landed with them."""
    reverts: frozenset[str]
    """The commits that carry out what people asked for."""


def own_commits(tx: Tx, plan: Plan) -> OwnCommits:
    """Return what the rows know of a plan's branch."""
    attempts = tx.find(Attempt, plan_id=plan.id)
    made = (sha for one in attempts for sha in (one.candidate_sha, one.books_sha) if sha is not None)
    return OwnCommits(
        landings=frozenset(made),
        reverts=reverts(tx),
    )


def landed_commits(tx: Tx, plan: Plan) -> list[str]:
    """Return the commits that are on a plan's branch for certain: its landings, and what took some back."""
    tasks = tx.find(Task, plan_id=plan.id)
    targets = {plan.id, *(task.id for task in tasks)}
    undone = tx.find(Command, verb=tuple(BY_GIT), state=CommandState.APPLIED)
    made = (task.landed_sha for task in tasks)
    taken = (one.commit_sha for one in undone if one.target in targets)
    return [sha for sha in (*made, *taken) if sha is not None]


def reverts(tx: Tx) -> frozenset[str]:
    """Return the commits with which commands take landed work out, or are about to."""
    commands = tx.find(Command, verb=tuple(BY_GIT))
    return frozenset(one.commit_sha for one in commands if one.commit_sha is not None)


async def foreign(
    repository: Repository, plan: Plan, steps: Sequence[Step], own: OwnCommits
) -> tuple[Step, ...]:
    """Return the commits that neither land a task, nor carry out a person's word, nor keep the plan's books."""
    return tuple([step for step in steps if not await _is_ours(repository, plan, step, own)])


async def _is_ours(repository: Repository, plan: Plan, step: Step, own: OwnCommits) -> bool:
    if step.sha in own.landings or step.sha in own.reverts:
        return True
    # Bookkeeping says nothing of landings, and changes the files of the source and nothing else.
    if not step.books or step.tasks or step.takes_out:
        return False
    return set(await repository.changed(step.parent, step.sha)) <= set(plan.books)
