"""Restore lost rows: from a project's export, and from its plan branches and pins.

The export has the rows from just before the loss. A landing that came later, or is in no export, is on the
plan branch under the name of its task. So no paid work is done again, and nothing lands twice.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from loopwright.core.policy.retry import Failed
from loopwright.core.replies.discoveries import Discovery
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import (
    RESTORED,
    Attempt,
    Cursor,
    Loop,
    Outcome,
    Plan,
    Project,
    Role,
    Run,
    Task,
    VerdictRecord,
)
from loopwright.core.rows.row_types import Row
from loopwright.core.values.errors import BranchRewritten, GitFailed, UserError
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import VerdictStatus
from loopwright.core.values.ids import Kind, short_id
from loopwright.core.values.states import (
    ATTEMPT,
    ENDED_PLAN,
    ENDED_RUN,
    LIVE_ATTEMPT,
    AttemptState,
    LoopState,
    RunState,
    TaskState,
    step,
)
from loopwright.engine.rows.escalations import escalate
from loopwright.engine.rows.failing import fail_attempt
from loopwright.engine.rows.moves import (
    MACHINE,
    cancel_attempt,
    complete_task,
    move_loop,
    move_run,
    move_task,
    need,
)
from loopwright.engine.rows.ref_names import attempt_ref
from loopwright.engine.rows.world import World
from loopwright.ports import Exported, ExportedPlan, ExportedProject, Ids, Repository, StateFiles, Step, Tx

_PIN: Final = re.compile(r"refs/loopwright/attempts/[^/]+/(?P<task>[^/]+)/(?P<n>\d+)")
_ON_THE_WAY: Final = (
    AttemptState.PREPARING,
    AttemptState.WORKING,
    AttemptState.CHECKING,
    AttemptState.LANDING,
    AttemptState.LANDED,
)


@dataclass(slots=True)
class Rebuilt:
    """What was restored, in words for the user."""

    plans: list[str] = field(default_factory=list)
    """Plans whose rows were restored from the export."""
    loops: list[str] = field(default_factory=list)
    """Loops without a plan whose rows were restored."""
    landed: list[str] = field(default_factory=list)
    """Tasks whose landing was found on the branch alone."""
    held: list[str] = field(default_factory=list)
    """Tasks that wait for the user, because their pinned work has no row."""
    notes: list[str] = field(default_factory=list)
    """What could not be done, each with what to do."""

    def add(self, more: "Rebuilt") -> None:
        """Add what was restored elsewhere."""
        self.plans += more.plans
        self.loops += more.loops
        self.landed += more.landed
        self.held += more.held
        self.notes += more.notes

    def in_words(self) -> str:
        """Return all of it, a line each."""
        lines = [
            f"made again from the export: {', '.join(self.plans)}" if self.plans else "",
            f"loops made again: {', '.join(self.loops)}" if self.loops else "",
            f"landed, found on the branch: {', '.join(self.landed)}" if self.landed else "",
            f"waits for you, its work is pinned: {', '.join(self.held)}" if self.held else "",
            *self.notes,
        ]
        return "\n".join(filter(None, lines)) or "nothing had happened since"


async def is_restored(world: World) -> bool:
    """Return whether the database is a backup that was not yet compared with what happened since."""
    return await world.store.read(lambda tx: tx.get(Cursor, RESTORED)) is not None


async def reconcile_backup(world: World, files: StateFiles) -> Rebuilt:
    """Compare a restored backup with every project's export and branches, before anything starts."""
    rebuilt = Rebuilt()
    projects = await world.store.read(lambda tx: tx.find(Project))
    there = list(dict.fromkeys(Path(one.path) for one in projects if Path(one.path).is_dir()))
    exports = [(path, files.exported(path)) for path in there]
    rebuilt.add(await world.store.transact("import", partial(_take_in_all, exports=exports)))
    for project in await world.store.read(lambda tx: tx.find(Project)):
        if Path(project.path).is_dir():
            await _compare_project(world, project, rebuilt)
        else:
            rebuilt.notes += await world.store.transact("import.held", partial(_hold_loops, project=project))
    await world.store.transact("import.done", lambda tx: tx.delete(Cursor, RESTORED))
    return rebuilt


