"""Kill -9 in the middle of landing, and two workers that land at once: each commit was judged as it is, none twice."""

import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.chaos.arena import kill
from tests.chaos.landing import (
    AT_ONCE,
    LANDS_NEXT,
    TWO_ARE_FIRST,
    LandingArena,
    check_landed,
    judged_now,
    read,
)
from tests.chaos.test_two_workers import Machine
from tests.loaded import call
from tests.waiting import eventually

from loopwright.adapters.store.sql import SqlStore
from loopwright.core.rows.model import Attempt, Role, Run
from loopwright.core.values.states import AttemptState

SLOTS = 3
MOMENTS = (
    "store.gate.start",
    "keeper.start",
    "store.gate.judged",
    "store.attempt.landing",
    "git.ref",
    "store.attempt.landed",
)
"""All that happens between a candidate and the record of its landing, while no agent starts or ends."""


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Callable[..., LandingArena]]:
    """Return what makes the arena; whatever waits in it at the end of the test is let go."""
    yield partial(LandingArena.build, tmp_path)
    (tmp_path / "open").unlink()


@pytest.mark.capability("C051", "C073")
@pytest.mark.timeout(300)
def test_killing_the_worker_at_every_moment_of_landing_lands_nothing_twice_or_unjudged(
    tmp_path: Path, build: Callable[..., LandingArena]
) -> None:
    good = [f"t{n}" for n in range(5)]
    later = {"run": f"while test -e {tmp_path}/open && test ! -e {tmp_path}/now; do sleep 0.05; done"}
    bad, mended = ({"write": "out/red", "text": text} for text in ("bad\n", "red\n"))
    arena = build(["red", *good], until=LANDS_NEXT, steps={"red": [[later, bad], [mended]]})
    process = arena.start()
    eventually(lambda: any((tmp_path / "judging").iterdir()), timeout=60)
    store = SqlStore.open(arena.home / "loopwright.db", create=False)
    eventually(lambda: len(read(store, Attempt, state=AttemptState.CHECKING)) == len(good), timeout=60)
    eventually(lambda: len(judged_now(store)) == AT_ONCE, timeout=60)
    kill(process)
    killed: list[str] = []

    def kill_at(names: set[str], *, beside: int) -> None:
        """Have the worker killed at each of these moments, while so many are judged."""
        while names:
            seen = tmp_path / f"seen-{len(killed)}"
            more = {"LOOPWRIGHT_FAILPOINT": ",".join(names), "LOOPWRIGHT_FAILPOINT_TRACE": str(seen)}
            said = arena.carry_on(**more)
            assert said.code == -9, said.out + said.err
            # The first of the moments that was reached: another thread may write one more line before the kill.
            killed.append(next(one for one in seen.read_text().split() if one in names))
            names.remove(killed[-1])
            assert len(judged_now(store)) >= beside, f"hardly anyone was judged at {killed[-1]}"

    (tmp_path / "line").write_text(str(len(good)))
    kill_at({f"{name}.{when}" for name in MOMENTS for when in ("before", "after")}, beside=2)
    (tmp_path / "now").touch()
    kill_at({"store.attempt.rejected.before", "store.attempt.rejected.after"}, beside=0)
    said = arena.carry_on()
    assert said.code == 0, said.out + said.err
    check_landed(arena, store)
    store.close_sync()


@pytest.mark.capability("C073")
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "fate",
    [pytest.param("killed", marks=pytest.mark.more), pytest.param("stopped", marks=pytest.mark.long)],
)
def test_two_workers_land_on_one_branch_and_one_of_them_is_lost_in_the_middle(
    tmp_path: Path, build: Callable[..., LandingArena], postgres_url: str, fate: str
) -> None:
    keys = [f"t{n}" for n in range(6)]
    here = f"touch {tmp_path}/started/$$"
    enough = f"test $(ls {tmp_path}/started | wc -l) -gt {SLOTS} || test ! -e {tmp_path}/open"
    together = {"run": f"{here}; until {enough}; do sleep 0.05; done"}
    steps = {key: [[together, {"write": f"out/{key}", "text": f"{key}\n"}]] for key in keys}
    arena = build(keys, until=TWO_ARE_FIRST, steps=steps)
    first, second = (Machine(arena, name, postgres_url) for name in ("first", "second"))
    for machine in (first, second):
        machine.env["LOOPWRIGHT_LEASE"] = "5s"
    # Whoever asks for it is gone at once: only the two are left to do it.
    gone = {**first.env, "LOOPWRIGHT_PARALLEL": "6", "LOOPWRIGHT_FAILPOINT": "store.submit.after"}
    words = ("run", "plan.yaml", "--agent", "scripted")
    said = call(words, cwd=arena.repository, env=arena.env(**gone), timeout=60)
    assert said.code == -9, said.out + said.err
    if fate == "killed":
        # The branch was moved, and that is not written down yet.
        first.env |= {"LOOPWRIGHT_FAILPOINT": "store.attempt.landed.before"}
    lost, heir = (one.start("worker", "--slots", str(SLOTS), "--until-idle") for one in (first, second))
    try:
        if fate == "stopped":
            eventually(lambda: len(list((tmp_path / "seen").iterdir())) >= 3, timeout=90)
            os.kill(lost.pid, signal.SIGSTOP)
        out, err = heir.communicate(timeout=180)
        assert heir.returncode == 0, out[-3000:] + err[-3000:]
    finally:
        heir.kill()
        if fate == "stopped":
            os.kill(lost.pid, signal.SIGCONT)
    out, err = lost.communicate(timeout=90)
    assert lost.returncode == (-9 if fate == "killed" else 0), out[-3000:] + err[-3000:]
    store = SqlStore.open(postgres_url, create=False)
    check_landed(arena, store)
    gates = read(store, Run, role=Role.GATE)
    assert len({run.host_id for run in gates}) == 2, "both of them judged"
    store.close_sync()
