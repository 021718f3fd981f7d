"""What each source becomes as the work goes on, step by step, compared with files."""

import pytest
from tests.unit.sources.golden import CASES, DATA, files_in, source_of, steps_of, told


@pytest.mark.capability("C021", "C035", "C036", "C040", "C041", "C043", "C047", "C048", "C049")
@pytest.mark.parametrize("case", CASES)
def test_a_source_tells_its_progress_as_its_format_does(case: str) -> None:
    source = source_of(case)
    now = files_in(DATA / case / "given")
    meaning = source.parse(now, case).sha256
    steps = list(steps_of(case))
    assert steps
    for folder, progress in steps:
        now = told(source, now, progress)
        assert now == files_in(folder), folder.name
        assert source.written(now, progress) == {}, f"{folder.name}: written twice"
        work = source.parse(now, case)
        assert work.sha256 == meaning, f"{folder.name}: status is not meaning"
        marks = {task.key: task.mark for task in work.tasks}
        assert {key: marks[key] for key in progress.items} == {
            key: item.mark for key, item in progress.items.items()
        }
