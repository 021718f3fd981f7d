"""What the user can request for a loop, a plan or a task.

Each command is a row, applied once and acknowledged by an event.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from loopwright.core.gates.contradictions import KIND
from loopwright.core.policy import budget, escalations, manual_steps
from loopwright.core.policy.budget import CAPS
from loopwright.core.policy.order import is_met
from loopwright.core.policy.rounds import tries
from loopwright.core.replies.discoveries import Discovery
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import (
    Attempt,
    Command,
    CommandState,
    Loop,
    Outcome,
    Plan,
    Role,
    Run,
    Task,
)
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.error_codes import kind_of
from loopwright.core.values.errors import IllegalTransition, NotFound, Refused, UserError
from loopwright.core.values.ids import Kind, short_id
from loopwright.core.values.states import (
    ENDED_PLAN,
    LIVE_ATTEMPT,
    AttemptState,
    LoopState,
    PlanState,
    QuestionState,
    RunState,
    TaskState,
)
from loopwright.core.values.wording import to_type
from loopwright.engine.money import pauses, quotas, spending
from loopwright.engine.people import discoveries, handover, locks, splitting, steering, verifying
from loopwright.engine.people.manual_steps import take_answer
from loopwright.engine.people.retries import evidence_of, refuse_superseded, reopen_plan, starts_over
from loopwright.engine.rows import finishes, questions
from loopwright.engine.rows.moves import (
    cancel_attempt,
    move_loop,
    move_plan,
    move_question,
    move_run,
    move_task,
    need,
    note_completion,
)
from loopwright.engine.rows.plan_states_text import plan_word
from loopwright.engine.rows.queue import new_attempt
from loopwright.engine.rows.versions import check_version
from loopwright.ports import Ids, Tx

Apply = Callable[[Tx, Ids, Command], str]

BY_GIT: Final = frozenset({"reject", "rollback"})
"""Commands that change the plan branch too: they stay PENDING until that is done (see `engine.plans.rollback`)."""


IF_VERSION: Final = "if_version"
"""The argument with the version that a caller saw; a command for another version is refused."""
VERSION_OF: Final = "version_of"
"""The argument with the loop, plan or task that the version belongs to."""


def request(tx: Tx, ids: Ids, *, actor: str, verb: str, target: str, arguments: Mapping[str, Any]) -> Command:
    """Record a request of the user."""
    if verb not in VERBS and verb not in BY_GIT:
        known = ", ".join((*VERBS, *sorted(BY_GIT)))
        raise NotFound(f"there is no command {verb!r}", code="command_not_found", hint=f"one of: {known}")
    command = Command(
        id=ids(Kind.COMMAND), actor=actor, verb=verb, target=target, arguments=arguments, created_at=tx.now()
    )
    tx.insert(command)
    return command


def apply(tx: Tx, ids: Ids, command: Command) -> Command:
    """Carry a command out, or raise why not: then the whole transaction is undone."""
    if expected := command.arguments.get(IF_VERSION):
        check_version(tx, str(command.arguments.get(VERSION_OF, command.target)), str(expected))
    return answer(tx, command, VERBS[command.verb](tx, ids, command))


def answer(tx: Tx, command: Command, result: str) -> Command:
    """Return the result of a command that was carried out."""
    return _answer(tx, command, CommandState.APPLIED, result, "command_applied", result=result)


def refuse(tx: Tx, command: Command, why: UserError | IllegalTransition) -> Command:
    """Refuse a command that cannot be carried out."""
    hint = getattr(why, "hint", None) or ""
    told = "\n".join(filter(None, (str(why), hint)))
    stored = "\n".join((str(why), hint, why.code))
    return _answer(tx, command, CommandState.REFUSED, stored, "command_refused", result=told, code=why.code)


def refusal(command: Command) -> UserError:
    """Return the error that a refused command stores: the message, the hint and the code."""
    rest, _, code = command.result.rpartition("\n")
    why, _, hint = rest.partition("\n")
    return kind_of(code)(why, code=code, hint=hint or None)


def pending(tx: Tx) -> list[Command]:
    """Return the pending commands, oldest first."""
    return tx.find(Command, state=CommandState.PENDING, order_by=("created_at",))


def being_decided(tx: Tx) -> set[str]:
    """Return the plans for which a user's decision is pending: nothing new starts in them until then."""
    waiting = tx.find(Command, verb=tuple(BY_GIT), state=CommandState.PENDING)
    return {plan.id for one in waiting if (plan := plan_about(tx, one.target)) is not None}


