"""An independent reviewer before work lands, through the real command line; the scripted agent plays both parts."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.control.workshop import Workshop, kill
from tests.acceptance.sandbox import Steps, task
from tests.waiting import eventually

from loopwright.core.model import Attempt, Plan, Review, Role, Run
from loopwright.core.states import AttemptState, ReviewState, RunState

SPECIAL = "def double(n):\n    if n == 2:\n        return 4\n    return 0\n"
RIGHT = "def double(n):\n    return n * 2\n"
ASKS = "python3 -B -c 'from double import double; assert double(2) == 4'"
OBJECTS = {"file": "double.py", "line": 2, "severity": "blocking", "text": "Only 2 works: double(3) is 0."}
"""What a reviewer finds that thinks of another input than the test has."""

WORKS: Steps = [
    {"expect_prompt": "Only 2 works: double(3) is 0.", "otherwise": [{"write": "double.py", "text": SPECIAL}]},
    {"write": "double.py", "text": RIGHT},
    {"claim": "mended"},
]
"""An agent that writes the tested value into the code, until it is told that it was seen."""


def play(shop: Workshop, work: Steps, *rounds: Steps) -> Path:
    """Write a plan of one task, whose work every round of review looks at."""
    script: dict[str, Any] = {"journal": "journal.txt", "tasks": {"double": [work]}}
    shop.script.write_text(json.dumps({**script, "reviews": {"double": list(rounds)}}))
    shop.program.env |= {"LOOPWRIGHT_REVIEW__MODE": "always", "LOOPWRIGHT_REVIEW__MODEL": "critic"}
    return shop.plan("double", [task("double", ASKS)])


def receipt(shop: Workshop) -> dict[str, Any]:
    """Return the receipt of the plan, after it was verified as a stranger would."""
    path = shop.place / "receipt.json"
    shop("receipt", "show", "--output", str(path))
    verified = shop("receipt", "verify", str(path))
    assert verified.code == 0, verified.out + verified.err
    return dict(json.loads(path.read_text()))


def reviewers(shop: Workshop) -> Sequence[Run]:
    return shop.rows(Run, role=Role.REVIEWER)


@pytest.mark.capability("C031", "C037", "C044")
def test_a_special_cased_input_is_found_mended_and_lands_with_its_reviews(shop: Workshop) -> None:
    plan = play(shop, WORKS, [{"write": "double.py", "text": "its own idea\n"}, {"review": [OBJECTS]}], [{"review": []}])
    said = shop.run(plan)
    assert said.code == 0, said.out + said.err
    print(said.out)
    print(shop("show", "double").out)
    print(json.dumps(receipt(shop)["reviews"], indent=1))
