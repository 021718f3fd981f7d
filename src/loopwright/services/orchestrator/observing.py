"""What a worktree proves about the stage of its round, and what is missing."""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from loopwright.core.orchestrator.checks import (
    RoadmapView,
    plan_problems,
    review_problems,
    selection_problems,
)
from loopwright.core.orchestrator.manifest import round_file, worker_file
from loopwright.core.orchestrator.records import ControlState, ReviewRecord, RoundPlan, Selection
from loopwright.core.values.round_states import RoundStage
from loopwright.core.values.shapes import Misshapen
from loopwright.services.orchestrator.control_plane import ControlPlane

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The valid records of a round, and the problems of one stage's records."""

    problems: tuple[str, ...]
    """What is missing or wrong in the files of the stage; empty if they prove it."""
    has_some: bool
    """Whether some file of the stage is there."""
    selection: Selection | None = None
    plan: RoundPlan | None = None
    review: ReviewRecord | None = None
    has_bad_review: bool = False
    """Whether there is an invalid review record."""
    requests_update: bool = False


def observe(root: Path, stage: RoundStage, round_id: str, state: ControlState, view: RoadmapView) -> Observed:
    """Read the files of a round below a root: its worktree while it is live."""
    plane = ControlPlane(root=root)
    problems: list[str] = []
    selection = _read(plane, Selection, round_file("selection_record", round_id), problems)
    plan = _read(plane, RoundPlan, round_file("round_plan_record", round_id), problems)
    if selection is not None and stage is RoundStage.PLAN:
        problems += selection_problems(selection, state, view, round_id)
    if selection is not None and plan is not None:
        problems += plan_problems(plan, selection, round_file("plan", round_id))
    if not plane.has(round_file("plan", round_id)):
        problems.append("plan.md: missing")
    for one in plan.workers if plan is not None else ():
        path = worker_file("assignment", round_id, one.worker_id)
        if one.assignment_path != path:
            problems.append(
                f"round-plan-record.json: assignment_path is {one.assignment_path!r}, expected {path!r}"
            )
        elif not plane.has(path):
            problems.append(f"{path}: missing")
    keys = ["selection_record", "round_plan_record", "plan"]
    if stage is not RoundStage.PLAN:
        keys = ["implementation_notes"]
        if not plane.has(round_file("implementation_notes", round_id)):
            problems.append("implementation-notes.md: missing")
    review: ReviewRecord | None = None
    has_bad_review = False
    if stage in (RoundStage.REVIEW, RoundStage.FINALIZE):
        keys = ["review", "review_record"]
        if not plane.has(round_file("review", round_id)):
            problems.append("review.md: missing")
        review = _read(plane, ReviewRecord, round_file("review_record", round_id), problems)
        if review is not None and selection is not None:
            wrong = review_problems(review, selection, view)
            problems += wrong
            review = None if wrong else review
        has_bad_review = review is None and plane.has(round_file("review_record", round_id))
    return Observed(
        problems=tuple(problems),
        has_some=any(plane.has(round_file(key, round_id)) for key in keys),
        selection=selection,
        plan=plan,
        review=review,
        has_bad_review=has_bad_review,
        requests_update=selection is None and plane.has(round_file("roadmap_update_request", round_id)),
    )


def _read(plane: ControlPlane, kind: type[R], path: str, problems: list[str]) -> R | None:
    try:
        return plane.record(kind, path)
    except Misshapen as wrong:
        problems += wrong.problems
        return None
