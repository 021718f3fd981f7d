"""An independent reviewer before work lands, through the real command line; the scripted agent plays both parts."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.control.workshop import Workshop, kill
from tests.acceptance.sandbox import Steps, task
from tests.unit.core.receipts.as_json import named

from loopwright.core.rows.model import Plan, Review, Role, Run
from loopwright.core.values.states import AttemptState, ReviewState, RunState

SPECIAL = "def double(n):\n    if n == 2:\n        return 4\n    return 0\n"
RIGHT = "def double(n):\n    return n * 2\n"
ASKS = "python3 -B -c 'from double import double; assert double(2) == 4'"
OBJECTION = "Only 2 works: double(3) is 0."
OBJECTS = {"file": "double.py", "line": 2, "severity": "blocking", "text": OBJECTION}
"""What a reviewer finds that thinks of another input than the test has."""

LEARNS: Steps = [
    {"expect_prompt": OBJECTION, "otherwise": [{"write": "double.py", "text": SPECIAL}]},
    {"write": "double.py", "text": RIGHT},
    {"claim": "mended"},
]
"""An agent that writes the tested value into the code, until it is told that this was seen."""
HONEST: Steps = [{"write": "double.py", "text": RIGHT}]


def play(shop: Workshop, attempts: list[Steps], *rounds: Steps, gate: str = "true", **more: Any) -> Path:
    """Write a plan of one task, the work of which every round of review looks at."""
    script = {"journal": "journal.txt", "tasks": {"double": attempts}, "reviews": {"double": list(rounds)}}
    shop.script.write_text(json.dumps(script))
    shop.program.env |= {"LOOPWRIGHT_REVIEW__MODE": "always", "LOOPWRIGHT_REVIEW__MODEL": "critic"}
    return shop.plan("double", [task("double", ASKS, **more)], gates=[{"name": "gate", "run": gate}])


def receipt(shop: Workshop) -> dict[str, Any]:
    """Return the receipt of the plan, after it was verified as a stranger would."""
    path = shop.place / "receipt.json"
    shop("receipt", "show", "--output", str(path))
    verified = shop("receipt", "verify", str(path))
    assert verified.code == 0, verified.out + verified.err
    return dict(json.loads(path.read_text()))


def prompt(shop: Workshop, run: Run) -> str:
    return (shop.home / "runs" / run.id / "prompt.md").read_text()


@pytest.mark.capability("C031", "C037", "C044")
def test_a_special_cased_input_is_found_mended_and_lands_with_its_reviews(shop: Workshop) -> None:
    """It changes the gate's script too, as its scope allows: the review covers that."""
    (shop.repository / "check.sh").write_text("true\n")
    shop.git("add", "-A")
    shop.git("commit", "-q", "-m", "a gate")
    meddles = [{"write": "double.py", "text": "def double(n): return 'mine'\n"}, {"review": [OBJECTS]}]
    learns = [{"write": "check.sh", "text": "true # and so on\n"}, *LEARNS]
    plan = play(
        shop, [learns], meddles, [{"review": []}], gate="sh check.sh", scope=["double.py", "check.sh"]
    )
    said = shop.run(plan)
    assert said.code == 0, said.out + said.err
    row = shop.row(Plan)
    assert row.outcome == "verified", "somebody has looked at what it did to the gate"
    assert shop.git("show", f"{row.branch}:double.py") == RIGHT, (
        "neither special-cased nor the reviewer's own"
    )
    first, second = shop.rows(Review)
    assert [(one.state, one.n) for one in (first, second)] == [("BLOCKING", 1), ("CLEAR", 2)]
    assert first.patch_sha256 != second.patch_sha256
    (attempt,) = shop.attempts("double")
    assert (attempt.fix_turns, attempt.review_id) == (1, second.id)

    works, looks = shop.rows(Run, role=Role.IMPLEMENTER), shop.rows(Run, role=Role.REVIEWER)
    assert {run.permission_mode for run in looks} == {"read-only"}
    assert {run.model for run in looks} == {"critic"}
    assert works[0].session_ref == works[1].session_ref, "the author mends it in its own conversation"
    assert len({run.session_ref for run in (works[0], *looks)}) == 3, "and nobody reviews in that"
    assert "    +    if n == 2:" in prompt(shop, looks[0])
    assert f"- double.py:2: {OBJECTION}" in prompt(shop, works[1])
    assert "You were interrupted" not in prompt(shop, works[1])
    assert list((shop.home / "trees").iterdir()) == []

    facts = receipt(shop)
    assert [(one["state"], one["blocking"]) for one in facts["reviews"]] == [("BLOCKING", 1), ("CLEAR", 0)]
    assert OBJECTION in json.dumps(facts["claims"])
    assert OBJECTION not in json.dumps(facts["reviews"])
    assert not {"judges_changed double", "review_unclear double"} & {*named(facts)}
    shown = shop("show", "double").out
    assert "review 1: scripted critic objects to 1" in shown
    assert f"✘ double.py:2: {OBJECTION}" in shown
    assert "reviewed" in shop("status").out
    assert shop("status", "--json").document["plan"]["tasks"][0]["review"] == "CLEAR"
    assert "Review: 2" not in shop("logs", "double", "--role", "agent").out
    assert "I looked at all of it." in shop("logs", "double", "--role", "reviewer").out
    assert "1 blocking, 1 clear" in shop("receipt", "show").out

    (recorded,) = (shop.home / "runs" / looks[1].id / "output").iterdir()
    recorded.write_bytes(recorded.read_bytes().replace(b"I looked", b"I peeked"))
    found = shop("receipt", "verify")
    assert found.code == 1
    assert "what the reviewer said" in found.out


