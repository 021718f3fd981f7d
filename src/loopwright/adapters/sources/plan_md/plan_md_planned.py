"""The PLAN and EVALUATE_PLAN steps of a track that is there: written beside what its other tools keep."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from loopwright.adapters.sources.plan_md.new_track import Planning, plan_step
from loopwright.adapters.sources.plan_md.plan_md_metadata import forget, merge
from loopwright.adapters.sources.plan_md.plan_md_steps import (
    PLANNED,
    PLANNED_VERDICT,
    planned_step,
    time_text,
)
from loopwright.adapters.sources.text.json_edits import JsonEdits
from loopwright.core.plans.tracks import StepStatus, TrackStep, enter
from loopwright.ports import EvaluatedPlan, PlannedWork


def current_step(content: bytes) -> str:
    """Return the step that a track is in; empty if it says none."""
    state = JsonEdits(content).document.plain().get("loop_state")
    return str(state.get("current_step") or "") if isinstance(state, dict) else ""


def refused(content: bytes, said: EvaluatedPlan) -> bytes:
    """Return the metadata of a track whose plan an evaluator refused: planning is next."""
    return _placed(content, TrackStep.EVALUATE_PLAN, StepStatus.FAILED, planned_step("", said), said.at)


def planned(content: bytes, planning: Planning, work: PlannedWork, evaluated: EvaluatedPlan | None) -> bytes:
    """Return the metadata of a track that has a plan now, and perhaps the evaluation of exactly that plan."""
    steps = {TrackStep.PLAN.value: plan_step(planning, work)}
    if evaluated is not None and not evaluated.passed:
        return refused(_placed(content, TrackStep.PLAN, StepStatus.PASSED, steps, planning.at), evaluated)
    passed = evaluated is not None
    steps[PLANNED] = planned_step("", evaluated).get(PLANNED, {}) if passed else {"status": "NOT_STARTED"}
    step = TrackStep.EXECUTE if passed else TrackStep.EVALUATE_PLAN
    return _placed(content, step, StepStatus.NOT_STARTED, steps, planning.at)


def _placed(
    content: bytes, step: TrackStep, status: StepStatus, steps: Mapping[str, Any], at: datetime
) -> bytes:
    edits = JsonEdits(content)
    track = str(edits.document.plain().get("track_id") or "")
    wanted = {"loop_state": {**enter(step, status, {}, track), "checkpoints": dict(steps)}}
    merge(edits, edits.document, wanted)
    if PLANNED in steps:
        forget(edits, PLANNED, PLANNED_VERDICT, wanted)
    edits.put(edits.document, "updated_at", time_text(at))
    return edits.bytes()
