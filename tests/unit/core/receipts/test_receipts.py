"""Receipts: built from rows, verified against facts found again."""

import copy
import itertools
import json
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import jsonschema
import pytest
from tests.cases import each_case
from tests.unit.core.receipts.as_json import (
    build_receipt,
    fingerprint,
    named,
    recorded,
    render,
    shape_problems,
    text_of,
    verify_receipt,
)

from loopwright.core.gates.verdicts import gate_key
from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.plans.plan_evaluators import Judgement, Remark
from loopwright.core.receipts.build import GitFacts, landing_part
from loopwright.core.receipts.events import CheckoutChange
from loopwright.core.receipts.landing_hashes import landing_hash
from loopwright.core.receipts.model import ForeignCommit, read_receipt
from loopwright.core.receipts.schemas import document_schemas
from loopwright.core.receipts.verdicts import gate_commands
from loopwright.core.receipts.verify import EventFacts, Facts
from loopwright.core.replies.reviews import Finding, Severity
from loopwright.core.rows.model import Attempt, Plan, Project, Review, Role, Run, Task, Usage, VerdictRecord
from loopwright.core.values.containment import MadeWith
from loopwright.core.values.documents import document
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Check, CheckStatus, CommandResult, Rerun, Verdict, VerdictStatus
from loopwright.core.values.policy import GateCommand, HeldFile, HeldOut, Policy
from loopwright.core.values.states import AttemptState, PlanState, ReviewState, RunState, TaskState

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PUBLISHED = jsonschema.Draft202012Validator(document_schemas()["receipt"])


def uid(kind, n):
    return f"{kind}_{UUID(int=n)}"


def sha(text):
    return (text * 40)[:40]


BASE, RESULT, LAND1 = sha("ba5e"), sha("fe11"), sha("1a")
TREE1, TREE2 = sha("7e1"), sha("7e2")
GATE = (GateCommand(name="all", command="make all"),)
OWN = (GateCommand(name="own", command="make own", junit="r.xml"),)
FIRST, WHOLE = (*OWN, *GATE), (*GATE, *OWN)
"""What task 1 has to pass, and what the final tree has to."""


def verdict_record(n, tree, commands, *, status=VerdictStatus.PASSED, exit_code=0, checks=None, minutes=0):
    checks = checks or (Check(id="c", name="c", status=CheckStatus.PASSED),)
    results = tuple(
        CommandResult(
            name=c.name,
            command=c.command,
            exit_code=exit_code,
            duration_s=1.0,
            output_sha256=sha("0a") + sha("0a")[:24],
            output_bytes=5,
            tail="never in a receipt",
        )
        for c in commands
    )
    return VerdictRecord(
        id=uid("verdict", n),
        plan_id=uid("plan", 1),
        tree=tree,
        gate_key=gate_key(commands),
        run_id=uid("run", n),
        verdict=Verdict(status=status, checks=tuple(checks), commands=results),
        created_at=NOW + timedelta(minutes=minutes),
    )


JUDGED = (verdict_record(4, TREE1, FIRST), verdict_record(5, TREE2, GATE))
"""The verdicts on which both tasks landed."""


def task(n, **changes):
    return replace(
        Task(
            id=uid("ptask", n),
            plan_id=uid("plan", 1),
            key=f"t{n}",
            title=f"Task {n}",
            position=n,
            status=TaskState.COMPLETE,
            attempt_id=uid("att", n),
            created_at=NOW,
            updated_at=NOW,
        ),
        **changes,
    )


def attempt(n, /, **changes):
    return replace(
        Attempt(
            id=uid("att", n),
            plan_id=uid("plan", 1),
            task_id=uid("ptask", n),
            n=1,
            state=AttemptState.LANDED,
            agent="scripted",
            created_at=NOW,
            updated_at=NOW,
        ),
        **changes,
    )


def run(n, **changes):
    return replace(
        Run(
            id=uid("run", n),
            plan_id=uid("plan", 1),
            role=Role.IMPLEMENTER,
            state=RunState.COMPLETE,
            agent="scripted",
            agent_version="1.0",
            permission_mode="edit",
            usage=Usage(input_tokens=10, output_tokens=2),
            cost_micros=500,
            created_at=NOW + timedelta(seconds=n),
            started_at=NOW,
        ),
        **changes,
    )


PLAN = Plan(
    id=uid("plan", 1),
    project_id=uid("proj", 1),
    loop_id=uid("loop", 1),
    title="A plan",
    status=PlanState.VERIFIED,
    source_sha256="5" * 64,
    base_ref="main",
    base_sha=BASE,
    branch="loopwright/x/main",
    policy=Policy(agent="scripted"),
    gates=GATE,
    result_sha=RESULT,
    created_at=NOW,
    updated_at=NOW,
)


def rows(**changes):
    """The rows of a plan in which task 1 has acceptance of its own and task 2 has none."""
    given = {
        "project": Project(id=uid("proj", 1), name="demo", path="/home/someone/demo", created_at=NOW),
        "plan": PLAN,
        "tasks": [
            task(1, landed_sha=LAND1, acceptance=OWN, criteria=(f"`{OWN[0].command}` passes",)),
            task(2, landed_sha=RESULT, criteria=("fast",)),
        ],
        "attempts": [
            attempt(1, candidate_sha=LAND1, candidate_tree=TREE1, candidate_parent=BASE),
            attempt(2, candidate_sha=RESULT, candidate_tree=TREE2, candidate_parent=LAND1),
        ],
        "runs": [run(1), run(2), run(3, role=Role.GATE, agent=None, cost_micros=None, usage=None)],
        "verdicts": [*JUDGED, verdict_record(6, TREE2, WHOLE)],
        "git": GitFacts(
            result_tree=TREE2,
            diff_sha256="d" * 64,
            task_diff_sha256={uid("ptask", 1): "1" * 64, uid("ptask", 2): "2" * 64},
        ),
        "event_head": "e" * 64,
        "made_by": "loopwright 1.0",
    }
    return given | changes


def build(**changes):
    return build_receipt(**rows(**changes))


FACTS = Facts(
    trees={BASE: sha("b"), LAND1: TREE1, RESULT: TREE2},
    contains_base=True,
    parents={LAND1: BASE, RESULT: LAND1},
    landings={uid("ptask", 1): [LAND1], uid("ptask", 2): [RESULT]},
    diffs={uid("plan", 1): "d" * 64, uid("ptask", 1): "1" * 64, uid("ptask", 2): "2" * 64},
)


