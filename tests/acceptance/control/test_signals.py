"""Ctrl-C, a closed terminal, and being told to end: each leaves a state to go on from."""

import os
import pty
import shutil
import signal
import subprocess
import sys

import psutil
import pytest
from tests.acceptance.cli.program import executable
from tests.acceptance.control.workshop import Workshop, send
from tests.acceptance.sandbox import Background, task
from tests.waiting import eventually

from loopwright.core.rows.model import Loop, Plan, Run
from loopwright.core.values.ids import short_id

STUBBORN = [
    {
        "expect_prompt": "You were interrupted",
        "otherwise": [{"write": "half", "text": "half of it\n"}, {"hang": 90, "stubborn": True}],
    },
    {"run": "cp half whole"},
]
"""An agent that is deaf to polite words."""


def _consistent(shop: Workshop, why: str = "paused from the terminal") -> None:
    """Nothing runs, nothing is said to run, and the rows say what to go on with."""
    shop.until_quiet()
    assert shop.row(Loop).state == "PAUSED"
    assert shop.row(Loop).reason == why
    assert shop.row(Plan).status == "RUNNING"
    assert shop.rows(Run, state="RUNNING") == []
    (attempt,) = shop.attempts("half")
    assert attempt.state == "WAITING"
    assert shop.pinned(attempt, "half") == "half of it\n"


def _resumed(shop: Workshop) -> None:
    said = shop("resume", timeout=90)
    assert said.code == 0, said.out + said.err
    assert shop.started() == [("half", 1), ("half", 1)]
    assert shop.landed() == ["half"]
    shop.untouched()


@pytest.mark.capability("C060")
@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, *(pytest.param(one, marks=pytest.mark.long) for one in (signal.SIGHUP, signal.SIGTERM))],
    ids=lambda one: one.name,
)
def test_one_signal_pauses_cleanly_and_says_how_to_go_on(shop: Workshop, number: signal.Signals) -> None:
    run = shop.start("run", str(shop.half()))
    shop.until_half()
    before = run.until("Ctrl-C")
    told = "Ctrl-C pauses the plan and keeps all work; so does closing this terminal."
    assert told in before, "it is said beforehand"
    send(run, number)
    assert run.end() == 3, run.out
    assert f"  loopwright resume {short_id(shop.row(Plan).id)}" in run.out
    words = {signal.SIGHUP: "its terminal was closed", signal.SIGTERM: "a signal asked it to end (SIGTERM)"}
    _consistent(shop, f"paused: {words[number]}" if number in words else "paused from the terminal")
    if number is signal.SIGINT:
        _resumed(shop)


@pytest.mark.capability("C060")
def test_a_second_ctrl_c_stops_at_once_even_an_agent_that_does_not_listen(shop: Workshop) -> None:
    shop.play({"half": [STUBBORN]})
    run = shop.start("run", str(shop.plan("half", [task("half", "test -s whole")])))
    shop.until_half()
    run.interrupt()
    run.until("Ctrl-C again stops at once")
    assert run.process.poll() is None
    run.interrupt()
    assert run.end(timeout=20) == 130, run.out
    _consistent(shop)
    _resumed(shop)


def test_two_ctrl_c_in_the_same_instant_start_nothing_and_leave_nothing(shop: Workshop) -> None:
    run = shop.start("run", str(shop.half()))
    shop.until_half()
    run.interrupt()
    run.interrupt()
    # Signals of one kind that come together may be seen as one.
    assert run.end(timeout=20) in (3, 130), run.out
    _consistent(shop)
    assert shop.started() == [("half", 1)]


def test_a_second_ctrl_c_ends_the_complete_gate_too(shop: Workshop) -> None:
    gate = shop.gate("gate")
    last = {"name": "last", "run": f'trap "" INT TERM; test -n "$LOOPWRIGHT_ATTEMPT" || {{ {gate.shell}; }}'}
    run = shop.start("run", str(shop.chain("one", gates=[last])))
    gate.until_reached()
    run.interrupt()
    run.until("Ctrl-C again")
    run.interrupt()
    assert run.end(timeout=20) == 130, run.out
    shop.until_quiet()
    assert (shop.row(Loop).state, shop.row(Plan).status) == ("PAUSED", "RUNNING")
    gate.let_go()
    assert shop("resume", timeout=90).code == 0
    assert shop.landed() == ["one"]


