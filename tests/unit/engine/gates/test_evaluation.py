"""The complete gate before the verification: what it finds becomes a task, a bounded number of times."""

from dataclasses import replace

import pytest
from tests.doubles import FAILED, GATE, PASSED, Home, planned, recount
from tests.wording_plugin import Wording

from loopwright.core.rows.model import Leg, Plan, Role, Run, Task
from loopwright.core.values.findings import CommandResult, Verdict, VerdictStatus
from loopwright.core.values.policy import GateCommand
from loopwright.core.values.states import LoopState, PlanState, TaskState

OWN = GateCommand(name="own", command="test -e a")


def ran(command: GateCommand, code: int, tail: str = "") -> CommandResult:
    return CommandResult(
        name=command.name,
        command=command.command,
        exit_code=code,
        duration_s=1.0,
        output_sha256="0" * 64,
        output_bytes=0,
        tail=tail,
    )


RED = replace(FAILED, commands=(ran(GATE, 0), ran(OWN, 1, "a is gone")))


async def landed(cycles: int) -> tuple[Home, Leg]:
    """Return a home whose only task has landed, and the leg of the complete gate."""
    home = await Home(fix_cycles=cycles).launch()
    home.submit(planned("a", acceptance=(OWN,)))
    [leg] = await home.turn()
    home.hand.land(leg)
    [leg] = await home.turn()
    return home, leg


@pytest.mark.capability("C044")
async def test_what_the_complete_gate_finds_becomes_a_task_and_the_plan_is_verified_after_it() -> None:
    home, leg = await landed(2)
    assert home.plan().evaluating
    await home.verify(leg, RED)
    assert not home.plan().evaluating
    plan, fix = home.plan(), home.task("fix-1")
    assert (plan.status, plan.fix_cycles, plan.open_tasks) == (PlanState.RUNNING, 1, 1)
    assert plan.completed_at is None
    assert home.loop().state is LoopState.RUNNING
    assert (fix.origin, fix.acceptance, fix.status) == ("fix", (OWN,), TaskState.QUEUED)
    assert "a is gone" in fix.description
    assert home.told("plan_evaluated") == ["plan_evaluated"]
    [leg] = await home.turn()
    home.hand.land(leg)
    [leg] = await home.turn()
    await home.verify(leg, PASSED)
    assert home.plan().status is PlanState.VERIFIED
    assert home.told("plan_completed", "plan_verified") == ["plan_completed", "plan_verified"]
    assert [run.role for run in home.all(Run) if run.attempt_id is None] == [Role.EVALUATION, Role.VERIFY]
    last = home.get(Run, home.plan().verify_run_id)
    assert (last.role, last.label) == (Role.VERIFY, f"verify_{plan.id}")
    assert len(home.gate.asked) == 2, "an evaluation that passed is not run once more"
    for name, (counted, kept) in recount(home).items():
        assert counted == kept, name


async def test_when_it_was_mended_often_enough_the_gate_runs_as_the_verification_and_its_word_is_final() -> (
    None
):
    home, leg = await landed(2)
    for cycle in (1, 2):
        await home.verify(leg, RED)
        assert home.task(f"fix-{cycle}").status is TaskState.QUEUED
        [leg] = await home.turn()
        home.hand.land(leg)
        [leg] = await home.turn()
    await home.verify(leg, RED)
    assert home.plan().status is PlanState.FAILED
    home.clock.advance(24 * 3600)
    assert [*await home.turn(), *await home.reconcile(), *await home.turn()] == []
    roles = [run.role for run in home.all(Run) if run.attempt_id is None]
    assert roles == [Role.EVALUATION, Role.EVALUATION, Role.VERIFY]
    assert [task.key for task in home.all(Task)] == ["a", "fix-1", "fix-2"]


async def test_what_was_found_before_a_crash_makes_one_task_not_two() -> None:
    home, leg = await landed(3)
    await home.verify(leg, RED)
    await home.verify(leg, RED)  # the same leg runs a second time somewhere
    assert [task.key for task in home.all(Task)] == ["a", "fix-1"]
    assert home.plan().fix_cycles == 1


async def test_a_program_that_is_missing_is_left_to_a_person(wording: Wording) -> None:
    home, leg = await landed(3)
    gone = Verdict(status=VerdictStatus.INCONCLUSIVE, reason="make was not found", lasting=True)
    await home.verify(leg, gone)
    plan: Plan = home.plan()
    assert (plan.status, plan.fix_cycles) == (PlanState.RUNNING, 0)
    assert home.loop().state is LoopState.PAUSED
    wording(home.loop().reason)
