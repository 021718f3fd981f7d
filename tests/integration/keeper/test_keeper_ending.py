"""How a run is ended, by itself, by its limits, or by someone; and that a healthy one is not."""

import signal
import time
from pathlib import Path

import anyio
import pytest
from tests.integration.keeper.conftest import (
    MakeSpec,
    all_lines,
    first_line,
    is_running,
    keeper_of,
    text_of,
)
from tests.waiting import eventually_async

from loopwright.adapters.processes.keeper_calls import connected
from loopwright.adapters.processes.keepers import ProcessKeepers
from loopwright.core.values.errors import CannotRun

# Starts a child that left the process group and the session, and whose parent is gone: a daemon.
DAEMON = """
import os, signal, sys, time
said, says = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        {before}
        print(os.getpid(), flush=True)
        os.close(says)
        time.sleep(300)
    os._exit(0)
os.close(says)
os.wait()
os.read(said, 1)
"""


@pytest.mark.capability("C103")
@pytest.mark.trap("orphaned grandchildren")
@pytest.mark.parametrize("stubborn", [False, True])
async def test_what_a_program_leaves_running_is_ended_with_it(
    keepers: ProcessKeepers, make_spec: MakeSpec, stubborn: bool
) -> None:
    before = "signal.signal(signal.SIGTERM, signal.SIG_IGN)" if stubborn else "pass"
    spec = make_spec(py=DAEMON.format(before=before) + "print('done', flush=True)")
    await keepers.start(spec)
    ended = await keepers.wait(spec.directory)
    assert (ended.code, ended.ended_by, ended.error) == (0, "itself", "")
    pid = next(int(text) for text in await text_of(keepers, spec) if text.isdigit())
    assert not is_running(pid)


