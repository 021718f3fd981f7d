"""Red before green in a receipt."""

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.core.receipts.as_json import named, render, verify_receipt
from tests.unit.core.receipts.test_receipts import (
    FACTS,
    FIRST,
    GATE,
    OWN,
    TREE1,
    build,
    rows,
    sha,
    steered,
    verdict_record,
)

from loopwright.core.receipts.model import read_receipt
from loopwright.core.receipts.verdicts import red_verdict
from loopwright.core.rows.model import Role, Run
from loopwright.core.values.findings import VerdictStatus


def proven(status: VerdictStatus, exit_code: int = 0, **facts: Any) -> dict[str, Any]:
    red = verdict_record(8, sha("8"), OWN, status=status, exit_code=exit_code)
    made = build(attempts=steered(red_tree=sha("8"), **facts), verdicts=[*rows()["verdicts"], red])
    return json.loads(render(made))  # type: ignore[no-any-return]


@pytest.mark.capability("C038")
def test_who_says_that_it_failed_before_has_a_verdict_that_says_so() -> None:
    assert verify_receipt(proven(VerdictStatus.FAILED, red_proof=True), FACTS) == []
    assert verify_receipt(proven(VerdictStatus.PASSED, red_proof=False), FACTS) == []
    for status, said in ((VerdictStatus.PASSED, True), (VerdictStatus.FAILED, False)):
        found = verify_receipt(proven(status, red_proof=said), FACTS)
        assert found == ["red_proof t1"]


def test_a_program_that_was_not_there_before_the_work_is_as_good_as_a_failure() -> None:
    said = {"red_proof": True}
    assert verify_receipt(proven(VerdictStatus.INCONCLUSIVE, exit_code=127, **said), FACTS) == []
    assert verify_receipt(proven(VerdictStatus.INCONCLUSIVE, exit_code=1, **said), FACTS) != []


def test_the_latest_verdict_on_the_tree_without_the_work_says_how_it_was() -> None:
    made = proven(VerdictStatus.FAILED, red_proof=True)
    key = made["verdicts"][-1]["gate_key"]
    assert red_verdict(read_receipt(made), sha("8"), key) is None, "whose word it is has to be known"
    made["runs"].append({**made["runs"][0], "id": made["verdicts"][-1]["run_id"], "role": "baseline"})
    found = red_verdict(read_receipt(made), sha("8"), key)
    assert found is not None
    assert found.status == "failed"
    assert red_verdict(read_receipt(made), sha("7"), key) is None


def fix(**about: Any) -> list[Any]:
    first, *others = rows()["tasks"]
    return [replace(first, **about), *others]


def test_acceptance_that_is_green_without_the_work_is_a_gap_of_a_fix_and_else_a_note() -> None:
    green = {"attempts": steered(red_tree=sha("8"), red_proof=False)}
    plain = build(**green)
    assert (plain["outcome"], plain["gaps"]) == ("verified", [])
    assert "not_demonstrated t1" in named(plain)
    for about in ({"type": "bug"}, {"prove": True}):
        made = build(**green, tasks=fix(**about))
        assert made["tasks"][0]["outcome"] == made["outcome"] == "verified_with_gaps"
        (gap,) = made["gaps"]
        assert (gap["code"], gap["task"]) == ("not_shown", "t1")
        assert "not_demonstrated t1" not in named(made), "the same is not stated twice"


def test_acceptance_that_failed_on_the_base_or_needs_an_added_test_shows_the_work() -> None:
    def undemonstrated(**given: Any) -> bool:
        return "not_demonstrated t1" in named(build(**given))

    given = rows()
    command = given["tasks"][0].acceptance[0].command
    failed = replace(given["plan"], evaluation={**given["plan"].evaluation, "red_on_base": [command]})
    assert undemonstrated()
    assert not undemonstrated(plan=failed)
    assert not undemonstrated(attempts=steered(pinned_without=(command,)))
    other = replace(failed, evaluation={**failed.evaluation, "red_on_base": ["true"]})
    assert undemonstrated(plan=other), "the command of another task shows nothing of this one"
    tried = steered(red_tree=sha("8"), red_proof=False, pinned_without=(command,))
    assert undemonstrated(attempts=tried), "with the new tests alone it passed"


def test_a_test_that_the_baseline_saw_fail_shows_the_work() -> None:
    red = verdict_record(8, sha("8"), GATE, status=VerdictStatus.FAILED, exit_code=1)
    made = build(
        attempts=steered(red_seen=("tests/test_a.py::test_a",)),
        tasks=fix(type="bug"),
        verdicts=[*rows()["verdicts"], red],
    )
    assert (made["outcome"], made["gaps"]) == ("verified", [])
    assert "not_demonstrated t1" not in named(made)
    assert verify_receipt(json.loads(render(made)), FACTS) == []
    invented = build(attempts=steered(red_seen=("tests/test_a.py::test_a",)), tasks=fix(type="bug"))
    assert "failed_before t1" in verify_receipt(json.loads(render(invented)), FACTS)


def test_what_was_asked_for_and_is_not_known_is_a_gap_whoever_looked() -> None:
    made = build(
        attempts=steered(red_tree=sha("8"), red_missing="the gate could not be started"),
        tasks=fix(type="fix"),
    )
    assert made["tasks"][0]["outcome"] == made["outcome"] == "verified_with_gaps"
    assert [(one["code"], one["task"]) for one in made["gaps"]] == [("not_shown", "t1")]
    assert made["gaps"][0]["cause"].endswith(": the gate could not be started")


def test_without_acceptance_the_gates_have_to_have_failed_on_the_tests_that_came_along() -> None:
    red = verdict_record(8, sha("8"), GATE, status=VerdictStatus.FAILED)
    first, *others = rows()["tasks"]
    made = build(
        attempts=steered(red_tree=sha("8"), red_proof=True, red_tests=("test_a.py",)),
        tasks=[replace(first, acceptance=()), *others],
        verdicts=[*rows()["verdicts"], red],
    )
    assert "red_proof t1" not in verify_receipt(json.loads(render(made)), FACTS)


def test_how_a_tree_was_before_the_next_work_says_nothing_of_who_landed_it() -> None:
    """Another task's red proof asks the same of the tree that this one landed, and excuses nothing."""
    red = verdict_record(8, TREE1, FIRST, status=VerdictStatus.FAILED, exit_code=1, minutes=9)
    run = rows()["runs"][0]
    before: Run = replace(run, id=red.run_id, role=Role.BASELINE, agent=None)
    made = build(verdicts=[*rows()["verdicts"], red], runs=[*rows()["runs"], before])
    assert made["tasks"][0]["outcome"] == build()["tasks"][0]["outcome"] == "verified"
    assert "verdicts_differ" not in named(made)
    alone = build(verdicts=[*rows()["verdicts"], red])
    assert alone["tasks"][0]["outcome"] != "verified", "the same from a gate that judged it"
