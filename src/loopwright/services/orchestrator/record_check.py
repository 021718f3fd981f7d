"""The check of a stage's files: `python -m loopwright.services.orchestrator.record_check STAGE …`.

It runs in the tree that is checked. The arguments are the stage, the round, and the roadmap's id, revision
and folder.
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

from loopwright.core.values.errors import BadPlan
from loopwright.core.values.round_states import RoundStage
from loopwright.services.orchestrator.control_plane import ControlError, ControlPlane, view_of
from loopwright.services.orchestrator.observing import observe

MODULE: Final = "loopwright.services.orchestrator.record_check"
UPDATE_CHECK: Final = "update"
"""Instead of a stage: the arguments name a new revision, which has to be valid, and the update."""
FILE: Final = "file"
"""Instead of a stage: the file that the last argument names has to exist."""


def main(arguments: list[str]) -> int:
    """Print what is missing or wrong, one problem on each line; return 0 if nothing is."""
    what, round_id, roadmap, revision, folder = arguments[:5]
    plane = ControlPlane(root=Path())
    problems: tuple[str, ...]
    if what == UPDATE_CHECK:
        problems = _revision_problems(plane, revision, folder, arguments[5])
    elif what == FILE:
        problems = tuple(f"{one}: missing" for one in arguments[5:] if not plane.has(one))
    else:
        problems = _problems(plane, RoundStage(what), round_id, roadmap, revision, folder)
    sys.stdout.write("".join(f"{one}\n" for one in problems))
    return 1 if problems else 0


_SECTIONS: Final = ("Source Round", "Roadmap Change", "Rationale", "State Activation")


def _revision_problems(plane: ControlPlane, revision: str, folder: str, artifact: str) -> tuple[str, ...]:
    """Return what is wrong with a roadmap update: its sections, and the bundle of its new revision."""
    if not plane.has(artifact):
        return (f"{artifact}: missing",)
    headings = {line.strip("# ").strip() for line in plane.text(artifact).splitlines() if line[:1] == "#"}
    missing = tuple(f"{artifact}: the section {one} is missing" for one in _SECTIONS if one not in headings)
    try:
        plane.bundle(plane.revision_files(revision, folder))
    except (BadPlan, ControlError) as wrong:
        return (*missing, str(wrong))
    return missing


def _problems(
    plane: ControlPlane, stage: RoundStage, round_id: str, roadmap: str, revision: str, folder: str
) -> tuple[str, ...]:
    try:
        # The live state is in the parent checkout; the copy in a tree may name an older revision.
        state = replace(plane.state(), roadmap_id=roadmap, roadmap_revision=revision, roadmap_dir=folder)
        view = view_of(plane.bundle())
    except (BadPlan, ControlError) as wrong:
        return (str(wrong),)
    seen = observe(Path(), stage, round_id, state, view)
    if stage is RoundStage.PLAN and seen.requests_update:
        # A request replaces the three files; with one of them it would be half a plan.
        return ("there is a request and a plan: write one of them",) if seen.has_some else ()
    return seen.problems


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
