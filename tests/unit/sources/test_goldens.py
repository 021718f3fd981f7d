"""Every source's status, written back exactly as the files in the tests' data show."""

from pathlib import Path

import pytest
from tests.unit.sources import goldens


@pytest.mark.parametrize("case", goldens.cases(), ids=lambda case: f"{case.parent.name}-{case.name}")
@pytest.mark.capability("C011", "C012")
def test_the_status_is_written_back_byte_for_byte(case: Path) -> None:
    source, files, progress = goldens.source_of(case), goldens.before(case), goldens.progress_of(case)
    made = source.written(files, progress)
    assert made == goldens.after(case)
    assert made, "a case that changes nothing shows nothing"
    assert source.written({**files, **made}, progress) == {}
    assert source.parse({**files, **made}, "here").sha256 == source.parse(files, "here").sha256
