"""What each command does to running agents, and which process works after it: one table, printed and documented."""

from dataclasses import dataclass
from typing import Final

from loopwright.cli.shell.output import console


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What one command does."""

    agents: str
    """What happens to running agents."""
    work: str
    """Which process works on the plan after it."""


_HERE: Final = "this command works on the plan, unless a worker is running"
_NONE: Final = "nothing starts until `resume`"
_WORKER: Final = "a running worker continues; without one, `resume` does"

EFFECTS: Final[dict[str, Effect]] = {
    "pause": Effect(agents="running agents finish; no new one starts", work=_NONE),
    "pause --now": Effect(agents="running agents are interrupted, their work is kept", work=_NONE),
    "Ctrl-C": Effect(
        agents="as with `pause --now`; a second Ctrl-C kills them",
        work=f"{_NONE}; if a worker executes the plan, only the following ends",
    ),
    "stop": Effect(agents="running agents are interrupted, their work is kept", work=_NONE),
    "cancel TASK": Effect(
        agents="its running agents are interrupted, their work stays pinned",
        work="the rest of the plan continues if a worker is running",
    ),
    "cancel PLAN": Effect(
        agents="its running agents are interrupted, their work stays pinned",
        work="the plan has ended: nothing of it continues",
    ),
    "answer": Effect(agents="the agents that asked continue, no others are interrupted", work=_WORKER),
    "retry": Effect(agents="running agents are not interrupted", work=_HERE),
    "reject": Effect(
        agents="agents on tasks that build on the rejected work are interrupted, their work is kept",
        work=_HERE,
    ),
    "rollback": Effect(
        agents="agents on tasks that build on the work are interrupted, their work is kept", work=_WORKER
    ),
    "take-over": Effect(agents="the task's agent is interrupted, its work is kept", work=_WORKER),
    "take-over --done": Effect(
        agents="running agents are not interrupted",
        work="this command runs the checks, unless a worker is running",
    ),
    "accept": Effect(
        agents="running agents are not interrupted",
        work="this command moves the work, unless a worker is running",
    ),
    "resume": Effect(agents="running agents are not interrupted", work=_HERE),
}


def print_effect(command: str) -> None:
    """Print what a command does to running agents, and which process works on; nothing for any other command."""
    effect = EFFECTS.get(command)
    if effect is not None:
        console().print(f"[dim]{_sentence(effect.agents)} {_sentence(effect.work)}[/]")


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def effects_table() -> str:
    """Return the table for the documentation."""
    head = ["| command | running agents | which process works then |", "|---|---|---|"]
    return "\n".join([*head, *(f"| `{name}` | {one.agents} | {one.work} |" for name, one in EFFECTS.items())])
