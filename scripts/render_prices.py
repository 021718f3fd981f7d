"""Make `core/policy/price_table.py`, the prices of models, from the data of genai-prices (MIT License).

Usage: `python -m scripts.render_prices [DATE]`, after a newer version of genai-prices is pinned in `constraints.txt`.
The prices are those in force on the date, by default today.
"""

import re
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path

from genai_prices.data import providers
from genai_prices.types import (
    ClauseEquals,
    ClauseOr,
    ClauseStartsWith,
    MatchLogic,
    ModelInfo,
    ModelPrice,
    TieredPrices,
)

from loopwright.core.policy.prices import HIGHEST, undated

TARGET = Path(__file__).resolve().parent.parent / "src/loopwright/core/policy/price_table.py"
MAKERS = (
    *("anthropic", "openai", "google", "x-ai", "mistral", "deepseek", "moonshotai", "zai", "minimax"),
    "cohere",
)
"""Who sells models for agents under their own names. A model that two of them list has the price of the first."""
PROMPT = 150_000
"""The length of prompt, in tokens, whose price counts: the conversation of an agent is often that long."""
KINDS = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")
OTHER_WORK = re.compile(
    r"audio|banana|davinci|embed|image|live|moderation|(?i:ocr)|omni|realtime|robotics|search|transcribe|tts|vision|voice|"
    r"voxtral|whisper"
)
"""Models that no coding agent uses."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*[A-Za-z0-9]")

Amounts = tuple[int, int, int, int]


def table(on: date) -> dict[str, Amounts]:
    """Return the prices that are in force on a day, by the names of models, in micro-dollars per million tokens."""
    makers = {one.id: one for one in providers}
    found: dict[str, Amounts] = {}
    for maker in MAKERS:
        own: dict[str, Amounts] = {}
        for model in makers[maker].models:
            amounts = amounts_of(model, on)
            if amounts is not None and not OTHER_WORK.search(model.id):
                own |= dict.fromkeys(names_of(model), amounts)
        found |= {name: own[name] for name in sorted(own.keys() - found.keys())}
    return found


def names_of(model: ModelInfo) -> set[str]:
    """Return the names under which a model is asked for, without a date where another date is the same model."""
    own = undated(model.id)
    same = {one for one in _prefixes(model.match) if one.replace(".", "-") == own.replace(".", "-")}
    names = {model.id, *_equals(model.match), *same}
    short = {undated(one) if model.is_match(undated(one)) else one for one in names}
    return {one for one in short if NAME.fullmatch(one)}


def _equals(match: MatchLogic) -> Iterator[str]:
    if isinstance(match, ClauseEquals):
        yield match.equals
    elif isinstance(match, ClauseOr):
        for one in match.or_:
            yield from _equals(one)


def _prefixes(match: MatchLogic) -> Iterator[str]:
    """Return other spellings, such as `claude-opus-4.5`: there a longer name is another model."""
    if isinstance(match, ClauseStartsWith):
        yield match.starts_with
    elif isinstance(match, ClauseOr):
        for one in match.or_:
            yield from _prefixes(one)


def amounts_of(model: ModelInfo, on: date) -> Amounts | None:
    """Return the price of a model on a day; where it depends on the hour, the highest. None if it sells no text."""
    hours = [model.get_prices(datetime.combine(on, time(hour), UTC)) for hour in range(24)]
    if any(_amount(one, kind) is None for one in hours for kind in KINDS[:2]):
        return None
    # A kind of token without a price of its own costs what input costs.
    each = [
        max(
            one if (one := _amount(price, kind)) is not None else _amount(price, KINDS[0]) or 0
            for price in hours
        )
        for kind in KINDS
    ]
    assert max(each) <= HIGHEST * 1_000_000, model.id
    given, output, read, written = each
    return given, output, read, written


def _amount(price: ModelPrice, kind: str) -> int | None:
    found = getattr(price, kind, None)
    if isinstance(found, TieredPrices):
        reached = [tier.price for tier in found.tiers if tier.start < PROMPT]
        found = reached[-1] if reached else found.base
    assert found is None or isinstance(found, Decimal), kind
    return None if found is None else -int(-found * 1_000_000 // 1)


def rendered(on: date) -> str:
    """Return the module."""
    lines = [f'    "{name}": ({", ".join(f"{one:_}" for one in each)}),' for name, each in table(on).items()]
    return "\n".join(
        [
            '"""Made by `python -m scripts.render_prices` from genai-prices (MIT License). Edit that, not this."""',
            "",
            "from collections.abc import Mapping",
            "from datetime import date",
            "from types import MappingProxyType",
            "from typing import Final",
            "",
            f"AS_OF: Final = date({on.year}, {on.month}, {on.day})",
            f'MADE_FROM: Final = "genai-prices {version("genai-prices")}"',
            f"PROMPT: Final = {PROMPT:_}",
            '"""The length of prompt, in tokens, whose price it has."""',
            "",
            "# Micro-dollars per million tokens of input, output, cache read and cache write.",
            "TABLE: Final[Mapping[str, tuple[int, int, int, int]]] = MappingProxyType({",
            *lines,
            "})  # fmt: skip",
            "",
        ]
    )


if __name__ == "__main__":
    TARGET.write_text(rendered(date.fromisoformat(sys.argv[1]) if sys.argv[1:] else datetime.now(UTC).date()))
