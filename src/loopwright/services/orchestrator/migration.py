"""Bring an orchestrator folder of an older contract to the present one: add what it lacks, and change no file of it."""

import json
from pathlib import Path

from loopwright.adapters.git.branches.round_branches import RoundBranches
from loopwright.adapters.sources.orchestrator.roadmap_view import derived_view
from loopwright.core.orchestrator import manifest
from loopwright.core.orchestrator.records import ControlState
from loopwright.core.values.errors import BadPlan, Refused
from loopwright.services.homes.context import glance_at, needed_place
from loopwright.services.orchestrator.control_plane import ControlError, ControlPlane
from loopwright.services.orchestrator.controller_lock import controlling
from loopwright.services.orchestrator.scaffolding import Scaffolded, shared_files, write_files


async def migrate() -> Scaffolded:
    """Write the files of the contract that a folder lacks; refuse if its roadmap is not valid with them."""
    root = needed_place().root
    with glance_at(root) as repository:
        async with controlling(RoundBranches(repository.git, root)):
            return _migrated(root)


def _migrated(root: Path) -> Scaffolded:
    plane = ControlPlane(root=root)
    state = plane.state()
    made = write_files(root, _missing(plane, state))
    if not made:
        raise Refused(
            f"{manifest.FOLDER}/ lacks no file of the contract {state.contract_version}",
            code="orchestrator_current",
            hint="run it",
        )
    return Scaffolded(roadmap_id=state.roadmap_id, files=tuple(sorted(made)), base_branch=state.base_branch)


def _missing(plane: ControlPlane, state: ControlState) -> dict[str, str]:
    folder = state.roadmap_dir.rstrip("/")
    view, past = f"{folder}/roadmap-view.json", f"{folder.rpartition('/')[0]}/roadmap-history.md"
    found = {path: text for path, text in shared_files().items() if not (plane.root / path).exists()}
    history = plane.text(past) if plane.has(past) else "# History\n\n## Completed Rounds\n"
    if not plane.has(past):
        found[past] = history
    if not plane.has(view):
        derived = derived_view(
            plane.text(f"{folder}/roadmap.md"),
            history,
            roadmap_id=state.roadmap_id,
            revision=state.roadmap_revision,
            folder=folder,
        )
        found[view] = json.dumps(derived, indent=2, ensure_ascii=False) + "\n"
    added = {path.removeprefix(f"{manifest.FOLDER}/"): text.encode() for path, text in found.items()}
    try:
        plane.bundle(
            {**plane.files(), **{name: added[name] for name in added if name.startswith("roadmaps/")}}
        )
    except ControlError as wrong:
        raise BadPlan(manifest.FOLDER, tuple(str(wrong).split("; "))) from wrong
    return found
