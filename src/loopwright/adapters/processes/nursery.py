"""Starts the starting half of a keeper: from a process that has it loaded, or else as its own process."""

import os
import socket
import subprocess
import sys
import threading
import time
import weakref
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from loopwright.keeper import nursery, places

PROGRAM = Path(places.__file__).with_name("__main__.py")
START_S = 30.0
CLOSE_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """How the starting half ended."""

    status: int
    said: str


class NoAnswer(Exception):
    """The nursery could not be asked, or died over it."""


class Nursery:
    """Starts keepers, from any thread. Its process comes with the first start, or before, and ends with us."""

    def __init__(self, *, answer_s: float = START_S, loads: Path | None = None) -> None:
        """Make one whose keepers need not start the Python program `loads` again for the runs that are to be it."""
        self._answer_s = answer_s
        self._loads = loads
        self._lock = threading.Lock()
        self._process: _Process | None = None

    def get_ready(self) -> None:
        """Start the process now; one that cannot be started is tried again with the first keeper."""
        with suppress(OSError):
            self._living()

    def start(self, directory: Path, spec: bytes) -> Started:
        """Start a keeper; raise `OSError` or `subprocess.TimeoutExpired` when that cannot even be tried."""
        try:
            process = self._living()
        except OSError:
            return _start_alone(directory, spec)
        try:
            return process.ask(directory, spec, self._answer_s)
        except (NoAnswer, OSError):
            # It may have started the keeper before it died: the run's lock lets no second one in.
            self._forget(process)
            return _start_alone(directory, spec)

    def close(self) -> None:
        """Let the process end; the next start would begin another one."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.close()

    def _living(self) -> "_Process":
        with self._lock:
            if self._process is not None and not self._process.fits():
                self._process.close()
                self._process = None
            if self._process is None:
                self._process = _Process(self._loads)
            return self._process

    def _forget(self, process: "_Process") -> None:
        with self._lock:
            if self._process is process:
                self._process = None
        process.close()


class _Process:
    """A nursery and our end of the line to it. It ends when that end is closed, however that comes about."""

    def __init__(self, loads: Path | None) -> None:
        self._owner = os.getpid()
        self._environment = _environment()
        self._line, theirs = socket.socketpair()
        self._line.settimeout(START_S)
        with theirs:
            try:
                process = subprocess.Popen(
                    [
                        sys.executable,
                        "-I",
                        "-S",
                        str(PROGRAM),
                        nursery.OPTION,
                        *map(str, filter(None, [loads])),
                    ],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=self._environment,
                    cwd="/",
                    start_new_session=True,
                )
            except OSError:
                self._line.close()
                raise
        self.pid = process.pid
        self.close = weakref.finalize(self, _close, self._line, process)

    def fits(self) -> bool:
        """Return whether it was started by this exact process, and as one of the run that this is part of."""
        return self._owner == os.getpid() and self._environment == _environment()

    def ask(self, directory: Path, spec: bytes, answer_s: float) -> Started:
        """Hand over a connection, the spec through it, and wait for what comes back."""
        until = time.monotonic() + answer_s
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                socket.send_fds(self._line, [nursery.NOTE], [theirs.fileno()])
            ours.settimeout(answer_s)
            # Over its own connection: no secret is ever in a file, and what is cut off is not a spec.
            ours.sendall(os.fsencode(directory) + nursery.END + spec)
            ours.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := ours.recv(1 << 16):
                answer += piece
                ours.settimeout(max(0.001, until - time.monotonic()))
        said, _, status = answer.rpartition(nursery.END)
        if not status.isdigit():
            raise NoAnswer
        return Started(status=int(status), said=said.decode(errors="replace"))


def _close(line: socket.socket, process: subprocess.Popen[bytes]) -> None:
    line.close()
    try:
        process.wait(CLOSE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _environment() -> dict[str, str]:
    """Return only the marker of a run that we are part of ourselves: then our keepers end with that run."""
    return {name: value for name, value in os.environ.items() if name == places.MARKER}


def _start_alone(directory: Path, spec: bytes) -> Started:
    # Over a pipe, so that no secret is ever in a file, and half a spec is never used.
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(PROGRAM), str(directory)],
        input=spec,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=_environment(),
        cwd="/",
        timeout=START_S,
        start_new_session=True,
    )
    return Started(status=done.returncode, said=done.stderr.decode(errors="replace"))
