"""A sandbox that can be looked into while the program works in it: rows, events, journal, processes, workspaces."""

import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import psutil
from tests.acceptance.cli.program import executable
from tests.acceptance.sandbox import Background, Sandbox, task
from tests.fakes import stand_ins
from tests.keeping import living_keepers
from tests.waiting import eventually

from loopwright.adapters.store.sql import SqlStore
from loopwright.core.rows.events import RecordedEvent
from loopwright.core.rows.model import Attempt, Plan, Task
from loopwright.core.values.errors import NotFound
from loopwright.ports import Tx
from loopwright.testing.scripted import JournalLine, read_journal

R = TypeVar("R")

HALF_DONE = [
    {
        "expect_prompt": "You were interrupted",
        "otherwise": [{"write": "half", "text": "half of it\n"}, {"say": "half done"}, {"hang": 90}],
    },
    {"run": "cp half whole"},
    {"claim": "carried on"},
]
"""An agent that gets no further than half, unless it is told to carry on and finds what it left."""


class Workshop(Sandbox):
    """A sandbox whose state can be asked for at any moment, beside the program itself."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.going: list[Background] = []
        self._store: SqlStore | None = None

    def start(self, *arguments: str) -> Background:
        """Start the program and let it run; what is left at the end of the test is ended."""
        started = super().start(*arguments)
        self.going.append(started)
        return started

    def gate(self, name: str) -> "Gateway":
        """Return a place where something waits until it is let go."""
        return Gateway(self.place / name)

    def play_claude(self, *parts: str, before: str = "") -> None:
        """Let agents be the stand-in for Claude Code, which plays one part after the other, `before` in a shell."""
        stand_in, starts = Path(stand_ins.__file__).parent / "claude.py", self.place / "starts"
        part = f"$(printf '%s\\n' {' '.join(parts)} | sed -n \"$(wc -l < {starts})p\")"
        play = f'exec {sys.executable} -S -I {stand_in} {part} "$@"'
        binary = executable(self.place / "claude", f"{before}echo x >> {starts}\n{play}")
        self.program.env |= {
            "LOOPWRIGHT_AGENT": "claude",
            "LOOPWRIGHT_AGENTS__CLAUDE__BINARY": str(binary),
        }

    # --- what can be seen ----------------------------------------------------------------------------

    def _read(self, work: Callable[[Tx], R]) -> R:
        if self._store is None:
            self._store = SqlStore.open(self.home / "loopwright.db", create=False)
        return self._store.read_sync(work)

    def rows(self, kind: type[R], **where: Any) -> list[R]:
        """Return rows of the home, oldest first."""
        try:
            return self._read(lambda tx: tx.find(kind, order_by=("created_at",), **where))
        except NotFound:
            return []  # the program has not made it yet

    def row(self, kind: type[R], **where: Any) -> R:
        """Return the one row that there is."""
        (found,) = self.rows(kind, **where)
        return found

    def attempts(self, key: str) -> list[Attempt]:
        """Return the attempts at a task of the newest plan, in order."""
        plan = self.rows(Plan)[-1]
        found = self.rows(Attempt, task_id=self.row(Task, plan_id=plan.id, key=key).id)
        return sorted(found, key=lambda attempt: attempt.n)

    def task(self, key: str) -> Task:
        """Return a task of the newest plan."""
        return self.row(Task, plan_id=self.rows(Plan)[-1].id, key=key)

    def events(self, *types: str) -> list[RecordedEvent]:
        """Return what happened, in order."""
        return self._read(lambda tx: tx.events(types=types))

    def journal(self, what: str = "start") -> list[JournalLine]:
        """Return which agents started (or ended), as they noted it themselves."""
        return [line for line in read_journal(self.place / "journal.txt") if line.what == what]

    def started(self) -> list[tuple[str, int]]:
        """Return task and attempt of every agent that started, in order."""
        return [(line.task, line.attempt) for line in self.journal()]

    def started_keys(self) -> list[str]:
        """Return the tasks that agents began, each once, in order."""
        return list(dict.fromkeys(key for key, _ in self.started()))

    def until_started(self, *keys: str) -> None:
        """Wait until an agent is at work on each of these tasks."""
        eventually(lambda: set(keys) <= {line.task for line in self.journal()}, timeout=120)

    def until_half(self) -> Path:
        """Wait until the agent of `HALF_DONE` has left its half; return its workspace."""

        def found() -> list[Path]:
            return list((self.home / "workspaces").glob("*/half")) if self.home.exists() else []

        return eventually(found, timeout=60)[0].parent

    def landed(self) -> list[str]:
        """Return the tasks on the newest plan's branch by their commits' trailers, the oldest first."""
        plan = self.rows(Plan)[-1]
        keys = {row.id: row.key for row in self.rows(Task, plan_id=plan.id)}
        trailer = "--format=%(trailers:key=Loopwright-Task,valueonly,separator=%x2C)"
        ids = self.git("log", "--first-parent", "--reverse", trailer, f"{plan.base_sha}..{plan.branch}")
        return [keys[task_id] for task_id in ids.split()]

    def pinned(self, attempt: Attempt, path: str) -> str:
        """Return a file as the attempt's pinned work has it."""
        ref = f"refs/loopwright/attempts/{attempt.plan_id}/{attempt.task_id}/{attempt.n}"
        return self.git("show", f"{ref}:{path}")

    def untouched(self) -> None:
        """Hold the user's own checkout against what it was before."""
        assert self.git("status", "--porcelain") == ""
        assert self.git("symbolic-ref", "--short", "HEAD").strip() == "trunk"
        assert self.git("rev-list", "--count", "trunk").strip() == "1"

    # --- ready-made plans ----------------------------------------------------------------------------

    def chain(self, *keys: str, steps: Mapping[str, Sequence[Any]] | None = None, **more: Any) -> Path:
        """Write a plan of tasks that wait for each other; each makes a file with its name, or plays other steps."""
        given = steps or {}
        plain = {key: [[{"write": key, "text": f"{key}\n"}]] for key in keys}
        self.play({**plain, **given})
        tasks = [
            task(key, f"test -s {key}", depends_on=[before] if before else [])
            for key, before in zip(keys, (None, *keys), strict=False)
        ]
        return self.plan("chain", tasks, **more)

    def half(self, **more: Any) -> Path:
        """Write a plan whose only agent needs to be interrupted and carried on."""
        self.play({"half": [HALF_DONE]})
        return self.plan("half", [task("half", "test -s whole")], **more)

    def clean_up(self) -> None:
        """End what the test started and what it left running."""
        if self._store is not None:
            self._store.close_sync()
        for one in self.going:
            one.kill()
        keepers = living_keepers(self.home)
        for process in (*keepers, *psutil.process_iter()):
            try:
                if process in keepers or str(self.place) in " ".join(process.cmdline()):
                    process.kill()
            except psutil.Error:
                continue


class Gateway:
    """Something waits at `arrived` until `let_go`: for shell commands of gates, and for steps of agents."""

    def __init__(self, path: Path) -> None:
        self._here = path.with_suffix(".here")
        self._go = path.with_suffix(".go")
        self.shell = f"touch {self._here}; until test -e {self._go}; do sleep 0.05; done"
        self.step = {"wait_for": str(self._go), "timeout": 240}

    def until_reached(self) -> None:
        """Wait until the shell command is there, and forget that it was."""
        eventually(self._here.exists, timeout=60)
        self._here.unlink()

    def let_go(self) -> None:
        """Let everyone through."""
        self._go.touch()


def send(background: Background, number: signal.Signals) -> None:
    """Send a signal to the program alone, as `kill` does."""
    background.process.send_signal(number)


def kill(background: Background) -> None:
    """Kill -9 the program alone."""
    background.process.kill()
    background.process.wait(timeout=30)


def refused(said: subprocess.CompletedProcess[str] | Any, code: int, *words: str) -> None:
    """Hold a refusal against what it should say."""
    assert said.code == code, said.out + said.err
    for word in words:
        assert word in said.err, said.err
