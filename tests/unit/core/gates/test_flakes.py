"""What may have failed by chance, and what a second run makes of it."""

from collections.abc import Collection
from dataclasses import replace

from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright.core.gates.flakes import (
    MOST,
    Suspect,
    excused,
    failed_again,
    green_commands,
    red_alone,
    suspects,
)
from loopwright.core.gates.verdicts import judge, passed
from loopwright.core.gates.witnesses import NO_END, NOTHING, held_against
from loopwright.core.values.findings import (
    Baseline,
    Check,
    CheckStatus,
    CommandResult,
    Verdict,
    VerdictStatus,
    Witnessed,
)

A, B, NEW = "tests/test_a.py::test_a", "tests/test_b.py::test_b", "tests/test_new.py::test_new"
BEFORE = Baseline(seen={"pytest": Witnessed(passed=frozenset({A, B}))})


def ids(*names: str) -> frozenset[str]:
    return frozenset(names)


def result(exit_code: int | None = 1, name: str = "tests", command: str = "pytest") -> CommandResult:
    return CommandResult(
        name=name, command=command, exit_code=exit_code, duration_s=1, output_sha256="", output_bytes=0
    )


def failing(*more: CommandResult, **changes: object) -> Verdict:
    """Return the verdict on a failing pytest and more commands."""
    commands = (replace(result(), **changes), *more)  # type: ignore[arg-type]
    checks = [
        Check(
            id=f"{n}:{one.name}",
            name=one.name,
            status=CheckStatus.PASSED if one.exit_code == 0 else CheckStatus.FAILED,
        )
        for n, one in enumerate(commands, 1)
    ]
    return judge(checks, commands)


def suspected(
    verdict: Verdict,
    *seen: Witnessed | None,
    before: Baseline | None = BEFORE,
    green_here: Collection[str] = (),
    rewritten: tuple[str, ...] = (),
) -> tuple[Suspect, ...]:
    held = held_against(verdict, seen, before)
    return suspects(held, seen, before, green_here=green_here, rewritten=rewritten)


BOTH = Witnessed(passed=ids(A), failed=ids(B))


def test_a_test_that_passed_before_the_work_may_have_failed_by_chance() -> None:
    (one,) = suspected(failing(), BOTH)
    assert one == Suspect(position=1, tests=ids(B), green_here=False)
    (one,) = suspected(failing(), BOTH, before=None, green_here={"pytest"})
    assert one == Suspect(position=1, tests=ids(B), green_here=True)


def test_a_test_that_is_new_or_was_changed_by_the_work_is_never_excused() -> None:
    assert not suspected(failing(), Witnessed(passed=ids(A, B), failed=ids(NEW)))
    assert not suspected(failing(), Witnessed(passed=ids(A), failed=ids(B, NEW)))
    assert not suspected(failing(), BOTH, rewritten=("tests/test_b.py",))
    assert not suspected(failing(), BOTH, before=None)


@each_case(
    ("verdict", "seen"),
    [
        (failing(timed_out=True), BOTH),
        (failing(exit_code=127), None),
        (failing(exit_code=None), BOTH),
        (failing(exit_code=0), BOTH),
        (failing(), Witnessed(passed=ids(A, B))),
        (failing(), replace(BOTH, problems=(NO_END,))),
    ],
    ids=["time limit", "not there", "no exit", "ended with 0", "no test failed", "no end"],
)
def test_what_is_no_chance_is_not_run_again(verdict: Verdict, seen: Witnessed | None) -> None:
    assert not suspected(verdict, seen, green_here={"pytest"})


def test_too_many_at_once_are_no_chance() -> None:
    many = [f"tests/test_a.py::test_{n}" for n in range(MOST + 1)]
    before = Baseline(seen={"pytest": Witnessed(passed=ids(*many))})
    assert not suspected(failing(), Witnessed(failed=ids(*many)), before=before)
    few = Witnessed(passed=ids(many[0]), failed=ids(*many[1:]))
    assert len(suspected(failing(), few, before=before)[0].tests) == MOST


def test_nothing_is_run_again_when_another_command_is_red_anyway() -> None:
    lint = result(name="lint", command="ruff")
    assert not suspected(failing(lint), BOTH, None)
    assert suspected(failing(replace(lint, exit_code=0)), BOTH, None)


def test_a_command_without_tests_is_suspect_only_if_it_passed_on_this_very_tree() -> None:
    script = failing(command="sh check.sh")
    assert not suspected(script, None)
    assert suspected(script, None, green_here={"sh check.sh"}) == (
        Suspect(position=1, tests=ids(), green_here=True),
    )


def test_tests_that_failed_before_are_no_suspects() -> None:
    before = Baseline(seen={"pytest": Witnessed(passed=ids(B), failed=ids(A))})
    (one,) = suspected(failing(), Witnessed(failed=ids(A, B)), before=before)
    assert one.tests == ids(B)


@each_case(
    ("again", "red"),
    [
        (Witnessed(passed=ids(B)), ids()),
        (Witnessed(passed=ids(A, B), problems=(NOTHING,)), ids()),
        (Witnessed(failed=ids(B)), ids(B)),
        (Witnessed(skipped=ids(B)), ids(B)),
        (Witnessed(passed=ids(B), problems=(NO_END,)), ids(B)),
        (None, ids(B)),
    ],
)
def test_a_test_that_is_not_seen_to_pass_alone_is_red(again: Witnessed | None, red: frozenset[str]) -> None:
    assert red_alone(Suspect(position=1, tests=ids(B), green_here=False), BOTH, again) == red


def test_what_is_flaky_passes_and_is_named(wording: Wording) -> None:
    verdict = failing()
    one = Suspect(position=1, tests=ids(B), green_here=True)
    after = excused(verdict, [one], {1: 2})
    assert passed(after)
    assert after.reason == ""
    assert (after.commands[0].flaky, after.commands[0].known_failures) == ((B,), 2)
    assert after.commands[0].is_excused
    wording(after.checks[0].message)
    seen = Check(id="1:tests/witness", name="tests", status=CheckStatus.PASSED, message="as before")
    beside = excused(replace(verdict, checks=(*verdict.checks, seen)), [one], {})
    assert beside.checks[1] == seen, "what has passed needs no excuse"
    whole = excused(failing(command="sh x"), [replace(one, tests=ids())], {})
    assert whole.commands[0].flaky == ("tests",)


def test_what_failed_again_is_told_as_such(wording: Wording) -> None:
    alone = failed_again(failing(), {1: ids(B)}, alone=True)
    assert alone.status is VerdictStatus.FAILED
    wording(alone.checks[-1].message)
    together = failed_again(failing(), {1: ids(B)}, alone=False)
    wording(together.checks[-1].message)
    whole = failed_again(failing(), {1: ids()}, alone=True)
    wording(whole.checks[-1].message)


def test_a_command_was_green_only_without_failures_of_any_kind() -> None:
    good = failing(exit_code=0)
    assert green_commands(good) == {"pytest"}
    assert not green_commands(failing())
    assert not green_commands(excused(failing(), [Suspect(position=1, tests=ids(B), green_here=True)], {}))
