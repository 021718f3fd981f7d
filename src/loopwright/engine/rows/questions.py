"""Questions of runs to the user: who waits for the answer, and what follows from it."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from loopwright.core.gates.contradictions import ACCEPT, KIND, OPTIONS, REJECT
from loopwright.core.gates.gates import task_commands
from loopwright.core.replies.questions import Asking
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Attempt, Command, Plan, Run, Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.errors import NotFound, Refused
from loopwright.core.values.ids import Kind
from loopwright.core.values.permissions import Permissions, access_of, to_run_checks
from loopwright.core.values.states import AttemptState, QuestionState, TaskState
from loopwright.core.values.wording import shortened, to_type
from loopwright.engine.rows.moves import MACHINE, move_attempt, move_question, move_task, need
from loopwright.ports import Ids, Tx

SCOPES: Final = ("run", "loop", "project")
YES: Final = "yes"
NO: Final = "no"
_PERMISSION: Final = "permission"
_TOLD: Final = 500
"""The longest excerpt of a question where it is only mentioned."""
_DIGITS: Final = 9
"""A longer row of digits is not the number of an option."""


def wait_for_answers(
    tx: Tx,
    ids: Ids,
    plan: Plan,
    attempt: Attempt,
    run: Run,
    asked: Sequence[Asking],
    *,
    fence: int,
    **saved: Any,
) -> Attempt:
    """Record a run's questions, and park its attempt until they are answered, or expire.

    A question that was answered while the run continued is not asked again: the attempt continues at once
    with the answer.
    """
    found = _ask(tx, ids, plan, attempt, run, asked)
    open_ones = [one for one in found if one.state is QuestionState.OPEN]
    due = [one.deadline for one in open_ones if one.deadline is not None]
    parked = move_attempt(
        tx,
        attempt,
        AttemptState.WAITING,
        fence=fence,
        interrupt="",
        wake_at=min(due, default=None) if open_ones else tx.now(),
        wait_reason=shortened(f"asks: {open_ones[0].text}", _TOLD) if open_ones else "it has its answer",
        questions=tuple(dict.fromkeys((*attempt.questions, *(one.id for one in found)))),
        **saved,
    )
    task = need(tx.get(Task, attempt.task_id), "the task")
    if open_ones and task.status is TaskState.RUNNING:
        move_task(tx, task, TaskState.AWAITING_RESPONSE, "task_awaiting")
    return parked


def _ask(
    tx: Tx, ids: Ids, plan: Plan, attempt: Attempt, run: Run, asked: Sequence[Asking]
) -> tuple[Question, ...]:
    """Record a run's question; a permission that another run already asked for is the same question."""
    found: dict[str, Question] = {}
    for asking in asked:
        question = (
            _settled(tx, plan, attempt, run, asking)
            or _same(tx, plan, asking)
            or _new(tx, ids, plan, run, asking)
        )
        if attempt.id not in question.asked_by:
            question = tx.update(Question, question.id, asked_by=(*question.asked_by, attempt.id))
        event = "question_asked" if len(question.asked_by) == 1 else "question_joined"
        told = shortened(question.text, _TOLD)
        tx.append(happened(event, MACHINE, plan=plan, run=run, question=question.id, text=told))
        found[question.id] = question
    return tuple(found.values())


def _same(tx: Tx, plan: Plan, asking: Asking) -> Question | None:
    if asking.wish is None:
        return None
    known = tx.find(
        Question, project_id=plan.project_id, key=asking.wish.key, state=QuestionState.OPEN, limit=1
    )
    return known[0] if known else None


def _settled(tx: Tx, plan: Plan, attempt: Attempt, run: Run, asking: Asking) -> Question | None:
    """Return a permission that the user also settled for this run since it began, without the run knowing."""
    if asking.wish is None or run.started_at is None:
        return None
    known = tx.find(
        Question,
        project_id=plan.project_id,
        key=asking.wish.key,
        state=QuestionState.ANSWERED,
        order_by=("-answered_at",),
    )
    latest = next((one for one in known if _holds(one, plan, attempt)), None)
    return latest if latest and latest.answered_at and latest.answered_at > run.started_at else None


