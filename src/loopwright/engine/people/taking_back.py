"""Remove landed work: which landings are removed, and what happens to their tasks, in one transaction."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from loopwright.core.policy.finishing import PULL_REQUEST
from loopwright.core.policy.order import is_met
from loopwright.core.policy.rounds import tries
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Command, Finish, Loop, Plan, Project, Task
from loopwright.core.values.errors import NotFound, Refused
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import (
    LIVE_ATTEMPT,
    AttemptState,
    FinishState,
    LoopState,
    PlanState,
    TaskState,
)
from loopwright.core.values.wording import to_type
from loopwright.engine.people.commands import check_retry
from loopwright.engine.people.retries import refuse_superseded, starts_over
from loopwright.engine.rows.moves import cancel_attempt, move_loop, move_plan, move_task, need
from loopwright.engine.rows.queue import new_attempt
from loopwright.ports import Ids, Step, Tx

_SHORTEST: Final = 4
"""Fewer characters of a commit id are ambiguous."""
_PARKED: Final = frozenset({AttemptState.QUEUED, AttemptState.WAITING})
"""No leg continues these: they can be ended at once."""
_GOING: Final = frozenset({TaskState.RUNNING, TaskState.AWAITING_RESPONSE})
_ANEW: Final[dict[str, Any]] = {
    "landed_sha": None,
    "outcome": None,
    "completed_at": None,
    "call_failures": 0,
    "passed_over": 0,
    "failure_mark": "",
    "failure": None,
    "reason": "",
    "not_before": None,
    "reviewed_by": "",
}
_UNJUDGED: Final[dict[str, Any]] = {
    "verdict": None,
    "verified_at": None,
    "result_sha": None,
    "outcome": None,
    "reason": "",
    "completed_at": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The subject of a command."""

    project: Project
    plan: Plan
    loop: Loop
    tasks: tuple[Task, ...]
    """The tasks of the whole plan."""
    target: Task | None
    """The task; None if it is about the plan up to a checkpoint."""


def load(tx: Tx, command: Command) -> Asked:
    """Return the subject of a command, or raise if there is none."""
    target = tx.get(Task, command.target)
    plan = tx.get(Plan, target.plan_id if target else command.target)
    if plan is None:
        what = "plan or task" if command.verb == "rollback" else "task"
        raise NotFound(f"there is no {what} {command.target}", code="target_not_found")
    if target is None and (command.verb != "rollback" or not command.arguments.get("to")):
        raise NotFound(
            f"{command.verb} is about a task",
            code="task_expected",
            hint="name a task, or `loopwright rollback PLAN --to TASK` for all that landed after it",
        )
    return Asked(
        project=need(tx.get(Project, plan.project_id), "the project"),
        plan=plan,
        loop=need(tx.get(Loop, plan.loop_id), "the loop"),
        tasks=tuple(tx.find(Task, plan_id=plan.id, order_by=("position",))),
        target=target,
    )


def check(tx: Tx, command: Command, asked: Asked) -> None:
    """Raise if it cannot be done, before anything changes."""
    plan, target = asked.plan, asked.target
    refuse_superseded(plan, asked.loop)
    if plan.status is PlanState.CANCELLED:
        raise Refused("the plan was cancelled", code="plan_cancelled", hint=starts_over(asked.loop))
    if plan.status is PlanState.VERIFYING:
        raise Refused(
            "the plan is being verified right now",
            code="plan_verifying",
            hint="`stop` the plan first, or wait",
        )
    if target is None or target.status is TaskState.COMPLETE:
        return
    if command.verb == "rollback":
        raise Refused(
            f"the task {target.key} has not landed: there is nothing to take back",
            code="task_not_landed",
            hint="`cancel` gives it up, `retry` or `reject` tries it again",
        )
    _check_reject(tx, target)


def _check_reject(tx: Tx, task: Task) -> None:
    if task.status in (TaskState.ERROR, TaskState.CANCELLED):
        check_retry(tx, task)
        return
    last = tx.get(Attempt, task.attempt_id) if task.attempt_id else None
    if last is None or (last.n == 1 and last.state is AttemptState.QUEUED):
        raise Refused(f"{task.key} has no work yet: there is nothing to reject", code="task_not_started")
    if last.state not in _PARKED:
        raise Refused(
            f"{task.key} is being worked on right now",
            code="task_running",
            hint=f"wait for its end, or `{to_type('cancel', task.key)}` first",
        )


