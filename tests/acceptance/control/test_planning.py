"""From a bare goal: a packet, a plan that is judged, a person's edit, and the work."""

import json
from typing import Any

import pytest
from tests.acceptance.control.greeting import BROKEN, GOAL, MISTAKE, NAME, PLAN, VAIN, block
from tests.acceptance.control.workshop import Workshop, kill
from tests.waiting import eventually

from loopwright.core.rows.model import Attempt, Plan, Role, Run, Task
from loopwright.core.values.permissions import Access


def answers(text: str) -> list[dict[str, Any]]:
    return [{"claim": block(text)}]


@pytest.mark.capability("C017")
@pytest.mark.capability("C018")
def test_a_goal_becomes_a_plan_that_a_person_edits_and_runs(shop: Workshop) -> None:
    """The first plan has a mistake: its author is told where, and mends it. It is killed in the middle of that."""
    shop.program.env |= {"LOOPWRIGHT_PLANNER__MODEL": "thinker", "LOOPWRIGHT_SETUP": "echo no >setup; false"}
    meddles = [{"write": "greet.txt", "text": "mine\n"}, {"claim": block(BROKEN)}]
    gate = shop.gate("thinking")
    shop.play(
        {"plan": [meddles, [gate.step, *answers(PLAN)]], "salut": [[{"write": "salut", "text": "salut\n"}]]}
    )
    going = shop.start("plan", GOAL, "--json")
    eventually(lambda: ("plan", 2) in shop.started(), timeout=60)
    kill(going)
    gate.let_go()
    said = shop("plan", GOAL, "--json", timeout=100)
    assert said.code == 0, said.out + said.err
    told = said.document
    path = shop.repository / "plans" / NAME
    assert (told["path"], path.read_text()) == (str(path), PLAN)
    base = told["plan"]["base"]
    assert (base["gates"], base["acceptance"]) == ([], []), (
        "what an agent wrote is run once a person has read it"
    )
    assert (shop.repository / ".loopwright" / "inspection-packets" / f"{told['packet_id']}.json").exists()
    first, second = shop.rows(Attempt)
    assert (first.failure, second.state) == ("gate", "LANDED")
    assert MISTAKE in second.evidence
    runs = shop.rows(Run, role=Role.PLANNER)
    assert {(run.agent, run.model, run.permission_mode) for run in runs} == {
        ("scripted", "thinker", Access.READ_ONLY)
    }
    prompt = (shop.home / "runs" / runs[-1].id / "prompt.md").read_text()
    assert GOAL in prompt
    assert "    task:\n" in prompt, "what it mends is shown to it"
    branch = shop.row(Plan).branch
    changed = shop.git("diff", "--name-only", f"trunk..{branch}")
    assert changed == "loopwright.plan.yaml\n", "whatever else a planner does counts for nothing"
    assert shop.git("status", "--porcelain") == "?? plans/\n", "nothing but the plan is put into the checkout"
    path.write_text(PLAN.replace("bonjour", "salut"))
    del shop.program.env["LOOPWRIGHT_SETUP"]
    done = shop.run(path)
    assert done.code == 0, done.out + done.err
    assert "salut" in shop.landed()
    (task,) = shop.rows(Task, key="salut")
    assert [one.check.command for one in task.held_out] == ["test $(wc -l <salut) = 1"], (
        "the planner wrote it"
    )
    again = shop("plan", GOAL)
    assert again.code == 2
    assert "--force" in again.err
    shop.play({"plan": [answers(PLAN)]})
    planned = shop("plan", GOAL, "--force", timeout=100)
    assert planned.code == 0, planned.out + planned.err
    assert "estimate from 1 task done here before: " in " ".join(planned.out.split())
    assert " side by side" in planned.out


@pytest.mark.more
@pytest.mark.capability("C019")
def test_a_planner_that_makes_no_usable_plan_fails_the_plan_by_its_check(shop: Workshop) -> None:
    """The same command tries again."""
    shop.play({"plan": [answers(VAIN), [{"claim": "I would rather not."}]]})
    nothing = shop("plan", "Do something", "--packet", "pkt_0")
    assert (nothing.code, "no packet begins with 'pkt_0'" in nothing.err) == (2, True)
    packet = shop("inspect", "--goal", "the goal of before", "--json").document["packet"]["packet_id"]
    said = shop("plan", "Do something", "--packet", packet[:20], timeout=100)
    assert said.code == 1, said.out + said.err
    assert "instead of a plan the answer has: I would rather not." in said.out
    assert "spec_check" not in said.out + shop("show", "plan").out
    assert "the goal of before" in shop.row(Task).description
    assert not (shop.repository / "plans").exists()
    assert shop.row(Plan).status == "FAILED"
    _, second = shop.rows(Attempt)
    assert "no criterion can fail" in second.evidence
    verdict = json.dumps(json.loads(shop("show", "plan", "--json").out))
    assert "plan_generation" in verdict
    assert "instead of a plan the answer has: I would rather not." in verdict
    settles = PLAN + "settings:\n  permission_mode: sandboxed-all\n"
    shop.play({"plan": [answers(settles), answers(PLAN)]})
    said = shop("plan", "Do something", "--json", timeout=100)
    assert said.code == 0, said.out + said.err
    assert "settings: they are not part of what you plan" in shop.rows(Attempt)[-1].evidence


