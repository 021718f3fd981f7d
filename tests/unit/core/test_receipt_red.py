"""Red before green in a receipt."""

import json
from typing import Any

import pytest
from tests.unit.core.test_receipts import FACTS, OWN, build, rows, sha, steered, verdict_record

from loopwright.core.findings import VerdictStatus
from loopwright.core.receipts import render, verify_receipt


def proven(status: VerdictStatus, **facts: Any) -> dict[str, Any]:
    red = verdict_record(8, sha("8"), OWN, status=status)
    made = build(attempts=steered(red_tree=sha("8"), **facts), verdicts=[*rows()["verdicts"], red])
    return json.loads(render(made))  # type: ignore[no-any-return]


@pytest.mark.capability("C038")
def test_who_says_that_it_failed_before_has_a_verdict_that_says_so() -> None:
    assert verify_receipt(proven(VerdictStatus.FAILED, red_proof=True), FACTS) == []
    assert verify_receipt(proven(VerdictStatus.PASSED, red_proof=False), FACTS) == []
    for status, said, how in (
        (VerdictStatus.PASSED, True, "failed"),
        (VerdictStatus.FAILED, False, "passed"),
    ):
        found = verify_receipt(proven(status, red_proof=said), FACTS)
        assert found == [f"no verdict says that the acceptance of task 't1' {how} without its work"]


def test_why_it_was_not_asked_for_is_said() -> None:
    gaps = build(attempts=steered(red_skipped="it is static content"))["not_checked"]
    assert any("was not run before its work, because it is static content" in one for one in gaps)
