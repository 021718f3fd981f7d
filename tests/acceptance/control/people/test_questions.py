"""People in the loop, through the real command line: what runs ask, who sees it, and what an answer does."""

import json
import sys
from pathlib import Path

import pytest
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task
from tests.fakes import stand_ins
from tests.waiting import eventually

from loopwright.core.rows.model import Plan, Role, Run, Task
from loopwright.core.rows.waiting_rows import Question
from loopwright.core.values.failures import Failure
from loopwright.core.values.states import AttemptState, QuestionState, RunState, TaskState


def asks(question: dict[str, object], key: str) -> list[object]:
    """Return the steps of an agent that needs an answer before it can go on."""
    block = f"I need to know.\n```loopwright-ask\n{json.dumps(question)}\n```\n"
    return [
        {"expect_prompt": "The answer:", "otherwise": [{"claim": block}]},
        {"write": key, "text": f"{key}\n"},
        {"claim": "done"},
    ]


@pytest.mark.capability("C090")
@pytest.mark.parametrize("count", [7, pytest.param(20, marks=pytest.mark.long)])
def test_four_of_many_ask_while_the_others_finish_and_the_answers_let_the_plan_verify(
    shop: Workshop, count: int
) -> None:
    keys = [f"t{n}" for n in range(count)]
    asking = keys[:4]
    ports = {"question": "Which port?", "options": ["80", "8080"], "default": "80"}
    shop.play({key: [asks(ports, key) if key in asking else [{"write": key, "text": "x\n"}]] for key in keys})
    shop.program.env["LOOPWRIGHT_PARALLEL"] = "3"
    going = shop.start("run", str(shop.plan("ports", [task(key, f"test -s {key}") for key in keys])))

    def settled() -> bool:
        tasks = shop.rows(Task)
        waiting = {one.key for one in tasks if one.status is TaskState.AWAITING_RESPONSE}
        done = {one.key for one in tasks if one.status is TaskState.COMPLETE}
        return waiting == set(asking) and done == set(keys) - set(asking)

    eventually(settled, timeout=90)
    assert going.process.poll() is None, "it waits for the answers"
    assert going.out.count("loopwright answer ask_") == 4, "and says how"
    listed = shop("answer", "--json").document["questions"]
    assert shop("questions", "--json").document["questions"] == listed
    assert shop("answer", listed[0]["id"], "--json").document["questions"] == listed[:1]
    assert [one["tasks"] for one in listed] == [[key] for key in sorted(asking, key=_asked_at(shop))]
    shown = shop("status").out
    assert shown.count("Which port?") >= 4
    assert "loopwright answer ask_" in shown
    watching = shop.start("watch")
    eventually(lambda: watching.out.count("loopwright answer ask_") == 4, timeout=60)
    assert watching.out.count("Which port?") >= 4
    packet = shop("inspect", listed[3]["tasks"][0], "--json").document["packet"]
    assert packet["clarifications"] == [{"question": "Which port?", "answer": ""}]
    assert packet["open_questions"] == ["Which port?"]
    for one in listed[:3]:
        assert shop("answer", one["id"], "2").out.startswith("answered; 1 task continues\n")
    short = listed[3]["id"][:12]
    assert shop("answer", short, "443").code == 2, "it is none of the options"
    assert shop("answer", short, "443", "--other").code == 0
    assert going.end(60) == 0, going.out
    assert watching.end(60) == 0, "who watches sees it go on and end"
    plan = shop.row(Plan)
    assert (plan.status, plan.outcome) == ("VERIFIED", "verified")
    prompts = [
        (shop.home / "runs" / run.id / "prompt.md").read_text()
        for run in shop.rows(Run, role=Role.IMPLEMENTER)
        if run.task_id == shop.task(listed[3]["tasks"][0]).id
    ]
    assert "The answer:\n\n    443" in prompts[1]
    packet = shop("inspect", listed[3]["tasks"][0], "--json").document["packet"]
    assert packet["clarifications"] == [{"question": "Which port?", "answer": "443"}]
    assert packet["open_questions"] == []
    assert shop("questions").out == "nothing waits for an answer\n"


def test_what_nobody_knows_the_cost_of_is_not_shown_as_free_while_it_waits_for_an_answer(
    shop: Workshop,
) -> None:
    shop.play({"paint": [asks({"question": "Which colour?"}, "paint")]})
    going = shop.start("run", str(shop.plan("paint", [task("paint", "test -s paint")])))
    (run,) = eventually(lambda: shop.rows(Run, state=RunState.AWAITING_RESPONSE), timeout=90)
    seen = shop("status", "--json").document
    known = [(one["cost_micros"], one["cost_complete"]) for one in (*seen["plans"], seen["plan"])]
    assert known == [(None, False), (None, False)]
    for shown in (
        shop("status").out,
        shop("show", seen["plan"]["id"]).out,
        shop("stats", "quota", "show", "scripted").out,
    ):
        assert ("cost unknown" in shown, "$0.00" in shown) == (True, False), shown
    logs = shop("logs", run.id, "--follow", timeout=60).out
    assert "── awaiting response  exit code 0" in logs, "there is nothing more to follow"
    going.interrupt()
    going.end()


