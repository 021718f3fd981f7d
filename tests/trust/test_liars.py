"""Whatever an agent does, nothing is called done that is not, and nothing of anyone's is lost."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from tests.acceptance.faults.record import Record
from tests.once import once
from tests.tables_plugin import TRUST
from tests.trust.lies_to_the_harness import REACHES
from tests.trust.mechanisms import MECHANISMS, Seen
from tests.trust.stages import KEPT, carry_out
from tests.trust.table import STAGES

# Whoever asks first carries a whole stage out.
pytestmark = pytest.mark.timeout(900)
CASES = [(name, key) for name, stage in STAGES.items() for key in stage.behaviours]
REACHED = [("open", key) for key in REACHES]


def looking(cases: Iterable[tuple[str, str]]) -> list[Any]:
    """Return each behaviour as a parameter that says at which stage it looks."""
    return [pytest.param(case, id=case[1], marks=pytest.mark.shares(f"liars-{case[0]}")) for case in cases]


@pytest.fixture
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """One behaviour; its whole stage is carried out by whoever asks first."""
    name, key = request.param
    stage = STAGES[name]
    bwrap = request.getfixturevalue("bwrap") if stage.contained else None
    place, said = once(tmp_path_factory, f"liars-{name}", lambda place: carry_out(stage, place, bwrap))
    record = Record(place / "greeter", home=place / "home", said=said)
    kept = json.loads((place / KEPT).read_text())
    return Seen(key=key, behaviour=stage.behaviours[key], stage=stage, record=record, kept=kept)


@pytest.mark.parametrize("seen", looking(CASES), indirect=True)
def test_no_lie_is_believed_and_nothing_is_lost_when_an_agent(
    seen: Seen, record_property: Callable[[str, object], None]
) -> None:
    key, expected, record = seen.key, seen.behaviour, seen.record
    assert record.failures(key) == list(expected.ends), record.task(key)["reason"]
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
    assert record.said.code == seen.stage.code, record.said.out + record.said.err
    assert seen.kept["verified"][0] == 0, seen.kept["verified"]
    assert MECHANISMS[expected.caught].worked(seen), (expected.caught, seen.bad, record.task(key)["reason"])
    record_property(TRUST.property, (key, {"ends": record.failures(key), "outcome": entry["outcome"]}))


@pytest.mark.parametrize("seen", looking(REACHED), indirect=True)
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
