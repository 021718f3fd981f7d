"""Prices of tokens, for agents that report only tokens. An estimate is always marked as one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from typing import Final

from loopwright.core.policy.price_table import TABLE
from loopwright.core.rows.model import Usage

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


def undated(model: str) -> str:
    """Return the name of a model without the suffix of a version."""
    return _DATED.sub("", model)


def price_of(model: str, added: Sequence[str] = ()) -> Price | None:
    """Return the price of a model; the user's own prices, in the form of `read_price`, come first.

    The table has names without patterns: the price of an unlisted model is unknown, whatever its name.
    """
    names = dict.fromkeys((model, model.rpartition("/")[2]))
    names |= dict.fromkeys(map(undated, names))
    for price in map(read_price, added):
        if any(fnmatchcase(name, price.models) for name in names):
            return price
    return next((_listed(name) for name in names if name in TABLE), None)


def _listed(name: str) -> Price:
    given, output, cache_read, cache_write = TABLE[name]
    return Price(models=name, input=given, output=output, cache_read=cache_read, cache_write=cache_write)


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
