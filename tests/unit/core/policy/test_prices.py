"""What tokens cost: the table, the user's own prices, and what stays unknown."""

import pytest
from tests.cases import each_case

from loopwright.core.policy.price_table import TABLE
from loopwright.core.policy.prices import HIGHEST, Price, estimate, price_of, read_price
from loopwright.core.rows.model import Usage

MILLION = 1_000_000
USED = Usage(input_tokens=MILLION, output_tokens=MILLION)


@each_case(
    ("text", "sums"),
    [
        ("m 1.25 10", (1_250_000, 10_000_000, 1_250_000, 1_250_000)),
        ("m 1.25 10 0.125", (1_250_000, 10_000_000, 125_000, 1_250_000)),
        ("m 3 15 0.30 3.75", (3_000_000, 15_000_000, 300_000, 3_750_000)),
        ("  m   0  0.000001 ", (0, 1, 0, 0)),
    ],
)
def test_a_price_is_read_as_people_write_it(text: str, sums: tuple[int, ...]) -> None:
    names = ("input", "output", "cache_read", "cache_write")
    assert read_price(text) == Price(models="m", **dict(zip(names, sums, strict=True)))


@each_case(
    "text",
    [
        "",
        "m",
        "m 1",
        "m 1 2 3 4 5",
        "m 1 -2",
        "m one 2",
        "m 1 nan",
        "m 1 10001",
        "m 0.0000001 1",
        "m" * 201 + " 1 2",
    ],
)
def test_what_is_no_price_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read_price(text)


def test_each_kind_of_token_has_its_own_price() -> None:
    used = Usage(input_tokens=100, output_tokens=10, cache_read_tokens=1000, cache_write_tokens=8)
    assert estimate("claude-sonnet-4-5", used) == 100 * 3 + 10 * 15 + 300 + 30
    assert estimate("gpt-5", Usage(input_tokens=1, output_tokens=0)) == 2, "1.25 micros are charged as 2"


@each_case("name", ["gpt-5", "gpt-5-2025-08-07", "openai/gpt-5", "openai/gpt-5-2025-08-07", "gpt-5-latest"])
def test_a_version_of_a_model_costs_what_the_model_costs(name: str) -> None:
    assert estimate(name, USED) == 11_250_000


@each_case("name", ["gpt-5-huge", "gpt-55", "my-model", "", None])
def test_a_model_that_nobody_looked_up_has_no_price(name: str | None) -> None:
    assert estimate(name, USED) is None


@each_case(
    "usage", [None, Usage(), Usage(input_tokens=5), Usage(output_tokens=5), Usage(cache_read_tokens=5)]
)
def test_unknown_tokens_have_no_price(usage: Usage | None) -> None:
    assert estimate("gpt-5", usage) is None


def test_the_users_own_prices_go_before_the_table_and_the_first_of_them_wins() -> None:
    own = ("gpt-5-huge 100 200", "gpt-5* 2 2")
    assert estimate("gpt-5", USED, own) == 4_000_000
    assert estimate("gpt-5-huge", USED, own) == 300_000_000
    assert estimate("o3", USED, own) == 10_000_000


@each_case(
    ("name", "listed"),
    [
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("openai/gpt-4o-2024-08-06", "gpt-4o"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("anthropic/claude-opus-4.5", "claude-opus-4.5"),
    ],
)
def test_a_version_with_a_price_of_its_own_is_another_model(name: str, listed: str) -> None:
    price = price_of(name)
    assert price is not None
    assert price.models == listed


def test_every_listed_model_has_its_own_price() -> None:
    assert len(TABLE) > 300
    for name, amounts in TABLE.items():
        assert price_of(name) == Price(
            models=name, **dict(zip(("input", "output", "cache_read", "cache_write"), amounts, strict=True))
        )
        assert 0 < amounts[2] <= amounts[0] <= amounts[1] <= HIGHEST * 1_000_000, name
