"""A sample orchestrator folder with scripted roles, and looks at what the controller made of it."""

import json
from pathlib import Path
from typing import Any, Final

from tests.acceptance.control.workshop import Workshop

ROADMAP: Final = "2026-03-01-00-greet"
ROLES: Final = Path(__file__).parent / "roles.py"
SETTINGS: Final = '[[gates]]\nname = "greeting"\nrun = "grep -q hello greet.txt"\n'
_STAGES: Final = (
    *("plan", "implement", "review", "left", "right", "update-roadmap", "update-review"),
    *(f"recovery-{stage}-{n}" for stage in ("plan", "implement", "review") for n in range(1, 9)),
)
_MILESTONE: Final = """
### [pending] {n}. Part {n}

- Milestone id: `milestone-{n}`
- Depends on: {needs}
- Intent: have part {n}
- Completion signal: part {n} is there
- Parallel lane: `lane-core`
- Coordination notes: none

#### Completion Pointers: milestone-{n}

#### Candidate Direction: Part {n}

- Direction id: `direction-{n}a`
- Summary: write part {n}
- Why it matters now: it is next
- Preconditions: none
- Parallel hints: serial
- Boundary notes: none
- Extraction notes: one round
"""


def files(milestones: int, *, apart: bool = False, **state: Any) -> dict[str, str]:
    """Return the files of a folder with so many milestones, one after the other unless they are apart."""
    folder = f"orchestrator/roadmaps/{ROADMAP}/rev-001"
    needs = {n: [] if apart or n == 1 else [f"milestone-{n - 1}"] for n in range(1, milestones + 1)}
    heads = ("Goal", "Alignment Summary", "Outcome Boundaries", "Global Sequencing Rules", "Parallel Lanes")
    prose = (
        "# Greeting\n\n"
        + "".join(f"## {head}\n\n- one after the other\n\n" for head in heads)
        + "## Milestones\n"
    )
    prose += "".join(_MILESTONE.format(n=n, needs=", ".join(needs[n]) or "none") for n in needs)
    anchors: dict[str, Any] = {
        "history": {
            "target_file": f"orchestrator/roadmaps/{ROADMAP}/roadmap-history.md",
            "selector": "## Completed Rounds",
        }
    }
    for n in needs:
        target = {"target_file": f"{folder}/roadmap.md"}
        anchors[f"milestone-{n}-status"] = {**target, "selector": f"### [pending] {n}. Part {n}"}
        anchors[f"milestone-{n}-completion"] = {
            **target,
            "selector": f"#### Completion Pointers: milestone-{n}",
        }
    view = {
        "schema_version": "roadmap-view-v1",
        "roadmap_id": ROADMAP,
        "roadmap_revision": "rev-001",
        "roadmap_dir": folder,
        "roadmap_file": f"{folder}/roadmap.md",
        "milestones": [
            {
                "milestone_id": f"milestone-{n}",
                "title": f"Part {n}",
                "status": "pending",
                "depends_on": needs[n],
                "parallel_lane": "lane-core",
                "status_anchor": f"milestone-{n}-status",
                "completion_anchor": f"milestone-{n}-completion",
                "direction_ids": [f"direction-{n}a"],
            }
            for n in needs
        ],
        "directions": [
            {
                "direction_id": f"direction-{n}a",
                "milestone_id": f"milestone-{n}",
                "summary": f"write part {n}",
                "preconditions": [],
                "parallel_hints": "serial",
            }
            for n in needs
        ],
        "anchors": anchors,
    }
    checks = (
        "Baseline Checks",
        "Alignment Checks",
        "Task-Specific Checks",
        "Manual Checks",
        "Roadmap Overrides",
    )
    given = {
        "contract_version": "orchestrator-v2",
        "base_branch": "trunk",
        "roadmap_id": ROADMAP,
        "roadmap_revision": "rev-001",
        "roadmap_dir": folder,
        "controller_stage": "dispatch-rounds",
        "max_parallel_rounds": 1,
        "active_rounds": [],
        "roadmap_update": None,
        "resume_errors": {},
        "retry": None,
        "ours": "kept as it is",
        **state,
    }
    return {
        "orchestrator/state.json": json.dumps(given, indent=2) + "\n",
        f"{folder}/roadmap.md": prose,
        f"{folder}/roadmap-view.json": json.dumps(view, indent=2) + "\n",
        f"{folder}/verification.md": "# Verification\n\n"
        + "".join(f"## {one}\n\n- none\n\n" for one in checks),
        f"orchestrator/roadmaps/{ROADMAP}/roadmap-history.md": "# History\n\n## Completed Rounds\n",
        "orchestrator/artifact-manifest.md": "# Artifact Manifest\n",
        "orchestrator/active-roadmap-bundle.md": "# Active Roadmap Bundle\n",
        "orchestrator/role-contract.md": "# Role Contract\n\nThe contract of this repository.\n",
        **{
            f"orchestrator/roles/{role}.md": f"# {role}\n\nThe prompt of the {role}.\n"
            for role in ("planner", "implementer", "reviewer")
        },
    }


ADVANCED: Final = {
    "orchestrator/roles/recovery-investigator.md": "# Recovery Investigator\n",
    "orchestrator/roadmap-update-schema.md": "# Roadmap Update Schema\n",
}
"""What only the named exits read."""


def prepared(shop: Workshop, milestones: int, scenario: dict[str, Any] | None = None, **more: Any) -> None:
    """Commit a sample folder with scripted roles; `more` is for `files`, or `add` for more files."""
    added = more.pop("add", ADVANCED)
    tools = {"tools/roles.py": ROLES.read_text(), "tools/scenario.json": json.dumps(scenario or {})}
    ignore = "__pycache__/\n.loopwright/\norchestrator/worktrees/\n"
    for path, text in {
        **files(milestones, **more),
        **added,
        **tools,
        ".gitignore": ignore,
        "loopwright.toml": SETTINGS,
    }.items():
        place = shop.repository / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    shop.git("add", "-A")
    shop.git("commit", "-qm", "the work")
    play(shop)


def play(shop: Workshop, **others: Any) -> None:
    """Let every stage be done by `tools/roles.py`, apart from these, which play something else."""
    shop.play({**usual(), **{key.replace("_", "-"): value for key, value in others.items()}})


def usual() -> dict[str, Any]:
    """Return the script in which every stage does its work."""
    return {stage: [[{"run": f"python3 tools/roles.py {stage}"}]] for stage in _STAGES}


def state(shop: Workshop) -> Any:
    """Return `state.json`."""
    return json.loads((shop.repository / "orchestrator/state.json").read_text())


def record(shop: Workshop, round_id: str, name: str) -> Any:
    """Return a record of an archived round."""
    return json.loads((shop.repository / "orchestrator/rounds" / round_id / name).read_text())


def statuses(shop: Workshop) -> list[str]:
    """Return the status of every milestone of the active roadmap."""
    view = json.loads((shop.repository / state(shop)["roadmap_dir"] / "roadmap-view.json").read_text())
    return [one["status"] for one in view["milestones"]]