def _answer(tx: Tx, command: Command, state: CommandState, stored: str, event: str, **told: Any) -> Command:
    expect = {"state": CommandState.PENDING}
    done = tx.update(Command, command.id, expect=expect, state=state, result=stored, applied_at=tx.now())
    plan = plan_about(tx, command.target)
    if state is CommandState.REFUSED and plan is not None and plan.status in ENDED_PLAN:
        # It changed nothing: the record of a plan that has ended stays the one that its receipt has.
        plan = None
    tx.append(happened(event, command.actor, plan=plan, command=command.id, verb=command.verb, **told))
    return done


def plan_about(tx: Tx, target: str) -> Plan | None:
    """Return the plan that a command is about; None if its target is a loop or an account."""
    asked = tx.get(Question, target) or tx.get(Discovery, target)
    if asked is not None:
        return tx.get(Plan, asked.plan_id)
    task = tx.get(Task, target)
    return tx.get(Plan, task.plan_id if task else target)


def _plan(tx: Tx, command: Command) -> tuple[Plan, Loop]:
    plan = tx.get(Plan, command.target)
    if plan is None:
        raise NotFound(f"there is no plan {command.target}", code="plan_not_found")
    return plan, need(tx.get(Loop, plan.loop_id), "the loop")


def _current(tx: Tx, command: Command) -> tuple[Plan, Loop]:
    plan, loop = _plan(tx, command)
    refuse_superseded(plan, loop)
    return plan, loop


def _refuse_over(tx: Tx, plan: Plan, loop: Loop) -> None:
    if plan.status in ENDED_PLAN:
        hints = {
            PlanState.VERIFIED: "there is nothing left to do",
            PlanState.CANCELLED: starts_over(loop),
        }
        hint = hints.get(plan.status, "`retry` a failed task, or `reverify` the plan")
        raise Refused(f"the plan is {plan_word(tx, plan)}", code="plan_ended", hint=hint)


def _refuse_at_rest(tx: Tx, plan: Plan, loop: Loop) -> None:
    _refuse_over(tx, plan, loop)
    if loop.state not in (LoopState.RUNNING, LoopState.PAUSED):
        words = "needs you" if loop.state is LoopState.FAILED else f"is {plan_word(tx, plan)}"
        raise Refused(
            f"nothing is running in this plan: it {words}",
            code="nothing_running",
            hint="`loopwright status` shows more",
        )


def _interrupt(tx: Tx, plan: Plan, how: str) -> int:
    """Ask the legs of a plan to stop; their worker sees it at once."""
    live = pauses.live(tx, plan)
    for attempt in live:
        tx.update(Attempt, attempt.id, interrupt=how)
    return _begun(live)


def _begun(live: Sequence[Attempt]) -> int:
    """Count the attempts in which something runs: of the others only the workspace is prepared."""
    return sum(attempt.state is not AttemptState.PREPARING for attempt in live)


def _pause(tx: Tx, _ids: Ids, command: Command) -> str:
    plan, loop = _current(tx, command)
    if called_off := finishes.call_off(tx, plan, command.actor):
        return called_off
    _refuse_at_rest(tx, plan, loop)
    if loop.state is LoopState.PAUSED and loop.resume_at is not None:
        tx.update(Loop, loop.id, resume_at=None, reason="paused by a person", updated_at=tx.now())
    elif loop.state is LoopState.PAUSED and not command.arguments.get("now"):
        return "already paused"
    if loop.state is not LoopState.PAUSED:
        reason = str(command.arguments.get("reason") or "paused by a person")
        move_loop(tx, loop, LoopState.PAUSED, "loop_paused", command.actor, reason)
    if command.arguments.get("now"):
        return f"paused; {_asked_to_stop(_interrupt(tx, plan, 'pause'))}"
    match _begun(pauses.live(tx, plan)):
        case 0:
            return "paused; nothing was running"
        case 1:
            return "paused; 1 running attempt may finish"
        case count:
            return f"paused; {count} running attempts may finish"


