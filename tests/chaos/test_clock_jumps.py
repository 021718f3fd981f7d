"""The wall clock of the whole machine jumps by hours while the program works; every other clock goes on."""

import json
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.acceptance.control.workshop import Gateway, Workshop
from tests.acceptance.sandbox import Background, task
from tests.chaos.wall_clock import HOUR, MISSING, WallClock
from tests.waiting import eventually

from loopwright.core.rows.model import Attempt, Plan, Run, Task

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

# The other direction of each is for `make test-long`.
forward_at_least = pytest.mark.parametrize(
    "hours", [pytest.param(3, id="forward"), pytest.param(-3, id="backward", marks=pytest.mark.long)]
)
backward_at_least = pytest.mark.parametrize(
    "hours", [pytest.param(-3, id="backward"), pytest.param(3, id="forward", marks=pytest.mark.long)]
)

LONGEST_S = 600.0
"""No run of these tests lasts longer, so a length above it is the jump."""


def lengths(document: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Find every length of time that a document tells."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key.endswith("_s") and isinstance(value, int | float):
                yield f"{path}.{key}", value
            else:
                yield from lengths(value, f"{path}.{key}")
    elif isinstance(document, list):
        for n, value in enumerate(document):
            yield from lengths(value, f"{path}[{n}]")


def sane(document: Any) -> None:
    """No length is negative, and none but the age of a plan, which is told by the time of day, has the jump in it."""
    found = dict(lengths(document))
    assert found
    of_plans = {".plan.elapsed_s", ".plans[0].changed_s"}
    assert not {where: length for where, length in found.items() if length < 0}
    assert not {
        where: length for where, length in found.items() if length > LONGEST_S and where not in of_plans
    }


def seen_by_the_worker(shop: Workshop, hours: int) -> Callable[[], bool]:
    """Say whether the worker has made a pass by the new clock: it writes down a sign of life with its time."""
    there = datetime.now(UTC) + timedelta(hours=hours)

    def seen() -> bool:
        (file,) = (shop.repository / ".loopwright" / "health").glob("*.json")
        beat = datetime.fromisoformat(json.loads(file.read_text())["last_heartbeat"])
        return abs(beat - there) < timedelta(hours=1)

    return seen


def done_once(shop: Workshop, going: Background, *keys: str) -> None:
    """Hold the end of a plan against the promises: verified, each task landed once, no run repeated."""
    assert going.end(timeout=90) == 0, going.out
    assert shop.row(Plan).status == "VERIFIED"
    assert sorted(shop.landed()) == sorted(keys)
    for kind in (Task, Attempt, Run):
        assert all(row.plan_id for row in shop.rows(kind))
    receipt = f".loopwright/receipts/{shop.row(Plan).id}.json"
    asked = [["status", "--json"], *(["show", key, "--json"] for key in keys), ["receipt", "verify", receipt]]
    *shown, verified = told(shop, asked)
    for code, out in shown:
        assert code == 0, out
        sane(json.loads(out))
    assert verified[0] == 0, verified[1]
    for run in shop.rows(Run):
        assert run.started_at is not None
        assert run.ended_at is not None
        assert timedelta() <= run.ended_at - run.started_at < timedelta(seconds=LONGEST_S), run
    shop.untouched()


TELL = """
import contextlib, io, json, sys
from loopwright.cli.main import call

said = []
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = call(words)
    said.append((code, out.getvalue()))
print(json.dumps(said))
"""


def told(shop: Workshop, commands: list[list[str]]) -> list[tuple[int, str]]:
    """Return what the program says to some commands, in one process of that clock: each has to be loaded anew."""
    done = subprocess.run(
        [shop.program.python, "-c", TELL, json.dumps(commands)],
        cwd=shop.repository,
        env=shop.program.env,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return [(code, out) for code, out in json.loads(done.stdout)]


@forward_at_least
@pytest.mark.timeout(300)
def test_a_jump_while_agents_work(shop: Workshop, clock: WallClock, hours: int) -> None:
    hold = shop.gate("hold")
    steps = {key: [[hold.step, {"write": key, "text": key}]] for key in ("one", "two")}
    shop.play(steps)
    going = shop.start("run", str(shop.plan("jump", [task(key, f"test -s {key}") for key in steps])))
    shop.until_started("one", "two")
    clock.jump(hours * HOUR)
    eventually(seen_by_the_worker(shop, hours), timeout=30)
    sane(shop("status", "--json").document)
    assert shop.started() == [(line.task, 1) for line in shop.journal()]
    hold.let_go()
    done_once(shop, going, "one", "two")
    assert sorted(shop.started()) == [("one", 1), ("two", 1)]


@pytest.mark.more
@backward_at_least
@pytest.mark.timeout(300)
def test_a_jump_while_a_gate_runs(shop: Workshop, clock: WallClock, hours: int) -> None:
    hold: Gateway = shop.gate("hold")
    shop.play({"one": [[{"write": "one", "text": "1"}]]})
    going = shop.start("run", str(shop.plan("jump", [task("one", f"{hold.shell}; test -s one")])))
    hold.until_reached()
    clock.jump(hours * HOUR)
    eventually(seen_by_the_worker(shop, hours), timeout=30)
    sane(shop("status", "--json").document)
    hold.let_go()
    done_once(shop, going, "one")
    assert shop.started() == [("one", 1)]
    assert len(shop.rows(Run)) == 3, "the agent, the check of its work, and the verification"


@backward_at_least
@pytest.mark.parametrize("failure", ["overloaded", pytest.param("crash", marks=pytest.mark.more)])
def test_a_jump_during_the_pause_before_a_retry(
    shop: Workshop, clock: WallClock, hours: int, failure: str
) -> None:
    """A pause of seconds must not become one of hours."""
    steps = {
        "overloaded": [
            [{"expect_prompt": "You were interrupted", "otherwise": [{"fail": "overloaded"}]}, WRITE]
        ],
        "crash": [[{"crash": "SIGKILL"}], [WRITE]],
    }
    shop.play({"one": steps[failure]})
    going = shop.start("run", str(shop.plan("jump", [task("one", "test -s one")])))
    shop.until_started("one")
    eventually(lambda: any(waits(shop)), timeout=60, every=0.005)
    clock.jump(hours * HOUR)
    sane(shop("status", "--json").document)
    done_once(shop, going, "one")
    assert len(shop.started()) == 2, "the one that failed, and one more"


WRITE = {"write": "one", "text": "1"}


def waits(shop: Workshop) -> Iterator[bool]:
    yield from (one.state == "WAITING" and one.wake_at is not None for one in shop.rows(Attempt))
    yield from (one.not_before is not None for one in shop.rows(Task))
