"""Which tasks may go together, what the commits say, and what a receipt's end is held against."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.cases import each_case

from loopwright.core.policy import finishing
from loopwright.core.policy.finishing import chosen
from loopwright.core.rows.model import Finish, Outcome, Plan, Task
from loopwright.core.values.errors import NotFound, Refused
from loopwright.core.values.policy import Policy
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
