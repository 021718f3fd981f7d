"""What the end of a process says by itself."""

from datetime import UTC, datetime

import pytest

from loopwright.adapters.agents.endings import ended_by_us
from loopwright.core.failures import Failure
from loopwright.ports import Exit

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        ("[Errno 28] No space left on device: 'a' -> 'b'", Failure.ENVIRONMENT),
        ("[Errno 2] No such file or directory: 'agent'", Failure.CANNOT_START),
        ("", Failure.CANNOT_START),
    ],
)
def test_a_full_disk_that_kept_a_program_from_starting_is_not_the_program_s_fault(
    error: str, failure: Failure
) -> None:
    end = Exit(
        code=None,
        ended_by="not_started",
        started_at=None,
        ended_at=NOW,
        output_bytes=0,
        output_sha256="",
        error=error,
    )
    assert ended_by_us(end) == (failure, error or "the program could not be started")
