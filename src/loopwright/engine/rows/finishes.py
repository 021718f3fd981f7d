"""The rows of a plan's finish: begun by policy or the user, moved by its table, with an event for each move."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from loopwright.core.policy.finishing import LEAVE, WAYS, chosen, refuse_unknown
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Command, Finish, Leg, Plan, Role, Run, Task
from loopwright.core.values.errors import FenceLost, NotFound, Refused
from loopwright.core.values.ids import Kind, short_id
from loopwright.core.values.states import (
    FINISH,
    OPEN_FINISH,
    FinishState,
    PlanState,
    RunState,
    TaskState,
    step,
)
from loopwright.core.values.wording import to_type
from loopwright.engine.rows.moves import MACHINE, move_run, need
from loopwright.engine.rows.plan_states_text import plan_word
from loopwright.ports import Ids, Tx

_EVENTS: Final = {
    FinishState.CHECKING: "finish_checked_again",
    FinishState.LANDING: "finish_landing",
    FinishState.FINISHED: "finish_done",
    FinishState.REFUSED: "finish_refused",
}


def begin(tx: Tx, ids: Ids, plan: Plan, how: str, actor: str = MACHINE, tasks: Sequence[Task] = ()) -> Finish:
    """Record that a plan's result will be merged or pushed; the next reconcile does it."""
    now = tx.now()
    finish = Finish(
        id=ids(Kind.FINISH),
        plan_id=plan.id,
        how=how,
        state=FinishState.CHECKING,
        actor=actor,
        tasks=tuple(task.id for task in tasks),
        created_at=now,
        updated_at=now,
    )
    tx.insert(finish)
    about: dict[str, Any] = {"finish": finish.id, "how": how, "tasks": [task.key for task in tasks]}
    tx.append(happened("finish_begun", actor, plan=plan, **about))
    return finish


def accept(tx: Tx, ids: Ids, command: Command) -> str:
    """Merge a plan's work because the user accepts it: all of it, or some of its tasks."""
    plan = tx.get(Plan, command.target)
    if plan is None:
        raise NotFound(f"there is no plan {command.target}", code="plan_not_found")
    tasks = tx.find(Task, plan_id=plan.id, order_by=("position",))
    keys = [str(key) for key in command.arguments.get("tasks") or ()]
    refuse_unknown(tasks, keys)
    how = str(command.arguments.get("finish") or plan.policy.finish)
    if how not in WAYS:
        raise Refused(
            f"there is no way {how!r} to finish a plan",
            code="finish_unknown",
            hint=f"one of: {', '.join(WAYS)}",
        )
    if how == LEAVE:
        raise Refused(
            "the plan's setting `finish` is leave, so there is nothing to do with its branch",
            code="finish_is_leave",
            hint=f"say what: --finish {' or --finish '.join(WAYS[1:])}",
        )
    if is_open(tx, plan.id):
        raise Refused(
            "its end is being carried out already",
            code="finish_in_progress",
            hint=f"`loopwright resume {short_id(plan.id)}` continues it",
        )
    wanted = chosen(tasks, keys, accepted(tx, plan.id)) if keys else ()
    if plan.status is PlanState.VERIFIED and {task.id for task in wanted} >= _landed(tasks):
        wanted = ()  # that is all of it, which was verified as it is
    if plan.status is not PlanState.VERIFIED and not wanted:
        landed = ",".join(task.key for task in tasks if task.status is TaskState.COMPLETE)
        some = to_type("accept", short_id(plan.id), tasks=landed)
        hint = f"accept what has landed: `{some}`" if landed else "`loopwright status` shows more"
        raise Refused(f"the plan is {plan_word(tx, plan)}, not VERIFIED", code="plan_not_verified", hint=hint)
    begin(tx, ids, plan, how, command.actor, wanted)
    what = f"{len(wanted)} of {len(tasks)} tasks" if wanted else "the plan"
    return f"accepted {what}: {how}"


def _landed(tasks: Sequence[Task]) -> set[str]:
    return {task.id for task in tasks if task.status is TaskState.COMPLETE}


def accepted(tx: Tx, plan_id: str) -> set[str]:
    """Return the tasks of a plan that were merged before."""
    done = tx.find(Finish, plan_id=plan_id, state=FinishState.FINISHED)
    every = (
        {task.id for task in tx.find(Task, plan_id=plan_id)} if any(not one.tasks for one in done) else set()
    )
    return every | {task_id for one in done for task_id in one.tasks}


def is_open(tx: Tx, plan_id: str) -> bool:
    """Return whether a finish of a plan is running."""
    return tx.count(Finish, plan_id=plan_id, state=OPEN_FINISH) > 0