@pytest.mark.capability("C103")
@pytest.mark.trap("orphaned grandchildren")
async def test_a_daemon_that_cleared_its_environment_is_found_by_descent(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    again = "os.execve('/bin/sleep', ['sleep', '300'], {})"
    spec = make_spec(py=DAEMON.format(before=f"print(os.getpid(), flush=True); {again}"))
    await keepers.start(spec)
    ended = await keepers.wait(spec.directory)
    assert ended.ended_by == "itself"
    assert not is_running(int((await text_of(keepers, spec))[0]))


async def test_a_background_child_that_holds_the_pipe_does_not_hold_up_the_end(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec(sh="(trap '' TERM; sleep 300) & echo bye")
    await keepers.start(spec)
    with anyio.fail_after(8):
        assert await text_of(keepers, spec) == ["bye"]
    assert (await keepers.wait(spec.directory)).code == 0


async def test_asking_politely_lets_the_program_say_goodbye(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec(
        sh='echo up; while read x; do [ "$x" = stop ] && { echo bye; exit 5; }; done',
        stdin="pipe",
        interrupt="stop",
        limits={"term_grace": 8.0},
    )
    await keepers.start(spec)
    await first_line(keepers, spec)
    ended = await keepers.end(spec.directory)
    assert (ended.code, ended.ended_by) == (5, "asked")
    assert await text_of(keepers, spec) == ["up", "bye"]
    assert await keepers.end(spec.directory) == ended


async def test_a_polite_interrupt_may_be_a_signal(keepers: ProcessKeepers, make_spec: MakeSpec) -> None:
    spec = make_spec(
        py="import signal, sys\nsignal.signal(signal.SIGINT, lambda *_: sys.exit(6))\n"
        "print('up', flush=True)\nsignal.pause()",
        interrupt="SIGINT",
        limits={"term_grace": 8.0},
    )
    await keepers.start(spec)
    await first_line(keepers, spec)
    assert (await keepers.end(spec.directory)).code == 6


async def test_the_polite_signal_reaches_the_program_behind_a_wrapper(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    """A wrapper, such as those of npm, does not hand on a signal, and leaves when the program does."""
    program = (
        "import os, signal\nsignal.signal(signal.SIGINT, lambda *_: (os.write(1, b'bye\\n'), os._exit(7)))\n"
        "os.write(1, b'up\\n')\nsignal.pause()"
    )
    spec = make_spec(
        py="import signal, subprocess, sys\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "signal.signal(signal.SIGTERM, lambda *_: print('too late', flush=True))\n"
        f"sys.exit(subprocess.run([sys.executable, '-S', '-c', {program!r}]).returncode)",
        interrupt="SIGINT",
        limits={"term_grace": 8.0},
    )
    await keepers.start(spec)
    await first_line(keepers, spec)
    ended = await keepers.end(spec.directory)
    assert (ended.code, ended.ended_by) == (7, "asked")
    assert await text_of(keepers, spec) == ["up", "bye"]


async def test_a_program_that_ignores_every_polite_word_is_killed(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec(
        py="import signal, time\nsignal.signal(signal.SIGTERM, lambda *_: print('no', flush=True))\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('up', flush=True)\n"
        "while True: time.sleep(300)",
        interrupt="SIGINT",
    )
    await keepers.start(spec)
    await first_line(keepers, spec)
    ended = await keepers.end(spec.directory)
    assert (ended.code, ended.ended_by) == (-signal.SIGKILL, "asked")
    assert await text_of(keepers, spec) == ["up", "no"]


async def test_ending_now_is_not_polite(keepers: ProcessKeepers, make_spec: MakeSpec) -> None:
    spec = make_spec(sh="trap 'echo bye' TERM; echo up; sleep 300 & wait; wait", limits={"term_grace": 60.0})
    await keepers.start(spec)
    await first_line(keepers, spec)
    assert (await keepers.end(spec.directory, polite=False)).code == -signal.SIGKILL
    assert await text_of(keepers, spec) == ["up"]


async def test_ending_now_cuts_a_polite_end_short(keepers: ProcessKeepers, make_spec: MakeSpec) -> None:
    spec = make_spec(sh="trap '' TERM; echo up; sleep 300; sleep 300", limits={"term_grace": 60.0})
    await keepers.start(spec)
    await first_line(keepers, spec)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(keepers.end, spec.directory)
            await eventually_async(lambda: b'"ending"' in (spec.directory / "status.json").read_bytes())
            await keepers.end(spec.directory, polite=False)


async def test_a_terminated_keeper_ends_its_run_in_order(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec(sh="trap 'echo bye; exit 4' TERM; echo up; sleep 300 & wait")
    await keepers.start(spec)
    await first_line(keepers, spec)
    keeper = keeper_of(spec)
    keeper.send_signal(signal.SIGHUP)
    keeper.send_signal(signal.SIGTERM)
    ended = await keepers.wait(spec.directory)
    assert (ended.code, ended.ended_by) == (4, "asked")
    assert await text_of(keepers, spec) == ["up", "bye"]


async def test_the_deadline_holds_when_nobody_watches(keepers: ProcessKeepers, make_spec: MakeSpec) -> None:
    spec = make_spec(sh="while :; do echo busy; sleep 0.05; done", limits={"hard": 0.6})
    await keepers.start(spec)
    # Only the file is looked for: no call, no connection.
    await eventually_async((spec.directory / "exit.json").exists)
    ended = await keepers.wait(spec.directory)
    assert ended.ended_by == "deadline"
    assert ended.started_at is not None
    assert (ended.ended_at - ended.started_at).total_seconds() >= 0.6


async def test_a_silent_idle_run_is_ended(
    keepers: ProcessKeepers, make_spec: MakeSpec, tmp_path: Path
) -> None:
    spec = make_spec(sh="sleep 300", limits={"idle": 0.6}, activity_paths=(tmp_path / "work",))
    (tmp_path / "work").mkdir()
    await keepers.start(spec)
    ended = await keepers.wait(spec.directory)
    assert (ended.ended_by, ended.code) == ("idle", -signal.SIGTERM)


SIGNS = {
    "output": "while [ $((i+=1)) -le 16 ]; do echo .; sleep 0.1; done",
    # A grandchild works; the child itself only waits.
    "cpu": "timeout 1.6 sh -c 'while :; do :; done'",
}


@pytest.mark.parametrize("sign", SIGNS)
async def test_a_healthy_run_that_shows_only_one_sign_of_life_is_left_alone(
    keepers: ProcessKeepers, make_spec: MakeSpec, sign: str
) -> None:
    spec = make_spec(sh=f"i=0; {SIGNS[sign]}; exit 9", limits={"idle": 0.8})
    await keepers.start(spec)
    ended = await keepers.wait(spec.directory)
    assert (ended.code, ended.ended_by) == (9, "itself")
    assert ended.started_at is not None
    assert (ended.ended_at - ended.started_at).total_seconds() > 1.2


async def test_changes_of_files_alone_are_a_sign_of_life(
    keepers: ProcessKeepers, make_spec: MakeSpec, tmp_path: Path
) -> None:
    deep = tmp_path / "work" / "deep" / "er"
    deep.mkdir(parents=True)
    paths = (tmp_path / "work", tmp_path / "not-there")
    spec = make_spec("/bin/sleep", "300", limits={"idle": 3.0}, activity_paths=paths)
    await keepers.start(spec)
    # Written from here, so that the run itself uses no CPU time for it.
    begun = time.monotonic()
    while time.monotonic() < begun + 4.5:
        (deep / "file").write_text(str(time.monotonic_ns()))
        await anyio.sleep(0.1)
    assert keepers.look(spec.directory).state == "alive"
    assert (await keepers.wait(spec.directory)).ended_by == "idle"


async def test_input_counts_as_a_sign_of_life(keepers: ProcessKeepers, make_spec: MakeSpec) -> None:
    spec = make_spec("/bin/sleep", "300", stdin="pipe", limits={"idle": 3.0})
    await keepers.start(spec)
    begun, n = time.monotonic(), 0
    while time.monotonic() < begun + 4.5:
        n += 1
        await keepers.write(spec.directory, n, ".")
        await anyio.sleep(0.1)
    assert keepers.look(spec.directory).state == "alive"


async def test_limits_that_are_off_end_nothing(keepers: ProcessKeepers, make_spec: MakeSpec) -> None:
    spec = make_spec(
        sh="echo done; sleep 0.7; exit 2",
        done_pattern="^done$",
        limits={"hard": None, "idle": None, "done_grace": None},
    )
    await keepers.start(spec)
    ended = await keepers.wait(spec.directory)
    assert (ended.code, ended.ended_by) == (2, "itself")


async def test_saying_done_and_not_going_is_ended(keepers: ProcessKeepers, make_spec: MakeSpec) -> None:
    spec = make_spec(
        sh='echo "not done yet"; printf \'{"type":"result"}\\n\'; while :; do echo noise; sleep 0.05; done',
        done_pattern=r'^\{"type":"result"',
        limits={"done_grace": 0.4},
    )
    await keepers.start(spec)
    ended = await keepers.wait(spec.directory)
    assert ended.ended_by == "done_hang"
    assert '{"type":"result"}' in await text_of(keepers, spec)


async def test_being_told_to_stop_and_not_going_is_ended(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    """Whatever it goes on saying, and whatever is said to it after that."""
    spec = make_spec(
        sh="trap '' INT TERM; echo here; while :; do echo noise; sleep 0.05; done",
        stdin="pipe",
        limits={"term_grace": 0.3, "done_grace": None},
    )
    await keepers.start(spec)
    await first_line(keepers, spec)
    await keepers.write(spec.directory, 1, "stop\n", stops=True)
    await keepers.write(spec.directory, 2, "an answer\n")
    assert (await keepers.wait(spec.directory)).ended_by == "done_hang"


async def test_who_leaves_when_told_to_stop_leaves_by_itself(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec(sh="read x; exit 3", stdin="pipe", limits={"term_grace": 30})
    await keepers.start(spec)
    await keepers.write(spec.directory, 1, "stop\n", stops=True)
    ended = await keepers.wait(spec.directory)
    assert (ended.code, ended.ended_by) == (3, "itself")


async def test_new_input_after_done_asks_for_more_work(keepers: ProcessKeepers, make_spec: MakeSpec) -> None:
    spec = make_spec(
        sh="echo done; read x; sleep 1; echo $x; exit 7",
        done_pattern="^done$",
        stdin="pipe",
        limits={"done_grace": 0.8},
    )
    await keepers.start(spec)
    await first_line(keepers, spec)
    await keepers.write(spec.directory, 1, "more\n")
    assert (await keepers.wait(spec.directory)).code == 7


async def test_the_same_number_writes_once_and_input_ends_when_told(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec("/bin/cat", stdin="pipe", stdin_data="zero\n")
    await keepers.start(spec)
    for n, text in ((1, "one\n"), (2, "two\n"), (1, "one\n"), (2, "other\n")):
        await keepers.write(spec.directory, n, text)
    await keepers.write(spec.directory, 3, "three\n", close=True)
    assert await text_of(keepers, spec) == ["zero", "one", "two", "three"]
    assert (await keepers.wait(spec.directory)).code == 0
    # It has ended: nothing to write to, and no reason to fail either.
    await keepers.write(spec.directory, 4, "late\n")


async def test_a_large_input_does_not_wait_for_a_slow_reader(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec(sh="read go; echo $go; wc -c", stdin="pipe", stdin_data="go\n")
    await keepers.start(spec)
    await keepers.write(spec.directory, 1, "x" * 3_000_000)
    await keepers.write(spec.directory, 2, "", close=True)
    assert await text_of(keepers, spec) == ["go", "3000000"]


async def test_a_program_without_stdin_refuses_writes(keepers: ProcessKeepers, make_spec: MakeSpec) -> None:
    spec = make_spec(sh="echo up; sleep 300")
    await keepers.start(spec)
    await first_line(keepers, spec)
    with pytest.raises(CannotRun, match="no stdin"):
        await keepers.write(spec.directory, 1, "hello\n")


async def test_a_program_that_closed_its_stdin_lives_on(keepers: ProcessKeepers, make_spec: MakeSpec) -> None:
    spec = make_spec(
        sh="exec 0<&-; echo closed; while [ ! -e go ]; do sleep 0.02; done; exit 8", stdin="pipe"
    )
    await keepers.start(spec)
    await first_line(keepers, spec)
    for n in (1, 2):
        await keepers.write(spec.directory, n, "anyone?\n")
    (spec.cwd / "go").touch()
    assert (await keepers.wait(spec.directory)).code == 8
    assert [line.text for line in await all_lines(keepers, spec)] == ["closed"]


async def test_a_keeper_that_slept_itself_does_not_blame_the_run(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec(sh="echo up; read x; exit 3", stdin="pipe", limits={"idle": 2.0})
    await keepers.start(spec)
    await first_line(keepers, spec)
    keeper = keeper_of(spec)
    keeper.suspend()
    begun = time.monotonic()
    await eventually_async(lambda: time.monotonic() > begun + 3.5, every=0.25)
    status = spec.directory / "status.json"
    beat = status.stat().st_mtime_ns
    keeper.resume()
    await eventually_async(lambda: status.stat().st_mtime_ns > beat)
    assert keepers.look(spec.directory).state == "alive"
    await keepers.write(spec.directory, 1, "\n")
    assert (await keepers.wait(spec.directory)).code == 3


@pytest.mark.parametrize(
    "call", [b"garbage\n", b"[]\n", b'{"op": "dance"}\n', b'{"op": "write", "n": "x"}\n']
)
async def test_a_call_that_makes_no_sense_is_refused_and_harms_nothing(
    keepers: ProcessKeepers, make_spec: MakeSpec, call: bytes
) -> None:
    spec = make_spec(sh="read x; echo $x", stdin="pipe")
    await keepers.start(spec)
    async with connected(spec.directory) as (reader, writer):
        writer.write(call)
        assert b'"ok": false' in await reader.readline()
    await keepers.write(spec.directory, 1, "fine\n")
    assert await text_of(keepers, spec) == ["fine"]
