"""Held-out checks on the result: asked after all else, once for a tree, and told by their name."""

from functools import partial
from typing import Any

import pytest
from tests.doubles import GATE, Home, Oracle, planned
from tests.unit.engine.gates.test_evaluation import OWN, ran
from tests.unit.engine.rows.test_finishes import BASE, NEWER, RESULT, Ending, _landed, finish
from tests.wording_plugin import Wording

from loopwright.core.gates.verdicts import command_id
from loopwright.core.rows.model import Leg, Role, Run, VerdictRecord
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Check, CheckStatus, Verdict, VerdictStatus
from loopwright.core.values.policy import GateCommand, HeldOut, Policy
from loopwright.core.values.states import AttemptState, FinishState, LoopState, PlanState, TaskState
from loopwright.engine.memory.interrupts import Interrupts
from loopwright.engine.plans.verify import VerifyLeg
from loopwright.ports import Exit, GateRequest

SECRET = "17 gives 34"
UNSEEN = GateCommand(name="numbers", command="sh unseen.sh")
HELD = (HeldOut(check=UNSEEN, hint="All numbers."),)
TOLD = "held-out checks do not pass on the result: numbers of task 'a'"


class Asked(Oracle):
    """A gate whose commands pass, except for those that are named."""

    def __init__(self) -> None:
        super().__init__()
        self.red: set[str] = set()
        self.gone: set[str] = set()

    def verdict(self, request: GateRequest, exit: Exit) -> Verdict:
        self.asked.append(request.commands)
        names = {one.command for one in request.commands}
        if names & self.gone:
            return Verdict(status=VerdictStatus.INCONCLUSIVE, reason="sh was not found", lasting=True)
        codes = [int(bool({one.name, one.command} & self.red)) for one in request.commands]
        checks = tuple(
            Check(
                id=command_id(n, one.name),
                name=SECRET,
                status=CheckStatus.FAILED if code else CheckStatus.PASSED,
                message=SECRET,
            )
            for n, (one, code) in enumerate(zip(request.commands, codes, strict=True), 1)
        )
        return Verdict(
            status=VerdictStatus.FAILED if any(codes) else VerdictStatus.PASSED,
            checks=checks,
            commands=tuple(ran(one, code, SECRET) for one, code in zip(request.commands, codes, strict=True)),
            reason=SECRET if any(codes) else "",
        )

    @property
    def unseen(self) -> int:
        return sum(commands == (UNSEEN,) for commands in self.asked)


async def landed(cycles: int = 0) -> tuple[Home, Asked, Leg]:
    """Return a home whose only task has landed, its gate, and the leg of the complete gate."""
    gate = Asked()
    home = await Home(fix_cycles=cycles, gate=gate).launch()
    home.submit(planned("a", acceptance=(OWN,), held_out=HELD))
    [leg] = await home.turn()
    home.hand.land(leg)
    [leg] = await home.turn()
    return home, gate, leg


class Dead(BaseException):
    """The process was killed."""


def _die(*_: Any) -> None:
    raise Dead


async def verify(home: Home, leg: Leg) -> None:
    await VerifyLeg(home.world, leg, interrupts=Interrupts()).run()
    await home.ended(leg)


async def test_what_was_held_out_is_asked_of_the_result_when_all_else_has_passed() -> None:
    home, gate, leg = await landed(cycles=1)
    await verify(home, leg)
    assert gate.asked == [(GATE, OWN), (UNSEEN,)]
    plan = home.plan()
    assert (plan.status, plan.verdict.status) == (PlanState.VERIFIED, VerdictStatus.PASSED)
    whole, unseen = (run for run in home.all(Run) if run.attempt_id is None)
    assert (whole.role, unseen.role, plan.verify_run_id) == (Role.VERIFY, Role.VERIFY, whole.id)
    assert SECRET not in str(home.all(VerdictRecord, run_id=unseen.id))


async def test_one_that_fails_makes_the_plan_fail_with_its_name_and_only_a_person_asks_again() -> None:
    home, gate, leg = await landed()
    gate.red = {UNSEEN.command}
    await verify(home, leg)
    plan = home.plan()
    assert (plan.status, plan.reason, plan.outcome.value) == (PlanState.FAILED, TOLD, "not_verified")
    assert home.loop().reason == TOLD
    [failed] = home.events("plan_failed")
    assert failed.payload["checks"] == [{"name": "numbers", "status": "failed"}]
    assert SECRET not in str(failed.payload) + str(plan.verdict)
    gate.red = set()
    home.clock.advance(60)
    await home.command("reverify", plan.id)
    [leg] = await home.turn()
    await verify(home, leg)
    assert (home.plan().status, gate.unseen) == (PlanState.VERIFIED, 2)


async def test_where_all_else_fails_nothing_that_was_held_out_is_asked() -> None:
    home, gate, leg = await landed()
    gate.red = {OWN.command, UNSEEN.command}
    await verify(home, leg)
    assert (home.plan().status, gate.unseen) == (PlanState.FAILED, 0)


async def test_what_could_not_run_is_left_to_a_person(wording: Wording) -> None:
    home, gate, leg = await landed(cycles=1)
    gate.gone = {UNSEEN.command}
    await verify(home, leg)
    assert (home.plan().status, home.plan().fix_cycles) == (PlanState.RUNNING, 0)
    assert home.loop().state is LoopState.PAUSED
    wording(home.loop().reason)


