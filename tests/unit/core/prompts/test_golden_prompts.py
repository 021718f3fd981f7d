"""What each role is told, word for word, with realistic values.

`python -m tests.unit.core.prompts.golden_prompts` writes the golden files again; read what changed before you commit
it.
"""

import pytest
from tests.unit.core.prompts.golden_prompts import GOLDEN, prompts

PROMPTS = prompts()


@pytest.mark.parametrize("name", PROMPTS)
def test_a_prompt_is_as_its_golden_file_has_it(name: str) -> None:
    assert PROMPTS[name] == (GOLDEN / f"{name}.md").read_text(encoding="utf-8")


def test_every_golden_file_is_compared() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == PROMPTS.keys()


@pytest.mark.parametrize("name", [name for name in PROMPTS if name not in ("documents", "probe")])
def test_the_sections_come_in_their_order(name: str) -> None:
    order = [
        "Task",
        "Context",
        "Constraints",
        "The change",
        "What is known",
        "How it will be checked",
        "What to return",
    ]
    found = [line.removeprefix("## ") for line in PROMPTS[name].splitlines() if line.startswith("## ")]
    assert found == [one for one in order if one in found]
    assert {"Task", "What to return"} <= set(found)
