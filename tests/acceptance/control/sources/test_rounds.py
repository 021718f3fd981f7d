"""The plain loop over one prompt: read, run, check, sleep, repeat, until a condition stops it."""

import json

import pytest
from tests.acceptance.control.workshop import Workshop, kill
from tests.waiting import eventually

from loopwright.core.rows.model import Plan, Task

SETTINGS = '[[gates]]\nname = "whole"\nrun = "test ! -e half || test -e other"\n'
PROMPT = "---\nrounds:\n  sleep: 1s\n  unchanged: 1\n---\n# Make both halves\n\nOne after the other.\n"


def prepared(shop: Workshop, prompt: str, settings: str = SETTINGS) -> None:
    (shop.repository / "loopwright.toml").write_text(settings)
    (shop.repository / "PROMPT.md").write_text(prompt)
    shop.git("add", "-A")
    shop.git("commit", "-qm", "the prompt")


@pytest.mark.capability("C053")
def test_rounds_carry_on_what_is_not_green_land_what_is_and_outlive_two_kills(shop: Workshop) -> None:
    """The first round leaves a red half; the second is killed, reads an edited prompt and lands; one more is quiet."""
    prepared(shop, PROMPT)
    first, gate = shop.gate("first"), shop.gate("gate")
    finds = {"expect_prompt": "In another way", "otherwise": [{"exit": 3}]}
    shop.play(
        {
            "prompt": [
                [{"run": first.shell}, {"write": "half", "text": "1\n"}],
                [finds, {"run": f"{gate.shell}; test -e half && touch other"}],
            ],
            "prompt-2": [[{"say": "nothing is left"}]],
        }
    )
    run = shop.start("run", "PROMPT.md")
    first.until_reached()
    (shop.repository / "PROMPT.md").write_text(PROMPT.replace("One after the other", "In another way"))
    first.let_go()
    gate.until_reached()
    tip = shop.git("rev-parse", shop.row(Plan).branch)
    assert tip == shop.git("rev-parse", "HEAD"), "what is red does not land"
    kill(run)
    assert "attempt 2 is due" not in run.out, "it is a round"
    gate.let_go()
    run = shop.start("run", "PROMPT.md")
    eventually(lambda: shop.task("prompt").status == "COMPLETE", timeout=60)
    kill(run)
    said = shop("run", "PROMPT.md", timeout=100)
    assert said.code == 0, said.out + said.err
    assert "stopped: settled: The gate is green, and there was nothing more to change." in said.out
    assert "stopped: settled: " in shop("status").out
    assert "round 2 of " in said.out
    plan = shop.row(Plan)
    assert (plan.status, plan.outcome) == ("VERIFIED", "verified")
    assert shop.started() == [("prompt", 1), ("prompt", 2), ("prompt-2", 1)]
    assert shop.landed() == ["prompt"]
    red, green = shop.attempts("prompt")
    assert (red.state, green.base_sha) == ("REJECTED", red.tip_sha)
    assert [event.payload["stopped"] for event in shop.events("rounds_ended")] == ["settled"]
    assert len(shop.events("plan_completed")) == 1
    assert shop("receipt", "verify", plan.id).code == 0
    begun = [line.at for line in shop.journal()]
    assert begun[2] - begun[1] >= 1.0, "it sleeps between rounds, through a kill too"


@pytest.mark.capability("C013")
def test_the_budget_stops_the_loop_between_rounds_and_a_higher_one_goes_on(shop: Workshop) -> None:
    """Each round costs a dollar and is not green: with one and a half, the second is stopped in the middle."""
    prepared(shop, "---\nacceptance: test -e other\nrounds: {max: 3, sleep: 0s}\n---\nMake it.\n")
    dear = {"usage": {"input_tokens": 10, "output_tokens": 1, "cost_micros": 1_000_000}}
    second = [{"write": "half", "text": "2\n"}, dear, {"hang": 90}]
    goes_on = [
        {"expect_prompt": "You were interrupted", "otherwise": second},
        {"write": "other", "text": "3\n"},
    ]
    shop.play({"prompt": [[{"write": "half", "text": "1\n"}, dear], goes_on]})
    said = shop("run", "PROMPT.md", "--max-cost", "1.5", timeout=100)
    assert said.code == 3, said.out + said.err
    assert "the budget is used up: $2.00 of $1.50" in " ".join(said.out.split())
    assert shop.started() == [("prompt", 1), ("prompt", 2)]
    assert shop.row(Plan).status == "RUNNING"
    more = shop("resume", "--max-cost", "5", timeout=100)
    assert more.code == 0, more.out + more.err
    assert shop.landed() == ["prompt"]
    assert [event.payload["stopped"] for event in shop.events("rounds_ended")] == ["green"]


@pytest.mark.capability("C053")
def test_a_goal_that_the_prompt_names_ends_the_loop_and_every_other_end_is_named(shop: Workshop) -> None:
    prepared(shop, "---\nacceptance: test -e other\nrounds: {max: 2, sleep: 0s}\n---\nMake it.\n")
    shop.play({"prompt": [[{"write": "half", "text": "1\n"}], [{"write": "other", "text": "2\n"}]]})
    said = shop("run", "PROMPT.md", "--json", timeout=100)
    assert said.code == 0, said.err
    assert said.document["plan"]["stopped"] == "green: The gate is green."
    assert shop.started() == [("prompt", 1), ("prompt", 2)]

    shop.play({"prompt": [[{"write": "half", "text": "1\n"}], [{"write": "half", "text": "2\n"}]]})
    said = shop("run", "PROMPT.md", "--new", timeout=100)
    assert said.code == 1, said.out
    assert "All rounds are used up (rounds.max is 2)" in shop.task("prompt").reason
    (failed,) = shop.events("task_failed")
    assert failed.payload["stopped"] == "rounds"

    more = shop("retry", "prompt", timeout=100)
    assert more.code == 1, more.out
    assert "Nothing changed in the last 2 rounds" in shop.task("prompt").reason
    assert [one.n for one in shop.attempts("prompt")] == [1, 2, 3, 4]
    assert len(shop.rows(Task)) == 2
    assert json.loads(shop("show", shop.newest_plan(), "--json").out)