async def import_project(world: World, files: StateFiles, root: Path) -> Rebuilt:
    """Import the plans of a repository that this home does not know, or has in an older state."""
    rebuilt = Rebuilt()
    exports = [(root, files.exported(root))]
    rebuilt.add(await world.store.transact("import", partial(_take_in_all, exports=exports)))
    for project in await world.store.read(lambda tx: tx.find(Project, path=str(root))):
        await _compare_project(world, project, rebuilt)
    return rebuilt


# --- from the export ---------------------------------------------------------------------------------


def _take_in_all(tx: Tx, *, exports: Sequence[tuple[Path, Exported]]) -> Rebuilt:
    rebuilt = Rebuilt()
    taken = []
    for root, exported in exports:
        rebuilt.notes += [f"{one}; it is left out" for one in exported.unreadable]
        for project in exported.projects:
            _project(tx, root, project.project)
        for one in sorted(exported.plans, key=lambda one: one.plan.created_at):
            if _is_newer(tx, one) and _take_in(tx, root, one, rebuilt):
                taken.append(one)
                rebuilt.plans.append(f"{one.plan.title} ({short_id(one.plan.id)})")
        for project in exported.projects:
            _take_in_loops(tx, root, project, rebuilt)
    # All at once: the numbers of several projects are interleaved.
    tx.put_back([event for one in taken for event in one.events])
    for one in taken:
        plan = need(tx.get(Plan, one.plan.id), "the plan")
        tx.append(
            happened("plan_imported", MACHINE, plan=plan, tasks=plan.open_tasks, status=plan.status.value)
        )
    return rebuilt


def _take_in_loops(tx: Tx, root: Path, one: ExportedProject, rebuilt: Rebuilt) -> None:
    """Restore the rows of a project and of its loops without a plan; existing rows are not changed."""
    project = _project(tx, root, one.project)
    if project is None:
        return  # another home owns them; a note about its plans says so
    for loop in one.loops:
        if tx.find(Loop, project_id=project.id, source_path=loop.source_path, limit=1):
            continue
        row = replace(loop, project_id=project.id, start=None)
        if loop.plan_id is None or tx.get(Plan, loop.plan_id) is None:
            row = replace(row, plan_id=None, state=LoopState.IDLE)
        _put(tx, row)
        if loop.deleted_at is None:
            rebuilt.loops.append(loop.name)


def _is_newer(tx: Tx, one: ExportedPlan) -> bool:
    """Return whether the export has events of a plan that the database does not."""
    if tx.get(Plan, one.plan.id) is None:
        return True
    last, after = 0, 0
    while page := tx.events(after=after, plan=one.plan.id):
        last = after = page[-1].n
    return bool(one.events) and one.events[-1].n > last


def _take_in(tx: Tx, root: Path, one: ExportedPlan, rebuilt: Rebuilt) -> bool:
    """Restore the rows of a plan; False if another home owns them."""
    project = _project(tx, root, one.project)
    if project is None:
        rebuilt.notes.append(
            f"plan {short_id(one.plan.id)} belongs to the repository from which this one was copied; it is left out"
        )
        return False
    loops = tx.find(Loop, project_id=project.id, source_path=one.loop.source_path, limit=1)
    if loops and loops[0].id != one.loop.id and loops[0].plan_id:
        current = tx.get(Plan, loops[0].plan_id)
        if current is not None and current.status not in ENDED_PLAN:
            rebuilt.notes.append(
                f"plan {short_id(one.plan.id)} is left out: plan {short_id(current.id)} of {one.loop.source_path} is "
                f"unfinished; `loopwright cancel {short_id(current.id)}`, then import again"
            )
            return False
    loop = replace(one.loop, project_id=project.id, id=loops[0].id if loops else one.loop.id)
    if loop.plan_id != one.plan.id and (loop.plan_id is None or tx.get(Plan, loop.plan_id) is None):
        loop = replace(loop, plan_id=one.plan.id)
    moved = {"project_id": project.id, "loop_id": loop.id}
    _put(tx, loop)
    # No file has the environment; that of an older state of the rows is still valid.
    older = tx.get(Plan, one.plan.id)
    _put(tx, replace(_with(one.plan, moved), environment=older.environment if older else None))
    known = {row.id for row in one.rows}
    for row in one.rows:
        _put(tx, _without_lost(_with(row, moved), known, tx))
    return True


def _project(tx: Tx, root: Path, exported: Project) -> Project | None:
    """Return the project at a path: the exported one, even if it was moved; None for a copy of it."""
    known = tx.get(Project, exported.id)
    if known is None:
        here = tx.find(Project, path=str(root), subfolder=exported.subfolder, limit=1)
        if here:
            return here[0]
        tx.insert(exported)
        return exported
    if known.path == str(root):
        return known
    return None if Path(known.path).is_dir() else move_project(tx, known, root)


