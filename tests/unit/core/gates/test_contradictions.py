"""Existing checks that new work contradicts: which ones, who may allow it, and what is asked."""

from dataclasses import replace

from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright.core.gates.contradictions import (
    allowed_by,
    collapsed,
    contradicted,
    diff_of,
    id_prefixes,
    is_tampered,
    listed,
    missing_too_many,
    plan_question,
    question,
)
from loopwright.core.values.findings import Verdict, VerdictStatus
from loopwright.core.values.patches import Patch
from loopwright.core.values.policy import Policy

FILE = "tests/test_a.py"
A, B = f"{FILE}::test_a", f"{FILE}::test_b"


def judged(*broken: str, lost: tuple[str, ...] = (), failed: bool = True) -> Verdict:
    status = VerdictStatus.FAILED if failed else VerdictStatus.PASSED
    return Verdict(status=status, broken=broken, lost=lost)


def test_a_check_is_contradicted_when_it_fails_or_no_longer_runs() -> None:
    assert contradicted(judged(A, lost=(B, A))) == (A, B)
    assert contradicted(judged(lost=(B,), failed=False)) == (B,)
    assert contradicted(judged(failed=False)) == ()
    assert len(contradicted(judged(*map(str, range(300))))) == 300, "each of them is decided"


def test_a_failed_run_without_a_contradicted_check_is_tampering() -> None:
    assert is_tampered(judged())
    assert not is_tampered(judged(A))
    assert is_tampered(replace(judged(A), tampered=True)), "no permission covers what bends the runner"
    assert not is_tampered(judged(lost=(A,)))
    assert not is_tampered(judged(failed=False))


def test_a_file_that_cannot_be_loaded_or_has_many_contradictions_is_named_once() -> None:
    assert collapsed([A, B, A]) == (A, B)
    assert collapsed([A, FILE, B]) == (FILE,)
    many = [f"{FILE}::test_{n}" for n in range(6)]
    assert collapsed([*many, "tests/test_b.py::test_b"]) == (FILE, "tests/test_b.py::test_b")
    assert collapsed(many[:5]) == tuple(many[:5])
    dotted = [f"tests.test_a.Cases.test_{n}" for n in range(6)]
    assert collapsed(dotted) == ("tests.test_a.Cases",)
    assert collapsed(["lint", "types"]) == ("lint", "types")


@each_case(
    ("pattern", "check"),
    [
        (FILE, A),
        (FILE, FILE),
        ("tests/", A),
        ("tests/**", A),
        ("**/test_*.py", A),
        (A, A),
        (A, f"{A}[1-2]"),
        (f"{FILE}::TestA", f"{FILE}::TestA::test_it"),
        ("lint", "lint"),
    ],
)
def test_a_pattern_covers_a_file_a_test_its_cases_and_a_class(pattern: str, check: str) -> None:
    assert allowed_by(check, Policy(), [pattern]) == f"the task's may_change: {pattern}"
    assert allowed_by(check, Policy(may_change=(pattern,)), []) == f"the setting may_change: {pattern}"


@each_case(
    ("pattern", "check"),
    [
        (A, B),
        (A, f"{A}_too"),
        (A, FILE),
        (f"{FILE}::TestA", f"{FILE}::TestAll::test_it"),
        ("src/", A),
        ("tests/test_b.py", A),
    ],
)
def test_a_pattern_covers_nothing_else(pattern: str, check: str) -> None:
    assert allowed_by(check, Policy(may_change=(pattern,)), [pattern]) == ""


def test_the_setting_test_changes_allows_every_contradiction(wording: Wording) -> None:
    assert allowed_by(A, Policy(), []) == ""
    wording(allowed_by(A, Policy(test_changes="allow"), []))
    wording(allowed_by(A, Policy(test_changes="allow"), [A]))


def test_more_than_a_tenth_fewer_passing_tests_is_a_question() -> None:
    def kept(now: int, *lost: str) -> bool:
        found = Verdict(status=VerdictStatus.PASSED, lost=lost, passed_before=100, passed_now=now)
        return missing_too_many(found)

    assert kept(89, A)
    assert not kept(90, A)
    assert not kept(50), "nothing is missing: a command ran fewer times"


def test_the_question_shows_the_checks_the_reason_and_the_change() -> None:
    asked = question("01", [A], [], reason="The task asks for it.", diff="-old\n+new")
    assert asked == (
        "01: the work passes its own versions of all checks, but contradicts existing checks. "
        f"Accept the change?\n\nContradicted: these fail with the new code:\n- {A}\n\n"
        "The agent's reason:\nThe task asks for it.\n\n"
        "Old check (-) and new check (+):\n-old\n+new"
    )
    silent = question("01", [A], [], reason="", diff="")
    assert silent.endswith("The agent gave no reason.")
    assert len(question("01", [A], [], reason="x" * 9000, diff="y" * 90_000)) < 9000


def test_a_check_that_no_longer_runs_is_called_removed() -> None:
    assert "but removes existing checks. Accept" in (gone := question("01", [A], [A], reason="", diff=""))
    assert f"Removed: these no longer run:\n- {A}\n" in gone
    assert "Contradicted" not in gone
    both = question("01", [A, B], [B], reason="", diff="")
    assert "but contradicts and removes existing checks" in both
    assert f"- {A}\n\nRemoved: these no longer run:\n- {B}\n" in both


def test_a_long_list_of_checks_is_cut_with_a_count() -> None:
    assert listed([str(n) for n in range(25)]).endswith("- 19\n- and 5 more")


def test_the_diff_has_only_the_files_of_the_contradicted_checks() -> None:
    parts = [
        f"diff --git a/{path} b/{path}\nindex 1..2 100644\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n"
        for path in ("calc.py", FILE, f"{FILE}x")
    ]
    gone = "diff --git a/tests/test_c.py b/tests/test_c.py\ndeleted file mode 100644\n"
    patch = Patch(sha256="a" * 64, files=(), text="".join([*parts, gone]), is_whole=True)
    assert diff_of(patch, {FILE}) == f"--- a/{FILE}\n+++ b/{FILE}\n@@ -1 +1 @@\n-a\n+b"
    assert diff_of(patch, {"tests/test_c.py"}) == "a/tests/test_c.py b/tests/test_c.py"
    assert diff_of(patch, {"other.py"}) == ""


def test_the_question_about_a_plan_names_its_checks_and_the_tasks_that_changed_judging_files() -> None:
    asked = plan_question(
        "Prices", ["a.py::t", "b.py::u"], ["b.py::u"], tasks=("soft", "break"), diff="-1\n+2"
    )
    assert "a.py::t" in asked
    assert "b.py::u" in asked
    assert "soft, break" in asked
    assert asked.endswith("-1\n+2")
    assert "no task" in plan_question("Prices", ["a.py::t"], [], tasks=(), diff="")


def test_a_permission_for_a_file_covers_tests_that_are_named_by_its_module(wording: Wording) -> None:
    policy = Policy(may_change=("tests/test_a.py",))
    check = "tests.test_a.Case.test_one"
    assert check.startswith(id_prefixes(("tests/test_a.py",)))
    wording(allowed_by(check, policy, (), ["tests/test_a.py"]))
    assert allowed_by(check, policy, ()) == ""