def _asked_to_stop(count: int) -> str:
    match count:
        case 0:
            return "nothing was running"
        case 1:
            return "1 running attempt is asked to stop, its work is kept"
        case _:
            return f"{count} running attempts are asked to stop, their work is kept"


def _resume(tx: Tx, _ids: Ids, command: Command) -> str:
    plan, loop = _current(tx, command)
    if finishes.is_open(tx, plan.id):
        return "its end is carried on"
    _refuse_over(tx, plan, loop)
    if plan.status is PlanState.DRAFT and loop.state is LoopState.IDLE:
        raise Refused("the plan is a draft", code="plan_is_a_draft", hint="dispatch it")
    limits = {name: command.arguments[name] for name in CAPS if name in command.arguments}
    if limits:
        pauses.set_limits(tx, plan, limits, command.actor)
    if "wait_for_limits" in command.arguments:
        current = need(tx.get(Plan, plan.id), "the plan")
        waits = bool(command.arguments["wait_for_limits"])
        tx.update(Plan, plan.id, policy=replace(current.policy, wait_for_limits=waits))
    over = spending.still_over(tx, need(tx.get(Plan, plan.id), "the plan"))
    if over is not None:
        raise Refused(over.reason(plan.id), code="budget_used_up")
    pauses.go_on(tx, plan, loop, command.actor)
    return "resumed"


def is_to_be_ended(tx: Tx, plan: Plan, loop: Loop) -> bool:
    """Return whether the user wants the plan's verification ended rather than waited for."""
    if loop.state is not LoopState.PAUSED:
        return loop.state is LoopState.STOPPED
    asked = tx.find(Command, verb="pause", target=plan.id, state=CommandState.APPLIED)
    # Requested since this verification began: the plan's last move.
    return any(
        one.arguments.get("now") and (one.applied_at or plan.created_at) >= plan.updated_at for one in asked
    )


def _stop(tx: Tx, _ids: Ids, command: Command) -> str:
    plan, loop = _current(tx, command)
    if called_off := finishes.call_off(tx, plan, command.actor):
        return called_off
    if loop.state is LoopState.STOPPED and plan.status not in ENDED_PLAN:
        return "already stopped"
    _refuse_at_rest(tx, plan, loop)
    move_loop(tx, loop, LoopState.STOPPED, "loop_stopped", command.actor, "stopped by a person")
    return f"stopped; {_asked_to_stop(_interrupt(tx, plan, 'pause'))}"


def _cancel(tx: Tx, ids: Ids, command: Command) -> str:
    task = tx.get(Task, command.target)
    if task is not None and task.manual and task.status is not TaskState.COMPLETE:
        told = _cancel_task(tx, command, task)
        note_completion(tx, task)
        _reopen_held(tx, task.plan_id, command.actor)
        return told
    if task is not None and command.arguments.get("chain"):
        return _cancel_chain(tx, command, task)
    if task is not None:
        return _cancel_task(tx, command, task)
    plan, loop = _plan(tx, command)
    if plan.status is PlanState.CANCELLED and command.arguments.get("once"):
        raise Refused("the plan is CANCELLED already", code="plan_cancelled", hint=starts_over(loop))
    if plan.status is PlanState.CANCELLED:
        return "already cancelled"
    if plan.status is PlanState.VERIFIED:
        raise Refused("the plan is VERIFIED: there is nothing left to cancel", code="plan_verified")
    if plan.id in being_decided(tx):
        raise Refused(
            "work of the plan is being taken back right now",
            code="rollback_in_progress",
            hint="try again in a moment",
        )
    for open_task in tx.find(Task, plan_id=plan.id):
        if open_task.status not in (TaskState.COMPLETE, TaskState.CANCELLED):
            _cancel_task(tx, command, open_task)
    for run in tx.find(Run, plan_id=plan.id, role=(Role.VERIFY, Role.EVALUATION), state=RunState.RUNNING):
        move_run(tx, run, RunState.CANCELLED, ended_by="asked", summary="the plan was cancelled")
    plan = need(tx.get(Plan, plan.id), "the plan")
    about = {"reason": "cancelled by a person"}
    move_plan(
        tx,
        plan,
        PlanState.CANCELLED,
        "plan_cancelled",
        command.actor,
        about=about,
        outcome=Outcome.CANCELLED,
        reason=str(command.arguments.get("reason") or "cancelled by a person"),
        verify_fence=plan.verify_fence + 1,
    )
    if loop.plan_id == plan.id and loop.state in (LoopState.RUNNING, LoopState.PAUSED):
        move_loop(tx, loop, LoopState.STOPPED, "loop_stopped", command.actor, "its plan was cancelled")
    for asked in tx.find(Plan, made_for=plan.id):
        if asked.status not in ENDED_PLAN:
            _cancel(tx, ids, replace(command, target=asked.id))
    return "cancelled; what was landed stays on the plan branch, every attempt's work stays pinned"


