"""The Unix socket: one JSON request per line, one JSON answer per line, and a nudge for each watcher."""

from __future__ import annotations

import json
import os
import socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

REQUEST_LIMIT = 16 * 1024 * 1024
CALLERS = 64
NUDGE = b"+\n"


def listen(directory: str, name: str) -> socket.socket:
    """Open the socket. Its path may have about 107 bytes, a run directory more: so it is bound from inside."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.setblocking(False)
    here = os.getcwd()
    os.chdir(directory)
    try:
        listener.bind(name)
    finally:
        os.chdir(here)
    listener.listen(CALLERS)
    return listener


class Caller:
    """One connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.received = bytearray()
        self.watches = False


def caller_pid(connection: socket.socket) -> int:
    """Return who opened a connection; 0 where the system does not tell, or counts its processes apart from ours."""
    if not hasattr(socket, "SO_PEERCRED"):
        return 0
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid: int = struct.unpack("3i", told)[0]
    return pid


class Desk:
    """Answers every caller except those that `is_refused`: the run must not answer its own questions."""

    def __init__(
        self,
        listener: socket.socket,
        answer: Callable[[dict[str, Any]], dict[str, Any]],
        is_refused: Callable[[int], bool],
    ) -> None:
        self._answer = answer
        self._is_refused = is_refused
        self._listener = listener
        self._callers: dict[int, Caller] = {}

    def fds(self) -> list[int]:
        """Return everything that may become readable."""
        return [self._listener.fileno(), *self._callers]

    def serve(self, fd: int) -> None:
        """Handle a readable descriptor, if it belongs to this desk."""
        if fd == self._listener.fileno():
            self._accept()
        elif fd in self._callers:
            self._read(self._callers[fd])

    def nudge(self) -> None:
        """Tell everyone who watches that there is more to see."""
        for caller in list(self._callers.values()):
            if caller.watches:
                self._send(caller, NUDGE)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        pid = caller_pid(connection)
        if len(self._callers) >= CALLERS or (pid and self._is_refused(pid)):
            connection.close()
            return
        connection.setblocking(False)
        self._callers[connection.fileno()] = Caller(connection)

    def _read(self, caller: Caller) -> None:
        try:
            data = caller.connection.recv(256 * 1024)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(caller)
            return
        caller.received += data
        if len(caller.received) > REQUEST_LIMIT:
            self._drop(caller)
        # Only a new newline can complete a request: a long one is not searched again with each piece.
        elif b"\n" in data:
            *requests, rest = bytes(caller.received).split(b"\n")
            caller.received = bytearray(rest)
            for request in requests:
                self._reply(caller, request)

    def _reply(self, caller: Caller, request: bytes) -> None:
        try:
            answer = self._answered(caller, json.loads(request))
        except (ValueError, RecursionError):
            # Half a letter, or a list in a list in a list: no caller ends a run by what it says.
            answer = {"ok": False, "error": "that is not a request"}
        self._send(caller, json.dumps(answer).encode() + b"\n")

    def _answered(self, caller: Caller, asked: Any) -> dict[str, Any]:
        if not isinstance(asked, dict):
            return {"ok": False, "error": "that is not a JSON object"}
        if asked.get("op") == "watch":
            caller.watches = True
            return {"ok": True}
        return self._answer(asked)

    def _send(self, caller: Caller, data: bytes) -> None:
        try:
            sent = caller.connection.send(data)
        except BlockingIOError:
            # A watcher that does not read has nudges enough; a caller that does not read gets no answer.
            sent = len(data) if data == NUDGE else 0
        except OSError:
            sent = 0
        if sent < len(data):
            self._drop(caller)

    def _drop(self, caller: Caller) -> None:
        self._callers.pop(caller.connection.fileno(), None)
        caller.connection.close()
