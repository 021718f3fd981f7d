"""What agents do to loops with their tools: carried out, recorded with the reason, and undone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from loopwright.adapters.machine.host import new_id
from loopwright.adapters.processes.redaction import redacted
from loopwright.core.policy import escalations
from loopwright.core.rows.action_rows import Action
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Loop, Plan, Project, Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.access import Caller
from loopwright.core.values.errors import LoopwrightError, NotFound, Refused, UserError
from loopwright.core.values.ids import Kind, is_id
from loopwright.core.values.states import (
    ACTION,
    ENDED_PLAN,
    ActionState,
    LoopState,
    QuestionState,
    TaskState,
    step,
)
from loopwright.core.values.wording import one_line, to_type
from loopwright.ports import Tx
from loopwright.services.control import decisions
from loopwright.services.homes.session import Session
from loopwright.services.remote.drafting import Autonomy, PlanWish, ask_for_plan
from loopwright.services.remote.loops import change_loop, steer_loop
from loopwright.services.remote.questions import answer_question
from loopwright.services.remote.seen import (
    acting,
    current_plan,
    seen_loop,
    seen_plan,
    seen_project,
    seen_question,
    seen_task,
    seen_where,
)
from loopwright.services.remote.starting import NewLoop, ask_to_start, create_loop, delete_loop

__all__ = ["Action", "ActionKind", "Wish", "act", "list_actions", "undo"]

ActionKind = Literal["create", "plan", "start", "pause", "prioritise", "answer", "split"]
MOST_PER_RUN: Final = 50
"""How often one run may change loops."""
_LONGEST: Final = 1_000
_MOST: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What an agent wants to do, and why. What is needed depends on the kind."""

    kind: ActionKind
    reason: str
    project_id: str = ""
    loop_id: str = ""
    task: str = ""
    question_id: str = ""
    template: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    priority: int | None = None
    goal: str = ""
    autonomy: Autonomy = "manual"
    text: str = ""
    other: bool = False
    now: bool = False
    parts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    project: Project
    loop: Loop | None = None
    task: Task | None = None
    question: Question | None = None

    @property
    def loop_id(self) -> str | None:
        return self.loop.id if self.loop is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Done:
    """What an action came to."""

    result: str
    about: Mapping[str, Any] = field(default_factory=dict)
    loop_id: str | None = None
    plan_id: str | None = None
    task_id: str | None = None


async def act(at: Session, caller: Caller, wish: Wish) -> Action:
    """Do what an agent wants. The record is there before the effect, also of what is refused."""
    if not wish.reason.strip():
        raise UserError(
            "no reason is given",
            code="reason_missing",
            hint="say in a sentence why this is right now",
        )
    said = redacted(one_line(wish.reason, _LONGEST), ())
    run_id = caller.bounds.run_id if caller.bounds is not None else None

    def begin(tx: Tx) -> tuple[Action, _Target]:
        target = _target(tx, caller, wish)
        if run_id is not None and tx.count(Action, run_id=run_id) >= MOST_PER_RUN:
            raise Refused(
                f"this run has done {MOST_PER_RUN} things already",
                code="too_many_actions",
                hint="end now; the next run continues",
            )
        row = Action(
            id=new_id(Kind.ACTION),
            project_id=target.project.id,
            kind=wish.kind,
            loop_id=target.loop_id,
            task_id=target.task.id if target.task is not None else None,
            reason=said,
            actor=caller.actor,
            run_id=run_id,
            state=ActionState.BEGUN,
            created_at=tx.now(),
        )
        tx.insert(row)
        return row, target

    row, target = await at.home.store.transact("action.begin", begin)
    try:
        done = await _carry_out(at, caller, wish, target)
    except LoopwrightError as refused:
        why = f"{refused.code}: {refused}"[:_LONGEST]
        await at.home.store.transact(
            "action.refused", lambda tx: _move(tx, row, ActionState.REFUSED, result=why)
        )
        raise

    def end(tx: Tx) -> Action:
        ids = {
            name: value
            for name in ("loop_id", "plan_id", "task_id")
            if (value := getattr(done, name)) is not None
        }
        moved = _move(tx, row, ActionState.DONE, result=done.result, about=dict(done.about), **ids)
        _tell(tx, moved, "action_taken", caller.actor, moved.reason)
        return moved

    return await at.home.store.transact("action.done", end)


