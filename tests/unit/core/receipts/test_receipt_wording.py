"""The sentence of every gap, note and difference of a receipt, each code at least once."""

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.unit.core.gates.test_held_out import HELD
from tests.unit.core.receipts.as_json import Json, fingerprint, render
from tests.unit.core.receipts.test_receipt_finishes import COMMIT, FINISH, SQUASH
from tests.unit.core.receipts.test_receipt_looks import looked
from tests.unit.core.receipts.test_receipts import (
    BASE,
    BLOCKED,
    FACTS,
    JUDGED,
    LAND1,
    LOOKED,
    NOW,
    OWN,
    PLAN,
    RESULT,
    TREE1,
    TREE2,
    WHOLE,
    attempt,
    build,
    changed,
    contradicting,
    excused,
    review,
    reviewed,
    rows,
    run,
    set_path,
    sha,
    steered,
    task,
    uid,
    verdict_record,
)
from tests.unit.core.receipts.test_unseen_proof import strict
from tests.wording_plugin import Wording

from loopwright.core.gates.held_out import held_commands
from loopwright.core.receipts.differences import Difference, DifferenceCode
from loopwright.core.receipts.events import Override
from loopwright.core.receipts.gaps import GapCode, NoteCode
from loopwright.core.receipts.model import ForeignCommit, read_receipt
from loopwright.core.receipts.verify import EventFacts, Facts, verify_receipt
from loopwright.core.values.findings import Check, CheckStatus, Verdict, VerdictStatus
from loopwright.core.values.states import ReviewState, TaskState


def _receipts() -> Iterator[Json]:
    """Yield receipts that have every gap and note between them."""
    first, second = JUDGED
    whole = verdict_record(6, TREE2, WHOLE)
    tasks, plan = rows()["tasks"], rows()["plan"]

    def judged(record: Any, **about: Any) -> Any:
        return replace(record, verdict=replace(record.verdict, **about))

    def commands(record: Any, **about: Any) -> Any:
        return judged(record, commands=tuple(replace(one, **about) for one in record.verdict.commands))

    yield build()
    yield build(plan=strict())
    yield build(attempts=steered(red_proof=False), tasks=[replace(tasks[0], type="bug"), tasks[1]])
    yield build(attempts=steered(red_missing="no disk"), tasks=[replace(tasks[0], type="bug"), tasks[1]])
    yield build(
        attempts=steered(red_skipped="it changes no code"), tasks=[replace(tasks[0], type="fix"), tasks[1]]
    )
    yield build(attempts=steered(red_proof=False))
    yield build(
        attempts=steered(
            exempt=("a",), pinned_without=("b",), build_files=("c",), missing=("d",), suspicious=("e",)
        )
    )
    yield build(**contradicting())
    yield build(attempts=steered(removed=("a::b",), contradicted=("a::b",), allowed_by=("me",)))
    yield build(
        plan=replace(
            plan, verdict=Verdict(status=VerdictStatus.PASSED, contradicted=("a::b",), allowed_by=("me",))
        )
    )
    yield build(
        **reviewed(review(state=ReviewState.UNCLEAR, findings=(), summary="", problem="has no block"))
    )
    yield build(**reviewed(review(state=ReviewState.WITHDRAWN, problem="no answer")))
    yield build(**reviewed(review(shown_whole=False), reviewer={"agent": "scripted", "model": None}))
    yield build(verdicts=[first, second, excused(whole)])
    yield build(verdicts=[excused(first), judged(second, unknown_before="no disk", notes=("x",)), whole])
    yield build(
        verdicts=[judged(first, left_open=("it wrote a",)), second, judged(whole, unknown_before="y")]
    )
    yield build(
        verdicts=[commands(first, flaky=("test_a",)), second, judged(whole, left_open=("it wrote a",))]
    )
    yield build(verdicts=[first, second, commands(whole, flaky=("test_a",), reported=True, tests=3)])
    yield build(
        verdicts=[
            first,
            second,
            whole,
            verdict_record(9, TREE2, WHOLE, status=VerdictStatus.FAILED, exit_code=1, minutes=-5),
        ]
    )
    passed = Check(id="a", name="a", status=CheckStatus.PASSED)
    skipped = Check(id="b", name="b", status=CheckStatus.SKIPPED)
    yield build(verdicts=[first, second, verdict_record(6, TREE2, WHOLE, checks=(passed, skipped))])
    yield build(verdicts=[first, second, commands(whole, command="cargo test")])
    other = ForeignCommit(sha=sha("f0"), subject="By hand", gate_files=("tests/test_a.py",))
    yield build(git=replace(rows()["git"], not_ours=(other,)))
    yield build(plan=replace(PLAN, policy=replace(PLAN.policy, installed_gates=("all",))))
    cancelled = task(3, status=TaskState.CANCELLED, attempt_id=None)
    by_hand = task(4, manual=True, attempt_id=None, reason="done by hand: it is blue")
    yield build(tasks=[*tasks, cancelled, by_hand])
    yield build(plan=replace(PLAN, gates=()), tasks=[task(1, landed_sha=LAND1), task(2, landed_sha=RESULT)])
    yield build(verdicts=[first, second, verdict_record(5, sha("0ff"), WHOLE)], tasks=tasks[:1])
    held = [replace(tasks[0], held_out=HELD), tasks[1]]
    landed = [*rows()["verdicts"], verdict_record(7, TREE1, held_commands(HELD))]
    yield build(tasks=held, verdicts=landed)
    refused = verdict_record(9, TREE2, held_commands(HELD), status=VerdictStatus.FAILED, exit_code=1)
    yield build(tasks=held, verdicts=[*landed, refused])
    yield build(finishes=[replace(FINISH, verdict_id=None)], checkout_changes=[changed(None)])
    unknown = run(2, cost_micros=None, usage=None, permission_mode=None, agent_version=None)
    yield build(runs=[run(1, cost_estimated=True), unknown])
    scoped = task(1, landed_sha=LAND1, acceptance=OWN, scope=("src/**",))
    wide = attempt(1, candidate_sha=LAND1, candidate_tree=TREE1, candidate_parent=BASE, touched=("setup.py",))
    yield build(tasks=[scoped, tasks[1]], attempts=[wide, rows()["attempts"][1]])
    yield build(**looked())
    yield build(**looked(passes=False))


