"""What a run of Claude Code has used so far, told with each answer of its models."""

import json
from typing import Any

from tests.unit.agents.claude.test_claude_streams import folded

from loopwright.adapters.agents.claude.claude import ClaudeAgent
from loopwright.adapters.agents.claude.claude_meters import Calls
from loopwright.core.rows.model import Usage
from loopwright.ports import OutputLine, Spent

AGENT = ClaudeAgent()


def message(id: str, *, text: str = "", model: str = "m", **usage: int) -> dict[str, Any]:
    counts = {"input_tokens": 100, "output_tokens": 1, **usage}
    return {"id": id, "model": model, "usage": counts, "content": [{"type": "text", "text": text}]}


def used(calls: Calls) -> tuple[int, int]:
    run = calls.told()["run"]
    return run["input_tokens"], run["output_tokens"]


def test_an_answer_in_several_messages_is_counted_once() -> None:
    calls = Calls().heard(message("a", text="x" * 40)).heard(message("a", text="y" * 40))
    assert used(calls) == (100, 20), "the output by its length, as no message tells it"
    assert used(calls.heard(message("b", output_tokens=7))) == (200, 27)


def test_a_count_that_grows_replaces_the_earlier_one() -> None:
    calls = Calls().heard(message("a")).heard(message("b")).heard(message("a", output_tokens=50))
    assert used(calls) == (200, 51)


def test_each_model_has_a_sum_of_its_own() -> None:
    calls = Calls().heard(message("a")).heard(message("b", model="helper", cache_read_input_tokens=9))
    told = calls.told()
    assert {name: one["input_tokens"] for name, one in told["models"].items()} == {"m": 100, "helper": 100}
    assert told["run"]["cache_read_tokens"] == 9


def test_older_answers_are_kept_as_a_sum() -> None:
    calls = Calls()
    for n in range(50):
        calls = calls.heard(message(str(n), text="x" * 8))
    assert used(calls) == (5000, 100)
    assert len(calls.still_open) < 20


def test_what_no_model_said_or_nobody_counted_changes_nothing() -> None:
    calls = Calls().heard(message("a"))
    for odd in ({}, {"id": "b", "model": "m"}, message("", text="x"), message("b", model="<synthetic>")):
        assert calls.heard(odd) == calls


def test_a_recorded_run_tells_its_sum_while_it_goes_and_its_cost_in_the_end() -> None:
    _, events = folded("claude_edit")
    told = [event.data for event in events if event.kind == "Usage"]
    assert [one["run"]["input_tokens"] for one in told] == [120, 120, 240, 360, 360]
    assert all("cost_micros" not in one["run"] for one in told[:-1])
    assert told[-1]["run"]["cost_micros"] > 0
    assert told[-1]["input_tokens"] == 360


def test_the_cost_that_is_told_in_the_end_is_that_of_this_run_alone() -> None:
    state = AGENT.initial(before=Spent(cost_micros=700_000, usage=Usage(input_tokens=10, output_tokens=10)))
    counts = {"input_tokens": 30, "output_tokens": 20}
    all_of_it = {"m": {"inputTokens": 40, "outputTokens": 30}}
    result = {
        "type": "result",
        "is_error": False,
        "total_cost_usd": 1.0,
        "usage": counts,
        "modelUsage": all_of_it,
    }
    folded = AGENT.fold(state, OutputLine(offset=0, stream="out", text=json.dumps(result)))
    (told,) = (event.data["run"] for event in folded.events if event.kind == "Usage")
    assert (told["cost_micros"], told["input_tokens"]) == (300_000, 30)
