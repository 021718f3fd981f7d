"""What follows from a look at the whole: the engine's own moves over rows."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.doubles import BROKEN, FAILED, PASSED, Home, planned
from tests.refusals import raises_code
from tests.wording_plugin import Wording

from loopwright.adapters.sources.feature_list.feature_list import FeatureListSource
from loopwright.core.replies.qa import AREAS, Checked, QaIssue, QaReport
from loopwright.core.rows.model import Attempt, CommandState, Leg, Loop, Outcome, Project, Task
from loopwright.core.values.errors import CannotRun, FenceLost
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Verdict
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import AttemptState, TaskState
from loopwright.engine.attempt.landing_line import Landing
from loopwright.engine.attempt.qa import settle
from loopwright.engine.intake.progress import progress_of
from loopwright.engine.memory.interrupts import Interrupted
from loopwright.engine.sources.source_edits import Edits

SEEN = tuple(Checked(area=one, result="fine", how="I looked.") for one in AREAS["full"])


class Looked:
    """A home whose plan has a task and a look at the whole that waits for it."""

    def __init__(self, home: Home) -> None:
        self.home = home

    async def look(self, *issues: str, verdict: Verdict = PASSED, **changes: Any) -> Leg:
        """Let the look that is due come to this."""
        [leg] = [one for one in await self.home.turn() if self._is_look(one)]
        self.home.hand.until(leg, AttemptState.CHECKING)
        report = QaReport(
            mode="full", summary="So.", checked=SEEN, issues=tuple(QaIssue(what=one) for one in issues)
        )
        self.home.store.transact_sync("qa", lambda tx: tx.update(Attempt, leg.subject, qa=report, **changes))
        self.home.gate.answer = verdict
        await self.settle(leg)
        await self.home.ended(leg)
        return leg

    def _is_look(self, leg: Leg) -> bool:
        return self.home.get(Attempt, leg.subject).task_id == self.task.id

    async def settle(self, leg: Leg, *, fence: int | None = None) -> None:
        home = self.home
        landing = Landing(
            world=home.world,
            repository=home.repository,  # type: ignore[arg-type]
            project=home.project(),
            plan=home.plan(),
            task=self.task,
            attempt=home.get(Attempt, leg.subject),
            fence=leg.fence if fence is None else fence,
        )
        await settle(landing, asyncio.Event())

    async def mend(self) -> None:
        """Let everything else land that may."""
        for leg in await self.home.turn():
            self.home.hand.land(leg)
            await self.home.ended(leg)

    @property
    def task(self) -> Task:
        return self.home.task("qa-1")


async def looked(*, fix_cycles: int = 2, **policy: Any) -> Looked:
    home = await Home(fix_cycles=fix_cycles).launch()
    home.submit(planned("a"), planned("qa-1", "a", type="qa"), policy=Policy(**policy))
    scene = Looked(home)
    await scene.mend()
    return scene


@pytest.mark.capability("C032")
async def test_issues_become_tasks_and_the_look_is_taken_again_after_them() -> None:
    scene = await looked()
    await scene.look("Typo", "Slow")
    fixes = [scene.home.task(f"fix-qa-1-00{n}") for n in (1, 2)]
    assert [(one.title, one.origin, one.status) for one in fixes] == [
        ("Fix: Typo", "qa", TaskState.QUEUED),
        ("Fix: Slow", "qa", TaskState.QUEUED),
    ]
    assert (scene.task.status, scene.task.unmet, scene.task.attempts) == (TaskState.QUEUED, 2, 0)
    told = scene.home.store.read_sync(lambda tx: progress_of(tx, scene.home.plan()))
    assert [(one.key, one.found_by, one.severity) for one in told.fixes] == [
        ("fix-qa-1-001", "qa-1", "medium"),
        ("fix-qa-1-002", "qa-1", "medium"),
    ]
    await scene.mend()
    assert (scene.task.unmet, "fix-qa-1-001" in scene.home.attempt("qa-1").evidence) == (0, True)
    await scene.look()
    assert (scene.task.status, scene.task.outcome) == (TaskState.COMPLETE, Outcome.NO_CHANGE_PROVEN)
    ends = scene.home.events("look_ended")
    assert [(one.payload["issues"], len(one.payload["fixes"])) for one in ends] == [(2, 2), (0, 0)]


async def test_what_the_gate_finds_on_the_tree_is_an_issue_too() -> None:
    scene = await looked()
    await scene.look(verdict=FAILED)
    fix = scene.home.task("fix-qa-1-001")
    assert "1 != 2" in fix.description
    assert scene.task.status is TaskState.QUEUED


async def test_after_so_many_rounds_a_person_decides_and_a_second_try_has_rounds_again() -> None:
    scene = await looked(fix_cycles=1)
    await scene.look("Typo")
    await scene.mend()
    await scene.look("Typo")
    assert (scene.task.status, scene.task.failure) == (TaskState.ERROR, Failure.ISSUES)
    assert "After 1 round of fixes" in scene.task.reason
    assert len(scene.home.all(Task)) == 3, "nothing more is added"
    assert (await scene.home.command("retry", scene.task.id)).state is CommandState.APPLIED
    await scene.look("Typo")
    assert scene.home.task("fix-qa-1-002").status is TaskState.QUEUED


async def test_a_fix_that_a_person_declines_is_waited_for_no_more_and_not_asked_for_again() -> None:
    scene = await looked()
    await scene.look("Typo", "Slow")
    await scene.home.command("cancel", scene.home.task("fix-qa-1-001").id)
    assert scene.task.unmet == 1
    await scene.mend()
    await scene.look("typo")
    assert scene.task.status is TaskState.COMPLETE


async def test_a_declined_fix_that_stands_in_the_source_is_not_waited_for_after_an_edit(
    tmp_path: Path,
) -> None:
    scene = await looked()
    await scene.look("Typo", "Slow")
    await scene.home.command("cancel", scene.home.task("fix-qa-1-001").id)
    file = tmp_path / "feature_list.json"
    needs = {"a": [], "fix-qa-1-001": [], "fix-qa-1-002": [], "qa-1": ["a", "fix-qa-1-001", "fix-qa-1-002"]}
    features = [
        {"id": key, "name": scene.home.task(key).title, "description": "Edited.", "dependencies": on}
        for key, on in needs.items()
    ]
    file.write_text(json.dumps({"features": features}))
    (project,), (loop,) = scene.home.all(Project), scene.home.all(Loop)
    scene.home.store.transact_sync("at", lambda tx: tx.update(Project, project.id, path=str(tmp_path)))
    scene.home.store.transact_sync("file", lambda tx: tx.update(Loop, loop.id, source_path=file.name))
    edits = Edits(replace(scene.home.world, source=lambda _kind: FeatureListSource()))
    assert await edits.take_in()
    waited = [scene.home.get(Task, one).key for one in scene.task.depends_on]
    assert (waited, scene.task.unmet) == (["a", "fix-qa-1-002"], 1)
    assert scene.home.task("fix-qa-1-001").dependents == ()


async def test_a_person_may_pass_a_look_that_waits_or_was_given_up(wording: Wording) -> None:
    scene = await looked()
    await scene.look("Typo")
    answer = await scene.home.command("reviewed", scene.task.id)
    wording(answer.result)
    assert (scene.task.status, scene.task.outcome) == (TaskState.COMPLETE, Outcome.UNVERIFIED)
    assert scene.task.reviewed_by == "me"
    other = await looked(fix_cycles=0)
    await other.look("Typo")
    assert other.task.status is TaskState.ERROR
    assert (await other.home.command("reviewed", other.task.id)).state is CommandState.APPLIED
    assert other.home.plan().failed_tasks == 0
    working = await looked()
    [leg] = await working.home.turn()
    working.home.hand.until(leg, AttemptState.WORKING)
    assert (await working.home.command("reviewed", working.task.id)).state is CommandState.REFUSED


async def test_without_any_check_a_clear_look_passes_only_where_that_is_allowed() -> None:
    for allowed, status in ((False, TaskState.ERROR), (True, TaskState.COMPLETE)):
        home = await Home(fix_cycles=1).launch()
        home.submit(planned("qa-1", type="qa"), policy=Policy(allow_unverified=allowed), gates=())
        scene = Looked(home)
        await scene.look()
        assert (scene.task.status, scene.task.outcome) == (status, Outcome.UNVERIFIED)


async def test_a_gate_that_cannot_run_and_a_leg_that_was_taken_over_change_nothing() -> None:
    scene = await looked(max_call_retries=0)
    with pytest.raises(CannotRun):
        await scene.look(verdict=BROKEN)
    leg = Leg(subject=scene.home.attempt("qa-1").id, n=1, fence=scene.home.attempt("qa-1").fence)
    scene.home.gate.answer = PASSED
    with pytest.raises(FenceLost):
        await scene.settle(leg, fence=0)
    scene.home.store.transact_sync("stop", lambda tx: tx.update(Attempt, leg.subject, interrupt="pause"))
    with pytest.raises(Interrupted):
        await scene.settle(leg)
    scene.home.store.transact_sync("stop", lambda tx: tx.update(Attempt, leg.subject, interrupt=""))
    await scene.settle(leg)
    with raises_code("fence_lost"):
        await scene.settle(leg)
