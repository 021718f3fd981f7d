"""Commands that a signal from outside ended say nothing about the tree."""

from dataclasses import replace

from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright.core.gates.verdicts import killed_in, not_judged, red
from loopwright.core.values.findings import CommandResult, Verdict, VerdictStatus

RESULT = CommandResult(
    name="tests", command="pytest", exit_code=1, duration_s=1, output_sha256="", output_bytes=0
)


def failed(*results: CommandResult) -> Verdict:
    return Verdict(status=VerdictStatus.FAILED, commands=results)


@each_case(
    ("code", "reason"),
    [
        (-9, "tests: killed by signal 9, probably out of memory"),
        (137, "tests: killed by signal 9, probably out of memory"),
        (-15, "tests: killed by signal 15"),
        (143, "tests: killed by signal 15"),
        (-1, "tests: killed by signal 1"),
        (129, None),
        (-11, None),
        (1, None),
        (None, None),
    ],
)
def test_a_signal_from_outside_is_known_by_the_exit_code(code: int | None, reason: str | None) -> None:
    killed = killed_in(failed(replace(RESULT, exit_code=code)))
    assert (killed and killed.reason) == reason


def test_a_time_limit_and_a_gate_that_passed_are_not_kills() -> None:
    dead = replace(RESULT, exit_code=-9)
    assert killed_in(failed(replace(dead, timed_out=True))) is None
    assert killed_in(replace(failed(dead), status=VerdictStatus.PASSED)) is None


def test_a_killed_command_is_inconclusive_once_and_red_when_it_happens_again(wording: Wording) -> None:
    verdict = failed(RESULT, replace(RESULT, name="lint", command="ruff", exit_code=-9))
    killed = killed_in(verdict)
    assert killed is not None
    assert killed.commands == ("ruff",)
    once = not_judged(verdict, killed, lasting=True)
    assert (once.status, once.reason, once.lasting) == (VerdictStatus.INCONCLUSIVE, killed.reason, True)
    again = red(verdict, killed)
    assert again.status is VerdictStatus.FAILED
    wording(again.reason)
