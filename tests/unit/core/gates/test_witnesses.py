"""A verdict held against what was seen inside the test runners, and against how it was before."""

from dataclasses import replace

from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright.core.gates import witnesses
from loopwright.core.gates.verdicts import evidence, passed
from loopwright.core.gates.witnesses import (
    NO_END,
    baseline,
    failed_unseen,
    files_named,
    held_against,
    is_compared,
    is_test_runner,
    stand_in,
    uncompared,
    with_uncompared,
    without_baseline,
)
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

PASSED, FAILED = VerdictStatus.PASSED, VerdictStatus.FAILED
A, B, C = "tests/test_a.py::test_a", "tests/test_b.py::test_b", "tests/test_c.py::test_c"


def ran(exit_code: int = 0, **more: object) -> Verdict:
    result = CommandResult(
        name="tests", command="pytest", exit_code=exit_code, duration_s=1, output_sha256="", output_bytes=0
    )
    status = CheckStatus.FAILED if exit_code else CheckStatus.PASSED
    return Verdict(
        status=FAILED if exit_code else PASSED,
        checks=(
            Check(id="1:tests", name="tests", status=status, message=f"exit code {exit_code}"),
            Check(id="2:lint", name="lint", status=CheckStatus.PASSED),
        ),
        commands=(replace(result, **more), replace(result, name="lint", command="ruff", exit_code=0)),  # type: ignore[arg-type]
        reason="1 of 2 checks failed" if exit_code else "",
    )


def seen(
    good: str = "", bad: str = "", skipped: str = "", out: str = "", problems: tuple[str, ...] = ()
) -> Witnessed:
    def ids(letters: str) -> frozenset[str]:
        return frozenset({"a": A, "b": B, "c": C}[letter] for letter in letters)

    return Witnessed(
        passed=ids(good), failed=ids(bad), skipped=ids(skipped), deselected=ids(out), problems=problems
    )


def held(
    now: Witnessed | None, before: Witnessed | None, exit_code: int = 0, exempt: tuple[str, ...] = ()
) -> Verdict:
    known = None if before is None else Baseline(seen={"pytest": before}, exempt=exempt)
    return held_against(ran(exit_code), [now, None], known)


def objections(verdict: Verdict) -> list[str]:
    return [check.message for check in verdict.checks if "witness" in check.id]


def test_a_run_that_agrees_with_what_was_seen_stays_as_it_is() -> None:
    assert held(seen("ab"), seen("ab")) == replace(ran(tests=2), passed_before=2, passed_now=2)
    assert held(seen("abc"), seen("ab")) == replace(ran(tests=3), passed_before=2, passed_now=3)
    assert held(seen("a", skipped="b"), None) == ran(tests=2)
    assert held(None, None) == ran()
    assert held(seen("a", "b"), seen("ab"), exit_code=1).status is FAILED


@each_case(
    ("now", "words"),
    [
        (seen("ab", "c"), f"1 test failed, though the command ended with 0: {C}"),
        (seen("ab", problems=(NO_END,)), NO_END),
        (None, "its tests were seen to run before, and were not seen now"),
    ],
)
def test_what_speaks_against_a_green_run_fails_it_with_the_reason(now: Witnessed | None, words: str) -> None:
    verdict = held(now, seen("ab"))
    assert verdict.status is FAILED
    assert objections(verdict) == [words]
    assert verdict.reason == "1 of 3 checks failed"


@each_case(
    "now",
    [seen("a"), seen("a", skipped="b"), seen("a", out="b")],
    ids=["missing", "skipped", "deselected"],
)
def test_a_test_that_no_longer_runs_is_lost_and_fails_nothing_by_itself(now: Witnessed) -> None:
    for before in (seen("ab"), seen("a", "b")):
        verdict = held(now, before)
        assert (verdict.status, verdict.lost, verdict.broken) == (PASSED, (B,), ())
    assert held(now, seen("ab")).passed_before == 2
    assert held(now, seen("ab")).passed_now == 1
    assert held(seen("ab"), seen("a", "b")).lost == ()


def test_tests_and_commands_that_fail_only_since_the_work_are_broken() -> None:
    assert held(seen("", "ab"), seen("a", "b"), exit_code=1).broken == (A,)
    assert held(seen("a", "b"), seen("a", "b"), exit_code=1).broken == ()
    assert held(None, None, exit_code=1).broken == ("tests",), "no test was seen in it"


def test_without_a_baseline_a_canary_still_counts() -> None:
    assert objections(held(seen("a", problems=(NO_END,)), None)) == [NO_END]
    assert objections(held(seen("a", "b"), None)) == [f"1 test failed, though the command ended with 0: {B}"]


