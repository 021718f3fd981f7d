"""Small projects with real test runners, and a plan for each: what users have, with default settings."""

import json
import os
import shlex
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench.meter import Metered
from bench.yard import Job, Yard

ROOT: Final = Path(__file__).resolve().parent.parent
_OLD_TESTS: Final = 4
AGENT: Final = """#!/bin/sh
# Finds its order ("bench KEY") in what it is told, and copies the work of that task.
while IFS= read -r line; do
    case $line in "bench "*) set -- $line; break ;; esac
done <"$1"
sleep 0.1
cp -R "$WORK/$2/." .
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """A test runner, and how a project for it is written."""

    name: str
    gate: str
    old: str
    """An old test file that takes `SECONDS`; `KEY` is its name."""
    new: str
    """A test of one task, `KEY`."""
    source: str
    """What it tests."""
    test_path: str
    source_path: str
    files: Mapping[str, str]
    narrow: str
    """The command that runs one test file, `FILE`."""
    at_once: int = 1
    """How many of its test files run at a time."""
    folder: str = ""
    """The folder of its program, in front of the PATH; empty if it is on the PATH."""

    def written(self, text: str, key: str, seconds: float = 0.0) -> str:
        """Return one of these texts for a task."""
        return text.replace("KEY", key).replace("SECONDS", f"{seconds:g}")

    def base(self, seconds: float) -> Iterator[tuple[str, str]]:
        """Yield the files that are there before any task; their tests take so long together."""
        yield from self.files.items()
        for n in range(_OLD_TESTS):
            path = self.written(self.test_path, f"old{n}")
            yield path, self.written(self.old, f"old{n}", seconds * self.at_once / _OLD_TESTS)

    def work(self, key: str) -> Iterator[tuple[str, str]]:
        """Yield the files that a task adds."""
        yield self.written(self.source_path, key), self.written(self.source, key)
        yield self.written(self.test_path, key), self.written(self.new, key)

    def acceptance(self, key: str) -> str:
        """Return the command that runs a task's own test."""
        return self.written(self.narrow.replace("FILE", self.test_path), key)


# Without a plugin that only our own tests need: it takes a third of the memory.
_PYTEST: Final = f"{sys.executable} -m pytest -q -p no:cacheprovider -p no:schemathesis"
PYTEST: Final = Runner(
    name="pytest",
    gate=f"{_PYTEST} tests",
    narrow=f"{_PYTEST} FILE",
    test_path="tests/test_KEY.py",
    source_path="app/KEY.py",
    old="import time\n\nfrom app import ready\n\n\ndef test_KEY():\n    time.sleep(SECONDS)\n    assert ready()\n",
    new='from app.KEY import f\n\n\ndef test_KEY():\n    assert f() == "KEY"\n',
    source='def f():\n    return "KEY"\n',
    files={
        "app/__init__.py": "def ready():\n    return True\n",
        "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
        ".gitignore": "__pycache__/\n",
    },
)
_SLEEP: Final = "await new Promise((done) => setTimeout(done, 1000 * SECONDS));"
NODE: Final = Runner(
    name="node --test",
    gate="node --test tests/",
    narrow="node --test FILE",
    test_path="tests/KEY.test.mjs",
    source_path="app/KEY.mjs",
    old="import test from 'node:test';\nimport { ready } from '../app/ready.mjs';\n"
    f"test('KEY', async () => {{ {_SLEEP} ready(); }});\n",
    new="import test from 'node:test';\nimport assert from 'node:assert';\nimport { f } from '../app/KEY.mjs';\n"
    "test('KEY', () => assert.equal(f(), 'KEY'));\n",
    source="export const f = () => 'KEY';\n",
    files={
        "package.json": '{"name": "app", "version": "1.0.0"}\n',
        "app/ready.mjs": "export const ready = () => true;\n",
    },
)
GO: Final = Runner(
    name="go test",
    # Without a count go would not run a test again that passed before.
    gate="go test -count=1 ./...",
    narrow="go test -count=1 ./KEY/",
    at_once=min(os.cpu_count() or 1, _OLD_TESTS),
    test_path="KEY/KEY_test.go",
    source_path="KEY/KEY.go",
    old='package KEY\n\nimport (\n\t"app/ready"\n\t"testing"\n\t"time"\n)\n\n'
    "func Test_KEY(t *testing.T) {\n\ttime.Sleep(time.Duration(SECONDS * float64(time.Second)))\n\tready.F()\n}\n",
    new='package KEY\n\nimport "testing"\n\nfunc Test_KEY(t *testing.T) {\n'
    '\tif F() != "KEY" {\n\t\tt.Fatal(F())\n\t}\n}\n',
    source='package KEY\n\nfunc F() string { return "KEY" }\n',
    files={
        "go.mod": "module app\n\ngo 1.19\n",
        "ready/ready.go": "package ready\n\nfunc F() bool { return true }\n",
    },
)