def due(tx: Tx) -> list[Finish]:
    """Return the finishes that are due now."""
    now = tx.now()
    return [
        one for one in tx.find(Finish, state=OPEN_FINISH) if one.not_before is None or one.not_before <= now
    ]


def new(tx: Tx) -> bool:
    """Return whether a finish was requested and has not begun."""
    return tx.count(Finish, state=FinishState.CHECKING, leg=0) > 0


def commit_finish_leg(tx: Tx, finish: Finish) -> Leg:
    """Commit to the next leg of a finish, with a fence that locks out the leg before it."""
    moved = tx.update(
        Finish, finish.id, expect={"leg": finish.leg}, leg=finish.leg + 1, fence=finish.fence + 1
    )
    return Leg(subject=finish.id, n=moved.leg, fence=moved.fence)


def call_off(tx: Tx, plan: Plan, actor: str) -> str:
    """Stop a running finish because the user wants it; return empty text if there is none."""
    for finish in tx.find(Finish, plan_id=plan.id, state=OPEN_FINISH):
        if finish.state is FinishState.LANDING:
            raise Refused(
                "the plan's work is being taken over right now",
                code="finish_in_progress",
                hint="wait a moment",
            )
        for run in tx.find(Run, plan_id=plan.id, role=Role.FINISH, state=RunState.RUNNING):
            move_run(tx, run, RunState.CANCELLED, ended_by="asked", summary="stopped by a person")
        told = f"stopped by a person\n`loopwright accept {short_id(plan.id)}` takes it up again"
        move_finish(tx, finish, FinishState.REFUSED, actor, fence=None, detail=told)
        return "stopped; the plan's branch is as it was, and nothing else was moved"
    return ""


def move_finish(
    tx: Tx,
    finish: Finish,
    target: FinishState,
    actor: str = MACHINE,
    *,
    fence: int | None,
    about: Any = None,
    **changes: Any,
) -> Finish:
    """Move a finish by its table and record the event; with a fence, only if no other leg took it over."""
    current = mine(tx, finish.id, fence) if fence is not None else finish
    if current.state is not finish.state:
        # The same leg may run twice: the quicker one's work is not repeated.
        raise FenceLost(f"{finish.id} was carried on by a second run of the same leg")
    step("finish", FINISH, finish.id, current.state, target)
    over = {} if target in OPEN_FINISH else {"finished_at": tx.now()}
    moved = tx.update(
        Finish,
        finish.id,
        expect={"state": current.state},
        state=target,
        updated_at=tx.now(),
        **over,
        **changes,
    )
    plan = need(tx.get(Plan, finish.plan_id), "the plan")
    told = {"finish": finish.id, "how": finish.how, **(about or {})}
    if moved.detail and target not in OPEN_FINISH:
        told["detail"] = moved.detail
    tx.append(happened(_EVENTS[target], actor, plan=plan, **told))
    return moved


def mine(tx: Tx, finish_id: str, fence: int) -> Finish:
    """Return an open finish of the leg with this fence, or raise."""
    current = need(tx.get(Finish, finish_id), "the finish")
    if current.fence != fence or current.state not in OPEN_FINISH:
        raise FenceLost(f"{finish_id} was taken over, or has ended")
    return current


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishView:
    """One finish of a plan, for people and programs."""

    id: str
    how: str
    state: FinishState
    actor: str
    tasks: tuple[str, ...]
    """The names of the tasks; empty for the whole plan."""
    target_sha: str | None
    commit_sha: str | None
    request_url: str | None
    receipt_sha256: str | None
    signed: bool
    detail: str
    finished_at: datetime | None

    @property
    def is_automatic(self) -> bool:
        """Whether Loopwright began it, as the plan's setting `finish` says; else a user did."""
        return self.actor == MACHINE


def finish_views(tx: Tx, plan_id: str, keys: dict[str, str]) -> tuple[FinishView, ...]:
    """Return the finishes of a plan, the oldest first; `keys` are the names of its tasks."""
    return tuple(
        FinishView(
            id=one.id,
            how=one.how,
            state=one.state,
            actor=one.actor,
            tasks=tuple(keys[task] for task in one.tasks if task in keys),
            target_sha=one.target_sha,
            commit_sha=one.commit_sha,
            request_url=one.request_url,
            receipt_sha256=one.receipt_sha256,
            signed=one.signed,
            detail=one.detail,
            finished_at=one.finished_at,
        )
        for one in tx.find(Finish, plan_id=plan_id, order_by=("created_at",))
    )
