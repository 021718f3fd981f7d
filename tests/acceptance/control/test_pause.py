"""`pause`, `stop` and `resume`, with and without somebody at work."""

import pytest
from tests.acceptance.control.workshop import Workshop, kill, refused
from tests.acceptance.sandbox import task
from tests.waiting import eventually

from loopwright.core.rows.model import Loop, Plan, Role, Run


def _paused(shop: Workshop) -> None:
    attempt = shop.attempts("half")[0]
    assert (attempt.state, attempt.wait_reason) == ("WAITING", "paused by a person")
    assert shop.pinned(attempt, "half") == "half of it\n", "the work of an interrupted agent is kept"


def _carried_on(shop: Workshop, workspace: str) -> None:
    (attempt,) = shop.attempts("half")
    assert attempt.state == "LANDED"
    assert attempt.workspace == workspace, "it went on in the very same workspace"
    assert shop.started() == [("half", 1), ("half", 1)]
    first, second = shop.rows(Run, role=Role.IMPLEMENTER)
    assert (first.state, second.state) == ("CANCELLED", "COMPLETE")
    assert first.session_ref == second.session_ref, "the agent's own conversation goes on"
    assert shop.landed() == ["half"]


@pytest.mark.capability("C030", "C097")
@pytest.mark.trap("pause under way")
def test_pause_lets_a_running_agent_finish_and_starts_nothing_more(shop: Workshop) -> None:
    agent = shop.gate("agent")
    steps = {"one": [[agent.step, {"write": "one", "text": "1\n"}]]}
    run = shop.start("run", str(shop.chain("one", "two", steps=steps)))
    shop.until_started("one")
    said = shop("pause")
    assert (said.code, said.out.splitlines()[0]) == (0, "paused; 1 running attempt may finish")
    assert shop.row(Loop).state == "PAUSED"
    agent.let_go()
    assert run.end() == 3, run.out
    assert "  loopwright resume" in run.out
    assert shop.landed() == ["one"]
    assert shop.task("two").status == "QUEUED"
    assert shop("resume").code == 0
    assert shop.started() == [("one", 1), ("two", 1)]
    assert shop.landed() == ["one", "two"]


@pytest.mark.capability("C030", "C053", "C097")
@pytest.mark.trap("lost resume", "pause under way", "stale signal")
def test_pause_now_interrupts_the_agent_and_resume_goes_on_where_it_was(shop: Workshop) -> None:
    run = shop.start("run", str(shop.half()))
    workspace = shop.until_half()
    said = shop("pause", "--now")
    assert "1 running attempt is asked to stop, its work is kept" in said.out
    assert run.end() == 3, run.out
    _paused(shop)
    assert (workspace / "half").exists()
    shop.until_quiet()
    assert shop("pause").out.startswith("already paused\n")
    said = shop("resume", timeout=90)
    assert said.code == 0, said.out + said.err
    assert "VERIFIED  1/1 tasks" in said.out
    _carried_on(shop, str(workspace))
    refused(shop("resume"), 2, "the plan is VERIFIED")


@pytest.mark.capability("C053", "C097")
def test_pause_and_resume_are_carried_out_by_the_worker_that_is_there(shop: Workshop) -> None:
    worker = shop.start("worker")
    worker.until("working in")
    run = shop.start("run", str(shop.half()))
    workspace = shop.until_half()
    assert shop("pause", "--now").code == 0
    assert run.end() == 3, run.out
    eventually(lambda: shop.attempts("half")[0].state == "WAITING")
    _paused(shop)
    assert worker.process.poll() is None
    said = shop("resume")
    assert (said.code, said.out.splitlines()[0]) == (0, "resumed")
    assert shop("watch", timeout=90).code == 0
    _carried_on(shop, str(workspace))
    worker.process.terminate()
    assert worker.end() == 0, worker.out


@pytest.mark.trap("orphaned agents")
def test_pause_now_ends_the_agents_that_a_killed_worker_left(shop: Workshop) -> None:
    run = shop.start("run", str(shop.half()))
    workspace = shop.until_half()
    kill(run)
    assert shop.processes(), "agents outlive the worker"
    said = shop("pause", "--now")
    assert said.code == 0, said.out + said.err
    shop.until_quiet()
    _paused(shop)
    assert shop("resume", timeout=90).code == 0
    _carried_on(shop, str(workspace))


def test_pausing_one_plan_without_a_worker_starts_no_agent_of_another(shop: Workshop) -> None:
    """A home may hold plans that nobody works on at the moment: a pause is no reason to begin."""
    run = shop.start("run", str(shop.half()))
    shop.until_half()
    kill(run)
    shop.play({"other": [[{"write": "other", "text": "x\n"}]]})
    other = shop.plan("other", [task("other", "test -s other")])
    shop.program.env["LOOPWRIGHT_FAILPOINT"] = "store.submit.after"  # submitted, and killed that very moment
    assert shop.run(other).code == -9
    del shop.program.env["LOOPWRIGHT_FAILPOINT"]
    half = shop.rows(Plan)[0]
    said = shop("pause", half.id, "--now")
    assert said.code == 0, said.out + said.err
    shop.until_quiet()
    assert shop.started() == [("half", 1)]


@pytest.mark.capability("C097")
def test_a_stopped_plan_goes_on_with_the_gate_that_was_interrupted(shop: Workshop) -> None:
    gate = shop.gate("gate")
    shop.play({"one": [[{"write": "one", "text": "1\n"}]]})
    run = shop.start("run", str(shop.plan("gated", [task("one", gate.shell)])))
    gate.until_reached()
    said = shop("stop")
    assert "stopped; 1 running attempt is asked to stop" in said.out
    assert run.end() == 3, run.out
    assert shop.row(Loop).state == "STOPPED"
    assert shop.attempts("one")[0].state == "CHECKING"
    shop.until_quiet()
    gate.let_go()
    assert shop("resume", timeout=90).code == 0
    assert shop.started() == [("one", 1)], "no agent was asked again for work that only had to be checked"
    assert shop.landed() == ["one"]


def test_a_verification_that_was_stopped_or_paused_is_begun_anew(shop: Workshop) -> None:
    gate = shop.gate("gate")
    # Only gate:all has no attempt.
    last = {"name": "last", "run": f'test -n "$LOOPWRIGHT_ATTEMPT" || {{ {gate.shell}; }}'}
    run = shop.start("run", str(shop.chain("one", gates=[last])))
    for verb in (("stop",), ("pause", "--now")):
        gate.until_reached()
        assert shop(*verb).code == 0
        assert run.end() == 3, run.out
        shop.until_quiet()
        run = shop.start("resume")
    gate.until_reached()
    gate.let_go()
    assert run.end() == 0, run.out
    assert shop.row(Plan).status == "VERIFIED"
    assert shop.landed() == ["one"]


def test_commands_need_something_to_be_about(shop: Workshop) -> None:
    refused(shop("pause"), 2, "nothing has run here yet")
