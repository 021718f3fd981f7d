"""Read an orchestrator folder: its state, its roadmap, its records and its texts."""

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from loopwright.adapters.sources.orchestrator.orchestrator import OrchestratorSource
from loopwright.adapters.sources.orchestrator.roadmap_bundle import FOREIGN, Bundle, is_foreign, read_bundle
from loopwright.adapters.sources.orchestrator.roadmap_closeout import anchors_of
from loopwright.adapters.sources.text.json_edits import JsonEdits, opened
from loopwright.adapters.sources.text.located import plain, words
from loopwright.core.orchestrator import manifest
from loopwright.core.orchestrator.checks import Milestone, RoadmapView
from loopwright.core.orchestrator.records import ControlState, read_record, read_state
from loopwright.core.values.errors import BadPlan
from loopwright.core.values.shapes import Misshapen
from loopwright.core.values.wording import to_type
from loopwright.ports import Files

R = TypeVar("R")


class ControlError(Exception):
    """The folder is inconsistent; the text goes into `resume_errors.controller`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    """The `orchestrator/` folder below one root: the parent checkout, or a worktree."""

    root: Path

    @property
    def folder(self) -> Path:
        """The folder itself."""
        return self.root / manifest.FOLDER

    def at(self, worktree_path: str | None) -> "ControlPlane":
        """Return the folder that has the files of a round: its worktree while it is live, then this checkout."""
        return self if worktree_path is None else ControlPlane(root=self.root / worktree_path)

    def state(self) -> ControlState:
        """Return `state.json`; raise `BadPlan` if it cannot be read, because then nothing can be recorded in it."""
        name = manifest.STATE
        path = self.root / name
        if not path.is_file():
            raise BadPlan(name, ("there is no such file; restore it, its content cannot be guessed",))
        document = opened(name, path.read_bytes()).document
        if is_foreign(document):
            raise BadPlan(name, (FOREIGN,))
        try:
            return read_state(document.plain())
        except Misshapen as wrong:
            raise BadPlan(name, wrong.problems) from wrong

    def files(self) -> Files:
        """Return `state.json` and the files of the roadmap that it names."""
        return OrchestratorSource().files(self.folder)

    def revision_files(self, revision: str, folder: str) -> Files:
        """Return the files of another revision, with a state that names it."""
        edits = JsonEdits((self.root / manifest.STATE).read_bytes())
        edits.put(edits.document, "roadmap_revision", revision)
        edits.put(edits.document, "roadmap_dir", folder)
        name = folder.removeprefix(f"{manifest.FOLDER}/")
        names = [f"{name}/{each}" for each in ("roadmap.md", "roadmap-view.json", "verification.md")]
        names.append(f"{name.rpartition('/')[0]}/roadmap-history.md")
        found = {one: (self.folder / one).read_bytes() for one in names if (self.folder / one).is_file()}
        return {"state.json": edits.bytes(), **found}

    def bundle(self, files: Files | None = None) -> Bundle:
        """Return the active roadmap; raise `ControlError` if it is inconsistent."""
        try:
            return read_bundle(self.files() if files is None else files, manifest.FOLDER)
        except BadPlan as wrong:
            raise ControlError("; ".join(wrong.problems)) from wrong

    def text(self, path: str) -> str:
        """Return a file; raise `ControlError` if it is missing or empty."""
        place = self.root / path
        try:
            text = place.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as broken:
            why = broken.strerror if isinstance(broken, OSError) else "it is not UTF-8"
            raise ControlError(f"{path} cannot be read: {why}; restore it") from broken
        if not text.strip():
            raise ControlError(f"{path} is empty; restore it")
        return text

    def check_contract(self, state: ControlState) -> None:
        """Raise `ControlError` if files of the contract are missing, with all of them at once.

        A folder of an older contract lacks several. It is migrated first, by a command of the user.
        """
        needed = (*manifest.SERIAL, f"{state.roadmap_dir.rstrip('/')}/roadmap-view.json")
        missing = [path for path in needed if not (self.root / path).is_file()]
        if missing:
            raise ControlError(
                f"{', '.join(missing)}: missing, and part of the contract {state.contract_version}; restore what was "
                f"deleted, or let `{to_type('scaffold', 'orchestrator', migrate=True)}` add what an older folder lacks"
            )
        for path in manifest.SERIAL:
            self.text(path)

    def has(self, path: str) -> bool:
        """Return whether a file exists and is not empty."""
        place = self.root / path
        return place.is_file() and bool(place.read_bytes().strip())

    def record(self, kind: type[R], path: str) -> R:
        """Return a machine record; raise `Misshapen` with what is wrong with it."""
        name = Path(path).name
        try:
            value = json.loads((self.root / path).read_bytes())
        except OSError as broken:
            raise Misshapen([f"{name}: missing"]) from broken
        except ValueError as broken:
            raise Misshapen([f"{name}: this is not JSON: {broken}"]) from broken
        return read_record(kind, value, name)

    def sha256(self, path: str) -> str:
        """Return the hash of a file."""
        return sha256((self.root / path).read_bytes()).hexdigest()


def view_of(bundle: Bundle) -> RoadmapView:
    """Return what the controller needs of a roadmap."""
    milestones = tuple(
        Milestone(
            milestone_id=words(one, "milestone_id"),
            status=words(one, "status"),
            depends_on=tuple(plain(one, "depends_on")),
            direction_ids=tuple(plain(one, "direction_ids")),
        )
        for one in bundle.milestones
    )
    return RoadmapView(milestones=milestones, anchors=frozenset(anchors_of(bundle.view.document)))
