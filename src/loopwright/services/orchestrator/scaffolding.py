"""Write a valid orchestrator folder for a goal: shared files from templates, and the first roadmap from answers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from loopwright.adapters.git.branches.round_branches import RoundBranches
from loopwright.adapters.machine.files import write_atomically
from loopwright.adapters.sources.orchestrator.roadmap_schema import STATE as STATE_SCHEMA
from loopwright.core.orchestrator import manifest
from loopwright.core.orchestrator.records import record_schemas
from loopwright.core.plans.planning import name_of
from loopwright.core.values.errors import BadPlan, Refused
from loopwright.core.values.round_states import ControllerStage
from loopwright.core.values.wording import to_type
from loopwright.services.homes.context import glance_at, needed_place
from loopwright.services.orchestrator.control_plane import ControlError, ControlPlane, view_of
from loopwright.services.orchestrator.controller_lock import controlling

_SCHEMAS: Final = {
    "state-schema.md": ("state.json", ("orchestrator_state", "orchestrator_retry")),
    "selection-record-schema.md": ("selection-record.json", ("orchestrator_selection",)),
    "round-plan-record-schema.md": ("round-plan-record.json", ("orchestrator_round_plan",)),
    "round-finalization-schema.md": (
        "review-record.json and closeout-record.json",
        ("orchestrator_review", "orchestrator_closeout"),
    ),
    "roadmap-update-schema.md": ("roadmap_update in state.json", ("orchestrator_update",)),
}
_FOLDERS: Final = ("rounds", "roadmap-updates", "worktrees")
_IGNORED: Final = f"{manifest.WORKTREES}/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """The decisions before a roadmap is written."""

    goal: str
    milestones: tuple[str, ...] = ()
    """In order; empty for one milestone with the goal."""
    out_of_scope: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    """Commands that have to pass before and after every round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaffolded:
    """What was written."""

    roadmap_id: str
    files: tuple[str, ...]
    base_branch: str


async def scaffold(asked: Alignment) -> Scaffolded:
    """Write the folder, or the next roadmap of a finished one; refuse to change an unfinished one."""
    place = needed_place()
    root = place.root
    with glance_at(root) as repository:
        branches = RoundBranches(repository.git, root)
        branch = await branches.checked_out()
        if not branch:
            raise Refused(
                "no branch is checked out, so there is none that rounds could merge into",
                code="orchestrator_without_branch",
                hint="check out a branch",
            )
        async with controlling(branches):
            return _written(asked, root, branch)


def _written(asked: Alignment, root: Path, branch: str) -> Scaffolded:
    plane = ControlPlane(root=root)
    known = _finished(plane) if plane.folder.exists() else None
    today = datetime.now(UTC).date().isoformat()
    taken = len(list(plane.folder.glob(f"roadmaps/{today}-*")))
    roadmap = f"{today}-{taken:02d}-{name_of(asked.goal)}"
    made = _roadmap(asked, roadmap)
    if known is None:
        made |= shared_files()
    made[manifest.STATE] = _state(roadmap, branch, known)
    made = write_files(root, made)
    plane.bundle()  # the written files are valid, or this raises
    return Scaffolded(roadmap_id=roadmap, files=tuple(sorted(made)), base_branch=branch)


def write_files(root: Path, made: Mapping[str, str]) -> dict[str, str]:
    """Write the files of a folder, and let git ignore the worktrees of its rounds; return what was written."""
    for path, text in made.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(root / path, text)
    return {**made, **_ignored(root)}


def _finished(plane: ControlPlane) -> dict[str, Any]:
    """Return the state of a folder in which nothing is left to do."""
    try:
        state = plane.state()
        left = (
            *view_of(plane.bundle()).unfinished,
            *(one.round_id for one in state.active_rounds),
            *state.errors,
        )
    except (BadPlan, ControlError) as broken:
        raise _live(str(broken)) from broken
    if state.controller_stage is not ControllerStage.DONE or left or state.roadmap_update or state.retry:
        raise _live(", ".join(left) or f"controller_stage is {state.controller_stage}")
    found: dict[str, Any] = json.loads((plane.root / manifest.STATE).read_text(encoding="utf-8"))
    return found


def _live(why: str) -> Refused:
    return Refused(
        f"{manifest.FOLDER}/ is not finished: {why}",
        code="orchestrator_exists",
        hint=f"`{to_type('run', manifest.FOLDER)}` finishes it",
    )


def _state(roadmap: str, branch: str, known: dict[str, Any] | None) -> str:
    state = {
        "contract_version": "orchestrator-v2",
        "base_branch": branch,
        "max_parallel_rounds": 1,
        **(known or {}),
        "roadmap_id": roadmap,
        "roadmap_revision": "rev-001",
        "roadmap_dir": f"{manifest.FOLDER}/roadmaps/{roadmap}/rev-001",
        "controller_stage": ControllerStage.DISPATCH.value,
        "active_rounds": [],
        "roadmap_update": None,
        "resume_errors": {},
        "retry": None,
    }
    return json.dumps(state, indent=2, ensure_ascii=False) + "\n"


@cache
def _template(name: str) -> str:
    return files(__package__).joinpath("scaffold", name).read_text(encoding="utf-8")


