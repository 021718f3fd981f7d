"""What a landing commit says of the receipt: the part of it that was known when the commit was made.

A commit cannot carry the hash of a verdict about itself. What was asked, who worked on it, what they were told, what
they said, what they left, and every event of the plan up to then are known before; their hash is in its trailer.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from loopwright.core.rows.model import AUTHORS

Json = dict[str, Any]

_TASK: Final = ("id", "key", "title", "described_sha256", "acceptance")
_ATTEMPT: Final = ("id", "n", "agent", "model", "base_sha", "tip_sha")
_RUN: Final = (
    "id",
    "agent",
    "agent_version",
    "model",
    "permission_mode",
    "sandbox",
    "sandbox_made_with",
    "prompt_sha256",
    "template",
    "output_sha256",
    "output_bytes",
    "exit_code",
    "ended_event",
)


def landing_text(
    plan: Mapping[str, Any],
    task: Mapping[str, Any],
    attempt: Mapping[str, Any],
    runs: Sequence[Mapping[str, Any]],
) -> str:
    """Return that part as the one text whose hash the commit carries, from the entries of a receipt."""
    worked = [run for run in runs if run["attempt_id"] == attempt["id"] and run["role"] in AUTHORS]
    part = {
        "plan": {name: plan[name] for name in ("id", "base_sha")},
        "task": {name: task[name] for name in _TASK},
        "attempt": {name: attempt[name] for name in _ATTEMPT},
        "runs": [{name: run[name] for name in _RUN} for run in sorted(worked, key=lambda run: run["id"])],
    }
    # With a line's end, as a file or a shell has it.
    return json.dumps(part, sort_keys=True, ensure_ascii=True, separators=(",", ":")) + "\n"


def landing_hash(text: str) -> str:
    """Return what stands in the trailer."""
    return f"sha256:{hashlib.sha256(text.encode('ascii')).hexdigest()}"


def landings(receipt: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield each commit that landed a task and stands on the branch, what to call it, and its part of the receipt."""
    back = {pair["sha"] for one in receipt["overrides"] for pair in one["took_out"]}
    for task in receipt["tasks"]:
        for attempt in task["attempts"]:
            sha = attempt["candidate_sha"]
            if sha is not None and (sha == task["landed_sha"] or sha in back):
                text = landing_text(receipt["plan"], task, attempt, receipt["runs"])
                yield sha, f"task {task['key']}", text


def landing_hash_differences(
    receipt: Mapping[str, Any], carried: Mapping[str, str], events: frozenset[str] | None
) -> list[str]:
    """Compare with what the commits on the branch carry, and with the events of the home where it is at hand."""
    found = []
    for sha, what, text in landings(receipt):
        if sha in carried and carried[sha] != landing_hash(text):
            said = carried[sha] or "nothing"
            found.append(f"the commit of {what} names another part of a receipt: {said} ({sha})")
    ends = [(run["id"], run["ended_event"]) for run in receipt["runs"] if run["ended_event"] is not None]
    lost = [one for one, event in ends if events is not None and event not in events]
    return found + [f"the event with which {one} ended is not in the home's chain of events" for one in lost]