def worked(n, **changes):
    """A run that worked on a task's attempt."""
    return run(n, attempt_id=uid("att", n), task_id=uid("ptask", n), **changes)


MADE = {"sandbox": "bubblewrap", "sandbox_made_with": MadeWith(program="bubblewrap 0.11")}


def test_a_landing_carries_the_hash_of_what_was_known_of_the_work():
    runs, ended = [worked(1, exit_code=0), worked(2)], {uid("run", 1): "a" * 64}
    given = rows(runs=runs, ended=ended)
    first = landing_part(PLAN, given["tasks"][0], given["attempts"][0], runs[:1], ended)
    receipt = build_receipt(**given)
    carried = {LAND1: landing_hash(first)}
    facts = replace(FACTS, carried=carried)
    assert verify_receipt(receipt, facts) == []
    assert runs[1].id not in first, "another task's work is its own"
    for changed in ({"exit_code": 1}, {"prompt_sha256": "0" * 64}, {"sandbox": "none"}, MADE):
        other = build_receipt(**rows(runs=[replace(runs[0], **changed), runs[1]], ended=ended))
        (told,) = verify_receipt(other, facts)
        assert told == f"landing_hash {LAND1}"
    (told,) = verify_receipt(receipt, replace(FACTS, carried={LAND1: ""}))
    assert told == f"landing_hash {LAND1}"


def test_the_event_with_which_a_run_ended_must_be_in_the_chain():
    receipt = build(ended={uid("run", 1): "a" * 64})
    whole = EventFacts(hashes=frozenset({"a" * 64, "e" * 64}), head="e" * 64)
    assert verify_receipt(receipt, replace(FACTS, events=whole)) == []
    torn = replace(whole, hashes=frozenset({"e" * 64}))
    (told,) = verify_receipt(receipt, replace(FACTS, events=torn))
    assert told == f"event_missing {uid('run', 1)}"


def changed(patch):
    """A change of the checkout while the first run was going on."""
    return CheckoutChange(
        at=NOW.isoformat(),
        task=None,
        run=uid("run", 1),
        whose="unknown",
        changes=("x",),
        patch_sha256=patch,
    )


def test_whatever_else_was_written_down_has_a_hash_in_the_receipt():
    held = HeldOut(check=GATE[0], files=(HeldFile(path="unseen.py", sha256="7" * 64),))
    receipt = build(
        tasks=[task(1, landed_sha=LAND1, acceptance=OWN, held_out=(held,)), task(2, landed_sha=RESULT)],
        runs=[run(1, files_sha256="6" * 64), run(2)],
        # It was looked at twice, and the second look made the patch anew.
        checkout_changes=[changed("8" * 64), changed("9" * 64)],
    )
    assert shape_problems(json.loads(render(receipt))) == []
    known = {one.key: one.sha256 for one in recorded(receipt) if not one.of_gate}
    assert known == {
        f"{uid('run', 1)}/files": "6" * 64,
        f"{uid('run', 1)}/patch": "9" * 64,
        f"held_out/{'7' * 64}": "7" * 64,
    }
    for key in known:
        other = verify_receipt(receipt, replace(FACTS, outputs={**known, key: "0" * 64}))
        assert f"recorded_file {key}" in other
    assert not any("recorded" in one for one in verify_receipt(receipt, replace(FACTS, outputs=known)))


def test_what_changed_in_the_checkout_stands_there_whoever_did_it():
    receipt = build(checkout_changes=[changed(None)])
    assert "checkout_changed" in named(receipt)
    assert verify_receipt(receipt, FACTS) == []
    del receipt["checkout_changes"][0]
    assert "derived not_checked" in verify_receipt(receipt, FACTS)


@pytest.mark.capability("C078")
def test_a_receipt_of_a_checked_plan_is_verified_and_has_no_differences():
    receipt = build()
    assert receipt["outcome"] == "verified"
    assert [t["outcome"] for t in receipt["tasks"]] == ["verified", "verified"]
    assert verify_receipt(json.loads(render(receipt)), FACTS) == []


def test_the_same_rows_in_any_order_give_the_same_bytes():
    given = rows()
    expected = render(build())
    chance = random.Random(7)
    for _ in range(5):
        for key in ("tasks", "attempts", "runs", "verdicts"):
            chance.shuffle(given[key])
        assert render(build_receipt(**given)) == expected


def test_a_receipt_carries_facts_and_neither_output_nor_the_users_path():
    text = render(build())
    assert "never in a receipt" not in text
    assert "/home/someone" not in text
    receipt = json.loads(text)
    assert receipt["schema"] == "loopwright.receipt/2"
    assert receipt["sha256"] == fingerprint(receipt)
    first = receipt["tasks"][0]
    assert (first["landed_sha"], first["tree"], first["parent_sha"]) == (LAND1, TREE1, BASE)
    assert first["diff_sha256"] == "1" * 64
    assert receipt["verdicts"][0]["commands"][0]["exit_code"] == 0
    assert receipt["events"] == {"head": "e" * 64}


def test_every_attempt_stands_there_with_its_class_of_failure():
    first = attempt(1, id=uid("att", 9), state=AttemptState.REJECTED, failure=Failure.GATE, detail="x" * 900)
    second = attempt(1, n=2, candidate_sha=LAND1, candidate_tree=TREE1, candidate_parent=BASE)
    other = attempt(2, candidate_sha=RESULT, candidate_tree=TREE2, candidate_parent=LAND1)
    receipt = build(attempts=[second, other, first])
    attempts = receipt["tasks"][0]["attempts"]
    assert [(a["n"], a["state"], a["failure"]) for a in attempts] == [
        (1, "REJECTED", "gate"),
        (2, "LANDED", None),
    ]
    assert len(attempts[0]["detail"]) == 500


def test_known_costs_are_summed_and_the_sum_is_complete():
    receipt = build()
    assert receipt["cost"] == {"total": 1000, "complete": True, "unknown_runs": 0, "estimated_runs": 0}
    assert receipt["usage"]["input_tokens"] == {"total": 20, "complete": True, "unknown_runs": 0}
    assert receipt["usage"]["cache_read_tokens"] == {"total": None, "complete": False, "unknown_runs": 2}


