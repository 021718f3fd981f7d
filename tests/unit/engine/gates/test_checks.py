"""Which word on a tree is taken when it was judged before."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import pytest
from tests.cases import each_case
from tests.doubles import FAILED, GATE, PASSED, Home, Oracle, planned

from loopwright.core.gates.verdicts import gate_key
from loopwright.core.gates.witnesses import without_baseline
from loopwright.core.rows.model import Attempt, Role, Run, VerdictRecord
from loopwright.core.values.containment import Containment, MadeWith
from loopwright.core.values.errors import GitFailed, TookTooMuch
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Check, CheckStatus, CommandResult, Verdict, VerdictStatus
from loopwright.core.values.ids import Kind
from loopwright.core.values.policy import GateCommand, Policy
from loopwright.core.values.states import RunState
from loopwright.engine.attempt.candidates import by_itself
from loopwright.engine.gates.baselines import baseline_of
from loopwright.engine.gates.gate_runs import judge
from loopwright.engine.gates.judging import Judging
from loopwright.engine.memory.slots import GateTurns
from loopwright.engine.rows.world import HomePaths
from loopwright.ports import Exit, GateRequest, NoSandbox

PYTEST = GateCommand(name="all", command="python -m pytest")


async def judged(home: Home, role: Role, attempt: Attempt | None = None) -> Verdict:
    """Ask whether the tree passes; the gate itself would say that nothing can be said."""
    home.gate.answer = Verdict(status=VerdictStatus.INCONCLUSIVE, reason="asked anew")
    ask = Judging(
        project=home.project(),
        plan=home.plan(),
        attempt=attempt,
        role=role,
        sha="1" * 40,
        tree="2" * 40,
        commands=(GATE,),
        still_mine=lambda _: None,
    )
    _, verdict = await judge(home.world, home.repository, ask, asyncio.Event())  # type: ignore[arg-type]
    return verdict


async def test_an_attempt_that_collides_is_asked_the_same_by_itself() -> None:
    home = await planned_home()
    ask = Judging(
        project=home.project(),
        plan=home.plan(),
        attempt=home.attempt("a"),
        role=Role.GATE,
        sha="1" * 40,
        tree="2" * 40,
        commands=(GATE,),
        still_mine=lambda _: None,
        before="3" * 40,
        exempt=("tests/test_leave.py",),
        rewritten=("tests/test_leave.py", "tests/test_own.py"),
        own=(GATE,),
    )
    alone = by_itself(ask, sha="4" * 40, tree="5" * 40, before="6" * 40)
    assert (alone.sha, alone.tree, alone.before) == ("4" * 40, "5" * 40, "6" * 40)
    # A test of its own that it changed is not excused because it passes by chance.
    assert alone.rewritten == ask.rewritten
    assert replace(alone, sha=ask.sha, tree=ask.tree, before=ask.before) == ask


def said(home: Home, verdict: Verdict, minutes: int, role: Role = Role.GATE) -> None:
    """Note what a gate run found some minutes from now."""
    at = home.clock.now() + timedelta(minutes=minutes)
    run = Run(
        id=home.ids(Kind.RUN), plan_id=home.plan().id, role=role, state=RunState.COMPLETE, created_at=at
    )
    record = VerdictRecord(
        id=home.ids(Kind.VERDICT),
        plan_id=run.plan_id,
        tree="2" * 40,
        gate_key=gate_key((GATE,)),
        run_id=run.id,
        verdict=verdict,
        created_at=at,
    )
    home.store.transact_sync("said", lambda tx: (tx.insert(run), tx.insert(record)))


async def planned_home() -> Home:
    home = await Home().launch()
    home.submit(planned("a"))
    await home.turn()
    return home


@each_case("role", [Role.FINISH, Role.GATE])
@each_case("order", [(0, 1), (1, 0)])
async def test_of_several_words_on_one_tree_the_latest_counts(role: Role, order: tuple[int, int]) -> None:
    home = await planned_home()
    verdicts = (PASSED, FAILED)
    for minutes in order:  # whichever was written down first
        said(home, verdicts[minutes], minutes)
    assert await judged(home, role) == FAILED


async def test_how_a_tree_was_before_some_work_is_no_word_on_taking_it() -> None:
    home = await planned_home()
    said(home, FAILED, 1, Role.BASELINE)
    assert (await judged(home, Role.FINISH)).reason == "asked anew"
    said(home, PASSED, 0)
    assert await judged(home, Role.FINISH) == PASSED


async def failed_home(tries: int) -> Home:
    """Return a home whose task was tried once, on a tree that failed."""
    home = await Home().launch()
    home.submit(planned("a"), policy=Policy(max_attempts=tries))
    [leg] = await home.turn()
    said(home, FAILED, 0)
    home.hand.fail(leg, Failure.GATE)
    home.clock.advance(300)
    return home


async def test_what_failed_is_judged_again_for_an_attempt_that_a_person_asked_for() -> None:
    home = await failed_home(1)
    await home.turn()
    await home.command("retry", home.task("a").id)
    again = home.attempt("a")
    assert again.n == 2
    assert (await judged(home, Role.GATE, again)).reason == "asked anew"
    assert await judged(home, Role.FINISH) == FAILED, "nobody asked for that anew"
    said(home, FAILED, 1)
    assert await judged(home, Role.GATE, again) == FAILED, "once is enough"


async def test_a_word_before_the_one_that_is_asked_again_does_not_count_instead() -> None:
    home = await failed_home(1)
    said(home, PASSED, -9)
    await home.turn()
    await home.command("retry", home.task("a").id)
    assert (await judged(home, Role.GATE, home.attempt("a"))).reason == "asked anew"


async def test_what_failed_is_not_judged_again_because_the_machine_tries_again() -> None:
    home = await failed_home(2)
    again = home.attempt("a")
    assert again.n == 2
    assert await judged(home, Role.GATE, again) == FAILED


async def test_what_was_before_is_run_when_it_is_asked_for() -> None:
    home = await planned_home()
    said(home, PASSED, 0, Role.BASELINE)
    assert (await judged(home, Role.BASELINE)).reason == "asked anew"


@each_case(("status", "left"), [("passed", "passed"), ("failed", "inconclusive")])
async def test_work_is_not_at_fault_for_a_gate_that_filled_the_disk_before_it(status: str, left: str) -> None:
    home = await planned_home()
    ran = Verdict(
        status=VerdictStatus(status),
        checks=(Check(id="1-all", name="all", status=CheckStatus(status)),),
        commands=(
            CommandResult(
                name="all",
                command=PYTEST.command,
                exit_code=1 if status == "failed" else 0,
                duration_s=1.0,
                output_sha256="0" * 64,
                output_bytes=0,
            ),
        ),
    )
    ask = Judging(
        project=home.project(),
        plan=replace(home.plan(), gates=(PYTEST,)),
        attempt=None,
        role=Role.GATE,
        sha="1" * 40,
        tree="2" * 40,
        commands=(PYTEST,),
        still_mine=lambda _: None,
        before="3" * 40,
    )

    async def judge(*_asked: object) -> NoReturn:
        raise TookTooMuch("it took 9 GB")

    before, why = await baseline_of(
        home.world,
        home.repository,  # type: ignore[arg-type]
        ask,
        ran,
        [None],
        asyncio.Event(),
        judge,
    )
    assert before is None
    assert why is not None
    assert without_baseline(ran, why).status == left, "no attempt ends because of it"
    assert "9 GB" in why.reason


class _Container(NoSandbox):
    """A sandbox of an image; nothing is started in it here."""

    level = Containment.CONTAINER

    def __init__(self, image_id: str) -> None:
        self.made_with = MadeWith(program="podman 5", image="mine", image_id=image_id)


async def test_a_gate_that_never_started_is_begun_anew_where_its_sandbox_is_another_one_by_now(
    tmp_path: Path,
) -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    await home.turn()
    ask = Judging(
        project=home.project(),
        plan=home.plan(),
        attempt=None,
        role=Role.GATE,
        sha="1" * 40,
        tree="2" * 40,
        commands=(GATE,),
        still_mine=lambda _: None,
    )
    home.gate.answer = PASSED
    home.repository.broken = GitFailed("killed here")
    world = replace(home.world, paths=HomePaths(root=tmp_path), sandbox=lambda: _Container("sha256:aaa"))
    with pytest.raises(GitFailed):
        await judge(world, home.repository, ask, asyncio.Event())
    home.repository.broken = None
    rebuilt = replace(world, sandbox=lambda: _Container("sha256:bbb"))
    _, verdict = await judge(rebuilt, home.repository, ask, asyncio.Event())
    assert verdict.status is VerdictStatus.PASSED
    first, second = home.all(Run, role=Role.GATE, order_by=("created_at",))
    assert (first.state, second.state) == (RunState.CANCELLED, RunState.COMPLETE)


# --- commands that something outside killed ----------------------------------------------------------


def ended(exit_code: int) -> Verdict:
    result = CommandResult(
        name="tests",
        command=GATE.command,
        exit_code=exit_code,
        duration_s=1.0,
        output_sha256="0" * 64,
        output_bytes=0,
    )
    return replace(FAILED if exit_code else PASSED, commands=(result,))


@each_case(
    ("work", "base", "status", "reason", "runs"),
    [
        ((-9, 0), (), "passed", "", 2),
        ((137, 1), (0,), "failed", "1 of 1 checks failed", 2),
        (
            (-9, -9),
            (1,),
            "failed",
            "tests: killed by signal 9, probably out of memory; again when it ran alone, and not on the base",
            3,
        ),
        ((-9, -9), (-9, 0), "failed", None, 4),
        ((-15, -15), (-9, -9), "inconclusive", "tests: killed by signal 15", 4),
        ((-9, -9), (-9, -9), "inconclusive", "tests: killed by signal 9, probably out of memory", 4),
        ((-11,), (0,), "failed", "1 of 1 checks failed", 1),
    ],
)
async def test_what_was_killed_is_run_once_more_alone_and_then_on_the_base(
    work: tuple[int, ...], base: tuple[int, ...], status: str, reason: str | None, runs: int
) -> None:
    home = await planned_home()
    left = {Role.GATE: list(work), Role.BASELINE: list(base)}
    ran: list[Role] = []

    class Played(Oracle):
        def verdict(self, request: GateRequest, exit: Exit) -> Verdict:
            role = home.get(Run, request.run_id).role
            ran.append(role)
            return ended(left[role].pop(0) if left[role] else 0)

    ask = Judging(
        project=home.project(),
        plan=home.plan(),
        attempt=None,
        role=Role.GATE,
        sha="1" * 40,
        tree="2" * 40,
        commands=(GATE,),
        still_mine=lambda _: None,
        before="3" * 40,
    )
    world = replace(home.world, gate=Played())
    record, verdict = await judge(world, home.repository, ask, asyncio.Event())  # type: ignore[arg-type]
    assert verdict.status.value == status
    assert reason is None or verdict.reason == reason
    assert (record is None) == (status == "inconclusive"), "what was not judged is no word on the tree"
    assert verdict.lasting == (status == "inconclusive")
    is_killed_again = work[-1] in (-9, -15)
    # Else the base is asked how its tests were, as for any work.
    assert len([one for one in ran if one is Role.GATE or is_killed_again]) == runs


async def test_a_gate_that_has_to_run_alone_waits_for_the_others_and_they_for_it() -> None:
    turns, stop, order = GateTurns(), asyncio.Event(), list[str]()
    gates = {name: asyncio.Event() for name in ("first", "second", "alone", "later")}

    async def gate(name: str) -> None:
        async with turns.turn(alone=name == "alone", unless=stop):
            order.append(name)
            await gates[name].wait()

    tasks = []
    for name in gates:
        tasks.append(asyncio.ensure_future(gate(name)))
        await asyncio.sleep(0)
    assert order == ["first", "second"]
    for name, seen in (("first", 2), ("second", 3), ("alone", 4)):
        gates[name].set()
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(order) == seen
    assert order[2:] == ["alone", "later"]
    gates["later"].set()
    await asyncio.gather(*tasks)
    held = asyncio.ensure_future(gate("first"))
    stop.set()
    async with asyncio.timeout(5), turns.turn(alone=True, unless=stop):
        pass
    await held
