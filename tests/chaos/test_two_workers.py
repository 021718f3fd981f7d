"""Two machines on one PostgreSQL home: the death of one is the other's work, and a sleeper lands nothing."""

import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest
from tests.chaos.arena import Arena
from tests.keeping import living_keepers
from tests.waiting import eventually

TIMES = {"LOOPWRIGHT_LEASE": "2s", "LOOPWRIGHT_HOST_LOST_AFTER": "2s", "LOOPWRIGHT_PARALLEL": "3"}


class Machine:
    """One worker with files of its own: to the others a machine of its own."""

    def __init__(self, arena: Arena, name: str, url: str) -> None:
        self.arena = arena
        self.home = arena.root / name
        self.env = {"LOOPWRIGHT_HOME": str(self.home), "LOOPWRIGHT_DATABASE": url, **TIMES}

    def start(self, *words: str) -> subprocess.Popen[str]:
        return self.arena.start(*words, **self.env)

    def processes(self) -> list[psutil.Process]:
        """Return the keepers of this machine and everything below them."""
        found = []
        for keeper in living_keepers(self.home):
            try:
                found += [keeper, *keeper.children(recursive=True)]
            except psutil.Error:
                continue
        return found


def _inherit(machine: Machine) -> dict:  # type: ignore[type-arg]
    """Let a machine work until nothing is left, and return what it says of the plan."""
    heir = machine.start("worker", "--slots", "3", "--until-idle")
    out, err = heir.communicate(timeout=180)
    assert heir.returncode == 0, out[-3000:] + err[-3000:]
    said = machine.arena.carry_on("run", "plan.yaml", "--agent", "scripted", "--json", **machine.env)
    assert said.code == 0, said.out[-3000:] + said.err[-3000:]
    return said.document


@pytest.fixture
def arena(tmp_path: Path) -> Arena:
    return Arena.make(tmp_path, work_s=1.0, tasks=3)


@pytest.mark.more
@pytest.mark.timeout(240)
def test_a_dead_machine_is_replaced_after_a_while(arena: Arena, postgres_url: str) -> None:
    first, second = Machine(arena, "first", postgres_url), Machine(arena, "second", postgres_url)
    doomed = first.start("run", "plan.yaml", "--agent", "scripted", "--json")
    eventually(lambda: arena.journal.exists() and len(arena.entries()) >= 2, timeout=60)
    for victim in (psutil.Process(doomed.pid), *first.processes()):
        try:
            victim.kill()
        except psutil.NoSuchProcess:
            continue
    doomed.communicate(timeout=30)
    arena.check(_inherit(second), attempts_may_repeat=True)


@pytest.mark.timeout(240)
def test_a_worker_that_slept_past_its_lease_lands_nothing(arena: Arena, postgres_url: str) -> None:
    first, second = Machine(arena, "first", postgres_url), Machine(arena, "second", postgres_url)
    sleeper = first.start("run", "plan.yaml", "--agent", "scripted", "--json")
    eventually(lambda: arena.journal.exists() and len(arena.entries()) >= 2, timeout=60)
    os.kill(sleeper.pid, signal.SIGSTOP)
    try:
        result = _inherit(second)
        before = arena.git("rev-parse", result["plan"]["branch"])
    finally:
        os.kill(sleeper.pid, signal.SIGCONT)
    out, err = sleeper.communicate(timeout=90)
    assert sleeper.returncode == 0, out[-3000:] + err[-3000:]
    assert arena.git("rev-parse", result["plan"]["branch"]) == before
    arena.check(result, attempts_may_repeat=True)
