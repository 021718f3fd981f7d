"""Looks at the whole: which reports count, and what is to be mended because of them."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright.core.prompts.prompts import look_prompt
from loopwright.core.replies.answers import Unreadable
from loopwright.core.replies.qa import (
    AREAS,
    CODE_QUALITY,
    EVALUATION,
    EXECUTION,
    FENCE,
    MOST_ISSUES,
    STRUCTURE,
    Fix,
    QaIssue,
    QaReport,
    is_fix_of,
    read_report,
    rounds,
    schema,
    scope_of,
    told,
    with_fixes,
)
from loopwright.core.rows.model import Attempt, Plan, Task
from loopwright.core.values.policy import GateCommand, Policy
from loopwright.core.values.states import AttemptState, PlanState, TaskState
from loopwright.prompts import packaged

AT = datetime(2026, 3, 1, tzinfo=UTC)


def said(mode: str = "lite", **more: Any) -> dict[str, Any]:
    seen = [{"area": one, "result": "fine", "how": "I looked."} for one in AREAS[mode]]
    return {"summary": "All of it.", "checked": seen, "issues": [], **more}


def issue(what: str = "Typo", **more: Any) -> dict[str, Any]:
    return {"what": what, "severity": "low", **more}


def report(*issues: QaIssue) -> QaReport:
    return QaReport(mode="lite", summary="", checked=(), issues=issues)


@pytest.mark.capability("C044")
def test_the_evaluation_of_a_track_has_the_areas_of_its_evaluators_and_of_every_track() -> None:
    mode, areas = scope_of("full", EVALUATION, (CODE_QUALITY,))
    assert (mode, areas) == (EXECUTION, (STRUCTURE, CODE_QUALITY))
    assert scope_of("lite", "", (CODE_QUALITY,)) == ("lite", tuple(AREAS["lite"]))
    seen = [{"area": one, "result": "fine", "how": "I looked."} for one in areas]
    told = {"summary": "", "checked": seen, "issues": []}
    assert isinstance(read_report(told, "", mode, areas), QaReport)
    assert isinstance(read_report({**told, "checked": seen[1:]}, "", mode, areas), Unreadable)
    assert schema(mode, areas)["properties"]["checked"]["items"]["properties"]["area"]["enum"] == list(areas)


@pytest.mark.capability("C032")
@each_case("mode", list(AREAS))
def test_a_report_that_speaks_of_every_area_counts_in_either_form(mode: str) -> None:
    found = read_report(said(mode, issues=[issue(where="/a")]), "", mode)
    assert isinstance(found, QaReport)
    assert ([one.area for one in found.checked], found.mode) == (list(AREAS[mode]), mode)
    assert found.issues == (QaIssue(what="Typo", where="/a", severity="low"),)
    text = f"I looked.\n```{FENCE}\n{json.dumps(said(mode, issues=[issue(where='/a')]))}\n```\n"
    assert read_report(None, text, mode) == found
    asked = schema(mode)["properties"]["checked"]["items"]["properties"]["area"]["enum"]
    assert asked == list(AREAS[mode])


@each_case(
    ("value", "problem"),
    [
        (None, "has no block"),
        ({"summary": "fine"}, "have to be lists"),
        (said(checked=said()["checked"][1:]), "nothing usable is said of load"),
        (
            said(checked=[{"area": one, "result": "fine", "how": "..."} for one in AREAS["lite"]]),
            "load, happy_path",
        ),
        (said(checked=[*said()["checked"][1:], {"area": "load", "result": "ok", "how": "x"}, 7]), "load"),
        (said(issues=["x"]), "issue 1: not an object"),
        (said(issues=[issue(), issue("...")]), "issue 2: `what` is missing"),
        (said(issues=[issue(severity="awful")]), "`severity` must be one of critical"),
        (
            said(checked=[{"area": one, "result": "issues", "how": "x"} for one in AREAS["lite"]]),
            "there is none",
        ),
    ],
)
def test_a_report_that_leaves_something_open_is_none(value: Any, problem: str) -> None:
    found = read_report(value, "all is well", "lite")
    assert isinstance(found, Unreadable)
    assert problem in found.problem


def test_a_space_stands_for_the_underscore_of_a_name() -> None:
    value = said()
    value["checked"] = [{**one, "area": one["area"].replace("_", " ")} for one in value["checked"]]
    value["checked"][0]["result"] = "does not apply"
    report = read_report(value, "", "lite")
    assert isinstance(report, QaReport)
    assert [one.area for one in report.checked] == list(AREAS["lite"])
    assert report.checked[0].result == "does_not_apply"


def test_of_too_many_issues_the_worst_are_kept() -> None:
    many = [issue(str(n)) for n in range(MOST_ISSUES + 5)]
    found = read_report(said(issues=[*many, issue("bad", severity="critical"), many[0]]), "", "lite")
    assert isinstance(found, QaReport)
    assert (len(found.issues), found.issues[0].what) == (MOST_ISSUES, "bad")


@pytest.mark.capability("C032")
def test_each_issue_has_one_fix_that_is_open() -> None:
    issues = [
        QaIssue(what="Typo"),
        QaIssue(what="typo "),
        QaIssue(what="Slow", where="start"),
        QaIssue(what="Old"),
    ]
    known = [
        Fix(key="fix-qa-1-003", title="Fix: Slow (start)"),
        Fix(key="fix-qa-1-001", title="Fix: Typo", is_done=True),
        Fix(key="fix-qa-1-002", title="Fix: Old", is_declined=True),
    ]
    taken = [*(fix.key for fix in known), "fix-qa-10-900", "fix-qa-1-x", "fix-qa-1-007"]
    made = with_fixes(issues, "qa-1", known, taken)
    assert [(one.what, one.fix) for one in made] == [("Typo", "fix-qa-1-008"), ("Slow", "fix-qa-1-003")]
    assert is_fix_of("fix-qa-1-001", "qa-1")
    assert not is_fix_of("fix-qa-1-001", "qa-1-001"), "it is not the other's"


def test_rounds_are_counted_from_the_last_that_was_given_up() -> None:
    mended, left = report(QaIssue(what="a", fix="fix-1")), report(QaIssue(what="a"))
    assert rounds([]) == rounds([mended, left]) == 0
    assert rounds([mended, left, mended, mended]) == 2


def test_a_report_is_told_in_words_and_by_its_hash(wording: Wording) -> None:
    one = report(
        QaIssue(what="Typo", where="/a", expected="b", fix="fix-1"), QaIssue(what="Gate", by_gate=True)
    )
    wording(told(one).splitlines()[:3])
    assert told(report()) == ""
    wording(one.in_words)
    assert report(QaIssue(what="a")).in_words[-7:] == "1 issue"
    wording(report().in_words)
    assert one.sha256 == replace(one, issues=(replace(one.issues[0], fix=""),)).sha256, (
        "what was said, no more"
    )
    assert one.sha256 != report().sha256


def test_a_tester_is_told_what_to_go_through_and_how_to_report() -> None:
    plan = Plan(
        id="plan_1", project_id="p", loop_id="l", title="Shop", status=PlanState.RUNNING, source_sha256="", base_ref="",
        base_sha="", branch="", policy=Policy(), context="Sells tea.", created_at=AT, updated_at=AT,
    )  # fmt: skip
    task = Task(
        id="t", plan_id="plan_1", key="qa-1", title="Buy", description="Buy tea.", criteria=("it is hot",),
        status=TaskState.RUNNING, created_at=AT, updated_at=AT,
    )  # fmt: skip
    attempt = Attempt(
        id="a", plan_id="plan_1", task_id="t", n=2, state=AttemptState.WORKING, agent="x", note="Look well.",
        evidence="An earlier look found a fly.", created_at=AT, updated_at=AT,
    )  # fmt: skip
    gates = (GateCommand(name="tests", command="make test"),)
    prompt = look_prompt(
        packaged("qa"),
        plan,
        task,
        attempt,
        gates=gates,
        resumed=True,
        answers=(("Tea?", "Yes"),),
        asks_by_tool=False,
        by_schema=False,
    )
    for words in (
        "Task: qa-1\nAttempt: 2\nMode: full",
        "- accessibility: ",
        "make test",
        FENCE,
        "found a fly",
    ):
        assert words in prompt
    for words in ("Sells tea.", "Buy tea.", "it is hot", "Look well.", "You were interrupted", "Tea?"):
        assert words in prompt
    bare = look_prompt(
        packaged("qa"),
        replace(plan, context="", policy=Policy(qa_mode="lite")),
        replace(task, description="", criteria=()),
        replace(attempt, note="", evidence=""),
        gates=(),
        resumed=False,
        answers=(),
        asks_by_tool=True,
        by_schema=True,
    )
    assert FENCE not in bare
    assert "structured result" in bare
    assert "- happy_path: " in bare
