"""Decisions as values: what each returns, and the code and kind of what it is refused with."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.cases import each_case
from tests.doubles import Home as Rows
from tests.doubles import planned

from loopwright.adapters.home.membership import LockedMembership
from loopwright.adapters.store.sql import SqlStore
from loopwright.app import Home
from loopwright.core.replies.questions import Asking
from loopwright.core.rows.model import CommandState, Plan, Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.errors import NotFound, Refused, UserError
from loopwright.core.values.states import LoopState, PlanState, TaskState
from loopwright.ports import no_failpoint
from loopwright.services import questions
from loopwright.services.control import decisions, handover
from loopwright.services.control.decisions import Decision
from loopwright.services.homes.context import settings_for
from loopwright.services.homes.session import Session


@pytest.fixture
async def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rows]:
    """A home with a plan of two tasks that nothing works on, for a caller outside of every repository."""
    monkeypatch.chdir(tmp_path)
    store = SqlStore.open(tmp_path / "loopwright.db")
    home = await Rows(store=store).launch()  # type: ignore[arg-type]
    home.submit(planned("a"), planned("b", "a"))
    yield home
    await store.close()


@pytest.fixture
def at(rows: Rows, tmp_path: Path) -> Session:
    home = Home(
        root=tmp_path,
        database=tmp_path / "loopwright.db",
        store=rows.store,  # type: ignore[arg-type]
        membership=LockedMembership(tmp_path),
        failpoint=no_failpoint,
    )
    return Session(home=home, settings=settings_for())


async def test_a_decision_says_what_it_came_to_and_tells_it_at_once(rows: Rows, at: Session) -> None:
    told: list[Decision] = []
    paused = await decisions.pause(at, rows.plan().id, told=told.append)
    assert told == [paused]
    assert isinstance(paused.about, Plan)
    assert (paused.command.verb, paused.command.state) == ("pause", CommandState.APPLIED)
    assert (paused.plan.id, paused.needs_worker) == (rows.plan().id, False)
    assert rows.loop().state is LoopState.PAUSED


async def test_a_plan_that_continues_without_a_worker_needs_one(rows: Rows, at: Session) -> None:
    await decisions.stop(at, rows.plan().id)
    resumed = await decisions.resume(at, rows.plan().id, no_wait=True)
    assert resumed.needs_worker
    assert not resumed.plan.policy.wait_for_limits


async def test_a_cancelled_task_is_retried_with_a_note(rows: Rows, at: Session) -> None:
    looked = await decisions.to_cancel(at, "a")
    assert isinstance(looked, Task)
    assert rows.task("a").status is TaskState.CREATED, "a look changes nothing"
    await decisions.cancel(at, "a")
    assert rows.task("a").status is TaskState.CANCELLED
    retried = await decisions.retry(at, "a", note="mind the clock")
    assert retried.command.arguments["note"] == "mind the clock"
    assert rows.task("a").status is TaskState.QUEUED


async def test_a_cancelled_plan_has_ended(rows: Rows, at: Session) -> None:
    cancelled = await decisions.cancel(at, rows.plan().id)
    assert cancelled.plan.status is PlanState.CANCELLED


@each_case(
    ("ask", "kind", "code"),
    [
        (decisions.pause, NotFound, "plan_not_named"),
        (lambda at: decisions.stop(at, "ghost"), NotFound, "target_not_found"),
        (lambda at: decisions.retry(at, "a"), Refused, "task_not_retryable"),
        (lambda at: decisions.reverify(at, "a"), NotFound, "plan_not_found"),
        (lambda at: decisions.reject(at, "a"), UserError, "note_missing"),
        (lambda at: decisions.reject(at, "a", comments=[("a", "b")]), Refused, "comment_place_wrong"),
        (lambda at: decisions.reject(at, "a", note="no"), Refused, "task_not_started"),
        (lambda at: decisions.reviewed(at, "a"), Refused, "task_not_landed"),
        (lambda at: decisions.give_back(at, "a"), Refused, "task_not_taken_over"),
        (lambda at: decisions.to_roll_back(at, "a"), Refused, "task_not_landed"),
        (lambda at: decisions.open_account(at, "goose"), NotFound, "account_not_found"),
        (lambda at: handover.hand_back(at, "a"), Refused, "task_not_taken_over"),
        (lambda at: handover.take_over(at, "b"), Refused, "task_waits"),
        (lambda at: questions.answer(at, "ques_1", "yes"), NotFound, "question_not_found"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
async def test_a_refusal_has_its_kind_and_its_code(at: Session, ask: object, kind: type, code: str) -> None:
    with pytest.raises(UserError) as refused:
        await ask(at)  # type: ignore[operator]
    assert (type(refused.value), refused.value.code) == (kind, code)


async def test_an_answer_lets_the_plan_continue(rows: Rows, at: Session) -> None:
    [leg] = await rows.turn()
    rows.hand.ask(leg, Asking(kind="clarification", text="Which port?"))
    await rows.ended(leg)
    [question] = rows.all(Question)
    answered = await questions.answer(at, question.id, "8080")
    assert (answered.command.state, answered.plan_id) == (CommandState.APPLIED, rows.plan().id)
    assert answered.needs_worker
    with pytest.raises(Refused) as again:
        await questions.answer(at, question.id, "9090")
    assert again.value.code == "question_settled"


async def test_work_of_another_repository_is_not_changed_even_by_its_id(
    rows: Rows, at: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    (other / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    monkeypatch.chdir(other)
    for change in (
        decisions.cancel,
        decisions.stop,
        decisions.rollback,
        decisions.pause,
        decisions.resume,
        decisions.retry,
        decisions.reverify,
    ):
        with pytest.raises(NotFound) as refused:
            await change(at, rows.plan().id)
        assert refused.value.code == "target_not_found"
        assert "/somewhere/repo" in str(refused.value.hint)
    monkeypatch.chdir(tmp_path)
    assert (await decisions.cancel(at, rows.plan().id)).plan.status is PlanState.CANCELLED