def test_how_it_was_before_a_fix_is_tried_once_however_often_its_change_is_looked_at(shop: Workshop) -> None:
    said = shop.run(play(shop, [LEARNS], [{"review": [OBJECTS]}], [{"review": []}], type="bug"))
    assert said.code == 0, said.out + said.err
    assert len(shop.rows(Review)) == 2
    (before,) = shop.rows(Run, role=Role.BASELINE)
    (attempt,) = shop.attempts("double")
    assert before.attempt_id == attempt.id
    facts = receipt(shop)["tasks"][0]["attempts"][0]["gate_files"]
    assert facts["red_proof"] is True


def test_an_answer_that_nobody_can_read_is_asked_for_once_more_and_is_never_a_pass(shop: Workshop) -> None:
    said = shop.run(play(shop, [HONEST], [{"claim": "Looks good to me! Approved, done, ship it."}]))
    assert said.code == 4, said.out + said.err
    assert shop.row(Plan).outcome == "verified_with_gaps"
    review = shop.row(Review)
    assert (review.state, review.tries) == (ReviewState.UNCLEAR, 2)
    first, second = shop.rows(Run, role=Role.REVIEWER)
    assert second.session_ref == first.session_ref
    assert "could not be read: your last message has no block ```loopwright-review" in prompt(shop, second)
    assert "review_unclear double" in named(receipt(shop))
    assert "had no result" in shop("show", "double").out
    assert "review without result" in shop("status").out


@pytest.mark.capability("C044")
def test_a_worker_that_is_killed_during_a_review_costs_no_second_one(shop: Workshop) -> None:
    door = shop.gate("door")
    going = shop.start("run", str(play(shop, [HONEST], [door.step, {"review": []}])))
    shop.until_started("review of double")
    kill(going)
    (run,) = shop.rows(Run, role=Role.REVIEWER)
    assert run.state is RunState.RUNNING
    assert "reviews it" in shop("status").out
    door.let_go()
    resumed = shop("resume", timeout=100)
    assert resumed.code == 0, resumed.out + resumed.err
    assert shop.row(Review).state is ReviewState.CLEAR
    assert [(run.role, run.state) for run in shop.rows(Run) if run.agent] == [
        (Role.IMPLEMENTER, RunState.COMPLETE),
        (Role.REVIEWER, RunState.COMPLETE),
    ]
    assert shop.started() == [("double", 1), ("review of double", 1)]
    assert shop.landed() == ["double"]


def test_a_reviewer_waits_for_its_account_and_what_nobody_mends_is_rejected(shop: Workshop) -> None:
    stubborn = [{"write": "double.py", "text": SPECIAL}]
    looks = [{"expect_prompt": "if n == 2", "otherwise": [{"review": []}]}, {"usage_limit": 1}]
    limited = [{"expect_prompt": "You were interrupted", "otherwise": looks}, {"review": [OBJECTS]}]
    plan = play(shop, [stubborn, LEARNS], limited)
    shop.program.env["LOOPWRIGHT_REVIEW__MAX_TURNS"] = "1"
    said = shop.run(plan)
    assert said.code == 0, said.out + said.err
    assert len(shop.events("attempt_waiting")) == 1
    first, second = shop.attempts("double")
    assert (first.state, first.failure, first.fix_turns) == (AttemptState.REJECTED, "review", 1)
    assert first.detail == "a reviewer still objects after 1 turn to fix it: double.py:2"
    assert OBJECTION in second.evidence
    # One round, which met the limit, for both tries of the first attempt; one for the work of the second.
    assert [one.state for one in shop.rows(Review)] == [ReviewState.BLOCKING, ReviewState.CLEAR]
    assert len(shop.rows(Run, role=Role.REVIEWER)) == 3
    assert shop.git("show", f"{shop.row(Plan).branch}:double.py") == RIGHT


def test_a_review_costs_at_most_its_share_and_then_is_unclear(shop: Workshop) -> None:
    def spent(dollars: float) -> dict[str, Any]:
        return {"usage": {"input_tokens": 1, "output_tokens": 1, "cost_micros": round(dollars * 1_000_000)}}

    dear = [spent(0.10), spent(0.16), {"hang": 90}]
    said = shop.run(play(shop, [[*HONEST, spent(1.0)]], dear))
    assert said.code == 4, said.out + said.err
    (run,) = shop.rows(Run, role=Role.REVIEWER)
    assert (run.max_cost_micros, run.cost_micros, run.failure) == (150_000, 160_000, "budget")
    review = shop.row(Review)
    assert (review.state, review.tries) == (ReviewState.UNCLEAR, 1), "it is one call"
    assert "as much as the reviews of its task may" in review.problem
    assert shop.events("budget_near") == [], "the loop itself has no limit"
    assert shop.landed() == ["double"]
    receipt(shop)