def test_an_unknown_cost_stays_null_and_is_named_as_a_gap():
    unknown = run(2, cost_micros=None, usage=None, permission_mode=None, agent_version=None)
    receipt = build(runs=[run(1), unknown, run(3, started_at=None, cost_micros=None)])
    assert receipt["runs"][1]["cost_micros"] is None
    assert receipt["cost"] == {"total": 500, "complete": False, "unknown_runs": 1, "estimated_runs": 0}
    assert {"cost_unknown", "permission_mode_unknown", "agent_version_unknown"} <= {*named(receipt)}
    assert "1 of 2" in text_of(receipt, "cost_unknown")


def test_an_estimated_cost_is_summed_and_named_as_an_estimate():
    receipt = build(runs=[run(1), run(2, cost_estimated=True)])
    assert receipt["cost"] == {"total": 1000, "complete": True, "unknown_runs": 0, "estimated_runs": 1}
    assert [one["cost_estimated"] for one in receipt["runs"]] == [False, True]
    assert "cost_estimated" in named(receipt)


def test_a_plan_without_agent_runs_cost_nothing():
    assert build(runs=[])["cost"] == {"total": 0, "complete": True, "unknown_runs": 0, "estimated_runs": 0}


def test_every_note_has_a_code_and_a_sentence():
    receipt = build()
    assert receipt["gaps"] == []
    assert receipt["not_checked"] == [one["text"] for one in receipt["notes"]]
    assert named(receipt) == [
        "not_demonstrated t1",
        "no_acceptance t2",
        "criteria_in_words t2",
        "not_demonstrated t2",
        "limit_unseen",
        "limit_seen_by_author",
        "limit_one_machine",
        "permission_mode",
        "no_sandbox",
        "not_watched",
        "no_reviewer",
    ]


def test_skipped_checks_of_the_final_gate_are_a_note():
    checks = (
        Check(id="a", name="a", status=CheckStatus.PASSED),
        Check(id="b", name="b", status=CheckStatus.SKIPPED),
    )
    receipt = build(verdicts=[*JUDGED, verdict_record(6, TREE2, WHOLE, checks=checks)])
    assert "checks_skipped" in named(receipt)
    assert receipt["outcome"] == "verified"


def steered(**facts):
    """A plan whose first task changed files of the gate."""
    tries = rows()["attempts"]
    tries[0] = replace(tries[0], gate_files=GateFiles(**facts))
    return tries


def test_commands_of_new_tests_alone_need_no_verdict_with_the_files_as_they_were():
    own, gates = FIRST[:-1], FIRST[-1:]
    named = tuple(one.command for one in own)
    tries = steered(pinned=("conftest.py",), pinned_tree=sha("7"), pinned_without=named)
    assert build(attempts=tries)["tasks"][0]["outcome"] == "not_verified"
    receipt = build(attempts=tries, verdicts=[*rows()["verdicts"], verdict_record(7, sha("7"), gates)])
    assert receipt["tasks"][0]["outcome"] == "verified"
    everything = tuple(one.command for one in FIRST)
    tries = steered(pinned=("conftest.py",), pinned_tree=sha("7"), pinned_without=everything)
    assert build(attempts=tries)["tasks"][0]["outcome"] == "verified"


def test_work_that_changed_what_judges_it_needs_a_verdict_with_the_files_as_they_were():
    tries = steered(pinned=("tests/test_a.py",), pinned_tree=sha("7"))
    refused = build(attempts=tries)
    assert refused["tasks"][0]["outcome"] == "not_verified"
    receipt = build(attempts=tries, verdicts=[*rows()["verdicts"], verdict_record(7, sha("7"), FIRST)])
    assert receipt["outcome"] == "verified"
    assert verify_receipt(json.loads(render(receipt)), FACTS) == []


@each_case(
    ("facts", "note"),
    [
        ({"exempt": ("tests/test_a.py",)}, "judges_changed"),
        ({"pinned_without": ("pytest tests/test_a.py",)}, "needs_added_files"),
        ({"build_files": ("setup.py",)}, "build_files_changed"),
        ({"missing": ("a::b",)}, "tests_missing"),
        ({"suspicious": ("a.py:2 exits",)}, "suspicious"),
    ],
)
def test_changed_files_that_judge_are_a_note(facts, note):
    receipt = build(attempts=steered(**facts))
    assert (receipt["outcome"], receipt["gaps"]) == ("verified", [])
    ((path,),) = facts.values()
    assert f"{note} t1" in named(receipt)
    assert path in text_of(receipt, note)


def contradicting(allowed_by=("the setting may_change: tests/",), check="tests/test_a.py::test_a"):
    """The rows of a plan whose first task contradicts one check with the old judging files."""
    tries = steered(
        pinned=("tests/test_a.py",), pinned_tree=sha("7"), contradicted=(check,), allowed_by=allowed_by
    )
    old = verdict_record(7, sha("7"), FIRST, status=VerdictStatus.FAILED)
    return {"attempts": tries, "verdicts": [*rows()["verdicts"], old]}


def test_work_that_contradicts_a_check_counts_only_if_someone_allowed_each_contradiction():
    receipt = build(**contradicting())
    assert receipt["outcome"] == "verified"
    assert "contradicts_check t1" in named(receipt)
    told = text_of(receipt, "contradicts_check")
    assert ("tests/test_a.py::test_a" in told, "may_change: tests/" in told) == (True, True)
    assert verify_receipt(json.loads(render(receipt)), FACTS) == []
    PUBLISHED.validate(json.loads(render(receipt)))
    for nobody in ((), ("",)):
        assert build(**contradicting(nobody))["tasks"][0]["outcome"] == "not_verified"


def test_a_plan_that_failed_by_the_checks_of_its_base_commit_is_not_verified():
    failed = replace(rows()["plan"], status=PlanState.FAILED)
    assert build(plan=failed)["outcome"] == "not_verified"


def test_what_the_tasks_contradict_together_counts_only_if_someone_allowed_it():
    def plan(by):
        verdict = Verdict(status=VerdictStatus.PASSED, contradicted=("a::b",), allowed_by=(by,))
        return replace(rows()["plan"], verdict=verdict)

    receipt = build(plan=plan("me (question 1)"))
    assert receipt["outcome"] == "verified"
    told = text_of(receipt, "plan_contradicts_check")
    assert ("a::b" in told, "me (question 1)" in told) == (True, True)
    nobody = build(plan=plan(""))
    assert nobody["outcome"] == "not_verified"
    assert "plan_contradicts_check" in named(nobody)


