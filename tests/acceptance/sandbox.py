"""A small project with a plan that the scripted agent carries out, driven by the real program."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
from tests.acceptance.cli.program import Program, git, repository
from tests.keeping import living_keepers
from tests.loaded import Process, Said
from tests.waiting import eventually

Steps = Sequence[Mapping[str, Any]]

COST = {"usage": {"input_tokens": 1200, "output_tokens": 300, "cost_micros": 9000}}
"""A step that reports what the attempt cost."""

FILES = {"README.md": "# greeter\n", ".gitignore": "__pycache__/\n.loopwright/\n", "greet.txt": "hello\n"}

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\r")


def task(key: str, *checks: str, **more: Any) -> dict[str, Any]:
    """Return a task of a plan with acceptance commands."""
    return {
        "id": key,
        "title": f"Make {key}",
        "description": f"Do what {key} needs.",
        "acceptance": [
            {"name": f"{key} is right" + f" {n}" * bool(n), "run": check} for n, check in enumerate(checks)
        ],
        **more,
    }


class Sandbox:
    """A repository, a home, a user folder and a script, all in one private place."""

    def __init__(self, place: Path) -> None:
        """Make it, or find it again: another test process may have made it."""
        self.place = place
        self.program = Program(place)
        self.repository = place / "greeter"
        if not self.repository.exists():
            repository(self.repository, FILES)
        self.script = place / "script.json"
        self.home = self.program.home
        # By the environment, so that nothing of the test machinery is in the project itself.
        self.program.env |= {
            "LOOPWRIGHT_AGENT": "scripted",
            "LOOPWRIGHT_AGENTS__SCRIPTED__SCRIPT": str(self.script),
        }

    def __call__(self, *arguments: str, cwd: Path | None = None, **more: Any) -> Said:
        """Call the program in the repository."""
        return self.program(*arguments, cwd=cwd or self.repository, **more)

    def plan(self, name: str, tasks: Sequence[Mapping[str, Any]], **more: Any) -> Path:
        """Write a plan beside the repository (JSON is YAML too) and return its path."""
        path = self.place / f"{name}.yaml"
        gates = [{"name": "greeting", "run": "grep -q hello greet.txt"}]
        path.write_text(json.dumps({"title": name, "gates": gates, "tasks": list(tasks), **more}))
        return path

    def play(self, tasks: Mapping[str, Sequence[Steps]]) -> None:
        """Write what the agent does in each attempt at each task."""
        self.script.write_text(json.dumps({"journal": "journal.txt", "tasks": tasks}))

    def run(self, plan: Path, *flags: str) -> Said:
        """Carry a plan out in the foreground."""
        return self("run", str(plan), *flags, timeout=100)

    def until_quiet(self) -> None:
        """Wait until nothing of this place runs any more."""
        # Looking at every process of the machine is expensive: not too often.
        eventually(lambda: not self.processes(), timeout=60, every=0.2)

    def processes(self) -> list[str]:
        """Return the command lines of everything that runs in this place: keepers, agents, gates, the program."""
        found = []
        keepers = living_keepers(self.home)
        for process in psutil.process_iter():
            try:
                words = " ".join(process.cmdline())
                inside = process in keepers or str(self.place) in words or str(self.place) in process.cwd()
                if inside and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(words)
            except (psutil.Error, OSError):
                continue
        return found

    def start(self, *arguments: str) -> "Background":
        """Start the program and let it run."""
        return Background(self, arguments)

    def newest_plan(self) -> str:
        """Return the id of the newest plan."""
        return str(self("status", "--json").document["plan"]["id"])

    def on_terminal(
        self,
        *arguments: str,
        columns: int = 100,
        rows: int = 40,
        color: bool = False,
        typing: tuple[str, str] = ("", ""),
    ) -> str:
        """Call the program on a terminal of this size and return what it wrote, without escape sequences.

        `typing` is what it has to write, and what is typed then.
        """
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        env = {**self.program.env, "TERM": "xterm-256color"}
        if color:
            del env["NO_COLOR"]
        process = subprocess.Popen(
            [sys.executable, "-m", "loopwright.cli", *arguments],
            cwd=self.repository,
            env=env,
            stdin=follower,
            stdout=follower,
            stderr=follower,
            start_new_session=True,
        )
        os.close(follower)
        written = b""
        while True:
            try:
                piece = os.read(leader, 65536)
            except OSError:  # the other side is closed: it has ended
                break
            if not piece:
                break
            written += piece
            if typing[1] and typing[0].encode() in written:
                os.write(leader, typing[1].encode())
                typing = ("", "")
        os.close(leader)
        process.wait(timeout=60)
        text = written.decode(errors="replace")
        return text if color else _ESCAPES.sub("", text)

    def measured(self, script: str) -> Said:
        """Run Python code that calls the program and looks at itself."""
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=self.repository,
            env=self.program.env,
            capture_output=True,
            text=True,
            timeout=100,
        )
        return Said(code=done.returncode, out=done.stdout, err=done.stderr)

    def git(self, *arguments: str) -> str:
        """Run git in the repository."""
        return git(self.repository, *arguments)


class Background:
    """A call of the program that runs while a test looks on; its output goes to a file."""

    def __init__(self, sandbox: Sandbox, arguments: Sequence[str]) -> None:
        number = len(list(sandbox.place.glob("background-*.out")))
        self.path = sandbox.place / f"background-{number}.out"
        self.path.touch()
        env = {**sandbox.program.env, "PYTHONUNBUFFERED": "1"}
        self.process: Process | subprocess.Popen[bytes]
        if sandbox.program.python == sys.executable:
            self.process = Process(arguments, cwd=sandbox.repository, env=env, out=self.path)
            return
        with self.path.open("wb") as out:
            self.process = subprocess.Popen(
                [sandbox.program.python, "-m", "loopwright.cli", *arguments],
                cwd=sandbox.repository,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def out(self) -> str:
        """What it printed so far."""
        return self.path.read_text(errors="replace")

    def until(self, text: str, timeout: float = 120.0) -> str:
        """Wait until it printed this, and return everything it printed."""

        def seen() -> bool:
            assert text in self.out or self.process.poll() is None, f"ended without {text!r}: {self.out}"
            return text in self.out

        eventually(seen, timeout=timeout)
        return self.out

    def end(self, timeout: float = 120.0) -> int:
        """Wait for its end and return the exit code."""
        code = self.process.wait(timeout=timeout)
        assert "Traceback" not in self.out, self.out
        return code

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        os.killpg(self.process.pid, signal.SIGINT)

    def kill(self) -> None:
        """Kill it the hard way, if it is still there."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
