"""The page of an orchestrator folder in rounds: its controller, its roadmap, and the records of each round."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from loopwright.adapters.sources.text.located import words
from loopwright.core.orchestrator import manifest
from loopwright.core.orchestrator.records import ControlState, LiveRound, ReviewRecord, Selection
from loopwright.core.rows.model import Project
from loopwright.core.values.access import Caller
from loopwright.core.values.errors import BadPlan, NotFound
from loopwright.core.values.round_states import ROUND_OWNERS, RoundRole
from loopwright.core.values.shapes import Misshapen
from loopwright.engine.rows.world import HomePaths
from loopwright.engine.views.loop_views import stage_plans
from loopwright.ports import Tx
from loopwright.services.dashboard.home import PlanCard, plan_card
from loopwright.services.homes.session import Session
from loopwright.services.orchestrator.control_plane import ControlError, ControlPlane
from loopwright.services.remote.rounds import is_in_rounds
from loopwright.services.remote.seen import seen_loop, seen_project

R = TypeVar("R")
_STAGES: Final = 200
_ROUNDS: Final = 50
_LARGEST: Final = 20_000
"""How many characters of a record are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Milestone:
    """One milestone of the roadmap."""

    id: str
    title: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFile:
    """A file of a round."""

    name: str
    owner: RoundRole
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundView:
    """One round."""

    id: str
    stage: str
    """Its stage while it is live; `done` afterwards."""
    owner: RoundRole | None
    """The role that works now, while the round is live."""
    branch: str
    error: str
    attempt: int
    """The number of the try of its stage."""
    reason: str
    """Why its stage is tried again."""
    summary: str
    decision: str
    """What the reviewer decided; empty before that."""
    records: tuple[RecordFile, ...]
    plans: tuple[PlanCard, ...]
    """The plans of its stages, the newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundsPage:
    """Everything on the page of a folder in rounds."""

    loop_id: str
    loop_name: str
    project: Project
    state: ControlState | None
    problem: str
    """Why the folder cannot be read; empty if it can."""
    milestones: tuple[Milestone, ...]
    rounds: tuple[RoundView, ...]
    """The newest first."""


async def rounds_page(at: Session, caller: Caller, loop_id: str) -> RoundsPage:
    """Return the rounds of a loop over an orchestrator folder."""
    paths = HomePaths(root=at.home.root)

    def load(tx: Tx) -> tuple[str, Project, list[PlanCard]]:
        loop = seen_loop(tx, caller, loop_id)
        project = seen_project(tx, caller, loop.project_id)
        if not is_in_rounds(loop, project):
            raise NotFound(f"{loop.name} is not worked on in rounds", code="loop_not_in_rounds")
        cards = [plan_card(tx, one, None, paths) for one in stage_plans(tx, loop, _STAGES)]
        return loop.name, project, cards

    name, project, cards = await at.home.store.read(load)
    state, milestones, rounds, problem = await asyncio.to_thread(_read_folder, Path(project.path), cards)
    return RoundsPage(
        loop_id=loop_id,
        loop_name=name,
        project=project,
        state=state,
        problem=problem,
        milestones=milestones,
        rounds=rounds,
    )


def _read_folder(
    root: Path, cards: list[PlanCard]
) -> tuple[ControlState | None, tuple[Milestone, ...], tuple[RoundView, ...], str]:
    plane = ControlPlane(root=root)
    try:
        state = plane.state()
    except BadPlan as wrong:
        return None, (), (), str(wrong)
    live = {one.round_id: one for one in state.active_rounds}
    folder = root / manifest.FOLDER / "rounds"
    done = {one.name for one in folder.iterdir() if one.is_dir()} if folder.is_dir() else set()
    ids = sorted(done | set(live), reverse=True)[:_ROUNDS]
    rounds = tuple(_round(root, one, live.get(one), state, cards) for one in ids)
    try:
        found = plane.bundle().milestones
    except ControlError as wrong:
        return state, (), rounds, str(wrong)
    milestones = tuple(
        Milestone(id=words(one, "milestone_id"), title=words(one, "title"), status=words(one, "status"))
        for one in found
    )
    return state, milestones, rounds, ""


def _round(
    root: Path, round_id: str, live: LiveRound | None, state: ControlState, cards: list[PlanCard]
) -> RoundView:
    plane = ControlPlane(root=root).at(live.worktree_path if live else None)
    retry = state.retry_of(round_id)
    selection = _record(plane, Selection, manifest.round_file("selection_record", round_id))
    review = _record(plane, ReviewRecord, manifest.round_file("review_record", round_id))
    return RoundView(
        id=round_id,
        stage=live.stage.value if live else "done",
        owner=ROUND_OWNERS[live.stage] if live else None,
        branch=live.branch if live else "",
        error=(live.resume_error or "") if live else "",
        attempt=retry.attempt if retry else 1,
        reason=retry.reason if retry else "",
        summary=selection.summary if selection else "",
        decision=review.decision if review else "",
        records=_files(plane.root, round_id),
        plans=tuple(one for one in cards if one.title.startswith(f"{round_id}: ")),
    )


def _record(plane: ControlPlane, kind: type[R], path: str) -> R | None:
    """Return a record; None while a role is still writing it, or has written it wrong."""
    try:
        return plane.record(kind, path)
    except Misshapen:
        return None


def _files(place: Path, round_id: str) -> tuple[RecordFile, ...]:
    folder = place / manifest.round_folder(round_id)
    found = []
    for name, owner in manifest.ROUND_FILES.values():
        path = folder / name
        # Roles write here: a link could lead to any file of this machine.
        if path.is_symlink() or not path.is_file() or not path.resolve().is_relative_to(place.resolve()):
            continue
        text = path.read_bytes()[: 4 * _LARGEST].decode("utf-8", "replace")
        found.append(RecordFile(name=name, owner=owner, text=text[:_LARGEST]))
    return tuple(found)
