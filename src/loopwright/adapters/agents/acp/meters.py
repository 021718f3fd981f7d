"""What a run used, from wherever its agent tells it. What cannot be told for sure stays unknown."""

from dataclasses import replace
from typing import Any

from loopwright.adapters.agents.acp.profiles import Profile
from loopwright.adapters.agents.acp.state import AcpState
from loopwright.adapters.agents.output import Object, object_in, readable, whole_number
from loopwright.core.rows.model import Usage


def with_chunk(state: AcpState, profile: Profile, meta: Object) -> AcpState:
    """Return the state with the tokens that came along with a piece of the agent's words: those of one request."""
    counts = object_in(meta.get("usage"))
    if profile.tokens_in != "chunks" or not counts:
        return state
    usage = _usage(counts)
    return state if usage is None else replace(state, usage=_plus(state.usage, usage))


def with_result(state: AcpState, profile: Profile, result: Object) -> AcpState:
    """Return the state with what the answer to the prompt tells."""
    quota = object_in(object_in(result.get("_meta")).get("quota"))
    models = quota.get("model_usage")
    first = object_in(models[0] if isinstance(models, list) and models else None)
    state = replace(state, model=readable(first.get("model"), 200) or state.model)
    match profile.tokens_in:
        case "result" if counts := object_in(result.get("usage")):
            return replace(state, usage=_usage(counts))
        case "quota" if counts := object_in(quota.get("token_count")):
            return replace(
                state,
                usage=Usage(
                    input_tokens=whole_number(counts.get("input_tokens")),
                    output_tokens=whole_number(counts.get("output_tokens")),
                ),
            )
        case _:
            return state


def own_cost(state: AcpState) -> int | None:
    """Return what this run added to the cost of its conversation."""
    total = state.cost_micros
    if total is None:
        return None
    # A total below what was known before was counted again, so it belongs to this run alone.
    return total - state.before_micros if total >= state.before_micros else total


def so_far(state: AcpState, profile: Profile) -> dict[str, Any]:
    """Return what the run has used so far as an event tells it, where the agent's own word on it counts."""
    cost = own_cost(state) if "cost" in profile.capabilities else None
    usage = state.usage if "usage" in profile.capabilities else None
    if cost is None and usage is None:
        return {}
    return {"run": {**tokens(usage or Usage()), "cost_micros": cost}}


def tokens(usage: Usage) -> dict[str, Any]:
    """Return counts as an event tells them."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
    }


def context(update: Object, cost_micros: int | None) -> dict[str, Any]:
    """Return how full the model's context is, and what the conversation has cost, as an event tells it."""
    return {
        "context_used": whole_number(update.get("used")),
        "context_size": whole_number(update.get("size")),
        "conversation_cost_micros": cost_micros,
    }


def _usage(counts: Object) -> Usage | None:
    """Read a count. Some agents count what came from a cache as input as well; we keep the two apart."""
    given, said = whole_number(counts.get("inputTokens")), whole_number(counts.get("outputTokens"))
    if not given and not said:
        return None  # of a turn that was stopped nothing is known
    read = whole_number(counts.get("cachedReadTokens"))
    written = whole_number(counts.get("cachedWriteTokens"))
    total = whole_number(counts.get("totalTokens"))
    if given is not None and said is not None and total == given + said:
        given = max(0, given - (read or 0) - (written or 0))
    return Usage(input_tokens=given, output_tokens=said, cache_read_tokens=read, cache_write_tokens=written)


def _plus(one: Usage | None, other: Usage) -> Usage:
    if one is None:
        return other
    added = {
        name: None if a is None and b is None else (a or 0) + (b or 0)
        for name, a, b in (
            (name, getattr(one, name), getattr(other, name))
            for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
        )
    }
    return Usage(**added)
