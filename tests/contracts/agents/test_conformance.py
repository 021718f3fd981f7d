"""Every adapter against its stand-in, behaviour by behaviour, under real keepers and the engine's own driving."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.agents.subjects import SUBJECTS
from tests.tables_plugin import AGENTS

from loopwright.testing.conformance import Subject, check

OF_A_PROFILE = {"done", "permission", "permission_granted", "resume"}
"""What is played for every agent of one protocol: that it can be started, asked, answered and gone on with. In all the
rest they share the code and the stand-in, so it is played for the first of them here, for all by `make test-agents`."""

OF_ITS_OWN = {
    (name, behaviour)
    for name in ("gemini", "opencode")
    for behaviour in ("limit", "rate_limit", "retry_after", "overload_then_done")
}
"""What these do in another way than the first: they try again, and say so beside the protocol only."""


def _cases() -> Iterator[Any]:
    shown: set[tuple[Path, bool, str]] = set()
    for subject in SUBJECTS:
        for behaviour in subject.behaviours():
            same = (subject.stand_in, "protocol" in subject.options, behaviour)
            own = behaviour in OF_A_PROFILE or (subject.name, behaviour) in OF_ITS_OWN
            again = same in shown and not own
            shown.add(same)
            marks = [pytest.mark.agents] if again else []
            yield pytest.param(subject, behaviour, id=f"{subject.name}-{behaviour}", marks=marks)


@pytest.mark.capability("C028", "C029")
@pytest.mark.trap("error with exit 0")
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("subject", "behaviour"), list(_cases()))
async def test_an_adapter_takes_a_behaviour_for_what_it_is(
    subject: Subject, behaviour: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    record_property(AGENTS.property, (subject.name, behaviour))
    assert await check(subject, behaviour, tmp_path / "place") == ()
