"""Check the options that a user gave for an agent, and say what is wrong with them."""

from collections.abc import Collection, Mapping
from typing import Any

from loopwright.core.values.errors import BadConfig


def only(agent: str, options: Mapping[str, Any], known: Collection[str]) -> None:
    """Refuse options that would do nothing."""
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise BadConfig(
            f"agent {agent}: unknown option {', '.join(unknown)}",
            code="agent_option_unknown",
            hint=f"it knows: {', '.join(sorted(known))}",
            options=tuple(unknown),
        )


def text(agent: str, options: Mapping[str, Any], name: str) -> str | None:
    """Return an option that must be a text, or None when it is not given."""
    value = options.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise BadConfig(
            f"agent {agent}: option {name} must be a text that is not empty",
            code="agent_option_wrong",
            options=(name,),
        )
    return value


def number(agent: str, options: Mapping[str, Any], name: str, *, least: int, most: int) -> int | None:
    """Return an option that must be a whole number in a range, or None when it is not given."""
    value = options.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        message = f"agent {agent}: option {name} must be a whole number from {least} to {most}"
        raise BadConfig(message, code="agent_option_wrong", options=(name,))
    return value


def most_turns(agent: str, options: Mapping[str, Any]) -> int | None:
    """Return how many turns a run may have, if the user limits them."""
    return number(agent, options, "max_turns", least=1, most=10_000)


def instructions(agent: str, options: Mapping[str, Any]) -> str:
    """Return what the user has added to the agent's own system prompt."""
    return (text(agent, options, "instructions") or "").strip()


def texts(agent: str, options: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return an option that must be a list of texts; empty when it is not given."""
    value = options.get(name)
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or any(
        not isinstance(item, str) or "\0" in item for item in value
    ):
        raise BadConfig(
            f"agent {agent}: option {name} must be a list of texts",
            code="agent_option_wrong",
            options=(name,),
        )
    return tuple(value)


def switch(agent: str, options: Mapping[str, Any], name: str) -> bool:
    """Return an option that must be true or false; false when it is not given."""
    value = options.get(name, False)
    if not isinstance(value, bool):
        raise BadConfig(
            f"agent {agent}: option {name} must be true or false", code="agent_option_wrong", options=(name,)
        )
    return value
