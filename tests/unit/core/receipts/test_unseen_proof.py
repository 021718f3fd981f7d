"""What work is worth that only checks have judged which its author could see."""

import json
from dataclasses import replace

from tests.unit.core.gates.test_held_out import HELD
from tests.unit.core.receipts.as_json import named, render, verify_receipt
from tests.unit.core.receipts.test_receipts import (
    FACTS,
    LOOKED,
    TREE1,
    build,
    review,
    reviewed,
    rows,
    verdict_record,
)

from loopwright.core.gates.held_out import held_commands


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


def test_with_unseen_proof_every_task_needs_one_of_the_two():
    receipt = build(plan=strict())
    assert {one["outcome"] for one in receipt["tasks"]} == {"verified_with_gaps"}
    assert "only_visible_checks t1" in named(receipt)
    assert verify_receipt(json.loads(render(receipt)), FACTS) == []
    for given, facts in ((reviewed(review()), LOOKED), (held_out(), FACTS)):
        settled = build(**{**given, "plan": strict()})
        assert [one["outcome"] for one in settled["tasks"]] == ["verified", "verified_with_gaps"]
        assert "only_visible_checks t1" not in named(settled)
        assert verify_receipt(json.loads(render(settled)), facts) == []


def test_without_it_the_receipt_says_all_the_same_that_nothing_unseen_judged_the_work():
    receipt = build()
    assert receipt["outcome"] == "verified"
    assert {"no_reviewer", "limit_seen_by_author"} <= {*named(receipt)}
