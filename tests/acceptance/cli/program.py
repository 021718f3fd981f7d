"""The real program as a subprocess, with a home and a user folder of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.loaded import Said, call

PYTHON = Path(sys.executable)


class Program:
    """Calls `loopwright` the way a person in a shell would, in a world of its own."""

    def __init__(self, place: Path) -> None:
        self.user = place / "user"
        self.user.mkdir(exist_ok=True)
        self.home = place / "home"
        self.python = sys.executable
        """The interpreter that everything runs in, keepers and agents too."""
        self.env = {
            # Programs of this Python's folder, then those of the system.
            "PATH": f"{PYTHON.parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.user),
            "LOOPWRIGHT_HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "NO_COLOR": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            # Most tests look from outside at what a run does anywhere. Those of the sandbox ask for one.
            "LOOPWRIGHT_SANDBOX__LEVEL": "none",
            # Many gates of tests wait for somebody, or count who ran them. Those of the base ask for it.
            "LOOPWRIGHT_CHECK_BASE": "false",
        }

    def __call__(
        self,
        *arguments: str,
        cwd: Path,
        env: dict[str, str] | None = None,
        timeout: float = 60,
        fresh: bool = False,
    ) -> Said:
        """Call it, wait and return what it said; `fresh` starts Python itself too, from nothing."""
        env = {**self.env, **(env or {})}
        if fresh or self.python != sys.executable:
            said = self._fresh(arguments, cwd=cwd, env=env, timeout=timeout)
        else:
            said = call(arguments, cwd=cwd, env=env, timeout=timeout)
        assert "Traceback" not in said.err, said.err
        assert "\x1b" not in said.out + said.err, "colour although NO_COLOR is set"
        return said

    def _fresh(self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float) -> Said:
        done = subprocess.run(
            [self.python, "-m", "loopwright.cli", *arguments],
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        return Said(code=done.returncode, out=done.stdout, err=done.stderr)


def executable(path: Path, script: str) -> Path:
    """Write a small program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder, whatever the machine's own configuration says."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    who = ("-c", "user.name=Someone", "-c", "user.email=someone@example.invalid")
    done = subprocess.run(
        ["git", *who, *arguments], cwd=folder, env=env, check=True, capture_output=True, text=True
    )
    return done.stdout


def repository(folder: Path, files: dict[str, str]) -> Path:
    """Make a repository with one commit of these files."""
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "trunk")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder
