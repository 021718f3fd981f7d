"""What holds for every source that writes its status back, whatever its format is."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import strategies as st

from loopwright.core.values.errors import BadPlan
from loopwright.ports import Files, ItemProgress, Mark, PlannedWork, Progress, Source

AT = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
LATER = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)

letters = st.characters(codec="utf-8", exclude_characters="\0")
reasons = st.text(max_size=12)
times = st.sampled_from([None, AT, LATER])
items = st.builds(
    ItemProgress,
    mark=st.sampled_from(list(Mark)),
    reason=reasons,
    summary=st.text(max_size=8),
    commit=st.sampled_from([None, "a91c2e4"]),
    attempts=st.integers(0, 4),
    started_at=times,
    ended_at=times,
)


def told(items: Mapping[str, ItemProgress], at: datetime = AT) -> Progress:
    """Return a progress of these items."""
    return Progress(plan_id="plan_1", at=at, items=items)


def after(source: Source, files: Files, progress: Progress) -> Files:
    """Return all files of a source once it was told; telling it again changes nothing."""
    made = {**files, **source.written(files, progress)}
    assert source.written(made, progress) == {}
    return made


def marks(work: PlannedWork) -> dict[str, Mark]:
    """Return how each task is marked."""
    return {task.key: task.mark for task in work.tasks}


def refused(source: Source, files: Files, name: str = "here") -> tuple[str, ...]:
    """Return why a source is refused; none of it has more than one line."""
    with pytest.raises(BadPlan) as caught:
        source.parse(files, name)
    assert caught.value.problems
    assert all("\n" not in problem for problem in caught.value.problems)
    return caught.value.problems


def work_or_refusal(source: Source, files: Files) -> PlannedWork | None:
    """Read a source of which nothing is known; anything but work or `BadPlan` fails."""
    try:
        return source.parse(files, "here")
    except BadPlan:
        return None
