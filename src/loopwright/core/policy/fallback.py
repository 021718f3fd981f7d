"""Which agent takes a task over permanently, after a failure that another agent or model may avoid.

A closed account is handled elsewhere: another agent takes over only until it opens (see
`core.policy.quotas`). Here the failure belongs to the task and the model, so the task does not go back.
"""

from loopwright.core.rows.model import Task
from loopwright.core.values.failures import RULES, Failure, Level
from loopwright.core.values.policy import Policy


def named(entry: str) -> tuple[str, str | None]:
    """Return agent and model of an entry of `fallback`."""
    agent, _, model = entry.partition(":")
    return agent, model or None


def entry(agent: str, model: str | None) -> str:
    """Return an agent and its model as an entry of `fallback`."""
    return f"{agent}:{model}" if model else agent


def chain(task: Task, policy: Policy) -> tuple[str, ...]:
    """Return the agents that may work on a task, in order: its own agent, then those of `fallback`."""
    agent = task.agent or policy.agent
    # The plan's model applies to the plan's agent.
    model = task.model or (policy.model if agent == policy.agent else None)
    return tuple(dict.fromkeys((entry(agent, model), *policy.fallback)))


def meant(task: Task, policy: Policy) -> tuple[str, str | None]:
    """Return the agent and model that work on a task: the first that has not handed it on."""
    whole = chain(task, policy)
    return named(whole[min(task.passed_over, len(whole) - 1)])


def after(task: Task, policy: Policy) -> tuple[str, ...]:
    """Return the agents that may still take a task over."""
    return chain(task, policy)[task.passed_over + 1 :]


def handed_on(task: Task, failure: Failure, policy: Policy) -> tuple[str, str | None] | None:
    """Return the agent and model that take a task over permanently after this failure; None if no agent does."""
    rule, left = RULES[failure], after(task, policy)
    if not rule.fallback or rule.closes or not left:
        return None
    # A failure that may pass by itself is retried first, as often as the plan allows.
    if rule.level is Level.CALL and task.call_failures < policy.max_call_retries:
        return None
    return named(left[0])


def why(agent: str, model: str | None, failure: Failure) -> str:
    """Return why a task changed to another agent."""
    return f"{' '.join(filter(None, (agent, model)))} handed it on: {RULES[failure].advice}"
