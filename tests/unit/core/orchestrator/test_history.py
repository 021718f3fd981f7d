"""The events of rounds: each change of `state.json` between two readings, and nothing else."""

from typing import Any

import pytest
from tests.cases import each_case
from tests.unit.core.orchestrator.samples import LIVE, UPDATE, state

from loopwright.core.orchestrator.history import EVENTS, differences, reading
from loopwright.core.rows.events import CATALOGUE

IMPLEMENTS = {**LIVE, "stage": "implement"}
BLOCKED = {"resume_errors": {"controller": "the planner is gone"}}


@pytest.mark.capability("C051")
@each_case(
    ("before", "after", "types"),
    [
        ({}, {"active_rounds": [LIVE]}, ["round_began"]),
        ({"active_rounds": [LIVE]}, {"active_rounds": [IMPLEMENTS]}, ["round_moved"]),
        (
            {"active_rounds": [LIVE]},
            {"active_rounds": [{**LIVE, "resume_error": "lost"}]},
            ["round_troubled"],
        ),
        ({"active_rounds": [{**LIVE, "resume_error": "lost"}]}, {"active_rounds": [LIVE]}, []),
        ({"active_rounds": [LIVE]}, {}, ["round_merged"]),
        (
            {"active_rounds": [LIVE]},
            {"roadmap_update": UPDATE, "controller_stage": "update-roadmap"},
            ["round_dropped", "roadmap_update_moved", "controller_moved"],
        ),
        (
            {"active_rounds": [LIVE]},
            {"roadmap_update": {**UPDATE, "trigger": "merged-round"}},
            ["round_merged", "roadmap_update_moved"],
        ),
        (
            {"roadmap_update": UPDATE},
            {"roadmap_update": {**UPDATE, "status": "blocked", "last_rejection_summary": "why?"}},
            ["roadmap_update_moved"],
        ),
        ({"roadmap_update": UPDATE}, {"roadmap_revision": "rev-002"}, ["roadmap_revised"]),
        ({}, BLOCKED, ["controller_blocked"]),
        (BLOCKED, BLOCKED, []),
        (BLOCKED, {}, []),
    ],
)
def test_each_change_is_one_event(before: dict[str, Any], after: dict[str, Any], types: list[str]) -> None:
    found = differences(reading(state(**before)), state(**after))
    assert [name for name, _ in found] == types


def test_the_first_reading_names_what_is_there() -> None:
    found = differences({}, state(active_rounds=[LIVE]))
    assert [(name, about["stage"]) for name, about in found] == [
        ("round_began", "plan"),
        ("controller_moved", "dispatch-rounds"),
    ]


def test_every_such_event_is_in_the_catalogue() -> None:
    assert set(EVENTS) <= CATALOGUE.keys()
