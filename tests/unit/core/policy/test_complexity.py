"""How hard a task is: a person's word, else rules as data."""

import pytest
from tests.cases import each_case

from loopwright.core.policy.complexity import complexity_of

LONG = "A text that is long enough to say what is meant by it."


@pytest.mark.capability("C031")
@each_case(
    ("title", "description", "dependencies", "checks", "said", "level"),
    [
        ("Add login", f"Passwords for the api. {LONG}", 0, 1, None, "high"),
        ("Add login", LONG, 0, 1, None, "medium"),
        ("Add an endpoint", f"The service. {LONG}", 0, 1, None, "medium"),
        ("Add an endpoint", f"The service. {LONG}", 4, 6, None, "high"),
        ("Refactor the parser", LONG, 0, 1, None, "low"),
        ("Simple change", f"The api. {LONG}", 0, 1, None, "low"),
        ("Add it", "short", 0, 1, None, "low"),
        ("Add login", f"Passwords for the api. {LONG}", 0, 1, "low", "low"),
        ("Fix a typo", "short", 0, 1, "high", "high"),
        ("Author the page", f"Tokenise it. {LONG}", 0, 1, None, "low"),
    ],
)
def test_a_person_wins_over_the_rules(
    title: str, description: str, dependencies: int, checks: int, said: str | None, level: str
) -> None:
    found = complexity_of(
        title=title, description=description, kind="", dependencies=dependencies, checks=checks, said=said
    )
    assert found.level == level
