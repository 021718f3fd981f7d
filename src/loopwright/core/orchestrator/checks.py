"""Rules that hold between the records of a round, beyond the shape of each record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations

from loopwright.core.orchestrator.records import (
    Closeout,
    ControlState,
    Lineage,
    ReviewRecord,
    RoundPlan,
    Selection,
)
from loopwright.core.policy.graph import scopes_overlap


@dataclass(frozen=True, slots=True, kw_only=True)
class Milestone:
    """A milestone in the roadmap view."""

    milestone_id: str
    status: str
    depends_on: tuple[str, ...]
    direction_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoadmapView:
    """The machine-readable roadmap."""

    milestones: tuple[Milestone, ...]
    anchors: frozenset[str]

    @property
    def unfinished(self) -> tuple[str, ...]:
        """The milestones that are not done."""
        return tuple(one.milestone_id for one in self.milestones if one.status != "done")

    @property
    def ready(self) -> tuple[str, ...]:
        """The unfinished milestones whose dependencies are done."""
        left = set(self.unfinished)
        return tuple(
            one.milestone_id
            for one in self.milestones
            if one.milestone_id in left and not left & set(one.depends_on)
        )


def selection_problems(
    selection: Selection, state: ControlState, view: RoadmapView, round_id: str
) -> tuple[str, ...]:
    """Return why a selection is not allowed for a round of the active roadmap."""
    wanted = {
        "round_id": round_id,
        "roadmap_id": state.roadmap_id,
        "roadmap_revision": state.roadmap_revision,
        "roadmap_dir": state.roadmap_dir.rstrip("/"),
    }
    found = [
        f"selection-record.json: {key} is {getattr(selection, key)!r}, expected {value!r}"
        for key, value in wanted.items()
        if getattr(selection, key).rstrip("/") != value
    ]
    chosen = next((one for one in view.milestones if one.milestone_id == selection.milestone_id), None)
    if chosen is None:
        return (*found, f"selection-record.json: the roadmap has no milestone {selection.milestone_id!r}")
    if chosen.milestone_id not in view.ready:
        found.append(
            f"selection-record.json: {chosen.milestone_id} is done, or depends on an unfinished milestone"
        )
    if selection.direction_id not in chosen.direction_ids:
        found.append(
            f"selection-record.json: {chosen.milestone_id} has no direction {selection.direction_id!r}"
        )
    return tuple(found)


def lineage_problems(record: Lineage, selection: Selection, file: str) -> tuple[str, ...]:
    """Return where a record's lineage differs from the selection, which is authoritative."""
    return tuple(
        f"{file}: {one.name} is {getattr(record, one.name)!r}, but the selection has {getattr(selection, one.name)!r}"
        for one in fields(Lineage)
        if getattr(record, one.name) != getattr(selection, one.name)
    )


def plan_problems(plan: RoundPlan, selection: Selection, plan_path: str) -> tuple[str, ...]:
    """Return what is wrong with the plan record of a round."""
    file = "round-plan-record.json"
    found = list(lineage_problems(plan, selection, file))
    if plan.plan_path != plan_path:
        found.append(f"{file}: plan_path is {plan.plan_path!r}, expected {plan_path!r}")
    if plan.worker_mode == "none":
        if plan.workers or plan.integration is not None:
            found.append(f"{file}: worker_mode is none, so workers must be empty and integration null")
        return tuple(found)
    return (*found, *fan_out_problems(plan))


