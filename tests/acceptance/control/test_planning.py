"""From a bare goal: a packet, a plan that is judged, a person's edit, and the work."""

import json

import pytest
from tests.acceptance.control.workshop import Workshop, kill

from loopwright.core.model import Attempt, Plan

GOOD = """\
title: Greet in French
gates: [grep -q hello greet.txt]
tasks:
  - id: bonjour
    title: Say bonjour
    description: Write bonjour into the file bonjour.
    acceptance: [grep -q bonjour bonjour]
    scope: [bonjour]
"""
VAIN = GOOD.replace("grep -q bonjour bonjour", "echo fine")
BROKEN = GOOD.replace("tasks:", "task:")


def writes(text: str) -> list[dict[str, object]]:
    return [{"write": "loopwright.plan.yaml", "text": text}]


@pytest.mark.capability("C017")
@pytest.mark.capability("C018")
def test_a_goal_becomes_a_plan_that_a_person_edits_and_runs(shop: Workshop) -> None:
    """The first plan has a mistake: its author is told where, and mends it."""
    shop.play({"plan": [writes(BROKEN), writes(GOOD)], "salut": [[{"write": "salut", "text": "salut\n"}]]})
    said = shop("plan", "Greet in French, please", "--json", timeout=100)
    assert said.code == 0, said.out + said.err
    told = said.document
    path = shop.repository / "plans" / "greet-in-french-please.yaml"
    assert (told["path"], path.read_text()) == (str(path), GOOD)
    assert (shop.repository / ".loopwright" / "packets" / f"{told['packet_id']}.json").exists()
    first, second = shop.rows(Attempt)
    assert (first.failure, second.state) == ("gate", "LANDED")
    assert "loopwright.plan.yaml:3: task" in second.evidence
    assert shop.git("status", "--porcelain") == "?? plans/\n", "nothing but the plan is put into the checkout"
    path.write_text(GOOD.replace("bonjour", "salut"))
    done = shop.run(path)
    assert done.code == 0, done.out + done.err
    assert "salut" in shop.landed()
    again = shop("plan", "Greet in French, please")
    assert again.code == 2
    assert "--force" in again.err


@pytest.mark.capability("C019")
def test_a_planner_that_makes_no_usable_plan_fails_the_plan_by_its_check(shop: Workshop) -> None:
    shop.play({"plan": [writes(VAIN), writes("no plan at all\n")]})
    said = shop("plan", "Do something", "--json", timeout=100)
    assert said.code == 1, said.out + said.err
    assert not (shop.repository / "plans").exists()
    assert shop.row(Plan).status == "FAILED"
    _, second = shop.rows(Attempt)
    assert "no criterion can fail" in second.evidence
    verdict = json.loads(shop("show", "plan", "--json").out)
    assert "plan_generation" in json.dumps(verdict)


def test_a_goal_is_run_in_one_go_only_with_a_person_s_yes_and_outlives_two_kills(shop: Workshop) -> None:
    planning, working = shop.gate("planning"), shop.gate("working")
    does = [{"run": working.shell}, {"write": "bonjour", "text": "bonjour\n"}]
    shop.play({"plan": [[{"run": planning.shell}, *writes(GOOD)]], "bonjour": [does]})
    mistyped = shop("run", "my plan.yaml", "--yes")
    assert (mistyped.code, "there is no such file" in mistyped.err) == (2, True)
    refused = shop("run", "Greet in French")
    assert refused.code == 2
    assert "loopwright plan 'Greet in French'" in refused.err
    assert not (shop.home / "loopwright.db").exists(), "nothing was spent"
    for gate in (planning, working):
        run = shop.start("run", "Greet in French", "--yes")
        gate.until_reached()
        kill(run)
        gate.let_go()
    said = shop("run", "plans/greet-in-french.yaml", timeout=100)
    assert said.code == 0, said.out + said.err
    assert shop.started() == [("plan", 1), ("bonjour", 1)], "nothing is paid for twice"
    assert [plan.title for plan in shop.rows(Plan)] == ["Plan: Greet in French", "Greet in French"]
    assert "bonjour" in shop.landed()
