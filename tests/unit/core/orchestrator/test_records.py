"""The records of an orchestrator folder: their shapes, what agrees between them, and who writes which file."""

import json
from dataclasses import fields
from typing import Any

import jsonschema
import pytest
from tests.cases import each_case
from tests.unit.core.orchestrator import samples
from tests.unit.core.orchestrator.samples import (
    APPROVED,
    LINEAGE,
    LIVE,
    REJECTED,
    UPDATE,
    fan_out,
    integration,
    plan,
    review,
    selection,
    state,
    view,
    worker,
)

from loopwright.core.orchestrator.checks import (
    closeout_problems,
    fan_out_problems,
    lineage_problems,
    observed,
    plan_problems,
    review_problems,
    selection_problems,
    unmerged,
)
from loopwright.core.orchestrator.manifest import (
    foreign_to,
    owner_of,
    role_file,
    round_file,
    update_file,
    worker_file,
    worktree,
)
from loopwright.core.orchestrator.records import (
    Lineage,
    ReviewRecord,
    RoundPlan,
    Selection,
    read_record,
    read_state,
    record_schemas,
)
from loopwright.core.values.documents import plain
from loopwright.core.values.round_states import RoundRole
from loopwright.core.values.shapes import Misshapen

PLAN_PATH = "orchestrator/rounds/round-001/plan.md"


@pytest.mark.capability("C006")
def test_what_the_schemas_accept_is_read_and_what_they_refuse_is_not() -> None:
    schemas = record_schemas()
    made = {
        "orchestrator_selection": selection(),
        "orchestrator_round_plan": fan_out(worker("a", "src/a"), worker("b", "src/b")),
        "orchestrator_review": review(),
        "orchestrator_closeout": samples.closeout(),
        "orchestrator_update": state(roadmap_update=UPDATE).roadmap_update,
    }
    for name, record in made.items():
        jsonschema.validate(json.loads(json.dumps(plain(record))), schemas[name])
    jsonschema.validate(REJECTED, schemas["orchestrator_review"])
    for broken in ({"decision": "maybe"}, {"round_id": "../x"}, {"evidence_summary": " "}):
        with pytest.raises(Misshapen):
            review(**broken)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(REJECTED | {"round_id": "../x"}, schemas["orchestrator_review"])
    assert "retry-v1" in json.dumps(schemas["orchestrator_retry"])


@pytest.mark.capability("C006")
@each_case("name", [one.name for one in fields(Lineage)])
def test_a_record_without_a_part_of_its_lineage_is_refused_with_its_place(name: str) -> None:
    shape = {key: value for key, value in APPROVED.items() if key != name}
    with pytest.raises(Misshapen) as caught:
        read_record(ReviewRecord, shape, "review-record.json")
    assert caught.value.problems == (f"review-record.json.{name}: missing",)


def test_a_record_that_is_no_object_or_holds_none_is_refused() -> None:
    for value in ([], {**plain(selection()), "scheduler": 3}):
        with pytest.raises(Misshapen):
            read_record(Selection, value, "x")


def test_fields_of_older_contracts_are_not_read() -> None:
    assert review(merge_notes="x", roadmap_closeout={**APPROVED["roadmap_closeout"], "old": 1}) == review()
    older = state(roadmap_style="strategy-backlog", round_artifacts={}, stage=None, contract_version=2)
    assert older == state()


def test_an_error_of_any_form_counts_and_a_retry_of_another_controller_does_not() -> None:
    live = {**LIVE, "resume_error": {"why": "lost"}}
    found = state(
        resume_errors={"controller": "planner failed", "old": None, "more": {"at": 3}},
        active_rounds=[live],
        roadmap_update={**UPDATE, "resume_error": "rejected three times"},
        retry={"attempt": 2},
    )
    assert found.errors == {
        "controller": "planner failed",
        "more": '{"at": 3}',
        "round-001": '{"why": "lost"}',
        "roadmap_update": "rejected three times",
    }
    assert found.retry is None
    assert state(resume_errors="planner failed").errors == {"controller": "planner failed"}
    assert state().errors == {}
    for broken in ("nothing", {"active_rounds": 3}, {"active_rounds": [3]}):
        with pytest.raises(Misshapen):
            read_state(broken)


def test_a_retry_is_found_by_its_subject() -> None:
    entry = {
        "subject_id": "round-001",
        "stage": "implement",
        "mechanism": "same-role",
        "attempt": 2,
        "same_mechanism": 1,
        "review_cycles": 1,
        "reason": "no test",
    }
    found = state(retry={"schema_version": "retry-v1", "entries": [entry]})
    retry = found.retry_of("round-001")
    assert retry is not None
    assert retry.attempt == 2
    assert found.retry_of("round-002") is state().retry_of("round-001") is None


