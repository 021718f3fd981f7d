"""A plan for a goal as a conductor track: read like any track, and written with its evaluation."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from loopwright.adapters.sources.plan_md.new_track import (
    Planning,
    listed_track,
    planned_files,
    track_metadata,
)
from loopwright.adapters.sources.plan_md.plan_md import METADATA, PLAN, SPEC, PlanMdSource
from loopwright.adapters.sources.plan_md.plan_md_planned import current_step, planned, refused
from loopwright.core.plans.evaluating import OVERRIDABLE
from loopwright.core.plans.plan_evaluators import Judgement, in_words
from loopwright.core.plans.tracks import TrackStep
from loopwright.engine.intake.evaluation import Evaluation, Objected
from loopwright.ports import EvaluatedPlan, PlannedWork
from loopwright.services.homes.caller import write_whole

_BEFORE_EXECUTION: Final = ("", TrackStep.PLAN, TrackStep.EVALUATE_PLAN)
_HINT = "make room for it, or choose another place with --out"


def now() -> datetime:
    """Return the time at which a track begins."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unplanned:
    """A track that has a specification and no plan yet: its PLAN step is due."""

    folder: Path
    goal: str
    spec: str


def unplanned_track(path: Path) -> Unplanned | None:
    """Return the track in a folder whose plan is missing or contains only headings."""
    spec, plan = path / SPEC, path / PLAN
    if not (path / METADATA).is_file() or not spec.is_file():
        return None
    if plan.is_file() and any(line.strip() and line[:1] != "#" for line in _lines(plan)):
        return None
    lines = [line.strip("# ").strip() for line in _lines(spec)]
    title = next(filter(None, lines), path.name)
    return Unplanned(
        folder=path.resolve(),
        goal=f"{title} (track {path.resolve().name})",
        spec=spec.read_text(encoding="utf-8"),
    )


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").splitlines()


def as_track(planning: Planning, work: PlannedWork, known: Path | None = None) -> PlannedWork:
    """Return a plan as a run will read it from its track; a `known` track keeps its specification."""
    content = {name: text.encode() for name, text in planned_files(planning, work).items()}
    if known is not None:
        content[SPEC] = (known / SPEC).read_bytes()
        content[METADATA] = planned((known / METADATA).read_bytes(), planning, work, None)
    return PlanMdSource().parse(content, planning.track)


def write_track(folder: Path, planning: Planning, work: PlannedWork, judgement: Judgement | None) -> None:
    """Write the specification, the plan and the metadata, and list the track among the others."""
    evaluated = _evaluated(judgement, as_track(planning, work)) if judgement is not None else None
    files = {**planned_files(planning, work), METADATA: track_metadata(planning, work, evaluated)}
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_whole(folder / name, text, hint=_HINT)
    tracks = folder.parent.parent / "tracks.md"
    if tracks.is_file() and folder.name not in (listed := tracks.read_text(encoding="utf-8")):
        write_whole(tracks, listed_track(listed, planning, work), hint=_HINT)


def write_plan(folder: Path, planning: Planning, work: PlannedWork, judgement: Judgement | None) -> None:
    """Write the plan of an existing track, and its step into the metadata; nothing else of it changes."""
    evaluated = _evaluated(judgement, as_track(planning, work, folder)) if judgement is not None else None
    told = planned((folder / METADATA).read_bytes(), planning, work, evaluated)
    write_whole(folder / PLAN, planned_files(planning, work)[PLAN], hint=_HINT)
    write_whole(folder / METADATA, told.decode("utf-8"), hint=_HINT)


@contextmanager
def refusal_written(source: Path, work: PlannedWork, *, is_new: bool = True) -> Iterator[None]:
    """Record in a track's metadata that its plan was evaluated and refused, if the body finds that.

    Another tool's statements about the plan stay as they are, and so does the step of a plan that may be
    running.
    """
    try:
        yield
    except Objected as refusal:
        said = refusal.evaluation
        unseen = any(one.check == "unevaluated" for one in said.findings)
        if work.track is None or said.reported or work.evaluated or unseen:
            raise
        file = (source if source.is_dir() else source.parent) / METADATA
        content = file.read_bytes()
        if is_new or current_step(content) in _BEFORE_EXECUTION:
            told = refused(content, _objections(said, work))
            write_whole(file, told.decode("utf-8"), hint=_HINT)
        raise


def _objections(said: Evaluation, work: PlannedWork) -> EvaluatedPlan:
    return EvaluatedPlan(
        passed=False,
        at=now(),
        found=frozenset(one.check for one in said.findings if one.weight in OVERRIDABLE),
        against=said.against,
        by=said.judgement.agent if said.judgement is not None else "",
        source_sha256=work.sha256,
    )


def _evaluated(judgement: Judgement, work: PlannedWork) -> EvaluatedPlan:
    return EvaluatedPlan(
        passed=not judgement.blocking,
        at=now(),
        found=frozenset({"evaluator"} if judgement.blocking else ()),
        against=tuple(in_words(one) for one in judgement.blocking),
        by=judgement.agent,
        source_sha256=work.sha256,
    )
