"""Cost limits: of a run, a task, a plan, a loop, a project, and a project per day."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Final, Literal

from loopwright.core.rows.model import Plan, Project
from loopwright.core.values.ids import short_id
from loopwright.core.values.policy import Policy
from loopwright.core.values.wording import dollars, to_type

GRANT: Final = "token_spending_limit"
"""The name of the cap that a plan's token sets. It belongs to the token, so no plan can raise it."""

ASKED: Final = "budget"
"""The kind of the question at a cost limit. Its key is the setting of the cap."""

STOP: Final = "stop"
_ANOTHER_RUN: Final = "continue with another run"
_ALL_THE_SAME: Final = "continue all the same"
_AGAIN: Final = "continue with the limit raised"
_RAISE: Final = re.compile(r"raise it to \$?(\d{1,9}(?:\.\d{1,6})?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """Why nothing more may be spent, and what the user can do."""

    setting: str
    why: str
    raise_to: int | None = None
    """A proposed new limit; None if the spending is unknown."""
    until: datetime | None = None
    """When it continues by itself."""

    @property
    def options(self) -> tuple[str, ...]:
        """Return what the user can choose from."""
        if self.setting == GRANT:
            return (_AGAIN, STOP)
        if self.raise_to is None:
            return (_ALL_THE_SAME, STOP)
        raised = f"raise it to {dollars(self.raise_to)}"
        return (_ANOTHER_RUN, raised, STOP) if self.setting == "max_cost_per_run" else (raised, STOP)

    def reason(self, plan_id: str) -> str:
        """Return the reason, and what to type to continue."""
        plan = short_id(plan_id)
        if self.setting == GRANT:
            raised = to_type("tokens", "limit", "TOKEN", "AMOUNT")
            return f"{self.why}; `{raised}` sets another limit, then `{to_type('resume', plan)}` continues"
        ways = [self.why]
        if self.until is not None:
            ways.append(f"it continues by itself at {self.until:%Y-%m-%d %H:%M} UTC")
        if self.setting == "max_cost_per_run" and self.raise_to is not None:
            ways.append(f"`{to_type('resume', plan)}` continues with another run")
        if self.raise_to is None:
            ways.append(
                f"`{to_type('resume', plan, **{self.setting: 'AMOUNT'})}` names a limit all the same, or `off`"
            )
        else:
            raised = to_type("resume", plan, **{self.setting: _typed(self.raise_to)})
            ways.append(f"`{raised}` raises it and continues")
        return "; ".join(ways)


def nobody_knows(setting: str, until: datetime | None = None) -> Over:
    """Return the stop of a limit that cannot be enforced."""
    why = (
        "a cost limit is set, but the cost of a run is unknown; "
        "the setting `prices` can tell what its model costs"
    )
    return Over(setting=setting, why=why, until=until)


def meaning(
    answer: str, options: tuple[str, ...], *, limit: int | None
) -> tuple[Literal["resume", "stop"], tuple[int | None, ...]] | None:
    """Return the command that an answer means, and the limit that it sets, if any; None if it is not an answer.

    A number is the number of an option, as with every question, and never an amount. Continuing without a
    known cost grants the current `limit` once more.
    """
    text = " ".join(answer.lower().split())
    if text.isdigit() and 1 <= int(text) <= len(options):
        text = options[int(text) - 1]
    if text == STOP:
        return "stop", ()
    if text in options and text in (_ANOTHER_RUN, _AGAIN):
        return "resume", ()
    if text in options and text == _ALL_THE_SAME:
        return "resume", (limit,)
    found = _RAISE.fullmatch(text) if _AGAIN not in options else None
    micros = int(Decimal(found[1]) * 1_000_000) if found else 0
    return ("resume", (micros,)) if micros else None


def _typed(micros: int) -> str:
    """Return an amount as the user types it after an option."""
    return dollars(micros).removeprefix("$").removesuffix(".00")


CAPS: Final[tuple[str, ...]] = (
    "max_cost_per_run",
    "max_cost_per_task",
    "max_cost",
    "max_cost_per_loop",
    "max_cost_per_project",
    "max_cost_per_day",
)
"""The settings that limit spending. The first reached limit is named: that of a day ends by itself."""

_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "max_cost_per_run": "a run has cost what one may",
        "max_cost_per_task": "the budget of a task is used up",
        "max_cost": "the budget is used up",
        "max_cost_per_loop": "the budget of the loop is used up",
        "max_cost_per_project": "the budget of the project is used up",
        "max_cost_per_day": "the budget of the day is used up",
        GRANT: "the spending limit of the token is used up",
        "review.max_share": "the reviews of the task have cost as much as they may",
    }
)
_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "max_cost_per_run": "what a run may cost",
        "max_cost_per_task": "the budget of a task",
        "max_cost": "the budget",
        "max_cost_per_loop": "the budget of the loop",
        "max_cost_per_project": "the budget of the project",
        "max_cost_per_day": "the budget of the day",
        GRANT: "the spending limit of the token",
    }
)
_CENT: Final = 10_000
REVIEW: Final = "review.max_share"
"""The setting that limits the cost of a task's reviews. It ends a review and pauses nothing."""

WAITS: Final = "waits for agents that run to leave enough of the budget"
"""Why an attempt waits whose agent may not start yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """One limit and its use, in millionths of a dollar."""

    setting: str
    limit: int
    spent: int
    reserved: int = 0
    """What running agents have cost so far, or the most that they may cost if each has a limit."""
    expected: int = 0
    """What they will probably cost beyond that: it is kept for them, but a running agent may use it."""
    estimated: bool = False
    """Whether some of the spending is estimated."""
    ends_at: datetime | None = None
    """When the spending no longer counts."""

    @property
    def left(self) -> int:
        """What is neither spent nor reserved."""
        return self.limit - self.spent - self.reserved

    @property
    def is_shared(self) -> bool:
        """Return whether running agents need some of it."""
        return self.reserved + self.expected > 0

    @property
    def is_near(self) -> bool:
        """Return whether at least four fifths of it are spent, but not all."""
        return self.limit * 4 <= self.spent * 5 < self.limit * 5

    @property
    def warning(self) -> str:
        """Return the sentence that it is nearly used up."""
        return f"four fifths of {_NAMES[self.setting]} are spent: {self._so_far}"

    @property
    def over(self) -> Over:
        """Return the sentence that it is used up."""
        return Over(
            setting=self.setting,
            why=f"{_WORDS[self.setting]}: {self._so_far}",
            raise_to=self._raised(),
            until=self.ends_at,
        )

    @property
    def _so_far(self) -> str:
        return f"{'~' if self.estimated else ''}{dollars(self.spent)} of {dollars(self.limit)}"

    def _raised(self) -> int:
        """Return a limit that allows the same amount again: the proposal to the user."""
        enough = self.limit + max(self.limit, self.spent)
        return enough if enough < _CENT else -(-enough // _CENT) * _CENT


Caps = tuple[Cap, ...]


def has_caps(policy: Policy) -> bool:
    """Return whether any cost limit is set."""
    return any(getattr(policy, name) is not None for name in CAPS)


def caps(
    policy: Policy,
    spent: Mapping[str, int],
    reserved: Mapping[str, int] = MappingProxyType({}),
    expected: Mapping[str, int] = MappingProxyType({}),
    *,
    estimated: bool = False,
    token_limit: int | None = None,
    now: datetime | None = None,
) -> Caps:
    """Return the limits that are set, with what was spent, reserved and expected under each setting's name."""
    limits = {**{name: getattr(policy, name) for name in CAPS}, GRANT: token_limit}
    return tuple(
        Cap(
            setting=name,
            limit=limit,
            spent=spent.get(name, 0),
            reserved=reserved.get(name, 0),
            expected=expected.get(name, 0),
            estimated=estimated,
            ends_at=next_day(now) if now and name == "max_cost_per_day" else None,
        )
        for name, limit in limits.items()
        if limit is not None
    )


def review_cap(policy: Policy, *, worked: int, reviewed: int) -> Cap | None:
    """Return what a task's reviews may cost, based on the cost of its work and earlier reviews.

    None if the cost of the work is unknown.
    """
    limit = worked * policy.review.max_share // 100
    return Cap(setting=REVIEW, limit=limit, spent=reviewed) if limit > 0 else None


def used_up(these: Caps) -> Over | None:
    """Return the first limit that is reached, if any."""
    return next((cap.over for cap in these if cap.spent >= cap.limit), None)


def expected(costs: Sequence[int], *, least: int | None) -> int:
    """Return the probable cost of a run, based on similar runs; at least the amount that the settings reserve."""
    average = -(-sum(costs) // len(costs)) if costs else 0
    return max(average, least or 0)


def allowance(these: Caps, *, expected: int = 0) -> int | None:
    """Return how much one more run may cost; None if nothing limits it, 0 or less if it has to wait.

    While others run, it waits until the rest, without what is reserved for them, covers everything that it
    may cost, or will probably cost if it has no limit. With less it would be stopped halfway. Once it runs,
    it may use what the others do not: their probable cost does not limit it.
    """
    if not these:
        return None
    most = next((cap.limit for cap in these if cap.setting == "max_cost_per_run"), max(expected, 1))
    crowded = any(cap.is_shared and cap.left - cap.expected < most for cap in these)
    return 0 if crowded else min(cap.left for cap in these)


def over_budget(plan: Plan) -> Over | None:
    """Return why a plan may spend no more, judged by the plan alone."""
    limit = plan.policy.max_cost
    if limit is not None and plan.spent_micros >= limit:
        return Cap(setting="max_cost", limit=limit, spent=plan.spent_micros).over
    if has_caps(plan.policy) and plan.unknown_costs:
        return nobody_knows(next(name for name in CAPS if getattr(plan.policy, name)))
    return None


def spent_today(project: Project, now: datetime) -> tuple[int, int]:
    """Return what a project has spent on this day, and the number of runs with an unknown cost."""
    same = project.spent_on == now.date().isoformat()
    return (project.spent_micros, project.unknown_costs) if same else (0, 0)


def next_day(now: datetime) -> datetime:
    """Return when the next day begins, in UTC."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
