"""Business documents that have to follow: the plan is not verified before they do."""

import json

import pytest
from tests.acceptance.control.workshop import Workshop

from loopwright.core.rows.model import Plan

EVALUATED = json.dumps(
    {
        "version": 3,
        "track_id": "tiers_20261116",
        "loop_state": {"checkpoints": {"EVALUATE_PLAN": {"status": "PASSED", "verdict": "PASS"}}},
    }
)
PLAN = """# Tiers

## Phase 1

- [ ] Task 1.1: Add the premium tier

## Business Doc Sync

**Business Doc Sync Required**: Yes
**Reason**: A premium tier is added
**Affected Docs**: docs/pricing.md
"""
SAID = """Done.
```loopwright-docs
{"reason": "It uses another model", "documents": ["docs/costs.md", "../elsewhere.md"]}
```
"""


@pytest.mark.capability("C042")
def test_a_plan_is_not_verified_before_the_documents_that_were_named_have_followed(shop: Workshop) -> None:
    track = shop.repository / "conductor" / "tracks" / "tiers_20261116"
    track.mkdir(parents=True)
    (track / "plan.md").write_text(PLAN)
    (track / "metadata.json").write_text(EVALUATED)
    (shop.repository / "loopwright.toml").write_text(
        '[[gates]]\nname = "g"\nrun = "grep -q hello greet.txt"\n'
    )
    shop.git("add", "-A")
    shop.git("commit", "-qm", "the work")
    prices, costs = ({"write": f"docs/{name}.md", "text": "premium\n"} for name in ("pricing", "costs"))
    shop.play(
        {
            "1.1": [[{"write": "tier", "text": "premium\n"}, {"claim": SAID}]],
            "business-sync": [
                [{"expect_prompt": "It uses another model", "otherwise": [{"exit": 3}]}, prices],
                [{"expect_prompt": "docs/costs.md", "otherwise": [{"exit": 3}]}, prices, costs],
            ],
        }
    )
    said = shop("run", str(track), timeout=100)
    assert said.code == 0, said.out + said.err
    assert "are not in the commit that the plan starts from: docs/pricing.md" in " ".join(said.out.split())
    plan = shop.row(Plan)
    assert (plan.status, shop.landed()) == ("VERIFIED", ["1.1", "business-sync"])
    first, _ = shop.attempts("business-sync")
    assert "These documents are as they were when the plan began: docs/costs.md" in first.detail
    assert [(one.type, one.payload["documents"]) for one in shop.events("docs_flagged", "docs_due")] == [
        ("docs_flagged", ["docs/costs.md"]),
        ("docs_due", ["docs/pricing.md", "docs/costs.md"]),
    ]
    shop.git("merge", "-q", "--ff-only", plan.branch)
    told = (track / "plan.md").read_text()
    summary = told.partition("## Execution Summary")[2]
    assert "**Business Doc Sync Required**: Yes" in summary
    assert "**Reason**: A premium tier is added; It uses another model" in summary
    assert "**Affected Docs**: docs/pricing.md, docs/costs.md" in summary
    steps = json.loads((track / "metadata.json").read_text())["loop_state"]["checkpoints"]
    synced = steps["BUSINESS_SYNC"]
    assert (synced["status"], synced["affected_docs"]) == ("PASSED", ["docs/pricing.md", "docs/costs.md"])
    assert (shop.task("business-sync").landed_sha or "").startswith(synced["commit_sha"])
    assert steps["EVALUATE_EXECUTION"] == {"status": "NOT_STARTED", "business_sync_required": True}
    assert len(shop.rows(Plan)) == 1
    assert shop("run", str(track), timeout=100).code == 0
    assert len(shop.rows(Plan)) == 1, "nothing is done twice"
