"""The program that runs a gate's commands in order. Started by path as `python -I -S runner.py JOB.json`.

Standard library only, and of Loopwright it loads a few modules by their place: agents wrote what it runs. It holds its
records in memory and rewrites the whole file after each command, so a command that found the file would change nothing.
It judges nothing: the verdict is computed outside, from these records. Exit code: 0 when every command ended
with 0, 1 when one did not, 70 when the runner was stopped.
"""

import errno
import hashlib
import json
import os
import re
import select
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

Redact = Callable[[bytes], bytes]

PIECE = 64 * 1024
OVERLAP = 4 * 1024
TAIL = 4000
MARK = re.compile(rb"(?:^|\r)\s*\[(PASS|FAIL|SKIP|ERROR)\]")
WORDS = (b"PASS", b"FAIL", b"SKIP", b"ERROR")
LINE = re.compile(rb"[^\n]*\n|[^\n]+")
ANSI = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
ANSI_TEXT = re.compile(ANSI.pattern.decode("ascii"))
MOST_TESTS = 200_000


def part(name: str) -> Any:
    """Load a module of Loopwright by its place. The fork of a keeper has some already."""
    path = str(Path(__file__).parents[2].joinpath(*name.split("."))) + ".py"
    known = sys.modules.get(f"loopwright.{name}")
    if known is not None and known.__file__ == path:
        return known
    module = ModuleType(name)
    module.__file__ = path
    SourceFileLoader(name, path).exec_module(module)
    return module


doors, processes = part("adapters.gates.doors"), part("adapters.gates.processes")
tracked, within = part("adapters.gates.tracked"), part("adapters.gates.within").within
rules = part("keeper.redact")


class Stop:
    """Whether the runner was asked to stop."""

    asked = False


def on_signal(_number: int, _frame: object) -> None:
    """Note it; the loop that watches the command ends it."""
    Stop.asked = True


class Echo:
    """Our own standard output, which the keeper records."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd if fd is not None else -1
        self._open = fd is not None
        self._at_line_start = True

    def write(self, data: bytes) -> None:
        """Pass data on; a keeper that went away must not cost the results."""
        if not self._open or not data:
            return
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except BrokenPipeError:
            self._open = False
        self._at_line_start = data.endswith(b"\n")

    def line(self, text: str) -> None:
        """Write a line of Loopwright, separate from other output."""
        flat = " ".join(text.split("\n")).encode("utf-8", "replace")
        self.write((b"" if self._at_line_start else b"\n") + flat + b"\n")


def first_line(fd: int) -> bytes:
    """Return what we are told in the first line: not through `sys.stdin`, which a fork has from its parent."""
    said = b""
    while not said.endswith(b"\n"):
        data = os.read(fd, 1)
        if not data:
            break
        said += data
    return said


class Redaction:
    """Takes secrets out of output before it is hashed or stored, by the keeper's own rules."""

    def __init__(self, *, told: bool) -> None:
        self._forms = rules.forms_of(json.loads(first_line(0)) if told else [])

    def fresh(self) -> Redact:
        """Return the function for one stream; it remembers a private key that was begun."""
        redact: Redact = rules.Redactor(self._forms).redact
        return redact