async def list_actions(at: Session, caller: Caller, project_id: str | None = None) -> tuple[Action, ...]:
    """Return what agents did, the newest first."""

    def load(tx: Tx) -> tuple[Action, ...]:
        where = seen_where(tx, caller, project_id)
        return tuple(tx.find(Action, order_by=("-created_at", "-id"), limit=_MOST, **where))

    return await at.home.store.read(load)


async def undo(at: Session, caller: Caller, action_id: str) -> Action:
    """Undo what an agent did, as far as its effect can be taken back; refuse it otherwise, with what is possible."""

    def load(tx: Tx) -> tuple[Action, Project]:
        row = tx.get(Action, action_id) if is_id(action_id, Kind.ACTION) else None
        if row is None or not caller.sees(row.project_id):
            raise NotFound(f"there is no action {action_id}", code="action_not_found")
        if row.state is not ActionState.DONE:
            raise _not_undoable(f"the action is {row.state.value}")
        return row, seen_project(tx, caller, row.project_id)

    row, project = await at.home.store.read(load)
    result = await _undo(at, caller, row, project)

    def end(tx: Tx) -> Action:
        moved = _move(tx, row, ActionState.UNDONE, result=result, undone_at=tx.now(), undone_by=caller.actor)
        _tell(tx, moved, "action_undone", caller.actor, result)
        return moved

    return await at.home.store.transact("action.undone", end)


def _target(tx: Tx, caller: Caller, wish: Wish) -> _Target:
    if wish.kind in ("create", "plan"):
        return _Target(project=seen_project(tx, caller, wish.project_id))
    if wish.kind == "answer":
        question = seen_question(tx, caller, wish.question_id)
        loop = seen_loop(tx, caller, question.loop_id, deleted=True)
        return _Target(project=seen_project(tx, caller, question.project_id), loop=loop, question=question)
    loop = seen_loop(tx, caller, wish.loop_id)
    task = seen_task(tx, caller, current_plan(tx, loop), wish.task) if wish.task else None
    return _Target(project=seen_project(tx, caller, loop.project_id), loop=loop, task=task)


async def _carry_out(at: Session, caller: Caller, wish: Wish, target: _Target) -> _Done:
    loop, task, question = target.loop, target.task, target.question
    if wish.kind == "create":
        wanted = NewLoop(
            project_id=target.project.id,
            template=wish.template,
            values=wish.values,
            name=wish.name,
            priority=wish.priority,
        )
        made = await create_loop(at, caller, wanted)
        return _Done(result=f"the loop {made.name} was created", loop_id=made.id)
    if wish.kind == "plan":
        wanted_plan = PlanWish(goal=wish.goal, autonomy=wish.autonomy)
        record = await ask_for_plan(at, caller, target.project.id, wanted_plan)
        return _Done(result="a planner writes the tasks", plan_id=record.plan.id, loop_id=record.plan.loop_id)
    if wish.kind == "answer":
        assert question is not None, "an answer has a question"
        taken = await answer_question(at, caller, question.id, wish.text, other=wish.other)
        about = {"question": question.id, "answer": wish.text}
        return _Done(
            result=taken.command.result, about=about, plan_id=taken.plan_id, task_id=question.task_id
        )
    assert loop is not None, "the other kinds are about a loop"
    if wish.kind == "start":
        await ask_to_start(at, caller, loop.id) if loop.state is not LoopState.PAUSED else await steer_loop(
            at, caller, loop.id, "resume"
        )
        return _Done(result="started", about={"was": loop.state.value})
    if wish.kind == "pause":
        await steer_loop(at, caller, loop.id, "pause", now=wish.now)
        return _Done(result="paused", about={"was": loop.state.value})
    if wish.kind == "prioritise":
        return await _prioritise(at, caller, wish, target)
    if task is None:
        raise NotFound("a split needs a task", code="task_expected", hint="name a task of the loop")
    with acting(at, caller, target.project):
        split = await decisions.split(at, task.id, wish.parts)
    return _Done(result=split.command.result, plan_id=task.plan_id)


async def _prioritise(at: Session, caller: Caller, wish: Wish, target: _Target) -> _Done:
    assert target.loop is not None, "a priority is about a loop"
    if wish.priority is None:
        raise UserError("no priority is given", code="priority_missing", hint="1 is the most urgent")
    if target.task is not None:
        before = target.task.priority
        with acting(at, caller, target.project):
            await decisions.set_task_priority(at, target.task.id, wish.priority)
    else:
        before = target.loop.priority
        await change_loop(at, caller, target.loop.id, priority=wish.priority)
    return _Done(result=f"the priority is {wish.priority}, it was {before}", about={"before": before})