def test_a_check_that_was_removed_with_permission_is_not_called_contradicted():
    tries = steered(removed=("a::b",), contradicted=("a::b",), allowed_by=("the setting may_change: a",))
    receipt = build(attempts=tries)
    assert "removes_check t1" in named(receipt)
    assert "contradicts_check t1" not in named(receipt)


def review(n=1, **changes):
    """A review of what task 1 landed."""
    return replace(
        Review(
            id=uid("review", n),
            plan_id=uid("plan", 1),
            task_id=uid("ptask", 1),
            attempt_id=uid("att", 1),
            n=n,
            state=ReviewState.CLEAR,
            run_id=uid("run", 7),
            agent="other",
            parent_sha=BASE,
            candidate_sha=LAND1,
            patch_sha256="9" * 64,
            reasons=("every change is reviewed",),
            summary="Fine.",
            findings=(Finding(file="a.py", line=3, severity=Severity.OPINION, text="Taste.", in_diff=True),),
            created_at=NOW + timedelta(minutes=n),
            ended_at=NOW + timedelta(minutes=n),
        ),
        **changes,
    )


def reviewed(*reviews, reviewer=None, **facts):
    """The rows of the plan with reviews of its first task."""
    tries = steered(**facts) if facts else rows()["attempts"]
    tries[0] = replace(tries[0], review_id=reviews[-1].id, fix_turns=len(reviews) - 1)
    authors = [run(1, task_id=uid("ptask", 1)), run(2, task_id=uid("ptask", 2))]
    looked = run(7, role=Role.REVIEWER, task_id=uid("ptask", 1), **(reviewer or {"agent": "other"}))
    return {"attempts": tries, "reviews": list(reviews), "runs": [*authors, looked]}


LOOKED = replace(FACTS, patches={uid("ptask", 1): "9" * 64})
BLOCKED = review(
    state=ReviewState.BLOCKING,
    patch_sha256="8" * 64,
    findings=(
        Finding(file="a.py", line=3, severity=Severity.BLOCKING, text="It breaks.", in_diff=True),
        Finding(file="a.py", line=4, severity=Severity.OPINION, text="Taste.", in_diff=True),
    ),
)


@pytest.mark.capability("C044", "C078")
def test_that_somebody_looked_is_a_fact_and_what_was_said_is_a_claim():
    receipt = build(**reviewed(BLOCKED, review(2)))
    assert receipt["outcome"] == "verified"
    first, second = receipt["reviews"]
    assert (first["state"], first["blocking"], first["opinions"], first["n"]) == ("BLOCKING", 1, 1, 1)
    assert (second["state"], second["blocking"], second["opinions"], second["n"]) == ("CLEAR", 0, 1, 2)
    assert "It breaks." not in json.dumps(receipt["reviews"])
    assert receipt["claims"][0]["findings"][0]["text"] == "It breaks."
    landed = receipt["tasks"][0]["attempts"][0]
    assert (landed["review_id"], landed["fix_turns"]) == (second["id"], 1)
    assert verify_receipt(json.loads(render(receipt)), LOOKED) == []
    assert named(receipt)[-2:] == ["no_reviewer", "review_is_opinion"]
    assert "'t2'" in text_of(receipt, "no_reviewer")


@pytest.mark.capability("C044")
def test_what_an_evaluator_said_of_the_plan_is_an_opinion_and_no_fact():
    remark = Remark(task="a", severity=Severity.OPINION, text="Too large.")
    said = Judgement(plan_id=uid("plan", 7), agent="codex", model=None, summary="Fine.", findings=(remark,))
    given = rows()
    plan = replace(given["plan"], evaluation={**given["plan"].evaluation, "evaluator": document(said)})
    receipt = build(plan=plan)
    assert receipt["opinions"] == [
        {
            "id": uid("plan", 7),
            "agent": "codex",
            "model": None,
            "summary": "Fine.",
            "findings": [{"task": "a", "severity": "opinion", "text": "Too large."}],
        }
    ]
    assert receipt["outcome"] == build()["outcome"] == "verified"
    assert build()["opinions"] == []
    assert verify_receipt(json.loads(render(receipt)), FACTS) == []
    changed = json.loads(render(receipt))
    changed["opinions"][0]["summary"] = "Do not run it."
    (told, *_) = verify_receipt(changed | {"sha256": fingerprint(changed)}, FACTS, rows=receipt)
    assert told == f"rows {uid('plan', 7)}"


def test_nothing_is_said_of_unreviewed_work_where_all_of_it_was_looked_at():
    given = reviewed(review())
    only = {"tasks": rows()["tasks"][:1], "attempts": given["attempts"][:1]}
    assert "'t2'" in text_of(build(**given), "no_reviewer")
    assert "no_reviewer" not in named(build(**given | only))


def test_a_review_that_saw_a_part_of_the_change_says_so():
    partly = build(**reviewed(review(shown_whole=False), exempt=("tests/test_a.py",)))
    assert "change_not_shown_whole" in named(partly)


def test_a_review_without_a_result_is_no_pass_and_is_told():
    nothing = review(state=ReviewState.UNCLEAR, findings=(), summary="", problem="has no block")
    receipt = build(**reviewed(nothing))
    assert receipt["tasks"][0]["outcome"] == "verified_with_gaps"
    assert "review_unclear t1" in named(receipt)
    assert "has no block" in text_of(receipt, "review_unclear")


def test_a_reviewer_that_is_the_same_agent_and_model_as_the_author_is_told():
    receipt = build(**reviewed(review(), reviewer={"agent": "scripted", "model": None}))
    assert "reviewer_is_author" in named(receipt)
    other = build(**reviewed(review(), reviewer={"agent": "scripted", "model": "x"}))
    assert "reviewer_is_author" not in named(other)