async def test_the_task_that_mends_it_hears_the_name_and_the_hint_and_has_the_same_held_out(
    wording: Wording,
) -> None:
    home, gate, leg = await landed(cycles=1)
    gate.red = {UNSEEN.command}
    await verify(home, leg)
    fix = home.task("fix-1")
    assert (fix.acceptance, fix.held_out, fix.status) == ((GATE, OWN), HELD, TaskState.QUEUED)
    assert f"{TOLD[0].upper()}{TOLD[1:]}\nAll numbers.\n" in fix.description
    assert SECRET not in fix.description
    assert UNSEEN.command not in fix.description
    [told] = home.events("plan_evaluated")
    wording(told.payload["reason"])
    [leg] = await home.turn()
    home.hand.land(leg)
    gate.red = set()
    home.clock.advance(60)
    [leg] = await home.turn()
    await verify(home, leg)
    assert home.plan().status is PlanState.VERIFIED
    assert gate.unseen == 2, "both tasks have the same, so it is asked once"


async def test_what_was_found_before_a_crash_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    home, gate, leg = await landed()
    gate.red = {UNSEEN.command}
    with monkeypatch.context() as patch:
        patch.setattr(VerifyLeg, "_over", _die)
        with pytest.raises(Dead):
            await VerifyLeg(home.world, leg, interrupts=Interrupts()).run()
    assert home.plan().status is PlanState.VERIFYING
    await verify(home, leg)
    assert (home.plan().reason, gate.asked) == (TOLD, [(GATE, OWN), (UNSEEN,)])


async def test_all_that_fail_are_named_and_what_passed_on_the_very_tree_is_not_asked_again() -> None:
    other = GateCommand(name="words", command="sh words.sh")
    third = GateCommand(name="signs", command="sh signs.sh")
    gate = Asked()
    home = await Home(gate=gate).launch()
    tasks = zip("abc", (UNSEEN, other, third), strict=True)
    home.submit(*(planned(key, acceptance=(OWN,), held_out=(HeldOut(check=one),)) for key, one in tasks))
    for leg in await home.turn():
        home.hand.land(leg)
    [leg] = await home.turn()
    gate.red = {UNSEEN.command, third.command}
    await verify(home, leg)
    assert home.plan().reason == f"{TOLD}; signs of task 'c'"
    gate.asked.clear()
    gate.red = set()
    home.clock.advance(60)
    await home.command("reverify", home.plan().id)
    [leg] = await home.turn()
    await verify(home, leg)
    assert home.plan().status is PlanState.VERIFIED
    assert gate.asked == [(GATE, OWN), (UNSEEN,), (third,)]


async def test_a_command_that_passed_with_other_files_does_not_make_this_one_flaky() -> None:
    marked = [GateCommand(name=f"numbers [{n}]", command=UNSEEN.command) for n in (1, 2)]
    gate = Asked()
    home = await Home(gate=gate).launch()
    tasks = zip("ab", marked, strict=True)
    home.submit(*(planned(key, acceptance=(OWN,), held_out=(HeldOut(check=one),)) for key, one in tasks))
    for leg in await home.turn():
        home.hand.land(leg)
    [leg] = await home.turn()
    gate.red = {marked[1].name}
    await verify(home, leg)
    assert home.plan().reason == "held-out checks do not pass on the result: numbers [2] of task 'b'"
    assert gate.asked == [(GATE, OWN), (marked[0],), (marked[1],)], "it is not run again"


async def test_what_was_held_out_from_a_cancelled_task_is_not_asked() -> None:
    gate = Asked()
    home = await Home(gate=gate).launch()
    home.submit(planned("a", acceptance=(OWN,)), planned("b", "a", acceptance=(OWN,), held_out=HELD))
    await home.command("cancel", home.task("b").id)
    [leg] = await home.turn()
    home.hand.land(leg)
    await home.turn()
    await home.command("reverify", home.plan().id)
    [leg] = await home.reconcile()
    await verify(home, leg)
    assert (home.plan().status, gate.unseen) == (PlanState.VERIFIED, 0)


async def test_at_the_end_of_a_plan_the_merged_tree_has_to_pass_it_too(wording: Wording) -> None:
    gate, repository = Asked(), Ending()
    home = await Home(gate=gate, repository=repository).launch()
    home.submit(planned("a", acceptance=(OWN,), held_out=HELD), policy=Policy(finish="squash"))
    [leg] = await home.turn()
    landing = {"candidate_sha": home.hand.land(leg).landed_sha, "candidate_parent": BASE}
    await home.ended(leg)
    home.store.transact_sync("leg", partial(_landed, attempt=leg.subject, changes=landing))
    repository.branches[home.plan().branch] = RESULT
    [leg] = await home.turn()
    await verify(home, leg)
    repository.base.tip, gate.red = NEWER, {UNSEEN.command}
    done = await finish(home)
    assert (done.state, repository.base.moves) == (FinishState.REFUSED, [])
    wording(done.detail)


async def test_a_retry_by_a_person_tells_no_more_than_the_name_and_the_hint() -> None:
    gate = Asked()
    home = await Home(gate=gate).launch()
    home.submit(planned("a", acceptance=(OWN,), held_out=HELD, max_attempts=1))
    [leg] = await home.turn()
    home.hand.until(leg, AttemptState.CHECKING)
    gate.red = {UNSEEN.command}
    checks = (Check(id="1:numbers", name="numbers", status=CheckStatus.FAILED),)
    refused = Verdict(status=VerdictStatus.FAILED, checks=checks, commands=(ran(UNSEEN, 1),))
    home.hand.judge(leg, refused)
    home.hand.fail(leg, Failure.GATE)
    await home.ended(leg)
    await home.command("retry", home.task("a").id)
    told = home.attempt("a").evidence
    assert told.startswith("A held-out check did not pass: numbers\nAll numbers.\n")
    assert UNSEEN.command not in told