def test_a_problem_that_was_there_before_is_nobodys_fault() -> None:
    assert held(seen("a", problems=(NO_END,)), seen("a", problems=(NO_END,))).status is PASSED


def test_tests_of_files_that_the_task_may_change_need_not_be_there() -> None:
    assert held(seen("a"), seen("ab"), exempt=("tests/test_b.py",)).lost == ()
    assert held(seen(), seen("ab"), exempt=("tests/test_b.py",)).lost == (A,)


def test_failures_that_were_there_before_are_no_longer_held_against_the_work_and_are_no_pass(
    wording: Wording,
) -> None:
    verdict = held(seen("a", "b"), seen("a", "b"), exit_code=1)
    assert verdict.status is PASSED
    assert passed(verdict)
    assert verdict.commands[0].known_failures == 1
    assert verdict.checks[0].status is CheckStatus.SKIPPED
    wording(verdict.checks[0].message)
    assert verdict.checks[1].status is CheckStatus.PASSED


def test_old_failures_beside_a_new_one_are_named_as_such() -> None:
    verdict = held(seen("", "ab"), seen("a", "b"), exit_code=1)
    assert (verdict.status, verdict.broken) == (FAILED, (A,))
    result = verdict.commands[0]
    assert (result.known_failed, result.known_failures) == ((B,), 0), "they excuse nothing"
    assert f"These failed before your work too and are not held against it: {B}" in evidence(verdict)


def test_old_failures_alone_are_no_pass_of_anything() -> None:
    only = ran(1)
    only = replace(only, checks=only.checks[:1], commands=only.commands[:1])
    old = Baseline(seen={"pytest": seen(bad="ab")})
    verdict = held_against(only, [seen(bad="ab")], old)
    assert (verdict.status, verdict.lasting) == (VerdictStatus.INCONCLUSIVE, True)
    some = held_against(only, [seen("a", "b")], Baseline(seen={"pytest": seen("a", "b")}))
    assert passed(some), "the tests that passed are something"
    assert some.checks[-1].name == "tests: 1 test passed"


def test_a_gate_in_which_no_test_ran_verifies_nothing_by_itself() -> None:
    files = frozenset({"tests/test_b.py"})
    blind = Witnessed(failed=files, unloaded=files)
    known = Baseline(seen={"pytest": blind})
    words = (
        "tests: no test ran, before the work and with it: these cannot be loaded: tests/test_b.py. "
        "Make one of them loadable, or add a test that can be loaded"
    )
    verdict = held_against(ran(1), [blind, None], known)
    assert (verdict.status, verdict.reason, verdict.lasting) == (VerdictStatus.INCONCLUSIVE, words, True)
    shown = held_against(ran(1), [blind, None], known, own={"ruff"})
    assert (shown.status, shown.left_open) == (PASSED, (words,)), "the task's own acceptance shows the work"
    some = replace(blind, passed=frozenset({A}))
    assert held_against(ran(1), [some, None], Baseline(seen={"pytest": some})).left_open == ()


def test_what_a_report_says_is_compared_and_known_as_such() -> None:
    before = replace(seen("ab"), reported=True)
    verdict = held(replace(seen("a"), reported=True), before)
    assert verdict.lost == (B,)
    assert verdict.commands[0].reported
    moved = held(replace(seen("a"), reported=True), before, exempt=("tests/test_b.py",))
    assert moved.lost == (), "a report need not say which file a test was in"


def test_a_new_failure_beside_old_ones_fails() -> None:
    verdict = held(seen("", "ab"), seen("a", "b"), exit_code=1)
    assert verdict.status is FAILED
    assert verdict.reason == "1 of 2 checks failed"
    assert verdict.commands[0].known_failures == 0


def test_old_failures_excuse_no_time_limit() -> None:
    late = held_against(
        ran(1, timed_out=True), [seen("a", "b"), None], Baseline(seen={"pytest": seen("a", "b")})
    )
    assert late.status is FAILED
    assert held(seen("a"), seen("a", "b"), exit_code=1).status is FAILED, "it failed for another reason"


STUCK = Baseline(seen={"pytest": seen("a", problems=(NO_END,))}, stuck=frozenset({"pytest"}))


def test_what_came_to_no_end_before_the_work_and_after_it_says_nothing(wording: Wording) -> None:
    verdict = held_against(ran(1, timed_out=True), [seen("a", problems=(NO_END,)), None], STUCK)
    assert (verdict.status, verdict.lasting) == (VerdictStatus.INCONCLUSIVE, True)
    wording(verdict.reason)
    assert not passed(verdict)
    assert verdict.checks[0].status is CheckStatus.SKIPPED
    wording(verdict.checks[0].message)


