"""The part of a receipt whose hash a landing commit carries in its trailer.

A commit cannot carry the hash of a verdict about itself. It carries the hash of what is known before: the
task, the runs that worked on it, their inputs and outputs, and every event of the plan until then.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from loopwright.core.receipts.differences import Difference, DifferenceCode, differs
from loopwright.core.receipts.model import AttemptEntry, ReceiptFacts, RunEntry, TaskFacts
from loopwright.core.rows.model import AUTHORS
from loopwright.core.values.documents import plain

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
    plan_id: str, base_sha: str, task: TaskFacts, attempt: AttemptEntry, runs: Sequence[RunEntry]
) -> str:
    """Return that part as the text that is hashed."""
    worked = [run for run in runs if run.attempt_id == attempt.id and run.role in AUTHORS]
    part = {
        "plan": {"id": plan_id, "base_sha": base_sha},
        "task": _picked(task, _TASK),
        "attempt": _picked(attempt, _ATTEMPT),
        "runs": [_picked(run, _RUN) for run in sorted(worked, key=attrgetter("id"))],
    }
    # With a final newline, as in a file or from a shell.
    return json.dumps(part, sort_keys=True, ensure_ascii=True, separators=(",", ":")) + "\n"


def _picked(entry: object, names: Sequence[str]) -> dict[str, Any]:
    return {name: plain(getattr(entry, name)) for name in names}


def landing_hash(text: str) -> str:
    """Return the value of the trailer."""
    return f"sha256:{hashlib.sha256(text.encode('ascii')).hexdigest()}"


def landings(receipt: ReceiptFacts) -> Iterator[tuple[str, str, str]]:
    """Yield each commit on the branch that landed a task, its name in words, and its part of the receipt."""
    back = {removed.sha for one in receipt.overrides for removed in one.took_out}
    plan = receipt.plan
    for task in receipt.tasks:
        for attempt in task.attempts:
            sha = attempt.candidate_sha
            if sha is not None and (sha == task.landed_sha or sha in back):
                text = landing_text(plan.id, plan.base_sha, task, attempt, receipt.runs)
                yield sha, f"task {task.key}", text


def landing_hash_differences(
    receipt: ReceiptFacts, carried: Mapping[str, str], events: frozenset[str] | None
) -> list[Difference]:
    """Compare the receipt with the trailers of its commits, and with the home's events if they are available."""
    found = []
    for sha, what, text in landings(receipt):
        if sha in carried and carried[sha] != landing_hash(text):
            said = carried[sha] or "nothing"
            text = f"the commit of {what} names another part of a receipt: {said} ({sha})"
            found.append(differs(DifferenceCode.LANDING_HASH, sha, text))
    lost = [
        run.id
        for run in receipt.runs
        if run.ended_event is not None and events is not None and run.ended_event not in events
    ]
    missing = "the event with which {} ended is not in the home's chain of events"
    return found + [differs(DifferenceCode.EVENT_MISSING, one, missing.format(one)) for one in lost]
