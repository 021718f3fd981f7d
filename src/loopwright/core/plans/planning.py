"""From a goal to a plan: the task of the planner, and the name of the plan that it writes."""

import hashlib
import re
from collections.abc import Sequence
from typing import Final

from loopwright.core.prompts.prompts import listed
from loopwright.core.values.templates import Template

KEY: Final = "plan"
"""The key of the only task of a plan that writes plans."""
CHECK: Final = "plan_generation"
"""The name of the check that its answer has to pass."""
FILE: Final = "loopwright.plan.yaml"
"""The file in which its answer is checked."""
FENCE: Final = "loopwright-plan"
FOLDER: Final = "plans"
"""The folder of the plans that the user reads and edits."""
TITLED: Final = "Plan: "
"""The prefix of the goal in the title of a plan that writes plans."""
_WORDS: Final = 6


def name_of(goal: str) -> str:
    """Return a file name for a goal: its first words."""
    words = re.findall(r"[a-z0-9]+", goal.lower())[:_WORDS]
    return "-".join(words)[:60] or "plan"


def source_of(goal: str) -> str:
    """Return what identifies a plan that writes plans: goals with the same beginning are still different."""
    whole = hashlib.sha256(" ".join(goal.split()).encode()).hexdigest()
    return f"goal:{name_of(goal)}-{whole[:16]}"


def instructions(template: Template, goal: str, packet: str, *, gates: bool) -> str:
    """Return the planner's task; the packet describes the project.

    `gates` is whether the plan has to name the checks of the project.
    """
    return template.fill({"goal": _indented(goal), "gates": gates, "packet": _indented(packet)})


def objected(template: Template, task: str, plan: str, said: Sequence[str]) -> str:
    """Return the task of a planner after objections to its plan."""
    return template.fill({"task": task.strip(), "plan": _indented(plan), "objections": listed(said)})


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.rstrip("\n").split("\n"))
