"""What work is worth that only checks have judged which its author could see."""

import json
from dataclasses import replace

from tests.cases import each_case
from tests.unit.core.test_held_out import HELD
from tests.unit.core.test_receipts import (
    FACTS,
    LOOKED,
    TREE1,
    build,
    review,
    reviewed,
    rows,
    steered,
    verdict_record,
)
from tests.unit.core.test_reviews import PATCH, RISKY

from loopwright.core.gate_files import GateFiles
from loopwright.core.held_out import held_commands
from loopwright.core.receipts import render, verify_receipt
from loopwright.core.reviews import is_capped, reasons

HOLDS = ("double.py:2 holds the input 2 and the answer 4 of tests/test_double.py:5",)
GAP = f"task 't1' may only look right to its tests: {HOLDS[0]}; have it reviewed, or give it held-out checks"


def held_out(**changes):
    tasks = rows()["tasks"]
    return {
        "tasks": [replace(tasks[0], held_out=HELD), *tasks[1:]],
        "verdicts": [*rows()["verdicts"], verdict_record(9, TREE1, held_commands(HELD))],
        **changes,
    }


def strict():
    plan = rows()["plan"]
    return replace(plan, policy=replace(plan.policy, unseen_proof=True))


def test_work_that_may_know_its_answers_is_verified_with_gaps_and_the_receipt_says_where_and_what_helps():
    receipt = build(attempts=steered(answers=HOLDS))
    assert [one["outcome"] for one in receipt["tasks"]] == ["verified_with_gaps", "verified"]
    assert receipt["outcome"] == "verified_with_gaps"
    assert GAP in receipt["not_checked"]
    assert verify_receipt(json.loads(render(receipt)), FACTS) == []


@each_case(
    "given",
    [
        reviewed(review(), answers=HOLDS),
        held_out(attempts=steered(answers=HOLDS)),
    ],
    ids=["a reviewer", "a held-out check"],
)
def test_either_of_two_others_settles_that(given):
    receipt = build(**given)
    assert receipt["tasks"][0]["outcome"] == "verified"
    assert not any("its tests' answers" in gap for gap in receipt["not_checked"])
    assert receipt["tasks"][0]["attempts"][0]["gate_files"]["answers"] == HOLDS, "it stays on the record"


def test_a_reviewer_who_saw_a_part_settles_nothing():
    receipt = build(**reviewed(review(shown_whole=False), answers=HOLDS))
    assert receipt["tasks"][0]["outcome"] == "verified_with_gaps"


def test_with_unseen_proof_every_task_needs_one_of_the_two():
    receipt = build(plan=strict())
    assert {one["outcome"] for one in receipt["tasks"]} == {"verified_with_gaps"}
    told = "only checks that its author could see have judged task 't1', and unseen_proof asks for more"
    assert f"{told}; have it reviewed, or give it held-out checks" in receipt["not_checked"]
    assert verify_receipt(json.loads(render(receipt)), FACTS) == []
    for given, facts in ((reviewed(review()), LOOKED), (held_out(), FACTS)):
        settled = build(**{**given, "plan": strict()})
        assert [one["outcome"] for one in settled["tasks"]] == ["verified", "verified_with_gaps"]
        assert told not in " ".join(settled["not_checked"])
        assert verify_receipt(json.loads(render(settled)), facts) == []


def test_without_it_the_receipt_says_all_the_same_that_nothing_unseen_judged_the_work():
    receipt = build()
    assert receipt["outcome"] == "verified"
    assert "no independent reviewer looked at the work" in receipt["not_checked"]
    assert any("not every task had a check that was held out" in gap for gap in receipt["not_checked"])


def test_what_only_eyes_can_compare_is_not_settled_by_checks_that_its_author_never_saw() -> None:
    assert is_capped(GateFiles(uncompared=("tests/t.go",)), None, shown_whole=False, held_out=True)
    assert not is_capped(GateFiles(exempt=("tests/test_t.py",)), None, shown_whole=False, held_out=True)
    assert not is_capped(GateFiles(answers=HOLDS), None, shown_whole=False, held_out=True)


def test_where_risky_work_is_reviewed_this_is_a_reason() -> None:
    assert reasons(RISKY, PATCH, GateFiles(answers=HOLDS)) == (
        f"it may only look right to its tests: {HOLDS[0]}",
    )
