"""What may be spent: by a run, by a task, by a plan, and by a project on one day."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Final

from loopwright.core.model import Plan, Project
from loopwright.core.policy import Policy

CAPS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "max_cost_per_run": "max_run_cost_micros",
        "max_cost_per_task": "max_task_cost_micros",
        "max_cost": "max_cost_micros",
        "max_cost_per_day": "max_day_cost_micros",
    }
)
"""Each setting with the name that a policy has for it."""

_WORDS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "max_cost_per_run": ("a run has cost what one may", "`resume` goes on with another run, "),
        "max_cost_per_task": ("the budget of a task is used up", ""),
        "max_cost": ("the budget is used up", ""),
        "max_cost_per_day": ("the budget of the day is used up", "`resume` goes on tomorrow (by UTC), "),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """One limit, and how far it is used up, in millionths of a dollar."""

    setting: str
    limit: int
    spent: int
    reserved: int = 0
    """What agents that run now may still cost beyond that."""

    @property
    def left(self) -> int:
        """What nobody has spent or may be about to spend."""
        return self.limit - self.spent - self.reserved

    @property
    def is_near(self) -> bool:
        """Say whether four fifths of it are spent."""
        return self.spent * 5 >= self.limit * 4

    @property
    def reason(self) -> str:
        """Say that it is used up, and what to type to go on."""
        what, way = _WORDS[self.setting]
        flag = "--" + self.setting.replace("_", "-")
        return f"{what}: {dollars(self.spent)} of {dollars(self.limit)}; {way}`resume {flag}` sets another"


Caps = tuple[Cap, ...]


def dollars(micros: int) -> str:
    """Return a sum in dollars, to the cent unless that would hide a small one."""
    return f"${micros / 1e6:.2f}" if micros % 10_000 == 0 else f"${micros / 1e6:.6f}".rstrip("0")


def has_caps(policy: Policy) -> bool:
    """Say whether anything limits what may be spent."""
    return any(getattr(policy, name) is not None for name in CAPS.values())


def caps(
    policy: Policy, spent: Mapping[str, int], reserved: Mapping[str, int] = MappingProxyType({})
) -> Caps:
    """Return the caps that are set, with what was spent and reserved under each setting's name."""
    return tuple(
        Cap(setting=name, limit=limit, spent=spent.get(name, 0), reserved=reserved.get(name, 0))
        for name, field in CAPS.items()
        if (limit := getattr(policy, field)) is not None
    )


def used_up(these: Caps) -> str:
    """Say which cap is reached, and what to do; empty when none is."""
    return next((cap.reason for cap in these if cap.spent >= cap.limit), "")


def near(these: Caps) -> Cap | None:
    """Return the cap of which most is spent, if that is four fifths of it or more."""
    fullest = max(these, key=lambda cap: cap.spent / cap.limit, default=None)
    return fullest if fullest is not None and fullest.is_near else None


def allowance(these: Caps) -> int | None:
    """Return how much one more run may cost; None when nothing limits it, 0 or less when it has to wait.

    While others run, it waits until there is enough for all that one run may cost: with less it would only be stopped
    in the middle, although the others may leave enough.
    """
    if not these:
        return None
    most = next((cap.limit for cap in these if cap.setting == "max_cost_per_run"), 1)
    crowded = any(cap.reserved and cap.left < most for cap in these)
    return 0 if crowded else min(cap.left for cap in these)


def over_budget(plan: Plan) -> str:
    """Say why a plan may spend no more; empty when it may."""
    limit = plan.policy.max_cost_micros
    if limit is not None and plan.spent_micros >= limit:
        return Cap(setting="max_cost", limit=limit, spent=plan.spent_micros).reason
    if has_caps(plan.policy) and plan.unknown_costs:
        return nobody_knows(next(name for name, field in CAPS.items() if getattr(plan.policy, field)))
    return ""


def nobody_knows(setting: str) -> str:
    """Say that a limit cannot be kept."""
    flag = "--" + setting.replace("_", "-")
    return (
        "a cost limit is set, but nobody knows what a run has cost; "
        f"the setting `prices` can tell what its model costs, and `resume {flag}` sets another limit, or off"
    )


def spent_today(project: Project, now: datetime) -> tuple[int, int]:
    """Return what a project has spent on this day, and of how many runs nobody knows the cost."""
    same = project.spent_on == now.date().isoformat()
    return (project.spent_micros, project.unknown_costs) if same else (0, 0)
