"""Which changes are reviewed, and what becomes of a reviewer's answer."""

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.replies.answers import Unreadable
from loopwright.core.replies.reviews import (
    MOST_FINDINGS,
    SCHEMA,
    Answer,
    Finding,
    Severity,
    in_words,
    is_risky,
    outcome,
    read_answer,
    reasons,
    said_hash,
)
from loopwright.core.values.patches import ChangedFile, Patch
from loopwright.core.values.policy import ReviewPolicy

PATCH = Patch(
    sha256="0" * 64,
    files=(ChangedFile(path="src/a.py", spans=((5, 9), (20, 22)), added=4, removed=1),),
    text="",
    is_whole=True,
)
RISKY, ALWAYS = ReviewPolicy(mode="risky"), ReviewPolicy(mode="always")


def one(**changes: Any) -> dict[str, Any]:
    return {"file": "src/a.py", "line": 6, "severity": "blocking", "text": "It breaks.", **changes}


def answered(*findings: Any, **more: Any) -> Answer | Unreadable:
    return read_answer({"summary": "I looked.", "findings": list(findings), **more}, "", PATCH)


def found(*findings: Any) -> tuple[Finding, ...]:
    answer = answered(*findings)
    assert isinstance(answer, Answer), answer
    return answer.findings


# --- how much ------------------------------------------------------------------------------------------


def test_off_reviews_nothing_and_always_reviews_everything(wording: Wording) -> None:
    assert reasons(ReviewPolicy(), PATCH, GateFiles(exempt=("t.py",))) == ()
    wording(reasons(ALWAYS, PATCH, GateFiles()))


def test_a_small_change_of_an_ordinary_file_is_not_risky() -> None:
    assert reasons(RISKY, PATCH, GateFiles(added_tests=3)) == ()


@pytest.mark.capability("C031")
@each_case(
    ("facts", "why"),
    [
        ({"contradicted": ("tests/t.py::test_a",)}, "it contradicts existing checks: tests/t.py::test_a"),
        (
            {"missing": tuple("abcdefg")},
            "tests that ran before do not run any more: a, b, c, d, e and 2 more",
        ),
        ({"build_files": ("setup.py",)}, "it changes build files that may steer the gate: setup.py"),
    ],
)
def test_what_was_done_to_the_gate_is_a_reason(facts: dict[str, Any], why: str) -> None:
    assert reasons(RISKY, PATCH, GateFiles(**facts)) == (why,)
    changed = GateFiles(pinned=("tests/t.py",), exempt=("tests/u.py",))
    assert reasons(RISKY, PATCH, changed) == (), "the old checks pass with the new code"


@pytest.mark.capability("C031")
def test_a_complex_task_is_a_reason() -> None:
    assert reasons(RISKY, PATCH, GateFiles(), complexity="high") == ("the task is complex",)
    assert reasons(RISKY, PATCH, GateFiles(), complexity="low") == ()


@pytest.mark.capability("C031")
@each_case(
    ("complexity", "asked"),
    [
        ("high", {"complex", "size", "place", "gate"}),
        ("medium", {"size", "place", "gate"}),
        ("low", {"gate"}),
    ],
)
def test_where_complexity_decides_it_decides_which_reasons_count(complexity: str, asked: set[str]) -> None:
    """A hard task is reviewed whatever it changed, an easy one only when it touched what judges it."""
    policy = replace(RISKY, mode="complex", lines=4)
    words = {
        "the task is complex": "complex",
        "5 lines changed, more than 4": "size",
        "it changes places where mistakes are dear: auth.py": "place",
        "it contradicts existing checks: t.py": "gate",
    }
    patch = replace(PATCH, files=(ChangedFile(path="auth.py", added=5),))
    found = reasons(policy, patch, GateFiles(contradicted=("t.py",)), complexity=complexity)
    assert {words[one] for one in found} == asked
    plain = reasons(replace(policy, lines=5), PATCH, GateFiles(), complexity=complexity)
    assert bool(plain) is (complexity == "high")


def test_size_and_place_are_reasons() -> None:
    assert reasons(replace(RISKY, lines=5), PATCH, GateFiles()) == ()
    assert reasons(replace(RISKY, lines=4), PATCH, GateFiles()) == ("5 lines changed, more than 4",)
    moved = replace(PATCH, files=(ChangedFile(path="web/src/auth.py"),))
    assert reasons(RISKY, moved, GateFiles(), subfolder="web") == (
        "it changes places where mistakes are dear: src/auth.py",
    )


@each_case(
    ("path", "risky"),
    [
        ("src/auth.py", True),
        ("src/OAuthClient.ts", True),
        ("src/UserPassword.java", True),
        ("db/migrations/0001_first.sql", True),
        ("Dockerfile", True),
        (".github/workflows/ci.yml", True),
        ("src/author.py", False),
        ("src/tokenizer.py", False),
        ("README.md", False),
    ],
)
def test_risky_places_are_known_by_the_words_in_their_names(path: str, risky: bool) -> None:
    assert is_risky(path, ()) is risky