def test_a_goal_is_run_in_one_go_only_with_a_person_s_yes_and_outlives_two_kills(shop: Workshop) -> None:
    planning, working = shop.gate("planning"), shop.gate("working")
    does = [{"run": working.shell}, {"write": "bonjour", "text": "bonjour\n"}]
    shop.play({"plan": [[{"run": planning.shell}, *answers(PLAN)]], "bonjour": [does]})
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
    other = shop("run", "Greet, in French!", "--yes")
    assert (other.code, "plans/greet-in-french.yaml exists already" in other.err) == (2, True), "another goal"
    said = shop("run", "Greet in French", "--yes", timeout=100)
    assert said.code == 0, said.out + said.err
    assert shop.started() == [("plan", 1), ("bonjour", 1)], "nothing is paid for twice"
    assert [plan.title for plan in shop.rows(Plan)] == ["Plan: Greet in French", "Greet in French"]
    assert "bonjour" in shop.landed()


@pytest.mark.timeout(240)
@pytest.mark.capability("C020")
def test_an_evaluator_that_objects_sends_a_plan_back_once_and_keeps_it_from_running(shop: Workshop) -> None:
    """It is another model, in a conversation of its own, and its word holds until a person says otherwise."""
    shop.program.env |= {"LOOPWRIGHT_EVALUATOR__MODE": "always", "LOOPWRIGHT_EVALUATOR__MODEL": "critic"}
    objects = {"task": "bonjour", "severity": "blocking", "text": "Nobody says it aloud."}
    nowhere = {**objects, "task": "bonsoir", "text": "There is no such task."}

    def says(*findings: dict[str, str]) -> list[dict[str, Any]]:
        text = json.dumps({"summary": "Looked.", "findings": findings}) + "\n"
        return [{"claim": block(text, "loopwright-evaluation")}]

    mends = [{"expect_prompt": objects["text"], "otherwise": answers(PLAN)}, *answers(PLAN + "# aloud\n")]
    judges = [{"expect_prompt": "Say bonjour", "otherwise": []}, *says(nowhere, objects)]
    shop.play(
        {"plan": [mends], "evaluate": [judges], "bonjour": [[{"write": "bonjour", "text": "bonjour\n"}]]}
    )
    said = shop("plan", GOAL, timeout=200)
    assert said.code == 1, said.out + said.err
    assert "no estimate: no task was done in this project yet" in said.out
    assert "objection: task bonjour: Nobody says it aloud." in said.out
    assert "opinion: task bonsoir: There is no such task." in said.out, "what is about no task blocks nothing"
    path = shop.repository / "plans" / NAME
    assert path.read_text() == PLAN + "# aloud\n", "it went back to the planner"
    evaluations = shop.rows(Run, role=Role.PLAN_EVALUATOR)
    assert [(run.model, run.permission_mode) for run in evaluations] == [("critic", Access.READ_ONLY)] * 2
    sessions = {run.session_ref for run in shop.rows(Run, role=(Role.PLANNER, Role.PLAN_EVALUATOR))}
    assert len(sessions) == 4

    refused = shop.run(path)
    assert refused.code == 2
    assert "task bonjour: Nobody says it aloud." in refused.err
    assert "--despite" in refused.err
    assert len(shop.rows(Run, role=Role.PLAN_EVALUATOR)) == 2, "the same plan is not judged twice"
    done = shop.run(path, "--despite", "it is loud enough")
    assert done.code == 0, done.out + done.err
    evaluation = shop.rows(Plan)[-1].evaluation
    assert (evaluation["passed"], evaluation["despite"]) == (False, "it is loud enough")
    again = shop("plan", "check", str(path))
    assert "these were done before, by title and checks: bonjour (plan_" in " ".join(again.out.split())
