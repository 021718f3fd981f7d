"""What runs ask, who waits for the answer, and what follows from it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.cases import each_case
from tests.doubles import Home, planned
from tests.wording_plugin import Wording

from loopwright.core.replies.questions import Asking
from loopwright.core.rows.model import CommandState, Leg, Outcome, Run
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.failures import Failure
from loopwright.core.values.permissions import Permissions, Wish, may_run
from loopwright.core.values.policy import GateCommand, Policy
from loopwright.core.values.states import AttemptState, LoopState, QuestionState, RunState, TaskState
from loopwright.engine.rows import questions
from loopwright.engine.rows.moves import move_run

DIST = Asking(
    kind="permission",
    text="May it run `make dist`?",
    options=("yes", "no"),
    wish=Wish(kind="command", what="make dist"),
)
PORT = Asking(kind="question", text="Which port?", options=("80", "8080"), default="80")
WHO = Asking(kind="escalation", text="Who decides?")


async def asking(*asked: Asking, tasks: str = "a", slots: int = 4, **policy: Any) -> tuple[Home, list[Leg]]:
    """Return a home in which the first attempt of each task asked the same."""
    home = await Home(slots=slots).launch()
    home.submit(*(planned(key) for key in tasks), policy=Policy(parallel=slots, **policy))
    legs = await home.turn()
    for leg in legs:
        home.hand.ask(leg, *asked)
        await home.ended(leg)
    return home, legs


def question(home: Home) -> Question:
    [found] = home.all(Question)
    return found


def allowed(home: Home, key: str) -> Permissions:
    attempt, task = home.attempt(key), home.task(key)
    found = home.store.read_sync(
        lambda tx: questions.permissions(tx, home.plan(), task, attempt, contained=False)
    )
    return replace(found, commands=())


@pytest.mark.capability("C090")
async def test_a_task_that_asks_waits_without_a_slot_and_everyone_can_see_why() -> None:
    home, _ = await asking(PORT, tasks="a", slots=1)
    assert home.task("a").status is TaskState.AWAITING_RESPONSE
    attempt = home.attempt("a")
    assert (attempt.state, attempt.wait_reason) == (AttemptState.WAITING, "asks: Which port?")
    assert home.get(Run, attempt.run_id or "").state is RunState.AWAITING_RESPONSE
    asked = question(home)
    assert (asked.text, asked.options, asked.default, asked.state) == (
        "Which port?",
        ("80", "8080"),
        "80",
        QuestionState.OPEN,
    )
    assert asked.deadline == home.clock.now() + timedelta(days=1)
    assert await home.turn() == []
    assert home.loop().state is LoopState.RUNNING, "a plan that waits for an answer does not fail"


async def test_an_answer_lets_the_task_go_on_in_the_same_workspace() -> None:
    home, [first] = await asking(PORT)
    done = await home.command("answer", question(home).id, answer="8080")
    assert (done.state, done.result) == (CommandState.APPLIED, "answered; 1 task continues")
    [leg] = await home.turn()
    assert (leg.subject, leg.n) == (first.subject, first.n + 1)
    assert home.task("a").status is TaskState.RUNNING
    old, new = sorted(home.all(Run), key=lambda run: run.created_at)[-2:]
    assert (old.state, new.state) == (RunState.COMPLETE, RunState.QUEUED)
    assert home.plan().spent_micros == 1, "a run is charged once, when its process ended"
    home.hand.land(leg)
    assert home.task("a").status is TaskState.COMPLETE


async def test_the_number_of_an_option_stands_for_it() -> None:
    home, _ = await asking(PORT)
    await home.command("answer", question(home).id, answer="2")
    assert question(home).answer == "8080"


@pytest.mark.capability("C090")
async def test_the_same_permission_asked_by_twenty_is_one_question() -> None:
    home, _ = await asking(DIST, tasks="abcdefghijklmnopqrst", slots=20)
    assert len(question(home).asked_by) == 20
    assert len(home.told("question_asked")) == 1
    done = await home.command("answer", question(home).id, answer="y", **{"for": "loop"})
    assert done.result == "answered; 20 tasks continue"
    assert len(await home.turn()) == 20
    assert allowed(home, "a").granted == ("command:make dist",)


@each_case(("scope", "others"), [("run", ()), ("loop", ("command:make dist",))])
async def test_a_permission_holds_as_far_as_the_person_said(scope: str, others: tuple[str, ...]) -> None:
    home = await Home(slots=2).launch()
    home.submit(planned("a"), planned("b"), policy=Policy())
    first, _ = await home.turn()
    home.hand.ask(first, DIST)
    await home.command("answer", question(home).id, answer="yes", **{"for": scope})
    assert allowed(home, "a").granted == ("command:make dist",)
    assert allowed(home, "b").granted == others


@each_case(("scope", "answer"), [("loop", "yes"), ("project", "no"), ("run", "yes")])
async def test_what_was_settled_while_a_run_went_on_is_not_asked_again(scope: str, answer: str) -> None:
    home = await Home(slots=2).launch()
    home.submit(planned("a"), planned("b"), policy=Policy())
    first, second = await home.turn()
    home.hand.until(second, AttemptState.WORKING)
    run = home.get(Run, home.attempt("b").run_id)
    home.store.transact_sync("start", lambda tx: move_run(tx, run, RunState.RUNNING))
    home.clock.advance(1)
    home.hand.ask(first, DIST)
    await home.command("answer", question(home).id, answer=answer, **{"for": scope})
    home.hand.ask(second, DIST)
    await home.ended(second)
    if scope == "run":
        assert home.task("b").status is TaskState.AWAITING_RESPONSE, "that answer was for the other one alone"
        assert len(home.all(Question)) == 2
        return
    assert question(home).asked_by == (home.attempt("a").id, home.attempt("b").id)
    assert home.task("b").status is TaskState.RUNNING, "nobody is waited for"
    assert second.subject in {leg.subject for leg in await home.turn()}
    assert allowed(home, "b") == Permissions(
        **{"granted" if answer == "yes" else "refused": ("command:make dist",)}
    )


async def test_an_answer_for_a_loop_reaches_also_those_of_another_loop_that_asked_the_same() -> None:
    home = await Home(slots=2).launch()
    home.submit(planned("a"))
    other = home.submit(planned("b"), planned("c"), source_path="other.yaml", sha256="b" * 64)
    legs = await home.turn()
    asked_by = [home.attempt(key).id for key in "ab"]
    for leg in (one for one in legs if one.subject in asked_by):
        home.hand.ask(leg, DIST)
    await home.command("answer", question(home).id, answer="yes", **{"for": "loop"})

    def granted(key: str) -> tuple[str, ...]:
        task, attempt = home.task(key), home.attempt(key)
        return home.store.read_sync(
            lambda tx: questions.permissions(tx, other, task, attempt, contained=False)
        ).granted

    assert granted("b") == ("command:make dist",)
    assert granted("c") == (), "it did not ask, and its loop was not given it"


async def test_a_refused_permission_is_remembered_as_refused_until_someone_says_yes() -> None:
    home, _ = await asking(DIST)
    await home.command("answer", question(home).id, answer="no", **{"for": "project"})
    assert allowed(home, "a") == Permissions(refused=("command:make dist",))
    [leg] = await home.turn()
    home.hand.ask(leg, DIST)
    [second] = home.all(Question, state=QuestionState.OPEN)
    home.clock.advance(1)
    await home.command("answer", second.id, answer="yes")
    assert allowed(home, "a") == Permissions(granted=("command:make dist",))


async def test_a_deadline_takes_the_default() -> None:
    home, _ = await asking(PORT, answer_within=60.0)
    home.clock.advance(59)
    assert await home.turn() == []
    home.clock.advance(1)
    assert len(await home.turn()) == 1
    assert (question(home).state, question(home).answer) == (QuestionState.EXPIRED, "80")


@each_case("asked", [WHO, DIST, replace(DIST, default="yes")])
async def test_a_deadline_without_a_default_blocks_the_task_and_says_why(asked: Asking) -> None:
    home, _ = await asking(asked, answer_within=60.0)
    home.clock.advance(60)
    assert await home.turn() == []
    task = home.task("a")
    assert (task.status, task.failure, task.outcome) == (
        TaskState.ERROR,
        Failure.UNANSWERED,
        Outcome.NEEDS_HUMAN,
    )
    assert asked.text in task.reason
    assert question(home).answer is None, "never a silent yes"
    await home.command("retry", task.id)
    assert len(await home.turn()) == 1


async def test_who_waits_for_two_answers_waits_for_both() -> None:
    home, _ = await asking(DIST, WHO)
    first, second = sorted(home.all(Question), key=lambda one: one.kind)
    await home.command("answer", first.id, answer="Ada")
    assert await home.turn() == []
    await home.command("answer", second.id, answer="yes")
    assert len(await home.turn()) == 1


async def test_resuming_a_loop_answers_nothing() -> None:
    home, _ = await asking(WHO, answer_within=None)
    await home.command("pause", home.plan().id)
    await home.command("resume", home.plan().id)
    assert await home.turn() == []
    assert question(home).state is QuestionState.OPEN
    await home.command("pause", home.plan().id)
    await home.command("answer", question(home).id, answer="Ada")
    assert await home.turn() == [], "a paused loop starts nothing"
    await home.command("resume", home.plan().id)
    assert len(await home.turn()) == 1


async def test_cancelling_a_task_takes_its_question_back_unless_others_wait_too() -> None:
    home, _ = await asking(DIST, tasks="ab")
    await home.command("cancel", home.task("a").id)
    assert (question(home).state, len(question(home).asked_by)) == (QuestionState.OPEN, 1)
    await home.command("cancel", home.task("b").id)
    assert question(home).state is QuestionState.WITHDRAWN
    assert {run.state for run in home.all(Run)} == {RunState.CANCELLED}


@each_case(
    ("asked", "arguments", "words"),
    [
        (DIST, {"answer": "perhaps"}, "'perhaps' is not an answer to this question\nanswer yes or no"),
        (DIST, {"answer": " "}, "the answer is empty\none of yes, no"),
        (
            DIST,
            {"answer": "yes", "for": "ever"},
            "an answer cannot hold for 'ever'\none of run, loop, project",
        ),
        (
            PORT,
            {"answer": "80", "for": "loop"},
            "only the answer to a permission can hold for more than the run",
        ),
    ],
)
async def test_what_is_no_answer_is_refused_with_what_would_be(
    asked: Asking, arguments: dict[str, Any], words: str
) -> None:
    home, _ = await asking(asked)
    refused = await home.command("answer", question(home).id, **arguments)
    assert refused.state is CommandState.REFUSED
    assert refused.result.startswith(words)


async def test_an_answer_that_is_no_option_is_taken_only_when_that_is_said() -> None:
    home, _ = await asking(PORT)
    refused = await home.command("answer", question(home).id, answer="9090")
    assert refused.state is CommandState.REFUSED
    assert refused.result.startswith("there is no option 9090\n1 to 2, or one of 80, 8080; --other")
    await home.command("answer", question(home).id, answer="9090", other=True)
    assert question(home).answer == "9090"


async def test_a_question_is_answered_once(wording: Wording) -> None:
    home, _ = await asking(PORT)
    await home.command("answer", question(home).id, answer="80")
    refused = await home.command("answer", question(home).id, answer="8080")
    said, _, to_do = refused.result.partition("\n")
    wording(said)
    wording(to_do)


async def test_an_agent_may_run_the_checks_of_its_task_and_what_the_settings_list() -> None:
    home = await Home().launch()
    check = GateCommand(name="own", command="python -m pytest -q")
    policy = Policy(allowed_commands=("make lint",), setup="npm install")
    home.submit(planned("a", acceptance=(check,)), policy=policy)
    await home.turn()
    task, attempt = home.task("a"), home.attempt("a")
    found = home.store.read_sync(
        lambda tx: questions.permissions(tx, home.plan(), task, attempt, contained=False)
    )
    lines = ("make lint", "npm install", "python -m pytest -q", "python -m pytest -q tests/test_a.py")
    assert all(may_run(line, found.commands) for line in lines)
    assert not may_run("npm install left-pad", found.commands)
