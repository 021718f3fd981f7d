"""The scripted agent as a real process: each step does what it says."""

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import eventually
from tests.wording_plugin import Wording

from loopwright.core.rows.model import Usage
from loopwright.core.values.failures import Failure
from loopwright.testing import agent_program
from loopwright.testing.scripted import PROGRAM, ScriptedAgent, read_journal, write_script

AGENT = ScriptedAgent()


@pytest.fixture
def play(run_agent: Any, tmp_path: Path) -> Any:
    """Run one attempt at task `t` by a script for it."""

    async def run(*attempts: list[dict[str, Any]], attempt: int = 1, more: str = "", **script: Any) -> Any:
        path = write_script(tmp_path / "script.json", {"tasks": {"t": list(attempts)}, **script})
        prompt = f"You are working.\n\nTask: t\nAttempt: {attempt}\nTitle: x\n{more}"
        return await run_agent(AGENT, prompt, options={"script": str(path)})

    return run


async def test_it_really_edits_files(play: Any, workspace: Path) -> None:
    (workspace / "old.txt").write_text("old")
    ran = await play(
        [
            {"write": "deep/new.txt", "text": "one\n"},
            {"append": "deep/new.txt", "text": "two\n"},
            {"delete": "old.txt"},
            {"run": "echo three >> deep/new.txt"},
            {"claim": "all written"},
        ]
    )
    assert (workspace / "deep/new.txt").read_text() == "one\ntwo\nthree\n"
    assert not (workspace / "old.txt").exists()
    assert ran.result.claimed
    assert ran.result.summary == "all written"
    assert ran.kinds() == [
        "Started", "FileChange", "FileChange", "FileChange", "ToolStart", "ToolEnd", "Finished",
    ]  # fmt: skip


async def test_no_steps_are_a_claim_without_work(play: Any, workspace: Path) -> None:
    ran = await play([])
    assert ran.result.claimed
    assert list(workspace.iterdir()) == []


async def test_each_attempt_has_its_steps_and_the_last_serves_all_later_ones(
    play: Any, workspace: Path
) -> None:
    attempts = [{"write": "a", "text": "first"}], [{"write": "a", "text": "later"}]
    await play(*attempts, attempt=1)
    assert (workspace / "a").read_text() == "first"
    for attempt in (2, 5):
        (workspace / "a").unlink()
        await play(*attempts, attempt=attempt)
        assert (workspace / "a").read_text() == "later"


async def test_it_works_only_for_who_tells_it_what_was_found(play: Any, workspace: Path) -> None:
    steps = [
        {"expect_prompt": "2 != 3", "otherwise": [{"write": "a", "text": "wrong"}]},
        {"write": "a", "text": "right"},
    ]
    ran = await play(steps)
    assert ran.result.claimed
    assert (workspace / "a").read_text() == "wrong"
    await play(steps, more="found: 2 != 3\n")
    assert (workspace / "a").read_text() == "right"


async def test_it_reports_usage_cost_and_a_used_up_window(play: Any) -> None:
    ran = await play(
        [{"usage": {"input_tokens": 10, "output_tokens": 2, "cost_micros": 77}}, {"usage_limit": 60}]
    )
    assert ran.result.failure is Failure.USAGE_LIMIT
    assert ran.result.retry_at is not None
    assert timedelta(0) < ran.result.retry_at - datetime.now(UTC) <= timedelta(seconds=60)
    assert ran.result.usage == Usage(input_tokens=10, output_tokens=2)
    assert ran.result.cost_micros == 77


@pytest.mark.capability("C028", "C029")
@pytest.mark.parametrize(
    ("steps", "failure"),
    [
        ([{"fail": "auth", "message": "not logged in"}], Failure.AUTH),
        ([{"fail": "no such class"}], Failure.AGENT_ERROR),
        ([{"exit": 0}], Failure.CRASH),
        ([{"exit": 3}], Failure.CRASH),
        ([{"claim": "done"}, {"exit": 1}], Failure.CRASH),
        ([{"crash": "SIGKILL"}], Failure.CRASH),
        ([{"crash": "SIGSEGV"}], Failure.CRASH),
        ([{"claim": "done"}, {"crash": "SIGTERM"}], Failure.CRASH),
    ],
    ids=str,
)
async def test_a_bad_end_is_taken_for_what_it_is(
    play: Any, steps: list[dict[str, Any]], failure: Failure
) -> None:
    assert (await play(steps)).result.failure is failure


