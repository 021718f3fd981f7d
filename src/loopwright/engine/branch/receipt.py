"""Build a plan's receipt from its rows and its repository."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from loopwright.core.receipts.build import GitFacts, build_receipt, landing_part
from loopwright.core.receipts.events import CHECKOUT_CHANGED, OVERRIDES, checkout_changes, overrides
from loopwright.core.receipts.landing_hashes import landing_hash
from loopwright.core.receipts.model import ForeignCommit, Receipt
from loopwright.core.rows.events import RecordedEvent
from loopwright.core.rows.model import (
    AUTHORS,
    Attempt,
    Finish,
    Plan,
    Project,
    Review,
    Run,
    Task,
    VerdictRecord,
)
from loopwright.core.values.errors import GitFailed, NotFound, UserError
from loopwright.engine.branch.branch import OwnCommits, foreign, own_commits
from loopwright.engine.branch.changed_gate_files import gate_files_in
from loopwright.engine.rows.moves import MACHINE, need
from loopwright.engine.rows.world import World
from loopwright.ports import Repository, Step, Tx

_RUN_ENDED: Final = "run_ended"
_TOLD: Final = OVERRIDES | {_RUN_ENDED, CHECKOUT_CHANGED}


async def plan_receipt(world: World, plan_id: str) -> Receipt:
    """Return the receipt of a plan as it is now."""

    def load(
        tx: Tx,
    ) -> tuple[
        Plan,
        Project,
        list[Task],
        list[Attempt],
        list[Run],
        list[VerdictRecord],
        list[Review],
        list[Finish],
        list[RecordedEvent],
    ]:
        plan = tx.get(Plan, plan_id)
        if plan is None:
            raise NotFound(f"there is no plan {plan_id}", code="plan_not_found")
        return (
            plan,
            need(tx.get(Project, plan.project_id), "the project"),
            tx.find(Task, plan_id=plan_id, order_by=("position",)),
            tx.find(Attempt, plan_id=plan_id),
            tx.find(Run, plan_id=plan_id),
            tx.find(VerdictRecord, plan_id=plan_id),
            tx.find(Review, plan_id=plan_id),
            tx.find(Finish, plan_id=plan_id),
            _events(tx, plan_id),
        )

    plan, project, tasks, attempts, runs, verdicts, reviews, finishes, events = await world.store.read(load)
    git = GitFacts(result_tree=None)
    if Path(project.path).is_dir():
        own = await world.store.read(lambda tx: own_commits(tx, plan))
        git = await _git_facts(world.repository(project), project, plan, tasks, attempts, own)
    return build_receipt(
        project=project,
        plan=plan,
        tasks=tasks,
        attempts=attempts,
        runs=runs,
        verdicts=verdicts,
        reviews=reviews,
        finishes=finishes,
        git=git,
        overrides=overrides(events, machine=MACHINE),
        checkout_changes=checkout_changes(events),
        ended=_ended(events),
        event_head=events[-1].hash if events else None,
        made_by=f"loopwright {world.me.version}",
    )


def _events(tx: Tx, plan_id: str) -> list[RecordedEvent]:
    """Return what the receipt needs of a plan's events: the last one, and those that it describes."""
    kept: list[RecordedEvent] = []
    after = 0
    while page := tx.events(after=after, plan=plan_id):
        kept = [one for one in (*kept, *page) if one.type in _TOLD or one is page[-1]]
        after = page[-1].n
    return kept


def _ended(events: Iterable[RecordedEvent]) -> dict[str, str]:
    return {one.run: one.hash for one in events if one.type == _RUN_ENDED and one.run is not None}


def landing_trailer(tx: Tx, plan: Plan, task: Task, attempt: Attempt) -> str:
    """Return the hash in the trailer of an attempt's landing; it stays the same when its candidate is built again."""
    runs = tx.find(Run, attempt_id=attempt.id, role=AUTHORS)
    events = [one for run in runs for one in tx.events(plan=plan.id, run=run.id, types=(_RUN_ENDED,))]
    return landing_hash(landing_part(plan, task, attempt, runs, _ended(events)))


async def _git_facts(
    repository: Repository,
    project: Project,
    plan: Plan,
    tasks: list[Task],
    attempts: list[Attempt],
    own: OwnCommits,
) -> GitFacts:
    # The repository needs full commit ids, so the attempt that landed says what a task landed on.
    parents = {one.candidate_sha: one.candidate_parent or "" for one in attempts if one.candidate_sha}
    try:
        landed = {
            task.id: (parents[task.landed_sha], task.landed_sha)
            for task in tasks
            if task.landed_sha is not None and task.landed_sha in parents
        }
        hashes = dict(zip(landed, await repository.diff_hashes(list(landed.values())), strict=True))
        whole, tree = None, None
        steps: tuple[Step, ...] = ()
        if plan.result_sha is not None:
            (whole,) = await repository.diff_hashes([(plan.base_sha, plan.result_sha)])
            tree = await repository.tree_of(plan.result_sha)
            steps = await repository.steps(plan.result_sha, since=plan.base_sha)
        others = [
            ForeignCommit(
                sha=step.sha,
                subject=step.subject[:200],
                gate_files=tuple(await gate_files_in(repository, project, plan, tasks, step)),
            )
            for step in await foreign(repository, plan, steps, own)
        ]
    except (GitFailed, UserError):
        # The commits were removed. The receipt says what it can, and verifying it shows the rest.
        return GitFacts(result_tree=None)
    return GitFacts(
        result_tree=tree,
        diff_sha256=whole,
        task_diff_sha256=hashes,
        not_ours=others,
    )