def _asked_at(shop: Workshop) -> object:
    order = [shop.row(Task, id=one.task_id).key for one in shop.rows(Question)]
    return order.index


@pytest.mark.capability("C090")
@pytest.mark.parametrize("count", [5, pytest.param(20, marks=pytest.mark.long)])
def test_the_same_command_wanted_by_many_agents_is_one_question(shop: Workshop, count: int) -> None:
    """Through the stand-in for Claude Code, which asks leave for `make dist` over its own protocol."""
    program = shop.place / "claude"
    stand_in = Path(stand_ins.__file__).parent / "claude.py"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I {stand_in} permission "$@"\n')
    program.chmod(0o755)
    shop.program.env |= {
        "LOOPWRIGHT_AGENT": "claude",
        "LOOPWRIGHT_AGENTS__CLAUDE__BINARY": str(program),
        "LOOPWRIGHT_PARALLEL": "4",
    }
    keys = [f"t{n}" for n in range(count)]
    going = shop.start("run", str(shop.plan("dist", [task(key, "test -s dist.txt") for key in keys])))
    eventually(lambda: len(shop.rows(Task, status=TaskState.AWAITING_RESPONSE)) == count, timeout=90)
    question = shop.row(Question)
    assert (question.kind, question.key, len(question.asked_by)) == ("permission", "command:make dist", count)
    assert len(shop.events("question_asked")) == 1
    said = shop("answer", question.id, "yes", "--for", "loop")
    assert said.out.startswith(f"answered; {count} tasks continue\n")
    assert going.end(90) == 0, going.out
    assert shop.row(Question).holds_for == "loop"
    runs = shop.rows(Run, role=Role.IMPLEMENTER)
    assert {run.state for run in runs} == {RunState.COMPLETE}
    granted = [run.permissions.granted for run in runs if run.permissions]
    assert sorted(granted) == [()] * count + [("command:make dist",)] * count, (
        "each run says what it was allowed"
    )


@pytest.mark.capability("C090")
def test_an_agent_that_finds_the_plan_wrong_escalates_and_goes_on_as_it_is_told(shop: Workshop) -> None:
    wrong = {
        "question": "The library has no such call any more. Rewrite it without?",
        "options": ["rewrite", "pin the old version"],
        "kind": "escalation",
    }
    shop.play({"a": [asks(wrong, "a")]})
    going = shop.start("run", str(shop.plan("old", [task("a", "test -s a")])))
    question = eventually(lambda: shop.rows(Question), timeout=60)[0]
    eventually(lambda: shop.task("a").status is TaskState.AWAITING_RESPONSE)
    assert question.kind == "escalation"
    (listed,) = shop("questions", "--json").document["questions"]
    assert (listed["kind"], listed["options"]) == ("escalation", ["rewrite", "pin the old version"])
    refused = shop("answer", question.id, "1", "--for", "loop")
    assert refused.code == 2, "a decision about this work is none about other work"
    assert shop("answer", question.id, "1").code == 0
    assert going.end(60) == 0, going.out
    second = shop.rows(Run, role=Role.IMPLEMENTER)[1]
    assert "The answer:\n\n    rewrite" in (shop.home / "runs" / second.id / "prompt.md").read_text()


def forgetful(shop: Workshop, *parts: str) -> None:
    """Let agents be a stand-in that knows no conversation again, and that has left half of the work at its first."""
    gone = {
        "type": "result",
        "subtype": "error_during_execution",
        "is_error": True,
        "num_turns": 0,
        "session_id": "11111111-2222-4333-8444-555555555555",
        "total_cost_usd": 0,
        "errors": ["No conversation found with session ID: 11111111-2222-4333-8444-555555555555"],
    }
    half = shop.place / "half was made"
    shop.play_claude(
        *parts,
        before=f"case \" $* \" in *' --resume '*) echo '{json.dumps(gone)}'; exit 1;; esac\n"
        f"test -e '{half}' || {{ touch '{half}'; echo half > half; }}\n",
    )


def test_a_conversation_that_is_gone_is_gone_on_without_in_the_same_workspace_and_with_the_answer(
    shop: Workshop,
) -> None:
    forgetful(shop, "permission", "permission")
    going = shop.start("run", str(shop.plan("dist", [task("a", "test -s dist.txt", "test -s half")])))
    eventually(lambda: shop.rows(Task, status=TaskState.AWAITING_RESPONSE), timeout=60)
    question = shop.row(Question)
    assert shop("answer", question.id, "yes").code == 0
    assert going.end(60) == 0, going.out
    assert len(shop.attempts("a")) == 1, "nothing was wrong with the work"
    runs = shop.rows(Run, role=Role.IMPLEMENTER)
    assert [("--resume" in run.argv, run.failure) for run in runs] == [
        (False, None),
        (True, Failure.CRASH),
        (False, None),
    ]
    prompt = (shop.home / "runs" / runs[2].id / "prompt.md").read_text()
    assert "The workspace is as you left it" in prompt
    assert question.text in prompt
    assert "The answer:\n\n    yes" in prompt
    told = [event.payload.get("because", "") for event in shop.events("attempt_waiting")]
    assert told[1] == "its conversation is gone: it continues in a new one"