class Output:
    """One command's output: the hash covers all of it; start, end and check lines are kept on disk."""

    def __init__(
        self, path: Path, limits: dict[str, int], redact: Redact, echo: Echo, tests: str | None = None
    ) -> None:
        self._path = path
        self._redact = redact
        self._file = path.open("wb")
        self._limits = limits
        self._echo = echo
        self._all = hashlib.sha256()
        self._kept = hashlib.sha256()
        self._bytes = 0
        self._kept_bytes = 0
        self._pending = b""
        self._at_line_start = True
        self._late: deque[tuple[bytes, bool]] = deque()
        self._late_bytes = 0
        self._mark_bytes = 0
        self._dropped = 0
        self._lost: dict[str, int] = {}
        self._names_test = re.compile(tests) if tests else None
        self.tests: list[tuple[str, str]] = []

    def feed(self, chunk: bytes) -> None:
        """Take in a chunk; pass on only whole lines, or pieces of endless ones."""
        held = self._pending + chunk
        end = held.rfind(b"\n") + 1
        complete, rest = held[:end], held[end:]
        if complete:
            self._take(self._redact(complete))
        if len(rest) > PIECE + OVERLAP:
            # A secret that stands across the cut is only seen whole with some text in front of it.
            rest = self._redact(rest)
            self._take(rest[:-OVERLAP])
            rest = rest[-OVERLAP:]
        self._pending = rest

    def finish(self) -> dict[str, Any]:
        """Write what is left and return the facts."""
        if self._pending:
            self._take(self._redact(self._pending))
        late = b"".join(block for block, _ in self._late)
        excess = len(late) - self._limits["tail_bytes"]
        if excess > 0:
            cut = late.find(b"\n", excess) + 1 or excess
            self._pass_over(late[:cut], self._late[0][1])
            late = late[cut:]
        if self._dropped:
            self._keep(f"\n[... {self._dropped} bytes left out ...]\n".encode())
        self._keep(late)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        with self._path.open("rb") as file:
            file.seek(max(0, self._kept_bytes - TAIL))
            tail = file.read()
        if self._kept_bytes > TAIL:
            tail = tail.partition(b"\n")[2] or tail
        return {
            "output_file": self._path.name,
            "output_sha256": self._all.hexdigest(),
            "output_bytes": self._bytes,
            "kept_sha256": self._kept.hexdigest(),
            "kept_bytes": self._kept_bytes,
            "lost": self._lost,
            "tail": tail.decode("utf-8", "replace"),
        }

    def _take(self, block: bytes) -> None:
        """Take in whole lines, or a piece of an endless one."""
        self._all.update(block)
        self._bytes += len(block)
        self._find_tests(block)
        starts_line, self._at_line_start = self._at_line_start, block.endswith(b"\n")
        if not self._late:
            room = self._limits["head_bytes"] - self._kept_bytes
            cut = len(block) if len(block) <= room else block.rfind(b"\n", 0, max(room, 0)) + 1
            self._keep(block[:cut])
            block, starts_line = block[cut:], starts_line or cut > 0
        if block:
            self._late.append((block, starts_line))
            self._late_bytes += len(block)
        while self._late and self._late_bytes - len(self._late[0][0]) > self._limits["tail_bytes"]:
            old, started_line = self._late.popleft()
            self._late_bytes -= len(old)
            self._pass_over(old, started_line)

    def _find_tests(self, block: bytes) -> None:
        """Note the tests that lines name, and how each ended, for a runner that is configured."""
        for line in block.decode("utf-8", "replace").splitlines() if self._names_test else ():
            found = self._names_test.search(ANSI_TEXT.sub("", line)) if self._names_test else None
            if found and len(self.tests) < MOST_TESTS:
                parts = found.groupdict()
                end = next((end for end in ("skipped", "failed", "passed") if parts.get(end)), "failed")
                self.tests.append((parts["id"] or "", end))

    def _pass_over(self, block: bytes, starts_line: bool) -> None:
        """Drop a block from the middle, but not the lines of checks: those are what the verdict reads."""
        if not any(word in block for word in WORDS):
            self._dropped += len(block)
            return
        for line in LINE.findall(block):
            mark = MARK.search(ANSI.sub(b"", line)) if starts_line else None
            starts_line = True
            if mark and self._mark_bytes + len(line) <= self._limits["mark_bytes"]:
                self._mark_bytes += len(line)
                self._keep(line if line.endswith(b"\n") else line + b"\n")
                continue
            if mark:
                word = mark.group(1).decode("ascii")
                self._lost[word] = self._lost.get(word, 0) + 1
            self._dropped += len(line)

    def _keep(self, block: bytes) -> None:
        self._file.write(block)
        self._kept.update(block)
        self._kept_bytes += len(block)
        self._echo.write(block)


def signal_group(group: int, number: int, *, spare: int = 0) -> None:
    """Signal a whole process group, but for one process; that it is gone already is fine."""
    if spare and number != signal.SIGKILL:
        for pid in members(group) - {spare}:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
        return
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        # macOS answers EPERM for a group of which only zombies are left.
        return


