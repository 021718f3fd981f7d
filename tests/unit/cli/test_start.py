"""The program's first moments."""

import subprocess
import sys

from loopwright.cli.shell.exits import ExitCode

PRESSED_WHILE_LOADING = """
import os, signal, sys

class Presses:
    def find_spec(self, name, *_):
        if name == "cyclopts":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Presses())
from loopwright.cli.start import main
main()
"""


def test_ctrl_c_while_the_program_is_loaded_is_no_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PRESSED_WHILE_LOADING], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (ExitCode.INTERRUPTED, "", "")
