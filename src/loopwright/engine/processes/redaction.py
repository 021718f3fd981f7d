"""Remove secrets from text that is assembled from an agent's words or work, before any of it is stored.

Each recorded line is already redacted. But an agent may print a secret in pieces, a few letters per line,
which only its adapter joins; and what it wrote into a file appears in a diff.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from loopwright.core.replies.questions import Asking
from loopwright.core.rows.model import Attempt, Plan
from loopwright.core.values.accounts import account_named
from loopwright.engine.processes.runs import Ended, Listener
from loopwright.engine.rows.world import World
from loopwright.ports import AgentEvent, Invocation

Clean = Callable[[str], str]
"""Returns a text without secrets."""


def concealed(ended: Ended, clean: Clean) -> Ended:
    """Return how a run ended, without secrets in its texts."""
    result = ended.result
    if result is None:
        return ended
    said = replace(
        result,
        summary=clean(result.summary),
        detail=clean(result.detail),
        last_words=clean(result.last_words),
        structured=_within(result.structured, clean),
        asked=tuple(_asked(one, clean) for one in result.asked),
    )
    return replace(ended, result=said)


def concealing(listener: Listener, clean: Clean) -> Listener:
    """Return a listener that passes events on without secrets."""

    def listen(event: AgentEvent) -> None:
        # A line that was not understood is passed on as it was recorded, which is redacted.
        listener(event if event.kind == "Raw" else replace(event, text=clean(event.text)))

    return listen


def without_secrets(world: World, plan: Plan, attempt: Attempt, text: str) -> str:
    """Return a text about an attempt's work without the secrets that its agent was given."""
    account = account_named(world.accounts, attempt.agent, attempt.account)
    given = account.variables if account else {}
    env = world.environment(plan, Invocation(argv=(), renamed=given), {})
    return world.redact(
        text, (*world.secrets(env, plan.policy.environment), *(env[name] for name in given if name in env))
    )


def _asked(asking: Asking, clean: Clean) -> Asking:
    return replace(
        asking,
        text=clean(asking.text),
        options=tuple(clean(one) for one in asking.options),
        default=None if asking.default is None else clean(asking.default),
    )


def _within(value: Any, clean: Clean) -> Any:
    match value:
        case str():
            return clean(value)
        case dict():
            return {name: _within(one, clean) for name, one in value.items()}
        case list() | tuple():
            return [_within(one, clean) for one in value]
        case _:
            return value
