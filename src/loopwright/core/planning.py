"""From a goal to a plan: what the planner is told, and what the plan that it makes is called."""

import hashlib
import re
from collections.abc import Sequence
from typing import Final

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


_GATES: Final = """\
- `gates` are the project's own checks, run on the whole once everything is done: the project has not settled on any,
  so name those that it has, such as its test suite. They have to pass before the work, too.
"""


def instructions(goal: str, packet: str, *, gates: bool) -> str:
    """Return what the planner is told; the packet is what was seen of the project.

    `gates` says whether the plan has to name the checks of the whole.
    """
    return f"""\
You are the planner. Do not do the work itself: answer with the plan for it.

The goal:

{_indented(goal)}

Look at the repository first. Then make a plan that others carry out, each task by an agent that sees only its own
task and the repository, in a clone of its own, several at the same time where nothing speaks against it.

- Each task is one coherent change that can be checked by itself: small enough to be reviewed at one sitting.
- `description` has everything that its agent needs to know; it does not see this conversation or the other tasks.
- `depends_on` names what has to be there before; leave it empty where order does not matter.
- `acceptance` are shell commands that fail now and pass when the task is done. A command that cannot fail is refused.
  Prefer the project's own test runner; a task may have to write the test that checks it.
- `held_out` are one or two more such commands for each task, which its agent never sees. They ask for the same
  behaviour with other inputs than `acceptance` and the task's tests, so that only work that really does it passes. Each
  is complete in itself, such as `python -c "from shop import price; assert price(7) == 21"`: it needs no file that the
  task does not make, and checks only what the description asks for. Never name their inputs in `description`.
- `criteria` say in words what else must be true.
- `scope` names the paths that it changes, tests included, so that tasks that overlap take turns.
- `complexity` is low, medium or high; `priority` is lower for what should come first, 50 for what is as usual.
{_GATES if gates else ""}\
- What the goal leaves open, decide in the most usual way and say so in the description of the task; what only a
  person can decide, ask.

What is known of the project:

{_indented(packet)}
"""


def objected(text: str, plan: str, said: Sequence[str]) -> str:
    """Return what the planner is told whose plan was objected to."""
    found = "\n".join(f"- {one}" for one in said)
    return f"""\
{text}
You answered this before:

{_indented(plan)}

Somebody who judges plans says that it must not run as it is. Mend what was found, and leave the rest as it is:

{found}
"""


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.rstrip("\n").split("\n"))