def _cancel_chain(tx: Tx, command: Command, task: Task) -> str:
    """Cancel a task and everything that depends on it, directly or not."""
    known = {one.id: one for one in tx.find(Task, plan_id=task.plan_id)}
    todo, chain = [task.id], {task.id: task}
    while todo:
        waiting = [known[one] for one in known[todo.pop()].dependents if one not in chain]
        chain |= {one.id: one for one in waiting}
        todo += [one.id for one in waiting]
    ended = (TaskState.COMPLETE, TaskState.CANCELLED)
    keys = [one.key for one in chain.values() if one.status not in ended]
    for one in chain.values():
        if one.status not in ended:
            _cancel_task(tx, command, one)
    if not keys:
        return "already cancelled"
    return (
        f"cancelled: {', '.join(keys[:10])}{' …' if len(keys) > 10 else ''}{_what_is_left(tx, task.plan_id)}"
    )


def _cancel_task(tx: Tx, command: Command, task: Task) -> str:
    if task.status is TaskState.CANCELLED:
        return "already cancelled"
    if task.status is TaskState.COMPLETE:
        raise Refused(
            f"the task {task.key} has landed already: there is nothing left to cancel",
            code="task_landed",
            hint=f"`{to_type('rollback', task.key)}` takes back what it landed",
        )
    move_task(
        tx,
        task,
        TaskState.CANCELLED,
        "task_cancelled",
        command.actor,
        outcome=Outcome.CANCELLED,
        reason="cancelled by a person",
        taken_by="",
        taken_dir="",
    )
    handover.declined(tx, task)
    attempt = tx.get(Attempt, task.attempt_id) if task.attempt_id else None
    if attempt is not None and attempt.state in LIVE_ATTEMPT:
        if attempt.state is AttemptState.LANDING:
            raise Refused(
                f"task {task.key} is landing right now",
                code="task_landing",
                hint="`stop` lets it finish, if no worker runs here",
            )
        if attempt.state in (AttemptState.QUEUED, AttemptState.WAITING):
            cancel_attempt(tx, attempt, fence=None, actor=command.actor)
        else:
            tx.update(Attempt, attempt.id, interrupt="cancel")
    return f"cancelled{_what_is_left(tx, task.plan_id)}"


def _what_is_left(tx: Tx, plan_id: str) -> str:
    """Return how a plan continues if only cancelled tasks are left: it does not do so by itself."""
    statuses = {task.status for task in tx.find(Task, plan_id=plan_id) if not task.manual}
    if statuses != {TaskState.COMPLETE, TaskState.CANCELLED}:
        return ""
    return (
        f"; all the rest has landed: `loopwright reverify {short_id(plan_id)}` verifies the plan without it"
    )