def move_project(tx: Tx, project: Project, root: Path) -> Project:
    """Record that a repository was moved."""
    moved = tx.update(Project, project.id, path=str(root))
    tx.append(happened("project_moved", MACHINE, project_id=project.id, was=project.path, path=str(root)))
    return moved


def _with(row: Any, changes: dict[str, str]) -> Any:
    """Return a row with the ids of its project and loop in this home."""
    names = {one.name for one in fields(row)}
    return replace(row, **{name: value for name, value in changes.items() if name in names})


def _without_lost(row: Row | Discovery, known: set[str], tx: Tx) -> Any:
    """Return a row without references that no file contains."""
    if isinstance(row, Attempt) and row.verdict_id and row.verdict_id not in known:
        return row if tx.get(VerdictRecord, row.verdict_id) else replace(row, verdict_id=None)
    return row


def _put(tx: Tx, row: Any) -> None:
    """Insert a row, or update the existing one."""
    kind = type(row)
    if tx.get(kind, row.id) is None:
        tx.insert(row)
    else:
        tx.update(
            kind, row.id, **{one.name: getattr(row, one.name) for one in fields(row) if one.name != "id"}
        )


def _hold_loops(tx: Tx, *, project: Project) -> list[str]:
    """Let nothing start in a repository that cannot be read now; return what is paused, and why."""
    held = []
    for loop in tx.find(Loop, project_id=project.id, state=LoopState.RUNNING):
        reason = (
            f"The database was restored while {project.path} was away. "
            "`loopwright projects import` in that repository compares the two; then resume."
        )
        move_loop(tx, loop, LoopState.PAUSED, "loop_paused", MACHINE, reason)
        held.append(f"{loop.name} is paused: {reason}")
    return held


# --- from the branches and pins ----------------------------------------------------------------------


async def _compare_project(world: World, project: Project, rebuilt: Rebuilt) -> None:
    for plan in await world.store.read(lambda tx: tx.find(Plan, project_id=project.id)):
        try:
            if plan.status not in ENDED_PLAN:
                await _compare(world, project, plan, rebuilt)
        except (GitFailed, BranchRewritten, UserError, OSError) as trouble:
            rebuilt.notes.append(f"plan {short_id(plan.id)} was not compared with its branch: {trouble}")
            rebuilt.notes += await world.store.transact("import.held", partial(_hold_loops, project=project))
        # Of a shared home the other hosts may be alive: there the lease of each decides.
        if world.membership.exclusive:
            end = partial(_end_elsewhere, world=world, plan=plan)
            rebuilt.notes += await world.store.transact("import.elsewhere", end)


def _end_elsewhere(tx: Tx, *, world: World, plan: Plan) -> list[str]:
    """End the attempts of a plan whose files are in another home: they cannot continue here."""
    notes = []
    for attempt in tx.find(Attempt, plan_id=plan.id, state=LIVE_ATTEMPT, order_by=("n",)):
        if attempt.host_id in (None, world.me.host_id):
            continue
        task = need(tx.get(Task, attempt.task_id), "the task")
        told = "it was at work in another home, and its workspace is not in this one"
        told += f"; what it had done is at {attempt_ref(attempt)}" if attempt.tip_sha else ""
        changes: dict[str, Any] = {"cleaned_at": tx.now()}
        fenced = tx.update(Attempt, attempt.id, expect={"fence": attempt.fence}, fence=attempt.fence + 1)
        if task.attempt_id == attempt.id and task.status in (TaskState.RUNNING, TaskState.AWAITING_RESPONSE):
            failed = Failed(failure=Failure.HOST_LOST, detail=told)
            fail_attempt(
                tx, world.ids, fenced, failed, fence=None, counts=False, chance=world.chance(), **changes
            )
        else:
            cancel_attempt(tx, fenced, fence=None, failure=Failure.HOST_LOST, detail=told, **changes)
        notes.append(f"attempt {attempt.n} of {task.key} has ended: {told}")
    return notes


