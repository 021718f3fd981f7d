"""The program as a process of its own that need not be loaded first.

A server that has imported every command, and has done what `tests.warmed` does, forks once per call, so a call costs
some milliseconds instead of half a second. All the rest is as in a shell: own process and session, own environment,
folder and files, real signals, real exit codes. What loading itself does is proven by calls with `fresh=True`, by
`test_start_up` and by the tests of chaos.
"""

import importlib
import json
import multiprocessing
import os
import pkgutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import loopwright.cli

_ENTRY = Path(loopwright.cli.__file__).with_name("__main__.py")
_SERVER = multiprocessing.get_context("forkserver")
PATH = "LW_TESTS_PATH"
"""Tells the server where its programs will look for modules: what is installed there is remembered by it."""


def preload() -> None:
    """Have the server load every command once, when it starts."""
    modules = (module.name for module in pkgutil.walk_packages(loopwright.cli.__path__, "loopwright.cli."))
    commands = (name for name in modules if name != f"loopwright.cli.{_ENTRY.stem}")
    os.environ[PATH] = json.dumps(sys.path)
    _SERVER.set_forkserver_preload([*commands, "tests.loaded", "tests.warmed"])


class Process:
    """A started call: the part of `subprocess.Popen` that tests use."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        out: Path,
        err: Path | None = None,
    ) -> None:
        preload()
        self._process: ForkServerProcess = _SERVER.Process(
            target=_be_the_program,
            args=(list(arguments), str(cwd), dict(env), str(out), str(err) if err else None),
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, or minus the signal that ended it; None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return the exit code if it has ended."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code."""
        self._process.join(timeout)
        code = self.returncode
        if code is None:
            raise subprocess.TimeoutExpired("loopwright", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal to it alone."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it the hard way."""
        self.send_signal(signal.SIGKILL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a call printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document that it printed."""
        return json.loads(self.out)


def call(arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float) -> Said:
    """Call the program, wait for its end and return what it said."""
    with TemporaryDirectory(prefix="lw-said-") as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        process = Process(arguments, cwd=cwd, env=env, out=out, err=err)
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
        return Said(code=code, out=out.read_text(), err=err.read_text())


def _be_the_program(arguments: list[str], cwd: str, env: dict[str, str], out: str, err: str | None) -> None:
    """Become what `python -m loopwright.cli` would be in a new session."""
    os.setsid()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    _open(0, os.devnull, os.O_RDONLY)
    _open(1, out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    if err is None:
        os.dup2(1, 2)
    else:
        _open(2, err, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    if env.get("PYTHONUNBUFFERED"):
        sys.stdout.reconfigure(write_through=True)
    sys.argv = [str(_ENTRY), *arguments]
    importlib.import_module("loopwright.cli.main").main()


def _open(target: int, path: str, how: int) -> None:
    descriptor = os.open(path, how, 0o600)
    os.dup2(descriptor, target)
    os.close(descriptor)
