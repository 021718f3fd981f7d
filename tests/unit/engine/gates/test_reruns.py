"""Telling flaky from red: which second runs are made, and what follows when one could not be."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from loopwright.core.gates.verdicts import judge, passed
from loopwright.core.values.findings import (
    Baseline,
    Check,
    CheckStatus,
    CommandResult,
    Verdict,
    VerdictStatus,
    Witnessed,
)
from loopwright.core.values.policy import GateCommand
from loopwright.engine.gates.reruns import Ran, Settled, settle
from loopwright.ports import Exit

TESTS, LINT = GateCommand(name="tests", command="pytest"), GateCommand(name="lint", command="ruff")
SETUP = GateCommand(name="setup", command="make deps")
A, B = "test_a.py::test_a", "test_b.py::test_b"
GREEN, RED = Witnessed(passed=frozenset({A, B})), Witnessed(passed=frozenset({A}), failed=frozenset({B}))
BEFORE = Baseline(seen={"pytest": GREEN})
NOW = datetime(2026, 1, 2, tzinfo=UTC)
END = Exit(code=0, ended_by="itself", started_at=NOW, ended_at=NOW, output_bytes=0, output_sha256="")


def ran(*codes: tuple[GateCommand, int]) -> Verdict:
    """Return the verdict on commands by their exit codes."""
    results = [
        CommandResult(
            name=one.name, command=one.command, exit_code=code, duration_s=1, output_sha256="", output_bytes=0
        )
        for one, code in codes
    ]
    status = {True: CheckStatus.PASSED, False: CheckStatus.FAILED}
    checks = [
        Check(id=f"{n}:{one.name}", name=one.name, status=status[one.exit_code == 0])
        for n, one in enumerate(results, 1)
    ]
    return judge(checks, results)


@dataclass
class Again:
    """Runs nothing: says what it was told to say, and keeps what it was asked."""

    answers: list[Ran]
    asked: list[tuple[str, list[str], list[str], bool]] = field(default_factory=list)

    async def __call__(
        self, folder: str, commands: tuple[GateCommand, ...], /, *, only: frozenset[str], fresh: bool
    ) -> Ran:
        self.asked.append((folder, [one.name for one in commands], sorted(only), fresh))
        return self.answers.pop(0)


def says(verdict: Verdict, *seen: Witnessed | None, interrupted: bool = False) -> Ran:
    return Ran(verdict=verdict, seen=seen, exit=END, interrupted=interrupted)


def settled(
    again: Again,
    verdict: Verdict | None = None,
    seen: Sequence[Witnessed | None] = (RED,),
    *,
    setup: GateCommand | None = None,
    commands: tuple[GateCommand, ...] = (TESTS,),
    green_here: frozenset[str] = frozenset(),
    before: Baseline | None = BEFORE,
) -> Settled:
    return asyncio.run(
        settle(
            verdict or ran((TESTS, 1)),
            seen,
            before,
            again,
            setup=setup,
            commands=commands,
            green_here=green_here,
            rewritten=(),
        )
    )


def test_what_is_plainly_red_is_not_run_again() -> None:
    again = Again([])
    red = ran((TESTS, 1))
    assert settled(again, red, before=None) == Settled(verdict=red)


def test_a_suspect_is_run_alone_and_then_whole_after_the_setup_in_a_fresh_workspace() -> None:
    again = Again([says(ran((TESTS, 0)), GREEN), says(ran((SETUP, 0), (TESTS, 0)), None, GREEN)])
    verdict = ran((SETUP, 0), (TESTS, 1), (LINT, 0))
    end = settled(again, verdict, (None, RED, None), setup=SETUP, commands=(SETUP, TESTS, LINT))
    assert passed(end.verdict)
    assert [one.flaky for one in end.verdict.commands] == [(), (B,), ()]
    assert again.asked == [
        ("again-alone", ["tests"], [B], False),
        ("again-whole", ["setup", "tests"], [], True),
    ]
    assert [len(one.commands) for one in end.verdict.reruns] == [1, 2]


def test_a_suspect_of_a_tree_that_was_green_is_run_alone_only() -> None:
    again = Again([says(ran((TESTS, 1)), GREEN)])
    end = settled(again, green_here=frozenset({"pytest"}))
    assert passed(end.verdict), (
        "alone its exit code may have other reasons, such as the coverage of all tests"
    )
    assert len(again.asked) == 1


def test_a_setup_that_failed_by_chance_is_run_again_once_and_not_twice() -> None:
    again = Again([says(ran((SETUP, 0)), None)])
    verdict = ran((SETUP, 1))
    end = settled(
        again, verdict, (None,), setup=SETUP, commands=(SETUP,), green_here=frozenset({"make deps"})
    )
    assert passed(end.verdict)
    assert again.asked == [("again-whole", ["setup"], [], True)]


def test_red_again_alone_ends_it() -> None:
    again = Again([says(ran((TESTS, 1)), RED)])
    end = settled(again)
    assert end.verdict.status is VerdictStatus.FAILED
    assert end.verdict.checks[-1].name == f"tests: 1 test failed again alone: {B}"
    assert len(end.verdict.reruns) == 1


def test_red_again_as_a_whole_is_red_whatever_failed_there() -> None:
    other = Witnessed(passed=frozenset({B}), failed=frozenset({A}))
    end = settled(Again([says(ran((TESTS, 0)), GREEN), says(ran((TESTS, 1)), other)]))
    assert end.verdict.status is VerdictStatus.FAILED
    assert len(end.verdict.reruns) == 2


def test_tests_that_failed_before_the_work_may_fail_in_the_second_run_too() -> None:
    old = Baseline(seen={"pytest": Witnessed(passed=frozenset({B}), failed=frozenset({A}))})
    both = Witnessed(failed=frozenset({A, B}))
    known = Witnessed(passed=frozenset({B}), failed=frozenset({A}))
    again = Again([says(ran((TESTS, 0)), GREEN), says(ran((TESTS, 1)), known)])
    (command,) = settled(again, ran((TESTS, 1)), (both,), before=old).verdict.commands
    assert (command.flaky, command.known_failures) == ((B,), 1)
    alone = settled(
        Again([says(ran((TESTS, 0)), GREEN)]), seen=(both,), before=old, green_here=frozenset({"pytest"})
    )
    assert alone.verdict.commands[0].known_failures == 1


def test_a_second_run_that_could_not_be_made_leaves_nothing_learned() -> None:
    broken = Verdict(status=VerdictStatus.INCONCLUSIVE, reason="no space left")
    end = settled(Again([says(broken)]))
    assert (end.verdict.status, end.verdict.reason) == (
        VerdictStatus.INCONCLUSIVE,
        "it could not be run again: no space left",
    )
    stopped = settled(Again([says(ran((TESTS, 0)), GREEN), replace(says(broken), interrupted=True)]))
    assert stopped.interrupted
    assert stopped.verdict.status is VerdictStatus.INCONCLUSIVE
