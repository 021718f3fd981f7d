"""A program that the nursery has loaded for all runs: a child that is to be it need not start an interpreter for it.

Loading takes five times the processor time of what it then does in a small gate. Linux alone: elsewhere a process
that was forked and not started by exec may not use every part of the system.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

_FIRST_FD = 3
_LAST_FD = 1 << 20


class Loaded:
    """One program, found by the command line that would start it."""

    def __init__(self, path: str, main: Callable[[str], int]) -> None:
        self._command = [sys.executable, "-I", "-S", path]
        self._main = main

    def fits(self, argv: list[str]) -> bool:
        """Return whether this command line is that program with one argument."""
        return len(argv) == len(self._command) + 1 and argv[:-1] == self._command

    def become(self, argv: list[str], environment: dict[str, str]) -> NoReturn:
        """Be that program in this process, which was forked for it. Its stdio and folder are as they should be."""
        # Above all the lock of the run: a child that held it would be taken for the keeper.
        os.closerange(_FIRST_FD, _LAST_FD)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = argv[-2:]
        status = 1
        try:
            status = self._main(argv[-1])
        except BaseException:  # noqa: BLE001 - told where the program itself would tell it
            # Only a failure needs it, and every run pays for what is loaded.
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)


def load(path: str) -> Loaded | None:
    """Load a program; None where it has to be started as usual."""
    if sys.platform != "linux":
        return None
    # Other platforms do without it.
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("loaded", path)
    if spec is None or spec.loader is None:
        return None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return Loaded(path, module.main)


def forget_signals() -> None:
    """Take every signal as a fresh process would."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGPIPE, signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
