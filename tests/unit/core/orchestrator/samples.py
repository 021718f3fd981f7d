"""Records of one round that agree with each other."""

from typing import Any

from loopwright.core.orchestrator.checks import Milestone, RoadmapView
from loopwright.core.orchestrator.records import (
    Closeout,
    ControlState,
    ReviewRecord,
    RoundPlan,
    Selection,
    read_record,
    read_state,
)

DIR = "orchestrator/roadmaps/2026-03-01-00-greet/rev-001"
LINEAGE = {
    "round_id": "round-001",
    "roadmap_id": "2026-03-01-00-greet",
    "roadmap_revision": "rev-001",
    "roadmap_dir": DIR,
    "milestone_id": "milestone-1",
    "direction_id": "direction-1a",
    "extracted_item_id": "item-1",
}
LIVE = {
    "round_id": "round-001",
    "stage": "plan",
    "branch": "orchestrator/round-001-milestone-1",
    "worktree_path": "orchestrator/worktrees/round-001",
    "resume_error": None,
}
UPDATE = {
    "schema_version": "roadmap-update-v1",
    "trigger": "planner-request",
    "source_round_id": "round-001",
    "branch": "orchestrator/roadmap-update-round-001-split",
    "worktree_path": "orchestrator/worktrees/roadmap-update-round-001",
    "update_artifact": "orchestrator/roadmap-updates/round-001-roadmap-update.md",
    "review_artifact": "orchestrator/roadmap-updates/round-001-roadmap-update-review.md",
    "prior_roadmap_revision": "rev-001",
    "proposed_roadmap_revision": "rev-002",
    "status": "authoring",
    "attempt": 1,
    "last_rejection_artifact": None,
    "last_rejection_summary": None,
    "resume_error": None,
}


def state(**more: Any) -> ControlState:
    return read_state(
        {
            "contract_version": "orchestrator-v2",
            "base_branch": "main",
            "roadmap_id": LINEAGE["roadmap_id"],
            "roadmap_revision": "rev-001",
            "roadmap_dir": DIR,
            "controller_stage": "dispatch-rounds",
            **more,
        }
    )


def view(*statuses: str) -> RoadmapView:
    """Return a chain of milestones with these statuses, at first two that are pending."""
    given = statuses or ("pending", "pending")
    milestones = tuple(
        Milestone(
            milestone_id=f"milestone-{n}",
            status=status,
            depends_on=(f"milestone-{n - 1}",) if n > 1 else (),
            direction_ids=(f"direction-{n}a",),
        )
        for n, status in enumerate(given, 1)
    )
    return RoadmapView(milestones=milestones, anchors=frozenset({"milestone-1", "milestone-1-completion"}))


def scheduler(**more: Any) -> dict[str, Any]:
    return {"depends_on_round_ids": [], "merge_after_item_ids": [], "parallel_group": None, **more}


def selection(**more: Any) -> Selection:
    shape = {"schema_version": "selection-record-v1", **LINEAGE, "summary": "Greet", "scheduler": scheduler()}
    return read_record(Selection, {**shape, **more}, "selection-record.json")


def worker(name: str, *scope: str, **more: Any) -> dict[str, Any]:
    folder = f"orchestrator/rounds/round-001/workers/{name}"
    return {
        "worker_id": name,
        "summary": f"Do {name}",
        "assignment_path": f"{folder}/assignment.md",
        "implementation_notes_path": f"{folder}/implementation-notes.md",
        "handoff_path": f"{folder}/handoff.md",
        "branch": f"orchestrator/round-001-{name}",
        "worktree_path": f"orchestrator/worktrees/round-001-{name}",
        "write_scope": list(scope),
        "depends_on_worker_ids": [],
        "blocks_integration": True,
        "verification_commands": [],
        **more,
    }


def integration(*ids: str) -> dict[str, Any]:
    return {
        "summary": "Put it together",
        "depends_on_worker_ids": list(ids),
        "verification_commands": [],
        "integration_notes_path": "orchestrator/rounds/round-001/implementation-notes.md",
    }


def plan(**more: Any) -> RoundPlan:
    shape = {
        "schema_version": "round-plan-record-v1",
        **LINEAGE,
        "plan_path": "orchestrator/rounds/round-001/plan.md",
        "worker_mode": "none",
        "workers": [],
        "integration": None,
    }
    return read_record(RoundPlan, {**shape, **more}, "round-plan-record.json")


def fan_out(*workers: dict[str, Any], into: dict[str, Any] | None = None) -> RoundPlan:
    ids = [one["worker_id"] for one in workers]
    return plan(worker_mode="fanout", workers=list(workers), integration=into or integration(*ids))


CHANGE = {
    "milestone_id": "milestone-1",
    "expected_current_status": "pending",
    "target_status": "done",
    "roadmap_view_anchor": "milestone-1",
}
APPROVED = {
    "schema_version": "review-record-v3",
    **LINEAGE,
    "decision": "approved",
    "evidence_summary": "The tests passed.",
    "roadmap_closeout": {
        "mode": "status-only",
        "status_changes": [CHANGE],
        "completion_pointers": [{"anchor_id": "milestone-1-completion", "text": "Done by round-001."}],
        "history_entries": [],
        "semantic_update_required_reason": None,
    },
}
REJECTED = {
    "schema_version": "review-record-v3",
    **LINEAGE,
    "decision": "rejected",
    "evidence_summary": "A test is missing.",
    "retry_target": "implement",
    "required_changes": ["Problem: no test. Suggested fix: add one."],
}


def review(shape: dict[str, Any] = APPROVED, **more: Any) -> ReviewRecord:
    return read_record(ReviewRecord, {**shape, **more}, "review-record.json")


def closeout(**more: Any) -> Closeout:
    checked = {
        "roadmap_view_revalidated": True,
        "active_bundle_revalidated": True,
        "diff_matches_review_record": True,
        "revalidated_after_base_refresh": False,
    }
    shape = {
        "schema_version": "closeout-record-v3",
        "round_id": "round-001",
        "review_record_path": "orchestrator/rounds/round-001/review-record.json",
        "review_record_sha256": "abc",
        "base_revision": "def",
        "status": "applied",
        "applied_edit_summary": ["milestone-1 status pending -> done"],
        "verification": checked,
    }
    return read_record(Closeout, {**shape, **more}, "closeout-record.json")
