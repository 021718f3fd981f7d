"""Prices of tokens, for agents that report only tokens. An estimate is always marked as one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from typing import Final

from loopwright.core.rows.model import Usage

AS_OF: Final = date(2026, 11, 6)
"""The date of the table: use the setting `prices` for later price changes and newer models."""

HIGHEST: Final = 10_000
"""In dollars per million tokens: a higher value is a typing error."""

_DATED: Final = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest)$")
"""The suffix of a model's version; it costs as much as the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of a million tokens of one kind of model, in millionths of a dollar."""

    models: str
    """A name, with * as a wildcard."""
    input: int
    output: int
    cache_read: int
    cache_write: int


def read_price(text: str) -> Price:
    """Read `MODEL INPUT OUTPUT [CACHE_READ [CACHE_WRITE]]`, in dollars per million tokens; raise ValueError if wrong.

    A missing price is that of input.
    """
    models, *amounts = text.split()
    if not 2 <= len(amounts) <= 4 or len(models) > 200:
        raise ValueError(text)
    given, output, *cached = (_micros(amount) for amount in amounts)
    cache_read, cache_write, *_ = (*cached, given, given)
    return Price(models=models, input=given, output=output, cache_read=cache_read, cache_write=cache_write)


def _micros(amount: str) -> int:
    try:
        dollars = Decimal(amount)
    except InvalidOperation:
        raise ValueError(amount) from None
    if not dollars.is_finite() or not 0 <= dollars <= HIGHEST or dollars * 1_000_000 % 1:
        raise ValueError(amount)
    return int(dollars * 1_000_000)


PRICES: Final = tuple(
    read_price(line)
    for line in (
        "claude-fable-5-1 10 50 0.25 12.50",
        "claude-fable-5 10 50 1 12.50",
        "claude-opus-5-5 4 20 0.20 5",
        "claude-opus-5 5 25 0.50 6.25",
        "claude-opus-4-8 5 25 0.50 6.25",
        "claude-opus-4-7 5 25 0.50 6.25",
        "claude-opus-4-6 5 25 0.50 6.25",
        "claude-opus-4-5 5 25 0.50 6.25",
        "claude-opus-4 15 75 1.50 18.75",
        "claude-opus-4-1 15 75 1.50 18.75",
        "claude-sonnet-5-5 2 10 0.20 2.50",
        "claude-sonnet-5 2 10 0.20 2.50",
        "claude-sonnet-4-6 3 15 0.30 3.75",
        "claude-sonnet-4 3 15 0.30 3.75",
        "claude-sonnet-4-5 3 15 0.30 3.75",
        "claude-haiku-5-5 0.50 2.50 0.05 0.625",
        "claude-haiku-4-5 1 5 0.10 1.25",
        "claude-3-5-haiku 0.80 4 0.08 1",
        "gpt-5.6-sol 5 30 0.50 6.25",
        "gpt-5.6-terra 2.50 15 0.25 3.125",
        "gpt-5.6-luna 1 6 0.10 1.25",
        "gpt-5.5 5 30 0.50",
        "gpt-5.4 2.50 15 0.25",
        "gpt-5.4-mini 0.75 4.50 0.075",
        "gpt-5.4-nano 0.20 1.25 0.02",
        "gpt-5.3-codex 1.75 14 0.175",
        "gpt-5.2-codex 1.75 14 0.175",
        "gpt-5.2 1.75 14 0.175",
        "gpt-5.1 1.25 10 0.125",
        "gpt-5.1-codex 1.25 10 0.125",
        "gpt-5.1-codex-max 1.25 10 0.125",
        "gpt-5.1-codex-mini 0.25 2 0.025",
        "gpt-5 1.25 10 0.125",
        "gpt-5-codex 1.25 10 0.125",
        "gpt-5-codex-mini 0.25 2 0.025",
        "gpt-5-mini 0.25 2 0.025",
        "gpt-5-nano 0.05 0.40 0.005",
        "codex-mini 1.50 6 0.375",
        "gpt-4.1 2 8 0.50",
        "gpt-4.1-mini 0.40 1.60 0.10",
        "gpt-4.1-nano 0.10 0.40 0.025",
        "o3 2 8 0.50",
        "o4-mini 1.10 4.40 0.275",
        "gemini-3.1-pro-preview 2 12 0.20",
        "gemini-3-pro-preview 2 12 0.20",
        "gemini-3.5-flash 1.50 9 0.15",
        "gemini-3-flash-preview 0.50 3 0.05",
        "gemini-2.5-pro 1.25 10 0.125",
        "gemini-2.5-flash 0.30 2.50 0.03",
        "gemini-2.5-flash-lite 0.10 0.40 0.01",
    )
)
"""Names without patterns: the price of an unlisted model is unknown, whatever its name.

These are published prices for prompts of the usual length. If lists of the same year differ, the higher price
counts. If long prompts of a model cost more, and agents often reach that length, the price for long prompts
counts.
"""


def price_of(model: str, added: Sequence[str] = ()) -> Price | None:
    """Return the price of a model; the user's own prices, in the form of `read_price`, come first."""
    names = {model, model.rpartition("/")[2]}
    names |= {_DATED.sub("", name) for name in names}
    for price in (*map(read_price, added), *PRICES):
        if any(fnmatchcase(name, price.models) for name in names):
            return price
    return None


def estimate(model: str | None, usage: Usage | None, added: Sequence[str] = ()) -> int | None:
    """Return the cost of tokens, in millionths of a dollar; None if the model or its tokens are unknown."""
    if model is None or usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    price = price_of(model, added)
    if price is None:
        return None
    # A service that does not report cached tokens counts them as input.
    parts = (
        (usage.input_tokens, price.input),
        (usage.output_tokens, price.output),
        (usage.cache_read_tokens or 0, price.cache_read),
        (usage.cache_write_tokens or 0, price.cache_write),
    )
    return -(-sum(tokens * micros for tokens, micros in parts) // 1_000_000)
