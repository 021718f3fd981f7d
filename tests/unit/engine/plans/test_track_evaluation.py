"""When the execution of a track is evaluated: before the verification, and again when work landed since."""

from dataclasses import replace
from typing import Any

import pytest
from tests.contracts.store import rows

from loopwright.core.replies.doc_sync import ORIGIN as DOCS
from loopwright.core.replies.qa import EVALUATION, TYPE
from loopwright.core.rows.model import Attempt, Task
from loopwright.core.values.states import TaskState
from loopwright.engine.plans.track_evaluation import due

PLAN = rows.plan(rows.loop(rows.project()))
WORK = rows.task(PLAN, key="a", status=TaskState.COMPLETE, landed_sha="1" * 40)
LATER = rows.task(PLAN, key="fix-1", origin="fix", status=TaskState.COMPLETE, landed_sha="2" * 40)
SYNC = rows.task(PLAN, key="business-sync", origin=DOCS, status=TaskState.COMPLETE, landed_sha="2" * 40)
EVALUATE = rows.task(PLAN, key="evaluate-execution", origin=EVALUATION, type=TYPE, status=TaskState.COMPLETE)
PASSED = replace(rows.attempt(EVALUATE), base_sha="1" * 40)


class Line:
    """A branch on which the commits have the order of their numbers."""

    async def is_ancestor(self, sha: str, of: str) -> bool:
        return sha <= of


async def is_due(*tasks: Task, passed: Attempt | None = None) -> bool:
    repository: Any = Line()
    return await due(repository, tasks, passed)


@pytest.mark.capability("C044")
async def test_what_landed_is_evaluated_once_and_again_when_more_work_lands() -> None:
    assert await is_due(WORK)
    assert not await is_due(WORK, EVALUATE, passed=PASSED)
    assert await is_due(WORK, LATER, EVALUATE, passed=PASSED)
    assert not await is_due(WORK, SYNC, EVALUATE, passed=PASSED), "documents follow after the evaluation"


async def test_a_person_passes_the_evaluation_or_decides_that_none_is_needed() -> None:
    assert not await is_due(WORK, EVALUATE)
    assert not await is_due(WORK, LATER, replace(EVALUATE, status=TaskState.CANCELLED), passed=PASSED)