def test_every_gap_and_note_has_its_sentence(wording: Wording) -> None:
    said: dict[str, set[str]] = {}
    for receipt in _receipts():
        for one in receipt["gaps"]:
            said.setdefault(f"gap {one['code']}", set()).add(f"{one['cause']} | {one['remedy']}")
        for one in receipt["notes"]:
            said.setdefault(f"note {one['code']}", set()).add(one["text"])
    wording(*(f"{code}: {text}" for code in sorted(said) for text in sorted(said[code])))
    assert {*said} == {f"gap {one.value}" for one in GapCode} | {f"note {one.value}" for one in NoteCode}


def _forged(receipt: Json, *changes: tuple[tuple[Any, ...], Any]) -> Json:
    made = copy.deepcopy(json.loads(render(receipt)))
    for path, new in changes:
        set_path(made, path, new)
    made["sha256"] = fingerprint(made)
    return made


def _differences() -> Iterator[list[Difference]]:
    """Yield what is found wrong with receipts, each code between them."""

    def found(receipt: Json, facts: Facts = FACTS, *, rows: Json | None = None) -> list[Difference]:
        return verify_receipt(
            read_receipt(receipt), replace(facts, rows=read_receipt(rows)) if rows else facts
        )

    receipt = build()
    yield found(receipt | {"made_by": "someone else"})
    for path, new in (
        (("outcome",), "unverified"),
        (("tasks", 0, "outcome"), "cancelled"),
        (("tasks", 0, "landed_sha"), sha("dead")),
        (("tasks", 0, "landed_sha"), None),
        (("tasks", 0, "tree"), TREE2),
        (("tasks", 0, "parent_sha"), RESULT),
        (("tasks", 0, "diff_sha256"), "9" * 64),
        (("plan", "result_tree"), TREE1),
        (("plan", "diff_sha256"), "9" * 64),
        (("runs", 0, "sandbox"), "container"),
    ):
        yield found(_forged(receipt, (path, new)))
    yield found(receipt, replace(FACTS, contains_base=False, damage="missing blob", landings={}))
    yield found(receipt, replace(FACTS, carried={LAND1: ""}, script="true\n", taken_out={RESULT: [LAND1]}))
    yield found(receipt, replace(FACTS, outputs={f"{uid('run', 5)}/1": "0" * 64}))
    yield found(receipt, replace(FACTS, events=EventFacts(hashes=frozenset(), head="", broken_at=7)))
    looks = build(**looked())
    yield found(_forged(looks, (("reports", 1, "summary"), "Fine.")))
    yield found(_forged(looks, (("looks", 0, "issues"), 1)))
    yield found(_forged(looks, (("looks", 1, "id"), uid("att", 9))))
    reviews = build(**reviewed(BLOCKED, review(2)))
    yield found(_forged(reviews, (("claims", 0, "findings"), [])), LOOKED)
    yield found(_forged(reviews, (("claims", 1, "id"), uid("review", 9))), LOOKED)
    yield found(_forged(reviews, (("reviews", 1, "run_id"), uid("run", 1))), LOOKED)
    yield found(_forged(reviews, (("reviews", 1, "patch_sha256"), "7" * 64)), LOOKED)
    yield found(build(attempts=steered(red_tree=sha("8"), red_proof=True)))
    yield found(build(attempts=steered(red_seen=("a::b",))))
    wrong = replace(COMMIT, parents=(), trailers={})
    signed = build(finishes=[replace(FINISH, signed=True)])
    trees = {**FACTS.trees, SQUASH: TREE1}
    frozen = {FINISH.id: "other"}
    yield found(signed, replace(FACTS, trees=trees, commits={SQUASH: wrong}, frozen=frozen))
    unpassed = build(finishes=[replace(FINISH, tree=sha("f0"))])
    yield found(unpassed, replace(FACTS, trees={**FACTS.trees, SQUASH: sha("f0")}, commits={SQUASH: COMMIT}))
    decided = Override(
        type="task_retried",
        actor="a",
        at=NOW.isoformat(),
        task=None,
        commit=None,
        took_out=(),
        why="",
        note="",
    )
    other = ForeignCommit(sha="f0" * 20, subject="By hand", gate_files=())
    home = build(
        plan=replace(PLAN, title="Other"),
        runs=[*rows()["runs"], run(9)],
        overrides=[decided],
        checkout_changes=[changed(None)],
        git=replace(rows()["git"], not_ours=(other,)),
    )
    yield found(receipt, rows=home)


def test_every_difference_has_its_sentence(wording: Wording) -> None:
    said: dict[str, set[str]] = {}
    for found in _differences():
        for one in found:
            if one.code is not DifferenceCode.DERIVED or one.subject == "outcome":
                said.setdefault(one.code, set()).add(one.text)
    wording(*(f"{code}: {text}" for code in sorted(said) for text in sorted(said[code])))
    assert {*said} == {one.value for one in DifferenceCode}
