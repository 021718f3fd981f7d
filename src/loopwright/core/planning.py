"""From a goal to a plan: what the planner is told, and what the plan that it writes is called."""

import re
from typing import Final

KEY: Final = "plan"
"""The key of the one task of a plan that makes plans."""
CHECK: Final = "plan_generation"
"""The name of the check that what it wrote has to pass."""
TRIES: Final = 2
"""The first, and one more with the located errors of the first."""
_WORDS: Final = 6


def name_of(goal: str) -> str:
    """Return a file's name for a goal: its first words."""
    words = re.findall(r"[a-z0-9]+", goal.lower())[:_WORDS]
    return "-".join(words)[:60] or "plan"


def instructions(goal: str, packet: str, *, path: str, schema: str) -> str:
    """Return what the planner is told; the packet is what was seen of the project."""
    return f"""\
You are the planner. Do not do the work itself: write the plan for it, into the one file `{path}`, and change
nothing else.

The goal:

{_indented(goal)}

Look at the repository first. Then write a plan that others carry out, each task by an agent that sees only its own
task and the repository, in a clone of its own, several at the same time where nothing speaks against it.

- Each task is one coherent change that can be checked by itself: small enough to be reviewed at one sitting.
- `description` has everything that its agent needs to know; it does not see this conversation or the other tasks.
- `depends_on` names what has to be there before; leave it out where order does not matter.
- `acceptance` are shell commands that fail now and pass when the task is done. A command that cannot fail is refused.
  Prefer the project's own test runner; a task may have to write the test that checks it.
- `criteria` say in words what else must be true.
- `scope` names the paths that it changes, tests included, so that tasks that overlap take turns.
- `complexity` is low, medium or high; `priority` is lower for what should come first.
- What the goal leaves open, decide in the most usual way and say so in the description of the task; what only a
  person can decide, ask.

The file is YAML and has to fit this JSON Schema:

{_indented(schema)}

What is known of the project:

{_indented(packet)}
"""


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.rstrip("\n").split("\n"))