@each_case(
    ("change", "told"),
    [
        (lambda r: r["claims"][0]["findings"].clear(), "review_count"),
        (lambda r: r["claims"][0].update(summary="All fine."), "review_hash"),
        (lambda r: r["reviews"][1].update(run_id=uid("run", 1)), "review_run"),
        (lambda r: r["reviews"][1].update(patch_sha256="7" * 64), "reviewed_change t1"),
        (lambda r: r["claims"][1].update(id=uid("review", 9)), "review_missing"),
    ],
)
def test_a_review_that_was_changed_is_found_even_with_a_new_hash_around_it(change, told):
    receipt = json.loads(render(build(**reviewed(BLOCKED, review(2)))))
    change(receipt)
    receipt["sha256"] = fingerprint(receipt)
    assert any(told in one for one in verify_receipt(receipt, LOOKED)), verify_receipt(receipt, LOOKED)


def test_many_files_are_named_in_part():
    receipt = build(attempts=steered(exempt=tuple(map(str, range(12)))))
    assert any(gap.endswith("8, 9 and 2 more") for gap in receipt["not_checked"])


def excused(record, **changes):
    """The verdict of a record whose last command ended with failures that had been there before."""
    *rest, last = record.verdict.commands
    failed = replace(last, exit_code=1, tests=5, known_failures=2, known_failed=("test_a", "test_b"))
    return replace(record, verdict=replace(record.verdict, commands=(*rest, failed), **changes))


def test_failures_that_were_there_before_are_a_gap_where_they_are_still_red_on_the_result():
    receipt = build(verdicts=[*JUDGED, excused(verdict_record(6, TREE2, WHOLE))])
    assert [t["outcome"] for t in receipt["tasks"]] == ["verified", "verified"]
    assert receipt["outcome"] == "verified_with_gaps"
    (gap,) = receipt["gaps"]
    assert (gap["code"], gap["task"], bool(gap["remedy"])) == ("known_failures", None, True)
    assert gap["cause"].endswith(": test_a, test_b")
    assert "limit_deceived" in named(receipt)
    assert verify_receipt(json.loads(render(receipt)), FACTS) == []


def test_failures_that_were_there_before_and_are_green_on_the_result_are_a_note_of_their_task():
    """Two tasks whose tests exist from the start: that of the second is red while the first one lands."""
    receipt = build(verdicts=[excused(JUDGED[0]), JUDGED[1], verdict_record(6, TREE2, WHOLE)])
    assert [t["outcome"] for t in receipt["tasks"]] == ["verified", "verified"]
    assert (receipt["outcome"], receipt["gaps"]) == ("verified", [])
    assert "failed_as_before t1" in named(receipt)
    assert verify_receipt(json.loads(render(receipt)), FACTS) == []


def test_a_result_that_was_not_compared_is_a_gap_and_a_landing_that_was_not_is_a_note():
    first, second = JUDGED
    whole = verdict_record(6, TREE2, WHOLE)

    def unknown(record):
        return replace(record, verdict=replace(record.verdict, unknown_before="no disk"))

    final = build(verdicts=[first, second, unknown(whole)])
    assert (final["outcome"], [one["code"] for one in final["gaps"]]) == (
        "verified_with_gaps",
        ["not_compared"],
    )
    landed = build(verdicts=[unknown(first), second, whole])
    assert (landed["outcome"], landed["gaps"]) == ("verified", [])
    assert "task_not_compared t1" in named(landed)


def test_what_a_gate_run_left_open_is_one_gap_of_the_task_or_of_the_result():
    first, second = JUDGED
    whole = verdict_record(6, TREE2, WHOLE)

    def left(record):
        return replace(record, verdict=replace(record.verdict, left_open=("it wrote a",)))

    landed = build(verdicts=[left(first), second, whole])
    assert [(one["code"], one["task"]) for one in landed["gaps"]] == [("left_open", "t1")]
    both = build(verdicts=[left(first), second, left(whole)])
    assert [(one["code"], one["task"]) for one in both["gaps"]] == [("left_open", None)]
    assert both["tasks"][0]["outcome"] == both["outcome"] == landed["outcome"] == "verified_with_gaps"


def test_what_a_gate_notes_changes_nothing():
    first, second = JUDGED
    noted = replace(first, verdict=replace(first.verdict, notes=("1 new test was skipped",)))
    receipt = build(verdicts=[noted, second, verdict_record(6, TREE2, WHOLE)])
    assert (receipt["outcome"], receipt["gaps"]) == ("verified", [])
    assert "gate_note t1" in named(receipt)
    assert "1 new test was skipped" in text_of(receipt, "gate_note")


def test_what_is_flaky_is_a_gap_and_counts_only_with_the_run_that_shows_it():
    found = verdict_record(6, TREE2, WHOLE)
    first, *rest = found.verdict.commands
    flaky = (replace(first, exit_code=1, tests=5, flaky=("test_a",)), *rest)
    again = Rerun(folder="again-alone", alone=True, commands=(replace(first, output_sha256="b" * 64),))
    excused = replace(found, verdict=replace(found.verdict, commands=flaky, reruns=(again,)))
    receipt = build(verdicts=[*JUDGED, excused])
    assert receipt["outcome"] == "verified_with_gaps"
    PUBLISHED.validate(json.loads(render(receipt)))
    assert "flaky" in named(receipt)
    assert f"{found.run_id}/again-alone/1" in [one.key for one in recorded(receipt)]
    assert not shape_problems(json.loads(render(receipt)))
    unproven = replace(found, verdict=replace(found.verdict, commands=flaky))
    assert build(verdicts=[*JUDGED, unproven])["outcome"] == "not_verified"


def test_a_task_that_landed_with_a_flaky_check_is_named():
    first, second = JUDGED
    shaky = tuple(replace(one, flaky=("test_b", "test_a")) for one in first.verdict.commands)
    excused = replace(first, verdict=replace(first.verdict, commands=shaky))
    receipt = build(verdicts=[excused, second, verdict_record(6, TREE2, WHOLE)])
    (gap,) = receipt["gaps"]
    assert (gap["code"], gap["task"]) == ("flaky", "t1")
    assert gap["cause"].endswith(": test_a, test_b")
    whole = verdict_record(6, TREE2, WHOLE)
    shaky = tuple(replace(one, flaky=("test_a",)) for one in whole.verdict.commands)
    again = build(verdicts=[excused, second, replace(whole, verdict=replace(whole.verdict, commands=shaky))])
    assert again["gaps"] == receipt["gaps"], "the same is not stated twice"


