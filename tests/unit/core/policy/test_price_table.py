"""The table of prices is what its script makes of the data of genai-prices."""

from datetime import date

import pytest
from genai_prices.data import providers
from genai_prices.types import ModelInfo
from scripts.render_prices import TARGET, amounts_of, names_of, rendered

from loopwright.core.policy.price_table import AS_OF, TABLE


def model(maker: str, name: str) -> ModelInfo:
    """Return a model of the data."""
    return next(one for each in providers if each.id == maker for one in each.models if one.id == name)


def test_the_table_is_what_its_script_makes() -> None:
    assert TARGET.read_text() == rendered(AS_OF), "run `python -m scripts.render_prices`"


def test_the_price_is_that_of_a_day_and_of_a_long_prompt() -> None:
    grok = model("x-ai", "grok-4.20")
    assert amounts_of(grok, date(2026, 4, 29)) == (2_000_000, 6_000_000, 200_000, 2_000_000)
    assert amounts_of(grok, date(2026, 4, 30)) == (1_250_000, 2_500_000, 200_000, 1_250_000)
    # The price from 100,000 tokens on counts, the one from 200,000 on does not.
    assert TABLE["claude-haiku-5-5"] == (500_000, 2_500_000, 50_000, 625_000)
    assert TABLE["gemini-2.5-pro"][:2] == (1_250_000, 10_000_000)


@pytest.mark.parametrize(
    ("maker", "name", "listed"),
    [
        ("anthropic", "claude-opus-4-5", {"claude-opus-4-5", "claude-opus-4.5"}),
        ("anthropic", "claude-3-5-haiku-latest", {"claude-3-5-haiku", "claude-3.5-haiku"}),
        ("openai", "gpt-4o-2024-05-13", {"gpt-4o-2024-05-13"}),
    ],
)
def test_a_model_is_listed_under_the_names_that_only_it_has(maker: str, name: str, listed: set[str]) -> None:
    assert names_of(model(maker, name)) == listed
