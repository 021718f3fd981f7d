"""A plan for a goal as a conductor track: read like any track, and written with the evaluation that it has."""

from datetime import UTC, datetime
from pathlib import Path

from loopwright.adapters.sources.plan_md.new_track import (
    Planning,
    listed_track,
    planned_files,
    track_metadata,
)
from loopwright.adapters.sources.plan_md.plan_md import METADATA, PlanMdSource
from loopwright.core.plans.plan_evaluators import Judgement, in_words
from loopwright.ports import EvaluatedPlan, PlannedWork
from loopwright.services.homes.caller import write_whole

_HINT = "make room for it, or choose another place with --out"


def now() -> datetime:
    """Return the time at which a track begins."""
    return datetime.now(UTC)


def as_track(planning: Planning, work: PlannedWork) -> PlannedWork:
    """Return a plan as a run will read it from its track."""
    files = planned_files(planning, work)
    content = {name: text.encode() for name, text in files.items()}
    return PlanMdSource().parse(content, planning.track)


def write_track(folder: Path, planning: Planning, work: PlannedWork, judgement: Judgement | None) -> None:
    """Write the specification, the plan and the metadata, and list the track among the others."""
    evaluated = None
    if judgement is not None:
        evaluated = EvaluatedPlan(
            passed=not judgement.blocking,
            at=now(),
            found=frozenset({"evaluator"} if judgement.blocking else ()),
            against=tuple(in_words(one) for one in judgement.blocking),
            by=judgement.agent,
            source_sha256=as_track(planning, work).sha256,
        )
    files = {**planned_files(planning, work), METADATA: track_metadata(planning, work, evaluated)}
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_whole(folder / name, text, hint=_HINT)
    tracks = folder.parent.parent / "tracks.md"
    if tracks.is_file() and folder.name not in (listed := tracks.read_text(encoding="utf-8")):
        write_whole(tracks, listed_track(listed, planning, work), hint=_HINT)
