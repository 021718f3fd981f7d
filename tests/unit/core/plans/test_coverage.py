"""A criterion is as good as the newest verdict on what landed; words need somebody who looked."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.cases import each_case

from loopwright.core.plans.coverage import Covered, Facts, Kind, Looked, Ran, Standing, Wanted, covered
from loopwright.core.values.findings import Check, CheckStatus, CommandResult, Verdict, VerdictStatus

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
TEST = Wanted(kind=Kind.ACCEPTANCE, name="test", text="make test", commands=("make test",))
WORDS = Wanted(kind=Kind.WORDS, text="it is fast")


def result(command: str, code: int = 0, name: str = "", **more: object) -> CommandResult:
    made = CommandResult(
        name=name or command,
        command=command,
        exit_code=code,
        duration_s=1,
        output_sha256="",
        output_bytes=0,
    )
    return replace(made, **more)  # type: ignore[arg-type]


def ran(*results: CommandResult, tree: str = "t", after: int = 0, bad: tuple[str, ...] = ()) -> Ran:
    checks = tuple(Check(id=one, name=one, status=CheckStatus.FAILED) for one in bad)
    return Ran(
        verdict_id=f"verdict_{tree}{after}",
        run_id="run_1",
        role="gate",
        tree=tree,
        commit="c0ffee",
        at=NOON + timedelta(minutes=after),
        verdict=Verdict(status=VerdictStatus.PASSED, commands=results, checks=checks),
    )


def judged(wanted: Wanted, *verdicts: Ran) -> Covered:
    return covered(wanted, Facts(ran=verdicts))


@each_case(
    ("verdicts", "standing"),
    [
        ((), Standing.NO_EVIDENCE),
        ((ran(result("make lint")),), Standing.NO_EVIDENCE),
        ((ran(result("make lint", 1), result("make test")),), Standing.PROVEN),
        ((ran(result("make test", 1)),), Standing.FAILED),
        ((ran(result("make test", timed_out=True)),), Standing.FAILED),
        ((ran(result("make test"), bad=("1:make test/a_test",)),), Standing.FAILED),
        ((ran(result("make test"), bad=("2:make lint",)),), Standing.PROVEN),
        ((ran(result("make test"), after=1), ran(result("make test", 1))), Standing.PROVEN),
        ((ran(result("make test")), ran(result("make test", 1), after=1)), Standing.FAILED),
        ((ran(result("make test")), ran(result("make test", 1), tree="whole", after=1)), Standing.FAILED),
        (
            (ran(result("make test", 1), after=1), ran(result("make test"), tree="mended", after=2)),
            Standing.PROVEN,
        ),
    ],
    ids=[
        "nothing ran",
        "something else ran",
        "it passed though another did not",
        "it failed",
        "it took too long",
        "a test in it failed",
        "a test of another failed",
        "passed on the same tree later",
        "failed on the same tree later",
        "fails with the other tasks",
        "failed with the other tasks and was mended",
    ],
)
def test_the_newest_verdict_that_ran_a_command_decides(verdicts: tuple[Ran, ...], standing: Standing) -> None:
    assert judged(TEST, *verdicts).standing is standing


def test_evidence_says_which_verdict_when_and_on_which_commit() -> None:
    (found,) = judged(TEST, ran(result("make test", 1, known_failures=2), after=3)).evidence
    assert (found.passed, found.gaps) == (True, True), "what failed before the work is no proof without gaps"
    assert (found.verdict_id, found.commit, found.at) == ("verdict_t3", "c0ffee", NOON + timedelta(minutes=3))


def test_words_are_covered_by_a_look_and_by_the_commands_that_are_in_them() -> None:
    assert judged(WORDS, ran(result("make test"))).standing is Standing.NO_EVIDENCE
    looks = (Looked(by="codex", review_id="review_1", commit="c0ffee", at=NOON, whole=False),)
    seen = covered(WORDS, Facts(looked=looks))
    assert (seen.standing, seen.evidence[0].review_id, seen.evidence[0].gaps) == (
        Standing.REVIEWED,
        "review_1",
        True,
    )
    both = Wanted(kind=Kind.WORDS, text="`a` and `b` pass", commands=("a", "b"))
    assert covered(both, Facts(ran=(ran(result("a")),), looked=looks)).standing is Standing.NO_EVIDENCE
    assert judged(both, ran(result("a"), result("b"))).standing is Standing.PROVEN


def test_a_held_out_check_is_the_one_with_the_same_files() -> None:
    held = Wanted(kind=Kind.HELD_OUT, name="other [1a2b]", text="t", commands=("t",))
    assert judged(held, ran(result("t", name="other [3c4d]"))).standing is Standing.NO_EVIDENCE
    assert judged(held, ran(result("t", name="other [1a2b]"))).standing is Standing.PROVEN


def test_what_has_not_landed_has_no_evidence_whatever_ran() -> None:
    found = covered(TEST, Facts(ran=(ran(result("make test")),), nothing="it has not landed"))
    assert (found.standing, found.reason, found.evidence) == (
        Standing.NO_EVIDENCE,
        "it has not landed",
        (),
    )
