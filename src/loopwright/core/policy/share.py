"""Which loop gets the next agent: the most urgent one, with aging, and among equals the one with the fewest agents.

A waiting loop gets more urgent by one step for every `AGING` without an agent, so none waits forever.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, TypeVar

AGING: Final = timedelta(minutes=5)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotLimits:
    """How many agents may run at once, besides the limits of the machine and of each loop."""

    agents: Mapping[str, int] = field(default_factory=dict)
    """By the name of the agent, or of an account as AGENT/ACCOUNT."""
    project: int | None = None
    """For each project."""

    def full(self, *, agent: str, account: str, used: "Used") -> str:
        """Return what has no slot for one more agent; empty if everything has."""
        name = f"{agent}/{account}"
        if used.agent >= self.agents.get(agent, used.agent + 1):
            return f"all {self.agents[agent]} slots of {agent} are in use"
        if used.account >= self.agents.get(name, used.account + 1):
            return f"all {self.agents[name]} slots of {name} are in use"
        if self.project is not None and used.project >= self.project:
            return f"all {self.project} slots of the project are in use"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """How many agents run now: of this agent, on this account, for this project."""

    agent: int
    account: int
    project: int


def aged(priority: int, waited: timedelta) -> int:
    """Return the priority of a loop that has waited without an agent; lower goes first."""
    return priority - max(0, waited // AGING)


def read_slots(entry: str) -> tuple[str, int]:
    """Return the name and the count of an entry such as `claude 2` or `claude/work 1`."""
    name, _, count = entry.partition(" ")
    return name, int(count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A loop that wants agents."""

    name: str
    urgency: int
    """Lower goes first."""
    held: int
    """How many agents it has already."""
    served: int
    """When it last got one, as a growing number; 0 if it never did."""
    wanted: int


def fair_shares(claims: Sequence[Claim], room: int) -> dict[str, int]:
    """Return the number of slots for each claim.

    They are given one at a time to the most urgent claim; among equals to the one that has the fewest, then
    to the one served longest ago.
    """
    given = {one.name: 0 for one in claims}
    for _ in range(room):
        left = [one for one in claims if given[one.name] < one.wanted]
        if not left:
            break
        best = min(left, key=lambda one: (one.urgency, one.held + given[one.name], one.served))
        given[best.name] += 1
    return given


def next_in_line(
    line: Iterable[T], key: Callable[[T], tuple[int, ...]], fits: Callable[[T], bool]
) -> T | None:
    """Return the first that fits, by the key and then by its place in line."""
    return min(filter(fits, line), key=key, default=None)
