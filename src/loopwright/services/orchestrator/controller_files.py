"""The only writer of the controller.

It refuses every file that a role owns: the controller does no role's work.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from loopwright.adapters.machine.files import write_atomically
from loopwright.adapters.sources.orchestrator.roadmap_bundle import is_foreign, read_bundle
from loopwright.adapters.sources.orchestrator.roadmap_closeout import Pointer, StatusChange, close_out
from loopwright.adapters.sources.text.json_edits import JsonEdits
from loopwright.adapters.sources.text.problems import Unreadable
from loopwright.core.orchestrator.manifest import FOLDER, STATE, owner_of, round_file
from loopwright.core.orchestrator.records import RoadmapCloseout, read_state
from loopwright.core.values.round_states import RoundRole
from loopwright.ports import Failpoint, Files, no_failpoint
from loopwright.services.orchestrator.state_edits import controller_error


class RoleOwned(ValueError):
    """The controller was about to write what a role owns: a defect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerFiles:
    """Writes what the controller owns: its state, closeouts, and approved status edits."""

    root: Path
    failpoint: Failpoint = no_failpoint

    def edit_state(self, change: Callable[[JsonEdits], None]) -> None:
        """Change single values of the current `state.json`, and keep every other byte."""
        path = self.root / STATE
        before = path.read_bytes()
        edits = JsonEdits(before)
        change(edits)
        after = edits.bytes()
        read_state(JsonEdits(after).document.plain())
        if after != before:
            self._save(path, after)

    def record_error(self, why: str) -> bool:
        """Record what stops the controller, also in a state that is not valid; return whether that is possible."""
        path = self.root / STATE
        try:
            edits = JsonEdits(path.read_bytes())
        except (OSError, Unreadable):
            return False
        if not isinstance(edits.document.value, dict) or is_foreign(edits.document):
            return False  # the file of another tool stays as it is
        controller_error(why)(edits)
        self._save(path, edits.bytes())
        return True

    def _save(self, path: Path, content: bytes) -> None:
        self.failpoint("round.write.before")
        write_atomically(path, content.decode("utf-8"))
        self.failpoint("round.write.after")

    def write(self, root: Path, path: str, text: str) -> None:
        """Write a file of the controller below a root."""
        if owner_of(path) is not RoundRole.CONTROLLER:
            raise RoleOwned(f"{path} belongs to the {owner_of(path)}")
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        self.failpoint("round.write.before")
        write_atomically(place, text)
        self.failpoint("round.write.after")

    def close_milestones(self, root: Path, files: Files, closeout: RoadmapCloseout) -> list[str]:
        """Apply approved status edits to the roadmap below a root; raise `BadPlan` if one does not fit."""
        bundle = read_bundle(files, FOLDER)
        changes = [
            StatusChange(
                milestone_id=one.milestone_id,
                expected_current_status=one.expected_current_status,
                target_status=one.target_status,
                roadmap_view_anchor=one.roadmap_view_anchor,
            )
            for one in closeout.status_changes
        ]
        pointers = [Pointer(anchor_id=one.anchor_id, text=one.text) for one in closeout.completion_pointers]
        history = [Pointer(anchor_id=one.anchor_id, text=one.text) for one in closeout.history_entries]
        made = close_out(files, bundle, changes, pointers, history)
        for name, content in made.items():
            self.failpoint("round.write.before")
            write_atomically(root / FOLDER / name, content.decode("utf-8"))
            self.failpoint("round.write.after")
        return sorted(f"{FOLDER}/{name}" for name in made)

    def preserve_request(self, live: Path, update: Path, round_id: str) -> None:
        """Copy the planner's request unchanged into the worktree of the update that it requests."""
        path = round_file("roadmap_update_request", round_id)
        place = update / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes((live / path).read_bytes())
