"""From the start of a run to its exit file."""

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from tests.integration.keeper.conftest import (
    MakeSpec,
    all_lines,
    first_line,
    is_running,
    keeper_of,
    text_of,
)
from tests.waiting import eventually, eventually_async

from loopwright.adapters.processes import keeper_files
from loopwright.adapters.processes.keeper_calls import short_path
from loopwright.adapters.processes.keepers import ProcessKeepers
from loopwright.adapters.processes.nursery import PROGRAM
from loopwright.core.values.errors import CannotRun
from loopwright.keeper import places
from loopwright.ports import RunSpec


async def test_a_run_leaves_its_output_and_how_it_ended(keepers: ProcessKeepers, make_spec: MakeSpec) -> None:
    spec = make_spec(sh="echo hello; echo trouble >&2; printf unfinished; exit 3")
    await keepers.start(spec)
    lines = await all_lines(keepers, spec)
    ended = await keepers.wait(spec.directory)
    assert sorted((line.stream, line.text) for line in lines) == [
        ("err", "trouble"),
        ("out", "hello"),
        ("out", "unfinished"),
    ]
    assert (ended.code, ended.ended_by, ended.dropped_bytes, ended.error) == (3, "itself", 0, "")
    kept = b"".join(path.read_bytes() for path in sorted((spec.directory / "output").iterdir()))
    assert ended.output_bytes == len(kept)
    assert ended.output_sha256 == hashlib.sha256(kept).hexdigest()
    assert ended.started_at is not None
    assert ended.started_at <= ended.ended_at
    assert keepers.look(spec.directory).state == "exited"