def members(group: int) -> set[int]:
    """Return who is in a process group, where the system tells that."""
    found = set()
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():  # noqa: PTH112, PTH208 - no Path for each
        try:
            if name.isdigit() and os.getpgid(int(name)) == group:
                found.add(int(name))
        except ProcessLookupError:
            continue
    return found


def has_ended(process: "subprocess.Popen[bytes]") -> bool:
    """Return whether the process ended, where possible without reaping it, which keeps its group id taken."""
    if process.returncode is not None:
        return True
    if not hasattr(os, "waitid"):
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def drain(
    process: "subprocess.Popen[bytes]",
    output: Output,
    until: float,
    *,
    to_end: bool,
    look: Callable[[float], None] = lambda _: None,
) -> bool:
    """Read until the process ended (or its pipe, when `to_end`) or `until`; return whether the pipe ended."""
    assert process.stdout is not None
    fd = process.stdout.fileno()
    while True:
        if Stop.asked and not to_end:
            return False
        if not to_end and has_ended(process):
            return False
        look(time.monotonic())
        left = until - time.monotonic()
        if left <= 0:
            return False
        ready, _, _ = select.select([fd], [], [], min(left, 0.05))
        if ready:
            chunk = os.read(fd, PIECE)
            if not chunk:
                return True
            output.feed(chunk)


def watch(
    process: "subprocess.Popen[bytes]",
    output: Output,
    timeout_s: float,
    grace_s: float,
    *,
    contained: bool,
    look: Callable[[float], None] = lambda _: None,
) -> bool:
    """See a command to its end, and its whole group with it; return whether it ran into its limit."""
    # The outermost process of a sandbox takes the others with it at once when it is asked to end.
    spare = process.pid if contained else 0
    deadline = time.monotonic() + timeout_s
    closed = drain(process, output, deadline, to_end=False, look=look)
    while closed and not has_ended(process) and not Stop.asked and time.monotonic() < deadline:
        look(time.monotonic())
        time.sleep(0.005)
    timed_out = not has_ended(process) and not Stop.asked
    if not has_ended(process):
        signal_group(process.pid, signal.SIGTERM, spare=spare)
        patience = time.monotonic() + grace_s
        while not has_ended(process) and time.monotonic() < patience:
            closed = closed or drain(process, output, min(patience, time.monotonic() + 0.05), to_end=True)
            if closed:
                time.sleep(0.005)
    # What a command leaves behind must not act on the next one.
    signal_group(process.pid, signal.SIGTERM, spare=spare)
    if not closed:
        closed = drain(process, output, time.monotonic() + min(grace_s, 0.5), to_end=True)
    signal_group(process.pid, signal.SIGKILL)
    process.wait()
    if not closed:
        # Only a process that left the group can still hold the pipe; the keeper ends those.
        drain(process, output, time.monotonic() + 0.5, to_end=True)
    return timed_out


def open_parent(tree: str, relative: str) -> tuple[int, str]:
    """Open the folder of a report without following any link, and return it with the file's name."""
    parts = [part for part in relative.split("/") if part not in ("", ".")]
    if relative.startswith("/") or ".." in parts or not parts:
        raise OSError(errno.EINVAL, "the path must stay inside the tree")
    folder = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    for part in parts[:-1]:
        above = folder
        try:
            folder = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
        finally:
            os.close(above)
    return folder, parts[-1]


def remove_report(tree: str, relative: str) -> str:
    """Delete an old report, so that only a fresh one can be read; return what is in the way."""
    try:
        folder, name = open_parent(tree, relative)
        try:
            os.unlink(name, dir_fd=folder)
        finally:
            os.close(folder)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"an old report could not be removed: {describe(error)}"
    return ""


