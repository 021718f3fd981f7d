"""Take a task over to do it by hand, and hand it back."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from loopwright.app import repositories
from loopwright.core.rows.model import Attempt, Command, Loop, Plan, Project, Task
from loopwright.core.values.errors import Refused
from loopwright.core.values.failures import RULES, Level
from loopwright.core.values.states import LIVE_ATTEMPT, AttemptState, LoopState
from loopwright.core.values.wording import to_type
from loopwright.engine.branch.branch import stands
from loopwright.engine.rows.moves import need
from loopwright.engine.rows.ref_names import attempt_ref, commit_subject, hand_branch
from loopwright.ports import Repository, Tx
from loopwright.services.control.sending import end_stopped_agents, find_task, is_worked_on, send
from loopwright.services.homes.session import Session

NAMED: Final = 5
"""How many uncommitted files a message names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOver:
    """A task that you have taken over."""

    command: Command
    key: str
    directory: str
    """Your checkout."""
    branch: str
    start: str
    """The commit that it starts from."""
    after_attempt: int | None
    """The attempt whose work it starts with; None if it starts from the plan's branch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """The checkout of a task that you took over."""

    directory: Path
    uncommitted: tuple[str, ...]
    """Files with uncommitted changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedBack:
    """Work that you handed back, about to be checked."""

    command: Command
    key: str
    directory: Path
    plan: Plan
    attempt_id: str
    needs_worker: bool
    """Whether no process runs the checks: drive the plan, or start a worker."""


async def take_over(at: Session, task: str, directory: Path | None = None) -> TakenOver:
    """Take a task from its agent, and make a checkout with the last work on it."""
    store = at.home.store
    row, plan, project = await store.read(lambda tx: find_task(tx, task, "take-over"))
    where = (directory or _beside(project, row)).resolve()
    if not row.taken_by and where.exists() and (not where.is_dir() or any(where.iterdir())):
        raise Refused(
            f"{where} holds other files", code="folder_not_empty", hint="name a DIR that is not there yet"
        )
    wanted = "" if row.taken_by and directory is None else str(where)
    command = await send(at, "take_over", row.id, {"directory": wanted})
    await end_stopped_agents(at)
    last = await _last_work(at, row)
    row = await store.read(lambda tx: need(tx.get(Task, row.id), "the task"))
    repository = repositories(at.home)(project)
    by_hand = await repository.by_hand()
    tip = (await stands(store, repository, plan)).tip
    start = await by_hand.start(
        last.tip_sha if last else None,
        base=last.base_sha if last else None,
        tip=tip,
        subject=commit_subject(row),
        at=row.created_at,
    )
    branch = hand_branch(plan, row)
    await by_hand.hand_out(Path(row.taken_dir), branch, start)
    return TakenOver(
        command=command,
        key=row.key,
        directory=row.taken_dir,
        branch=branch,
        start=start,
        after_attempt=last.n if last else None,
    )


async def checkout_of(at: Session, task: str) -> Checkout:
    """Return the checkout of a task that you took over, for a caller that asks about uncommitted files."""
    row, plan, project = await at.home.store.read(lambda tx: _taken(tx, task))
    by_hand = await repositories(at.home)(project).by_hand()
    where = Path(row.taken_dir)
    hands = await by_hand.look(where, hand_branch(plan, row))
    return Checkout(directory=where, uncommitted=tuple(hands.uncommitted))


async def hand_back(at: Session, task: str, *, include_uncommitted: bool = False) -> HandedBack:
    """Send the work on a task that you took over through the same checks as an agent's work."""
    store = at.home.store
    row, plan, project = await store.read(lambda tx: _taken(tx, task))
    repository = repositories(at.home)(project)
    by_hand = await repository.by_hand()
    where = Path(row.taken_dir)
    hands = await by_hand.look(where, hand_branch(plan, row))
    if hands.uncommitted and not include_uncommitted:
        raise Refused(
            f"{where} has changes that are in no commit: {named_files(hands.uncommitted)}",
            code="uncommitted_changes",
            hint="commit them, or --include-uncommitted takes them as they are",
        )
    attempt: Attempt = await store.read(lambda tx: need(tx.get(Attempt, row.attempt_id or ""), "the attempt"))
    if not hands.uncommitted:
        await _refuse_unchanged(at, repository, row, attempt, hands.head)
    tip = (await stands(store, repository, plan)).tip
    sha = await by_hand.take_in(
        where, hands, ref=attempt_ref(attempt), subject=commit_subject(row), at=datetime.now(UTC)
    )
    arguments = {"tip_sha": sha, "base_sha": await by_hand.base_of(sha, tip)}
    return HandedBack(
        command=await send(at, "hand_back", row.id, arguments),
        key=row.key,
        directory=where,
        plan=plan,
        attempt_id=attempt.id,
        needs_worker=not await is_worked_on(at.home, plan.project_id),
    )


