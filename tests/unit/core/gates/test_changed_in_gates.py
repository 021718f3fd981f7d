"""A gate that changes the tree which it judges."""

from tests.unit.core.gates.test_witnesses import ran
from tests.wording_plugin import Wording

from loopwright.core.gates.flakes import suspects
from loopwright.core.gates.witnesses import held_to_files
from loopwright.core.values.findings import VerdictStatus


def is_script(path: str) -> bool:
    return path.startswith("ci/")


def test_a_file_that_judges_the_work_fails_the_gate_and_is_no_chance(wording: Wording) -> None:
    verdict = held_to_files(ran(changed=("ci/check.sh", "calc.py")), frozenset(), is_script)
    assert verdict.status is VerdictStatus.FAILED
    wording(verdict.checks[-1].name)
    assert suspects(verdict, [None, None], None, green_here={"pytest"}, rewritten=()) == ()


def test_any_other_file_is_named_and_leaves_something_open(wording: Wording) -> None:
    verdict = held_to_files(ran(changed=("calc.py",)), frozenset(), is_script)
    assert (verdict.status, verdict.is_excused) == (VerdictStatus.PASSED, True)
    (told,) = verdict.left_open
    wording(told)
    assert told.endswith(": calc.py")


def test_a_file_that_was_put_back_is_named_too(wording: Wording) -> None:
    verdict = held_to_files(ran(touched=("ci/check.sh",)), frozenset(), is_script)
    assert (verdict.status, verdict.is_excused) == (VerdictStatus.PASSED, True)
    wording(verdict.left_open[0])
    assert held_to_files(ran(touched=("ci/check.sh",)), frozenset({"ci/check.sh"}), is_script) == ran(
        touched=("ci/check.sh",)
    )


def test_what_the_gate_changed_before_the_work_too_is_the_projects_own() -> None:
    verdict = ran(changed=("ci/check.sh", "dist/app.js"))
    assert held_to_files(verdict, frozenset({"ci/check.sh", "dist/app.js"}), is_script) == verdict


def test_a_setup_may_write_what_is_there_already_and_nothing_else() -> None:
    same = ran(touched=("ci/check.sh",))
    assert held_to_files(same, frozenset(), is_script, setup=same.commands[0].command) == same
    verdict = held_to_files(ran(changed=("calc.py",)), frozenset(), is_script, setup=same.commands[0].command)
    assert verdict.is_excused
