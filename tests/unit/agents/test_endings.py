"""What the end of a process says by itself."""

import signal
from datetime import UTC, datetime

from tests.cases import each_case

from loopwright.adapters.agents.endings import ended_by_us, is_signal
from loopwright.core.values.failures import Failure
from loopwright.ports import Exit

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@each_case(
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


@each_case(
    ("code", "is_one"),
    [
        (None, False), (0, False), (1, False), (127, False), (128, False),
        (-9, True), (-15, True), (-17, True),
        (128 + signal.SIGHUP, True), (128 + signal.SIGINT, True), (128 + signal.SIGKILL, True),
        (128 + signal.SIGSEGV, True), (128 + signal.SIGTERM, True),
        (128 + signal.SIGCHLD, False), (128 + signal.SIGSTOP, False), (128 + signal.SIGTSTP, False), (173, False),
    ],
)  # fmt: skip
def test_only_a_signal_that_ends_programs_is_one_in_an_exit_code(code: int | None, is_one: bool) -> None:
    assert is_signal(code) is is_one
