"""On a home in PostgreSQL: an agent that waits for the budget takes no place from the others."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.acceptance.control.money.test_costs import spent
from tests.acceptance.control.workshop import Workshop, kill
from tests.acceptance.sandbox import task
from tests.waiting import eventually

psycopg = pytest.importorskip("psycopg")
pytestmark = [
    pytest.mark.capability("C075"),
    # To load it takes a second: not for every process that only collects.
    pytest.mark.skipif(find_spec("dbos") is None, reason="no DBOS"),
]


@pytest.fixture
def shop(tmp_path: Path, postgres_url: str) -> Iterator[Workshop]:
    shop = Workshop(tmp_path)
    shop.program.env |= {"LOOPWRIGHT_DATABASE": postgres_url, "LOOPWRIGHT_LEASE": "2s"}
    yield shop
    shop.clean_up()


def places_taken(url: str) -> int:
    """Return how many legs the workers of a home have."""
    from loopwright.adapters.dispatch import dbos

    with psycopg.connect(url) as connection:
        found = connection.execute(
            f"SELECT count(*) FROM {dbos.SCHEMA}.workflow_status WHERE status IN ('ENQUEUED', 'PENDING')"
        ).fetchone()
    assert found is not None
    return int(found[0])


@pytest.mark.timeout(240)
def test_who_waits_for_the_budget_takes_no_place_and_goes_on_when_an_agent_that_was_left_has_ended(
    shop: Workshop, postgres_url: str
) -> None:
    hold = shop.gate("hold")
    shop.play({key: [[{"write": key, "text": "x"}, hold.step, spent(0.2)]] for key in "ab"})
    settings = {"max_cost": 0.75, "parallel": 2}
    tasks = [task("a", "test -s a"), task("b", "test -s b")]
    going = shop.start("run", str(shop.plan("two", tasks, settings=settings)))

    def doing() -> set[str]:
        said = shop("status", "--json").document
        return {one["doing"] for one in said["plan"]["tasks"]}

    eventually(shop.started, timeout=60)
    eventually(lambda: "waits for agents that run to leave enough of the budget" in doing(), timeout=60)
    eventually(lambda: places_taken(postgres_url) == 1, timeout=30)
    kill(going)
    heir = shop.start("worker", "--slots", "1", "--until-idle")
    heir.until("working in")
    eventually(lambda: places_taken(postgres_url) == 1, timeout=30)
    hold.let_go()
    assert heir.end(120) == 0, heir.out
    assert sorted(key for key, _ in shop.started()) == ["a", "b"], "each agent was started once"
