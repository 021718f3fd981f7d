"""What an evaluator of plans may say, and when it is asked."""

import json

import pytest
from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright.core.plans.evaluating import Weight
from loopwright.core.plans.plan_evaluators import (
    MANY,
    Judgement,
    as_findings,
    instructions,
    read_findings,
    reasons,
)
from loopwright.core.values.policy import GateCommand
from loopwright.ports import PlannedTask
from loopwright.prompts import packaged

TEMPLATE = packaged("parts/evaluation")
EASY = [PlannedTask(key=str(n), title="x") for n in range(MANY)]
HARD = PlannedTask(key="login", title="Passwords", complexity="high")


def said(*findings: object, summary: str = "s") -> str:
    return json.dumps({"summary": summary, "findings": findings})


def test_it_is_asked_by_policy(wording: Wording) -> None:
    assert reasons("off", [*EASY, HARD]) == ()
    wording(reasons("always", EASY[:1]))
    assert reasons("complex", EASY[1:]) == ()
    assert reasons("complex", EASY) == (f"it has {MANY} tasks",)
    wording(reasons("complex", [HARD]))


@pytest.mark.capability("C020")
def test_only_what_is_about_a_task_of_the_plan_blocks() -> None:
    blocks = {"task": "a", "severity": "blocking", "text": "no  test\nfor it"}
    found = read_findings(
        said({**blocks, "severity": "opinion"}, {**blocks, "task": "z"}, blocks), ["a", "b"]
    )
    assert not isinstance(found, str)
    summary, remarks = found
    judgement = Judgement(plan_id="p", agent="x", model=None, summary=summary, findings=remarks)
    assert [one.task for one in judgement.blocking] == ["a"]
    assert [(one.weight, one.text) for one in as_findings(judgement)] == [
        (Weight.OBJECTED, "task a: no test for it"),
        (Weight.TOLD, "task a: no test for it"),
        (Weight.TOLD, "task z: no test for it"),
    ]
    assert as_findings(None) == []


@each_case(
    ("text", "problem"),
    [
        ("I find it good", "not a JSON object"),
        ("[]", "`findings` is not a list"),
        (said("bad"), "finding 1: not an object"),
        (said({"task": "a", "severity": "grave", "text": "x"}), "finding 1: `severity` must be"),
        (said({"task": "a", "severity": "blocking", "text": " "}), "finding 1: `text` is missing"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, problem: str) -> None:
    found = read_findings(text, ["a"])
    assert isinstance(found, str)
    assert problem in found


def test_a_very_large_plan_is_shown_without_all_of_its_words() -> None:
    gates = (GateCommand(name="g", command="make test"),)
    whole = instructions(
        TEMPLATE, "t", [PlannedTask(key="a", title="x", description="y" * 1000)], gates, goal="speed"
    )
    assert "y" * 1000 in whole
    assert "make test" in whole
    assert "speed" in whole
    many = [PlannedTask(key=f"k{n}", title="x", description="y" * 1000) for n in range(250)]
    cut = instructions(TEMPLATE, "t", many, gates, goal="")
    assert "y" * 501 not in cut
    assert '"k249"' in cut