def check_retry(tx: Tx, task: Task) -> tuple[Plan, Attempt | None]:
    """Return the plan and the last attempt of a task that may be tried again, or raise why not."""
    if task.status is TaskState.COMPLETE:
        raise Refused(
            f"the task {task.key} has landed: there is nothing to try again",
            code="task_landed",
            hint=f"`{to_type('reject', task.key, note='what is wrong with it')}` sends it back",
        )
    if task.status not in (TaskState.ERROR, TaskState.CANCELLED):
        raise Refused(
            f"the task is {task.status.value}; only a failed or cancelled one can be retried",
            code="task_not_retryable",
            hint="cancel it first if it is running",
        )
    if is_met(task):
        waiting = (TaskState.CREATED, TaskState.QUEUED)
        if begun := [one.key for one in tx.find(Task, id=task.dependents) if one.status not in waiting]:
            raise Refused(
                f"you skipped {task.key}, and {', '.join(begun[:3])} started without it",
                code="task_not_retryable",
                hint="do the step by hand whenever you like: nothing waits for it",
            )
    plan = need(tx.get(Plan, task.plan_id), "the plan")
    loop = need(tx.get(Loop, plan.loop_id), "the loop")
    refuse_superseded(plan, loop)
    if plan.status is PlanState.CANCELLED:
        raise Refused("its plan was cancelled", code="plan_cancelled", hint=starts_over(loop))
    if plan.status is PlanState.VERIFYING:
        raise Refused(
            "its plan is being verified right now",
            code="plan_verifying",
            hint="`stop` the plan first, or wait",
        )
    if plan.status is PlanState.VERIFIED:
        raise Refused("its plan was verified without it", code="plan_verified", hint=starts_over(loop))
    last = tx.get(Attempt, task.attempt_id) if task.attempt_id else None
    if last is not None and last.state in LIVE_ATTEMPT:
        raise Refused(
            "its last attempt is still being ended", code="attempt_ending", hint="try again in a moment"
        )
    return plan, last


def may_retry(tx: Tx, task: Task) -> bool:
    """Return whether a task may be tried again."""
    try:
        check_retry(tx, task)
    except Refused:
        return False
    return True


def _retry(tx: Tx, ids: Ids, command: Command) -> str:
    """Give a task another attempt, steered by a note, another agent or another model."""
    task = tx.get(Task, command.target)
    if task is None:
        raise NotFound(f"there is no task {command.target}", code="task_not_found")
    plan, last = check_retry(tx, task)
    steer = {
        name: command.arguments[name] for name in ("note", "agent", "model") if command.arguments.get(name)
    }
    allowed = command.arguments.get("allow") or ()
    if allowed:
        steer["approved"] = tuple(dict.fromkeys((*task.approved, *allowed)))
    task = tx.update(
        Task,
        task.id,
        # As many more as at the beginning: used up attempts are not given twice.
        max_attempts=max(task.max_attempts, task.attempts + min(task.max_attempts, tries(plan, task))),
        call_failures=0,
        races=0,
        passed_over=0,
        failure_mark="",
        failure=None,
        reason="",
        not_before=None,
        outcome=None,
        **steer,
    )
    if task.manual:
        move_task(tx, task, TaskState.QUEUED, "task_retried", command.actor, about=steer)
        reopen_plan(tx, plan.id, command.actor)
        return f"{task.key} is asked again"
    numbers = [attempt.n for attempt in tx.find(Attempt, task_id=task.id)]
    told = evidence_of(tx, last)
    attempt = new_attempt(tx, ids, plan, task, n=max(numbers, default=0) + 1, evidence=told)
    about = {"n": attempt.n, **steer}
    move_task(tx, task, TaskState.QUEUED, "task_retried", command.actor, about=about, attempt_id=attempt.id)
    reopen_plan(tx, plan.id, command.actor)
    return f"attempt {attempt.n} is queued"


