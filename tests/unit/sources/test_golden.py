"""What each source becomes as the work goes on, step by step, compared with files byte for byte."""

import json

import jsonschema
import pytest
from tests.cases import each_case
from tests.unit.sources.golden import CASES, DATA, files_in, source_of, steps_of, told

from loopwright.adapters.sources.plan_md.plan_md_schema import TRACK
from loopwright.ports import Mark

GONE = "gone"
"""A task that the source does not have any more."""
NO_WORD = {"orchestrator": {Mark.BLOCKED}, "feature_list": {Mark.RUNNING}, "test_state": {Mark.RUNNING}}
"""Marks that a format cannot say, so that they are read as open."""


@pytest.mark.capability(
    "C011", "C012", "C021", "C035", "C036", "C040", "C041", "C043", "C047", "C048", "C049"
)
@each_case("case", CASES)
def test_a_source_tells_its_progress_as_its_format_does(case: str) -> None:
    source = source_of(case)
    now = files_in(DATA / case / "given")
    meaning = source.parse(now, case).sha256
    unsaid = NO_WORD.get(case.split("/")[0], set())
    steps = list(steps_of(case))
    assert steps
    for folder, progress in steps:
        before, now = now, told(source, now, progress)
        assert now == files_in(folder), folder.name
        assert now != before, f"{folder.name}: a step that changes nothing shows nothing"
        assert source.written(now, progress) == {}, f"{folder.name}: written twice"
        if "metadata.json" in now:
            jsonschema.validate(json.loads(now["metadata.json"]), TRACK)
        work = source.parse(now, case)
        assert work.sha256 == meaning, f"{folder.name}: status is not meaning"
        marks = {task.key: task.mark for task in work.tasks}
        items = {key: item.mark for key, item in progress.items.items() if key != GONE}
        assert {key: marks[key] for key in items} == {
            key: Mark.OPEN if mark in unsaid else mark for key, mark in items.items()
        }
