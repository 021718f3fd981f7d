"""Which runs `logs` prints, in which order, and what it says last."""

from dataclasses import replace
from datetime import timedelta

from tests.doubles import Home, planned

from loopwright.core.rows.model import Attempt, Role, Run
from loopwright.services.recordings.log_runs import Wish, choose


async def test_what_the_checks_said_without_the_work_comes_first_and_what_became_of_the_task_last() -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    [leg] = await home.turn()
    home.hand.land(leg)
    [attempt] = home.all(Attempt)
    [agent] = home.all(Run, attempt_id=attempt.id)
    later = agent.created_at + timedelta(seconds=9)
    base = replace(
        agent,
        id="run_baseline",
        role=Role.BASELINE,
        agent=None,
        created_at=later,
        started_at=later,
        cost_micros=None,
    )
    home.store.transact_sync("t", lambda tx: tx.insert(base))
    wish = Wish(target=attempt.task_id, role=None, attempt=None)
    chosen = home.store.read_sync(lambda tx: choose(tx, wish))
    assert [run.id for run in chosen.runs] == [base.id, agent.id]
    assert chosen.became.startswith("a: verified, landed as ")
