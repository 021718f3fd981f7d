"""Accounts that are used up or locked, through the real command line: who waits, what is said, what goes on."""

import sys
from pathlib import Path

import pytest
from tests.acceptance.control.workshop import Workshop, kill
from tests.acceptance.sandbox import task
from tests.fakes import stand_ins
from tests.waiting import eventually

from loopwright.core.rows.model import Attempt, Plan, Role, Run, Task
from loopwright.core.rows.waiting_rows import Envelope
from loopwright.testing.scripted import write_script

KEYS = ("a", "b", "c", "d", "e", "f")


def limited(seconds: float, key: str) -> list[object]:
    """Return the steps of an agent that finds the window used up, and does its work when it is asked again."""
    return [
        {"expect_prompt": "You were interrupted", "otherwise": [{"usage_limit": seconds}]},
        {"write": key, "text": f"{key}\n"},
    ]


def plan_of(shop: Workshop, *keys: str) -> str:
    return str(shop.plan("quota", [task(key, f"test -s {key}") for key in keys]))


def vain(runs: list[Run]) -> list[Run]:
    """Return the runs that began while the one that found the window used up could tell, before the reset."""
    (first,) = (run for run in runs if run.failure is not None)
    assert first.started_at is not None
    assert first.retry_at is not None
    return [run for run in runs if run.started_at and first.started_at < run.started_at < first.retry_at]


@pytest.mark.capability("C089")
@pytest.mark.timeout(300)
def test_a_used_up_window_holds_everyone_back_until_the_reset(shop: Workshop) -> None:
    plain = {key: [[{"write": key, "text": f"{key}\n"}]] for key in KEYS}
    shop.play({**plain, "a": [limited(4, "a")]})
    # The reset comes before that, so the plan waits for it.
    shop.program.env |= {"LOOPWRIGHT_PARALLEL": "1", "LOOPWRIGHT_LONGEST_WAIT": "2h"}
    going = shop.start("run", plan_of(shop, *KEYS))
    eventually(lambda: shop.rows(Envelope, state="CLOSED"), timeout=60)
    closed = shop.row(Envelope)
    assert closed.until is not None
    assert "scripted is closed until" in shop("status").out
    (listed,) = shop("stats", "quota", "--json").document["envelopes"]
    assert (listed["id"], listed["state"], listed["failure"]) == ("scripted/default", "CLOSED", "usage_limit")
    assert "scripted  closed until" in shop("stats", "quota").out
    assert going.end(90) == 0, going.out
    runs = shop.rows(Run, role=Role.IMPLEMENTER)
    assert vain(runs) == []
    assert len(runs) == len(KEYS) + 1, "the one that found out was repeated, and no other"
    told = [event.type for event in shop.events("envelope_closed", "envelope_probing", "envelope_opened")]
    assert told == ["envelope_closed", "envelope_probing", "envelope_opened"]
    assert {one.call_failures for one in shop.rows(Task)} == {0}
    assert shop("stats", "quota").out == "scripted  open  (7 runs)\n"
    (drawn,) = shop("stats", "quota", "show", "scripted", "--json").document["drawn"]
    assert {one["id"] for one in drawn["runs"]} == {run.id for run in runs}, "which runs drew from it"
    assert [one["failure"] for one in drawn["runs"]].count("usage_limit") == 1
    newest_first = sorted(runs, key=lambda run: run.started_at, reverse=True)
    assert [one["id"] for one in drawn["runs"]] == [run.id for run in newest_first]
    shown = shop("stats", "quota", "show", "scripted/default").out
    assert shown.startswith("scripted  open  (7 runs)\n  cost unknown in all")
    assert shown.count("implementer") == 7
    assert "closed" not in shop("status").out