def test_commits_on_the_branch_that_no_task_made_are_named():
    given = rows()["git"]
    other = ForeignCommit(sha=sha("f0"), subject="By hand", gate_files=("tests/test_a.py",))
    assert build()["outcome"] == "verified"
    receipt = build(git=replace(given, not_ours=(other,)))
    (gap,) = receipt["gaps"]
    assert gap["code"] == "foreign_commits"
    assert f"{sha('f0')[:10]} By hand" in gap["cause"]
    assert gap["cause"].endswith(": tests/test_a.py")
    assert receipt["outcome"] == "verified_with_gaps"


def test_the_tree_that_a_plan_started_from_had_to_pass_setup_and_gates_and_no_task():
    ready = read_receipt(build(plan=replace(PLAN, policy=replace(PLAN.policy, setup="make setup")))).plan
    assert [one.command for one in gate_commands(ready)] == ["make setup", "make all"]
    assert gate_commands(read_receipt(build()).plan) == GATE


@each_case("folder", ["../../etc", "again", None])
def test_a_second_run_is_recorded_in_no_other_folder(folder, wording):
    receipt = json.loads(render(build()))
    receipt["verdicts"][0]["reruns"] = [{"folder": folder, "alone": True, "commands": []}]
    wording(shape_problems(receipt))


@each_case("facts", ["x", {}, {"pinned": [1]}])
def test_gate_files_of_another_shape_are_no_receipt(facts):
    receipt = json.loads(render(build()))
    receipt["tasks"][0]["attempts"][0]["gate_files"] = facts
    problems = shape_problems(receipt)
    assert problems
    assert all(one.startswith("receipt.tasks[0].attempts[0].gate_files") for one in problems)


def test_setup_is_part_of_what_was_asked():
    plan = replace(PLAN, policy=replace(PLAN.policy, setup="make deps"))
    assert build(plan=plan)["outcome"] == "not_verified"
    first = GateCommand(name="setup", command="make deps", timeout_s=plan.policy.setup_timeout)
    judged = [
        verdict_record(4, TREE1, (first, *FIRST)),
        verdict_record(5, TREE2, (first, *GATE)),
        verdict_record(6, TREE2, (first, *WHOLE)),
    ]
    assert build(plan=plan, verdicts=judged)["outcome"] == "verified"


def test_without_gates_the_tasks_own_acceptance_checks_the_final_tree():
    own = [task(1, landed_sha=RESULT, acceptance=OWN)]
    tries = [attempt(1, candidate_sha=RESULT, candidate_tree=TREE2, candidate_parent=BASE)]
    judged = [verdict_record(4, TREE2, OWN)]
    receipt = build(plan=replace(PLAN, gates=()), tasks=own, attempts=tries, verdicts=judged)
    assert receipt["outcome"] == "verified"


def test_a_plan_without_anything_to_check_it_is_unverified():
    nothing = [task(1, landed_sha=LAND1), task(2, landed_sha=RESULT)]
    receipt = build(plan=replace(PLAN, gates=()), tasks=nothing)
    assert [t["outcome"] for t in receipt["tasks"]] == ["unverified", "unverified"]
    assert receipt["outcome"] == "unverified"
    assert named(receipt)[:3] == ["no_gate", "not_checked t1", "not_checked t2"]
    assert verify_receipt(receipt, FACTS) == []


def test_gate_all_must_have_passed_on_exactly_the_tree_of_the_result():
    receipt = build(
        verdicts=[verdict_record(4, TREE1, FIRST), verdict_record(5, sha("0ff"), WHOLE)],
        tasks=[task(1, landed_sha=LAND1, acceptance=OWN)],
    )
    assert receipt["outcome"] == "not_verified"
    assert receipt["gaps"][0]["code"] == "result_not_passed"


def test_the_latest_verdict_counts_and_a_contradiction_is_named():
    failed = verdict_record(9, TREE2, WHOLE, status=VerdictStatus.FAILED, exit_code=1, minutes=-5)
    receipt = build(verdicts=[verdict_record(6, TREE2, WHOLE), *JUDGED, failed])
    assert receipt["outcome"] == "verified"
    assert "verdicts_differ" in named(receipt)
    assert build(verdicts=[failed, *JUDGED])["outcome"] == "not_verified"


BAD_CHECK = (Check(id="c", name="c", status=CheckStatus.FAILED, message="why\nmore"),)
ERRORED = (
    Check(id="c", name="c", status=CheckStatus.PASSED),
    Check(id="d", name="d", status=CheckStatus.ERROR),
)


@each_case(
    "lying",
    [
        verdict_record(6, TREE2, WHOLE, exit_code=1),
        verdict_record(6, TREE2, WHOLE, checks=BAD_CHECK),
        verdict_record(6, TREE2, WHOLE, checks=ERRORED),
        replace(verdict_record(6, TREE2, OWN), gate_key=gate_key(WHOLE)),
    ],
)
def test_a_verdict_called_passed_whose_facts_disagree_does_not_pass(lying):
    receipt = build(verdicts=[*JUDGED, lying])
    assert receipt["outcome"] == "not_verified"


def test_bad_checks_are_listed_with_the_first_line_of_their_message():
    failed = verdict_record(5, TREE2, GATE, checks=BAD_CHECK, status=VerdictStatus.FAILED)
    (entry,) = build(verdicts=[failed])["verdicts"]
    assert entry["checks"] == {"passed": 0, "failed": 1, "skipped": 0, "error": 0}
    assert entry["bad"] == [{"name": "c", "status": "failed", "message": "why"}]


def waiting(**changes):
    return attempt(1, state=AttemptState.WAITING, **changes)


@each_case(
    ("one", "tries", "outcome"),
    [
        (task(1, status=TaskState.QUEUED), [], "not_verified"),
        (task(1, status=TaskState.ERROR, failure=Failure.USAGE_LIMIT), [], "not_verified"),
        (task(1, status=TaskState.QUEUED, failure=Failure.USAGE_LIMIT), [], "waiting_quota"),
        (task(1, status=TaskState.RUNNING), [waiting(failure=Failure.RATE_LIMIT)], "waiting_quota"),
        (task(1, status=TaskState.RUNNING), [waiting(wait_reason="usage_limit")], "waiting_quota"),
        (task(1, status=TaskState.RUNNING), [waiting(wait_reason="paused")], "not_verified"),
        (task(1, status=TaskState.AWAITING_RESPONSE), [], "needs_human"),
        (task(1, status=TaskState.CANCELLED), [], "cancelled"),
        (task(1), [attempt(1, candidate_tree=TREE2)], "no_change_proven"),
        (task(1), [attempt(1)], "not_verified"),
        (task(1, landed_sha=LAND1), [attempt(1, candidate_sha=RESULT)], "not_verified"),
    ],
)
def test_the_outcome_of_a_task_follows_from_its_rows_alone(one, tries, outcome):
    assert build(tasks=[one], attempts=tries)["tasks"][0]["outcome"] == outcome


