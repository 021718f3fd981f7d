"""A `run` that hangs holds up its plan until the daemon replaces it."""

import signal

import pytest
from tests.acceptance.control.workshop import send
from tests.acceptance.server.conftest import Served
from tests.waiting import eventually

from loopwright.core.rows.model import Plan


@pytest.mark.capability("C087")
def test_the_daemon_ends_a_run_that_hangs_and_takes_over_its_plan_and_its_agent(served: Served) -> None:
    served.program.env["LOOPWRIGHT_MONITOR__HUNG"] = "2s"
    agent = served.gate("agent")
    plan = served.chain("one", "two", steps={"one": [[agent.step, {"write": "one", "text": "1\n"}]]})
    driver = served.start("run", str(plan))
    served.until_started("one")
    send(driver, signal.SIGSTOP)
    served.serve()
    eventually(lambda: driver.process.poll() is not None, timeout=60)
    agent.let_go()
    eventually(lambda: served.row(Plan).status == "VERIFIED", timeout=90)
    assert served.started() == [("one", 1), ("two", 1)], "the agent was adopted, not started again"
    [lost] = served.events("worker_lost")
    assert lost.payload["pid"] == driver.process.pid
