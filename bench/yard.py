"""A repository, a plan, the smallest possible agent, and the real command line to work on them."""

import json
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.meter import Metered, metered

AGENT: Final = r"""#!/bin/sh
# Finds its order ("bench SECONDS FILE BYTES [EDITED]") in what it is told: sleeps, prints so much, writes that file,
# and adds a line to the other one.
while IFS= read -r line; do
    case $line in "bench "*) set -- $line; break ;; esac
done <"$1"
sleep "$2"
if [ "$4" != 0 ]; then yes "what an agent says while it works, one line of many" | head -c "$4"; fi
echo done >"$3"
if [ -n "${5-}" ]; then echo "# $3" >>"$5"; fi
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One task of a benchmark's plan."""

    key: str
    seconds: float
    needs: tuple[str, ...] = ()
    prints: int = 0
    """How many bytes of output."""
    edits: str = ""
    """A file that was there, to which it adds a line."""

    @property
    def order(self) -> str:
        """What the agent is told."""
        return f"bench {self.seconds:.3f} {self.file} {self.prints} {self.edits}".rstrip()

    @property
    def file(self) -> str:
        """What it makes."""
        return f"out-{self.key}"

    @property
    def check(self) -> str:
        """The command that looks at it."""
        return f"test -s {self.file}"


def independent(count: int, seconds: float) -> tuple[Job, ...]:
    """Return tasks that wait for nothing."""
    return tuple(Job(key=f"t{n}", seconds=seconds) for n in range(count))


@dataclass(frozen=True, slots=True, kw_only=True)
class Yard:
    """Where one run of a plan, or of its baseline, takes place."""

    root: Path
    jobs: tuple[Job, ...]
    slots: int = 2
    files: int = 20

    @property
    def repository(self) -> Path:
        """The user's checkout."""
        return self.root / "repository"

    @property
    def home(self) -> Path:
        """The product's home."""
        return self.root / "home"

    @property
    def agent(self) -> Path:
        """The agent's program."""
        return self.root / "agent.sh"

    def make(self) -> "Yard":
        """Create the repository, the agent and the plan."""
        self.repository.mkdir(parents=True)
        (self.root / "user").mkdir()
        self.agent.write_text(AGENT)
        self.agent.chmod(0o755)
        for n in range(self.files):
            folder = self.repository / f"src-{n // 100}"
            folder.mkdir(exist_ok=True)
            (folder / f"file-{n}.txt").write_text(f"line of file {n}\n" * 20)
        (self.repository / "plan.json").write_text(json.dumps(self.plan()))
        self.git("init", "-q", "-b", "trunk")
        self.git("add", "-A")
        self.git("commit", "-qm", "base")
        return self

    def plan(self) -> dict[str, Any]:
        """Return the plan file."""
        return {
            "title": "Benchmark",
            "gates": [{"name": "whole", "run": "true"}],
            "settings": {
                "agent": "command",
                "parallel": self.slots,
                "agents": {
                    "command": {
                        "command": f"/bin/sh {shlex.quote(str(self.agent))} {{prompt_file}}",
                        "prompt": "file",
                    }
                },
            },
            "tasks": [
                {
                    "id": one.key,
                    "title": f"Make {one.file}",
                    "description": one.order,
                    "depends_on": list(one.needs),
                    "acceptance": [one.check],
                }
                for one in self.jobs
            ],
        }

    def env(self) -> dict[str, str]:
        """Return the environment of everything that runs here."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root / "user"),
            "LOOPWRIGHT_HOME": str(self.home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "Bench",
            "GIT_AUTHOR_EMAIL": "bench@example.invalid",
            "GIT_COMMITTER_NAME": "Bench",
            "GIT_COMMITTER_EMAIL": "bench@example.invalid",
        }

    def git(self, *words: str) -> str:
        """Run git in the repository."""
        done = subprocess.run(
            ["git", *words], cwd=self.repository, env=self.env(), capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def command(self, *words: str) -> list[str]:
        """Return the product's command line."""
        return [sys.executable, "-m", "loopwright.cli", *words]

    def run(self) -> Metered:
        """Do the plan with the product and hold it to its result."""
        took = self.done(self.metered(self.command("run", "plan.json", "--json")))
        result = json.loads(took.out[took.out.index("{") :])
        self._check(result["plan"]["branch"])
        return took

    def done(self, took: Metered) -> Metered:
        """Return what a run of the product took, provided that it verified its plan."""
        if took.code:
            raise RuntimeError(f"the product ended with {took.code}: {took.out[-2000:]}")
        return took

    def order(self, job: Job) -> str:
        """Return what the agent is told."""
        return job.order

    def check(self, job: Job) -> str:
        """Return what has to pass before the baseline merges a task."""
        return job.check

    def made(self, job: Job) -> str:
        """Return a file that a task makes."""
        return job.file

    def metered(self, command: Sequence[str]) -> Metered:
        """Run a command here under a meter."""
        return metered(command, cwd=self.repository, env=self.env(), result=self.root / "meter.json")

    def _check(self, branch: str) -> None:
        made = set(self.git("ls-tree", "-r", "--name-only", branch).split("\n"))
        missing = {self.made(one) for one in self.jobs} - made
        if missing:
            raise RuntimeError(f"not done: {sorted(missing)[:5]}")

    def baseline(self) -> Metered:
        """Do the same with a shell script under make, and hold it to the same result."""
        from bench.baseline import write_makefile

        makefile = write_makefile(self)
        took = self.metered(["make", "-s", f"-j{self.slots}", "-f", str(makefile), "all"])
        if took.code != 0:
            raise RuntimeError(f"the baseline ended with {took.code}: {took.out[-2000:]}")
        self._check("integration")
        return took

    def roles(self) -> dict[int, str]:
        """Return what each keeper of the home kept, by its pid."""
        database = sqlite3.connect(self.home / "loopwright.db")
        try:
            role = dict(database.execute("SELECT id, role FROM runs"))
        finally:
            database.close()
        found = {}
        for status in (self.home / "runs").glob("*/status.json"):
            raw = json.loads(status.read_bytes())
            keeper = raw.get("keeper") or {}
            if keeper.get("pid"):
                found[int(keeper["pid"])] = str(role.get(raw["run_id"], ""))
        return found

    def remove(self) -> None:
        """Delete everything."""
        shutil.rmtree(self.root, ignore_errors=True)