@each_case(
    ("more", "words"),
    [
        ({}, ""),
        ({"round_id": "round-002"}, "round_id is 'round-002', expected 'round-001'"),
        ({"roadmap_revision": "rev-000"}, "expected 'rev-001'"),
        ({"milestone_id": "milestone-9"}, "has no milestone 'milestone-9'"),
        ({"milestone_id": "milestone-2", "direction_id": "direction-2a"}, "depends on an unfinished"),
        ({"direction_id": "direction-9"}, "has no direction 'direction-9'"),
    ],
)
def test_a_selection_is_lawful_only_for_what_is_ready_in_the_active_roadmap(
    more: dict[str, Any], words: str
) -> None:
    found = selection_problems(selection(**more), state(), view(), "round-001")
    assert bool(found) is bool(words)
    assert words in "\n".join(found)


def test_lineage_is_that_of_the_selection() -> None:
    assert not lineage_problems(plan(), selection(), "x")
    for name in LINEAGE:
        other = {name: "other/place" if name == "roadmap_dir" else "other"}
        (found,) = lineage_problems(plan(**other), selection(), "round-plan-record.json")
        assert found.startswith(f"round-plan-record.json: {name} is 'other")


@pytest.mark.capability("C073")
@each_case(
    ("made", "words"),
    [
        (plan(), ""),
        (plan(plan_path="elsewhere.md"), "plan_path is 'elsewhere.md'"),
        (plan(workers=[worker("a", "src")]), "workers must be empty"),
        (plan(worker_mode="fanout"), "there must be workers and an integration"),
        (fan_out(worker("a", "src/a"), worker("b", "src/b")), ""),
        (fan_out(worker("a", "src/a"), worker("b", "src")), "the write scopes of a and b overlap"),
        (fan_out(worker("a", "src/a"), worker("a", "src/b")), "the same worker_id"),
        (fan_out(worker("a")), "a has no write_scope"),
        (fan_out(worker("a", "src/a", depends_on_worker_ids=["b"]), worker("b", "b")), "depends on 'b'"),
        (fan_out(worker("a", "src/a"), into=integration()), "integration does not depend on a"),
        (fan_out(worker("a", "src/a"), into=integration("a", "z")), "depends on 'z', which is not a worker"),
    ],
)
def test_workers_work_side_by_side_only_in_scopes_that_are_apart(made: RoundPlan, words: str) -> None:
    found = plan_problems(made, selection(), PLAN_PATH)
    assert bool(found) is bool(words)
    assert words in "\n".join(found)


def test_a_worker_that_does_not_block_the_integration_may_come_later() -> None:
    later = worker("b", "src/b", blocks_integration=False)
    made = fan_out(worker("a", "src/a"), later, into=integration("a"))
    assert not fan_out_problems(made)


def test_where_a_worker_stands_is_derived() -> None:
    made = fan_out(worker("a", "a"), worker("b", "b"), worker("c", "c"))
    started = {"a": True, "b": True}
    assert observed(made, started, {"a": True}, integrated=False) == {
        "a": "complete",
        "b": "running",
        "c": "pending",
    }
    assert set(observed(made, started, {}, integrated=True).values()) == {"integrated"}


_SEMANTIC = {"mode": "semantic-update-required", "semantic_update_required_reason": "split"}


@each_case(
    ("shape", "more", "words"),
    [
        (APPROVED, {}, ""),
        (APPROVED, {"milestone_id": "milestone-2"}, "milestone_id"),
        (APPROVED, {"roadmap_closeout": None}, "classifies the closeout"),
        (APPROVED, {"roadmap_closeout": _SEMANTIC}, ""),
        (APPROVED, {"roadmap_closeout": {"mode": "semantic-update-required"}}, "reason is empty"),
        (
            APPROVED,
            {"roadmap_closeout": {**APPROVED["roadmap_closeout"], **_SEMANTIC}},
            "lists no edits",
        ),
        (
            APPROVED,
            {"roadmap_closeout": {"mode": "status-only", "semantic_update_required_reason": "x"}},
            "has no semantic_update_required_reason",
        ),
        (
            APPROVED,
            {
                "roadmap_closeout": {
                    "mode": "status-only",
                    "history_entries": [{"anchor_id": "nowhere", "text": "x"}],
                }
            },
            "has no anchor 'nowhere'",
        ),
        (REJECTED, {}, ""),
        (REJECTED, {"retry_target": None}, "names a retry_target"),
        (REJECTED, {"required_changes": []}, "at least one of required_changes"),
        (REJECTED, {"roadmap_closeout": APPROVED["roadmap_closeout"]}, "has no roadmap_closeout"),
    ],
)
def test_a_review_decides_only_with_what_its_decision_needs(
    shape: dict[str, Any], more: dict[str, Any], words: str
) -> None:
    found = review_problems(review(shape, **more), selection(), view())
    assert bool(found) is bool(words)
    assert words in "\n".join(found)


def test_only_a_review_that_asks_for_it_is_semantic() -> None:
    assert review(roadmap_closeout=_SEMANTIC).is_semantic
    assert not review().is_semantic
    assert not review(REJECTED).is_semantic