async def checked(at: Session, handed: HandedBack) -> Attempt:
    """Wait until the checks of handed-back work have ended, or the plan rests, and return its attempt."""

    def look(tx: Tx) -> tuple[Attempt, bool]:
        attempt = need(tx.get(Attempt, handed.attempt_id), "the attempt")
        plan = need(tx.get(Plan, attempt.plan_id), "the plan")
        loop = need(tx.get(Loop, plan.loop_id), "the loop")
        return attempt, attempt.state in LIVE_ATTEMPT and loop.state is LoopState.RUNNING

    attempt, continues = await at.home.store.read(look)
    while continues:
        await at.home.store.changed(1.0)
        attempt, continues = await at.home.store.read(look)
    return attempt


async def left_checkout(at: Session, handed: HandedBack) -> Checkout | None:
    """Return what is left of the checkout of work that was handed back; None if it is gone."""
    if not (handed.directory / ".git").exists():
        return None

    def rows(tx: Tx) -> tuple[Task, Project]:
        attempt = need(tx.get(Attempt, handed.attempt_id), "the attempt")
        project = need(tx.get(Project, handed.plan.project_id), "the project")
        return need(tx.get(Task, attempt.task_id), "the task"), project

    task, project = await at.home.store.read(rows)
    by_hand = await repositories(at.home)(project).by_hand()
    hands = await by_hand.look(handed.directory, hand_branch(handed.plan, task))
    return Checkout(directory=handed.directory, uncommitted=tuple(hands.uncommitted))


def named_files(files: tuple[str, ...] | list[str]) -> str:
    """Return the first names of some files, and how many more there are."""
    more = f" and {len(files) - NAMED} more" if len(files) > NAMED else ""
    return ", ".join(files[:NAMED]) + more


def _taken(tx: Tx, text: str) -> tuple[Task, Plan, Project]:
    task, plan, project = find_task(tx, text, "hand-back")
    if not task.taken_by:
        raise Refused(
            f"you have not taken {task.key} over",
            code="task_not_taken_over",
            hint=f"`{to_type('take-over', task.key)}` does",
        )
    return task, plan, project


def _beside(project: Project, task: Task) -> Path:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", task.key).strip("-.") or task.id
    root = Path(project.path)
    return root.parent / f"{root.name}.{name}"


async def _last_work(at: Session, task: Task) -> Attempt | None:
    """Wait until no agent works on the task, and return the last attempt that left work, if any."""
    store = at.home.store
    while True:
        attempts = await store.read(lambda tx: tx.find(Attempt, task_id=task.id, order_by=("-n",)))
        if not any(one.state in LIVE_ATTEMPT - {AttemptState.QUEUED} for one in attempts):
            return next((one for one in attempts if one.tip_sha), None)
        await store.changed(1.0)


async def _refuse_unchanged(
    at: Session, repository: Repository, task: Task, attempt: Attempt, sha: str
) -> None:
    """Refuse work that equals the attempt before it, if that was judged and is not on the branch."""
    tried = await at.home.store.read(lambda tx: tx.find(Attempt, task_id=task.id, order_by=("-n",)))
    last = next((one for one in tried if one.tip_sha and one.n < attempt.n), None)
    if last is None or last.tip_sha is None:
        return
    counted = last.failure is not None and RULES[last.failure].level is Level.ATTEMPT
    if last.state is not AttemptState.LANDED and not counted:
        return
    if await repository.tree_of(sha) == await repository.tree_of(last.tip_sha):
        became = (
            "was taken back"
            if last.state is AttemptState.LANDED
            else f"did not pass: {last.detail.partition(chr(10))[0]}"
        )
        raise Refused(
            f"nothing changed since you took it over: it is what attempt {last.n} left, which {became}",
            code="work_unchanged",
            hint=f"change it in {task.taken_dir}, or `{to_type('take-over', task.key, drop=True)}`",
        )