def _new(tx: Tx, ids: Ids, plan: Plan, run: Run, asking: Asking) -> Question:
    within, now = plan.policy.answer_within, tx.now()
    question = Question(
        id=ids(Kind.QUESTION),
        project_id=plan.project_id,
        loop_id=plan.loop_id,
        plan_id=plan.id,
        task_id=run.task_id or "",
        run_id=run.id,
        kind=asking.kind,
        key=asking.wish.key if asking.wish else asking.key,
        text=asking.text,
        options=asking.options,
        # Nothing is ever mistaken for a yes, whatever an adapter passes on.
        default=None if asking.kind == _PERMISSION else asking.default,
        # Work that waits for a decision is finished: nothing is lost by waiting longer.
        deadline=None if within is None or asking.kind == KIND else now + timedelta(seconds=within),
        created_at=now,
    )
    tx.insert(question)
    return question


def of_attempt(tx: Tx, attempt: Attempt) -> list[Question]:
    """Return the questions that an attempt waits for, or waited for last."""
    return tx.find(Question, id=attempt.questions, order_by=("created_at",)) if attempt.questions else []


def of_plan(tx: Tx, plan_id: str) -> list[Question]:
    """Return the questions about checks that a plan's result contradicts, the oldest first."""
    return tx.find(Question, plan_id=plan_id, task_id="", kind=KIND, order_by=("created_at",))


def open_of(tx: Tx, attempt: Attempt) -> list[Question]:
    """Return the questions that an attempt still waits for."""
    return [one for one in of_attempt(tx, attempt) if one.state is QuestionState.OPEN]


def answer(tx: Tx, _ids: Ids, command: Command) -> str:
    """Take the user's answer, and let everyone who waited for it continue."""
    question = tx.get(Question, command.target)
    if question is None:
        raise NotFound(
            f"there is no question {command.target}",
            code="question_not_found",
            hint="`loopwright answer` lists them",
        )
    if question.state is not QuestionState.OPEN:
        known = f": {question.answer}" if question.answer else ""
        raise Refused(
            f"the question is {question.state.value.lower()} already{known}",
            code="question_settled",
            hint=_too_late(tx, question),
        )
    said = str(command.arguments.get("answer") or "").strip()
    text = _checked(question, said, other=bool(command.arguments.get("other")))
    scope = refuse_scope(question, command)
    move_question(tx, question, QuestionState.ANSWERED, command.actor, answer=text, holds_for=scope)
    waiting = _wake(tx, question)
    return f"answered; {waiting} tasks continue" if waiting != 1 else "answered; 1 task continues"


def _too_late(tx: Tx, question: Question) -> str:
    """Return how the user's answer still reaches a task whose question has ended."""
    task = tx.get(Task, question.task_id) if question.task_id else None
    if task is None:
        return "`loopwright answer` lists what is still open"
    again = f"`{to_type('retry', task.key, note='…')}` tries it again with what you say"
    if task.status is TaskState.COMPLETE:
        return f"it has landed: `{to_type('reject', task.key, note='…')}` sends it back with what you say"
    if task.status in (TaskState.ERROR, TaskState.CANCELLED):
        return again
    return (
        f"its agent continues with that: to say something else, `{to_type('cancel', task.key)}`, then {again}"
    )


def refuse_scope(question: Question, command: Command) -> str:
    """Return the scope of an answer, or refuse one that this question does not have."""
    scope = str(command.arguments.get("for") or "run")
    if scope not in SCOPES:
        raise Refused(
            f"an answer cannot hold for {scope!r}",
            code="answer_scope_unknown",
            hint=f"one of {', '.join(SCOPES)}",
        )
    if scope != "run" and question.kind != _PERMISSION:
        raise Refused(
            "only the answer to a permission can hold for more than the run that asked",
            code="answer_scope_not_allowed",
        )
    return scope


