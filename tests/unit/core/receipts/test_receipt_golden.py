"""The bytes of a receipt and its JSON Schema: a change of either is a new version of the format.

`python -m tests.unit.core.receipts.test_receipt_golden` writes what the code gives now; look at the difference
before you keep it. Two hashes are left out: every new setting changes that of the policy, and so that of the whole.
"""

import json
from pathlib import Path

from tests.unit.core.receipts.as_json import render
from tests.unit.core.receipts.test_receipts import (
    BASE,
    GATE,
    LAND1,
    NOW,
    OWN,
    RESULT,
    TREE1,
    TREE2,
    attempt,
    build,
    changed,
    run,
    sha,
    task,
    uid,
)

from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.receipts.schemas import document_schemas
from loopwright.core.replies.reviews import Finding, Severity
from loopwright.core.rows.model import Review, Role
from loopwright.core.values.policy import HeldFile, HeldOut
from loopwright.core.values.states import ReviewState

KEPT = Path(__file__).parents[3] / "data" / "receipts"


def _receipt() -> str:
    """Return the receipt of a plan with a review, a held-out check and a change of the checkout."""
    review = Review(
        id=uid("review", 1),
        plan_id=uid("plan", 1),
        task_id=uid("ptask", 1),
        attempt_id=uid("att", 1),
        n=1,
        state=ReviewState.CLEAR,
        run_id=uid("run", 2),
        agent="scripted",
        parent_sha=BASE,
        candidate_sha=LAND1,
        patch_sha256="a" * 64,
        findings=(Finding(file="a.py", line=3, severity=Severity.OPINION, text="a name"),),
        created_at=NOW,
    )
    held = HeldOut(check=GATE[0], files=(HeldFile(path="unseen.py", sha256="7" * 64),))
    judged = {"candidate_sha": LAND1, "candidate_tree": TREE1, "candidate_parent": BASE}
    built = build(
        tasks=[
            task(1, landed_sha=LAND1, acceptance=OWN, held_out=(held,), scope=("a.py",)),
            task(2, landed_sha=RESULT, criteria=("fast",)),
        ],
        attempts=[
            attempt(1, review_id=review.id, gate_files=GateFiles(pinned=("tests/a.py",)), **judged),
            attempt(2, candidate_sha=RESULT, candidate_tree=TREE2, candidate_parent=LAND1),
        ],
        runs=[run(1, files_sha256="6" * 64), run(2, role=Role.REVIEWER), run(3, prompt_sha256=sha("f"))],
        reviews=[review],
        checkout_changes=[changed("8" * 64)],
        ended={uid("run", 1): "a" * 64},
    )
    built["plan"]["policy_sha256"] = built["sha256"] = ""
    return render(built)


def _schema() -> str:
    return json.dumps(document_schemas()["receipt"], indent=1) + "\n"


def test_the_same_rows_give_the_same_bytes_as_ever() -> None:
    assert _receipt() == (KEPT / "receipt.json").read_text(encoding="utf-8")


def test_the_schema_of_a_receipt_is_the_same_as_ever() -> None:
    assert _schema() == (KEPT / "schema.json").read_text(encoding="utf-8")


if __name__ == "__main__":
    (KEPT / "receipt.json").write_text(_receipt(), encoding="utf-8")
    (KEPT / "schema.json").write_text(_schema(), encoding="utf-8")