def test_work_that_brings_the_tests_to_their_end_is_judged_and_what_is_not_known_is_told(
    wording: Wording,
) -> None:
    verdict = held_against(ran(), [seen("ab"), None], STUCK)
    assert verdict.status is PASSED
    assert verdict.is_excused
    wording(verdict.unknown_before)
    assert held_against(ran(1), [seen("a", "b"), None], STUCK).status is FAILED
    fresh = held_against(ran(1, timed_out=True), [None, None], Baseline(seen={}))
    assert fresh.status is FAILED, "it did come to its end before"


def test_a_failure_beside_what_says_nothing_is_a_failure() -> None:
    late = ran(1, timed_out=True)
    lint = replace(late.checks[1], status=CheckStatus.FAILED)
    verdict = held_against(
        replace(late, checks=(late.checks[0], lint)), [seen(problems=(NO_END,)), None], STUCK
    )
    assert verdict.status is FAILED


def test_a_command_is_stuck_without_an_end_of_any_kind() -> None:
    result = ran().commands[0]
    assert baseline([result], [seen("a")]).stuck == frozenset()
    for stuck in (replace(result, timed_out=True), replace(result, exit_code=-9)):
        assert baseline([stuck], [None]).stuck == {"pytest"}
    assert baseline([result], [seen(problems=(NO_END,))]).stuck == {"pytest"}


LINT = GateCommand(name="lint", command="ruff")


def lint(exit_code: int | None = 1, *lines: str) -> Verdict:
    """Return what a command found in which no tests can be seen, with lines of its own that say what fails."""
    verdict = ran()
    bad = [
        Check(id=f"1:lint{line}", name=f"lint{line}", status=CheckStatus.FAILED, message="F401")
        for line in ("", *(f"/{one}" for one in lines))
    ]
    return replace(
        verdict,
        status=FAILED,
        checks=tuple(bad),
        commands=(replace(verdict.commands[1], exit_code=exit_code),),
        reason="1 of 1 checks failed",
    )


def on_base(verdict: Verdict, *own: GateCommand) -> Baseline:
    seen = [None] * len(verdict.commands)
    return baseline(verdict.commands, seen, checks=verdict.checks, own=own, commit="c0ffee" * 6)


def test_a_gate_without_visible_tests_that_was_red_before_is_not_held_against_the_work(
    wording: Wording,
) -> None:
    verdict = held_against(lint(), [None], on_base(lint()))
    assert (verdict.status, verdict.lasting) == (VerdictStatus.INCONCLUSIVE, True)
    wording(verdict.reason)
    assert verdict.checks[0].status is CheckStatus.SKIPPED
    assert verdict.checks[0].message == "it failed before this work too\nF401"


@each_case(
    ("now", "before"),
    [
        (lint(), Baseline()),
        (lint(), on_base(lint(), LINT)),
        (lint(1, "a", "b"), on_base(lint(1, "a"))),
        (lint(1), on_base(lint(127))),
        (lint(1), on_base(lint(-9))),
        (lint(-9), on_base(lint(1))),
    ],
    ids=["green", "what the work is to mend", "more", "could not run", "no end before", "no end now"],
)
def test_what_was_not_red_before_in_the_same_way_is_the_works_own(now: Verdict, before: Baseline) -> None:
    assert held_against(now, [None], before).status is FAILED


def test_a_new_failure_beside_a_gate_that_was_red_before_is_the_works_own() -> None:
    both = ran(1)
    red = replace(both.checks[1], status=CheckStatus.FAILED)
    verdict = held_against(
        replace(both, checks=(both.checks[0], red)), [seen("a", "b"), None], on_base(lint())
    )
    assert verdict.status is FAILED
    assert [check.status for check in verdict.checks] == [CheckStatus.FAILED, CheckStatus.SKIPPED]


def test_the_base_is_asked_only_about_gates_that_failed_and_show_no_tests() -> None:
    gates = [GateCommand(name="tests", command="pytest"), LINT]
    assert not failed_unseen(gates, (), ran(), [None, None])
    assert not failed_unseen(gates, (), ran(1), [seen("a", "b"), None])
    assert failed_unseen(gates, (), ran(1), [None, None])
    assert failed_unseen([LINT], (), lint(), [None])
    assert not failed_unseen([LINT], [LINT], lint(), [None]), "it is to be mended by the work"
    assert not failed_unseen([], (), lint(), [None]), "no gate of the project"


def test_without_a_baseline_that_should_be_there_a_failure_is_nobodys(wording: Wording) -> None:
    why = Verdict(status=VerdictStatus.INCONCLUSIVE, reason="no disk", lasting=True)
    red = without_baseline(ran(1), why)
    assert (red.status, red.lasting) == (VerdictStatus.INCONCLUSIVE, True)
    wording(red.reason)
    green = without_baseline(ran(), why)
    assert (green.status, green.unknown_before, green.is_excused) == (PASSED, "no disk", True)


