"""The summary beside a GSD plan: GSD takes a plan as finished when it is there."""

from collections.abc import Mapping, Sequence
from typing import Final

from loopwright.adapters.sources.text.titles import OURS, SHA_LENGTH, one_line
from loopwright.ports import ItemProgress

SUMMARY: Final = "SUMMARY.md"
_COMPLETE: Final = f"**All tasks are done.** {OURS}"
_REOPENED: Final = f"**The plan was opened again: not all tasks are done.** {OURS}"


def summary_of(plan: str) -> str:
    """Return what the summary of a plan is called."""
    return f"{plan.removesuffix('PLAN.md')}{SUMMARY}"


def is_ours(content: bytes) -> bool:
    """Return whether Loopwright wrote a summary: the tasks of the plan then say how far they are."""
    return OURS.encode() in content


def says_complete(content: bytes) -> bool:
    """Return whether our summary says that the plan is finished."""
    return _COMPLETE.encode() in content


def summary_text(
    name: str,
    front: Mapping[str, object],
    tasks: Sequence[tuple[str, str, ItemProgress | None]],
    *,
    complete: bool,
) -> bytes:
    """Return a summary: `tasks` are the number, the title and the progress of each."""
    phase, plan = str(front.get("phase") or ""), str(front.get("plan") or "")
    known = [item for *_, item in tasks if item is not None]
    ended = max((item.ended_at for item in known if item.ended_at is not None), default=None)
    needs = front.get("requirements")
    ids = ", ".join(one_line(str(one), 80) for one in needs) if isinstance(needs, list) else ""
    rows = [
        "---",
        *([f"phase: {one_line(phase)}"] if phase else []),
        *([f"plan: {one_line(plan)}"] if plan else []),
    ]
    rows += [f"requirements-completed: [{ids if complete else ''}]"]
    rows += [f"completed: {ended:%Y-%m-%d}"] if ended is not None and complete else []
    rows += [
        "---",
        "",
        f"# {name} Summary",
        "",
        _COMPLETE if complete else _REOPENED,
        "",
        "## Task Commits",
        "",
    ]
    for number, title, item in tasks:
        sha = f" - `{item.commit[:SHA_LENGTH]}`" if item is not None and item.commit else ""
        rows.append(f"- **Task {number}: {one_line(title)}**{sha}")
    changed = sorted({path for item in known for path in item.changed})
    if changed:
        rows += ["", "## Files Created/Modified", "", *(f"- `{path}`" for path in changed)]
    return ("\n".join(rows) + "\n").encode()
