"""A repository, a plan of eight tasks and the real command line, to be killed in every way."""

import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from tests.keeping import living_keepers
from tests.loaded import Said, call

from loopwright.testing.scripted import JournalLine, read_journal, write_script

RUN = ("run", "plan.yaml", "--agent", "scripted", "--parallel", "3", "--json")
TASKS = 8
WORK_S = 0.25


def edges(count: int = TASKS) -> dict[str, list[str]]:
    """Three chains, with a few cross dependencies: always something in parallel, never everything."""
    made: dict[str, list[str]] = {}
    for number in range(count):
        made[f"t{number}"] = [f"t{number - 3}"] if number >= 3 else []
    if count > 7:
        made["t7"].append("t3")
        made[f"t{count - 1}"].append("t6")
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Arena:
    """Where a plan is run and killed."""

    root: Path

    @property
    def repository(self) -> Path:
        return self.root / "repository"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def journal(self) -> Path:
        return self.root / "journal"

    @classmethod
    def make(cls, root: Path, *, work_s: float = WORK_S, tasks: int = TASKS) -> "Arena":
        """Create the repository, the plan and the script of the agents."""
        arena = cls(root=root)
        arena.repository.mkdir(parents=True)
        (root / "user").mkdir()
        (arena.repository / "README").write_text("base\n")
        graph = edges(tasks)
        plan = ["title: Chains", "gates:", "  - {name: whole, run: test -f README}", "tasks:"]
        for key, needs in graph.items():
            plan.append(f"  - id: {key}")
            plan.append(f"    title: Make {key}")
            plan.append(f"    depends_on: [{', '.join(needs)}]")
            plan.append(f"    acceptance: [test -s out/{key}]")
        (arena.repository / "plan.yaml").write_text("\n".join(plan) + "\n")
        for command in (["init", "-q", "-b", "trunk"], ["add", "-A"], ["commit", "-qm", "base"]):
            arena.git(*command)
        steps = {
            key: [[{"sleep": work_s}, {"write": f"out/{key}", "text": f"{key}\n"}, {"claim": "made it"}]]
            for key in graph
        }
        write_script(root / "script.json", {"journal": "journal", "tasks": steps})
        return arena

    def env(self, **more: str) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root / "user"),
            "LOOPWRIGHT_HOME": str(self.home),
            "LOOPWRIGHT_CHECK_BASE": "false",
            # Not even on a machine with bubblewrap: the script lies outside of the workspace.
            "LOOPWRIGHT_SANDBOX__LEVEL": "none",
            "SCRIPTED_AGENT_SCRIPT": str(self.root / "script.json"),
            "GIT_AUTHOR_NAME": "A",
            "GIT_AUTHOR_EMAIL": "a@example.invalid",
            "GIT_COMMITTER_NAME": "A",
            "GIT_COMMITTER_EMAIL": "a@example.invalid",
            **more,
        }

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.repository,
            env=self.env(),
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def start(self, *arguments: str, **more: str) -> subprocess.Popen[str]:
        """Start `loopwright run` on the plan."""
        return subprocess.Popen(
            [sys.executable, "-m", "loopwright.cli", *(arguments or RUN)],
            cwd=self.repository,
            env=self.env(**more),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def carry_on(self, *arguments: str, timeout: float = 90.0, **more: str) -> Said:
        """Do the same with a program that is loaded already, and wait for its end: for moments after that."""
        return call(arguments or RUN, cwd=self.repository, env=self.env(**more), timeout=timeout)

    def finish(self, timeout: float = 90.0) -> dict[str, Any]:
        """Run the plan to its end and return what it says."""
        said = self.carry_on(timeout=timeout)
        assert said.code == 0, f"exit {said.code}\n{said.out[-3000:]}\n{said.err[-3000:]}\n{self.log()}"
        return said.document

    def log(self) -> str:
        path = self.home / "loopwright.log"
        return path.read_text()[-3000:] if path.exists() else ""

    # --- what must hold afterwards -------------------------------------------------------------------

    def landings(self, plan: dict[str, Any]) -> Counter[str]:
        """Count the landing commits of each task, by their trailer."""
        text = self.git(
            "log",
            "--first-parent",
            "--format=%(trailers:key=Loopwright-Task,valueonly,separator=%x2C)",
            f"{plan['base_sha']}..{plan['branch']}",
        )
        return Counter(text.split())

    def entries(self) -> list[JournalLine]:
        return read_journal(self.journal)

    def check(self, result: dict[str, Any], *, attempts_may_repeat: bool = False) -> None:
        """Hold the result against the promises."""
        plan = result["plan"]
        assert plan["status"] == "VERIFIED"
        assert plan["outcome"] == "verified"
        ids = {task["id"] for task in plan["tasks"]}
        assert self.landings(plan) == Counter(dict.fromkeys(ids, 1)), "a task landed twice or never"
        for key in edges(len(ids)):
            assert self.git("show", f"{plan['branch']}:out/{key}") == key
        starts = Counter((line.task, line.attempt) for line in self.entries() if line.what == "start")
        repeated = {name: count for name, count in starts.items() if count > 1}
        assert not repeated, f"a run was started twice: {repeated}"
        if not attempts_may_repeat:
            assert set(starts) == {(key, 1) for key in edges(len(ids))}, "an attempt was repeated"
            ends = Counter((line.task, line.attempt) for line in self.entries() if line.what == "end")
            assert ends == starts
        receipt = self.repository / ".loopwright" / "receipts" / f"{plan['id']}.json"
        verified = self.carry_on("receipt", "verify", str(receipt))
        assert verified.code == 0, verified.out + verified.err
        assert self.git("status", "--porcelain") == "", "the user's checkout was touched"
        assert self.git("rev-parse", "trunk") == plan["base_sha"]

    def processes(self) -> list[psutil.Process]:
        """Return what still runs of this arena: keepers by what they wrote, the rest by the inherited marker."""
        found = self.keepers()
        for process in psutil.process_iter():
            try:
                if str(self.home) in " ".join(process.cmdline()) or process.environ().get(
                    "SCRIPTED_AGENT_SCRIPT"
                ) == str(self.root / "script.json"):
                    found.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                continue
        return found

    def keepers(self) -> list[psutil.Process]:
        return living_keepers(self.home)


def kill(process: subprocess.Popen[str]) -> None:
    """Kill -9 the orchestrator alone."""
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
