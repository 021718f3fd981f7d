"""The only resolver of paths in an orchestrator folder: which files it has, where each is, and who writes it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from loopwright.core.values.round_states import RoundRole, RoundStage

FOLDER: Final = "orchestrator"
WORKTREES: Final = f"{FOLDER}/worktrees"
STATE: Final = f"{FOLDER}/state.json"
CONTRACT_FILE: Final = f"{FOLDER}/role-contract.md"
MANIFEST: Final = f"{FOLDER}/artifact-manifest.md"
BUNDLE_CONTRACT: Final = f"{FOLDER}/active-roadmap-bundle.md"

_WHO = RoundRole

ROUND_FILES: Final[Mapping[str, tuple[str, RoundRole]]] = MappingProxyType(
    {
        "selection_record": ("selection-record.json", _WHO.PLANNER),
        "roadmap_update_request": ("roadmap-update-request.md", _WHO.PLANNER),
        "plan": ("plan.md", _WHO.PLANNER),
        "round_plan_record": ("round-plan-record.json", _WHO.PLANNER),
        "implementation_notes": ("implementation-notes.md", _WHO.IMPLEMENTER),
        "review": ("review.md", _WHO.REVIEWER),
        "review_record": ("review-record.json", _WHO.REVIEWER),
        "recovery_investigation": ("recovery-investigation.md", _WHO.INVESTIGATOR),
        "closeout_record": ("closeout-record.json", _WHO.CONTROLLER),
    }
)
"""The files of a round by their keys, each with its owner."""
WORKER_FILES: Final[Mapping[str, tuple[str, RoundRole]]] = MappingProxyType(
    {
        "assignment": ("assignment.md", _WHO.PLANNER),
        "worker_notes": ("implementation-notes.md", _WHO.IMPLEMENTER),
        "handoff": ("handoff.md", _WHO.IMPLEMENTER),
    }
)
SERIAL: Final = (MANIFEST, BUNDLE_CONTRACT, CONTRACT_FILE)
"""What every round reads besides `state.json`, the roadmap and the prompts of its roles."""
ADVANCED: Final = (f"{FOLDER}/roadmap-update-schema.md", f"{FOLDER}/roles/{_WHO.INVESTIGATOR}.md")
"""What is read only on a named exit from the serial path."""


_BEFORE: Final = MappingProxyType(
    {
        RoundStage.IMPLEMENT: frozenset({_WHO.PLANNER}),
        RoundStage.REVIEW: frozenset({_WHO.PLANNER, _WHO.IMPLEMENTER}),
    }
)
"""The roles whose files each stage needs."""


def role_file(role: RoundRole) -> str:
    """Return where the prompt of a role is."""
    return f"{FOLDER}/roles/{role}.md"


def round_folder(round_id: str) -> str:
    """Return the folder of a round."""
    return f"{FOLDER}/rounds/{round_id}"


def round_file(key: str, round_id: str) -> str:
    """Return the path of a round's file, relative to the repository."""
    return f"{round_folder(round_id)}/{ROUND_FILES[key][0]}"


def worker_file(key: str, round_id: str, worker_id: str) -> str:
    """Return the path of a worker's file, relative to the repository."""
    return f"{round_folder(round_id)}/workers/{worker_id}/{WORKER_FILES[key][0]}"


def update_file(round_id: str, *, review: bool = False) -> str:
    """Return the path of a roadmap update, or of its review."""
    return f"{FOLDER}/roadmap-updates/{round_id}-roadmap-update{'-review' if review else ''}.md"


def worktree(name: str) -> str:
    """Return the worktree of a round, a worker or a roadmap update."""
    return f"{WORKTREES}/{name}"


def owner_of(path: str) -> RoundRole:
    """Return who writes a path; everything outside the folder belongs to the implementer."""
    parts = path.split("/")
    if parts[0] != FOLDER:
        return _WHO.IMPLEMENTER
    name = parts[-1]
    if len(parts) == 4 and parts[1] == "rounds":
        return next((who for file, who in ROUND_FILES.values() if file == name), _WHO.CONTROLLER)
    if len(parts) == 6 and parts[1] == "rounds" and parts[3] == "workers":
        return next((who for file, who in WORKER_FILES.values() if file == name), _WHO.CONTROLLER)
    if parts[1] == "roadmap-updates":
        return _WHO.REVIEWER if name.endswith("-review.md") else _WHO.PLANNER
    if parts[1] == "roadmaps":
        return _WHO.PLANNER
    return _WHO.CONTROLLER


def foreign_files(stage: RoundStage, problems: tuple[str, ...]) -> frozenset[str]:
    """Return the files among problems, each `file: what`, that a stage before this one has to write."""
    before = _BEFORE.get(stage, frozenset())
    names = {name for name, who in ROUND_FILES.values() if who in before}
    return frozenset(name for name in names if any(one.startswith(name) for one in problems))


def foreign_to(
    role: RoundRole, changed: tuple[str, ...], round_id: str, *, revision: str = ""
) -> tuple[str, ...]:
    """Return which changed paths a role was not allowed to write in a round.

    `revision` is the folder of the new roadmap revision that a planner writes in a roadmap update.
    """
    return tuple(path for path in changed if not _may_write(role, path, round_id, revision))


def _may_write(role: RoundRole, path: str, round_id: str, revision: str) -> bool:
    if owner_of(path) is not role:
        return False
    if not path.startswith(f"{FOLDER}/"):
        return True
    if path.startswith(f"{FOLDER}/roadmaps/"):
        history = f"{revision.rpartition('/')[0]}/roadmap-history.md"
        return bool(revision) and (path.startswith(f"{revision}/") or path == history)
    if path.startswith(f"{FOLDER}/roadmap-updates/"):
        return path in (update_file(round_id), update_file(round_id, review=True))
    return path.startswith(f"{round_folder(round_id)}/")