async def _undo(at: Session, caller: Caller, row: Action, project: Project) -> str:
    if row.kind == "answer":
        return await _undo_answer(at, caller, row, project)
    if row.kind == "plan":
        plan = await at.home.store.read(lambda tx: seen_plan(tx, caller, row.plan_id or ""))
        if plan.status in ENDED_PLAN:
            raise _not_undoable(f"the plan is {plan.status.value}", "roll it back, or leave its branch")
        with acting(at, caller, project):
            return (await decisions.cancel(at, plan.id)).command.result
    loop = await at.home.store.read(lambda tx: seen_loop(tx, caller, row.loop_id or "", deleted=True))
    if row.kind == "create":
        if loop.state in (LoopState.RUNNING, LoopState.PAUSED) or loop.start is not None:
            await steer_loop(at, caller, loop.id, "stop")
        await delete_loop(at, caller, loop.id)
        return "the loop was deleted; what its plans landed stays on their branches"
    if row.kind == "start":
        if loop.state not in (LoopState.RUNNING, LoopState.PAUSED) and loop.start is None:
            raise _not_undoable(f"the loop is {loop.state.value}", "what it landed can be rolled back")
        was_paused = row.about.get("was") == LoopState.PAUSED.value
        await steer_loop(at, caller, loop.id, "pause" if was_paused else "stop")
        return "paused again" if was_paused else "stopped"
    if row.kind == "pause":
        if row.about.get("was") == LoopState.RUNNING.value and loop.state is LoopState.PAUSED:
            await steer_loop(at, caller, loop.id, "resume")
            return "resumed"
        return "the loop did not run before, or is no longer paused: nothing to do"
    with acting(at, caller, project):
        if row.kind == "split":
            return (await decisions.unsplit(at, row.task_id or "")).command.result
        before = int(row.about["before"])
        if row.task_id is not None:
            return (await decisions.set_task_priority(at, row.task_id, before)).command.result
        return (await decisions.set_loop_priority(at, loop.id, before)).result


async def _undo_answer(at: Session, caller: Caller, row: Action, project: Project) -> str:
    def load(tx: Tx) -> tuple[Question | None, Task | None]:
        question = tx.get(Question, str(row.about.get("question")))
        return question, tx.get(Task, row.task_id) if row.task_id else None

    question, task = await at.home.store.read(load)
    if question is None or task is None or question.state is not QuestionState.ANSWERED:
        raise _not_undoable("the answer was about no task", "decide about its plan instead")
    if task.status is TaskState.COMPLETE:
        raise _not_undoable(
            f"{task.key} has landed", f"`{to_type('rollback', task.key)}` takes its work back"
        )
    with acting(at, caller, project):
        if not escalations.is_given_up(question.kind, question.key):
            note = f"Ignore the answer to this question, which was withdrawn: {one_line(question.text, 300)}"
            return (await decisions.interrupt(at, task.id, note=note)).command.result
        option = (escalations.meaning(str(row.about["answer"])) or (escalations.LEAVE, ""))[0]
        if option == escalations.LEAVE:
            return "the task was left as it was: nothing to do"
        if option == escalations.RETRY:
            return (await decisions.cancel(at, task.id, reason="its retry was undone")).command.result
        return (await decisions.retry(at, task.id)).command.result


def _move(tx: Tx, row: Action, target: ActionState, **changes: Any) -> Action:
    step("action", ACTION, row.id, row.state, target)
    return tx.update(Action, row.id, expect={"state": row.state}, state=target, **changes)


def _tell(tx: Tx, row: Action, event: str, actor: str, reason: str) -> None:
    plan = tx.get(Plan, row.plan_id) if row.plan_id else None
    loop = tx.get(Loop, row.loop_id) if row.loop_id else None
    told: dict[str, Any] = {"action": row.id, "kind": row.kind, "reason": reason}
    if plan is not None:
        tx.append(happened(event, actor, plan=plan, **told))
    elif loop is not None:
        tx.append(happened(event, actor, loop=loop, **told))
    else:
        tx.append(happened(event, actor, project_id=row.project_id, **told))


def _not_undoable(why: str, hint: str | None = None) -> Refused:
    return Refused(why, code="action_not_undoable", hint=hint)