@pytest.mark.skipif(sys.platform != "linux", reason="needs setsid --ctty")
def test_closing_the_terminal_pauses_like_ctrl_c(shop: Workshop) -> None:
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        ["setsid", "--ctty", sys.executable, "-m", "loopwright.cli", "run", str(shop.half())],
        cwd=shop.repository,
        env={**shop.program.env, "TERM": "xterm-256color"},
        stdin=follower,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    try:
        shop.until_half()
        os.close(leader)
        assert process.wait(timeout=60) == 3
    finally:
        process.kill()
        process.wait()
    _consistent(shop, "paused: its terminal was closed")


def test_a_worker_that_is_told_to_end_leaves_its_agents_at_work(shop: Workshop) -> None:
    agent = shop.gate("agent")
    steps = {"one": [[agent.step, {"write": "one", "text": "1\n"}]]}
    worker = shop.start("worker")
    worker.until("Ctrl-C leaves, agents continue")
    run = shop.start("run", str(shop.chain("one", steps=steps)))
    shop.until_started("one")
    send(worker, signal.SIGTERM)
    assert worker.end() == 0, worker.out
    (line,) = shop.journal()
    assert psutil.pid_exists(line.pid)
    agent.let_go()
    assert run.end() == 0, "who followed takes over"
    assert shop.started() == [("one", 1)]


def _ended(run: Background) -> bool:
    return run.process.poll() is not None


@pytest.mark.capability("C060")
@pytest.mark.parametrize(
    "moment", [pytest.param("store.attempt.accepted", marks=pytest.mark.long), "store.gate.start"]
)
def test_ctrl_c_at_any_stage_of_an_attempt_leaves_a_state_to_go_on_from(shop: Workshop, moment: str) -> None:
    trace = shop.place / "trace"
    shop.program.env["LOOPWRIGHT_FAILPOINT_TRACE"] = str(trace)
    run = shop.start("run", str(shop.chain("one", "two")))
    eventually(lambda: _ended(run) or (trace.exists() and f"{moment}.after" in trace.read_text()), timeout=60)
    run.interrupt()
    code = run.end()
    assert code == 3, run.out
    shop.until_quiet()
    assert shop.rows(Run, state="RUNNING") == []
    assert shop("resume", timeout=90).code == 0
    assert shop.landed() == ["one", "two"]
    assert len(shop.attempts("one")) == len(shop.attempts("two")) == 1


def test_a_git_that_ctrl_c_reached_too_costs_no_agents_work(shop: Workshop) -> None:
    """The terminal sends it to the whole group: a git that is only just starting is still part of that."""
    once = shop.place / "once"
    real = shutil.which("git", path=shop.program.env["PATH"])
    # The first tree that is made for a gate.
    hit = f'case "$PWD $*" in */trees/*read-tree*) test -e {once} || {{ touch {once}; kill -INT $$; }};; esac'
    executable(shop.place / "bin" / "git", f'{hit}; exec {real} "$@"')
    shop.program.env["PATH"] = f"{shop.place / 'bin'}:{shop.program.env['PATH']}"
    said = shop.run(shop.chain("one"))
    assert said.code == 0, said.out + said.err
    assert once.exists()
    assert [attempt.state for attempt in shop.attempts("one")] == ["LANDED"]
    assert shop.started() == [("one", 1)]


def test_a_gate_that_ctrl_c_kept_from_starting_is_not_left_as_running(shop: Workshop) -> None:
    once, pid = shop.place / "once", shop.place / "pid"
    real = shutil.which("git", path=shop.program.env["PATH"])
    both = f"until test -s {pid}; do sleep 0.02; done; kill -INT $(cat {pid}); exit 1"
    hit = f'case "$PWD $*" in */trees/*read-tree*) test -e {once} || {{ touch {once}; {both}; }};; esac'
    executable(shop.place / "bin" / "git", f'{hit}; exec {real} "$@"')
    shop.program.env["PATH"] = f"{shop.place / 'bin'}:{shop.program.env['PATH']}"
    run = shop.start("run", str(shop.chain("one")))
    pid.write_text(str(run.process.pid))
    assert run.end(60) == 3, run.out
    assert shop.rows(Run, state="RUNNING") == []
    (stopped,) = shop.rows(Run, role="gate")
    assert (stopped.state, stopped.summary) == ("CANCELLED", "the gate was interrupted")
    assert shop("resume", timeout=90).code == 0
    assert shop.started() == [("one", 1)], "its agent's work is kept"