def take_report(tree: str, relative: str, target: Path, limit: int, redact: Redact) -> dict[str, Any]:
    """Copy a fresh report out of the tree: a plain file of bounded size, reached without following links."""
    try:
        folder, name = open_parent(tree, relative)
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        finally:
            os.close(folder)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            return {"problem": "it is not a plain file"}
        with os.fdopen(fd, "rb") as file:
            data = file.read(limit + 1)
    except FileNotFoundError:
        return {"problem": "the command did not write it"}
    except OSError as error:
        return {"problem": f"it could not be read: {describe(error)}"}
    if len(data) > limit:
        return {"problem": f"it is larger than {limit} bytes"}
    data = redact(data)
    target.write_bytes(data)
    return {"file": target.name, "sha256": hashlib.sha256(data).hexdigest(), "problem": ""}


def take_seen(
    folder: int, target: Path, limit: int, redact: Redact, own: list[Any]
) -> tuple[dict[str, Any], set[int]]:
    """Copy what the witness wrote behind what we found ourselves, from a folder opened before the command ran.

    The second is the processes that wrote it, as they know themselves.
    """
    reported = set()
    data = b"".join(b"\n" + json.dumps(line).encode() for line in own)
    for name in sorted(os.listdir(folder)):
        try:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        except OSError:
            continue  # a link, or gone: the witness did not write this
        with os.fdopen(fd, "rb") as file:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                pid = name.partition("-")[0]
                reported |= {int(pid)} if pid.isdecimal() else set()
                data += b'\n{"e":"session"}\n' + file.read(max(0, limit - len(data)))
    data = redact(data)
    target.write_bytes(data)
    return {"file": target.name, "sha256": hashlib.sha256(data).hexdigest()}, reported


def describe(error: OSError) -> str:
    """Return in plain words what the system refused."""
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return "the path goes through a symbolic link or a file"
    return error.strerror or str(error)


def own_session(
    output: Output, how: dict[str, Any], job: dict[str, Any], n: int, timeout_s: float, redact: Redact
) -> list[Any]:
    """Return what the output of a configured runner says of its tests, and try that runner with two canaries."""
    configured, folder = how["configured"], Path(job["directory"])
    said: list[Any] = [
        {"e": "session"},
        {"e": "start", "runner": "configured", "named": bool(configured["tests"])},
    ]
    said += [{"e": "report", "id": name, "outcome": end, "hidden": False} for name, end in output.tests]
    for kind, key in (("must_pass", "passes"), ("must_fail", "fails")):
        name = how["names"][kind]
        place, text, run = (configured[each].replace("{name}", name) for each in ("file", key, "run"))
        written = write_canary(job["tree"], place, text)
        if written:
            said.append({"e": "canary", "kind": kind, "name": name, "outcome": written})
            continue
        printed = Output(folder / f"{n}.{kind}.out", job["limits"], redact, Echo(None), configured["tests"])
        with start(job, run, dict(os.environ)) as process:
            late = watch(process, printed, timeout_s, job["term_grace_s"], contained=bool(job["wrapper"]))
        printed.finish()
        remove_report(job["tree"], place)
        outcome = "did not end" if late else "failed" if process.returncode else "passed"
        ends = [end for test, end in printed.tests if name in test]
        if configured["tests"] and not ends:
            outcome = "was not run"
        elif ends and outcome not in ends:
            outcome = ends[0]
        said.append({"e": "canary", "kind": kind, "name": name, "outcome": outcome})
    return [*said, {"e": "end"}]


def write_canary(tree: str, relative: str, text: str) -> str:
    """Write our own file into the tree without following any link; return what is in the way."""
    try:
        folder, name = open_parent(tree, relative)
        try:
            fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644, dir_fd=folder)
        finally:
            os.close(folder)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        return f"could not be written ({describe(error)})"
    return ""