@pytest.mark.more
@pytest.mark.timeout(300)
def test_an_attempt_goes_on_without_its_conversation_once(shop: Workshop) -> None:
    forgetful(shop, "rate_limit", "rate_limit", "done")
    said = shop.run(shop.plan("made", [task("a", "test -s made.txt")]))
    assert said.code == 0, said.out
    first, second = shop.attempts("a")
    assert (first.state, first.failure) == (AttemptState.BROKEN, Failure.CRASH)
    by_attempt: dict[str | None, list[bool]] = {first.id: [], second.id: []}
    for run in shop.rows(Run, role=Role.IMPLEMENTER):
        by_attempt[run.attempt_id].append("--resume" in run.argv)
    assert by_attempt == {first.id: [False, True, False, True], second.id: [False]}


def test_a_question_that_nobody_answers_blocks_its_task_and_says_which(shop: Workshop) -> None:
    shop.play({"a": [asks({"question": "Who decides?"}, "a")]})
    shop.program.env["LOOPWRIGHT_ANSWER_WITHIN"] = "1s"
    said = shop.run(shop.plan("who", [task("a", "test -s a")]))
    assert said.code == 3
    assert "Who decides?" in said.out
    assert "blocked" in said.out
    assert shop.row(Question).state is QuestionState.EXPIRED
    refused = shop("answer", shop.row(Question).id, "Ada")
    assert (refused.code, refused.err.splitlines()[0]) == (2, "error: the question is expired already")
    assert "to do: `loopwright retry a --note '…'` tries it again with what you say" in refused.err


def test_an_answer_without_a_worker_is_kept_and_the_way_on_is_said(shop: Workshop) -> None:
    shop.play({"a": [asks({"question": "Who decides?"}, "a")]})
    going = shop.start("run", str(shop.plan("who", [task("a", "test -s a")])))
    eventually(lambda: shop.rows(Question), timeout=60)
    eventually(lambda: shop.task("a").status is TaskState.AWAITING_RESPONSE)
    going.kill()
    plan = shop.row(Plan)
    said = shop("answer", shop.row(Question).id, "Ada")
    assert "no worker is running: `loopwright resume plan_" in said.out
    assert shop("resume", plan.id, timeout=60).code == 0
    assert shop.row(Plan).status == "VERIFIED"


@pytest.mark.capability("C090")
def test_a_program_that_knows_nothing_of_us_asks_with_its_last_lines(shop: Workshop) -> None:
    agent = shop.place / "agent.sh"
    agent.write_text(
        "prompt=$(cat)\n"
        'case "$prompt" in *"The answer:"*) echo blue > a; exit 0;; esac\n'
        'printf "%s\\n" "$prompt"\n'
        'printf \'%s\\n\' \'```loopwright-ask\' \'{"question": "Which colour?", "options": ["red", "blue"]}\' \'```\'\n'
    )
    shop.program.env |= {
        "LOOPWRIGHT_AGENT": "command",
        "LOOPWRIGHT_AGENTS__COMMAND__COMMAND": f"sh {agent}",
    }
    going = shop.start("run", str(shop.plan("colour", [task("a", "test -s a")])))
    question = eventually(lambda: shop.rows(Question), timeout=60)[0]
    assert (question.text, question.options) == ("Which colour?", ("red", "blue"))
    eventually(lambda: shop.task("a").status is TaskState.AWAITING_RESPONSE)
    wrong = shop("answer", question.id, "7")
    assert wrong.code == 2
    assert wrong.err.startswith("error: there is no option 7\n")
    assert "1 to 2, or one of red, blue; --other" in wrong.err
    assert shop("answer", question.id, "2").code == 0
    assert going.end(60) == 0, going.out
    assert len(shop.attempts("a")) == 1, "a question costs no attempt"
    assert going.out.count("warning: The `command` agent runs without a sandbox") == 1
    assert {run.permission_mode for run in shop.rows(Run, role=Role.IMPLEMENTER)} == {"edit (not kept)"}


def test_a_task_that_was_answered_while_its_plan_is_paused_asks_nobody_any_more(shop: Workshop) -> None:
    shop.play({"a": [asks({"question": "Who decides?"}, "a")]})
    going = shop.start("run", str(shop.plan("who", [task("a", "test -s a")])))
    eventually(lambda: shop.rows(Question), timeout=60)
    eventually(lambda: shop.task("a").status is TaskState.AWAITING_RESPONSE)
    going.interrupt()
    assert going.end(60) == 3, going.out
    assert "asks you" in shop("status").out
    assert shop("answer", shop.row(Question).id, "Ada").code == 0
    shown = shop("status").out
    assert "asks you" not in shown
    assert "it has its answer, and continues when the plan does" in shown
