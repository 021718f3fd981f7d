"""`loopwright logs`: what agents and gates printed, afterwards and live."""

import json
import re

import pytest
from tests.acceptance.cli.conftest import Live
from tests.acceptance.sandbox import Sandbox, task


def test_the_log_of_a_task_tells_what_its_agent_did_and_what_the_gate_printed(
    finished: Sandbox, good_plan: str
) -> None:
    one = next(t["id"] for t in finished("status", good_plan, "--json").document["plan"]["tasks"])
    out = finished("logs", one).out
    assert "I look at the task." in out
    assert "▸ shell echo seen by a tool\n  seen by a tool\n" in out
    assert "+ created one.txt" in out
    assert "said that it is done: one is there" in out
    assert "=== 1/2 one is right: grep -q right one.txt" in out
    assert out.index("agent scripted  attempt 1") < out.index("── gate  attempt 1")
    assert "── passed" in out
    assert re.fullmatch(r"── one: verified( with gaps)?, landed as [0-9a-f]{7}", out.splitlines()[-1])


def test_an_attempt_and_a_role_can_be_chosen(finished: Sandbox) -> None:
    first = finished("logs", "broken", "--attempt", "1", "--role", "gate").out
    assert "first try\nexpected the word right, but it is not there\n" in first
    assert "agent" not in first
    assert first.endswith("── attempt 1 at broken: rejected (gate)\n")
    newest = finished("logs", "broken").out
    assert "+ created more.txt" in newest
    assert "second try" in newest


def test_raw_lines_are_exactly_what_was_recorded(finished: Sandbox) -> None:
    lines = finished("logs", "broken", "--raw", "--role", "agent").out.splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["started", "file", "file", "usage", "result"]


def test_a_log_as_json_has_one_event_per_line(finished: Sandbox) -> None:
    events = [json.loads(line) for line in finished("logs", "broken", "--json").out.splitlines()]
    assert {event["role"] for event in events} == {"agent", "gate"}
    change = next(event for event in events if event["kind"] == "FileChange")
    assert change["data"] == {"path": "broken.txt", "change": "created"}
    raw = [json.loads(line) for line in finished("logs", "broken", "--json", "--raw").out.splitlines()]
    assert raw[0]["stream"] == "out"
    assert raw[1]["offset"] > raw[0]["offset"]


def test_the_log_of_a_plan_is_its_verification(finished: Sandbox, good_plan: str) -> None:
    out = finished("logs", good_plan).out
    assert out.startswith("── verify")
    assert "one is right" in out
    assert "two is right" in out


def test_a_single_run_can_be_named(finished: Sandbox) -> None:
    runs = finished("show", "broken", "--json").document["task"]["attempts"][0]["run_ids"]
    assert "+ created broken.txt" in finished("logs", runs[0]).out


@pytest.mark.parametrize(
    ("arguments", "told", "hint"),
    [
        (("bad-name",), "nothing here is called 'bad-name'", "loopwright status"),
        (("broken", "--attempt", "7"), "there is no attempt 7 at broken", "there are: 1, 2"),
        (("broken", "--role", "verify"), "a task has no verification", "loopwright logs plan_"),
        (("broken", "--role", "setup"), "there is no setup output of broken yet", "--attempt"),
        (("after",), "there is no output of after yet", "--follow"),
        (("broken", "--role", "review"), "review", "--help"),
    ],
)
def test_what_is_not_there_is_said_with_what_to_do(
    finished: Sandbox, arguments: tuple[str, ...], told: str, hint: str
) -> None:
    said = finished("logs", *arguments)
    assert said.code == 2
    assert told in said.err
    assert hint in said.err


def test_an_unverified_plan_has_no_log_of_its_own_and_names_its_tasks(finished: Sandbox) -> None:
    said = finished("logs", finished.newest_plan())
    assert said.code == 2
    assert "has not been verified yet" in said.err
    assert "name a task: fine, broken, after" in said.err


def test_following_prints_what_a_living_agent_says_and_then_the_gate(live: Live) -> None:
    follower = live.start("logs", "slow", "--follow")
    follower.until("first words")
    assert "last words" not in follower.out
    live.release()
    assert follower.end() == 0
    out = follower.out
    assert out.index("first words") < out.index("last words") < out.index("=== 1/2 slow is right")
    assert "── passed" in out


def test_without_following_a_living_run_is_printed_as_far_as_it_is(live: Live) -> None:
    out = live("logs", "slow").out
    assert "first words" in out
    assert "still running; --follow waits for the rest" in out


def test_following_a_plan_waits_for_its_verification(live: Live) -> None:
    follower = live.start("logs", live.newest_plan(), "-f")
    live.release()
    assert follower.end() == 0
    assert "── evaluation" in follower.out, "it becomes the verification, because it passes"


def test_what_an_agent_prints_cannot_steer_the_terminal(sandbox: Sandbox) -> None:
    sandbox.play(
        {
            "odd": [
                [{"print": "\x1b[2Jpl\u202eain\x07 text"}, {"say": "\x1b]0;title\x07said"}, {"garbage": 20}]
            ]
        }
    )
    sandbox.run(sandbox.plan("odd", [task("odd", "test -d .")]), "--max-attempts", "1")
    out = sandbox.on_terminal("logs", "odd", "--role", "agent", color=True)
    assert "plain text" in out
    assert "said" in out
    assert "\x1b[2J" not in out
    assert "\x07" not in out
    assert "\x1b]0" not in out
    assert "\u202e" not in out


def test_a_large_log_is_printed_in_little_memory(sandbox: Sandbox) -> None:
    sandbox.play({"big": [[{"flood_mb": 24}, {"write": "big", "text": "x"}]]})
    assert sandbox.run(sandbox.plan("big", [task("big", "test -f big")])).code == 0
    # Not `ru_maxrss`: that one remembers the process which this one was forked from.
    script = (
        "import re, sys; from pathlib import Path; from loopwright.cli.main import call;"
        "code = call(['logs', 'big', '--raw', '--role', 'agent']);"
        "used = re.search('VmHWM:.*?([0-9]+) kB', Path('/proc/self/status').read_text())[1];"
        "sys.stderr.write(f'{code} {int(used) // 1024}')"
    )
    used = sandbox.measured(script)
    code, megabytes = used.err.split()
    assert code == "0"
    assert len(used.out) > 24 * 1024 * 1024
    assert int(megabytes) < 150