def test_a_cancelled_plan_says_so():
    assert build(plan=replace(PLAN, status=PlanState.CANCELLED))["outcome"] == "cancelled"


def resealed(receipt):
    receipt["sha256"] = fingerprint(receipt)
    return receipt


def set_path(value, path, new):
    *above, last = path
    for part in above:
        value = value[part]
    value[last] = new


OTHER = {"name": "setup", "command": "true", "timeout_s": 1.0, "junit": None}
FORGERIES = [
    (("outcome",), "verified_with_gaps", "derived outcome"),
    (("cost", "total"), 1, "derived cost"),
    (("usage", "input_tokens", "total"), 1, "derived usage"),
    (("not_checked",), [], "derived not_checked"),
    (("tasks", 0, "outcome"), "cancelled", "task_outcome t1"),
    (("plan", "gates"), [], "derived outcome"),
    (("plan", "setup"), OTHER, "derived outcome"),
    (("tasks", 0, "acceptance"), [], "task_outcome t1"),
    (("tasks", 0, "landed_sha"), sha("dead"), f"commit_missing {sha('dead')}"),
    (("tasks", 0, "landed_sha"), None, "task_did_not_land t1"),
    (("tasks", 0, "tree"), TREE2, "landed_tree t1"),
    (("tasks", 0, "parent_sha"), RESULT, "landed_parent t1"),
    (("tasks", 0, "diff_sha256"), "9" * 64, "task_diff t1"),
    (("plan", "base_sha"), sha("dead"), f"commit_missing {sha('dead')}"),
    (("plan", "result_tree"), TREE1, f"result_tree {RESULT}"),
    (("plan", "diff_sha256"), "9" * 64, f"result_diff {RESULT}"),
    (("verdicts", 2, "status"), "failed", "derived outcome"),
    (("verdicts", 2, "commands"), [], "derived outcome"),
]


@each_case(("path", "new", "difference"), FORGERIES)
def test_a_forged_receipt_is_found_although_its_hash_was_computed_again(path, new, difference):
    receipt = copy.deepcopy(build())
    set_path(receipt, path, new)
    assert difference in verify_receipt(resealed(receipt), FACTS)


def test_a_changed_receipt_no_longer_matches_its_own_hash():
    receipt = build() | {"made_by": "someone else"}
    assert verify_receipt(receipt, FACTS) == ["hash"]


@each_case(
    ("changes", "difference"),
    [
        ({"contains_base": False}, f"base_not_contained {BASE}"),
        ({"trees": {BASE: None, LAND1: TREE1, RESULT: TREE2}}, f"commit_missing {BASE}"),
        (
            {"landings": {uid("ptask", 1): [LAND1, RESULT], uid("ptask", 2): [RESULT]}},
            "landings t1",
        ),
        ({"landings": {}}, "landings t2"),
        ({"outputs": {f"{uid('run', 5)}/1": "0" * 64}}, f"recorded_file {uid('run', 5)}/1"),
        ({"damage": "missing blob"}, "repository_damaged"),
        ({"script": "true\n", "expected_script": "false\n"}, "script"),
        ({"script": None, "expected_script": "false\n"}, "script"),
    ],
)
def test_facts_that_say_something_else_are_differences(changes, difference):
    assert difference in verify_receipt(build(), replace(FACTS, **changes))


def test_an_output_that_was_found_again_is_no_difference():
    outputs = {f"{uid('run', 5)}/1": sha("0a") + sha("0a")[:24]}
    assert verify_receipt(build(), replace(FACTS, outputs=outputs)) == []


def test_a_plan_without_a_result_yet_is_compared_as_far_as_it_got():
    receipt = build(
        plan=replace(PLAN, result_sha=None, status=PlanState.RUNNING),
        tasks=[task(1, status=TaskState.QUEUED)],
        attempts=[],
        git=GitFacts(result_tree=None),
    )
    assert receipt["outcome"] == "not_verified"
    assert verify_receipt(receipt, replace(FACTS, landings={})) == []


def test_a_task_that_landed_before_there_is_a_result_is_compared_by_its_commit():
    running = build(
        plan=replace(PLAN, result_sha=None, status=PlanState.RUNNING),
        git=replace(rows()["git"], result_tree=None),
    )
    facts = replace(FACTS, landings={}, contains_base=False)
    assert verify_receipt(running, facts) == []
    assert verify_receipt(running, replace(facts, trees=FACTS.trees | {LAND1: TREE2}))


def test_a_receipt_without_a_whole_diff_is_not_compared_in_that():
    receipt = build(git=replace(rows()["git"], diff_sha256=None))
    assert verify_receipt(receipt, FACTS) == []


@each_case(
    ("path", "new"),
    [
        (("schema",), "loopwright.receipt/1"),
        (("plan",), None),
        (("tasks",), {}),
        (("tasks", 0), 1),
        (("tasks", 0, "id"), "../../etc"),
        (("tasks", 0, "landed_sha"), "--output=x"),
        (("tasks", 0, "status"), "DONE"),
        (("tasks", 0, "criteria"), True),
        (("tasks", 0, "acceptance"), [{"name": "x"}]),
        (("tasks", 0, "held_out"), [{"check": OTHER}]),
        (("plan", "base_sha"), None),
        (("plan", "gates"), [{"name": "a", "command": "b", "timeout_s": "9", "junit": None}]),
        (("verdicts", 0, "run_id"), "/etc/passwd"),
        (("verdicts", 0, "commands", 0, "timed_out"), 0),
        (("verdicts", 0, "commands", 0, "exit_code"), "0"),
        (("runs", 0, "usage"), {}),
        (("runs", 0, "cost_micros"), -1),
        (("runs", 0, "cost_estimated"), 1),
    ],
)
def test_a_value_of_another_shape_is_named_with_its_place_and_nothing_of_it_is_used(path, new):
    receipt = copy.deepcopy(build())
    set_path(receipt, path, new)
    problems = verify_receipt(resealed(receipt), FACTS)
    assert not PUBLISHED.is_valid(receipt), "the schema that others have says so too"
    place = "receipt" + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path)
    assert problems
    assert all(problem.startswith(place) for problem in problems)


