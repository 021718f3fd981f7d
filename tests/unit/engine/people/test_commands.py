"""What a person may ask for: pause, resume, stop, cancel, retry, reverify, and what is refused."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from tests.cases import each_case
from tests.doubles import FAILED, Home, planned, recount
from tests.refusals import raises_code
from tests.waiting import eventually_async
from tests.wording_plugin import Wording

from loopwright.core.rows.model import Attempt, Command, CommandState, Leg, Outcome, Plan, Role, Run, Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.errors import NotFound
from loopwright.core.values.failures import Failure
from loopwright.core.values.policy import GateCommand, Policy
from loopwright.core.values.states import (
    AttemptState,
    LoopState,
    PlanState,
    QuestionState,
    RunState,
    TaskState,
)
from loopwright.engine.memory.interrupts import Interrupts
from loopwright.engine.people import commands
from loopwright.engine.rows.moves import move_task
from loopwright.engine.rows.versions import plan_version
from loopwright.engine.views.question_views import asked_in_plan
from loopwright.engine.worker.worker import apply_command

_MISSING = {
    "retry": "no task",
    "reset": "no task",
    "split": "no task",
    "unsplit": "no task",
    "set_agent": "no loop or task",
    "interrupt": "no task",
    "set_priority": "no loop or task",
    "take_over": "no task",
    "hand_back": "no task",
    "answer": "no question",
    "open": "no account named",
    "accept_discovered": "no discovered work",
    "dismiss_discovered": "no discovered work",
}


async def running(*tasks: Any, **changes: Any) -> tuple[Home, list[Leg]]:
    """Return a home with a dispatched plan and the legs of what started."""
    home = await Home(slots=changes.pop("slots", 4)).launch()
    home.submit(*(tasks or (planned("a"), planned("b", "a"))), **changes)
    return home, await home.turn()


async def at_verify(*, slots: int = 4) -> tuple[Home, Leg]:
    """Return a home whose plan has landed everything, and the leg of its verification."""
    home, [leg] = await running(planned("a"), slots=slots)
    home.hand.land(leg)
    [verify] = await home.turn()
    return home, verify


def balanced(home: Home) -> bool:
    return all(counted == kept for counted, kept in recount(home).values())


# --- how a command is answered -----------------------------------------------------------------------


async def test_a_command_is_a_row_that_is_answered_once_and_told() -> None:
    home, _ = await running()
    done = await home.command("pause", home.plan().id)
    assert (done.state, done.actor, done.applied_at) == (CommandState.APPLIED, "me", home.clock.now())
    [told] = home.events("command_applied")
    assert (told.plan, told.actor) == (home.plan().id, "me")
    assert told.payload == {"command": done.id, "verb": "pause", "result": done.result}


async def test_a_command_that_someone_else_answered_meanwhile_is_not_carried_out_again() -> None:
    home, _ = await running()
    done = await home.command("pause", home.plan().id)
    await home.command("resume", home.plan().id)
    before = home.everything()
    stale = home.get(Command, done.id)
    again = await apply_command(home.store, home.ids, stale)
    assert again == stale
    assert home.everything() == before
    assert home.loop().state is LoopState.RUNNING


async def test_commands_wait_in_the_order_in_which_they_were_given() -> None:
    home, _ = await running()
    given = []
    for verb in ("pause", "resume", "stop"):
        given.append(
            home.store.transact_sync(
                "request",
                lambda tx, verb=verb: commands.request(
                    tx, home.ids, actor="me", verb=verb, target=home.plan().id, arguments={}
                ),
            )
        )
        home.clock.advance(1)
    assert home.store.read_sync(commands.pending) == given
    await apply_command(home.store, home.ids, given[0])
    assert home.store.read_sync(commands.pending) == given[1:]


async def test_an_unknown_command_is_not_even_written_down() -> None:
    home, _ = await running()
    with raises_code("command_not_found") as refused:
        await home.command("explode", home.plan().id)
    assert "pause, resume, stop, cancel, retry, reset" in (refused.value.hint or "")
    assert home.all(Command) == []


@each_case(
    ("verb", "words"),
    [(verb, _MISSING.get(verb, "no plan")) for verb in commands.VERBS],
)
async def test_a_target_that_does_not_exist_is_refused_by_name(verb: str, words: str) -> None:
    home, _ = await running()
    refused = await home.command(verb, "plan_ghost")
    assert refused.state is CommandState.REFUSED
    assert refused.result.startswith(f"there is {words} plan_ghost")
    assert isinstance(commands.refusal(refused), NotFound), "the kind survives the way through the row"
    assert home.told("command_refused") == ["command_refused"]


async def test_a_refusal_carries_its_hint_and_changes_nothing_else(wording: Wording) -> None:
    home, [_] = await running()
    before = home.everything()
    refused = await home.command("retry", home.task("a").id)
    told = commands.refusal(refused)
    wording(str(told))
    wording(told.hint)
    assert told.code == "task_not_retryable"
    [event] = home.events("command_refused")
    assert event.payload["code"] == "task_not_retryable"
    changed = {key: row for key, row in home.everything().items() if before.get(key) != row}
    assert changed == {f"Command {refused.id}": refused}


# --- pause and resume --------------------------------------------------------------------------------


async def test_a_pause_lets_what_runs_finish_and_starts_nothing_more(wording: Wording) -> None:
    home, [leg, _ahead] = await running(planned("a"), planned("b"), planned("c", "a"), slots=1)
    home.hand.until(leg, AttemptState.WORKING)
    done = await home.command("pause", home.plan().id, reason="lunch")
    wording(done.result)
    assert (home.loop().state, home.loop().reason) == (LoopState.PAUSED, "lunch")
    assert home.attempt("a").interrupt == ""
    assert home.hand.land(leg).status is TaskState.COMPLETE
    assert [*await home.turn(), *await home.reconcile()] == []
    await home.command("resume", home.plan().id)
    assert len(await home.turn()) == 1


async def test_a_pause_says_who_did_it_even_without_a_reason(wording: Wording) -> None:
    home, _ = await running()
    await home.command("pause", home.plan().id)
    wording(home.loop().reason)


async def test_a_second_pause_changes_nothing() -> None:
    home, _ = await running()
    await home.command("pause", home.plan().id)
    assert (await home.command("pause", home.plan().id)).result == "already paused"
    assert home.told("loop_paused") == ["loop_paused"]


async def test_a_pause_now_parks_the_agent_and_resume_wakes_it_in_the_same_place(wording: Wording) -> None:
    home, [leg] = await running()
    home.hand.until(leg, AttemptState.WORKING)
    home.hand.go_on(leg)
    await home.command("pause", home.plan().id)
    done = await home.command("pause", home.plan().id, now=True)
    wording(done.result)
    home.hand.go_on(leg)
    await home.ended(leg)
    assert home.attempt("a").state is AttemptState.WAITING
    assert [*await home.turn(), *await home.reconcile()] == []
    await home.command("resume", home.plan().id)
    [second] = await home.turn()
    assert (second.subject, second.fence) == (leg.subject, leg.fence + 1)
    assert home.hand.land(second).status is TaskState.COMPLETE


async def test_what_was_stopped_between_two_stages_is_carried_on_after_resume_only() -> None:
    home, [leg] = await running()
    home.hand.until(leg, AttemptState.CHECKING)
    await home.command("pause", home.plan().id, now=True)
    home.hand.go_on(leg)
    await home.ended(leg)
    assert home.attempt("a").state is AttemptState.CHECKING
    assert [*await home.turn(), *await home.reconcile()] == []
    await home.command("resume", home.plan().id)
    [second] = await home.reconcile()
    assert home.hand.land(second).status is TaskState.COMPLETE


async def test_a_resume_takes_back_a_pause_that_no_agent_has_noticed_yet() -> None:
    home, [leg] = await running()
    await home.command("pause", home.plan().id, now=True)
    await home.command("resume", home.plan().id)
    assert home.attempt("a").interrupt == ""
    assert home.hand.land(leg).status is TaskState.COMPLETE


async def test_a_resume_does_not_wake_what_waits_for_its_quota() -> None:
    home, [leg] = await running()
    due = home.clock.now() + timedelta(hours=1)
    home.hand.park(leg, due)
    await home.command("pause", home.plan().id)
    await home.command("resume", home.plan().id)
    assert home.attempt("a").wake_at == due
    assert await home.turn() == []


@each_case("verb", ["pause", "resume", "stop", "retry", "reverify"])
async def test_a_plan_that_its_loop_has_left_behind_is_not_commanded_any_more(verb: str) -> None:
    """What was asked of it would move its successor, or nothing."""
    home, verify = await at_verify()
    await home.verify(verify, FAILED)
    old = home.plan().id
    task = home.task("a")
    home.store.transact_sync("fail", lambda tx: move_task(tx, task, TaskState.QUEUED, "task_queued"))
    home.store.transact_sync("fail", lambda tx: move_task(tx, home.task("a"), TaskState.ERROR, "task_failed"))
    current = home.submit(planned("b"), sha256="b" * 64).id
    before = home.loop()
    refused = await home.command(verb, task.id if verb == "retry" else old)
    told = commands.refusal(refused)
    assert (told.code, told.hint) == ("plan_superseded", f"the current one is {current}")
    assert home.loop() == before


@pytest.mark.capability("C075")
@each_case("limit", [100, None])
async def test_a_resume_may_bring_a_new_budget(limit: int | None) -> None:
    home, [leg] = await running(planned("a"), planned("b", "a"), policy=Policy(max_cost=5))
    home.hand.land(leg)
    assert await home.turn() == []
    assert home.loop().state is LoopState.PAUSED
    await home.command("resume", home.plan().id)
    assert await home.turn() == []  # the old limit still holds
    await home.command("resume", home.plan().id, max_cost=limit)
    assert home.plan().policy.max_cost == limit
    assert len(await home.turn()) == 1


async def test_an_ended_plan_is_not_resumed_but_says_what_helps() -> None:
    home, verify = await at_verify()
    await home.verify(verify, FAILED)
    refused = await home.command("resume", home.plan().id)
    told = commands.refusal(refused)
    assert (told.code, told.hint) == ("plan_ended", "`retry` a failed task, or `reverify` the plan")


# --- stop --------------------------------------------------------------------------------------------


async def test_a_stop_parks_what_runs_and_a_resume_goes_on_from_there(wording: Wording) -> None:
    home, [leg] = await running()
    home.hand.until(leg, AttemptState.WORKING)
    home.hand.go_on(leg)
    done = await home.command("stop", home.plan().id)
    wording(done.result)
    assert home.loop().state is LoopState.STOPPED
    wording(home.loop().reason)
    home.hand.go_on(leg)
    await home.ended(leg)
    assert [*await home.turn(), *await home.reconcile()] == []
    await home.command("resume", home.plan().id)
    assert len(await home.turn()) == 1


async def test_a_second_stop_asks_again_but_tells_nothing_new() -> None:
    home, _ = await running()
    await home.command("stop", home.plan().id)
    assert (await home.command("stop", home.plan().id)).state is CommandState.APPLIED
    assert home.told("loop_stopped") == ["loop_stopped"]


async def test_a_stop_ends_a_verification_without_a_verdict_and_resume_runs_it_again(
    wording: Wording,
) -> None:
    home, leg = await at_verify()
    await home.command("stop", home.plan().id)
    interrupts = Interrupts()
    interrupts.event(leg.subject).set()
    home.keepers.busy = True
    await home.verify(leg, interrupts=interrupts)
    plan = home.plan()
    assert (plan.status, plan.verdict) == (PlanState.RUNNING, None)
    wording(plan.reason)
    assert await home.turn() == []
    await home.command("resume", home.plan().id)
    [again] = await home.turn()
    assert again.n == leg.n + 1
    await home.verify(again)
    assert home.plan().status is PlanState.VERIFIED


async def test_a_loop_that_has_ended_cannot_be_paused() -> None:
    home, verify = await at_verify()
    await home.verify(verify)
    known = [event.n for event in home.events() if event.plan]
    for verb, more in (("pause", {}), ("pause", {"now": True}), ("stop", {}), ("resume", {})):
        refused = await home.command(verb, home.plan().id, **more)
        assert refused.state is CommandState.REFUSED
        assert commands.refusal(refused).code == "plan_ended"
    assert home.loop().state is LoopState.COMPLETED
    assert [event.n for event in home.events() if event.plan] == known, "its receipt is still the whole story"


async def test_what_ended_while_it_was_paused_cannot_be_paused_or_stopped_again(wording: Wording) -> None:
    home, verify = await at_verify()
    await home.command("pause", home.plan().id)
    await home.verify(verify)
    assert home.plan().status is PlanState.VERIFIED
    for verb in ("pause", "stop"):
        wording((await home.command(verb, home.plan().id)).result)


# --- cancel ------------------------------------------------------------------------------------------


@pytest.mark.capability("C113")
async def test_cancelling_a_plan_ends_everything_in_it_and_keeps_what_landed(wording: Wording) -> None:
    home, [leg, failing, parked] = await running(
        planned("done"), planned("bad"), planned("parked"), planned("late", "done"), policy=Policy(parallel=3)
    )
    home.hand.land(leg)
    home.hand.fail(failing, Failure.AUTH)
    home.hand.park(parked, None)
    [working] = await home.turn()
    done = await home.command("cancel", home.plan().id)
    wording(done.result)
    statuses = {task.key: task.status for task in home.all(Task)}
    assert statuses == dict.fromkeys(("bad", "parked", "late"), TaskState.CANCELLED) | {
        "done": TaskState.COMPLETE
    }
    plan = home.plan()
    assert (plan.status, plan.outcome) == (PlanState.CANCELLED, Outcome.CANCELLED)
    assert home.loop().state is LoopState.STOPPED
    wording(home.loop().reason)
    assert home.attempt("parked").state is AttemptState.CANCELLED
    assert home.attempt("late").interrupt == "cancel"
    home.hand.go_on(working)
    assert home.attempt("late").state is AttemptState.CANCELLED
    await home.ended(working)
    assert [*await home.turn(), *await home.reconcile()] == []
    assert balanced(home)


@pytest.mark.capability("C113")
@each_case("dispatched", [False, True])
async def test_a_plan_can_be_cancelled_before_anything_ran(dispatched: bool) -> None:
    home = await Home(slots=0).launch()
    home.submit(planned("a"), planned("b", "a"))
    if dispatched:
        await home.turn()
    await home.command("cancel", home.plan().id)
    assert home.plan().status is PlanState.CANCELLED
    assert {run.state for run in home.all(Run)} <= {RunState.CANCELLED}
    assert {one.state for one in home.all(Attempt)} <= {AttemptState.CANCELLED}
    assert await home.turn() == []
    assert balanced(home)


@pytest.mark.capability("C113")
async def test_a_cancel_takes_the_verification_from_whoever_runs_it() -> None:
    home, leg = await at_verify()
    await home.command("cancel", home.plan().id)
    before = home.everything()
    await home.verify(leg)
    assert home.everything() == before
    assert home.plan().status is PlanState.CANCELLED


@pytest.mark.capability("C113")
async def test_a_cancel_in_the_middle_of_the_gate_ends_its_run_and_what_it_says_no_longer_counts() -> None:
    home, leg = await at_verify()
    home.keepers.busy = True
    interrupts = Interrupts()
    verifying = asyncio.create_task(home.verify(leg, interrupts=interrupts))
    await eventually_async(lambda: home.keepers.started, every=0)
    await home.command("cancel", home.plan().id)
    [run] = home.all(Run, role=Role.VERIFY)
    assert (run.state, run.ended_by) == (RunState.CANCELLED, "asked")
    interrupts.raise_for(leg.subject)
    await verifying
    assert home.plan().status is PlanState.CANCELLED
    assert home.plan().verdict is None
    assert home.told("run_ended").count("run_ended") == 2


@pytest.mark.capability("C113")
async def test_a_cancel_right_before_the_gate_keeps_it_from_starting() -> None:
    home, leg = await at_verify()
    inner = home.repository.tip

    async def tip(branch: str) -> str:
        await home.command("cancel", home.plan().id)
        return await inner(branch)

    home.repository.tip = tip  # type: ignore[method-assign]
    await home.verify(leg)
    assert home.all(Run, role=Role.VERIFY) == []
    assert home.keepers.started == []


@pytest.mark.capability("C113")
async def test_a_failed_plan_can_be_cancelled_and_a_held_one_too() -> None:
    home, verify = await at_verify()
    await home.verify(verify, FAILED)
    assert (await home.command("cancel", home.plan().id)).state is CommandState.APPLIED
    held, [leg] = await running()
    held.hand.fail(leg, Failure.AUTH)
    await held.turn()
    assert (await held.command("cancel", held.plan().id)).state is CommandState.APPLIED
    assert balanced(held)


@pytest.mark.capability("C113")
async def test_a_verified_plan_has_nothing_left_to_cancel() -> None:
    home, verify = await at_verify()
    await home.verify(verify)
    refused = await home.command("cancel", home.plan().id)
    assert commands.refusal(refused).code == "plan_verified"


async def test_cancelling_a_plan_twice_is_one_cancel() -> None:
    home, _ = await running()
    await home.command("cancel", home.plan().id)
    assert (await home.command("cancel", home.plan().id)).result == "already cancelled"
    assert home.told("plan_cancelled") == ["plan_cancelled"]


async def test_a_task_that_is_landing_this_moment_is_not_cancelled_and_neither_is_its_plan() -> None:
    home, [leg] = await running()
    home.hand.until(leg, AttemptState.LANDING)
    before = home.task("a")
    for target in (home.task("a").id, home.plan().id):
        refused = await home.command("cancel", target)
        assert commands.refusal(refused).code == "task_landing"
    assert home.task("a") == before
    assert home.hand.land(leg).status is TaskState.COMPLETE


async def test_a_cancelled_task_stops_at_once_while_the_others_go_on_and_the_plan_is_held(
    wording: Wording,
) -> None:
    home, [first, second] = await running(planned("a"), planned("b"))
    assert (await home.command("cancel", home.task("a").id)).result == "cancelled"
    assert home.hand.go_on(first) is False
    assert home.attempt("a").state is AttemptState.CANCELLED
    home.hand.land(second)
    assert await home.turn() == []
    assert home.plan().status is PlanState.RUNNING
    wording(home.plan().reason)
    assert balanced(home)


@each_case("later", ["pause", "stop", "resume"])
async def test_no_later_command_takes_a_cancel_back(later: str) -> None:
    """All of them may be carried out before the agent has noticed the first."""
    home, [leg] = await running(planned("a"))
    home.hand.until(leg, AttemptState.WORKING)
    home.hand.go_on(leg)
    await home.command("cancel", home.task("a").id)
    await home.command(later, home.plan().id, now=True)
    assert home.attempt("a").interrupt == "cancel"
    home.hand.go_on(leg)
    assert home.attempt("a").state is AttemptState.CANCELLED
    assert (await home.command("retry", home.task("a").id)).state is CommandState.APPLIED


async def test_an_attempt_that_fails_while_its_task_is_cancelled_has_no_sequel() -> None:
    home, [leg] = await running(planned("a"))
    await home.command("cancel", home.task("a").id)
    task = home.hand.fail(leg, Failure.GATE)
    assert task.status is TaskState.CANCELLED
    attempt = home.attempt("a")
    assert (attempt.state, attempt.failure) == (AttemptState.CANCELLED, Failure.GATE)
    assert len(home.all(Attempt)) == 1


async def test_a_landed_task_cannot_be_cancelled() -> None:
    home, [leg] = await running()
    home.hand.land(leg)
    refused = await home.command("cancel", home.task("a").id)
    assert refused.state is CommandState.REFUSED
    assert home.task("a").status is TaskState.COMPLETE


# --- a task that was given up ------------------------------------------------------------------------


def asked(home: Home) -> list[str]:
    """Return the questions that stand below the plan."""
    (plan, *_) = home.all(Plan)
    return [one.id for one in home.store.read_sync(lambda tx: asked_in_plan(tx, plan, ()))]


async def given_up(**policy: Any) -> tuple[Home, Question]:
    """Return a home with a task that is not tried again, and what is asked about it."""
    home, [leg] = await running(planned("a"), policy=Policy(max_attempts=1, **policy))
    home.hand.fail(leg, Failure.GATE, "pytest failed")
    await home.turn()
    [question] = home.all(Question)
    return home, question


@pytest.mark.capability("C090")
async def test_a_task_that_was_given_up_is_a_question_for_which_nothing_waits(wording: Wording) -> None:
    home, [first, second] = await running(planned("a"), planned("b"), policy=Policy(max_attempts=1))
    home.hand.fail(first, Failure.GATE, "pytest failed")
    await home.turn()
    [question] = home.all(Question)
    assert (question.kind, question.state, question.task_id) == ("escalation", "OPEN", home.task("a").id)
    wording(question.text)
    assert "pytest failed" in question.text
    assert (question.options, question.default) == (("retry", "leave it", "cancel"), "leave it")
    assert question.deadline is None, "the default holds already"
    assert home.loop().state is LoopState.RUNNING, "b goes on"
    home.hand.land(second)
    await home.turn()
    assert home.loop().state is LoopState.FAILED, "and then it ends by itself"
    assert asked(home) == [question.id]


@pytest.mark.capability("C090")
async def test_an_answer_tries_it_again_with_a_hint_once() -> None:
    home, question = await given_up()
    done = await home.command("answer", question.id, answer="retry: mind the cache")
    assert done.result == "attempt 2 is queued"
    assert (home.attempt("a").note, home.loop().state) == ("mind the cache", LoopState.RUNNING)
    answered = home.get(Question, question.id)
    assert (answered.state, answered.answered_by) == (QuestionState.ANSWERED, "me")
    again = await home.command("answer", question.id, answer="retry")
    assert (again.state, home.task("a").status) == (CommandState.REFUSED, TaskState.QUEUED)
    [leg] = await home.turn()
    home.hand.fail(leg, Failure.GATE)
    assert len(home.all(Question, state=QuestionState.OPEN)) == 1, "given up once more, it is asked once more"
    assert balanced(home)


async def test_it_may_be_left_or_cancelled_and_nothing_else_is_taken_for_an_answer(wording: Wording) -> None:
    home, question = await given_up()
    for answer, scope in (("yes", "run"), ("", "run"), ("retry", "project")):
        refused = await home.command("answer", question.id, **{"answer": answer, "for": scope})
        assert refused.state is CommandState.REFUSED
    assert home.get(Question, question.id).state is QuestionState.OPEN
    left = await home.command("answer", question.id, answer="2")
    wording(left.result)
    assert (home.task("a").status, home.loop().state) == (TaskState.ERROR, LoopState.FAILED)
    home, question = await given_up()
    assert (await home.command("answer", question.id, answer="cancel")).result == "cancelled"
    assert home.task("a").status is TaskState.CANCELLED
    assert balanced(home)


@each_case("verb", ["retry", "cancel", "take_over"])
async def test_what_a_person_does_with_the_task_otherwise_withdraws_the_question(verb: str) -> None:
    home, question = await given_up()
    assert (await home.command(verb, home.task("a").id)).state is CommandState.APPLIED
    assert home.get(Question, question.id).state is QuestionState.WITHDRAWN
    assert asked(home) == []


async def test_a_plan_that_starts_over_withdraws_the_questions_of_the_old_one() -> None:
    home, question = await given_up(on_task_error="fail")
    assert home.plan().status is PlanState.FAILED
    assert home.get(Question, question.id).state is QuestionState.OPEN, "a retry reopens it"
    home.submit(planned("a"), new=True)
    assert home.get(Question, question.id).state is QuestionState.WITHDRAWN


# --- retry -------------------------------------------------------------------------------------------


@pytest.mark.capability("C083")
async def test_a_retry_queues_the_next_attempt_with_new_limits_and_reopens_what_was_held() -> None:
    home, [leg] = await running(planned("a"), policy=Policy(max_attempts=1))
    home.hand.fail(leg, Failure.GATE, "pytest failed")
    await home.turn()
    assert home.loop().state is LoopState.FAILED
    done = await home.command("retry", home.task("a").id, note="mind the cache", agent="other", model="big")
    assert done.result == "attempt 2 is queued"
    task, attempt = home.task("a"), home.attempt("a")
    assert (task.status, task.attempts, task.max_attempts) == (TaskState.QUEUED, 1, 2)
    assert (attempt.n, attempt.note, attempt.agent, attempt.model) == (2, "mind the cache", "other", "big")
    assert home.get(Run, attempt.run_id).agent == "other"
    assert (home.plan().outcome, home.plan().reason) == (None, "")
    assert home.loop().state is LoopState.RUNNING
    [again] = await home.turn()
    over = home.hand.fail(again, Failure.GATE)
    assert (over.status, over.attempts) == (TaskState.ERROR, 2)
    assert balanced(home)


async def test_leave_to_change_a_file_of_the_gate_is_kept_with_the_task_and_on_record() -> None:
    home, [leg] = await running(planned("a"), policy=Policy(max_attempts=1))
    home.hand.fail(leg, Failure.GATE)
    await home.turn()
    await home.command("retry", home.task("a").id, allow=["tests/test_a.py"])
    [again] = await home.turn()
    home.hand.fail(again, Failure.GATE)
    await home.turn()
    await home.command("retry", home.task("a").id, allow=["tests/test_a.py", "conftest.py"])
    assert home.task("a").approved == ("tests/test_a.py", "conftest.py")
    assert home.events("task_retried")[-1].payload["approved"] == ["tests/test_a.py", "conftest.py"]


async def test_a_retry_forgets_failed_calls_and_the_mark_of_the_last_failure() -> None:
    home, [leg] = await running(planned("a"), policy=Policy(max_call_retries=0))
    failed = home.hand.fail(leg, Failure.CRASH, "gone", lasted=1)
    assert (failed.status, failed.call_failures) == (TaskState.ERROR, 1)
    await home.command("retry", failed.id)
    task = home.task("a")
    assert (task.call_failures, task.failure_mark, task.not_before, task.outcome) == (0, "", None, None)


async def test_a_retry_tells_the_agent_what_the_last_attempt_failed_on_not_the_one_before() -> None:
    home, [leg] = await running(planned("a"), policy=Policy(max_attempts=2))
    home.hand.fail(leg, Failure.GATE, "the first failure")
    [leg] = await home.turn()
    home.hand.fail(leg, Failure.TIMEOUT, "the second failure")
    await home.command("retry", home.task("a").id)
    assert home.attempt("a").evidence == "the second failure"


async def test_a_retry_shows_the_failing_checks_themselves() -> None:
    home, [leg] = await running(planned("a"), policy=Policy(max_attempts=1))
    home.hand.until(leg, AttemptState.CHECKING)
    home.hand.judge(leg, FAILED)
    home.hand.fail(leg, Failure.GATE, "tests failed")
    await home.command("retry", home.task("a").id)
    assert "1 != 2" in home.attempt("a").evidence


async def test_a_retry_after_a_machine_fault_or_a_cancel_keeps_the_earlier_evidence() -> None:
    home, [leg] = await running(planned("a"), policy=Policy(max_attempts=3, max_call_retries=0))
    home.hand.fail(leg, Failure.GATE, "pytest failed")
    [leg] = await home.turn()
    home.hand.fail(leg, Failure.CRASH, "gone")
    await home.command("retry", home.task("a").id)
    assert home.attempt("a").evidence == "evidence of: pytest failed"
    await home.command("cancel", home.task("a").id)
    await home.command("retry", home.task("a").id)
    assert home.attempt("a").evidence == "evidence of: pytest failed"


async def test_a_task_whose_run_could_not_be_created_gets_another_by_retry() -> None:
    home, [] = await running(planned("a", agent="nobody"))
    await home.command("retry", home.task("a").id, agent="other")
    attempt = home.attempt("a")
    assert (attempt.n, attempt.agent, attempt.evidence) == (2, "other", "")
    assert len(await home.turn()) == 1


async def test_a_cancelled_task_is_retried_only_when_its_agent_has_stopped() -> None:
    home, [leg] = await running(planned("a"))
    await home.command("cancel", home.task("a").id)
    refused = await home.command("retry", home.task("a").id)
    assert commands.refusal(refused).code == "attempt_ending"
    home.hand.go_on(leg)
    await home.command("retry", home.task("a").id)
    [again] = await home.turn()
    assert home.attempt("a").n == 2
    assert home.task("a").max_attempts == 3  # what was never judged used nothing up
    assert home.hand.land(again).reason == ""
    assert balanced(home)


async def test_a_task_of_a_cancelled_plan_is_not_retried() -> None:
    home, _ = await running()
    await home.command("cancel", home.plan().id)
    refused = await home.command("retry", home.task("b").id)
    told = commands.refusal(refused)
    assert told.code == "plan_cancelled"
    assert told.hint == "`loopwright run plan.yaml --new` starts the plan over"


async def test_a_retry_in_a_failed_plan_reopens_it() -> None:
    home, [leg] = await running(planned("a"), policy=Policy(on_task_error="fail"))
    home.hand.fail(leg, Failure.AUTH)
    await home.turn()
    assert home.plan().status is PlanState.FAILED
    await home.command("retry", home.task("a").id)
    assert (home.plan().status, home.loop().state) == (PlanState.RUNNING, LoopState.RUNNING)
    [leg] = await home.turn()
    home.hand.land(leg)
    [verify] = await home.turn()
    await home.verify(verify)
    assert home.plan().status is PlanState.VERIFIED
    assert home.told("plan_failed", "plan_reopened", "plan_verified") == [
        "plan_failed",
        "plan_reopened",
        "plan_verified",
    ]


async def test_a_retry_leaves_a_paused_loop_paused() -> None:
    home, [leg] = await running(planned("a"))
    home.hand.fail(leg, Failure.AUTH)
    await home.command("pause", home.plan().id)
    await home.command("retry", home.task("a").id)
    assert home.loop().state is LoopState.PAUSED
    assert await home.turn() == []


async def test_a_plan_that_is_completed_again_after_a_retry_says_so_again() -> None:
    home, [first, second] = await running(planned("a"), planned("b"))
    home.hand.land(first)
    home.hand.fail(second, Failure.AUTH)
    assert home.told("plan_completed") == []
    await home.command("retry", home.task("b").id)
    [leg] = await home.turn()
    home.hand.land(leg)
    assert home.told("plan_completed") == ["plan_completed"]


# --- reverify ----------------------------------------------------------------------------------------


@pytest.mark.capability("C082")
async def test_a_failed_verification_runs_once_more_because_a_person_asked(wording: Wording) -> None:
    home, leg = await at_verify()
    await home.verify(leg, FAILED)
    done = await home.command("reverify", home.plan().id)
    wording(done.result)
    assert (home.plan().verdict, home.plan().outcome, home.plan().verified_at) == (None, None, None)
    [again] = await home.turn()
    assert (again.n, again.fence) == (leg.n + 1, leg.fence + 1)
    await home.verify(again)
    plan = home.plan()
    assert (plan.status, plan.verify_n, home.loop().state) == (PlanState.VERIFIED, 2, LoopState.COMPLETED)
    assert len(home.all(Run, role=Role.VERIFY)) == len(home.gate.asked) == 2
    assert home.told("plan_failed", "plan_verified") == ["plan_failed", "plan_verified"]


@pytest.mark.capability("C082")
async def test_only_a_plan_that_failed_its_verification_is_verified_again(wording: Wording) -> None:
    home, leg = await at_verify()
    refused = await home.command("reverify", home.plan().id)
    assert refused.state is CommandState.REFUSED
    await home.verify(leg)
    assert (await home.command("reverify", home.plan().id)).state is CommandState.REFUSED
    other, [leg] = await running(planned("a"), policy=Policy(on_task_error="fail"))
    other.hand.fail(leg, Failure.AUTH)
    await other.turn()
    refused = await other.command("reverify", other.plan().id)
    assert commands.refusal(refused).code == "tasks_failed"
    assert await other.turn() == []


async def one_cancelled(*more: Any) -> Home:
    """Return a home whose plan has landed one task, and holds because a person cancelled another."""
    own = GateCommand(name="b", command="test b")
    home, legs = await running(planned("a"), planned("b", acceptance=(own,)), *more)
    home.hand.land(legs[0])
    home.hand.park(legs[1], None)
    await home.command("cancel", home.task("b").id)
    await home.turn()
    assert (home.plan().outcome, home.loop().state) == (Outcome.NEEDS_HUMAN, LoopState.FAILED)
    return home


@pytest.mark.capability("C082")
async def test_a_person_may_have_a_plan_verified_without_what_was_cancelled(wording: Wording) -> None:
    home = await one_cancelled()
    done = await home.command("reverify", home.plan().id)
    wording(done.result)
    assert (home.plan().status, home.plan().reason) == (PlanState.VERIFYING, "")
    refused = await home.command("retry", home.task("b").id)
    wording(refused.result)
    [leg] = await home.reconcile()
    await home.verify(leg)
    plan = home.plan()
    assert (plan.status, plan.outcome) == (PlanState.VERIFIED, Outcome.VERIFIED_WITH_GAPS)
    assert home.loop().state is LoopState.COMPLETED
    assert [command.name for command in home.gate.asked[-1]] == ["tests"], (
        "nothing asks for what is not there"
    )
    wording((await home.command("retry", home.task("b").id)).result)
    assert balanced(home)


@pytest.mark.capability("C082")
async def test_what_fails_without_the_cancelled_task_can_be_verified_again_or_retried() -> None:
    home = await one_cancelled()
    await home.command("reverify", home.plan().id)
    [leg] = await home.reconcile()
    await home.verify(leg, FAILED)
    assert (home.plan().status, home.loop().state) == (PlanState.FAILED, LoopState.FAILED)
    assert (await home.command("reverify", home.plan().id)).state is CommandState.APPLIED
    [again] = await home.reconcile()
    await home.verify(again, FAILED)
    assert (await home.command("retry", home.task("b").id)).state is CommandState.APPLIED
    assert home.plan().status is PlanState.RUNNING
    assert balanced(home)


@pytest.mark.trap("verified too early")
async def test_a_plan_is_not_verified_without_tasks_that_still_wait_or_that_failed(wording: Wording) -> None:
    waits = await one_cancelled(planned("c", "b"))
    told = commands.refusal(await waits.command("reverify", waits.plan().id))
    wording(told.hint)
    await waits.command("cancel", waits.task("c").id)
    assert (await waits.command("reverify", waits.plan().id)).state is CommandState.APPLIED
    everything, legs = await running(planned("a"))
    everything.hand.park(legs[0], None)
    await everything.command("cancel", everything.task("a").id)
    await everything.turn()
    refused = await everything.command("reverify", everything.plan().id)
    assert refused.state is CommandState.REFUSED, "there is nothing to verify"
    failed, legs = await running(planned("a"), planned("b"), planned("c"), policy=Policy(parallel=3))
    failed.hand.land(legs[0])
    failed.hand.fail(legs[1], Failure.AUTH)
    failed.hand.park(legs[2], None)
    await failed.command("cancel", failed.task("c").id)
    await failed.turn()
    refused = await failed.command("reverify", failed.plan().id)
    assert refused.state is CommandState.REFUSED
    hint = commands.refusal(refused).hint or ""
    assert hint.startswith("retry them"), "a failed task does not wait for the cancelled one"


async def test_a_pause_during_the_verification_outlives_it_and_reverify_ends_it() -> None:
    home, leg = await at_verify()
    await home.command("pause", home.plan().id)
    await home.verify(leg, FAILED)
    assert (home.plan().status, home.loop().state) == (PlanState.FAILED, LoopState.PAUSED)
    await home.command("reverify", home.plan().id)
    assert home.loop().state is LoopState.RUNNING


async def test_resuming_with_another_cost_limit_is_the_way_out_of_a_used_up_budget() -> None:
    tasks = [planned(key) for key in "abc"]
    home, [leg, _] = await running(*tasks, policy=Policy(parallel=1, max_cost=10))
    home.hand.land(leg)
    assert await home.turn() == []
    assert home.loop().state is LoopState.PAUSED
    await home.command("resume", home.plan().id, max_cost=1_000_000)
    assert home.plan().policy.max_cost == 1_000_000
    assert len(await home.turn()) == 1


# --- partial results and plans that a person fails ---------------------------------------------------


async def one_failed() -> Home:
    """Return a home whose plan landed one task, and holds because another failed and a third waits for that."""
    home, legs = await running(planned("a"), planned("b"), planned("c", "b"))
    home.hand.land(legs[0])
    home.hand.fail(legs[1], Failure.AUTH)
    await home.turn()
    assert (home.plan().status, home.loop().state) == (PlanState.RUNNING, LoopState.FAILED)
    return home


@pytest.mark.capability("C072")
async def test_a_plan_with_a_failed_task_is_verified_only_as_a_partial_result() -> None:
    home = await one_failed()
    refused = commands.refusal(await home.command("reverify", home.plan().id))
    assert (refused.code, "b" in str(refused)) == ("tasks_failed", True)
    done = await home.command("reverify", home.plan().id, partial=True)
    assert done.result == "gate:all will run on what landed, without b, c"
    assert home.plan().status is PlanState.VERIFYING
    [leg] = await home.reconcile()
    await home.verify(leg)
    plan = home.plan()
    assert (plan.status, plan.outcome) == (PlanState.VERIFIED, Outcome.VERIFIED_WITH_GAPS)
    assert balanced(home)


async def test_nothing_partial_is_verified_while_a_task_can_still_continue() -> None:
    home, legs = await running(planned("a"), planned("b"), planned("c"))
    home.hand.land(legs[0])
    home.hand.fail(legs[1], Failure.AUTH)
    refused = commands.refusal(await home.command("reverify", home.plan().id, partial=True))
    assert refused.code == "nothing_partial"
    assert home.task("b").status is TaskState.ERROR, "a refused command changes nothing"


@pytest.mark.capability("C072")
async def test_a_person_fails_a_plan_and_may_still_retry_its_task() -> None:
    home = await one_failed()
    done = await home.command("fail", home.plan().id, reason="not worth it")
    assert done.state is CommandState.APPLIED
    plan = home.plan()
    assert (plan.status, plan.reason, plan.outcome) == (
        PlanState.FAILED,
        "not worth it",
        Outcome.NOT_VERIFIED,
    )
    assert home.told("plan_failed") == ["plan_failed"]
    assert (await home.command("fail", plan.id)).result == "already failed"
    assert home.task("c").status is TaskState.CANCELLED
    assert (await home.command("retry", home.task("b").id)).state is CommandState.APPLIED
    assert home.plan().status is PlanState.RUNNING
    assert balanced(home)


async def test_a_command_about_another_version_is_refused_and_changes_nothing() -> None:
    home = await one_failed()
    seen = home.store.read_sync(lambda tx: plan_version(tx, home.plan()))
    assert (await home.command("retry", home.task("b").id, if_version="other")).state is CommandState.REFUSED
    assert home.store.read_sync(lambda tx: plan_version(tx, home.plan())) == seen
    assert (await home.command("retry", home.task("b").id, if_version=seen)).state is CommandState.APPLIED
    late = commands.refusal(await home.command("cancel", home.plan().id, if_version=seen))
    assert late.code == "version_changed"
    assert home.plan().status is PlanState.RUNNING
