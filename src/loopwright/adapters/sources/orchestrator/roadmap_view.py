"""Derive the machine-readable view of a roadmap that has only prose, as folders of an older contract do."""

from collections.abc import Iterable, Mapping
from typing import Any

from loopwright.adapters.sources.orchestrator.roadmap_bundle import heading
from loopwright.adapters.sources.orchestrator.roadmap_schema import VIEW
from loopwright.adapters.sources.orchestrator.roadmap_text import Block, Roadmap, read_roadmap


def derived_view(text: str, history: str, *, roadmap_id: str, revision: str, folder: str) -> dict[str, Any]:
    """Return the view that says what a roadmap.md says.

    Reading the bundle checks it, and names what the prose lacks.
    """
    roadmap = read_roadmap(text)
    file = f"{folder}/roadmap.md"
    past = f"{folder.rpartition('/')[0]}/roadmap-history.md"
    anchors = {"history": {"target_file": past, "selector": _last_heading(history)}}
    milestones, directions = [], []
    for block in roadmap.milestones:
        key, (status, title) = block.said("Milestone id"), heading(block.title)
        within = [each for each in block.blocks if "Direction id" in each.fields]
        lines = {"status": roadmap.lines[block.line - 1], "completion": _last_unique(roadmap, block)}
        for kind, line in lines.items():
            anchors[f"{key}-{kind}"] = {"target_file": file, "selector": line.strip()}
        milestones.append(
            {
                "milestone_id": key,
                "title": title,
                "status": status,
                "depends_on": list(block.listed("Depends on")),
                "parallel_lane": block.said("Parallel lane"),
                "status_anchor": f"{key}-status",
                "completion_anchor": f"{key}-completion",
                "direction_ids": [each.said("Direction id") for each in within],
            }
        )
        directions += [_direction(key, each) for each in within]
    return {
        "schema_version": VIEW,
        "roadmap_id": roadmap_id,
        "roadmap_revision": revision,
        "roadmap_dir": folder,
        "roadmap_file": file,
        "milestones": milestones,
        "directions": directions,
        "anchors": anchors,
    }


def _direction(milestone: str, block: Block) -> Mapping[str, Any]:
    return {
        "direction_id": block.said("Direction id"),
        "milestone_id": milestone,
        "summary": block.said("Summary"),
        "preconditions": block.said("Preconditions"),
        "parallel_hints": block.said("Parallel hints"),
    }


def _last_unique(roadmap: Roadmap, block: Block) -> str:
    """Return the last line of a milestone that the roadmap has once: pointers follow it, and no meaning does."""
    return _last(
        line for line in roadmap.lines[block.line - 1 : block.end - 1] if len(roadmap.selected(line)) == 1
    )


def _last_heading(text: str) -> str:
    lines = [line.strip() for line in text.splitlines()]
    return _last(line for line in lines if line.startswith("#") and lines.count(line) == 1)


def _last(lines: Iterable[str]) -> str:
    return next((line for line in reversed(list(lines)) if line.strip()), "")
