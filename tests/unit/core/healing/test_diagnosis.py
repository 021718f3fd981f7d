"""Why a task most likely failed, from what its attempts came to."""

from dataclasses import replace
from typing import Any

import pytest
from tests.cases import each_case

from loopwright.core.healing.diagnosis import Diagnosis, Seen, diagnose, fixes
from loopwright.core.healing.earlier_tries import Try
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Check, CheckStatus, CommandResult, Verdict, VerdictStatus
from loopwright.core.values.healing import Cause


def tried(n: int, failure: Failure = Failure.GATE, found: str = "", **facts: Any) -> Try:
    return Try(n=n, agent="scripted", failure=failure, found=found, **facts)


def gate(tail: str, *, exit_code: int = 1, test: str = "", message: str = "", flaky: str = "") -> Verdict:
    command = CommandResult(
        name="tests",
        command="pytest -q",
        exit_code=exit_code,
        duration_s=1.0,
        output_sha256="0" * 64,
        output_bytes=1,
        tail=tail,
        flaky=(flaky,) if flaky else (),
    )
    check = Check(
        id=f"1:tests/{test}" if test else "1:tests",
        name=test or "tests",
        status=CheckStatus.FAILED,
        message=message,
    )
    return Verdict(status=VerdictStatus.FAILED, checks=(check,), commands=(command,))


def of(*seen: Seen) -> Diagnosis:
    found = diagnose(seen, name="sum", title="Add the sum")
    assert found is not None
    return found


def gated(*verdicts: Verdict, **facts: Any) -> Diagnosis:
    return of(*(Seen(tried=tried(n, **facts), verdict=one) for n, one in enumerate(verdicts, 1)))


@each_case(
    "failure, cause",
    [
        (Failure.TURNS, Cause.TOO_LARGE),
        (Failure.CONTEXT, Cause.TOO_LARGE),
        (Failure.TIMEOUT, Cause.TOO_LARGE),
        (Failure.REFUSAL, Cause.MODEL),
        (Failure.TOGETHER, Cause.DEPENDENCY),
        (Failure.NO_CHANGE, Cause.UNCLEAR),
        (Failure.REVIEW, Cause.UNCLEAR),
        (Failure.SETUP, Cause.ENVIRONMENT),
        (Failure.HANG, Cause.ENVIRONMENT),
    ],
)
def test_most_failure_classes_speak_for_a_cause(failure: Failure, cause: Cause) -> None:
    found = of(*(Seen(tried=tried(n, failure, f"found {n}")) for n in (1, 2)))
    assert found.cause is cause
    assert found.because.endswith("(2 of 2 attempts)")
    assert found.signature.step == failure.value


@each_case(
    "verdict, cause",
    [
        (gate("sh: 1: npx: command not found", exit_code=127), Cause.ENVIRONMENT),
        (gate("OSError: [Errno 28] No space left on device"), Cause.ENVIRONMENT),
        (gate("ModuleNotFoundError: No module named 'yaml'"), Cause.DEPENDENCY),
        (gate("1 failed", flaky="tests/test_a.py::test_b"), Cause.FLAKY),
    ],
)
def test_a_failed_gate_is_read_by_what_it_printed(verdict: Verdict, cause: Cause) -> None:
    assert gated(verdict, verdict).cause is cause


def test_an_attempt_that_changes_very_many_files_speaks_for_a_task_that_is_too_large() -> None:
    many = tuple(f"src/{n}.py" for n in range(21))
    assert gated(gate("assert 1 == 2"), touched=many).cause is Cause.TOO_LARGE
    assert gated(gate("assert 1 == 2"), touched=many[:20]).cause is Cause.UNCLEAR


def test_what_fails_in_the_same_way_each_time_is_beyond_the_model_and_else_unclear() -> None:
    same = gated(gate("assert 1 == 2"), gate("assert 3 == 4"))
    assert (same.cause, same.repeated) == (Cause.MODEL, 2)
    other = gated(gate("assert 1 == 2"), gate("the door is shut"))
    assert (other.cause, other.repeated) == (Cause.UNCLEAR, 1)
    assert "none like the one before" in other.because


def test_most_attempts_decide_and_the_newest_one_where_they_are_even() -> None:
    turns, refusal = Seen(tried=tried(1, Failure.TURNS)), Seen(tried=tried(2, Failure.REFUSAL))
    assert of(turns, turns, refusal).cause is Cause.TOO_LARGE
    assert of(turns, refusal).cause is Cause.MODEL
    assert of(refusal, turns).cause is Cause.TOO_LARGE


def test_the_signature_names_step_test_file_and_the_error_without_what_changes() -> None:
    test = "tests/test_calc.py::test_sum"
    found = gated(gate("1 failed in 0.31s", test=test, message="def test_sum():\nE  assert 7 == 4")).signature
    assert (found.step, found.test, found.file) == ("tests", test, "tests/test_calc.py")
    assert found.error == "e assert <n> == <n>"
    whole = gated(gate("collecting\n/srv/w/calc.py:3: TypeError: no\nend")).signature
    assert (whole.test, whole.file, whole.error) == ("", "calc.py", "calc.py:<n>: typeerror: no")
    unchecked = gated(replace(gate("TypeError: no"), checks=())).signature
    assert (unchecked.step, unchecked.error) == ("tests", "typeerror: no")


def test_what_it_tells_is_bounded() -> None:
    long = tried(1, Failure.NO_CHANGE, "x" * 5_000, said="y" * 5_000, touched=("z",) * 500)
    (told,) = of(Seen(tried=long)).tried
    assert max(len(told.found), len(told.said), len(told.touched)) <= 300


@pytest.mark.parametrize("cause", list(Cause))
def test_each_cause_has_commands_that_name_the_task(cause: Cause) -> None:
    typed = [one.command for one in fixes(cause, name="sum", title="Add the sum")]
    assert typed
    assert all(one[0] == "loopwright" for one in typed)
    assert any("sum" in one for one in typed)


def test_nothing_is_diagnosed_without_a_failed_attempt() -> None:
    assert diagnose((), name="sum", title="Add the sum") is None
