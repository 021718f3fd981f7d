"""Many runs, each of which leaves a child behind that goes on writing: nothing of them remains."""

import asyncio
from pathlib import Path

import pytest
from tests.contracts.agents.subjects import SUBJECTS

from loopwright.testing.conformance import Played, left_over, play

AT_ONCE = 8
LEAVING = next(subject for subject in SUBJECTS if subject.name == "command")


@pytest.mark.capability("C029", "C103")
@pytest.mark.trap("orphaned grandchildren")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("count", [20, pytest.param(100, marks=pytest.mark.agents)])
async def test_what_runs_leave_in_the_background_is_gone_with_them(count: int, tmp_path: Path) -> None:
    room = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> tuple[Played, int]:
        place = tmp_path / str(number)
        async with room:
            (played,) = await play(LEAVING, "children", place)
        return played, (place / "workspace/late.txt").stat().st_size

    runs = await asyncio.gather(*(one(number) for number in range(count)))
    assert all(run.ended.result is not None and run.ended.result.claimed for run, _ in runs)
    assert all(size > 0 for _, size in runs), "each child had begun to write"
    assert left_over([run for run, _ in runs]) == []
    # The first of them ended long ago: whoever still wrote every 20 ms would have by now.
    later = [(run.spec.cwd / "late.txt").stat().st_size for run, _ in runs]
    assert later == [size for _, size in runs]