@pytest.mark.capability("C027")
async def test_garbage_and_floods_do_not_hide_the_claim(play: Any) -> None:
    ran = await play([{"garbage": 40}, {"flood_mb": 3}, {"print": "plain"}, {"claim": "done"}])
    assert ran.result.claimed
    assert ran.kinds().count("Raw") > 3_000


async def test_it_commits_as_some_agents_do(play: Any, workspace: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=workspace, check=True)
    await play([{"write": "a", "text": "x"}, {"commit": "its own 'commit'"}])
    log = subprocess.run(
        ["git", "log", "--format=%s"], cwd=workspace, check=True, capture_output=True, text=True
    )
    assert log.stdout == "its own 'commit'\n"


def test_a_child_that_it_leaves_behind_lives_on(tmp_path: Path, workspace: Path) -> None:
    """Without a keeper, which would end it."""
    steps = [{"spawn": "exec sleep 60", "pid_file": "pid"}]
    script = write_script(tmp_path / "script.json", {"tasks": {"t": [steps]}})
    argv = [sys.executable, "-S", "-I", str(PROGRAM), "--script", str(script)]
    subprocess.run(argv, cwd=workspace, check=True, input=b"Task: t\nAttempt: 1\n", capture_output=True)
    pid = int((workspace / "pid").read_text())
    try:
        assert os.getsid(pid) == pid
    finally:
        os.kill(pid, signal.SIGKILL)


async def test_the_journal_shows_every_start_and_every_orderly_end(play: Any, tmp_path: Path) -> None:
    await play([{"write": "a", "text": ""}], journal="journal.txt")
    await play([{"crash": "SIGKILL"}], journal="journal.txt", attempt=2)
    lines = read_journal(tmp_path / "journal.txt")
    assert [(line.task, line.attempt, line.what) for line in lines] == [
        ("t", 1, "start"),
        ("t", 1, "end"),
        ("t", 2, "start"),
    ]
    assert lines[0].pid == lines[1].pid != lines[2].pid


async def test_a_task_without_steps_means_it_cannot_start_and_says_why(
    run_agent: Any, tmp_path: Path, wording: Wording
) -> None:
    path = write_script(tmp_path / "script.json", {"tasks": {}})
    ran = await run_agent(AGENT, "Task: x\nAttempt: 1\n", options={"script": str(path)})
    assert not ran.result.claimed
    wording(ran.result.detail)


async def test_without_a_script_it_cannot_start(run_agent: Any) -> None:
    ran = await run_agent(AGENT, "Task: x\nAttempt: 1\n")
    assert ran.result.failure is Failure.CANNOT_START


async def test_the_script_can_come_from_the_environment(run_agent: Any, tmp_path: Path) -> None:
    path = write_script(tmp_path / "script.json", {"default": [[{"say": "hello"}]]})
    env = {agent_program.SCRIPT_VARIABLE: str(path)}
    ran = await run_agent(AGENT, "Task: anything at all\nAttempt: 1\n", host_env=env)
    assert ran.result.claimed


def start(tmp_path: Path, steps: list[dict[str, Any]]) -> subprocess.Popen[bytes]:
    path = write_script(tmp_path / "script.json", {"tasks": {"t": [steps]}})
    process = subprocess.Popen(
        [sys.executable, "-m", "loopwright.testing.agent_program", "--script", str(path)],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(b"Task: t\nAttempt: 1\n")
    process.stdin.close()
    return process


def test_it_waits_for_a_file(tmp_path: Path) -> None:
    with start(tmp_path, [{"write": "here", "text": ""}, {"wait_for": "go"}]) as process:
        eventually((tmp_path / "here").exists)
        assert process.poll() is None
        (tmp_path / "go").touch()
        assert process.wait(10) == 0


def test_a_stubborn_one_says_done_and_then_neither_leaves_nor_listens(tmp_path: Path) -> None:
    with start(tmp_path, [{"claim": "done"}, {"hang": 600, "stubborn": True}]) as process:
        assert process.stdout is not None
        said = [json.loads(process.stdout.readline())["event"] for _ in range(3)]
        assert said == ["started", "result", "text"]
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)
        process.kill()
        assert process.wait(10) == -9


def test_it_needs_nothing_but_the_standard_library(tmp_path: Path) -> None:
    path = write_script(tmp_path / "script.json", {"tasks": {"t": [[]]}})
    done = subprocess.run(
        [sys.executable, "-S", "-I", str(PROGRAM), "--script", str(path)],
        cwd=tmp_path,
        input=b"Task: t\nAttempt: 1\n",
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
