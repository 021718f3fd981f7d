"""The page of an orchestrator folder shows its controller, its roadmap and the records of its rounds."""

import json
import re
from pathlib import Path

import pytest
from tests.acceptance.orchestrator.bundle import ROADMAP, files
from tests.contracts.store import rows
from tests.integration.server.api import Api

LINEAGE = {
    "round_id": "round-002",
    "roadmap_id": ROADMAP,
    "roadmap_revision": "rev-001",
    "roadmap_dir": f"orchestrator/roadmaps/{ROADMAP}/rev-001",
    "milestone_id": "milestone-2",
    "direction_id": "direction-2a",
    "extracted_item_id": "item-2",
}
SELECTION = {
    **LINEAGE,
    "schema_version": "selection-record-v1",
    "summary": "write the second part",
    "scheduler": {"depends_on_round_ids": [], "merge_after_item_ids": [], "parallel_group": None},
}


def _folder(root: Path) -> None:
    live = {
        "round_id": "round-002",
        "stage": "implement",
        "branch": "orchestrator/round-002",
        "worktree_path": "orchestrator/worktrees/round-002",
        "resume_error": "the notes are `missing`",
    }
    tree = "orchestrator/worktrees/round-002/orchestrator/rounds/round-002"
    texts = {
        **files(2, active_rounds=[live]),
        "orchestrator/rounds/round-001/plan.md": "# The first plan <script>",
        f"{tree}/selection-record.json": json.dumps(SELECTION),
        f"{tree}/plan.md": "# The second plan",
    }
    for path, text in texts.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    secret = root / "secret"
    secret.write_text("no role may show this")
    (root / tree / "review.md").symlink_to(secret)


@pytest.mark.capability("C109")
def test_the_rounds_of_a_folder_are_shown_with_their_records_and_no_file_from_elsewhere(
    api: Api, tmp_path: Path
) -> None:
    _folder(tmp_path)
    project = rows.project(path=str(tmp_path))
    loop = rows.loop(project, source_kind="orchestrator", source_path="orchestrator")
    stage = rows.loop(project, source_kind="round")
    plan = rows.plan(stage, title="round-002: implement by the implementer")
    api.write(lambda tx: [tx.insert(one) for one in (project, loop, stage, plan)])
    assert f"/loops/{loop.id}/rounds" in api.page(f"/loops/{loop.id}")
    page = api.page(f"/loops/{loop.id}/rounds")
    assert re.findall(r'<article class="card" id="([^"]+)"', page) == ["round-002", "round-001"]
    assert re.findall(r"<code>([a-z-]+\.(?:md|json))</code>", page) == [
        "selection-record.json",
        "plan.md",
        "plan.md",
    ]
    assert "write the second part" in page
    assert "the notes are <code>missing</code>" in page
    assert "# The first plan &lt;script&gt;" in page
    assert "no role may show this" not in page
    assert f"/plans/{plan.id}" in page
    assert re.findall(r"Part [12] <span", page) == ["Part 1 <span", "Part 2 <span"]
    (tmp_path / "orchestrator/state.json").write_text("{")
    assert 'role="alert"' in api.page(f"/loops/{loop.id}/rounds")


def test_a_loop_over_another_source_has_no_rounds(api: Api) -> None:
    _, loop, *_ = api.family()
    with api.client() as client:
        answer = client.get(f"/loops/{loop.id}/rounds")
    assert (answer.status_code, answer.json()["code"]) == (404, "loop_not_in_rounds")
