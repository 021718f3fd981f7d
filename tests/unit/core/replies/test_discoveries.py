"""Work that agents come upon: how it is read out of their words, and what it is called."""

import json

import pytest
from tests.cases import each_case

from loopwright.core.replies.discoveries import (
    MOST_DISCOVERED,
    Noticed,
    discovered_in,
    discovered_lines,
    discovery_id,
    key_for,
)
from loopwright.core.values.ids import Kind, is_id


def block(value: object) -> str:
    return f"```loopwright-discovered\n{json.dumps(value)}\n```\n"


@pytest.mark.capability("C040")
def test_each_fenced_block_of_the_last_words_is_work_that_was_left_to_others() -> None:
    first = {"title": "Mend the\n clock", "reason": " It is late. ", "recommendation": "current"}
    text = f"All done.\n\n{block(first)}and\n{block({'title': 'Test it'})}{block(first)}"
    assert discovered_in(text) == (
        Noticed(title="Mend the clock", reason="It is late.", recommendation="current"),
        Noticed(title="Test it", recommendation="new"),
    )


@pytest.mark.trap("quoted success")
@each_case(
    "text",
    [
        block({"title": "...", "reason": "...", "recommendation": "current"}),
        block({"title": " … "}),
        block({"reason": "no title"}),
        block({"title": 7}),
        block(["title"]),
        "```loopwright-discovered\nnot JSON\n```\n",
        "```json\n" + json.dumps({"title": "a"}) + "\n```\n",
        '    ```loopwright-discovered\n    {"title": "quoted"}\n    ```\n',
        '```loopwright-discovered\n{"title": "never closed"}\n',
        "```loopwright-discovered\n" + "[" * 100_000 + "\n```\n",
    ],
)
def test_what_is_no_such_work_is_passed_over_and_so_is_the_example_of_the_prompt(text: str) -> None:
    assert discovered_in(text) == ()


def test_what_is_noted_is_bounded_and_can_be_stored() -> None:
    lines = [json.dumps({"title": f"{n} \0\ud800" + "x" * 900, "reason": "y" * 9000}) for n in range(50)]
    found = discovered_lines("\n".join(["half a li", "[]", *lines]))
    assert len(found) == MOST_DISCOVERED
    assert {(len(one.title), len(one.reason)) for one in found} == {(200, 2000)}
    assert all("\0" not in one.title and one.title.encode() for one in found)


def test_the_same_title_in_the_same_task_is_the_same_work() -> None:
    one = discovery_id("ptask_1", "Mend the clock")
    assert is_id(one, Kind.DISCOVERY)
    assert discovery_id("ptask_1", "mend  THE clock ") == one
    assert discovery_id("ptask_2", "Mend the clock") != one
    assert discovery_id("ptask_1", "Mend the clocks") != one


@each_case(
    ("title", "taken", "key"),
    [
        ("Mend the clock!", set(), "mend-the-clock"),
        ("Mend the clock", {"mend-the-clock", "mend-the-clock-2"}, "mend-the-clock-3"),
        ("../../etc", set(), "etc"),
        ("直す", set(), "discovered"),
        ("a" * 70 + " b", set(), "a" * 60),
    ],
)
def test_its_name_is_made_of_its_words_and_is_nobody_elses(title: str, taken: set[str], key: str) -> None:
    assert key_for(title, taken) == key
