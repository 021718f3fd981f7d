"""The daemon is killed: during requests, and while many loops run. Nothing is lost, and nothing is done twice."""

import random
from collections import Counter

import httpx
import pytest
from tests.acceptance.sandbox import task
from tests.acceptance.server.conftest import Served
from tests.waiting import eventually

from loopwright.core.rows.access_rows import Token
from loopwright.core.rows.model import Loop, Plan, Project


def _registered(served: Served, count: int) -> str:
    """Give a project with a recorded environment so many plans with a task each; return its id."""
    steps = {f"t{n}": [[{"write": f"t{n}", "text": "1\n"}]] for n in range(count)}
    served.play({"first": [[{"write": "first", "text": "1\n"}]], **steps})
    assert served.run(served.plan("first", [task("first", "test -s first")])).code == 0
    for n in range(count):
        path = served.plan(f"loop-{n}", [task(f"t{n}", f"test -s t{n}")])
        path.rename(served.repository / path.name)
    return served.row(Project).id


@pytest.mark.parametrize(
    ("moment", "made"),
    [
        pytest.param("store.reply.begin.before", 0, marks=pytest.mark.more),
        pytest.param("store.token.create.before", 0, marks=pytest.mark.api),
        ("store.token.create.after", 1),
        pytest.param("store.reply.begin.after", 0, marks=pytest.mark.api),
        pytest.param("store.reply.keep.before", 1, marks=pytest.mark.api),
        pytest.param("store.reply.keep.after", 1, marks=pytest.mark.api),
    ],
)
def test_a_request_during_which_the_daemon_was_killed_is_carried_out_once_or_not_at_all(
    served: Served, moment: str, made: int
) -> None:
    served.serve().kill()  # its first start makes the owner's token
    served.program.env["LOOPWRIGHT_FAILPOINT"] = moment
    served.serve()
    del served.program.env["LOOPWRIGHT_FAILPOINT"]
    wanted, key = {"name": "mine"}, {"Idempotency-Key": "one"}
    with served.client() as client, pytest.raises(httpx.HTTPError):
        client.post("/api/tokens", json=wanted, headers=key)
    assert len(served.rows(Token, name="mine")) == made
    served.serve()
    with served.client() as client:
        again = client.post("/api/tokens", json=wanted, headers=key)
        if again.status_code != 201:
            assert again.json()["code"] in ("request_outcome_unknown", "reply_not_kept"), again.text
            anew = client.post("/api/tokens", json=wanted, headers={"Idempotency-Key": "two"})
            assert anew.status_code == (409 if made else 201), anew.text
    assert len(served.rows(Token, name="mine")) == 1


def _kill_and_restart(served: Served, loops: int, kills: int, seed: int) -> None:
    """Start loops over HTTP, and kill the daemon again and again at random moments until all have ended."""
    chance = random.Random(seed)
    project = _registered(served, loops)
    daemon = served.serve("--slots", "4")
    ids = []
    for n in range(loops):
        made = served.post("/api/loops", {"project_id": project, "source": f"loop-{n}.yaml"})
        assert made.status_code == 201, made.text
        ids.append(made.json()["id"])
    for one in ids:
        assert served.post(f"/api/loops/{one}/start").status_code == 202
    last = served.get("/api/events", after=0, limit=1)["last"]
    for _ in range(kills):
        until = last + chance.randrange(1, 12 * loops // (kills + 1) + 2)
        eventually(lambda n=until: _newest(served) >= n or _ended(served) == loops, timeout=120)
        daemon.kill()
        last = _newest(served)
        daemon = served.serve("--slots", "4")
    eventually(lambda: _ended(served) == loops, timeout=240)
    plans = [one for one in served.rows(Plan) if one.loop_id in ids]
    assert Counter(one.loop_id for one in plans) == dict.fromkeys(ids, 1), "each loop has one plan"
    assert {one.status for one in plans} == {"VERIFIED"}
    began = Counter(key for key, _ in served.started())
    assert began == {"first": 1, **{f"t{n}": 1 for n in range(loops)}}, "no agent started twice"
    numbers = [one.n for one in served.events()]
    assert numbers == list(range(1, len(numbers) + 1))
    kinds = Counter((one.plan, one.type) for one in served.events())
    for plan in plans:
        for kind in ("plan_created", "plan_dispatched", "plan_completed", "plan_verified"):
            assert kinds[plan.id, kind] == 1, (plan.id, kind)


def _newest(served: Served) -> int:
    return served._read(lambda tx: tx.last_event())


def _ended(served: Served) -> int:
    return sum(one.state == "COMPLETED" for one in served.rows(Loop)) - 1


def test_killing_the_daemon_while_loops_run_loses_and_doubles_nothing(served: Served) -> None:
    _kill_and_restart(served, loops=4, kills=2, seed=1)


@pytest.mark.api
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(3))
def test_killing_the_daemon_while_twenty_loops_run_loses_and_doubles_nothing(
    served: Served, seed: int
) -> None:
    _kill_and_restart(served, loops=20, kills=6, seed=seed)
