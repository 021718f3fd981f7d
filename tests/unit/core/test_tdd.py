"""Which tasks have to show that their acceptance fails without them."""

import pytest

from loopwright.core.tdd import LOOKS, STATIC, WRAPS, why_skipped


@pytest.mark.capability("C038")
@pytest.mark.parametrize(
    ("type", "title", "why"),
    [
        ("code", "Style the form with CSS", ""),
        ("ui", "Check the form", ""),
        ("CSS", "Anything", LOOKS),
        ("static", "Prices", STATIC),
        ("wrapper", "Mail", WRAPS),
        ("", "Polish the CSS of the form", LOOKS),
        ("", "Mend a typo in the README", STATIC),
        ("", "A wrapper around the mailer", WRAPS),
        ("", "Calculate prices", ""),
    ],
)
def test_logic_has_to_and_looks_texts_and_wrappers_need_not(type: str, title: str, why: str) -> None:
    assert why_skipped(type, title) == why
