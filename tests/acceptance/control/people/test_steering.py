"""`cancel` and `retry`: giving up for good, and trying again with better words."""

import pytest
from tests.acceptance.control.workshop import HALF_DONE, Workshop, kill, refused
from tests.acceptance.sandbox import COST, task
from tests.waiting import eventually

from loopwright.cli.screens.command_effects import EFFECTS
from loopwright.core.rows.model import Loop, Plan, Role, Run, Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import QuestionState


def test_a_cancelled_task_keeps_its_work_and_its_dependents_wait(shop: Workshop) -> None:
    run = shop.start("run", str(shop.chain("half", "after", steps={"half": [HALF_DONE]})))
    shop.until_half()
    said = shop("cancel", "half")
    assert (said.code, said.out.splitlines()[0]) == (0, "cancelled")
    assert EFFECTS["cancel TASK"].work[1:] in said.out
    assert run.end() == 1, run.out
    shop.until_quiet()
    (attempt,) = shop.attempts("half")
    assert attempt.state == "CANCELLED"
    assert shop.pinned(attempt, "half") == "half of it\n"
    assert (shop.task("half").status, shop.task("after").status) == ("CANCELLED", "QUEUED")
    assert shop.landed() == []
    assert shop.started() == [("half", 1)]
    assert "NEEDS YOU" in run.out


def test_a_cancelled_task_can_be_tried_again_and_the_plan_goes_on(shop: Workshop) -> None:
    steps = {"half": [HALF_DONE, [{"write": "half", "text": "all of it\n"}]]}
    run = shop.start("run", str(shop.chain("half", "after", steps=steps)))
    shop.until_half()
    assert shop("cancel", "half").code == 0
    assert run.end() == 1, run.out
    said = shop("retry", "half", timeout=90)
    assert said.code == 0, said.out + said.err
    assert shop.started() == [("half", 1), ("half", 2), ("after", 1)]
    assert shop.landed() == ["half", "after"]


def test_a_cancelled_plan_ends_its_agents_and_is_over(shop: Workshop) -> None:
    run = shop.start("run", str(shop.chain("one", "half", "after", steps={"half": [HALF_DONE]})))
    shop.until_half()
    said = shop("cancel", shop.row(Plan).id)
    assert said.code == 0
    assert "what was landed stays on the plan branch, every attempt's work stays pinned" in said.out
    assert EFFECTS["cancel PLAN"].work[1:] in said.out
    assert run.end() == 3, run.out
    shop.until_quiet()
    plan, loop = shop.row(Plan), shop.row(Loop)
    assert (plan.status, plan.outcome, loop.state) == ("CANCELLED", "cancelled", "STOPPED")
    assert shop.landed() == ["one"]
    (attempt,) = shop.attempts("half")
    assert (attempt.state, shop.pinned(attempt, "half")) == ("CANCELLED", "half of it\n")
    refused(shop("resume"), 2, "the plan is CANCELLED", "loopwright run ../chain.yaml --new")
    refused(shop("retry", "half"), 2, "its plan was cancelled", "loopwright run ../chain.yaml --new")
    again = shop.run(shop.place / "chain.yaml")
    assert (again.code, again.out.splitlines()[0]) == (3, "This plan was cancelled; --new starts it over.")
    assert len(shop.rows(Plan)) == 1
    assert shop("cancel", plan.id).out.startswith("already cancelled\n")


def test_cancelling_a_plan_ends_its_complete_gate(shop: Workshop) -> None:
    gate = shop.gate("gate")
    last = {"name": "last", "run": f'test -n "$LOOPWRIGHT_ATTEMPT" || {{ {gate.shell}; }}'}
    run = shop.start("run", str(shop.chain("one", gates=[last])))
    gate.until_reached()
    assert shop("cancel", shop.row(Plan).id).code == 0
    assert run.end() == 3, run.out
    shop.until_quiet()
    assert shop.row(Plan).status == "CANCELLED"
    assert shop.rows(Run, state="RUNNING") == []


def test_retry_carries_a_note_and_another_model_to_the_next_attempt(shop: Workshop) -> None:
    """Only an agent that was told the secret can write it down."""
    knowing = [
        {"expect_prompt": "the word is swordfish", "otherwise": [{"write": "word", "text": "no idea\n"}]},
        {"write": "word", "text": "swordfish\n"},
    ]
    shop.play({"guess": [knowing]})
    plan = shop.plan("guess", [task("guess", "grep -q swordfish word")])
    assert shop.run(plan, "--max-attempts", "1").code == 1
    said = shop("retry", "guess", "--note", "the word is swordfish", "--model", "big-one", timeout=90)
    assert said.code == 0, said.out + said.err
    first, second = shop.attempts("guess")
    assert (first.state, first.note, first.model) == ("REJECTED", "", None)
    assert (second.state, second.note, second.model) == ("LANDED", "the word is swordfish", "big-one")
    run = shop.rows(Run, attempt_id=second.id, role=Role.IMPLEMENTER)[0]
    assert run.model == "big-one"
    assert run.argv[run.argv.index("--model") + 1] == "big-one"
    detail = shop("show", "guess", "--json").document["task"]
    assert detail["note"] == "the word is swordfish"
    assert "expected" in detail


