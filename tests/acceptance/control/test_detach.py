"""A plan can be left to the background, and a worker can be followed without being held up."""

import os

import psutil
import pytest
from tests.acceptance.control.workshop import Workshop, refused
from tests.acceptance.sandbox import task
from tests.waiting import eventually

from loopwright.core.rows.model import Plan


@pytest.mark.capability("C077")
def test_run_detach_leaves_the_plan_to_a_process_of_its_own_session(shop: Workshop) -> None:
    agent = shop.gate("agent")
    shop.program.env["WORD"] = "swordfish"
    steps = {"one": [[agent.step, {"run": 'test "$WORD" = swordfish && echo 1 > one'}]]}
    plan = shop.chain("one", "two", steps=steps, settings={"environment": ["WORD"]})
    said = shop.run(plan, "--detach")
    assert said.code == 0, said.out + said.err
    (row,) = shop.rows(Plan)
    short = row.id[:13]
    for command in ("watch", "pause", "stop"):
        assert f"loopwright {command} {short}" in said.out
    log = shop.home / "detached" / f"{row.id}.log"
    assert str(log) in said.out.replace("\n", "")
    shop.until_started("one")
    (pid,) = [event.payload["pid"] for event in shop.events("worker_joined")]
    assert f"process {pid} executes it in the background" in said.out
    assert os.getsid(pid) == pid, "no terminal ends it"
    refused(shop.run(plan), 5, f"already being worked on by process {pid}", f"loopwright watch {row.id}")
    agent.let_go()
    eventually(lambda: not psutil.pid_exists(pid), timeout=90)
    assert shop.row(Plan).status == "VERIFIED"
    assert "VERIFIED  2/2 tasks" in log.read_text()


@pytest.mark.capability("C077")
def test_ctrl_c_only_stops_following_a_worker_and_detach_leaves_the_plan_to_it(shop: Workshop) -> None:
    agent = shop.gate("agent")
    worker = shop.start("worker")
    worker.until("working in")
    run = shop.start(
        "run", str(shop.chain("one", steps={"one": [[agent.step, {"write": "one", "text": "1\n"}]]}))
    )
    shop.until_started("one")
    run.interrupt()
    assert run.end() == 3, run.out
    assert f"process {worker.process.pid} executes this plan; Ctrl-C only stops following it" in run.out
    assert f"Stopped following: process {worker.process.pid} continues the plan." in run.out
    assert "loopwright watch plan_" in run.out
    assert "loopwright pause plan_" in run.out
    agent.let_go()
    eventually(lambda: shop.row(Plan).status == "VERIFIED", timeout=90)
    shop.play({"three": [[{"write": "three", "text": "3\n"}]]})
    said = shop.run(shop.plan("other", [task("three", "test -s three")]), "--detach", "--json")
    assert said.code == 0, said.out + said.err
    assert said.document["worker"] == {"pid": worker.process.pid, "log": None}
    eventually(lambda: [plan.status for plan in shop.rows(Plan)] == ["VERIFIED"] * 2, timeout=90)