def fan_out_problems(plan: RoundPlan) -> tuple[str, ...]:
    """Return why workers cannot work in parallel: each needs its own write scope, and one pass integrates."""
    file, found = "round-plan-record.json", []
    ids = [one.worker_id for one in plan.workers]
    if not plan.workers or plan.integration is None:
        found.append(f"{file}: worker_mode is fanout, so there must be workers and an integration")
    if len(set(ids)) != len(ids):
        found.append(f"{file}: two workers have the same worker_id")
    found += [
        f"{file}: {one.worker_id} has no write_scope, so nothing shows that it is disjoint"
        for one in plan.workers
        if not one.write_scope
    ]
    found += [
        f"{file}: the write scopes of {one.worker_id} and {other.worker_id} overlap"
        for one, other in combinations(plan.workers, 2)
        if scopes_overlap(one.write_scope, other.write_scope)
    ]
    found += [
        f"{file}: {one.worker_id} depends on {needed!r}, which is not a worker before it"
        for at, one in enumerate(plan.workers)
        for needed in one.depends_on_worker_ids
        if needed not in ids[:at]
    ]
    if plan.integration is not None:
        missing = [
            one.worker_id
            for one in plan.workers
            if one.blocks_integration and one.worker_id not in plan.integration.depends_on_worker_ids
        ]
        found += [f"{file}: integration does not depend on {one}, which blocks it" for one in missing]
        unknown = [one for one in plan.integration.depends_on_worker_ids if one not in ids]
        found += [f"{file}: integration depends on {one!r}, which is not a worker" for one in unknown]
    return tuple(found)


def review_problems(review: ReviewRecord, selection: Selection, view: RoadmapView) -> tuple[str, ...]:
    """Return why a review record is not a decision."""
    file = "review-record.json"
    found = list(lineage_problems(review, selection, file))
    closeout = review.roadmap_closeout
    if review.decision == "rejected":
        if review.retry_target is None:
            found.append(f"{file}: a rejected review names a retry_target: implement, plan or blocked")
        if not review.required_changes:
            found.append(f"{file}: a rejected review has at least one of required_changes")
        if closeout is not None:
            found.append(f"{file}: a rejected review has no roadmap_closeout")
        return tuple(found)
    if closeout is None:
        return (*found, f"{file}: an approved review classifies the closeout in roadmap_closeout")
    edits = (*closeout.status_changes, *closeout.completion_pointers, *closeout.history_entries)
    if closeout.mode == "semantic-update-required":
        if edits:
            found.append(f"{file}: a closeout with a semantic update lists no edits")
        if not (closeout.semantic_update_required_reason or "").strip():
            found.append(f"{file}: semantic_update_required_reason is empty")
        return tuple(found)
    if closeout.semantic_update_required_reason:
        found.append(f"{file}: a status-only closeout has no semantic_update_required_reason")
    named = [
        *(one.roadmap_view_anchor for one in closeout.status_changes),
        *(one.anchor_id for one in (*closeout.completion_pointers, *closeout.history_entries)),
    ]
    found += [f"{file}: roadmap-view.json has no anchor {one!r}" for one in named if one not in view.anchors]
    return tuple(found)


def closeout_problems(closeout: Closeout, round_id: str, review_sha256: str) -> tuple[str, ...]:
    """Return why a closeout does not allow the merge."""
    file, seen = "closeout-record.json", closeout.verification
    found = []
    if closeout.round_id != round_id:
        found.append(f"{file}: round_id is {closeout.round_id!r}, expected {round_id!r}")
    if closeout.review_record_sha256 != review_sha256:
        found.append(f"{file}: review_record_sha256 is not the hash of the review record")
    if closeout.status == "stale":
        found.append(f"{file}: the closeout is stale")
    checked = (
        seen.roadmap_view_revalidated,
        seen.active_bundle_revalidated,
        seen.diff_matches_review_record,
    )
    if not all(checked):
        found.append(f"{file}: verification is not complete")
    return tuple(found)


def unmerged(
    selection: Selection, merged_rounds: Sequence[str], merged_items: Sequence[str]
) -> tuple[str, ...]:
    """Return what must be merged before a round and is not."""
    wanted = selection.scheduler
    return (
        *(one for one in wanted.depends_on_round_ids if one not in merged_rounds),
        *(one for one in wanted.merge_after_item_ids if one not in merged_items),
    )


def observed(
    plan: RoundPlan, started: Mapping[str, bool], handed_over: Mapping[str, bool], *, integrated: bool
) -> dict[str, str]:
    """Return the status of each worker: it is derived, never stored."""
    return {
        one.worker_id: "integrated"
        if integrated
        else "complete"
        if handed_over.get(one.worker_id)
        else "running"
        if started.get(one.worker_id)
        else "pending"
        for one in plan.workers
    }
