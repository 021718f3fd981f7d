"""What a behaviour of an agent is, here: what it does, and what must come of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Steps = Sequence[Mapping[str, Any]]

QUESTION = "question"
"""How an attempt ends that contradicts existing checks, where nothing and nobody has allowed it."""
OUTCOMES: Mapping[str | None, str] = {None: "verified", "gate": "not_verified", QUESTION: "needs_human"}
"""What the receipt says of a task whose last attempt ended so."""
CHECKOUT, PLACE, HOME = "@CHECKOUT@", "@PLACE@", "@HOME@"
"""In steps and checks: the user's own checkout, the folder around everything, and the home."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """One way in which an agent behaves, as a task of a plan."""

    says: str
    """What it does, as the table in the documentation has it."""
    does: Steps
    checks: tuple[str, ...]
    """The acceptance of its task."""
    ends: tuple[str | None, ...]
    """How each attempt fails; QUESTION for one that waits for a person's decision, None for one that lands."""
    outcome: str
    """What the receipt says of the task."""
    caught: str
    """The mechanism that has to have caught it, or kept the harm away: a key of `mechanisms.MECHANISMS`."""
    then: Sequence[Steps] = ()
    """What it does in later attempts."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """What else its task says."""
    reviews: Sequence[Steps] = ()
    """What its reviewer does in each round."""

    @property
    def attempts(self) -> list[Steps]:
        """What it does in each attempt."""
        return [self.does, *self.then]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Behaviours that are carried out together, each as a task of one plan, in one call of the program."""

    behaviours: Mapping[str, Behaviour]
    code: int
    """The exit code of the call."""
    files: Mapping[str, str]
    """What the project has in it."""
    gates: Sequence[str]
    settings: Mapping[str, Any] = field(default_factory=dict)
    beside: Mapping[str, str] = field(default_factory=dict)
    """What lies beside the plan, outside of the project."""
    contained: bool = False
    mends: str = ""
    """What the person does when the call has ended; then it goes on by `resume`."""
    dirties: bool = False
    """Nothing keeps these agents from the user's checkout: it is enough that they are found out."""


def write(path: str, text: str) -> Mapping[str, Any]:
    """Return the step that writes a file."""
    return {"write": path, "text": text}


def shell(command: str) -> Mapping[str, Any]:
    """Return the step that runs a command."""
    return {"run": command}


def right(key: str) -> Mapping[str, Any]:
    """Return the step that does a task's work."""
    return write(f"{key}.txt", "right\n")


def is_right(key: str) -> str:
    """Return the check that a task's work passes."""
    return f"grep -q right {key}.txt"
