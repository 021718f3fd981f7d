"""A new track for work that an agent found: its plan with one task, and its metadata."""

import json
from datetime import datetime
from pathlib import PurePosixPath
from typing import Final

from loopwright.adapters.sources.plan_md.plan_md import METADATA, PLAN
from loopwright.adapters.sources.plan_md.plan_md_schema import VERSION
from loopwright.adapters.sources.plan_md.plan_md_steps import time_text
from loopwright.adapters.sources.text.titles import one_line

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
