"""Hands variables of a submitting process to the worker that executes its plan, over a socket that only you can open.

No value is ever written to a file. A thread answers, so that a busy event loop does not look like a dead process.
"""

import json
import socket
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from threading import Thread
from typing import Final

from loopwright.adapters.machine.files import delete
from loopwright.adapters.processes.keeper_calls import short_path
from loopwright.keeper import places

FOLDER: Final = "submitters"
_ANSWER_S: Final = 5.0
_LARGEST: Final = 1 << 20


@contextmanager
def answering(home: Path, submitter: str, env: Mapping[str, str]) -> Iterator[None]:
    """Answer for the variables of this environment."""
    _remove_dead(home / FOLDER)
    folder = home / FOLDER / submitter
    folder.mkdir(parents=True, mode=0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        with short_path(folder) as path:
            listener.bind(path)
        (folder / places.SOCKET).chmod(0o600)
        listener.listen(16)
        listener.setblocking(False)
        over, ends = socket.socketpair()
        thread = Thread(target=_serve, args=(listener, dict(env), ends), daemon=True, name="variables")
        thread.start()
        try:
            yield
        finally:
            # Not by a call to the socket's path: the folder may have been moved or deleted.
            over.close()
            thread.join()
            ends.close()
            delete(folder)


def _serve(listener: socket.socket, env: Mapping[str, str], ends: socket.socket) -> None:
    with DefaultSelector() as selector:
        for one in (listener, ends):
            selector.register(one, EVENT_READ)
        while all(key.fileobj is not ends for key, _ in selector.select()):
            _answer(listener, env)


def _answer(listener: socket.socket, env: Mapping[str, str]) -> None:
    # What is asked in another form is not answered, and ends nothing.
    with suppress(OSError, ValueError, TypeError, RecursionError):
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(_ANSWER_S)
            names = json.loads(_all_of(connection))
            connection.sendall(json.dumps({name: env[name] for name in names if name in env}).encode())


def asked(home: Path, submitter: str, names: Collection[str]) -> Mapping[str, str] | None:
    """Return those of these variables that the submitting process has; None when it does not answer."""
    try:
        with _connected(home / FOLDER / submitter) as connection:
            connection.sendall(json.dumps(sorted(names)).encode())
            connection.shutdown(socket.SHUT_WR)
            answer: Mapping[str, str] = json.loads(_all_of(connection))
    except (OSError, ValueError):
        return None
    return answer


@contextmanager
def _connected(folder: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_ANSWER_S)
        with short_path(folder) as path:
            connection.connect(path)
        yield connection


def _all_of(connection: socket.socket) -> bytes:
    whole = b""
    while len(whole) <= _LARGEST and (piece := connection.recv(1 << 16)):
        whole += piece
    return whole


def _remove_dead(folder: Path) -> None:
    """Remove what killed processes left: nothing accepts connections there."""
    for left in folder.iterdir() if folder.is_dir() else ():
        try:
            with _connected(left):
                pass
        except ConnectionRefusedError:
            delete(left)
        except OSError:
            continue  # one that is starting or ending at this moment