async def _compare(world: World, project: Project, plan: Plan, rebuilt: Rebuilt) -> None:
    repository, store = world.repository(project), world.store
    landings = await _landings(repository, plan)
    for task_id, found in landings.items():
        key = await store.transact("import.landed", partial(_landed, plan=plan, task_id=task_id, found=found))
        rebuilt.landed += [key] if key else []
    for ref, sha in sorted((await repository.pinned(plan.id)).items()):
        if match := _PIN.fullmatch(ref):
            task_id, n = match["task"], int(match["n"])
            pin = _Pin(task_id=task_id, n=n, ref=ref, sha=sha, begun=await _begun(world, task_id, n))
            key = await store.transact("import.pinned", partial(_pinned, ids=world.ids, plan=plan, pin=pin))
            rebuilt.held += [key] if key else []
    rebuilt.notes += await store.transact("import.absent", partial(_absent, plan=plan, landings=landings))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pin:
    """Work of an attempt that the repository keeps."""

    task_id: str
    n: int
    ref: str
    sha: str
    begun: bool
    """Whether the run of the attempt left its files in this home."""


async def _landings(repository: Repository, plan: Plan) -> dict[str, Step]:
    """Return the landing of each task that is on the branch and was not removed again."""
    standing = await repository.standing(plan.branch)
    # Later commits from elsewhere are ignored.
    tip = standing.was if standing.change == "moved" and standing.was else standing.tip
    steps = await repository.steps(tip, since=plan.base_sha) if tip else ()
    taken = {sha for one in steps for sha in one.takes_out}
    return {
        task: one for one in reversed(steps) if one.sha not in taken and not one.books for task in one.tasks
    }


def _landed(tx: Tx, *, plan: Plan, task_id: str, found: Step) -> str:
    """Complete a task whose landing is on the branch; return its key if the rows did not know that."""
    task = tx.get(Task, task_id)
    if task is None or task.plan_id != plan.id or task.status in (TaskState.COMPLETE, TaskState.CANCELLED):
        return ""
    attempts = tx.find(Attempt, task_id=task.id)
    told = f"found on {plan.branch}: {found.sha[:10]} carries its trailers; the record of its checks is lost"
    facts: dict[str, Any] = {
        "candidate_sha": found.sha,
        "candidate_parent": found.parent,
        "candidate_tree": found.tree,
        "detail": told,
    }
    mine = next((one for one in attempts if found.sha == one.candidate_sha or one.id == found.attempt), None)
    for other in attempts:
        if other.state in LIVE_ATTEMPT and other is not mine:
            cancel_attempt(tx, other, fence=None, detail="the task has landed by another attempt")
    if mine is not None and mine.state in LIVE_ATTEMPT:
        state = mine.state
        for target in _ON_THE_WAY:
            if target in ATTEMPT[state]:
                state = step("attempt", ATTEMPT, mine.id, state, target)
        _end_runs(tx, mine)
        tx.update(
            Attempt,
            mine.id,
            state=state,
            fence=mine.fence + 1,
            wait_reason="",
            interrupt="",
            ended_at=tx.now(),
            updated_at=tx.now(),
            **facts,
        )
    elif mine is None:
        _insert(tx, plan, task, found.attempt, found.run, state=AttemptState.LANDED, **facts)
    judged = tx.find(VerdictRecord, plan_id=plan.id, tree=found.tree)
    green = [one.run_id for one in judged if one.verdict.status is VerdictStatus.PASSED]
    # Only the gate of this task: a baseline of the same tree runs fewer checks.
    passed = bool(green and tx.find(Run, id=green, task_id=task.id, role=Role.GATE))
    complete_task(
        tx,
        task,
        outcome=Outcome.VERIFIED if passed else Outcome.UNVERIFIED,
        landed_sha=found.sha,
        reason="" if passed else told,
    )
    return task.key


def _absent(tx: Tx, *, plan: Plan, landings: Mapping[str, Step]) -> list[str]:
    """Pause a plan whose rows name landings that its branch does not have: removed since, or never made."""
    done = tx.find(Task, plan_id=plan.id, status=TaskState.COMPLETE, order_by=("position",))
    keys = [one.key for one in done if one.landed_sha is not None and one.id not in landings]
    loop = need(tx.get(Loop, plan.loop_id), "the loop")
    if not keys:
        return []
    reason = (
        f"{', '.join(keys)} landed by the rows, and not by {plan.branch}: the work was taken out since, or the export "
        "was changed. Look at the branch before you resume."
    )
    if loop.state is LoopState.RUNNING:
        move_loop(tx, loop, LoopState.PAUSED, "loop_paused", MACHINE, reason)
    return [f"{loop.name} is paused: {reason}"]


