"""Waking tasks that wait for a change: the part inside one process, and what a way between processes must do."""

import asyncio
import errno
import logging
import os
import secrets
import select
import socket
import tempfile
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from itertools import islice
from pathlib import Path
from typing import Final, Protocol
from weakref import WeakKeyDictionary

Sleep = Callable[[float], Awaitable[None]]

_REMEMBERED: Final = 1000
"""How many commits are known by name. A task that has not looked for longer is woken in any case."""


class Signal:
    """Counts commits and wakes the tasks that wait for the next one, so that none is missed.

    Each task has its own place: it is woken by every commit since its last `wait`, or since it first looked at the
    store. A task that never did either continues from where the last waiter of the store was.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._commits = 0
        self._told = 0
        self._seen: WeakKeyDictionary[asyncio.Task[object], int] = WeakKeyDictionary()
        # In the order of their coming, so that a simulation wakes them in the same order every time.
        self._waiting: dict[asyncio.Event, tuple[asyncio.AbstractEventLoop, Collection[str]]] = {}
        self._names: deque[str] = deque(maxlen=_REMEMBERED)

    def bump(self, name: str = "") -> None:
        """Count a commit, from any thread; one of another process has no name and wakes everybody."""
        with self._lock:
            self._commits += 1
            self._names.append(name)
            waiting = [
                (loop, event) for event, (loop, ignoring) in self._waiting.items() if name not in ignoring
            ]
        for loop, event in waiting:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    def mark(self) -> None:
        """Note that the current task is about to look at the store."""
        task = asyncio.current_task()
        if task is not None:
            with self._lock:
                self._seen.setdefault(task, self._commits)

    async def wait(
        self, timeout: float, sleep: Sleep = asyncio.sleep, ignoring: Collection[str] = ()
    ) -> bool:
        """Wait for a commit that the current task has not been told of; return whether there was one in time."""
        event = asyncio.Event()
        with self._lock:
            if self._tell(ignoring):
                return True
            self._waiting[event] = (asyncio.get_running_loop(), ignoring)
        waits = [asyncio.ensure_future(event.wait()), asyncio.ensure_future(sleep(timeout))]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            with self._lock:
                del self._waiting[event]
        with self._lock:
            return self._tell(ignoring)

    def _tell(self, ignoring: Collection[str]) -> bool:
        task = asyncio.current_task()
        assert task is not None
        count = self._commits - self._seen.get(task, self._told)
        self._seen[task] = self._told = self._commits
        newest = islice(reversed(self._names), count)
        return count > len(self._names) or any(name not in ignoring for name in newest)


class Wake(Protocol):
    """A way for one process to wake the others on the same home."""

    def listen(self, signal: Signal) -> None:
        """Begin to bump the signal when another process committed; a second call does nothing."""

    def send(self) -> None:
        """Wake the other processes after a commit."""

    def close(self) -> None:
        """Stop listening."""


# Wake-ups between the processes of a SQLite home: one Unix datagram socket per waiting process.

_log: Final = logging.getLogger(__name__)
_PREFIX: Final = "w-"
_ELSEWHERE: Final = "elsewhere"
_LONGEST_ADDRESS: Final = 100
_LONGEST_NAME: Final = len("/w-") + 10 + len("-12345678")
PROC_FD: Final = Path("/proc/self/fd")


class SocketWake:
    """Wakes every process that waits on the same home directory."""

    def __init__(self, directory: Path, *, proc_fd: Path = PROC_FD) -> None:
        self._directory = directory
        self._proc_fd = proc_fd
        self._name = f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        self._lock = threading.Lock()
        self._place: _Place | None = None
        self._sender: socket.socket | None = None
        self._listener: _Listener | None = None

    def listen(self, signal: Signal) -> None:
        """Bind this process's socket and bump the signal for each datagram."""
        with self._lock:
            if self._listener is not None:
                return
            try:
                self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                place = self._open_place()
                self._listener = _Listener(place.address(self._name), signal)
            except OSError as error:
                # The caller looks again by itself every few seconds, so this costs time and not correctness.
                _log.warning("no wake-ups in %s, changes are noticed later: %s", self._directory, error)

    def send(self) -> None:
        """Send a datagram to every other waiter and remove the sockets of processes that are gone."""
        with self._lock:
            try:
                place = self._open_place()
                names = os.listdir(place.descriptor)  # noqa: PTH208 - by descriptor, not by path
                if self._sender is None:
                    self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                    self._sender.setblocking(False)
            except FileNotFoundError:
                return  # no process ever waited on this home
            except OSError as error:
                _log.warning("cannot wake the waiters in %s: %s", self._directory, error)
                return
            for name in names:
                if name.startswith(_PREFIX) and name != self._name:
                    self._send_to(self._sender, place, name)

    def close(self) -> None:
        """Stop listening and remove this process's socket."""
        with self._lock:
            if self._listener is not None:
                self._listener.close()
                self._listener = None
                if self._place is not None:
                    self._place.remove(self._name)
            if self._sender is not None:
                self._sender.close()
                self._sender = None
            if self._place is not None:
                self._place.close()
                self._place = None

    def _send_to(self, sender: socket.socket, place: "_Place", name: str) -> None:
        try:
            sender.sendto(b"1", place.address(name))
        except BlockingIOError:
            return  # its queue is full: it is being woken
        except OSError as error:
            if error.errno == errno.ECONNREFUSED:
                place.remove(name)
            elif error.errno != errno.ENOENT:
                _log.warning("cannot wake %s: %s", name, error)

    def _open_place(self) -> "_Place":
        if self._place is None:
            self._place = _Place.open(self._directory, self._proc_fd)
        return self._place