def runners() -> tuple[dict[str, Runner], tuple[str, ...]]:
    """Return the runners that are installed here, and the names of those that are not."""
    found = {PYTEST.name: PYTEST}
    missing = []
    # The package beside it has another `go`, a Python script that only runs with the package on its path.
    go = ROOT / ".runners" / "go" / "go" / "bin"
    for one, program, folder in ((NODE, "node", None), (GO, "go", go)):
        if folder is not None and (folder / program).exists():
            found[one.name] = replace(one, folder=str(folder))
        elif shutil.which(program):
            found[one.name] = one
        else:
            missing.append(one.name)
    here = ROOT / ".runners" / "node_modules" / ".bin" / "jest"
    jest = str(here) if here.exists() else shutil.which("jest")
    if jest:
        found["jest"] = Runner(
            name="jest",
            gate=shlex.quote(jest),
            narrow=f"{shlex.quote(jest)} FILE",
            test_path="tests/KEY.test.js",
            source_path="app/KEY.js",
            old="const { ready } = require('../app/ready');\n"
            f"test('KEY', async () => {{ {_SLEEP} ready(); }});\n",
            new="const { f } = require('../app/KEY');\ntest('KEY', () => expect(f()).toBe('KEY'));\n",
            source="exports.f = () => 'KEY';\n",
            files={
                "package.json": '{"name": "app", "version": "1.0.0"}\n',
                "app/ready.js": "exports.ready = () => true;\n",
            },
        )
    else:
        missing.append("jest")
    return found, tuple(missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project(Yard):
    """A repository whose gate is a real test suite."""

    runner: Runner = PYTEST
    seconds: float = 0.0
    """How long its old tests take together."""
    plans: int = 1
    """Its tasks are divided among so many plans, one after the other on the same commit."""

    def make(self) -> "Project":
        """Create the repository, the work of each task, the agent and the plans."""
        self.repository.mkdir(parents=True)
        (self.root / "user").mkdir()
        self.agent.write_text(f"WORK={shlex.quote(str(self.root / 'work'))}\n{AGENT}")
        for path, text in self.runner.base(self.seconds):
            _write(self.repository / path, text)
        for job in self.jobs:
            for path, text in self.runner.work(job.key):
                _write(self.root / "work" / job.key / path, text)
        each = len(self.jobs) // self.plans
        for n in range(self.plans):
            some = self.jobs[n * each : (n + 1) * each]
            plan = {**self.plan(), "tasks": [self.task(one) for one in some]}
            (self.repository / f"plan-{n}.json").write_text(json.dumps(plan))
        self.git("init", "-q", "-b", "trunk")
        self.git("add", "-A")
        self.git("commit", "-qm", "base")
        return self

    def plan(self) -> dict[str, Any]:
        """Return the plan file."""
        return {**Yard.plan(self), "gates": [{"name": "tests", "run": self.runner.gate}]}

    def task(self, job: Job) -> dict[str, Any]:
        """Return a task of it."""
        told = {"description": self.order(job), "acceptance": [self.runner.acceptance(job.key)]}
        return {"id": job.key, "title": f"Add {job.key}", **told}

    def order(self, job: Job) -> str:
        """Return what the agent is told."""
        return f"bench {job.key}"

    def check(self, job: Job) -> str:
        """Return what has to pass before a task is merged: its acceptance and the gate."""
        return f"{self.runner.acceptance(job.key)} && {self.runner.gate}"

    def made(self, job: Job) -> str:
        """Return a file that a task makes."""
        return self.runner.written(self.runner.source_path, job.key)

    def run_plan(self, n: int) -> Metered:
        """Do one of the plans with the product."""
        return self.done(self.metered(self.command("run", f"plan-{n}.json", "--json")))

    def env(self) -> dict[str, str]:
        """Return the environment of everything that runs here."""
        env = Yard.env(self)
        folders = filter(None, (self.runner.folder, env["PATH"]))
        return {**env, "PATH": os.pathsep.join(folders)}

    def bare_s(self) -> tuple[float, float]:
        """Return how long the gate takes by itself on a tree with the work of one task: the first time, and again.

        The second time a compiler finds its cache.
        """
        tree = self.root / "bare"
        self.git("worktree", "add", "-q", "--detach", str(tree))
        shutil.copytree(self.root / "work" / self.jobs[0].key, tree, dirs_exist_ok=True)
        gate = ["/bin/sh", "-c", f"cd {shlex.quote(str(tree))} && {self.runner.gate}"]
        first, second = (self.metered(gate) for _ in range(2))
        self.git("worktree", "remove", "--force", str(tree))
        for took in (first, second):
            if took.code:
                raise RuntimeError(f"the bare gate failed: {took.out[-2000:]}")
        return first.wall_s, second.wall_s

    def full_gates(self, since: datetime) -> int:
        """Return how often the whole gate ran since then, for whatever reason."""
        return sum(one == self.runner.gate for one in self.commands_run(since))

    def commands_run(self, since: datetime | None = None) -> list[str]:
        """Return the gate commands that ran since then, or at all; not those of runs that reuse another."""
        database = sqlite3.connect(self.home / "loopwright.db")
        query = "SELECT id FROM runs WHERE agent IS NULL AND reused_run_id IS NULL AND created_at >= ?"
        try:
            ids = [
                row[0] for row in database.execute(query, (f"{since:%Y-%m-%dT%H:%M:%S}" if since else "",))
            ]
        finally:
            database.close()
        found = []
        for run in ids:
            for results in (self.home / "runs" / run).glob("**/gate/results.json"):
                found += [one["command"] for one in json.loads(results.read_bytes())["commands"]]
        return found


def now() -> datetime:
    """Return the next full second, so that nothing from before counts for what comes after."""
    moment = time.time()
    time.sleep(1 - moment % 1)
    return datetime.fromtimestamp(int(moment) + 1, UTC)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
