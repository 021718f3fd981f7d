"""A new track: for work that an agent found, or for a goal that an agent planned."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final

from loopwright.adapters.sources.plan_md.plan_md import METADATA, PLAN, SPEC
from loopwright.adapters.sources.plan_md.plan_md_schema import VERSION
from loopwright.adapters.sources.plan_md.plan_md_steps import by_role, planned_step, time_text
from loopwright.adapters.sources.text.titles import one_line
from loopwright.core.plans.tracks import TrackStep
from loopwright.ports import EvaluatedPlan, PlannedTask, PlannedWork

_TRACKS: Final = ("conductor", "tracks")
_MAX_REASON: Final = 2000


def tracks_of(kind: str, source: str) -> str:
    """Return the folder of tracks that a source is one of, relative to its repository; nothing if it is none."""
    parts = PurePosixPath(source).parts
    found = [at for at in range(len(parts) - 1) if parts[at : at + 2] == _TRACKS]
    if kind != "plan_md" or not found or ".." in parts or parts[-2:] == _TRACKS:
        return ""
    return PurePosixPath(*parts[: found[-1] + 2]).as_posix()


def track_files(track: str, *, title: str, reason: str, found_in: str, at: datetime) -> dict[str, str]:
    """Return the files of a new track.

    What the agent says is words: no line of it can be read as acceptance or as another task.
    """
    name = one_line(title)
    why = [f"  - Found: {one_line(reason, _MAX_REASON)}"] if reason.strip() else []
    plan = [
        f"# {name}",
        "",
        f"Found in {one_line(found_in)}. Say what proves it done, then type `loopwright run FOLDER`",
        "",
        "## Phase 1",
        "",
        f"- [ ] Task 1: {name}",
        *why,
        "",
    ]
    metadata = {
        "version": VERSION,
        "track_id": track,
        "type": "feature",
        "status": "new",
        "created_at": time_text(at),
        "updated_at": time_text(at),
        "loop_state": {"current_step": "PLAN", "step_status": "NOT_STARTED", "checkpoints": {}},
    }
    return {PLAN: "\n".join(plan), METADATA: json.dumps(metadata, indent=2, ensure_ascii=False) + "\n"}


# A track for a goal: its specification, its plan and its metadata, of what a planner answered.

CONDUCTOR: Final = "conductor"
_SIGNS: Final = ("tracks", "tracks.md", "workflow.md")
"""What a folder has that is kept by the rules of conductor."""
_FIXES: Final = re.compile(r"\b(?:bug|bugs|bugfix|fix|fixes|repair)\b", re.IGNORECASE)
_COMMAND: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning:
    """How the plan of a track came to be."""

    track: str
    goal: str
    at: datetime
    planner: str
    """The agent that wrote it."""
    version: int
    """Which version of the plan it is: it goes back to the planner when the evaluator objects."""
    max_fix_cycles: int


def tracks_in(project: Path) -> Path | None:
    """Return the folder of tracks of a project that is kept by the rules of conductor; None of another one."""
    folder = project / CONDUCTOR
    return folder / "tracks" if any((folder / name).exists() for name in _SIGNS) else None


def planned_files(planning: Planning, work: PlannedWork) -> dict[str, str]:
    """Return the specification and the plan of a track; its metadata follows once the plan is evaluated."""
    return {SPEC: _spec(planning, work), PLAN: _plan(work), METADATA: track_metadata(planning, work, None)}


def track_metadata(planning: Planning, work: PlannedWork, evaluated: EvaluatedPlan | None) -> str:
    """Return the metadata of a track that has a plan, and perhaps the evaluation of exactly that plan."""
    waiting = (
        TrackStep.EVALUATE_PLAN,
        TrackStep.EXECUTE,
        TrackStep.EVALUATE_EXECUTION,
        TrackStep.FIX,
        TrackStep.BUSINESS_SYNC,
    )
    plan = plan_step(planning, work)
    steps: dict[str, Any] = {"PLAN": plan, **{step.value: {"status": "NOT_STARTED"} for step in waiting}}
    steps |= planned_step("", evaluated) if evaluated is not None else {}
    passed = evaluated is not None and evaluated.passed
    at = time_text(planning.at)
    metadata = {
        "version": VERSION,
        "track_id": planning.track,
        "type": _type(planning.goal),
        "status": "new",
        "created_at": at,
        "updated_at": at,
        "loop_state": {
            "current_step": (TrackStep.EXECUTE if passed else TrackStep.EVALUATE_PLAN).value,
            "step_status": "NOT_STARTED",
            "fix_cycle_count": 0,
            "max_fix_cycles": planning.max_fix_cycles,
            "checkpoints": steps,
        },
        "lead_consultations": [],
        "discovered_work": [],
        "blockers": [],
    }
    return json.dumps(metadata, indent=2, ensure_ascii=False) + "\n"


def plan_step(planning: Planning, work: PlannedWork) -> dict[str, Any]:
    """Return the checkpoint of the planning."""
    return {
        "status": "PASSED",
        "completed_at": time_text(planning.at),
        **by_role(TrackStep.PLAN, planning.planner),
        "plan_version": planning.version,
        "tasks_total": len(work.tasks),
    }


def listed_track(tracks: str, planning: Planning, work: PlannedWork) -> str:
    """Return the list of all tracks with this one at its end."""
    link = f"./tracks/{planning.track}/"
    entry = f"- [ ] **Track: {one_line(work.title)}**\n  *Link: [{link}]({link})*\n"
    return f"{tracks.rstrip()}\n\n---\n\n{entry}"


def _type(goal: str) -> str:
    return "bugfix" if _FIXES.search(goal) else "feature"


def _spec(planning: Planning, work: PlannedWork) -> str:
    wanted = [
        f"- {one_line(one, _MAX_REASON)}" for task in work.tasks for one in (task.title, *task.criteria)
    ]
    goal = [one_line(line, _MAX_REASON) for line in planning.goal.splitlines() if line.strip()]
    return "\n".join(
        [f"# {one_line(work.title)}", "", "## Goal", "", *goal, "", "## Requirements", "", *wanted, ""]
    )


def _plan(work: PlannedWork) -> str:
    """Return the plan, with the tasks numbered in the order of the answer.

    What the planner says is words: no line of it can be read as another task or label.
    """
    names = {task.key: f"1.{n}" for n, task in enumerate(work.tasks, 1)}
    lines = [f"# {one_line(work.title)}", "", "## Phase 1: Tasks", ""]
    for task in work.tasks:
        lines += [*_task(task, names), ""]
    return "\n".join(lines)


def _task(task: PlannedTask, names: Mapping[str, str]) -> list[str]:
    needs = [names[key] for key in task.depends_on if key in names]
    labelled = {
        "Depends on": ", ".join(needs),
        "Files": ", ".join(task.scope),
        "Complexity": task.complexity or "",
    }
    return [
        f"- [ ] Task {names[task.key]}: {one_line(task.title)}",
        *_text(task.description),
        *(line for one in task.acceptance for line in _check(one.command)),
        *(f"  - Acceptance: {one_line(one, _MAX_REASON)}" for one in task.criteria),
        *(f"  - {label}: {value}" for label, value in labelled.items() if value),
    ]


def _text(description: str) -> list[str]:
    """Return a description as a block in which nothing is a box or a label."""
    lines = [line.rstrip() for line in description.replace("```", "'''").strip().splitlines()]
    return ["  ```text", *(f"  {line}".rstrip() for line in lines), "  ```"] if lines else []


def _check(command: str) -> list[str]:
    if "\n" not in command and "`" not in command and len(command) < _COMMAND:
        return [f"  - Acceptance: `{command.strip()}`"]
    code = [f"    {line}" for line in command.strip().splitlines()]
    return ["  - Acceptance:", "", "    ```sh", *code, "    ```"]
