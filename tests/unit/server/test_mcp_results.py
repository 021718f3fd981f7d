import json
from typing import Any

import pytest

from loopwright.server.mcp.results import LIMIT, fits, fitted

MORE = "GET /api/loops/loop_1/report"
TASKS = [{"key": f"task-{n}", "reason": "x" * 500, "checks": ["y" * 300] * 20} for n in range(200)]


@pytest.mark.parametrize(
    "document",
    [
        {"text": "\U0001f600" * 5000},
        {"text": '"\\\n' * 5000},
        {"tasks": TASKS},
        {"tasks": [{"deep": TASKS}] * 9},
        {f"value-{n}": "x" * 90 for n in range(500)},
    ],
    ids=["wide", "escaped", "long", "deep", "many names"],
)
def test_a_result_is_never_longer_than_four_kilobytes_and_says_where_the_rest_is(
    document: dict[str, Any],
) -> None:
    text = fitted(document, MORE)
    assert fits(text)
    assert len(text.encode()) <= LIMIT
    assert json.loads(text)["more"] == MORE


def test_a_long_list_says_how_much_was_left_out() -> None:
    said = json.loads(fitted({"id": "loop_1", "tasks": TASKS}, MORE))
    assert said["id"] == "loop_1"
    kept = len(said["tasks"]) - 1
    assert kept > 0
    assert said["tasks"][-1] == f"and {200 - kept} more"


def test_a_short_document_is_returned_as_it_is_without_what_is_empty() -> None:
    said = json.loads(
        fitted({"id": "loop_1", "reason": "", "passed": 0, "reached": False, "tasks": []}, MORE)
    )
    assert said == {"id": "loop_1", "passed": 0, "reached": False}
