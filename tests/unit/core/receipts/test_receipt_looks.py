"""Looks at the whole in a receipt: the facts of them, what was said, and what nobody checked."""

import json
from typing import Any

import pytest
from tests.cases import each_case
from tests.unit.core.receipts.as_json import named, render, verify_receipt
from tests.unit.core.receipts.test_receipts import FACTS, TREE2, attempt, build, rows, task, uid

from loopwright.core.replies.qa import AREAS, Checked, QaIssue, QaReport
from loopwright.core.values.states import AttemptState

SEEN = tuple(Checked(area=one, result="fine", how="I looked.") for one in AREAS["lite"])
FOUND = QaReport(
    mode="lite",
    summary="Two.",
    checked=SEEN,
    issues=(QaIssue(what="Typo", fix="t1"), QaIssue(what="tests do not pass", by_gate=True)),
)
CLEAR = QaReport(mode="lite", summary="Nothing.", checked=SEEN)


def looked(*, passes: bool = True) -> dict[str, Any]:
    """The rows of the plan with a look at the whole, taken twice; the second one has passed or was given up."""
    second = {"qa": CLEAR, "candidate_tree": TREE2, "base_sha": "4" * 40, "task_id": uid("ptask", 3), "n": 2}
    state = AttemptState.LANDED if passes else AttemptState.REJECTED
    first = attempt(3, state=AttemptState.REJECTED, qa=FOUND)
    return {
        "tasks": [*rows()["tasks"], task(3, type="qa", attempt_id=uid("att", 4))],
        "attempts": [*rows()["attempts"], first, attempt(4, state=state, **second)],
    }


@pytest.mark.capability("C032")
def test_that_somebody_looked_is_a_fact_and_that_nothing_is_wrong_is_not() -> None:
    receipt = json.loads(render(build(**looked())))
    first, second = receipt["looks"]
    assert (first["mode"], first["issues"], first["by_gate"], first["fixes"]) == (
        "lite",
        2,
        1,
        [uid("ptask", 1)],
    )
    assert (second["areas"], second["issues"], second["commit"]) == (list(AREAS["lite"]), 0, "4" * 40)
    assert [one["what"] for one in receipt["reports"][0]["issues"]] == ["Typo"], (
        "the gate's own is in a verdict"
    )
    assert (receipt["tasks"][2]["outcome"], receipt["outcome"]) == ("no_change_proven", "verified")
    assert "qa_not_checked t3" in named(receipt)
    assert verify_receipt(receipt, FACTS) == []


def test_a_look_that_a_person_passed_was_not_checked() -> None:
    receipt = build(**looked(passes=False))
    assert (receipt["tasks"][2]["outcome"], receipt["outcome"]) == ("unverified", "verified_with_gaps")
    assert "passed_by_person t3" in named(receipt)
    assert verify_receipt(json.loads(render(receipt)), FACTS) == []


@each_case(
    ("change", "difference"),
    [
        (lambda one: one["reports"][1].update(summary="Fine."), "qa_hash"),
        (lambda one: one["reports"].pop(1), "qa_hash"),
        (lambda one: one["looks"].pop(1), "qa_missing"),
        (lambda one: one["looks"][0].update(issues=1), "qa_count"),
        (lambda one: one["reports"][0]["issues"][0].pop("where"), "receipt.reports[0].issues[0].where"),
        (
            lambda one: one["reports"][0]["checked"][0].update(result="ok"),
            "receipt.reports[0].checked[0].result",
        ),
        (lambda one: one["reports"][0]["checked"].append(7), "receipt.reports[0].checked["),
    ],
)
def test_what_was_said_cannot_be_changed_afterwards(change: Any, difference: str) -> None:
    receipt = json.loads(render(build(**looked())))
    change(receipt)
    assert any(difference in one for one in verify_receipt(receipt, FACTS))
