"""Every adapter against its stand-in, behaviour by behaviour, under real keepers and the engine's own driving."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.contracts.agents.subjects import SUBJECTS
from tests.tables_plugin import AGENTS

from loopwright.testing.conformance import Subject, check

CASES = [
    pytest.param(subject, behaviour, id=f"{subject.name}-{behaviour}")
    for subject in SUBJECTS
    for behaviour in subject.behaviours()
]


@pytest.mark.capability("C028", "C029")
@pytest.mark.trap("error with exit 0")
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("subject", "behaviour"), CASES)
async def test_an_adapter_takes_a_behaviour_for_what_it_is(
    subject: Subject, behaviour: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    record_property(AGENTS.property, (subject.name, behaviour))
    assert await check(subject, behaviour, tmp_path / "place") == ()
