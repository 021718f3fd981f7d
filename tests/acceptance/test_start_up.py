"""The command line starts fast, and loads nothing that the command does not need."""

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.acceptance.cli.program import Program, repository

from loopwright.adapters.machine.host import new_id
from loopwright.adapters.store.sql import SqlStore
from loopwright.cli.shell.command_table import COMMANDS
from loopwright.cli.shell.exits import ExitCode
from loopwright.core.values.policy import Policy
from loopwright.engine.intake.submit import Submission, submit
from loopwright.ports import Base, PlannedTask, PlannedWork

NEVER = frozenset({"alembic", "dbos", "fastapi", "psutil", "psycopg", "pydantic"})


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A program whose home has a plan in it, so that there is something to show."""
    return with_a_plan(tmp_path)


def with_a_plan(place: Path) -> Program:
    program = Program(place)
    program.home.mkdir(mode=0o700)
    project = repository(place / "project", {"a.txt": "a"})
    tasks = tuple(PlannedTask(key=f"t{number}", title=f"Task {number}") for number in range(50))
    asked = Submission(
        root=project,
        subfolder="",
        source_kind="yaml",
        source_path="plan.yaml",
        work=PlannedWork(title="Fifty tasks", tasks=tasks, sha256="0" * 64),
        base=Base(ref="trunk", sha="1" * 40),
        policy=Policy(),
        gates=(),
        actor="user:test",
    )
    store = SqlStore.open(program.home / "loopwright.db")
    store.transact_sync("submit", lambda tx: submit(tx, new_id, asked))
    store.close_sync()
    return program


YARDSTICK = ("-c", "import sqlalchemy")
USUAL_S = 0.18
"""What the yardstick takes on a machine of our own with nothing else to do."""


def processor_time(program: Program, *arguments: str) -> float:
    """Return the seconds of processor time of one call of Python, user and system together."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=program.user.parent / "project",
        env=program.env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_utime + used.ru_stime


def loaded(program: Program, *arguments: str) -> set[str]:
    """Return the names of the packages that one call imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "loopwright.cli", *arguments],
        cwd=program.user.parent / "project",
        env=program.env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout
    names = re.findall(r"^import time:\s+\d+ \|\s+\d+ \|\s+(\w+)", done.stderr, re.MULTILINE)
    assert "loopwright" in names
    return set(names)


@pytest.mark.serial
@pytest.mark.parametrize(("arguments", "limit_s"), [(("--help",), 0.3), (("status",), 0.5)])
def test_a_command_that_only_looks_takes_little_processor_time(
    program: Program, arguments: tuple[str, ...], limit_s: float
) -> None:
    # Where others use the same cores and caches, a second of the processor does less: so both are measured now.
    slower = max(1.0, min(processor_time(program, *YARDSTICK) for _ in range(3)) / USUAL_S)
    used = min(processor_time(program, "-m", "loopwright.cli", *arguments) for _ in range(3))
    assert used < limit_s * slower


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (("--help",), {"asyncio", "ruamel", "sqlalchemy"}),
        (("status",), {"asyncio", "ruamel", "sqlalchemy"}),
        (("show", "t0"), {"ruamel", "sqlalchemy"}),
        (("pause",), {"ruamel", "sqlalchemy"}),
        (("worker", "--until-idle"), {"ruamel", "sqlalchemy", "xml"}),
    ],
)
def test_a_command_loads_only_what_it_needs(
    program: Program, arguments: tuple[str, ...], unwanted: set[str]
) -> None:
    assert loaded(program, *arguments) & (NEVER | unwanted) == set()


ENOUGH = {
    "plan": ("plan", "check", "plan.json"),
    "receipt": ("receipt", "verify", "none.json"),
    "config": ("config", "show"),
    "watch": ("watch", "nothing"),
    "init": ("init", "--help"),
    "demo": ("demo", "--help"),
    "worker": ("worker", "--until-idle"),
    "run": ("run", "none.yaml"),
    # These serve until they are ended, or open a browser.
    **{name: (name, "--help") for name in ("serve", "up", "restart", "open", "mcp")},
}
"""For each command that needs more than its name, words with which it does little."""


NAMED = frozenset({"cancel", "logs", "retry", "show"})


@pytest.mark.parametrize(
    "share", [pytest.param(0.15, id="some"), pytest.param(1, id="all", marks=pytest.mark.more)]
)
def test_every_command_finds_all_it_needs_when_it_is_started_from_nothing(
    program: Program, share: float
) -> None:
    project = program.user.parent / "project"
    for command in random.SystemRandom().sample(list(COMMANDS), round(len(COMMANDS) * share)):
        words = ENOUGH.get(command, (command, *(["t0"] if command in NAMED else [])))
        said = program(*words, cwd=project, fresh=True)
        assert said.code in set(ExitCode), f"{command} did not end in its own words: {said.err}"
        assert said.out + said.err, command