def _answered(tx: Tx, ids: Ids, command: Command) -> str:
    """Take an answer; one about a budget, or about a failed task, is itself a command."""
    question = tx.get(Question, command.target)
    if question is None or question.state is not QuestionState.OPEN:
        return questions.answer(tx, ids, command)
    if escalations.is_given_up(question.kind, question.key):
        return _decided(tx, ids, command, question)
    if question.kind == manual_steps.KIND:
        questions.refuse_scope(question, command)
        said = str(command.arguments.get("answer") or "")
        told = take_answer(tx, question, said, command.actor)
        _reopen_held(tx, question.plan_id, command.actor)
        return told
    if question.kind != budget.ASKED:
        told = questions.answer(tx, ids, command)
        loop = need(tx.get(Loop, question.loop_id), "the loop")
        plan = need(tx.get(Plan, question.plan_id), "the plan")
        held = loop.plan_id == plan.id and loop.state is LoopState.FAILED and plan.status is PlanState.RUNNING
        if question.kind == KIND and held:
            reopen_plan(tx, plan.id, command.actor)  # only this question held it
        if question.kind == KIND and not question.task_id:
            return "answered; the verification of the plan continues"
        return told
    text = str(command.arguments.get("answer") or "")
    verb, arguments = pauses.meant(tx, question, text, command.actor)
    return VERBS[verb](tx, ids, replace(command, verb=verb, target=question.plan_id, arguments=arguments))


def _reopen_held(tx: Tx, plan_id: str, actor: str) -> None:
    """Let a plan continue that was held for the user, if its loop is not paused or stopped."""
    plan = need(tx.get(Plan, plan_id), "the plan")
    loop = need(tx.get(Loop, plan.loop_id), "the loop")
    if loop.plan_id == plan.id and loop.state is LoopState.FAILED and plan.status is PlanState.RUNNING:
        done_at = plan.completed_at
        reopen_plan(tx, plan.id, actor)
        tx.update(Plan, plan.id, completed_at=done_at)


def _decided(tx: Tx, ids: Ids, command: Command, question: Question) -> str:
    """Do with a failed task what the user decides."""
    questions.refuse_scope(question, command)
    text = str(command.arguments.get("answer") or "")
    found = escalations.meaning(text)
    if found is None:
        hint = f"one of {', '.join(question.options)}; or `retry: …` with a hint for its agent"
        raise Refused(f"{text!r} is not an answer to this question", code="answer_not_offered", hint=hint)
    option, note = found
    if option == escalations.CHAIN and option not in question.options:
        hint = f"one of {', '.join(question.options)}"
        raise Refused("nothing waits for this task", code="answer_not_offered", hint=hint)
    move_question(tx, question, QuestionState.ANSWERED, command.actor, answer=text.strip()[:4000])
    if option == escalations.LEAVE:
        task = need(tx.get(Task, question.task_id), "the task")
        return f"left as it is; `{to_type('retry', task.key)}` tries it again whenever you like"
    arguments: dict[str, Any] = {"note": note} if note else {}
    if option == escalations.CHAIN:
        option, arguments = escalations.CANCEL, {"chain": True}
    return VERBS[option](tx, ids, replace(command, verb=option, target=question.task_id, arguments=arguments))


VERBS: Final[Mapping[str, Apply]] = {
    "pause": _pause,
    "resume": _resume,
    "stop": _stop,
    "cancel": _cancel,
    "retry": _retry,
    "reset": lambda tx, ids, command: steering.reset(tx, ids, command, _retry),
    "inject": steering.inject,
    "split": lambda tx, ids, command: splitting.split(tx, ids, command, _retry),
    "unsplit": lambda tx, _, command: splitting.unsplit(tx, command, _cancel_task),
    "set_priority": steering.set_priority,
    "set_agent": steering.set_agent,
    "reverify": lambda tx, _, command: verifying.reverify(tx, command, _cancel_task),
    "fail": lambda tx, _, command: verifying.fail(tx, command, _cancel_task),
    "dispatch": steering.dispatch,
    "interrupt": steering.interrupt,
    "set_limits": steering.set_limits,
    "answer": _answered,
    "open": quotas.reopen,
    "accept": finishes.accept,
    "take_over": handover.take_over,
    "hand_back": handover.hand_back,
    "reviewed": handover.reviewed,
    "accept_discovered": discoveries.accept,
    "dismiss_discovered": discoveries.dismiss,
    "take_lock": locks.take_lock,
    "release_hold": locks.release_hold,
}
