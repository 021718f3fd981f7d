"""What people decided stands in a receipt, in words, and is held against the branch."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from tests.cases import each_case
from tests.unit.core.receipts.as_json import shape_problems, verify_receipt
from tests.unit.core.receipts.test_receipts import FACTS, RESULT, build, sha, uid
from tests.wording_plugin import Wording

from loopwright.core.receipts.events import (
    CheckoutChange,
    Override,
    checkout_changes,
    decided,
    in_words,
    overrides,
)
from loopwright.core.rows.events import RecordedEvent

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MACHINE = "loopwright"
BACK = sha("bac")


def event(kind: str, actor: str = "user:eva", **more: Any) -> RecordedEvent:
    values: dict[str, Any] = {"task": uid("ptask", 1), "payload": {}} | more
    return RecordedEvent(
        type=kind, actor=actor, n=1, id=uid("evt", 1), at=AT, prev_hash="", hash="", **values
    )


def told(kind: str, **payload: Any) -> str:
    (one,) = overrides([event(kind, payload=payload)], machine=MACHINE)
    return in_words(one)


def test_only_what_a_person_decided_is_told() -> None:
    events = [
        event("task_retried", MACHINE),
        event("task_started"),
        event("task_retried", payload={"note": "use the index"}),
    ]
    assert overrides(events, machine=MACHINE) == [
        Override(
            type="task_retried",
            actor="user:eva",
            at=AT.isoformat(),
            task=uid("ptask", 1),
            commit=None,
            took_out=(),
            why="",
            note="use the index",
        )
    ]


@each_case(
    ("kind", "payload", "words"),
    [
        ("task_cancelled", {}, "cancelled it"),
        ("task_cancelled", {"reason": "no\n longer"}, "cancelled it: no longer"),
        (
            "task_retried",
            {"note": "mind", "approved": ["t.py"]},
            "had it tried again: mind; it may change t.py",
        ),
        ("task_retried", {"approved": ["a", "b"]}, "had it tried again: it may change a, b"),
        ("plan_verifying", {}, "had the plan judged without what was cancelled"),
        (
            "source_edited",
            {"changes": ["a was ticked by hand", "b: acceptance"], "doubt": "who wrote it?"},
            "changed the source of the plan: a was ticked by hand; b: acceptance; who wrote it?",
        ),
        ("question_answered", {"question": "q", "answer": "yes"}, "answered a question: yes"),
        ("task_reopened", {"why": "rollback"}, "rolled it back"),
        ("task_reopened", {"why": "other"}, "had it done again"),
        (
            "task_reopened",
            {"why": "reject", "note": "A person looked at the work and rejected it.\n\nSlow."},
            "rejected it: Slow.",
        ),
        ("task_reopened", {"why": "reject"}, "had it done again, because it builds on what was rejected"),
    ],
)
def test_a_decision_is_told_in_plain_words_on_one_line(
    kind: str, payload: dict[str, Any], words: str
) -> None:
    assert told(kind, **payload) == words


def test_who_decided_what_about_which_task_and_when(wording: Wording) -> None:
    one, plan = overrides([event("task_cancelled"), event("plan_cancelled", task=None)], machine=MACHINE)
    keys = {uid("ptask", 1): "limiter"}
    assert decided(one, keys) == "2026-01-02 03:04 user:eva: limiter: cancelled it"
    wording(decided(plan, keys))


def test_what_was_taken_back_has_to_be_what_the_branch_takes_back() -> None:
    gone = {"commit": BACK, "took_out": [{"task": uid("ptask", 1), "sha": sha("60")}]}
    made = overrides([event("plan_rolled_back", payload=gone), event("task_reopened")], machine=MACHINE)
    receipt = build(overrides=made)
    assert not shape_problems(receipt)
    assert verify_receipt(receipt, FACTS) == [], "nobody looked at the branch"
    assert verify_receipt(receipt, replace(FACTS, taken_out={BACK: [sha("60")]})) == []
    (differs,) = verify_receipt(receipt, replace(FACTS, taken_out={}))
    assert differs == f"rollback {BACK}"
    (differs,) = verify_receipt(build(), replace(FACTS, taken_out={RESULT: [sha("60")]}))
    assert differs == f"rollback {RESULT}"


def test_a_change_of_the_checkout_is_told_without_where_its_patch_lies() -> None:
    payload = {"whose": "agent", "changes": ("a.py", "b.py"), "patch": "patches/1", "patch_sha256": "9" * 64}
    seen = event("checkout_changed", MACHINE, run=uid("run", 1), payload=payload)
    changes = checkout_changes([event("task_retried"), seen])
    assert changes == [
        CheckoutChange(
            at=AT.isoformat(),
            task=uid("ptask", 1),
            run=uid("run", 1),
            whose="agent",
            changes=("a.py", "b.py"),
            patch_sha256="9" * 64,
        )
    ]
    assert not shape_problems(build(checkout_changes=changes))