def test_a_stale_or_unchecked_closeout_allows_no_merge() -> None:
    assert not closeout_problems(samples.closeout(), "round-001", "abc")
    unchecked = {**plain(samples.closeout().verification), "diff_matches_review_record": False}
    for more in ({"status": "stale"}, {"round_id": "round-002"}, {"verification": unchecked}):
        assert len(closeout_problems(samples.closeout(**more), "round-001", "abc")) == 1
    assert closeout_problems(samples.closeout(), "round-001", "other") == (
        "closeout-record.json: review_record_sha256 is not the hash of the review record",
    )


def test_a_round_waits_for_the_rounds_and_items_that_it_names() -> None:
    waits = selection(
        scheduler=samples.scheduler(depends_on_round_ids=["round-000"], merge_after_item_ids=["item-0"])
    )
    assert unmerged(waits, (), ()) == ("round-000", "item-0")
    assert unmerged(waits, ("round-000",), ("item-0",)) == ()


@pytest.mark.capability("C067")
def test_one_resolver_knows_the_path_of_each_artefact() -> None:
    assert round_file("review_record", "round-001") == "orchestrator/rounds/round-001/review-record.json"
    assert worker_file("handoff", "round-001", "a") == "orchestrator/rounds/round-001/workers/a/handoff.md"
    assert worktree("round-001").endswith("/round-001")
    assert update_file("round-001", review=True) == (
        "orchestrator/roadmap-updates/round-001-roadmap-update-review.md"
    )
    assert role_file(RoundRole.INVESTIGATOR) == "orchestrator/roles/recovery-investigator.md"


_REVISION = "orchestrator/roadmaps/2026-03-01-00-greet/rev-002"


@pytest.mark.capability("C062")
@each_case(
    ("path", "owner"),
    [
        ("src/greet.py", RoundRole.IMPLEMENTER),
        ("orchestrator/state.json", RoundRole.CONTROLLER),
        (round_file("plan", "round-001"), RoundRole.PLANNER),
        (round_file("implementation_notes", "round-001"), RoundRole.IMPLEMENTER),
        (round_file("review_record", "round-001"), RoundRole.REVIEWER),
        (round_file("recovery_investigation", "round-001"), RoundRole.INVESTIGATOR),
        (round_file("closeout_record", "round-001"), RoundRole.CONTROLLER),
        ("orchestrator/rounds/round-001/other.md", RoundRole.CONTROLLER),
        (worker_file("assignment", "round-001", "a"), RoundRole.PLANNER),
        (worker_file("handoff", "round-001", "a"), RoundRole.IMPLEMENTER),
        ("orchestrator/rounds/round-001/workers/a/other.md", RoundRole.CONTROLLER),
        ("orchestrator/rounds/round-001/evidence/log.txt", RoundRole.CONTROLLER),
        (update_file("round-001"), RoundRole.PLANNER),
        (update_file("round-001", review=True), RoundRole.REVIEWER),
        (f"{_REVISION}/roadmap.md", RoundRole.PLANNER),
    ],
)
def test_every_path_has_one_owner_and_is_foreign_to_the_others(path: str, owner: RoundRole) -> None:
    assert owner_of(path) is owner
    may = {role for role in RoundRole if not foreign_to(role, (path,), "round-001", revision=_REVISION)}
    assert may <= {owner}
    assert may or owner is RoundRole.CONTROLLER


@pytest.mark.capability("C023")
def test_a_planner_changes_a_roadmap_only_in_the_new_revision_of_an_update() -> None:
    active = "orchestrator/roadmaps/2026-03-01-00-greet/rev-001/roadmap.md"
    history = "orchestrator/roadmaps/2026-03-01-00-greet/roadmap-history.md"
    changed = (f"{_REVISION}/roadmap.md", history, active)
    assert foreign_to(RoundRole.PLANNER, changed, "round-001", revision=_REVISION) == (active,)
    assert foreign_to(RoundRole.PLANNER, changed, "round-001") == changed


@pytest.mark.capability("C058")
def test_an_investigator_writes_its_diagnosis_and_nothing_else() -> None:
    own = round_file("recovery_investigation", "round-001")
    others = (
        round_file("recovery_investigation", "round-002"),
        *(round_file(key, "round-001") for key in ("plan", "implementation_notes", "review_record")),
        update_file("round-001"),
        "orchestrator/state.json",
        "src/module.py",
    )
    assert foreign_to(RoundRole.INVESTIGATOR, (own, *others), "round-001") == others


def test_no_role_writes_into_another_round() -> None:
    for key, role in (("plan", RoundRole.PLANNER), ("implementation_notes", RoundRole.IMPLEMENTER)):
        assert foreign_to(role, (round_file(key, "round-002"),), "round-001")
    assert foreign_to(RoundRole.REVIEWER, (update_file("round-002", review=True),), "round-001")
