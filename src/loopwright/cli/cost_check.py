"""Whether the limits on cost that a plan has could be kept at all: looked at before any money is spent."""

from loopwright.adapters import registry
from loopwright.config.resolve import Settings
from loopwright.core.budget import CAPS
from loopwright.core.errors import Refused
from loopwright.core.fallback import named
from loopwright.core.prices import price_of
from loopwright.ports import PlannedWork


def check_costs(settings: Settings, work: PlannedWork) -> None:
    """Refuse a limit that nobody could keep, because nobody would ever know what an agent has cost.

    An agent without a model uses one of its own: what that costs is seen when it has told its name.
    """
    policy = settings.policy()
    limits = [name for name, field in CAPS.items() if getattr(policy, field) is not None]
    if not limits:
        return
    at_work = [(task.agent or policy.agent, task.model or policy.model) for task in work.tasks]
    review = policy.review
    if review.mode != "off":
        at_work += [(review.agent or agent, review.model) for agent, _ in at_work]
    for agent, model in dict.fromkeys((*at_work, *map(named, policy.fallback))):
        able = registry.agent(agent).capabilities
        if "cost" in able:
            continue
        off = f"switch {limits[0]} off"
        if "usage" not in able:
            raise Refused(
                f"{settings.origin(limits[0])}: {limits[0]} cannot be kept: the agent {agent} tells neither what it "
                "costs nor its tokens",
                hint=f"{off}, or choose another agent",
            )
        if model is not None and price_of(model, policy.prices) is None:
            raise Refused(
                f"{settings.origin(limits[0])}: {limits[0]} cannot be kept: {agent} tells only its tokens, and "
                f"nobody knows what those of the model {model} cost",
                hint=f'set prices = ["{model} INPUT OUTPUT CACHE_READ"], in dollars for a million tokens, or {off}',
            )
