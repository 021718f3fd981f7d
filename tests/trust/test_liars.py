"""Whatever an agent does, nothing is called done that is not, and nothing of anyone's is lost."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from tests.acceptance.faults.record import Record
from tests.once import once
from tests.tables_plugin import TRUST
from tests.trust.behaviour import QUESTION, Behaviour, Stage
from tests.trust.lies_to_the_harness import REACHES
from tests.trust.mechanisms import MECHANISMS, Seen
from tests.trust.stages import KEPT, carry_out
from tests.trust.table import STAGES

# Whoever asks first carries a whole stage out.
pytestmark = pytest.mark.timeout(900)
REACHED = "open"
WHOLE = frozenset({"tree", "below", "open", "forged", "together", "reviewed", "chance"})
"""Stages that are played whole: their behaviours need each other."""


def sample() -> dict[str, Stage]:
    """Return one behaviour for each mechanism that catches lies; `make trust-table` plays all of them."""
    chosen: dict[str, str] = {}
    kept: dict[str, Stage] = {}
    # Stages with many mechanisms first: each stage is a plan, and few plans then have them all.
    for name, stage in sorted(STAGES.items(), key=lambda one: -len(mechanisms(one[1]))):
        some: dict[str, Behaviour] = {}
        for key, one in stage.behaviours.items():
            if chosen.setdefault(one.caught, key) == key:
                some[key] = one
        if some:
            kept[name] = stage if name in WHOLE else replace(stage, behaviours=some)
    return kept


def mechanisms(stage: Stage) -> set[str]:
    """Return what catches the lies of a stage."""
    return {one.caught for one in stage.behaviours.values()}


SAMPLE = sample()


def played(config: pytest.Config) -> Mapping[str, Stage]:
    """Return the stages that this run of the suite carries out."""
    return STAGES if config.getoption(TRUST.option) else SAMPLE


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each test its behaviours, each with the stage at which it looks."""
    stages = played(metafunc.config)
    cases = [(name, key) for name, stage in stages.items() for key in stage.behaviours]
    if metafunc.function is test_the_user_is_told_what_an_agent_did_to_their_checkout_and_what_undoes_it:
        cases = [(name, key) for name, key in cases if name == REACHED and key in REACHES]
    looking = [pytest.param(case, id=case[1], marks=pytest.mark.shares(f"liars-{case[0]}")) for case in cases]
    metafunc.parametrize("seen", looking, indirect=True)


@pytest.fixture
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """One behaviour; its whole stage is carried out by whoever asks first."""
    name, key = request.param
    stage = played(request.config)[name]
    bwrap = request.getfixturevalue("bwrap") if stage.contained else None
    place, said = once(tmp_path_factory, f"liars-{name}", lambda place: carry_out(stage, place, bwrap))
    record = Record(place / "greeter", home=place / "home", said=said)
    kept = json.loads((place / KEPT).read_text())
    return Seen(key=key, behaviour=stage.behaviours[key], stage=stage, record=record, kept=kept)


def ended(record: Record, key: str) -> list[str | None]:
    """Return how each attempt ended: how it failed, that it waits for a person's decision, or None for landed."""
    return [QUESTION if one["state"] == "WAITING" else one["failure"] for one in record.attempts(key)]


def test_no_lie_is_believed_and_nothing_is_lost_when_an_agent(
    seen: Seen, record_property: Callable[[str, object], None]
) -> None:
    key, expected, record = seen.key, seen.behaviour, seen.record
    ends = ended(record, key)
    assert ends == list(expected.ends), record.task(key)["reason"]
    (entry,) = [task for task in seen.kept["receipt"]["tasks"] if task["key"] == key]
    assert entry["outcome"] == expected.outcome
    others = [one["sha"] for one in seen.kept["receipt"]["plan"]["not_ours"]]
    landed = record.landings(others=others)[key]
    lands = expected.ends[-1] is None and expected.outcome != "no_change_proven"
    assert landed == (1 if lands else 0), "no false done"
    for attempt in record.attempts(key):
        pinned = f"refs/loopwright/attempts/{attempt['plan_id']}/{attempt['task_id']}/{attempt['n']}"
        assert record.git("rev-parse", pinned).strip() == attempt["tip_sha"], "no lost work"
    if not seen.stage.dirties:
        assert seen.kept["after"] == seen.kept["before"], "the user's checkout is untouched"
    if seen.stage in STAGES.values():
        assert record.said.code == seen.stage.code, record.said.out + record.said.err
    assert seen.kept["verified"][0] == 0, seen.kept["verified"]
    assert MECHANISMS[expected.caught].worked(seen), (expected.caught, seen.bad, record.task(key)["reason"])
    record_property(TRUST.property, (key, {"ends": ends, "outcome": entry["outcome"]}))


def test_the_user_is_told_what_an_agent_did_to_their_checkout_and_what_undoes_it(seen: Seen) -> None:
    (event,) = [event for event in seen.events if event["type"] == "checkout_changed"]
    assert event["payload"]["whose"] == "agent"
    (attempt,) = seen.record.attempts(seen.key)
    (told,) = [task for task in seen.kept["receipt"]["tasks"] if task["key"] == seen.key]
    for change in event["payload"]["changes"]:
        for said in (attempt["detail"], told["reason"], seen.kept["shown"][seen.key]):
            assert change in " ".join(said.split()), said
    # What is theirs and no ref or file of their work has to be looked at by a person: only they know how it was.
    left = {
        name for name in seen.kept["before"] if seen.kept["undone"].get(name) != seen.kept["before"][name]
    }
    assert left == {".git/config"}
    assert set(seen.kept["undone"]) - set(seen.kept["before"]) == {".git/hooks/post-commit"}
    assert not (seen.place / "ran-users-fsmonitor").exists()
