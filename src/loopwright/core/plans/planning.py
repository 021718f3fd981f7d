"""From a goal to a plan: the task of the planner, and what the plan that it makes is called."""

import hashlib
import re
from collections.abc import Sequence
from typing import Final

from loopwright.core.prompts.prompts import listed
from loopwright.core.values.templates import Template

KEY: Final = "plan"
"""The key of the one task of a plan that makes plans."""
CHECK: Final = "plan_generation"
"""The name of the check that its answer has to pass."""
FILE: Final = "loopwright.plan.yaml"
"""Where its answer is judged."""
FENCE: Final = "loopwright-plan"
FOLDER: Final = "plans"
"""Where the plan is put for a person to read and edit."""
TITLED: Final = "Plan: "
"""What goes in front of the goal in the title of a plan that makes plans."""
_WORDS: Final = 6


def name_of(goal: str) -> str:
    """Return a file's name for a goal: its first words."""
    words = re.findall(r"[a-z0-9]+", goal.lower())[:_WORDS]
    return "-".join(words)[:60] or "plan"


def source_of(goal: str) -> str:
    """Return what a plan of plans is known by: goals that begin alike are others all the same."""
    whole = hashlib.sha256(" ".join(goal.split()).encode()).hexdigest()
    return f"goal:{name_of(goal)}-{whole[:16]}"


def instructions(template: Template, goal: str, packet: str, *, gates: bool) -> str:
    """Return the planner's task; the packet is what was seen of the project.

    `gates` says whether the plan has to name the checks of the whole.
    """
    return template.fill({"goal": _indented(goal), "gates": gates, "packet": _indented(packet)})


def objected(template: Template, task: str, plan: str, said: Sequence[str]) -> str:
    """Return the task of a planner whose plan was objected to."""
    return template.fill({"task": task.strip(), "plan": _indented(plan), "objections": listed(said)})


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.rstrip("\n").split("\n"))
