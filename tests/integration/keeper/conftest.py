"""Real keepers over real processes."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import psutil
import pytest

from loopwright.adapters.processes.keeper_files import read_status
from loopwright.adapters.processes.keepers import ProcessKeepers
from loopwright.core.values.policy import Limits
from loopwright.ports import OutputLine, RunSpec

PATH = "/usr/local/bin:/usr/bin:/bin"
MakeSpec = Callable[..., RunSpec]


@pytest.fixture(scope="session")
def keepers() -> Iterator[ProcessKeepers]:
    """Keepers that are forked from one process for all tests: each would have to load it first."""
    keepers = ProcessKeepers()
    yield keepers
    keepers.close()


@pytest.fixture
def make_spec(tmp_path: Path) -> Iterator[MakeSpec]:
    """Make specs whose runs are ended with the test, however it ends."""
    made: list[RunSpec] = []

    def make(
        *argv: str, sh: str = "", py: str = "", limits: dict[str, Any] | None = None, **more: Any
    ) -> RunSpec:
        if sh:
            argv = ("/bin/sh", "-c", sh)
        if py:
            argv = (sys.executable, "-I", "-S", "-c", py)
        values: dict[str, Any] = {
            "run_id": f"run_{uuid4()}",
            "directory": tmp_path / f"run{len(made)}",
            "argv": argv,
            "cwd": tmp_path,
            "env": {"PATH": PATH},
            "limits": Limits(**{"term_grace": 0.3, **(limits or {})}),
        }
        spec = RunSpec(**{**values, **more})
        made.append(spec)
        return spec

    yield make
    for spec in made:
        anyio.run(_end, spec)


async def _end(spec: RunSpec) -> None:
    keepers = ProcessKeepers()
    if keepers.look(spec.directory).state != "absent":
        await keepers.end(spec.directory, polite=False)
    await keepers.sweep(spec.run_id)


async def all_lines(keepers: ProcessKeepers, spec: RunSpec, offset: int = 0) -> list[OutputLine]:
    return [line async for line in keepers.follow(spec.directory, offset)]


async def text_of(keepers: ProcessKeepers, spec: RunSpec) -> list[str]:
    return [line.text for line in await all_lines(keepers, spec)]


async def first_line(keepers: ProcessKeepers, spec: RunSpec) -> str:
    async for line in keepers.follow(spec.directory):
        return line.text
    raise AssertionError("the run ended without a line")


def keeper_of(spec: RunSpec) -> psutil.Process:
    return psutil.Process((read_status(spec.directory) or {})["keeper"]["pid"])


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
