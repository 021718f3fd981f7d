"""The comparison of ways of working: it repeats, agrees with what was published, and uses the product's decisions."""

import pytest
from bench.worth import measuring, page, switches
from bench.worth.assumptions import known, values
from bench.worth.ways import BASELINES, WAYS, played
from tests.cases import each_case

from loopwright.core.healing.lessons import MOST
from loopwright.core.healing.steps import MOST_IN_VAIN

PLAIN, RALPH, GREEN = BASELINES
DEFAULTS, EVERYTHING = "Loopwright, defaults", "everything"


def test_every_assumption_is_within_its_range_and_says_what_it_means() -> None:
    assert len({one.name for one in known()}) == len(known()) > 20
    for one in known():
        assert one.low <= one.value <= one.high, one.name
        assert one.meaning, one.name
    with pytest.raises(KeyError, match="no assumption 'luck'"):
        values(luck=1.0)


def test_the_same_seed_gives_the_same_table() -> None:
    first, again = (played(EVERYTHING, values(), tasks=40) for _ in range(2))
    assert first == again
    assert first != played(EVERYTHING, values(), tasks=40, seed=2)


def test_the_baselines_come_to_what_was_published() -> None:
    sure = values(breaks=0.0)
    assert played(PLAIN, sure, tasks=2_000).right_share == pytest.approx(0.84, abs=0.02)
    assert played(RALPH, sure, tasks=2_000).right_share == pytest.approx(0.872, abs=0.03)


def test_gates_are_what_keeps_wrong_work_from_being_called_done() -> None:
    found = {one: played(one, values(), tasks=400) for one in (PLAIN, DEFAULTS, "defaults without gates")}
    assert found[DEFAULTS].false_done < found[PLAIN].false_done / 2
    assert found["defaults without gates"].false_done > found[PLAIN].false_done / 2


def test_held_out_checks_find_what_the_others_miss() -> None:
    all_found = values(held_out=1.0)
    assert played("defaults + held-out checks", all_found, tasks=300).false_done == 0
    assert played(DEFAULTS, all_found, tasks=300).false_done > 0


@pytest.mark.more
@each_case("way", [one for one in WAYS if one not in (DEFAULTS, EVERYTHING)])
def test_every_mechanism_changes_what_comes_out(way: str) -> None:
    """One that changes nothing would not be switched at all."""
    # Every lift is large here, so that few tasks show it.
    a = values(rate=0.5, breaks=0.1, lesson_pp=30.0, restate_pp=10.0, evidence_pp=3.2, spread=1.0, tells=1.0)
    of = DEFAULTS if way.startswith("defaults") else EVERYTHING
    assert played(way, a, tasks=300) != played(of, a, tasks=300)


@pytest.mark.capability("C094")
@pytest.mark.parametrize("lift_pp", [-30.0, 0.0])
def test_a_harmful_and_a_useless_lesson_are_switched_off_within_the_stated_cost(lift_pp: float) -> None:
    (found,) = switches.lessons(tasks=1_400, projects=1, lifts_pp=(lift_pp,))
    assert found.of >= 3
    assert found.off >= 0.9
    assert found.longest <= MOST


def test_a_step_that_heals_nothing_is_switched_off_and_one_that_heals_half_never() -> None:
    none, _, _, half = switches.steps(projects=2)
    assert (none.off, none.longest) == (1.0, MOST_IN_VAIN)
    assert half.off == 0


def test_the_page_shows_every_way_and_every_assumption() -> None:
    found = measuring.document(tasks=4, sensitivity_tasks=1, projects=1, jobs=1)
    shown = page.rendered(found)
    assert all(f"| {way} |" in shown for way in (*BASELINES, *WAYS))
    assert all(f"| {one.meaning} |" in shown for one in known())