def _checked(question: Question, text: str, *, other: bool = False) -> str:
    if not text:
        raise Refused(
            "the answer is empty",
            code="answer_empty",
            hint=f"one of {', '.join(question.options)}" if question.options else "",
        )
    if question.kind == _PERMISSION:
        short = {"y": YES, "n": NO}.get(text.lower(), text.lower())
        if short not in (YES, NO):
            raise Refused(
                f"{text!r} is not an answer to this question",
                code="answer_not_offered",
                hint="answer yes or no",
            )
        return short
    if question.kind == KIND:
        return _decision(text)
    if not question.options or other:
        return text
    # The number of an option means that option.
    if text.isdecimal() and len(text) <= _DIGITS and 1 <= int(text) <= len(question.options):
        return question.options[int(text) - 1]
    for option in question.options:
        if option.casefold() == text.casefold():
            return option
    # An answer cannot be taken back, so an answer that is not an option needs `--other`.
    raise Refused(
        f"there is no option {text}",
        code="answer_not_offered",
        hint=f"1 to {len(question.options)}, or one of {', '.join(question.options)}; "
        "--other gives an answer that is none of them",
    )


def _decision(text: str) -> str:
    """Return a decision about contradicted checks; text that is neither is refused."""
    said, colon, words = text.partition(":")
    said = {str(n): option for n, option in enumerate(OPTIONS, 1)}.get(said.strip(), said.strip().lower())
    if said == ACCEPT and not colon:
        return ACCEPT
    if said == REJECT:
        return f"{REJECT}: {words.strip()}" if words.strip() else REJECT
    raise Refused(
        f"{text!r} is neither {ACCEPT} nor {REJECT}",
        code="answer_not_offered",
        hint=f"answer {ACCEPT}, {REJECT}, or '{REJECT}: …' with words for the next attempt",
    )


def _wake(tx: Tx, question: Question) -> int:
    """Wake the attempts that wait for nothing else; return their number."""
    count = 0
    for attempt in tx.find(Attempt, id=question.asked_by, state=AttemptState.WAITING):
        if not open_of(tx, attempt):
            tx.update(Attempt, attempt.id, wake_at=tx.now(), updated_at=tx.now())
            count += 1
    return count


def overdue(tx: Tx, attempt: Attempt) -> str:
    """Expire questions whose deadline passed, with their default as the answer; return one that has none."""
    now = tx.now()
    unanswered = ""
    for question in of_attempt(tx, attempt):
        one = question
        if one.state is QuestionState.OPEN and one.deadline is not None and one.deadline <= now:
            one = move_question(tx, one, QuestionState.EXPIRED, MACHINE, answer=one.default)
        if one.state is QuestionState.EXPIRED and one.answer is None:
            unanswered = one.text
    return unanswered


def permissions(tx: Tx, plan: Plan, task: Task, attempt: Attempt, *, contained: bool) -> Permissions:
    """Return what a run of this attempt may do now: the policy, the checks, and the user's earlier answers."""
    answers: dict[str, list[str]] = {YES: [], NO: []}
    settled = tx.find(
        Question,
        project_id=plan.project_id,
        kind=_PERMISSION,
        state=QuestionState.ANSWERED,
        order_by=("answered_at",),
    )
    latest = {one.key: one for one in settled if _holds(one, plan, attempt)}
    for key, question in latest.items():
        answers[question.answer or NO].append(key)
    return Permissions(
        access=access_of(plan.policy.permission_mode, contained=contained),
        commands=_commands(plan, task),
        granted=tuple(answers[YES]),
        refused=tuple(answers[NO]),
    )


def _commands(plan: Plan, task: Task) -> tuple[str, ...]:
    """Return the allowed commands: the list of the policy, and the checks, which run on the agent's work anyway."""
    checks = [gate.command for gate in task_commands(plan, task)]
    if checks:
        checks = [*filter(None, (plan.policy.dependencies, plan.policy.setup)), *checks]
    return tuple(dict.fromkeys((*plan.policy.allowed_commands, *to_run_checks(checks))))


def _holds(question: Question, plan: Plan, attempt: Attempt) -> bool:
    # Every attempt that asked gets the answer, even if it is for the loop of another attempt that asked the same.
    if question.holds_for == "project" or attempt.id in question.asked_by:
        return True
    return question.holds_for == "loop" and question.loop_id == plan.loop_id