async def test_the_process_gets_exactly_the_environment_it_was_given(
    make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROM_OUTSIDE", "1")
    keepers = ProcessKeepers()
    spec = make_spec("/usr/bin/env", env={"GIVEN": "a b=c", "TMPDIR": "/elsewhere"})
    await keepers.start(spec)
    tmp = spec.directory / "tmp"
    assert sorted(await text_of(keepers, spec)) == sorted(
        ["GIVEN=a b=c", f"LOOPWRIGHT_RUN={spec.run_id}", f"TMPDIR={tmp}"]
    )
    await keepers.wait(spec.directory)
    assert not tmp.exists()


async def test_a_temporary_folder_is_removed_even_when_it_was_locked(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec(
        sh='mkdir -p "$TMPDIR/a/b"; touch "$TMPDIR/a/b/c"; ln -s /etc "$TMPDIR/l"; chmod 0 "$TMPDIR/a/b"'
    )
    await keepers.start(spec)
    ended = await keepers.wait(spec.directory)
    assert (ended.code, ended.error) == (0, "")
    assert not (spec.directory / "tmp").exists()
    assert Path("/etc/passwd").exists()


@pytest.mark.parametrize("failing", ["missing", "forbidden", "folder"])
async def test_a_program_that_cannot_start_is_told_in_plain_words(
    keepers: ProcessKeepers, make_spec: MakeSpec, tmp_path: Path, failing: str
) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")
    spec = {
        "missing": lambda: make_spec("no-such-program"),
        "forbidden": lambda: make_spec(str(plain)),
        "folder": lambda: make_spec(sh="true", cwd=tmp_path / "gone"),
    }[failing]()
    words = {"missing": "is it installed", "forbidden": "executable", "folder": "working directory"}[failing]
    await keepers.start(spec)
    ended = await keepers.wait(spec.directory)
    assert (ended.code, ended.ended_by, ended.started_at) == (None, "not_started", None)
    assert words in ended.error


async def test_no_secret_of_a_spec_is_written_to_disk(keepers: ProcessKeepers, make_spec: MakeSpec) -> None:
    spec = make_spec(
        sh='read x; echo "$KEY and $x"; read y; echo "$y"',
        env={"PATH": "/bin", "KEY": "correct-horse"},
        stdin="pipe",
        stdin_data="battery-staple\n",
        secrets=("correct-horse", "battery-staple"),
    )
    await keepers.start(spec)
    assert await first_line(keepers, spec) == "[redacted] and [redacted]"
    await keepers.write(spec.directory, 1, "once more battery-staple\n")
    await keepers.wait(spec.directory)
    stored = b"".join(path.read_bytes() for path in spec.directory.rglob("*") if path.is_file())
    assert b"correct-horse" not in stored
    assert b"battery-staple" not in stored
    assert b"once more" in stored
    for path in spec.directory.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


async def test_a_second_start_does_nothing_while_it_runs_and_after_it_ended(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec(sh="echo started; read x", stdin="pipe")
    await keepers.start(spec)
    await first_line(keepers, spec)
    pid = keepers.look(spec.directory).pid
    await keepers.start(spec)
    assert keepers.look(spec.directory).pid == pid
    await keepers.write(spec.directory, 1, "\n")
    await keepers.wait(spec.directory)
    await keepers.start(spec)
    assert keepers.look(spec.directory).state == "exited"
    assert await text_of(keepers, spec) == ["started"]


async def test_many_starts_at_once_yield_one_keeper(keepers: ProcessKeepers, make_spec: MakeSpec) -> None:
    spec = make_spec(sh="echo started; read x", stdin="pipe")
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(keepers.start, spec)
        group.start_soon(looking, keepers, spec.directory)
    await keepers.write(spec.directory, 1, "\n")
    await keepers.wait(spec.directory)
    assert await text_of(keepers, spec) == ["started"]
    assert not (spec.directory / "earlier").exists()


async def looking(keepers: ProcessKeepers, directory: Path) -> None:
    """Looking takes the lock for a moment, which must keep no keeper from starting."""
    while keepers.look(directory).state != "alive":
        await anyio.sleep(0)


async def test_a_start_that_was_killed_half_way_blocks_nothing(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec(sh="echo started")
    spec.directory.mkdir()
    half = subprocess.Popen(
        [sys.executable, "-I", "-S", PROGRAM, spec.directory], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert half.stdin is not None
    half.stdin.write(b'{"run_id": "ru')
    half.stdin.flush()
    half.kill()
    half.communicate()
    assert keepers.look(spec.directory).state == "absent"
    await keepers.start(spec)
    assert await text_of(keepers, spec) == ["started"]


async def test_a_client_that_dies_while_sending_the_spec_starts_nothing(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec(sh="true")
    spec.directory.mkdir()
    cut = subprocess.run(
        [sys.executable, "-I", "-S", PROGRAM, spec.directory], input=b'{"run_id": "ru', capture_output=True
    )
    assert cut.returncode == 1
    assert b"spec cannot be used" in cut.stderr
    assert keepers.look(spec.directory).state == "absent"


async def test_a_keeper_that_comes_after_the_end_does_nothing(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    """As happens when the run ends between another client's look and its start."""
    spec = make_spec(sh="echo once")
    await keepers.start(spec)
    ended = await keepers.wait(spec.directory)
    value = {**asdict(spec), "directory": "", "cwd": "/"}
    late = subprocess.run(
        [sys.executable, "-I", "-S", PROGRAM, spec.directory], input=json.dumps(value).encode()
    )
    assert late.returncode == places.ENDED_ALREADY
    assert keepers.look(spec.directory).exit == ended
    assert await text_of(keepers, spec) == ["once"]


async def test_a_directory_that_cannot_be_used_is_an_error_at_once(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec(sh="true")
    spec.directory.mkdir()
    (spec.directory / "spec.json").mkdir()
    with pytest.raises(CannotRun, match="cannot be used"):
        await keepers.start(spec)
    assert keepers.look(spec.directory).state == "absent"


async def test_nothing_is_told_of_a_run_that_was_never_started(
    keepers: ProcessKeepers, tmp_path: Path
) -> None:
    assert keepers.look(tmp_path / "none").state == "absent"
    assert [line async for line in keepers.follow(tmp_path / "none")] == []
    with pytest.raises(CannotRun, match="nothing was ever started"):
        await keepers.wait(tmp_path / "none")
    with pytest.raises(CannotRun, match="nothing was ever started"):
        await keepers.end(tmp_path / "none")


async def test_a_directory_deeper_than_a_socket_address_holds_works_too(
    keepers: ProcessKeepers, make_spec: MakeSpec, tmp_path: Path
) -> None:
    spec = make_spec(sh="read x; echo $x", stdin="pipe", directory=tmp_path.joinpath(*["long-name" * 5] * 5))
    assert len(str(spec.directory)) > 200
    await keepers.start(spec)
    await keepers.write(spec.directory, 1, "far down\n")
    assert await text_of(keepers, spec) == ["far down"]


async def test_failpoints_stand_around_the_start(make_spec: MakeSpec) -> None:
    spec = make_spec(sh="true")
    passed: list[tuple[str, str]] = []
    keepers = ProcessKeepers(lambda name: passed.append((name, keepers.look(spec.directory).state)))
    await keepers.start(spec)
    assert passed[0] == ("keeper.start.before", "absent")
    assert passed[1][0] == "keeper.start.after"
    assert passed[1][1] in {"alive", "exited"}


async def test_a_keeper_stays_small_and_holds_on_to_nothing_of_ours(
    keepers: ProcessKeepers, make_spec: MakeSpec, tmp_path: Path
) -> None:
    with (tmp_path / "ours").open("w") as ours:
        os.set_inheritable(ours.fileno(), True)
        spec = make_spec(sh="echo up; read x", stdin="pipe")
        await keepers.start(spec)
    await first_line(keepers, spec)
    keeper = keeper_of(spec)
    assert keeper.memory_info().rss <= 15 * 1024 * 1024
    assert keeper.cwd() == "/"
    assert str(tmp_path / "ours") not in [file.path for file in keeper.open_files()]
    assert keeper.ppid() != os.getpid()
    assert os.getsid(keeper.pid) != os.getsid(0)
    assert [Path(f"/proc/{keeper.pid}/fd/{fd}").readlink() for fd in (0, 1)] == [Path("/dev/null")] * 2
    loaded = {file.path for file in keeper.memory_maps()}
    assert not [path for path in loaded if "libcrypto" in path]


@pytest.mark.trap("dead heartbeat")
async def test_a_heartbeat_shows_a_living_keeper_and_its_signs(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec(sh="echo up; read x", stdin="pipe")
    await keepers.start(spec)
    await first_line(keepers, spec)
    status = spec.directory / "status.json"
    first = status.stat().st_mtime_ns
    await eventually_async(lambda: status.stat().st_mtime_ns > first)
    content = json.loads(status.read_bytes())
    child = psutil.Process(content["child"]["pid"])
    assert child.cmdline()[:2] == ["/bin/sh", "-c"]
    seen = keepers.look(spec.directory)
    assert (seen.state, seen.pid) == ("alive", content["keeper"]["pid"])
    await eventually_async(lambda: "output" in json.loads(status.read_bytes()).get("signs", {}))
    assert keepers.look(spec.directory).last_sign_at is not None


@pytest.mark.capability("C103")
@pytest.mark.trap("orphaned agents")
async def test_a_killed_keeper_takes_the_child_along_and_the_rest_is_found_by_its_marker(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec(sh="sleep 300 & setsid sleep 300 & echo $$ $!; wait")
    await keepers.start(spec)
    child, rest = map(int, (await first_line(keepers, spec)).split())
    keeper_of(spec).kill()
    await eventually_async(lambda: not is_running(child))
    await eventually_async(lambda: keepers.look(spec.directory).state == "lost")
    assert is_running(rest)
    assert len(await all_lines(keepers, spec)) == 1
    assert (await keepers.wait(spec.directory)).ended_by == "lost"
    ended = await keepers.end(spec.directory)
    assert (ended.ended_by, ended.code) == ("lost", None)
    assert not is_running(rest)
    assert keepers.look(spec.directory).exit == ended
    assert await keepers.sweep(spec.run_id) == 0


async def test_whoever_follows_or_waits_notices_at_once_that_the_keeper_was_killed(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec(sh="echo up; sleep 300")
    await keepers.start(spec)
    with anyio.fail_after(10):
        texts = []
        async for line in keepers.follow(spec.directory):
            texts.append(line.text)
            keeper_of(spec).kill()
    assert texts == ["up"]


@pytest.mark.trap("stale signal")
async def test_a_lost_run_can_be_started_anew_without_mixing_the_two(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec(sh="setsid sleep 300 & echo $!; read x; echo $x", stdin="pipe")
    await keepers.start(spec)
    left = int(await first_line(keepers, spec))
    await keepers.write(spec.directory, 7, "")
    keeper_of(spec).kill()
    await eventually_async(lambda: keepers.look(spec.directory).state == "lost")
    await keepers.start(spec)
    assert not is_running(left)
    assert int(await first_line(keepers, spec)) != left
    await keepers.write(spec.directory, 7, "again\n")
    assert (await text_of(keepers, spec))[1:] == ["again"]
    assert (spec.directory / "earlier" / "1" / "status.json").exists()


@pytest.mark.trap("stale signal")
async def test_a_stale_lock_and_a_recycled_pid_are_never_taken_for_life(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec(sh="echo fresh")
    spec.directory.mkdir()
    (spec.directory / "lock").write_bytes(b"")
    # This very process has the pid: alive, but not the keeper.
    recycled = {"run_id": spec.run_id, "keeper": {"pid": os.getpid(), "start_time": 1}}
    (spec.directory / "status.json").write_text(json.dumps(recycled))
    assert keepers.look(spec.directory).state == "lost"
    await keepers.start(spec)
    assert await text_of(keepers, spec) == ["fresh"]
    assert (await keepers.wait(spec.directory)).ended_by == "itself"


async def test_a_status_that_is_half_written_harms_nobody(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec(sh="echo up; read x", stdin="pipe")
    await keepers.start(spec)
    await first_line(keepers, spec)
    (spec.directory / "status.json").write_bytes(b'{"keeper": {"pi')
    assert keepers.look(spec.directory).state == "alive"


async def test_sweeping_spares_everyone_else(keepers: ProcessKeepers, make_spec: MakeSpec) -> None:
    spec, other = make_spec(sh="echo up; sleep 300"), make_spec(sh="echo up; sleep 300")
    for each in (spec, other):
        await keepers.start(each)
        await first_line(keepers, each)
    assert await keepers.sweep(spec.run_id) >= 1
    assert (await keepers.wait(spec.directory)).code == -signal.SIGKILL
    assert keepers.look(other.directory).state == "alive"


FIRST_CLIENT = """
import sys, anyio
from pathlib import Path
from typing import Any
from loopwright.adapters.processes.keepers import ProcessKeepers
from loopwright.ports import RunSpec
async def main(directory):
    keepers = ProcessKeepers()
    script = "i=0; while read x; do i=$((i+1)); echo $i $x; done; echo end"
    await keepers.start(RunSpec(run_id=sys.argv[2], directory=directory, argv=("/bin/sh", "-c", script),
        cwd=directory, env={"PATH": "/bin"}, stdin="pipe", stdin_data="first\\n"))
    n = 0
    async for line in keepers.follow(directory):
        print(line.offset, line.text, flush=True)
        n += 1
        await keepers.write(directory, n, f"again {n}\\n") if n < 3 else await anyio.sleep_forever()
anyio.run(main, Path(sys.argv[1]))
"""


@pytest.mark.capability("C025", "C027")
async def test_a_second_client_goes_on_exactly_where_a_killed_one_stopped(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    spec = make_spec(sh="true")
    first = subprocess.Popen(
        [sys.executable, "-c", FIRST_CLIENT, spec.directory, spec.run_id], stdout=subprocess.PIPE, text=True
    )
    assert first.stdout is not None
    guard = threading.Timer(30, first.kill)
    guard.start()
    said = [first.stdout.readline().split(maxsplit=1) for _ in range(2)]
    first.kill()
    first.communicate()
    guard.cancel()
    assert [text for _, text in said] == ["1 first\n", "2 again 1\n"]
    assert keepers.look(spec.directory).state == "alive"
    # It folds both logs again: the writes that were made are known by their numbers and not made twice.
    for n in (1, 2, 3):
        await keepers.write(spec.directory, n, f"again {n}\n")
    await keepers.write(spec.directory, 4, "", close=True)
    rest = await all_lines(keepers, spec, offset=int(said[1][0]))
    assert [line.text for line in rest] == ["3 again 2", "4 again 3", "end"]
    log = [json.loads(line) for line in (spec.directory / "writes.jsonl").read_text().splitlines()]
    assert [entry["n"] for entry in log] == [1, 2, 3, 4]
    assert (await keepers.wait(spec.directory)).code == 0


def test_the_program_imports_little_and_starts_fast() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", PROGRAM, "/nowhere"],
        input=b"",
        capture_output=True,
        timeout=30,
    )
    assert b"spec cannot be used" in done.stderr
    imported = {line.rpartition(b"|")[2].strip().decode() for line in done.stderr.splitlines()}
    ours = {name for name in imported if name.startswith("loopwright")}
    assert all(name.startswith("loopwright.keeper") for name in ours - {"loopwright"})
    assert not imported & {"typing", "dataclasses", "subprocess", "asyncio", "hashlib", "shutil", "_hashlib"}


def test_reading_never_shows_a_line_that_is_not_complete(tmp_path: Path) -> None:
    (tmp_path / "output").mkdir()
    segment = tmp_path / "output" / ("0" * 20)
    segment.write_bytes(b"o whole\n?? garbage\n\no \xff\xfe half\ne unfini")
    reader = keeper_files.OutputReader(tmp_path, 0)
    assert [line.text for line in reader.lines()] == ["whole", "\N{REPLACEMENT CHARACTER}" * 2 + " half"]
    assert list(reader.lines()) == []
    with segment.open("ab") as file:
        file.write(b"shed\n")
    assert [(line.stream, line.text) for line in reader.lines()] == [("err", "unfinished")]
    assert reader.offset == segment.stat().st_size
    eventually(lambda: list(reader.lines()) == [])


FORGES = """
import json, os, socket, sys, time
sys.stdout.write("up\\n"); sys.stdout.flush()
for asked in ({"op": "write", "n": 1, "data": "forged\\n", "close": False}, {"op": "end", "polite": False}):
    line = socket.socket(socket.AF_UNIX)
    line.connect(os.environ.get("PLACE", "") + "/socket")
    try:
        line.sendall(json.dumps(asked).encode() + b"\\n")
        said = line.recv(4096)
    except OSError:
        said = b""
    print("answered" if said else "refused", flush=True)
print("heard", input(), flush=True)
"""


async def test_a_run_cannot_forge_what_its_keeper_is_told(
    keepers: ProcessKeepers, make_spec: MakeSpec
) -> None:
    hides = "import os\nif os.fork(): os._exit(os.wait()[1])\nos.setsid()\nos.environ.clear()\n"
    for disguise in ("", hides):
        spec = make_spec(
            py=f"import os\nplace = os.environ['TMPDIR'] + '/..'\n{disguise}os.environ['PLACE'] = place\n{FORGES}"
        )
        spec = replace(spec, stdin="pipe")
        await keepers.start(spec)
        await eventually_async(lambda spec=spec: len(_said(spec)) >= 3)
        half = {"op": "write", "n": 7, "data": "\ud800", "close": False}
        for request in (
            b"[" * 100_000,
            b'{"op":' + b"[" * 900 + b"]" * 900 + b"}",
            json.dumps(half).encode(),
        ):
            assert _asked(spec, request)["ok"] is False
        await keepers.write(spec.directory, 1, "the worker\n")
        ended = await keepers.wait(spec.directory)
        assert _said(spec) == ["up", "refused", "refused", "heard the worker"]
        assert (ended.code, ended.ended_by) == (0, "itself")


def _asked(spec: RunSpec, request: bytes) -> Any:
    with socket.socket(socket.AF_UNIX) as line:
        with short_path(spec.directory) as path:
            line.connect(path)
        line.sendall(request + b"\n")
        return json.loads(line.makefile("rb").readline())


def _said(spec: RunSpec) -> list[str]:
    return [line.text for line in keeper_files.OutputReader(spec.directory, 0).all()]
