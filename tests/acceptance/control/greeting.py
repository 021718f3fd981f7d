"""A goal, and what planners make of it: the same for every test about planning."""

from typing import Any

GOAL = "Greet in French, please"
NAME = "greet-in-french-please.yaml"
PLAN = """\
title: Greet in French
gates:
  - grep -q hello greet.txt
tasks:
  - id: bonjour
    title: Say bonjour
    description: Write bonjour into the file bonjour.
    acceptance:
      - grep -q bonjour bonjour
    held_out:
      - test $(wc -l <bonjour) = 1
    scope:
      - bonjour
    complexity: low
"""
ANSWER: dict[str, Any] = {
    "title": "Greet in French",
    "gates": ["grep -q hello greet.txt"],
    "tasks": [
        {
            "id": "bonjour",
            "title": "Say bonjour",
            "description": "Write bonjour into the file bonjour.",
            "depends_on": [],
            "acceptance": ["grep -q bonjour bonjour"],
            "held_out": ["test $(wc -l <bonjour) = 1"],
            "criteria": [],
            "scope": ["bonjour"],
            "priority": 50,
            "complexity": "low",
        }
    ],
}
"""The same plan as a structured result."""
VAIN = PLAN.replace("grep -q bonjour bonjour", "echo fine")
BROKEN = PLAN.replace("tasks:", "task:")
MISTAKE = "loopwright.plan.yaml:4: task: unknown key"
"""What is said of the broken one."""


def changed(answer: dict[str, Any], **task: Any) -> dict[str, Any]:
    """Return an answer whose one task is another."""
    return {**answer, "tasks": [{**answer["tasks"][0], **task}]}


def block(text: str, fence: str = "loopwright-plan") -> str:
    """Return a text as the answer of an agent that cannot be given a schema."""
    return f"I have looked around.\n\n```{fence}\n{text}```\n"