@pytest.mark.capability("C089")
def test_a_limit_of_one_model_holds_back_that_model_alone(shop: Workshop) -> None:
    limit = {"usage_limit": 3600, "model": "big"}
    again = {"expect_prompt": "You were interrupted", "otherwise": [limit]}
    shop.play(
        {
            "a": [[again, {"write": "a", "text": "a"}]],
            "b": [[{"write": "b", "text": "b"}]],
            "c": [[{"write": "c", "text": "c"}]],
        }
    )
    tasks = [
        task("a", "test -s a", model="some-big-1"),
        task("b", "test -s b", model="some-big-2", depends_on=["c"]),
        task("c", "test -s c", model="some-small-1"),
    ]
    going = shop.start("run", str(shop.plan("models", tasks)))
    eventually(lambda: shop.rows(Task, key="c", status="COMPLETE"), timeout=60)
    eventually(lambda: shop.rows(Attempt, state="WAITING"), timeout=60)
    assert "scripted:big is closed until" in shop("status").out
    assert [
        run.model for run in shop.rows(Run, role=Role.IMPLEMENTER) if run.started_at and not run.failure
    ] == ["some-small-1"]
    listed = shop("stats", "quota").out
    assert "scripted  open  (2 runs)" in listed
    assert "scripted:big  closed until" in listed
    assert shop("stats", "quota", "open", "scripted:big").code == 0
    assert going.end(90) == 0, going.out
    assert shop("stats", "quota").out == "scripted  open  (4 runs)\nscripted:big  open\n"


@pytest.mark.capability("C089")
@pytest.mark.parametrize(
    ("failure", "said"),
    [
        ("auth", "The agent is not logged in; log in."),
        pytest.param("billing", "The account has no credit; top up.", marks=pytest.mark.more),
    ],
)
def test_a_locked_account_is_one_alert_survives_a_crash_and_goes_on_when_it_is_opened(
    shop: Workshop, failure: str, said: str
) -> None:
    locked = [[{"fail": failure, "message": "not with this account"}]]
    shop.play(dict.fromkeys(KEYS, locked))
    going = shop.start("run", plan_of(shop, *KEYS))
    eventually(lambda: shop.rows(Attempt, state="WAITING"), timeout=60)
    assert shop.row(Envelope).failure == failure
    note = f"{said} Then `loopwright stats quota open scripted`"
    assert shop("status").out.count(f"note: scripted is closed: {note}") == 1
    kill(going)
    again = shop.start("resume")
    again.until("parked")
    write_script(
        shop.place / "next.json",
        {"journal": "journal.txt", "tasks": {key: [[{"write": key, "text": "x"}]] for key in KEYS}},
    ).replace(shop.script)
    opened = shop("stats", "quota", "open", "scripted")
    assert opened.code == 0, opened.err
    assert opened.out.startswith("open; ")
    assert again.end(90) == 0, again.out
    assert shop.row(Plan).status == "VERIFIED"
    assert len(shop.events("envelope_closed")) == 1
    assert shop.events("task_failed") == []
    refused = shop("stats", "quota", "open", "goose")
    assert (refused.code, "one of scripted" in refused.err) == (2, True), refused.err


@pytest.mark.more
@pytest.mark.capability("C086")
@pytest.mark.timeout(300)
def test_a_service_that_asks_to_slow_down_is_asked_again_after_a_pause(shop: Workshop) -> None:
    """That pauses grow is shown without waiting for them, in `test_retry`."""
    shop.play_claude("rate_limit", "done")
    said = shop("run", str(shop.plan("slow", [task("a", "test -s made.txt")])), timeout=90)
    assert said.code == 0, said.out + said.err
    (attempt,) = shop.attempts("a")
    first, second = shop.rows(Run, attempt_id=attempt.id, role=Role.IMPLEMENTER)
    assert (first.failure, second.failure) == ("rate_limit", None)
    assert first.ended_at
    assert second.started_at
    pause = (second.started_at - first.ended_at).total_seconds()
    assert pause >= 4, "five seconds, less a fifth"
    assert shop.rows(Envelope, state="CLOSED") == [], "others are not held back by it"


def test_a_plan_that_does_not_wait_pauses_and_says_why(shop: Workshop) -> None:
    shop.play({"a": [limited(3600, "a")]})
    said = shop("run", plan_of(shop, "a"), "--no-wait", timeout=60)
    assert said.code == 3, said.out + said.err
    assert "scripted is closed until" in said.out
    assert shop.attempts("a")[0].state == "WAITING", "its work is kept"
    assert shop("stats", "quota").out.startswith("scripted  closed until")