def test_patterns_of_the_settings_add_places_and_take_them_out_and_the_last_decides() -> None:
    assert is_risky("src/core/a.py", ("src/core",))
    assert not is_risky("src/core/a.py", ("src/core", "!src/core/a.py"))
    assert not is_risky("src/auth.py", ("!**/auth.py",))
    assert is_risky("src/auth/a.py", ("docs/**", "lib/**")), "what none of them names is known by its words"
    assert not is_risky("src/a.py", ("docs/**", "lib/**"))


# --- reading answers -------------------------------------------------------------------------------------


def test_a_finding_on_a_line_of_the_change_blocks() -> None:
    assert found(one(), one(line=22, severity="opinion", text="Longer than needed.")) == (
        Finding(file="src/a.py", line=6, severity=Severity.BLOCKING, text="It breaks.", in_diff=True),
        Finding(
            file="src/a.py", line=22, severity=Severity.OPINION, text="Longer than needed.", in_diff=True
        ),
    )


@each_case("elsewhere", [{"line": 10}, {"line": None}, {"line": -3}, {"file": "src/b.py"}])
def test_a_finding_elsewhere_is_kept_as_an_opinion(elsewhere: dict[str, Any]) -> None:
    (finding,) = found(one(**elsewhere))
    assert (finding.severity, finding.in_diff) == (Severity.OPINION, False)
    assert finding.text == "It breaks."


@each_case(
    ("value", "problem"),
    [
        ({"findings": "none"}, "`findings` is not a list"),
        ({}, "`findings` is not a list"),
        ({"findings": [7]}, "finding 1: not an object"),
        ({"findings": [one(), one(severity="fatal")]}, "finding 2: `severity` must be blocking or opinion"),
        ({"findings": [one(text=" ")]}, "finding 1: `text` is missing"),
        ({"findings": [one(file=None)]}, "finding 1: `file` is missing"),
        ({"findings": [one(line="six")]}, "finding 1: `line` is not a whole number"),
        ({"findings": [one(line=True)]}, "finding 1: `line` is not a whole number"),
    ],
)
def test_what_cannot_be_read_is_never_a_pass(value: dict[str, Any], problem: str) -> None:
    assert read_answer(value, "", PATCH) == Unreadable(problem=problem)


@each_case("text", ["", "LGTM, ship it", "```json\n{half\n```", "[]", "```loopwright-review\n7\n```"])
def test_words_without_an_answer_in_them_are_no_answer(text: str, wording: Wording) -> None:
    answer = read_answer(None, text, PATCH)
    assert isinstance(answer, Unreadable)
    wording(answer.problem)


@each_case(
    "form",
    [
        "Well.\n```loopwright-review\n{}\n```\n",
        "{}",
        '```json\n{{"x": 1}}\n```\n```loopwright-review\n{}\n```',
    ],
)
def test_an_answer_is_found_in_the_last_words(form: str) -> None:
    text = (
        form.replace("{}", json.dumps({"summary": "s", "findings": [one()]}))
        .replace("{{", "{")
        .replace("}}", "}")
    )
    answer = read_answer(None, text, PATCH)
    assert isinstance(answer, Answer), text
    assert len(answer.blocking) == 1


@each_case(
    ("findings", "decision", "decides", "state"),
    [
        ([], "approve", False, "CLEAR"),
        ([], "approve", True, "CLEAR"),
        ([], None, False, "CLEAR"),
        ([], None, True, "UNCLEAR"),
        ([], "unclear", False, "UNCLEAR"),
        ([], "object", False, "UNCLEAR"),
        ([one(line=10)], "object", True, "UNCLEAR"),
        ([one()], "approve", True, "BLOCKING"),
        ([one()], "unclear", False, "BLOCKING"),
    ],
)
def test_only_an_approval_without_objections_is_clear(
    findings: list[Any], decision: str | None, decides: bool, state: str
) -> None:
    answer = answered(*findings, decision=decision)
    assert isinstance(answer, Answer)
    ended, problem = outcome(answer, decides=decides)
    assert (ended, bool(problem)) == (state, state == "UNCLEAR")


def test_a_decision_in_other_words_cannot_be_read() -> None:
    assert answered(decision="approved") == Unreadable(problem="`decision` must be approve, object, unclear")


def test_of_very_many_findings_those_that_block_are_kept_and_doubles_are_one() -> None:
    many = [one(severity="opinion", text=f"{n}") for n in range(MOST_FINDINGS)]
    kept = found(*many, one(), one())
    assert len(kept) == MOST_FINDINGS
    assert kept[0].severity is Severity.BLOCKING
    assert kept[1].severity is Severity.OPINION


def test_odd_text_is_made_storable_and_short() -> None:
    (finding,) = found(one(text="a\0b\ud800" + "x" * 5000))
    assert finding.text.startswith("ab?x")
    assert len(finding.text) == 2000


def test_the_schema_asks_for_what_is_read() -> None:
    item = SCHEMA["properties"]["findings"]["items"]
    assert sorted(item["required"]) == sorted(item["properties"]) == sorted(one())
    assert item["properties"]["severity"]["enum"] == list(Severity)


def test_findings_are_told_with_their_place() -> None:
    first, second = found(one(text="It\nbreaks."), one(line=None, file="b"))
    assert in_words((first, second)) == "- src/a.py:6: It\n  breaks.\n- b: It breaks."
    assert said_hash("s", (first,)) != said_hash("s", (second,))
    assert said_hash("s", (first,)) != said_hash("t", (first,))