def shared_files() -> dict[str, str]:
    """Return the files that every roadmap shares."""
    plain = (
        "artifact-manifest.md",
        "active-roadmap-bundle.md",
        "role-contract.md",
        "project-contract.md",
        *(f"roles/{role}.md" for role in ("planner", "implementer", "reviewer", "recovery-investigator")),
    )
    found = {f"{manifest.FOLDER}/{name}": _template(name) for name in plain}
    found |= {f"{manifest.FOLDER}/{folder}/.gitkeep": "" for folder in _FOLDERS[:2]}
    schemas = {**record_schemas(), "orchestrator_state": STATE_SCHEMA}
    for name, (about, wanted) in _SCHEMAS.items():
        title = name.removesuffix(".md").replace("-", " ").title()
        blocks = "\n".join(f"```json\n{json.dumps(schemas[one], indent=2)}\n```\n" for one in wanted)
        found[f"{manifest.FOLDER}/{name}"] = (
            f"# {title}\n\nThe JSON Schema of {about}. It decides.\n\n{blocks}"
        )
    return found


def _ignored(root: Path) -> dict[str, str]:
    path = root / ".gitignore"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if _IGNORED in text.splitlines():
        return {}
    text += ("\n" if text and not text.endswith("\n") else "") + f"{_IGNORED}\n"
    write_atomically(path, text)
    return {".gitignore": text}


def _roadmap(asked: Alignment, roadmap: str) -> dict[str, str]:
    """Return the files of the first revision: a chain of milestones, each with one direction."""
    family = f"{manifest.FOLDER}/roadmaps/{roadmap}"
    folder, titles = f"{family}/rev-001", asked.milestones or (asked.goal,)
    goal = " ".join(asked.goal.split())
    prose = [f"# {goal}", "", "## Goal", "", goal, "", "## Alignment Summary", ""]
    prose += [f"- {one}" for one in titles] + ["", "## Outcome Boundaries", ""]
    prose += [f"- Not in scope: {one}" for one in asked.out_of_scope or ("none discovered yet",)]
    prose += ["", "## Global Sequencing Rules", "", "- Milestones are done one after the other."]
    prose += ["", "## Parallel Lanes", "", "- `lane-core`: everything", "", "## Milestones", ""]
    anchors = {"history": {"target_file": f"{family}/roadmap-history.md", "selector": "## Completed Rounds"}}
    milestones, directions = [], []
    for n, title in enumerate((" ".join(one.split()) for one in titles), 1):
        key, needs = f"milestone-{n}", [f"milestone-{n - 1}"] if n > 1 else []
        prose += _milestone(n, title, needs)
        lines = {"status": f"### [pending] {n}. {title}", "completion": f"#### Completion Pointers: {key}"}
        for kind, line in lines.items():
            anchors[f"{key}-{kind}"] = {"target_file": f"{folder}/roadmap.md", "selector": line}
        milestones.append(
            {
                "milestone_id": key,
                "title": title,
                "status": "pending",
                "depends_on": needs,
                "parallel_lane": "lane-core",
                "status_anchor": f"{key}-status",
                "completion_anchor": f"{key}-completion",
                "direction_ids": [f"direction-{n}a"],
            }
        )
        directions.append(
            {
                "direction_id": f"direction-{n}a",
                "milestone_id": key,
                "summary": title,
                "preconditions": needs,
                "parallel_hints": "serial",
            }
        )
    view = {
        "schema_version": "roadmap-view-v1",
        "roadmap_id": roadmap,
        "roadmap_revision": "rev-001",
        "roadmap_dir": folder,
        "roadmap_file": f"{folder}/roadmap.md",
        "milestones": milestones,
        "directions": directions,
        "anchors": anchors,
    }
    return {
        f"{folder}/roadmap.md": "\n".join(prose),
        f"{folder}/roadmap-view.json": json.dumps(view, indent=2, ensure_ascii=False) + "\n",
        f"{folder}/verification.md": _verification(asked.checks),
        f"{family}/roadmap-history.md": f"# {goal}: history\n\n## Completed Rounds\n",
    }


def _milestone(n: int, title: str, needs: Sequence[str]) -> list[str]:
    key = f"milestone-{n}"
    return [
        f"### [pending] {n}. {title}",
        "",
        f"- Milestone id: `{key}`",
        f"- Depends on: {', '.join(needs) or 'none'}",
        f"- Intent: {title}",
        f"- Completion signal: the reviewer finds nothing of this left to do: {title}",
        "- Parallel lane: `lane-core`",
        "- Coordination notes: none",
        "",
        f"#### Completion Pointers: {key}",
        "",
        f"#### Candidate Direction: {title}",
        "",
        f"- Direction id: `direction-{n}a`",
        f"- Summary: {title}",
        "- Why it matters now: it is the next milestone",
        f"- Preconditions: {', '.join(needs) or 'none'}",
        "- Parallel hints: serial",
        "- Boundary notes: none",
        "- Extraction notes: one reviewable item for each round",
        "",
    ]


def _verification(checks: Sequence[str]) -> str:
    sections = {
        "Baseline Checks": [f"`{one}`" for one in checks] or ["the gates of the project"],
        "Alignment Checks": ["the change stays inside the selected item"],
        "Task-Specific Checks": ["the checks that plan.md names"],
        "Manual Checks": ["none"],
        "Roadmap Overrides": ["none"],
    }
    parts = [f"## {name}\n\n" + "".join(f"- {one}\n" for one in lines) for name, lines in sections.items()]
    return "# Verification\n\n" + "\n".join(parts)