@pytest.mark.capability("C090")
def test_a_task_that_was_given_up_is_asked_about_and_the_answer_tries_it_again(shop: Workshop) -> None:
    knowing = [
        {"expect_prompt": "the word is swordfish", "otherwise": [{"write": "word", "text": "no idea\n"}]},
        {"write": "word", "text": "swordfish\n"},
    ]
    shop.play({"guess": [knowing], "other": [[{"write": "other", "text": "other\n"}]]})
    tasks = [task("guess", "grep -q swordfish word"), task("other", "test -s other")]
    said = shop.run(shop.plan("guess", tasks), "--max-attempts", "1")
    assert said.code == 1, "it ends by itself, as without a question"
    assert shop.task("other").status == "COMPLETE", "the rest goes on meanwhile"
    (question,) = shop.rows(Question)
    typed = f"loopwright answer {short_id(question.id)} retry"
    for shown in (said.out, shop("status").out, shop("questions").out):
        assert f"? {short_id(question.id)}  given up: guess" in shown
        assert typed in shown
    refused(shop("answer", question.id, "perhaps"), 2, "not an answer to this question", "retry: …")
    told = shop("answer", question.id, "retry: the word is swordfish")
    assert told.code == 0, told.err
    assert "attempt 2 is queued" in told.out
    assert "`loopwright resume" in told.out
    assert shop("resume", timeout=90).code == 0
    assert shop.landed() == ["other", "guess"]
    assert shop("questions").out == "nothing waits for an answer\n"


def test_cancelling_without_a_worker_ends_the_complete_gate_that_one_left(shop: Workshop) -> None:
    gate = shop.gate("gate")
    last = {"name": "last", "run": f'test -n "$LOOPWRIGHT_ATTEMPT" || {{ {gate.shell}; }}'}
    run = shop.start("run", str(shop.chain("one", gates=[last])))
    gate.until_reached()
    kill(run)
    said = shop("cancel", shop.row(Plan).id)
    assert said.code == 0, said.out + said.err
    shop.until_quiet()
    assert shop.rows(Run, state="RUNNING") == []


def test_retry_lets_another_agent_try_if_there_is_such_a_one(shop: Workshop) -> None:
    shop.play({"job": [[{"write": "job", "text": "wrong\n"}]]})
    shop.program.env["LOOPWRIGHT_AGENTS__COMMAND__COMMAND"] = "echo right > job"
    plan = shop.plan("job", [task("job", "grep -q right job")])
    assert shop.run(plan, "--max-attempts", "1").code == 1
    refused(shop("retry", "job", "--agent", "clod"), 2, "clod")
    refused(shop("retry", "job", "--agent", "goose"), 2, "the agent goose cannot be used", "was not found")
    assert len(shop.attempts("job")) == 1, "nothing was queued"
    said = shop("retry", "job", "--agent", "command", timeout=90)
    assert said.code == 0, said.out + said.err
    assert [attempt.agent for attempt in shop.attempts("job")] == ["scripted", "command"]


def test_another_try_gets_no_agent_that_run_would_have_refused(shop: Workshop) -> None:
    shop.play({"job": [[{"write": "job", "text": "wrong\n"}, COST]]})
    shop.program.env["LOOPWRIGHT_AGENTS__COMMAND__COMMAND"] = "echo false > job"
    path = shop.plan("job", [task("job", "grep -q right job")])
    assert shop.run(path, "--max-attempts", "1", "--max-cost", "1").code == 1
    plan = short_id(shop.row(Plan).id)
    why = "max_cost cannot be kept: the agent command reports neither its cost nor its tokens"
    refused(shop("retry", "job", "--agent", "command"), 2, why, f"resume {plan} --max-cost off")
    assert len(shop.attempts("job")) == 1, "nothing was queued"
    assert shop("resume", plan, "--max-cost", "off", timeout=90).code == 1
    said = shop("retry", "job", "--agent", "command", timeout=90)
    assert said.code == 1, said.out + said.err
    assert "warning: The `command` agent runs without a sandbox" in said.out
    # A limit that came after its last try: nobody goes around it by having it tried again.
    assert shop("resume", plan, "--max-cost", "1", timeout=90).code == 1
    (question,) = shop.rows(Question, state=QuestionState.OPEN)
    for words in (("retry", "job"), ("answer", question.id, "retry: try harder")):
        refused(shop(*words), 2, why)
    assert len(shop.attempts("job")) == 2


