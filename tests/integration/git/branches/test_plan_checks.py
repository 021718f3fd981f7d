"""A plan's result is also judged by the checks of the plan's base commit: nothing is laundered over several tasks."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.doubles import FAILED, GATE, PASSED, Home, Oracle, planned
from tests.integration.git.branches.test_landing import candidate
from tests.integration.git.world import World, start_repository
from tests.wording_plugin import Wording

from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.rows.model import Attempt, Role, Task
from loopwright.core.values.findings import Verdict, VerdictStatus
from loopwright.core.values.policy import Policy
from loopwright.engine.gates.judging import Judging
from loopwright.engine.plans.verify import judged_by_base
from loopwright.engine.rows.world import HomePaths
from loopwright.ports import Base, Exit, GateRequest, Tx

CHECK = "tests/test_calc.py::test_calc"
MakeWorld = Callable[..., World]


class Comparing(Oracle):
    """A gate with one check: the number that the test wants is the one that the source has."""

    def verdict(self, request: GateRequest, exit: Exit) -> Verdict:
        self.asked.append(request.commands)
        wanted = (request.tree / "tests" / "test_calc.py").read_text().split()
        has = (request.tree / "calc.py").read_text().strip()
        return PASSED if has in wanted else replace(FAILED, broken=(CHECK,))


@dataclass
class Verified:
    """What came of a plan of two tasks: the first accepts more in a test, the second changes the source."""

    verdict: Verdict
    runs: int
    """How often the gate ran."""


async def verified(
    make_world: MakeWorld,
    tmp_path: Path,
    *,
    first: GateFiles,
    may_change: tuple[str, ...] = (),
    **policy: Any,
) -> Verified:
    files = {"calc.py": "1\n", "tests/test_calc.py": "1\n"}
    git = make_world(start_repository(tmp_path / "user", files))
    await git.make()
    git.agent("echo 1 2 > tests/test_calc.py; echo 2 > calc.py")
    result = await candidate(git, git.base_sha, (await git.snapshot()).sha)
    gate = Comparing()
    home = await Home(gate=gate).launch()
    base = Base(ref="trunk", sha=git.base_sha)
    tasks = (planned("a"), planned("b", may_change=may_change))
    home.submit(*tasks, base=base, policy=Policy(**policy))
    legs = await home.turn()
    for leg in legs:
        home.hand.land(leg)
    judged = ((home.attempt("a").id, first), (home.attempt("b").id, GateFiles()))

    def note(tx: Tx) -> None:
        for attempt, facts in judged:
            tx.update(Attempt, attempt, gate_files=facts)

    home.store.transact_sync("judged", note)
    ask = Judging(
        project=home.project(),
        plan=home.plan(),
        attempt=None,
        role=Role.VERIFY,
        sha=result.sha,
        tree=result.tree,
        commands=(GATE,),
        still_mine=lambda _tx: None,
        before=git.base_sha,
    )
    world = replace(home.world, paths=HomePaths(root=git.home))
    verdict = await judged_by_base(world, git.repository, ask, home.all(Task), PASSED, asyncio.Event())
    return Verified(verdict=verdict, runs=len(gate.asked))


CHANGED = GateFiles(pinned=("tests/test_calc.py",), pinned_tree="4" * 40)


async def test_a_check_that_one_task_weakened_for_the_next_fails_the_plan(
    make_world: MakeWorld, tmp_path: Path, wording: Wording
) -> None:
    found = await verified(make_world, tmp_path, first=CHANGED)
    assert found.verdict.status is VerdictStatus.FAILED
    wording(found.verdict.reason)
    assert f"- {CHECK}\n" in found.verdict.reason


async def test_a_contradiction_that_was_allowed_when_a_task_landed_stays_allowed(
    make_world: MakeWorld, tmp_path: Path
) -> None:
    allowed = replace(CHANGED, contradicted=(CHECK,), allowed_by=("me (question 1)",))
    assert (await verified(make_world, tmp_path, first=allowed)).verdict == PASSED


async def test_a_contradiction_that_nobody_allowed_counts(make_world: MakeWorld, tmp_path: Path) -> None:
    nobody = replace(CHANGED, contradicted=(CHECK,), allowed_by=("",))
    found = await verified(make_world, tmp_path, first=nobody)
    assert found.verdict.status is VerdictStatus.FAILED


@pytest.mark.parametrize(
    ("allowed", "by"),
    [
        ({"test_changes": "allow"}, 'the setting test_changes = "allow"'),
        ({"may_change": (CHECK,)}, f"the task's may_change: {CHECK}"),
        ({"may_change": ("tests/",)}, "the task's may_change: tests/"),
    ],
)
async def test_the_settings_and_the_tasks_allow_it_for_the_plan_too_and_the_verdict_says_so(
    make_world: MakeWorld, tmp_path: Path, allowed: dict[str, Any], by: str
) -> None:
    found = await verified(make_world, tmp_path, first=CHANGED, **allowed)
    assert found.verdict == replace(PASSED, contradicted=(CHECK,), allowed_by=(by,))


async def test_a_plan_that_changed_no_judging_file_is_not_judged_again(
    make_world: MakeWorld, tmp_path: Path
) -> None:
    found = await verified(make_world, tmp_path, first=GateFiles())
    assert (found.verdict, found.runs) == (PASSED, 0)
