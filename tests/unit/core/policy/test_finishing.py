"""Which tasks may go together, what the commits say, and what a receipt's end is held against."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from loopwright.core.receipts.finishes import (
    carries_hash,
    finish_differences,
    finish_entry,
    is_made,
    squashed,
    told_once,
)
from tests.cases import each_case

from loopwright.core.gates.verdicts import gate_key
from loopwright.core.policy import finishing
from loopwright.core.policy.finishing import chosen
from loopwright.core.receipts.verify import CommitFacts, read_commit
from loopwright.core.rows.model import Finish, Outcome, Plan, Task
from loopwright.core.values.errors import NotFound, Refused
from loopwright.core.values.policy import GateCommand, Policy
from loopwright.core.values.states import FinishState, PlanState, TaskState

AT = datetime(2026, 1, 1, tzinfo=UTC)
SHA = {name: letter * 40 for name, letter in (("base", "a"), ("result", "b"), ("squash", "c"), ("tree", "d"))}


def a_task(key: str, *needs: str, status: TaskState = TaskState.COMPLETE, **more: Any) -> Task:
    return Task(
        id=f"id-{key}",
        plan_id="plan",
        key=key,
        title=f"Make {key}",
        depends_on=tuple(f"id-{one}" for one in needs),
        status=status,
        created_at=AT,
        updated_at=AT,
        **more,
    )


TASKS = (a_task("a"), a_task("b", "a"), a_task("c", "b"), a_task("d", status=TaskState.RUNNING))
PLAN = Plan(
    id="plan_1",
    project_id="p",
    loop_id="l",
    title="Rate\x1b[31m\nlimiting",
    status=PlanState.VERIFIED,
    source_sha256="",
    base_ref="trunk",
    base_sha=SHA["base"],
    branch="loopwright/plan_1/main",
    policy=Policy(),
    created_at=AT,
    updated_at=AT,
)
FINISH = Finish(
    id="finish_00000000-0000-0000-0000-000000000001",
    plan_id="plan_1",
    how="squash",
    state=FinishState.FINISHED,
    actor="user:someone",
    source_sha=SHA["result"],
    target_sha=SHA["base"],
    commit_sha=SHA["squash"],
    tree=SHA["tree"],
    verdict_id="verdict_00000000-0000-0000-0000-000000000002",
    receipt_sha256="e" * 64,
    created_at=AT,
    updated_at=AT,
    finished_at=AT,
)


@each_case(
    ("keys", "before", "taken"),
    [
        (["a"], [], ["a"]),
        (["b", "a"], [], ["a", "b"]),
        (["b"], ["id-a"], ["b"]),
        (["c", "a", "b"], [], ["a", "b", "c"]),
    ],
)
def test_tasks_go_together_with_what_they_build_on(
    keys: list[str], before: list[str], taken: list[str]
) -> None:
    assert [task.key for task in chosen(TASKS, keys, before)] == taken


@each_case(
    ("keys", "error", "words"),
    [
        (["b"], Refused, "b builds on a"),
        (["a", "c"], Refused, "c builds on b"),
        (["d"], Refused, "d is RUNNING"),
        (["a", "x"], NotFound, "no task x"),
    ],
)
def test_a_selection_that_cannot_stand_alone_is_refused(
    keys: list[str], error: type[Refused | NotFound], words: str
) -> None:
    with pytest.raises(error, match=words) as refused:
        chosen(TASKS, keys, ())
    assert refused.value.hint


def test_a_message_cannot_be_steered_by_a_title() -> None:
    evil = a_task("a", landed_sha=SHA["result"])
    evil = replace(evil, title="x\n\nLoopwright-Receipt: sha256:forged")
    text = finishing.message(PLAN, [evil], FINISH)
    assert text.splitlines()[0] == "Rate [31m limiting"
    assert [line for line in text.splitlines() if line.startswith("Loopwright-Receipt")] == [
        f"Loopwright-Receipt: sha256:{'e' * 64}"
    ]
    body = finishing.request_body(
        PLAN, [replace(evil, outcome=Outcome.VERIFIED, key="a|b")], FINISH, gates=["x"]
    )
    assert "| `a/b` |" in body


def test_a_squash_names_each_commit_that_it_stands_for() -> None:
    tasks = [a_task("a", landed_sha=SHA["result"]), a_task("b"), a_task("c", landed_sha=SHA["tree"])]

    def picked(how: str) -> list[str]:
        lines = finishing.message(PLAN, tasks, replace(FINISH, how=how)).splitlines()
        return [line for line in lines if line.startswith("Loopwright-Picked: ")]

    assert picked("squash") == [f"Loopwright-Picked: {SHA[name]}" for name in ("result", "tree")]
    assert picked("fast-forward") == [], "a merge has them all"


def test_a_task_that_was_picked_names_the_commit_that_it_was_built_from() -> None:
    evil = replace(a_task("a", landed_sha=SHA["result"]), title="x\nLoopwright-Picked: forged")
    assert finishing.picked_message(PLAN, evil, FINISH).splitlines() == [
        "feat(a): x Loopwright-Picked: forged",
        "",
        "Loopwright-Plan: plan_1",
        "Loopwright-Task: id-a",
        f"Loopwright-Picked: {SHA['result']}",
        f"Loopwright-Finish: {FINISH.id}",
        f"Loopwright-Receipt: sha256:{'e' * 64}",
    ]


@each_case(
    ("changes", "sentence"),
    [
        ({"how": finishing.FAST_FORWARD}, "trunk was moved forward to cccccccccc"),
        ({"how": finishing.SQUASH}, "squashed into trunk as cccccccccc"),
        (
            {"how": finishing.PULL_REQUEST, "request_url": "https://forge/1"},
            "pull request: https://forge/1",
        ),
    ],
)
def test_what_was_done_is_said_in_a_sentence(changes: dict[str, Any], sentence: str) -> None:
    assert finishing.done_sentence(replace(FINISH, **changes), "trunk") == sentence


def made(**changes: Any) -> dict[str, Any]:
    return finish_entry(replace(FINISH, **changes))


def test_an_end_that_found_nothing_left_to_do_stands_in_the_receipt_once():
    first = replace(FINISH, state=FinishState.FINISHED)
    idle = replace(first, target_sha=first.commit_sha)
    again = [
        replace(idle, id=f"again-{n}", created_at=FINISH.created_at + timedelta(n + 1)) for n in range(3)
    ]
    assert [one.id for one in told_once([*again, first])] == [first.id]
    assert [one.id for one in told_once(again)] == ["again-0"]
    refused = replace(again[1], state=FinishState.REFUSED)
    assert [one.id for one in told_once([first, again[0], refused])] == [first.id, "again-1"]


def receipt(one: dict[str, Any]) -> dict[str, Any]:
    gate = {"name": "g", "command": "make", "timeout_s": 600.0, "junit": None}
    key = gate_key((GateCommand(**gate),))
    ran = {
        "name": "g",
        "command": "make",
        "exit_code": 0,
        "timed_out": False,
        "known_failures": 0,
        "flaky": [],
    }
    verdict = {
        "tree": SHA["tree"],
        "gate_key": key,
        "status": "passed",
        "commands": [ran],
        "reruns": [],
        "run_id": "run_1",
    }
    verdict["checks"] = {"passed": 1, "failed": 0, "skipped": 0, "error": 0}
    task = {"id": "id-a", "key": "a", "status": "COMPLETE", "acceptance": [], "held_out": []}
    plan = {"setup": None, "gates": [gate]}
    return {"finishes": [one], "plan": plan, "tasks": [task], "verdicts": [verdict], "runs": []}


COMMIT = CommitFacts(
    parents=(SHA["base"],),
    trailers={"Loopwright-Finish": FINISH.id, "Loopwright-Receipt": f"sha256:{'e' * 64}"},
    signed=False,
)


def differences(
    one: dict[str, Any], *, tree: str | None = SHA["tree"], facts: CommitFacts = COMMIT
) -> list[str]:
    sha = one["commit_sha"]
    return finish_differences(receipt(one), trees={sha: tree}, commits={sha: facts}, frozen={})


def test_an_end_as_it_was_made_has_no_difference() -> None:
    assert differences(made()) == []
    assert squashed(receipt(made())) == {"id-a": [SHA["squash"]]}
    assert squashed(receipt(made(state=FinishState.REFUSED))) == {}
    request = made(how="pull-request", commit_sha=SHA["result"], request_url="https://forge/1")
    assert squashed(receipt(request)) == {"id-a": ["https://forge/1"]}
    assert not carries_hash(request)
    assert differences(request, facts=replace(COMMIT, trailers={})) == []


def test_what_goes_in_has_passed_what_was_held_out_from_its_tasks() -> None:
    one = made()
    held = receipt(one)
    held["tasks"][0]["held_out"] = [{"check": {**held["plan"]["gates"][0], "name": "unseen"}}]
    facts = {"trees": {SHA["squash"]: SHA["tree"]}, "commits": {SHA["squash"]: COMMIT}, "frozen": {}}
    assert any("no gate has passed" in said for said in finish_differences(held, **facts))
    held["tasks"][0]["status"] = "CANCELLED"
    assert finish_differences(held, **facts) == []


@each_case(
    ("changes", "found", "words"),
    [
        ({}, {"tree": None}, "does not exist"),
        ({}, {"tree": "f" * 40}, "was judged"),
        ({"tree": "f" * 40}, {"tree": "f" * 40}, "no gate has passed"),
        ({}, {"facts": replace(COMMIT, trailers={})}, "as Loopwright-Finish"),
        ({"receipt_sha256": "0" * 64}, {}, "as Loopwright-Receipt"),
        ({}, {"facts": replace(COMMIT, parents=("f" * 40,))}, "was not made on"),
        ({"signed": True}, {}, "has no signature"),
    ],
)
def test_every_untruth_about_an_end_is_found(
    changes: dict[str, Any], found: dict[str, Any], words: str
) -> None:
    assert any(words in one for one in differences(made(**changes), **found))


def test_an_end_that_is_none_yet_says_nothing_about_the_repository() -> None:
    for going in (made(state=FinishState.REFUSED), made(commit_sha=None)):
        assert finish_differences(receipt(going), trees={}, commits={}, frozen={}) == []


def test_a_commit_that_nobody_read_is_held_against_its_tree_alone() -> None:
    one = made()
    assert finish_differences(receipt(one), trees={SHA["squash"]: SHA["tree"]}, commits={}, frozen={}) == []


def test_an_end_of_some_tasks_is_about_those_and_is_judged_by_what_they_asked_for() -> None:
    picked = made(tasks=("id-a",))
    body = receipt(picked)
    body["tasks"] += [
        {"id": "id-b", "key": "b", "status": "COMPLETE", "acceptance": body["plan"]["gates"], "held_out": []}
    ]
    body["tasks"] += [{"id": "id-c", "key": "c", "status": "CANCELLED", "acceptance": [], "held_out": []}]
    assert squashed(body) == {"id-a": [SHA["squash"]]}
    assert squashed({**body, "finishes": [made()]}).keys() == {"id-a", "id-b"}
    body["tasks"][1]["acceptance"] = [{"name": "own", "command": "true", "timeout_s": 1.0, "junit": None}]
    tree = {SHA["squash"]: SHA["tree"]}
    assert finish_differences(body, trees=tree, commits={}, frozen={}) == [], "the other one was not taken"
    (told,) = finish_differences({**body, "finishes": [made()]}, trees=tree, commits={}, frozen={})
    assert "no gate has passed" in told


def test_a_kept_receipt_that_was_changed_is_found() -> None:
    one = made()
    told = finish_differences(receipt(one), trees={}, commits={}, frozen={one["id"]: "other"})
    assert any("not the one that was kept" in each for each in told)


def test_what_needed_no_commit_carries_no_hash() -> None:
    assert not is_made(made(commit_sha=SHA["base"]))
    assert not is_made(made(how="fast-forward", commit_sha=SHA["result"]))
    assert carries_hash(made(how="fast-forward", commit_sha=SHA["result"], tasks=("id-a",)))


def test_a_commit_is_read_as_git_prints_it() -> None:
    text = (
        f"tree {SHA['tree']}\nparent {SHA['base']}\nparent {SHA['result']}\nauthor a\ncommitter b\n"
        "gpgsig -----BEGIN SSH SIGNATURE-----\n abc\n\nTitle\n\n- a\n\nLoopwright-Finish: finish_1\n"
    )
    facts = read_commit(text)
    assert facts.parents == (SHA["base"], SHA["result"])
    assert (facts.signed, facts.trailers) == (True, {"Loopwright-Finish": "finish_1"})
