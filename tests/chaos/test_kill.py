"""Kill -9 changes nothing: the real command line, killed at random and at every named moment."""

import random
import subprocess
from pathlib import Path

import psutil
import pytest
from tests.chaos.arena import Arena, kill
from tests.waiting import eventually


@pytest.mark.capability("C051", "C053", "C054", "C055")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("wanted", [5, pytest.param(25, marks=pytest.mark.long)])
def test_killing_the_orchestrator_at_random_moments_loses_and_doubles_nothing(
    tmp_path: Path, wanted: int
) -> None:
    # Long enough that the plan is not done before the last kill.
    arena = Arena.make(tmp_path, work_s=0.4 * wanted)
    chance = random.Random(20260101)
    kills = 0
    for _ in range(wanted * 3):
        process = arena.start()
        try:
            process.wait(timeout=0.4 + chance.random() * 1.2)
        except subprocess.TimeoutExpired:
            kill(process)
            kills += 1
            if kills == wanted:
                break
        else:
            pytest.fail(f"it ended after {kills} kills: {process.communicate()}")
    arena.check(arena.finish(timeout=200))
    assert kills == wanted
    eventually(lambda: not arena.processes(), timeout=60)


@pytest.mark.capability("C051")
@pytest.mark.trap("crash at a write")
@pytest.mark.timeout(300)
def test_killing_the_orchestrator_at_every_named_moment_loses_and_doubles_nothing(tmp_path: Path) -> None:
    reference = Arena.make(tmp_path / "reference", tasks=4)
    trace = tmp_path / "trace"
    said = reference.carry_on(LOOPWRIGHT_FAILPOINT_TRACE=str(trace))
    assert said.code == 0, said.out + said.err
    names = set(trace.read_text().split())
    for needed in ("store.submit", "git.ref", "keeper.start", "store.attempt.landed", "store.verify.over"):
        assert {f"{needed}.before", f"{needed}.after"} <= names
    arena = Arena.make(tmp_path / "arena", tasks=5)
    left, killed = set(names), []
    while left:
        seen = tmp_path / f"seen-{len(killed)}"
        more = {"LOOPWRIGHT_FAILPOINT": ",".join(sorted(left)), "LOOPWRIGHT_FAILPOINT_TRACE": str(seen)}
        said = arena.carry_on(**more)
        if said.code == 0:
            break
        assert said.code == -9, f"{said.out}\n{said.err}"
        # Another thread may write one more line before the kill.
        hit = next(one for one in seen.read_text().split() if one in left)
        killed.append(hit)
        left.discard(hit)
    # What is left happens only when nobody is killed (leaving in good order), or never twice in one plan.
    assert {name for name in left if not name.startswith(("store.worker.left", "store.outbox"))} == set()
    arena.check(arena.finish())
    assert len(killed) >= 40


@pytest.mark.timeout(240)
def test_killing_keepers_costs_their_attempts_and_nothing_else(tmp_path: Path) -> None:
    arena = Arena.make(tmp_path, work_s=0.5)
    process = arena.start()
    murdered: set[int] = set()

    def murder() -> bool:
        for keeper in arena.keepers():
            if keeper.pid not in murdered and len(murdered) < 4:
                try:
                    keeper.kill()
                except psutil.NoSuchProcess:
                    continue
                murdered.add(keeper.pid)
                break
        return len(murdered) >= 4 or process.poll() is not None

    eventually(murder, timeout=90, every=0.15)
    assert len(murdered) >= 2
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, out + err + arena.log()
    arena.check(arena.finish(), attempts_may_repeat=True)
    assert len(murdered) == 4
    eventually(lambda: not arena.processes(), timeout=60)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "times", [pytest.param(2, marks=pytest.mark.more), pytest.param(3, marks=pytest.mark.long)]
)
def test_a_reboot_costs_the_running_attempts_and_nothing_else(tmp_path: Path, times: int) -> None:
    arena = Arena.make(tmp_path, work_s=0.4)
    for round_ in range(times):
        process = arena.start()
        wanted = 2 + 3 * round_
        eventually(
            lambda wanted=wanted: len([e for e in _entries(arena) if e.what == "start"]) >= wanted, timeout=60
        )
        for victim in (psutil.Process(process.pid), *arena.processes()):
            try:
                victim.kill()
            except psutil.NoSuchProcess:
                continue
        process.communicate(timeout=30)
    arena.check(arena.finish(), attempts_may_repeat=True)


def _entries(arena: Arena) -> list:  # type: ignore[type-arg]
    return arena.entries() if arena.journal.exists() else []