def chosen(asked: Asked, command: Command, steps: Sequence[Step]) -> tuple[str, ...]:
    """Return the landings to remove, the newest first; raise if that is unclear."""
    landed = {task.landed_sha: task for task in asked.tasks if task.status is TaskState.COMPLETE}
    if asked.target is not None:
        ids = {asked.target.id, *dependents(asked.tasks, [asked.target.id])}
        gone = {sha for sha, task in landed.items() if sha is not None and task.id in ids}
        on_branch = tuple(step.sha for step in steps if step.sha in gone)
        if missing := gone - set(on_branch):
            keys = ", ".join(landed[sha].key for sha in sorted(missing))
            raise Refused(
                f"what {keys} landed is not on {asked.plan.branch}: the branch was changed outside Loopwright",
                code="branch_changed",
            )
        return on_branch
    kept = _checkpoint(asked, str(command.arguments["to"]), steps)
    after = [step.sha for step in steps[:kept] if step.sha in landed]
    if not after:
        raise Refused("nothing landed after that: there is nothing to take back", code="nothing_to_roll_back")
    return tuple(after)


def _checkpoint(asked: Asked, text: str, steps: Sequence[Step]) -> int:
    """Return how many of the steps, the newest first, come after a task's landing or a commit."""
    for task in asked.tasks:
        if text in (task.key, task.id):
            shas = [step.sha for step in steps]
            if task.status is not TaskState.COMPLETE or task.landed_sha not in shas:
                raise Refused(
                    f"{task.key} has landed nothing on the branch",
                    code="task_not_landed",
                    hint="name a task that has, or a commit",
                )
            return shas.index(task.landed_sha)
    if len(text) >= _SHORTEST:
        found = [n for n, step in enumerate(steps) if step.sha.startswith(text)]
        if asked.plan.base_sha.startswith(text):
            found.append(len(steps))
        if len(found) == 1:
            return found[0]
    raise NotFound(
        f"{text!r} is neither a task nor a commit of this plan's branch",
        code="checkpoint_not_found",
        hint=f"`git log --first-parent {asked.plan.base_sha[:7]}..{asked.plan.branch}` lists them",
    )


def dependents(tasks: Iterable[Task], ids: Iterable[str]) -> set[str]:
    """Return everything that builds on these tasks, directly or not."""
    known = {task.id: task for task in tasks}
    found: set[str] = set()
    todo = list(ids)
    while todo:
        for one in known[todo.pop()].dependents:
            if one not in found:
                found.add(one)
                todo.append(one)
    return found


def undoes(asked: Asked, landings: Sequence[str]) -> list[Task]:
    """Return the completed tasks that are not complete without these landings.

    A task without a change, because none was needed, is checked again if it builds on removed work.
    """
    done = [task for task in asked.tasks if task.status is TaskState.COMPLETE]
    roots = {task.id for task in done if task.landed_sha in landings}
    if asked.target is not None:
        roots.add(asked.target.id)
    after = dependents(asked.tasks, roots)
    return [task for task in done if task.id in roots or (task.id in after and task.landed_sha is None)]


def reopen(
    tx: Tx, ids: Ids, command: Command, *, commit: str | None, taken_out: Sequence[str], told: str
) -> str:
    """Queue the tasks of removed landings again, and those that build on them; return what was done, in words.

    It also settles what a kill left half done, so it refuses nothing that the branch has already seen.
    """
    asked = load(tx, command)
    gone = {task.id for task in asked.tasks if task.landed_sha in taken_out}
    undone = {task.id for task in undoes(asked, taken_out)}
    touched = undone | dependents(asked.tasks, undone)
    again = [
        task
        for task in asked.tasks
        if task.id in undone
        or (task.status in _GOING and task.id in touched)
        or (asked.target is not None and task.id == asked.target.id)
    ]
    keys = [task.key for task in asked.tasks if task.id in gone]
    if commit is not None:
        pairs = [{"task": task.id, "sha": task.landed_sha} for task in asked.tasks if task.id in gone]
        tx.append(
            happened(
                "plan_rolled_back",
                command.actor,
                plan=asked.plan,
                command=command.id,
                commit=commit,
                took_out=pairs,
                reopened=[task.key for task in again],
            )
        )
    for task in again:
        evidence = told if asked.target is not None and task.id == asked.target.id else ""
        _queue(tx, ids, command, asked.plan, task, evidence=evidence, commit=commit)
    _count_unmet(tx, asked.plan)
    _reopen_plan(tx, command, asked)
    return _said(tx, asked, command, keys, again)


