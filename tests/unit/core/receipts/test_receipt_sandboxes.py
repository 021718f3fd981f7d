"""What a receipt says of the sandboxes of its runs, and what may not be said."""

import json
from dataclasses import replace
from typing import Any

from tests.cases import each_case
from tests.unit.core.receipts.as_json import render, shape_problems, verify_receipt
from tests.unit.core.receipts.test_receipts import FACTS, build, rows

from loopwright.core.receipts.model import read_receipt
from loopwright.core.values.containment import MadeWith

PODMAN = MadeWith(program="podman version 5.4", image="localhost/mine:1", image_id="ab" * 32)
BWRAP = MadeWith(program="bubblewrap 0.11.0")


def contained(level: str | None, made: MadeWith | None) -> dict[str, Any]:
    first, *others = rows()["runs"]
    runs = [replace(first, sandbox=level, sandbox_made_with=made), *others]
    return json.loads(render(build(runs=runs)))  # type: ignore[no-any-return]


@each_case(
    ("level", "made", "said"),
    [
        ("container", PODMAN, f"container: podman version 5.4, image localhost/mine:1 {'ab' * 32}"),
        ("bubblewrap", BWRAP, "bubblewrap 0.11.0"),
        ("none", None, "none"),
        (None, None, "not known"),
    ],
)
def test_a_receipt_names_the_program_its_version_and_the_image(
    level: str | None, made: MadeWith | None, said: str
) -> None:
    receipt = contained(level, made)
    assert verify_receipt(receipt, FACTS) == []
    assert said == read_receipt(receipt).runs[0].sandbox_words


@each_case(
    ("level", "made"),
    [
        ("container", None),
        ("container", replace(PODMAN, program="")),
        ("container", replace(PODMAN, image_id="")),
        ("bubblewrap", None),
        ("bubblewrap", PODMAN),
        ("none", BWRAP),
    ],
)
def test_an_incomplete_description_of_a_sandbox_is_found(level: str, made: MadeWith | None) -> None:
    receipt = contained(level, made)
    run = receipt["runs"][0]["id"]
    assert verify_receipt(receipt, FACTS) == [f"sandbox {run}"]


@each_case("wrong", [{}, {"program": "x"}, {"program": 1, "image": "", "image_id": ""}, "podman"])
def test_what_is_no_such_thing_is_no_receipt(wrong: Any) -> None:
    receipt = contained("bubblewrap", BWRAP)
    receipt["runs"][0]["sandbox_made_with"] = wrong
    assert any("sandbox_made_with" in one for one in shape_problems(receipt))
