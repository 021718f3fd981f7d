"""Tests that were to judge some work and did not run."""

from tests.cases import each_case
from tests.unit.core.gates.test_witnesses import objections, ran
from tests.wording_plugin import Wording

from loopwright.core.gates.missing_tests import (
    is_shown,
    nothing_passed,
    now_passing,
    refused_without,
    unanswered,
    unloaded_skips,
    with_new_skips,
)
from loopwright.core.gates.witnesses import held_against
from loopwright.core.values.findings import Baseline, CommandResult, Witnessed

FILE = "tests/test_a.py"
A, B = f"{FILE}::test_a", f"{FILE}::test_b"


def saw(passed: str = "", failed: str = "", skipped: str = "", xfailed: str = "", out: str = "") -> Witnessed:
    def ids(names: str) -> frozenset[str]:
        return frozenset(names.split())

    return Witnessed(
        passed=ids(passed),
        failed=ids(failed),
        skipped=ids(f"{skipped} {xfailed}"),
        xfailed=ids(xfailed),
        deselected=ids(out),
    )


def left(before: Witnessed, now: Witnessed, *spared: str) -> dict[str, frozenset[str]]:
    return dict(unanswered(before, now, spared))


def test_a_test_that_failed_before_has_to_be_seen_again() -> None:
    red = saw(failed=A)
    assert left(red, saw(passed=A)) == {}
    assert left(red, saw(failed=A)) == {}, "it is an old failure, and is told as such"
    assert left(red, saw(skipped=A)) == {"skipped": {A}}
    assert left(red, saw(out=A)) == {"deselected": {A}}
    assert left(red, saw(passed=B)) == {"missing": {A}}
    assert left(red, saw(passed=B), FILE) == {}, "the task may change that file"


@each_case(
    ("whole", "test"),
    [
        (FILE, A),
        (f"{FILE}::TestIt", f"{FILE}::TestIt::test_a"),
        ("tests/__init__.py", A),
        ("test/mul.test.js", "test/mul.test.js::mul > twice"),
        ("example.com/calc", "example.com/calc::TestMul"),
        ("unittest.loader._FailedTest.test_a", "tests.test_a.Cases.test_it"),
        ("unittest.loader._FailedTest.tests.test_a", "tests.test_a.Cases.test_it"),
    ],
)
def test_what_could_not_be_loaded_before_is_answered_by_any_of_its_tests_that_ran(
    whole: str, test: str
) -> None:
    assert left(saw(failed=whole), saw(passed=test)) == {}
    assert left(saw(failed=whole), saw(failed=test)) == {}
    assert left(saw(failed=whole), saw(passed="other.py::test_it", skipped=test)) == {"skipped": {whole}}
    assert left(saw(failed=whole), saw(passed="other.py::test_it")) == {"missing": {whole}}


def test_of_the_tests_in_its_own_acceptance_one_has_to_pass(wording: Wording) -> None:
    def own(now: Witnessed, before: Witnessed | None = None) -> list[str]:
        known = None if before is None else Baseline(seen={"pytest": before})
        return objections(held_against(ran(), [now, None], known, own={"pytest"}))

    assert own(saw(skipped=A)) == own(saw(xfailed=A)) == [f"none of its tests passed: {A}"]
    wording(own(saw(out=A)))
    assert own(saw(passed=B, skipped=A)) == own(Witnessed()) == []
    assert own(saw(skipped=A), saw(skipped=A)) == [], "so it was before the work: the red proof says so"
    assert objections(held_against(ran(), [saw(skipped=A), None], None, own={"another"})) == []
    assert nothing_passed(saw(skipped=A), saw(passed=A))


def test_a_test_of_the_work_that_did_not_run_is_named_unless_it_did_not_before() -> None:
    def named(now: Witnessed, before: Witnessed | None = None) -> tuple[str, ...]:
        known = None if before is None else Baseline(seen={"pytest": before})
        return with_new_skips(ran(), [now, None], known, (FILE,)).notes

    told = f"tests: 1 test that the work brought or changed was skipped or expected to fail: {A}"
    assert named(saw(passed=B, skipped=A)) == named(saw(passed=B, xfailed=A)) == (told,)
    assert named(saw(passed=B, skipped=A), saw(skipped=A)) == ()
    assert named(saw(passed=B, skipped="tests/test_other.py::test_it")) == ()
    assert with_new_skips(ran(1), [saw(skipped=A), None], None, (FILE,)) == ran(1), "it failed anyway"
    noted = with_new_skips(ran(), [saw(passed=B, skipped=A), None], None, (FILE,))
    assert not noted.is_excused, "a new test that is skipped here is a note"


def test_one_of_several_sets_of_values_may_be_left_out_for_the_platform_but_not_be_expected_to_fail() -> None:
    both = saw(passed=f"{A}[linux]", skipped=f"{A}[windows]")
    assert with_new_skips(ran(), [both, None], None, (FILE,)).notes == ()
    wrong = saw(passed=f"{A}[2]", xfailed=f"{A}[7]")
    assert with_new_skips(ran(), [wrong, None], None, (FILE,)).notes != ()


def test_what_failed_before_the_work_and_passes_with_it_shows_the_work() -> None:
    other = saw(passed="tests/test_other.py::test_it")
    assert now_passing([saw(failed=A), saw(failed=B)], [saw(passed=A), other]) == (A,)
    assert now_passing([saw(failed=FILE)], [saw(passed=A)]) == (FILE,), "it could not be loaded before"
    assert (
        now_passing([saw(failed=A)], [saw(skipped=A)]) == now_passing([saw(passed=A)], [saw(passed=A)]) == ()
    )


def test_what_failed_without_the_work_has_to_run_with_it(wording: Wording) -> None:
    names = {"pytest": "own"}
    without = {"pytest": saw(failed=f"{A} {B}")}
    assert refused_without(without, {"pytest": saw(passed=f"{A} {B}")}, names) == ()
    wording(refused_without(without, {"pytest": saw(passed=A, skipped=B)}, names))
    assert refused_without(without, {}, names) == (), "nothing can be seen in it"
    green = {"pytest": saw(passed=f"{A} {B}")}
    wording(refused_without(green, {"pytest": saw(passed=A, skipped=B)}, names))


def test_red_is_shown_by_a_test_that_passes_with_the_work_or_by_an_exit_code_where_none_can_be_seen() -> None:
    result = CommandResult(
        name="own", command="pytest", exit_code=2, duration_s=1, output_sha256="", output_bytes=0
    )
    died = {"pytest": saw(failed=FILE)}
    assert is_shown([result], died, {"pytest": saw(passed=A)})
    assert not is_shown([result], died, {"pytest": saw(passed="tests/test_other.py::test_it", failed=A)})
    assert is_shown([result], {}, {"pytest": saw(passed=A)}), "it died before any test was known"
    assert not is_shown([result], {}, {"pytest": saw(skipped=A)})
    assert is_shown([result], {}, {})


def test_a_test_of_a_file_that_could_not_be_loaded_and_now_does_not_run_is_known() -> None:
    now = saw(passed=B, skipped=f"{A} tests/test_other.py::test_it")
    assert list(unloaded_skips(saw(failed=FILE), now)) == [A]
    assert list(unloaded_skips(saw(failed=B), now)) == [], "its file was loaded: it was skipped then too"
    assert list(unloaded_skips(None, now)) == []


def test_what_passed_without_the_work_shows_nothing() -> None:
    result = CommandResult(
        name="own", command="pytest", exit_code=0, duration_s=1, output_sha256="", output_bytes=0
    )
    assert not is_shown([result], {}, {"pytest": saw(passed=A)})