class _Place:
    """A directory of sockets, with addresses that fit into the 100-odd bytes that the kernel allows."""

    def __init__(self, directory: Path, *, proc_fd: Path | None) -> None:
        self.descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._prefix = str(directory) if proc_fd is None else f"{proc_fd}/{self.descriptor}"

    @classmethod
    def open(cls, directory: Path, proc_fd: Path) -> "_Place":
        """Open the directory, or the short one that replaces it if its path is too long."""
        if proc_fd.is_dir():
            return cls(directory, proc_fd=proc_fd)
        if len(os.fsencode(directory)) + _LONGEST_NAME <= _LONGEST_ADDRESS:
            return cls(directory, proc_fd=None)
        return cls(_stand_in(directory), proc_fd=None)

    def address(self, name: str) -> str:
        """Return where a socket of this name is bound."""
        return f"{self._prefix}/{name}"

    def remove(self, name: str) -> None:
        """Remove a socket; it does not matter who removed it first."""
        try:
            os.unlink(name, dir_fd=self.descriptor)
        except FileNotFoundError:
            return

    def close(self) -> None:
        """Let go of the directory."""
        os.close(self.descriptor)


def _stand_in(directory: Path) -> Path:
    """Return the short directory that all processes of this home agreed on; the first one makes it."""
    record = directory / _ELSEWHERE
    if not directory.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no process waits here", str(directory))
    if not record.exists():
        short = tempfile.mkdtemp(prefix="lw-", dir="/tmp")
        draft = directory / f"{_ELSEWHERE}.{secrets.token_hex(4)}"
        draft.write_text(short)
        try:
            os.link(draft, record)
        except FileExistsError:
            Path(short).rmdir()
        draft.unlink()
    short_directory = Path(record.read_text())
    # The temporary directory may have been swept since; the agreed name still holds.
    short_directory.mkdir(mode=0o700, exist_ok=True)
    return short_directory


class _Listener:
    def __init__(self, address: str, signal: Signal) -> None:
        self._signal = signal
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            self._socket.bind(address)
        except OSError:
            self._socket.close()
            raise
        self._socket.setblocking(False)
        self._stop, self._stopped = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="loopwright-wake", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            ready, _, _ = select.select([self._socket, self._stopped], [], [])
            if self._stopped in ready:
                return
            self._drain()
            self._signal.bump()

    def _drain(self) -> None:
        try:
            while True:
                self._socket.recv(16)
        except BlockingIOError:
            return

    def close(self) -> None:
        self._stop.send(b"x")
        self._thread.join()
        for end in (self._socket, self._stop, self._stopped):
            end.close()