def _queue(
    tx: Tx, ids: Ids, command: Command, plan: Plan, task: Task, *, evidence: str, commit: str | None
) -> None:
    last = tx.get(Attempt, task.attempt_id) if task.attempt_id else None
    if last is not None and last.state in LIVE_ATTEMPT:
        if last.state in _PARKED:
            cancel_attempt(tx, last, fence=None, actor=command.actor)
        else:
            # It is queued again after its agent has ended properly: see `moves.begin_anew`.
            tx.update(Attempt, last.id, interrupt="cancel")
            return
    about: dict[str, Any]
    if task.manual:
        about = {"why": command.verb, "command": command.id, "commit": commit}
        if task.status is not TaskState.QUEUED:
            move_task(tx, task, TaskState.QUEUED, "task_reopened", command.actor, about=about, **_ANEW)
        return
    numbers = [attempt.n for attempt in tx.find(Attempt, task_id=task.id)]
    more = min(task.max_attempts, tries(plan, task))
    task = tx.update(Task, task.id, max_attempts=max(task.max_attempts, task.attempts + more))
    attempt = new_attempt(tx, ids, plan, task, n=max(numbers, default=0) + 1, evidence=evidence)
    about = {"why": command.verb, "command": command.id, "n": attempt.n, "commit": commit}
    if evidence:
        about["note"] = evidence
    if task.status is TaskState.QUEUED:
        tx.update(Task, task.id, attempt_id=attempt.id, updated_at=tx.now(), **_ANEW)
        tx.append(happened("task_rejected", command.actor, plan=plan, task=task, key=task.key, **about))
        return
    move_task(
        tx,
        task,
        TaskState.QUEUED,
        "task_reopened",
        command.actor,
        about=about,
        attempt_id=attempt.id,
        **_ANEW,
    )


def _count_unmet(tx: Tx, plan: Plan) -> None:
    tasks = {task.id: task for task in tx.find(Task, plan_id=plan.id)}
    for task in tasks.values():
        unmet = sum(not is_met(tasks[one]) for one in task.depends_on)
        if unmet != task.unmet:
            tx.update(Task, task.id, unmet=unmet)


def _reopen_plan(tx: Tx, command: Command, asked: Asked) -> None:
    """Let the plan run again; a loop that had ended waits for the user, unless there is something to try."""
    plan = need(tx.get(Plan, asked.plan.id), "the plan")
    if plan.status is PlanState.RUNNING:
        tx.update(Plan, plan.id, completed_at=None, outcome=None, reason="")
    elif plan.status in (PlanState.VERIFIED, PlanState.FAILED, PlanState.VERIFYING):
        move_plan(
            tx,
            plan,
            PlanState.RUNNING,
            "plan_reopened",
            command.actor,
            about={"reason": command.verb},
            # A verification that runs now checks a branch that no longer exists.
            verify_fence=plan.verify_fence + 1,
            **_UNJUDGED,
        )
    loop = need(tx.get(Loop, plan.loop_id), "the loop")
    if loop.state in (LoopState.FAILED, LoopState.COMPLETED):
        loop = move_loop(tx, loop, LoopState.RUNNING, "loop_started", command.actor)
        if command.verb == "rollback":
            reason = "work was rolled back by a person"
            move_loop(tx, loop, LoopState.STOPPED, "loop_stopped", command.actor, reason)


def _said(tx: Tx, asked: Asked, command: Command, keys: Sequence[str], again: Sequence[Task]) -> str:
    loop = need(tx.get(Loop, asked.loop.id), "the loop")
    parts = []
    if keys:
        parts.append(f"taken back: {_listed(keys)}")
        if where := _also_in(tx, asked, keys):
            parts.append(f"{where} has this work already and keeps it: revert it there yourself")
    others = [task.key for task in again if task.key not in keys]
    if command.verb == "reject" and asked.target is not None:
        current = need(tx.get(Task, asked.target.id), "the task")
        attempt = need(tx.get(Attempt, current.attempt_id or ""), "the attempt")
        parts.append(f"attempt {attempt.n} of {current.key} is queued")
        others = [key for key in others if key != current.key]
    if others:
        parts.append(f"queued again with it: {_listed(others)}")
    if loop.state is not LoopState.RUNNING:
        parts.append(f"`loopwright resume {short_id(asked.plan.id)}` continues")
    return "; ".join(parts)


def _also_in(tx: Tx, asked: Asked, keys: Sequence[str]) -> str:
    """Return where some of these tasks were merged at the plan's finish or by `accept`; empty if none was."""
    gone = {task.id for task in asked.tasks if task.key in keys}
    ends = tx.find(Finish, plan_id=asked.plan.id, state=FinishState.FINISHED, order_by=("created_at",))
    taken = [one for one in ends if not one.tasks or gone.intersection(one.tasks)]
    if not taken:
        return ""
    return "the pull request" if taken[-1].how == PULL_REQUEST else asked.plan.base_ref


def _listed(keys: Sequence[str]) -> str:
    return ", ".join(keys[:10]) + (" …" if len(keys) > 10 else "")