@each_case("value", [None, [], "x", {}, {"schema": "loopwright.receipt/2"}])
def test_something_that_is_no_receipt_at_all_is_refused(value):
    assert shape_problems(value)
    assert verify_receipt(value, FACTS) == shape_problems(value)


def test_a_receipt_with_one_task_twice_is_refused(wording):
    receipt = build()
    receipt["tasks"] = [receipt["tasks"][0]] * 2
    wording(shape_problems(receipt))


def test_every_single_changed_byte_of_a_receipt_is_noticed():
    """Whatever leaf is changed, with or without a new hash over it, the first check at least sees it."""
    receipt = build()

    def leaves(value, path=()):
        if isinstance(value, dict | list):
            items = value.items() if isinstance(value, dict) else enumerate(value)
            return itertools.chain.from_iterable(leaves(item, (*path, key)) for key, item in items)
        return iter([path])

    for path in leaves(receipt):
        changed = copy.deepcopy(receipt)
        set_path(changed, path, "changed")
        assert verify_receipt(changed, FACTS), path


def test_the_chain_of_events_is_compared_where_it_is_at_hand():
    receipt = build()
    whole = EventFacts(hashes=frozenset({"e" * 64, "f" * 64}), head="f" * 64)
    assert verify_receipt(receipt, replace(FACTS, events=whole)) == []
    broken = replace(FACTS, events=replace(whole, broken_at=7))
    assert verify_receipt(receipt, broken) == ["event_chain 7"]
    other = replace(FACTS, events=EventFacts(hashes=frozenset({"f" * 64}), head="f" * 64))
    assert verify_receipt(receipt, other) == [f"event_missing {'e' * 64}"]
    assert verify_receipt(build(event_head=None), replace(FACTS, events=whole)) == []


def test_only_the_home_s_own_record_makes_a_commit_one_that_was_cleaned_away():
    receipt = build()
    told = EventFacts(hashes=frozenset({"e" * 64}), head="e" * 64, cleaned=frozenset({LAND1, RESULT}))
    gone = Facts(
        trees={BASE: sha("b"), LAND1: None, RESULT: None},
        contains_base=False,
        parents={},
        landings={},
        diffs={},
        events=told,
        rows=read_receipt(receipt),
    )
    assert verify_receipt(receipt, gone) == []
    assert gone.cleaned == {LAND1, RESULT}, "so it does not agree either"
    for other in (
        replace(gone, events=None),
        replace(gone, events=replace(told, broken_at=1)),
        replace(gone, events=replace(told, cleaned=frozenset())),
        replace(gone, rows=None),
    ):
        assert not other.cleaned
        assert f"commit_missing {RESULT}" in verify_receipt(receipt, other)
    part = replace(gone, events=replace(told, cleaned=frozenset({RESULT})))
    assert f"commit_missing {LAND1}" in verify_receipt(receipt, part)
    more = replace(gone, trees={**gone.trees, BASE: None})
    assert verify_receipt(receipt, more) == [f"commit_missing {BASE}"]


def test_a_result_without_a_cancelled_task_is_verified_with_gaps_by_what_was_asked_of_the_rest():
    other = GateCommand(name="other", command="test other")
    given_up = task(3, status=TaskState.CANCELLED, attempt_id=None, acceptance=(other,))
    receipt = build(tasks=[*rows()["tasks"], given_up])
    assert receipt["outcome"] == "verified_with_gaps"
    assert [(one["code"], one["task"]) for one in receipt["gaps"]] == [("task_cancelled", "t3")]
    assert verify_receipt(receipt, FACTS) == []


def test_what_a_task_changed_outside_of_its_scope_is_named():
    declared = task(1, landed_sha=LAND1, acceptance=OWN, scope=("src/**", "docs"))
    free = task(2, landed_sha=RESULT)
    landed = {"candidate_sha": LAND1, "candidate_tree": TREE1, "candidate_parent": BASE}
    attempts = [
        attempt(1, **landed, touched=("src/a.py", "docs/b.md", "setup.py", "lib/c.py")),
        attempt(2, candidate_sha=RESULT, candidate_tree=TREE2, candidate_parent=LAND1, touched=("any.py",)),
    ]
    receipt = build(tasks=[declared, free], attempts=attempts)
    assert [one for one in named(receipt) if "scope" in one] == ["outside_scope t1"]
    assert text_of(receipt, "outside_scope").endswith(": setup.py, lib/c.py")
    assert receipt["outcome"] == "verified"


def test_gates_that_test_an_installed_build_are_a_gap():
    receipt = build(plan=replace(PLAN, policy=replace(PLAN.policy, installed_gates=("all",))))
    (gap,) = receipt["gaps"]
    assert gap["code"] == "installed_build"


def test_a_fix_that_need_not_fail_without_its_work_is_a_note():
    tasks = rows()["tasks"]
    fixed = [replace(tasks[0], type="fix"), *tasks[1:]]
    receipt = build(tasks=fixed, attempts=steered(red_skipped="it changes no code"))
    assert "need_not_show t1" in named(receipt)


def test_a_review_without_a_result_is_a_note():
    failed = review(state=ReviewState.WITHDRAWN, problem="no answer")
    receipt = build(**reviewed(failed))
    assert "review_without_result" in named(receipt)


def test_a_manual_step_is_a_note_and_no_gap():
    done = task(3, manual=True, attempt_id=None, reason="done by hand: it is blue")
    skipped = replace(task(4, manual=True, attempt_id=None), status=TaskState.CANCELLED)
    receipt = build(tasks=[*rows()["tasks"], done, skipped])
    assert (receipt["outcome"], receipt["gaps"]) == ("verified", [])
    assert {"settled_by_hand t3", "settled_by_hand t4"} <= {*named(receipt)}
    waiting = replace(task(5, manual=True, attempt_id=None), status=TaskState.AWAITING_RESPONSE)
    assert build(tasks=[*rows()["tasks"], waiting])["outcome"] == "needs_human"