def test_a_gate_that_could_not_run_is_left_alone() -> None:
    broken = Verdict(status=VerdictStatus.INCONCLUSIVE, reason="no disk")
    assert held_against(broken, [], None) is broken


def test_many_tests_are_counted_and_some_named() -> None:
    many = frozenset(f"test_{n:02}" for n in range(14))
    (words,) = objections(held(Witnessed(failed=many), None))
    assert words.startswith("14 tests failed, though the command ended with 0: test_00, ")
    assert words.endswith("test_09 and 4 more")


@each_case(
    ("command", "named"),
    [
        ("python -m pytest -q", True),
        ("cd x && py.test", True),
        ("python3 -B -m unittest discover", True),
        ("node --import tsx --test", True),
        ("node build.js && ./run --test", False),
        ("make test", False),
        ("pytesting", False),
    ],
)
def test_a_test_runner_is_known_by_its_command(command: str, named: bool) -> None:
    assert is_test_runner(command) is named


@each_case(
    ("gates", "seen_in", "compared"),
    [
        (["make test"], [], False),
        (["make test"], ["make test"], True),
        (["make lint"], ["make own"], False),
        (["pytest"], [], True),
        ([], ["make own"], False),
    ],
    ids=["nothing seen", "seen in a gate", "seen in a task's own check", "by its name", "no gate"],
)
def test_only_tests_of_the_projects_gates_are_compared_with_how_it_was_before(
    gates: list[str], seen_in: list[str], compared: bool
) -> None:
    asked = [GateCommand(name=one, command=one) for one in gates]
    ran = [*asked, GateCommand(name="own", command="make own")]
    found = [Witnessed(passed=frozenset({A})) if one.command in seen_in else None for one in ran]
    assert is_compared(asked, ran, found) is compared


OWN = GateCommand(name="tests", command="pytest")


@each_case(
    ("gates", "found", "before", "names"),
    [
        ([], [seen("a"), None], None, ["tests"]),
        ([], [None, None], None, []),
        ([OWN], [seen("a"), None], None, []),
        ([LINT], [seen("a"), seen("ab")], Baseline(), []),
        ([LINT], [seen("ab"), seen("a")], Baseline(), ["tests"]),
        ([LINT], [seen("a"), seen("ab")], None, ["tests"]),
    ],
    ids=["its own", "none seen", "a gate", "a gate has them", "a gate has some", "nothing known of the gate"],
)
def test_tests_that_only_a_task_asks_for_are_not_compared_unless_a_gate_sees_them_too(
    gates: list[GateCommand], found: list[Witnessed | None], before: Baseline | None, names: list[str]
) -> None:
    assert [one.name for one, _ in uncompared([OWN], gates, ran(), found, before)] == names


def test_what_was_not_compared_is_a_note(wording: Wording) -> None:
    assert with_uncompared(ran(), []) == ran()
    told = with_uncompared(ran(), ran().commands[:1])
    assert not told.is_excused
    wording(told.notes)


def test_the_files_that_a_command_may_name_are_known() -> None:
    named = files_named("cd x && python -m pytest -q tests/test_a.py::test_a ../out.py --x=y")
    assert {"x", "tests/test_a.py"} <= set(named)
    assert not any(one.startswith(("-", "..")) or one == "out.py" for one in named)
    assert "tests/test_a.py" in files_named("python -m unittest tests.test_a")
    assert stand_in(seen("a", skipped="b"), ("tests/test_a.py", "tests/test_b.py"))
    assert not stand_in(seen("a", skipped="b"), ("tests/test_a.py",))


@each_case(
    ("command", "named"),
    [
        ("pytest -q tests/test_a.py", []),
        ("python test_a.py && pytest test_b.py", []),
        ("pytest tests/test_a.py::test_a -x", [("tests/test_a.py", ("test_a",))]),
        ("pytest tests/test_a.py::TestA::test_a", [("tests/test_a.py", ("TestA", "test_a"))]),
        (
            "python -m unittest test_a.Cases.test_it",
            [("test_a.py", ("Cases", "test_it")), ("test_a/Cases.py", ("test_it",))],
        ),
    ],
)
def test_the_tests_that_a_command_names_are_known_with_their_files(
    command: str, named: list[tuple[str, tuple[str, ...]]]
) -> None:
    assert list(witnesses.tests_named(command)) == named


def test_a_command_that_may_be_empty_says_nothing_when_no_test_runs() -> None:
    verdict = held_against(ran(5), [seen(out="a"), None], None, may_be_empty=("pytest",))
    assert verdict.commands[0].only_new_tests
    assert verdict.commands[0].tests == 0
    assert not verdict.commands[0].refused
