"""From one run of a gate to its verdict: stops, comparisons, second runs and notes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.cases import each_case

from loopwright.core.gates.gate_run import INTERRUPTED, GateRun, RunAgain, Terms, judge_run
from loopwright.core.gates.verdicts import Killed, judge, passed
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

TESTS, LINT = GateCommand(name="tests", command="pytest"), GateCommand(name="lint", command="ruff")
SETUP = GateCommand(name="setup", command="make deps")
A, B = "test_a.py::test_a", "test_b.py::test_b"
GREEN, RED = Witnessed(passed=frozenset({A, B})), Witnessed(passed=frozenset({A}), failed=frozenset({B}))
BEFORE = Baseline(seen={"pytest": GREEN})
NO_SPACE = Verdict(status=VerdictStatus.INCONCLUSIVE, reason="no space left")
KILLED = Killed(commands=("pytest",), signal=9, name="tests")


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


def again(verdict: Verdict, *seen: Witnessed | None) -> GateRun:
    """Return a second run that found this."""
    return GateRun(verdict=verdict, seen=seen)


def settled(
    answers: Sequence[GateRun],
    verdict: Verdict | None = None,
    seen: Sequence[Witnessed | None] = (RED,),
    *,
    setup: GateCommand | None = None,
    commands: tuple[GateCommand, ...] = (TESTS,),
    green_here: frozenset[str] = frozenset(),
    before: Baseline | None = BEFORE,
) -> tuple[Verdict, list[RunAgain]]:
    """Judge a run, and answer whatever has to run again; return also what that was."""
    asked: list[RunAgain] = []
    terms = Terms(commands=commands, setup=setup)
    first = verdict or ran((TESTS, 1))
    run = GateRun(verdict=first, terms=terms, seen=seen, before=before, green_here=green_here)
    for answer in answers:
        wanted = judge_run(run)
        assert isinstance(wanted, RunAgain)
        asked.append(wanted)
        run = replace(run, again=(*run.again, answer))
    found = judge_run(run)
    assert isinstance(found, Verdict)
    return found, asked


def test_what_is_plainly_red_is_not_run_again() -> None:
    found, asked = settled([], before=None)
    assert (found.status, asked) == (VerdictStatus.FAILED, [])


def test_a_suspect_is_run_alone_and_then_whole_after_the_setup_in_a_fresh_workspace() -> None:
    verdict = ran((SETUP, 0), (TESTS, 1), (LINT, 0))
    found, asked = settled(
        [again(ran((TESTS, 0)), GREEN), again(ran((SETUP, 0), (TESTS, 0)), None, GREEN)],
        verdict,
        (None, RED, None),
        setup=SETUP,
        commands=(SETUP, TESTS, LINT),
    )
    assert passed(found)
    assert [one.flaky for one in found.commands] == [(), (B,), ()]
    assert asked == [
        RunAgain(folder="again-alone", commands=(TESTS,), only=frozenset({B})),
        RunAgain(folder="again-whole", commands=(SETUP, TESTS), fresh=True),
    ]
    assert [len(one.commands) for one in found.reruns] == [1, 2]


def test_a_suspect_of_a_tree_that_was_green_is_run_alone_only() -> None:
    found, asked = settled([again(ran((TESTS, 1)), GREEN)], green_here=frozenset({"pytest"}))
    assert passed(found), "alone its exit code may have other reasons, such as the coverage of all tests"
    assert len(asked) == 1


def test_a_setup_that_failed_by_chance_is_run_again_once_and_not_twice() -> None:
    found, asked = settled(
        [again(ran((SETUP, 0)), None)],
        ran((SETUP, 1)),
        (None,),
        setup=SETUP,
        commands=(SETUP,),
        green_here=frozenset({"make deps"}),
    )
    assert passed(found)
    assert asked == [RunAgain(folder="again-whole", commands=(SETUP,), fresh=True)]


def test_red_again_alone_ends_it() -> None:
    found, _ = settled([again(ran((TESTS, 1)), RED)])
    assert found.status is VerdictStatus.FAILED
    assert found.checks[-1].id == "1:tests/again"
    assert len(found.reruns) == 1


def test_red_again_as_a_whole_is_red_whatever_failed_there() -> None:
    other = Witnessed(passed=frozenset({B}), failed=frozenset({A}))
    found, _ = settled([again(ran((TESTS, 0)), GREEN), again(ran((TESTS, 1)), other)])
    assert found.status is VerdictStatus.FAILED
    assert len(found.reruns) == 2


def test_tests_that_failed_before_the_work_may_fail_in_the_second_run_too() -> None:
    old = Baseline(seen={"pytest": Witnessed(passed=frozenset({B}), failed=frozenset({A}))})
    both = Witnessed(failed=frozenset({A, B}))
    known = Witnessed(passed=frozenset({B}), failed=frozenset({A}))
    answers = [again(ran((TESTS, 0)), GREEN), again(ran((TESTS, 1)), known)]
    found, _ = settled(answers, ran((TESTS, 1)), (both,), before=old)
    (command,) = found.commands
    assert (command.flaky, command.known_failures) == ((B,), 1)
    alone, _ = settled(answers[:1], seen=(both,), before=old, green_here=frozenset({"pytest"}))
    assert alone.commands[0].known_failures == 1


@each_case("answered", [0, 1])
def test_a_second_run_that_could_not_be_made_leaves_nothing_learned(answered: int) -> None:
    good = [again(ran((TESTS, 0)), GREEN)][:answered]
    stopped = GateRun(verdict=INTERRUPTED, interrupted=True)
    for second, reason in (
        (again(NO_SPACE), "it could not be run again: no space left"),
        (GateRun(verdict=ran((TESTS, 1)), excess="it took 9 GB"), "it could not be run again: it took 9 GB"),
        (GateRun(verdict=ran((TESTS, -9)), killed=KILLED), f"it could not be run again: {KILLED.reason}"),
        (stopped, INTERRUPTED.reason),
    ):
        found, _ = settled([*good, second])
        assert (found.status, found.reason) == (VerdictStatus.INCONCLUSIVE, reason)
    run = GateRun(verdict=ran((TESTS, 1)))
    assert [replace(run, again=(one,)).was_interrupted for one in (run, stopped)] == [False, True]


# --- what else a run says, pass by pass ------------------------------------------------------------------


def verdict_on(run: GateRun) -> Verdict:
    found = judge_run(run)
    assert isinstance(found, Verdict)
    return found


@each_case(
    ("facts", "status", "lasting", "broken"),
    [
        ({"excess": "it took 9 GB", "denial": "no", "killed": KILLED}, "inconclusive", False, True),
        ({"denial": "it may not write there", "killed": KILLED}, "inconclusive", False, True),
        ({"denial": "it may not write there"}, "inconclusive", False, True),
        ({"killed": KILLED}, "inconclusive", False, False),
        ({"killed": KILLED, "was_alone": True}, "inconclusive", True, True),
        ({"killed": KILLED, "was_alone": True, "ends_on_base": True}, "failed", False, False),
        ({}, "failed", False, False),
    ],
)
def test_a_run_that_was_stopped_says_nothing_about_the_tree(
    facts: dict[str, Any], status: str, lasting: bool, broken: bool
) -> None:
    run = GateRun(verdict=ran((TESTS, -9)), seen=(None,), **facts)
    found = verdict_on(run)
    assert (found.status.value, found.lasting, run.is_broken) == (status, lasting, broken)
    assert found.commands[0].exit_code == -9


def test_a_run_that_could_not_be_judged_stays_as_it_is() -> None:
    assert judge_run(GateRun(verdict=NO_SPACE, before=BEFORE)) == NO_SPACE
    assert judge_run(GateRun(verdict=ran((TESTS, 0)), seen=(None,))) == ran((TESTS, 0))


def test_a_baseline_is_excused_of_nothing() -> None:
    run = GateRun(verdict=ran((TESTS, 1)), seen=(RED,), before=BEFORE, terms=Terms(is_baseline=True))
    assert verdict_on(run).status is VerdictStatus.FAILED


def test_a_command_that_changes_judging_files_tampers_and_others_leave_a_gap() -> None:
    green = ran((TESTS, 0))
    changed = replace(green, commands=(replace(green.commands[0], changed=("conftest.py", "a.txt")),))
    run = GateRun(verdict=changed, seen=(GREEN,), terms=Terms(setup=SETUP))
    assert verdict_on(run).status is VerdictStatus.PASSED
    only_named = verdict_on(replace(run, judging_files=frozenset()))
    assert (only_named.status, only_named.tampered, len(only_named.left_open)) == ("passed", False, 1)
    found = verdict_on(replace(run, judging_files=frozenset({"conftest.py"})))
    assert (found.status, found.tampered) == (VerdictStatus.FAILED, True)
    known = replace(BEFORE, changed=frozenset({"conftest.py", "a.txt"}))
    as_before = verdict_on(replace(run, judging_files=frozenset({"conftest.py"}), before=known))
    assert (as_before.status, as_before.left_open) == (VerdictStatus.PASSED, ())


def test_without_a_baseline_red_says_nothing_and_green_says_so() -> None:
    red = verdict_on(GateRun(verdict=ran((TESTS, 1)), seen=(RED,), no_baseline=NO_SPACE))
    assert red.status is VerdictStatus.INCONCLUSIVE
    green = verdict_on(GateRun(verdict=ran((TESTS, 0)), seen=(GREEN,), no_baseline=NO_SPACE))
    assert (green.status, green.unknown_before) == (VerdictStatus.PASSED, NO_SPACE.reason)


def test_notes_name_what_was_not_compared_and_new_tests_that_were_skipped() -> None:
    seen = Witnessed(passed=frozenset({A}), skipped=frozenset({B}))
    green = ran((TESTS, 0))
    run = GateRun(verdict=green, seen=(seen,), uncompared=green.commands, terms=Terms(brought=("test_b.py",)))
    assert len(verdict_on(run).notes) == 2
    assert verdict_on(replace(run, verdict=ran((TESTS, 1)))).notes == (), "it failed anyway"


def test_a_verdict_on_held_out_checks_shows_nothing_of_them() -> None:
    red = ran((TESTS, 1))
    failed = replace(red, commands=(replace(red.commands[0], tail="expected 42"),))
    found = verdict_on(GateRun(verdict=failed, seen=(RED,), terms=Terms(is_held_out=True)))
    assert [one.tail for one in found.commands] == [""]
    assert {one.name for one in found.checks} == {"tests"}