def test_an_agent_that_nothing_keeps_from_writing_gets_no_task_of_a_plan_that_only_reads(
    shop: Workshop,
) -> None:
    shop.play({"job": [[{"claim": "nothing to do"}]]})
    shop.program.env["LOOPWRIGHT_AGENTS__COMMAND__COMMAND"] = "echo right > job"
    path = shop.plan("job", [task("job", "grep -q right job")])
    assert shop.run(path, "--max-attempts", "1", "--permission-mode", "read-only").code == 1
    why = "permission_mode is read-only (as the plan began), but nothing keeps command to that here"
    refused(shop("retry", "job", "--agent", "command"), 2, why, "choose an agent that asks for leave")
    assert len(shop.attempts("job")) == 1


@pytest.mark.more
def test_an_agent_that_a_source_names_later_is_kept_to_the_mode_of_the_plan_as_well(shop: Workshop) -> None:
    go = shop.place / "go"
    shop.play({"first": [[{"wait_for": str(go)}]]})
    shop.program.env["LOOPWRIGHT_AGENTS__COMMAND__COMMAND"] = "echo right > job"
    tasks = [task("first", "test -e README.md"), task("job", "grep -q right job", depends_on=["first"])]
    path = shop.plan("job", tasks, write_status=True)
    worker = shop.start("run", str(path), "--permission-mode", "read-only")
    try:
        worker.until("first  scripted")
        tasks[1] = {**tasks[1], "agent": "command"}
        shop.plan("job", tasks, write_status=True)
        eventually(lambda: shop.row(Task, key="job").agent == "command")
        go.touch()
        assert worker.end() == 1, worker.out
    finally:
        worker.kill()
    assert "permission_mode is read-only, but nothing keeps command to that here" in worker.out


def test_a_landed_task_cannot_be_cancelled_and_a_name_means_the_task_that_can_be_retried(
    shop: Workshop,
) -> None:
    for name in ("first", "second"):
        shop.play({"job": [[{"write": "job", "text": f"{name}\n"}]]})
        assert shop.run(shop.plan(name, [task("job", "test -s job")])).code == 0
    refused(shop("cancel", "first/job"), 2, "the task job has landed already")
    shop.play({"job": [[{"claim": "no"}], [{"write": "job", "text": "third\n"}]]})
    assert shop.run(shop.plan("third", [task("job", "test -s job")]), "--max-attempts", "1").code == 1
    assert shop("cancel", "third/job").code == 0
    assert "attempt 1 of 1:\n" not in shop("status").out
    said = shop("retry", "job", timeout=90)
    assert said.code == 0, said.out + said.err
    assert [plan.status for plan in shop.rows(Plan)] == ["VERIFIED"] * 3


def test_outside_of_every_repository_no_plan_is_meant_by_itself(shop: Workshop) -> None:
    assert shop.run(shop.chain("one")).code == 0
    for command in ("resume", "diff", "stop"):
        refused(
            shop(command, cwd=shop.place),
            2,
            "this folder is in no git repository",
            f"loopwright {command} PLAN",
        )
    assert shop("show", shop.row(Plan).id, cwd=shop.place).code == 0


def test_a_plan_of_which_all_but_a_cancelled_task_landed_says_how_it_is_verified_without_that(
    shop: Workshop,
) -> None:
    shop.play(
        {"one": [[{"write": "one", "text": "x\n"}]], "words": [[{"write": "other", "text": "x\n"}]] * 3}
    )
    tasks = [task("one", "test -s one"), task("words", "test -s words")]
    assert shop.run(shop.plan("two", tasks)).code == 1
    command = f"loopwright reverify {short_id(shop.row(Plan).id)}"
    said = shop("cancel", "words")
    assert said.code == 0
    assert f"all the rest has landed: `{command}` verifies the plan without it" in " ".join(said.out.split())
    again = shop("resume", timeout=60)
    assert again.code == 1
    assert f"  {command}  or verify what landed, without it" in again.out
    assert command in shop("show", "words").out
    done = shop("reverify", timeout=60)
    assert shop.row(Plan).status == "VERIFIED", done.out + done.err
    refused(shop("reverify"), 2, "the plan is VERIFIED", "loopwright receipt replay")