def test_a_wait_that_would_be_too_long_pauses_the_plan(shop: Workshop) -> None:
    shop.play({"a": [limited(3600, "a")]})
    shop.program.env["LOOPWRIGHT_LONGEST_WAIT"] = "30m"
    said = shop("run", plan_of(shop, "a"), timeout=60)
    assert said.code == 3, said.out + said.err
    assert "longer than `longest_wait`" in said.out
    assert shop.attempts("a")[0].state == "WAITING", "its work is kept"


def test_another_agent_takes_over_where_the_first_stopped(shop: Workshop) -> None:
    half = {"write": "half", "text": "half\n"}
    shop.play({"a": [[half, {"usage_limit": 3600}]], "b": [[{"write": "b", "text": "never"}]]})
    shop.program.env |= {
        "LOOPWRIGHT_PARALLEL": "1",
        "LOOPWRIGHT_FALLBACK": "command",
        "LOOPWRIGHT_AGENTS__COMMAND__COMMAND": "sh -c 'test -e a && echo b > b || cp half a'",
    }
    tasks = [task("a", "test -s a"), task("b", "test -s b", depends_on=["a"])]
    said = shop("run", str(shop.plan("quota", tasks)), timeout=90)
    assert said.code == 0, said.out + said.err
    (first,) = shop.attempts("a")
    assert (first.agent, first.n) == ("command", 1)
    assert first.stands_in == "scripted is closed: The account's limit is reached."
    assert [run.agent for run in shop.rows(Run, attempt_id=first.id, role=Role.IMPLEMENTER)] == [
        "scripted",
        "command",
    ]
    assert shop.attempts("b")[0].agent == "command", "no return before the reset"


def test_who_takes_over_begins_a_conversation_of_its_own(shop: Workshop) -> None:
    """Through the stand-in for Claude Code: its conversation is nothing to the one that takes over."""
    program = shop.place / "claude"
    stand_in = Path(stand_ins.__file__).parent / "claude.py"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I {stand_in} limit "$@"\n')
    program.chmod(0o755)
    shop.play({"a": [[{"write": "a", "text": "a"}]]})
    shop.program.env |= {
        "LOOPWRIGHT_AGENT": "claude",
        "LOOPWRIGHT_AGENTS__CLAUDE__BINARY": str(program),
        "LOOPWRIGHT_FALLBACK": "scripted:small",
    }
    said = shop("run", plan_of(shop, "a"), timeout=60)
    assert said.code == 0, said.out + said.err
    (first,) = shop.rows(Run, agent="claude")
    (second,) = shop.rows(Run, agent="scripted")
    assert first.session_ref, "there was one"
    assert first.session_ref not in second.argv
    assert shop.attempts("a")[0].model == "small"
    assert {one.id: one.state for one in shop.rows(Envelope)} == {
        "claude/default": "CLOSED",
        "scripted/default": "OPEN",
    }


def test_a_fallback_that_does_not_exist_is_said_before_anything_starts(shop: Workshop) -> None:
    shop.play({})
    shop.program.env["LOOPWRIGHT_FALLBACK"] = "clade:big"
    said = shop("run", plan_of(shop, "a"))
    assert said.code == 2
    assert "there is no agent named 'clade'" in said.err
    assert "claude" in said.err
    shop.program.env |= {
        "LOOPWRIGHT_FALLBACK": "claude",
        "LOOPWRIGHT_AGENTS__CLAUDE__BINARY": "/nowhere/claude",
    }
    said = shop("run", plan_of(shop, "a"))
    assert said.code == 2
    assert "fallback: the agent claude cannot be used" in said.err
    assert shop.rows(Plan) == []


def test_a_plan_can_be_resumed_without_waiting(shop: Workshop) -> None:
    shop.play({"a": [limited(3600, "a")]})
    going = shop.start("run", plan_of(shop, "a"))
    eventually(lambda: shop.rows(Attempt, state="WAITING"), timeout=60)
    going.interrupt()
    assert going.end(60) == 3, going.out
    said = shop("resume", "--no-wait", timeout=60)
    assert said.code == 3, said.out + said.err
    assert "scripted is closed until" in said.out
