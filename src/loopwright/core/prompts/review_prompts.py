"""What a reviewer is told, from rows, the change and a template: the same review always gets the same words."""

from collections.abc import Sequence
from textwrap import indent
from typing import Final

from loopwright.core.prompts.prompts import listed
from loopwright.core.rows.model import Attempt, Plan, Review, Task
from loopwright.core.values.display_text import on_one_line, visible
from loopwright.core.values.patches import Patch
from loopwright.core.values.policy import GateCommand
from loopwright.core.values.templates import Template

_MOST_FILES: Final = 500


def reviewer(
    template: Template,
    plan: Plan,
    task: Task,
    attempt: Attempt,
    review: Review,
    patch: Patch,
    *,
    gates: tuple[GateCommand, ...],
    by_schema: bool,
    goes_on: bool,
) -> str:
    """Return the prompt of a reviewer; one that `goes_on` in its conversation has seen the change already."""
    whole = {
        "description": indent(task.description.strip(), "    "),
        "criteria": _listed(task.criteria),
        "scope": _listed(task.scope),
        "approved": _listed(task.approved),
        "gates": _listed([one.command for one in gates]),
        "reasons": _listed(review.reasons),
        "files": _files(patch),
        # Written out, nothing else in it begins a line of its own.
        "diff": "\n".join(f"    {line}" for line in visible(patch.text).split("\n")),
        "contradicted": _listed(review.contradicted),
    }
    return template.fill(
        {
            "plan": plan.title,
            "key": task.key,
            "attempt": str(attempt.n),
            "review": str(review.n),
            "title": task.title,
            "continued": goes_on and not review.problem,
            "whole": not goes_on,
            **(dict.fromkeys(whole, "") if goes_on else whole),
            "unchecked": not goes_on and not gates,
            "is_cut": not goes_on and not patch.is_whole,
            "problem": review.problem,
            "by_schema": by_schema,
            "by_block": not by_schema,
        }
    )


def _files(patch: Patch) -> str:
    lines = [f"{one.path} (+{one.added} -{one.removed})" for one in patch.files[:_MOST_FILES]]
    if len(patch.files) > _MOST_FILES:
        lines.append(f"and {len(patch.files) - _MOST_FILES} more files")
    return _listed(lines)


def _listed(items: Sequence[str]) -> str:
    return listed([on_one_line(item) for item in items])
