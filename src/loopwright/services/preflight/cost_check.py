"""Whether the limits on cost that a plan has could be kept at all: looked at before any money is spent."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from loopwright.adapters import registry
from loopwright.config.resolve import Settings
from loopwright.core.policy.budget import CAPS
from loopwright.core.policy.fallback import named
from loopwright.core.policy.prices import price_of
from loopwright.core.rows.model import Plan, Task
from loopwright.core.values.errors import Refused
from loopwright.core.values.ids import short_id
from loopwright.core.values.policy import Policy
from loopwright.core.values.shell_hints import to_type
from loopwright.core.values.states import SETTLED_TASK
from loopwright.ports import PlannedWork, Tx, able


def check_costs(settings: Settings, work: PlannedWork) -> None:
    """Refuse a limit that cannot be kept, because the cost of an agent would stay unknown."""
    policy = settings.policy()
    unkept = _unkept(policy, ((task.agent, task.model) for task in work.tasks))
    if unkept is None:
        return
    off = f"switch {unkept.limit} off"
    raise Refused(
        f"{settings.origin(unkept.limit)}: {unkept.why}",
        code="cost_limit_not_enforced",
        hint=f"{off}, or choose another agent"
        if unkept.model is None
        else f'set prices = ["{unkept.model} INPUT OUTPUT CACHE_READ"], in dollars for a million tokens, or {off}',
    )


def check_new_limits(tx: Tx, plan: Plan, limits: Mapping[str, int | None]) -> None:
    """Refuse to give a running plan a limit that cannot be kept."""
    new: dict[str, Any] = {name: value for name, value in limits.items() if value is not None}
    if not new:
        return
    tasks = [task for task in tx.find(Task, plan_id=plan.id) if task.status not in SETTLED_TASK]
    unkept = _unkept(replace(plan.policy, **new), ((task.agent, task.model) for task in tasks))
    if unkept is not None:
        raise Refused(
            unkept.why,
            code="cost_limit_not_enforced",
            hint="continue without a limit: a plan keeps the agents, models and prices of its start",
        )


def check_another_try(plan: Plan, agent: str | None, model: str | None) -> None:
    """Refuse to let an agent try a task if the plan's limits cannot be kept with it."""
    unkept = _unkept(plan.policy, [(agent, model)])
    if unkept is not None:
        without = to_type("resume", short_id(plan.id), **{unkept.limit: "off"})
        raise Refused(
            unkept.why,
            code="cost_limit_not_enforced",
            hint=f"choose another agent or model, or first let the plan continue without that limit: `{without}`",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unkept:
    """A limit that cannot be kept."""

    limit: str
    why: str
    model: str | None
    """The model whose price is unknown; None if the agent does not report its tokens."""


def _unkept(policy: Policy, tasks: Iterable[tuple[str | None, str | None]]) -> _Unkept | None:
    """Find the first agent whose cost would stay unknown, if a limit is set.

    An agent without a model uses its default: its price is known once the agent reports the name.
    """
    limit = next((name for name in CAPS if getattr(policy, name) is not None), None)
    if limit is None:
        return None
    at_work = [(agent or policy.agent, model or policy.model) for agent, model in tasks]
    review = policy.review
    if review.mode != "off":
        at_work += [(review.agent or agent, review.model) for agent, _ in at_work]
    for agent, model in dict.fromkeys((*at_work, *map(named, policy.fallback))):
        can = able(registry.agent(agent), policy.agents.get(agent, {}))
        if "cost" in can:
            continue
        if "usage" not in can:
            why = f"{limit} cannot be kept: the agent {agent} reports neither its cost nor its tokens"
            return _Unkept(limit=limit, why=why, model=None)
        if model is not None and price_of(model, policy.prices) is None:
            why = (
                f"{limit} cannot be kept: {agent} reports only its tokens, and "
                f"the price of the model {model} is unknown"
            )
            return _Unkept(limit=limit, why=why, model=model)
    return None