def _end_runs(tx: Tx, attempt: Attempt) -> None:
    """End the runs of an attempt whose work landed; their cost is no longer known."""
    for run in tx.find(Run, attempt_id=attempt.id):
        if run.state not in ENDED_RUN:
            if run.state is RunState.QUEUED:
                run = move_run(tx, run, RunState.RUNNING)
            move_run(
                tx, run, RunState.COMPLETE, ended_by="lost", summary="its result was found on the plan branch"
            )


def _insert(
    tx: Tx,
    plan: Plan,
    task: Task,
    attempt_id: str,
    run_id: str,
    *,
    state: AttemptState,
    n: int = 0,
    **facts: Any,
) -> Attempt:
    """Add an attempt without a row, with its run. Its cost is unknown."""
    attempts = tx.find(Attempt, task_id=task.id)
    now = tx.now()
    agent = task.agent or plan.policy.agent
    made = Attempt(
        id=attempt_id,
        plan_id=plan.id,
        task_id=task.id,
        n=n or max((one.n for one in attempts), default=0) + 1,
        state=state,
        agent=agent,
        base_sha=plan.base_sha,
        run_id=run_id,
        cleaned_at=now,
        created_at=now,
        updated_at=now,
        ended_at=now,
        **facts,
    )
    tx.insert(made)
    if tx.get(Run, run_id) is None:
        tx.insert(
            Run(
                id=run_id,
                plan_id=plan.id,
                task_id=task.id,
                attempt_id=attempt_id,
                role=Role.IMPLEMENTER,
                state=RunState.COMPLETE,
                agent=agent,
                ended_by="lost",
                summary="its row was lost; its work was found in the repository",
                created_at=now,
                started_at=now,
                ended_at=now,
            )
        )
        current = need(tx.get(Plan, plan.id), "the plan")
        tx.update(Plan, plan.id, unknown_costs=current.unknown_costs + 1)
    return made


async def _begun(world: World, task_id: str, n: int) -> bool:
    """Return whether the files of an attempt's run are here: its result is read from there, and not paid for again."""
    found = await world.store.read(lambda tx: tx.find(Attempt, task_id=task_id, n=n, limit=1))
    run_id = found[0].run_id if found else None
    return run_id is not None and world.keepers.look(world.paths.run(run_id)).state != "absent"


def _pinned(tx: Tx, *, ids: Ids, plan: Plan, pin: _Pin) -> str:
    """Hold a task with work of an attempt that has no row: the user decides whether it is done again."""
    task = tx.get(Task, pin.task_id)
    if task is None or task.plan_id != plan.id or task.status in (TaskState.COMPLETE, TaskState.CANCELLED):
        return ""
    attempts = tx.find(Attempt, task_id=task.id, order_by=("n",))
    known = next((one for one in attempts if one.n == pin.n), None)
    if known is not None and (pin.begun or known.tip_sha is not None or known.state not in LIVE_ATTEMPT):
        return ""
    told = f"an attempt that the backup does not know left its work at {pin.ref}"
    for one in attempts:
        if one.state in LIVE_ATTEMPT:
            cancel_attempt(tx, one, fence=None, failure=Failure.HOST_LOST, detail=told)
    if known is None:
        facts: dict[str, Any] = {"tip_sha": pin.sha, "failure": Failure.HOST_LOST, "detail": told}
        ended = (ids(Kind.ATTEMPT), ids(Kind.RUN))
        last = _insert(tx, plan, task, *ended, state=AttemptState.BROKEN, n=pin.n, **facts)
    else:
        last = tx.update(Attempt, known.id, tip_sha=pin.sha)
    reason = (
        f"{told}; `git diff {plan.base_sha[:10]} {pin.sha[:10]}` shows it, and `retry` does the task again."
    )
    why: dict[str, Any] = {"reason": reason, "outcome": Outcome.NEEDS_HUMAN, "failure": Failure.HOST_LOST}
    if task.status is TaskState.ERROR:
        tx.update(Task, task.id, attempt_id=last.id, **why)
        return ""
    held = move_task(
        tx,
        task,
        TaskState.ERROR,
        "task_failed",
        about={"failure": Failure.HOST_LOST.value, "reason": reason},
        attempt_id=last.id,
        **why,
    )
    escalate(tx, ids, plan, held, last, MACHINE)
    return task.key