def start(job: dict[str, Any], text: str, env: dict[str, str]) -> "subprocess.Popen[bytes]":
    """Start a command in the tree, inside of what contains it."""
    return subprocess.Popen(
        [*job["wrapper"], "/bin/sh", "-c", text],
        cwd=job["tree"],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def run_command(
    n: int, command: dict[str, Any], job: dict[str, Any], redaction: Redaction, echo: Echo
) -> dict[str, Any]:
    """Run one command in the tree and return its record."""
    folder = Path(job["directory"])
    record: dict[str, Any] = {"name": command["name"], "command": command["command"], "error": ""}
    report = command["junit"]
    problem = remove_report(job["tree"], report) if report else ""
    how = job["witness"]["commands"][n - 1]
    configured = how["configured"] if how is not None else None
    tests = configured["tests"] if configured else None
    output = Output(folder / f"{n}.out", job["limits"], redaction.fresh(), echo, tests)
    text, env, seen, opened = command["command"], dict(os.environ), None, -1
    if how is not None:
        text, env, seen = doors.witnessed(n, job["witness"])
        opened = os.open(seen, os.O_RDONLY | os.O_DIRECTORY)
    began = time.monotonic()
    record |= {"exit_code": None, "timed_out": False, "seen": None, "unwatched": []}
    runners, reported = None, set[int]()
    with (
        doors.led_to_plugin(job["tree"], job["witness"]["plugin"], str(seen.parent / "doors"))
        if seen
        else nullcontext()
    ):
        try:
            process = start(job, text, env)
        except (OSError, ValueError) as error:
            record["error"] = f"the command could not be started: {error}"
        else:
            runners = processes.Runners(process.pid)
            with process:
                limits = (command["timeout_s"], job["term_grace_s"])
                contained = bool(job["wrapper"])
                record["timed_out"] = watch(process, output, *limits, contained=contained, look=runners.look)
            record["exit_code"] = process.returncode
    record["duration_s"] = round(time.monotonic() - began, 3)
    record |= output.finish()
    if seen is not None:
        limit = job["limits"]["seen_bytes"]
        own: list[Any] = []
        if configured and not record["error"] and not record["timed_out"] and not Stop.asked:
            own = own_session(output, how, job, n, command["timeout_s"], redaction.fresh())
        record["seen"], reported = take_seen(opened, folder / f"{n}.seen", limit, redaction.fresh(), own)
        os.close(opened)
        shutil.rmtree(seen.parent, ignore_errors=True)
    if runners is not None and not configured:
        record["unwatched"] = runners.unwatched(reported)
    record["junit"] = None
    if report:
        limit = job["limits"]["junit_bytes"]
        taken = take_report(job["tree"], report, folder / f"{n}.xml", limit, redaction.fresh())
        record["junit"] = {"problem": problem} if problem else taken
    return record


def save(path: Path, value: dict[str, Any]) -> None:
    """Write a file whole or not at all."""
    draft = path.with_suffix(".tmp")
    with draft.open("w", encoding="utf-8") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def main(job_path: str) -> int:
    """Run all commands, also after one that failed, so that the report is complete."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, on_signal)
    job = json.loads(Path(job_path).read_text(encoding="utf-8"))
    results = Path(job["directory"]) / "results.json"
    redaction = Redaction(told=job["secrets_told"])
    echo = Echo(sys.stdout.fileno())
    files = tracked.Tracked(job["tracked"])
    records: dict[int, dict[str, Any]] = {}
    state: dict[str, Any] = {
        "schema": "loopwright.gate/1",
        "complete": False,
        "stopped": False,
        "commands": [],
    }
    save(results, state)
    total = len(job["commands"])
    # A command whose tests may all run in a wider one comes after it.
    for n in sorted(range(1, total + 1), key=lambda each: (job["within"][each - 1] is not None, each)):
        command = job["commands"][n - 1]
        named = command["name"] != command["command"]  # without its own name it is called by its command
        echo.line(f"=== {n}/{total} {command['name']}" + (f": {command['command']}" if named else ""))
        record = within(n, job, records)
        if record is None:
            record = run_command(n, command, job, redaction, echo)
            record["changed"], record["touched"] = files.changed()
        else:
            echo.line(record["tail"].strip())
        records[n] = record
        how = "ended at its time limit" if record["timed_out"] else f"exit code {record['exit_code']}"
        echo.line(
            f"=== {n}/{total} {command['name']}: {record['error'] or how}, {record['duration_s']:.1f} s"
        )
        state |= {"stopped": Stop.asked, "complete": len(records) == total and not Stop.asked}
        state["commands"] = [records[each] for each in sorted(records)]
        save(results, state)
        if Stop.asked:
            return 70
    return 0 if all(one["exit_code"] == 0 and not one["timed_out"] for one in records.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
