"""What a project's own state files say about a plan: the product's record, read the way a stranger would."""

import json
import os
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

from tests.acceptance.cli.program import git
from tests.loaded import Said, call

Document = dict[str, Any]


class Record:
    """The newest plan of a project, from the files in its `.loopwright/`."""

    def __init__(self, repository: Path, *, home: Path, said: Said | None = None) -> None:
        self.repository = repository
        self.home = home
        self.folder = repository / ".loopwright"
        self.said = said or Said(code=-1, out="", err="")
        """What the command that carried it out printed."""

    @property
    def plan(self) -> Document:
        """The plan with its loop, tasks and attempts."""
        plans = [_read(path) for path in (self.folder / "plans").glob("plan_*.json")]
        return max(plans, key=lambda plan: str(plan["created_at"]))

    def task(self, key: str) -> Document:
        """The task with this key."""
        return next(task for task in self.plan["tasks"] if task["key"] == key)

    def attempts(self, key: str) -> list[Document]:
        """The attempts at a task, in order."""
        task = self.task(key)
        mine = [one for one in self.plan["attempts"] if one["task_id"] == task["id"]]
        return sorted(mine, key=lambda one: one["n"])

    def failures(self, key: str) -> list[str | None]:
        """How each attempt at a task failed; None for one that did not."""
        return [one["failure"] for one in self.attempts(key)]

    def runs(self, key: str | None = None, role: str | None = None) -> list[Document]:
        """The runs of the plan, or those of one task, or of one role, in order."""
        plan = self.plan
        task = self.task(key)["id"] if key else None
        runs = [_read(path) for path in (self.folder / "runs").glob("run_*.json")]
        mine = [run for run in runs if run["plan_id"] == plan["id"]]
        mine = [run for run in mine if (not task or run["task_id"] == task) and role in (None, run["role"])]
        return sorted(mine, key=lambda run: str(run["created_at"]))

    def events(self) -> list[Document]:
        """Everything that happened in the project, in order."""
        files = sorted((self.folder / "events").glob("events-*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    def prompt(self, key: str, attempt: int) -> str:
        """What the agent was told at first in one attempt."""
        row = self.attempts(key)[attempt - 1]
        run = next(run for run in self.runs(key, "implementer") if run["attempt_id"] == row["id"])
        return (self.home / "runs" / run["id"] / "prompt.md").read_text()

    def on_branch(self, path: str) -> str:
        """What a file has in it on the plan's branch."""
        return self.git("show", f"{self.plan['branch']}:{path}")

    def files(self) -> set[str]:
        """The files on the plan's branch."""
        return set(self.git("ls-tree", "-r", "--name-only", self.plan["branch"]).split())

    def landings(self, *, others: Collection[str] = ()) -> Counter[str]:
        """How often each task landed, by its key; `others` are commits that only say so."""
        plan = self.plan
        keys = {task["id"]: task["key"] for task in plan["tasks"]}
        said = self.git(
            "log",
            "--first-parent",
            "--format=%H %(trailers:key=Loopwright-Task,valueonly,separator=%x2C)",
            f"{plan['base_sha']}..{plan['branch']}",
        )
        told = [line.split() for line in said.splitlines()]
        return Counter(keys[words[1]] for words in told if len(words) > 1 and words[0] not in others)

    def git(self, *arguments: str) -> str:
        """Run git in the project's repository."""
        return git(self.repository, *arguments)

    def call(self, *arguments: str) -> Said:
        """Call the program in the project, to look at something."""
        env = {
            "PATH": os.environ["PATH"],
            "LOOPWRIGHT_HOME": str(self.home),
            "NO_COLOR": "1",
            "LANG": "C.UTF-8",
        }
        return call(arguments, cwd=self.repository, env=env, timeout=60)

    def check_nothing_was_touched(self) -> None:
        """Hold the user's own checkout and branch against how they were."""
        assert self.git("status", "--porcelain") == ""
        assert self.git("rev-parse", "trunk").strip() == self.plan["base_sha"]


def _read(path: Path) -> Document:
    document: Document = json.loads(path.read_text())
    return document
