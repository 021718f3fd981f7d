"""Who gets the next agent: urgency with aging, fair shares among equals, and slots of agents, accounts and projects."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from tests.cases import each_case
from tests.contracts.store import rows

from loopwright.core.policy.decide import Front, Frontier, StartAttempt, decide, urgency_of
from loopwright.core.policy.share import (
    AGING,
    Claim,
    SlotLimits,
    Used,
    aged,
    fair_shares,
    next_in_line,
    read_slots,
)
from loopwright.core.rows.model import Task
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import LoopState, PlanState

NOW = rows.AT
LIMITS = SlotLimits(agents={"claude": 2, "claude/work": 1}, project=3)


@each_case(
    "agent, account, used, expected",
    [
        ("claude", "work", (0, 0, 0), ""),
        ("claude", "work", (2, 0, 0), "all 2 slots of claude are in use"),
        ("claude", "work", (1, 1, 0), "all 1 slots of claude/work are in use"),
        ("codex", "work", (9, 9, 2), ""),
        ("codex", "work", (9, 9, 3), "all 3 slots of the project are in use"),
    ],
)
def test_what_has_no_slot_left_is_named(
    agent: str, account: str, used: tuple[int, int, int], expected: str
) -> None:
    in_use = Used(agent=used[0], account=used[1], project=used[2])
    assert LIMITS.full(agent=agent, account=account, used=in_use) == expected
    assert SlotLimits().full(agent=agent, account=account, used=in_use) == ""


def test_a_loop_gets_more_urgent_by_one_step_for_every_so_long_that_it_waits() -> None:
    assert [aged(5, AGING * n) for n in (-1, 0, 1, 4)] == [5, 5, 4, 1]
    assert aged(5, AGING - timedelta(seconds=1)) == 5


def test_an_entry_names_an_agent_or_an_account_and_a_number() -> None:
    assert [read_slots("claude 2"), read_slots("claude/work 1")] == [("claude", 2), ("claude/work", 1)]


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 5), st.integers(0, 5)), max_size=8),
    st.integers(0, 12),
)
def test_room_is_used_and_no_equal_has_two_more_than_another_that_wants_one(
    wishes: list[tuple[int, int, int]], room: int
) -> None:
    claims = [
        Claim(name=str(n), urgency=urgency, held=held, served=0, wanted=wanted)
        for n, (urgency, held, wanted) in enumerate(wishes)
    ]
    given_out = fair_shares(claims, room)
    assert sum(given_out.values()) == min(room, sum(one.wanted for one in claims))
    for mine in claims:
        for other in claims:
            if given_out[mine.name] < mine.wanted and given_out[other.name]:
                assert other.urgency <= mine.urgency
                if other.urgency == mine.urgency:
                    assert other.held + given_out[other.name] <= mine.held + given_out[mine.name] + 1


def test_among_equals_the_one_that_was_served_the_longest_ago_is_next() -> None:
    claims = [Claim(name=name, urgency=5, held=0, served=n, wanted=1) for name, n in (("a", 7), ("b", 3))]
    assert fair_shares(claims, 1) == {"a": 0, "b": 1}


def test_the_first_that_fits_is_next() -> None:
    line = [("a", 2), ("b", 1), ("c", 1)]
    assert next_in_line(line, lambda one: (one[1], 0), lambda one: one[0] != "b") == ("c", 1)
    assert next_in_line(line, lambda one: (one[1], 0), lambda _: False) is None


def _front(n: int, *, ready: int, priority: int = 5, working: int = 0, preparing: int = 0) -> Front:
    project = rows.project()
    loop = rows.loop(project, state=LoopState.RUNNING, priority=priority)
    plan = rows.plan(loop, status=PlanState.RUNNING, open_tasks=9, policy=Policy(parallel=9), created_at=NOW)

    def tasks(count: int, start: int) -> tuple[Task, ...]:
        return tuple(
            rows.task(plan, key=f"{n}-{start + one}", position=one, updated_at=NOW) for one in range(count)
        )

    return Front(loop=loop, plan=plan, ready=tasks(ready, 0), working=tasks(working, 50), preparing=preparing)


def _starts(fronts: list[Front], room: int, *, verify_room: int | None = 1) -> list[int]:
    decided = decide(Frontier(fronts=tuple(fronts), room=room, verify_room=verify_room), NOW)
    begun = {one.task_id for one in decided.decisions if isinstance(one, StartAttempt)}
    return [sum(task.id in begun for task in front.ready) for front in fronts]


def test_equals_share_the_room_and_what_one_cannot_use_the_others_get() -> None:
    assert _starts([_front(1, ready=6), _front(2, ready=6)], 6) == [3, 3]
    assert _starts([_front(1, ready=6), _front(2, ready=1)], 6) == [5, 1]
    assert _starts([_front(1, ready=6), _front(2, ready=6, priority=1)], 4) == [0, 4]
    assert _starts([_front(n, ready=2) for n in range(20)], 6).count(1) == 6
    assert sorted(_starts([_front(1, ready=6, working=3), _front(2, ready=6)], 3)) == [0, 3]


def test_room_that_a_scope_keeps_a_loop_from_using_goes_to_the_others() -> None:
    narrow = _front(1, ready=4)
    one_scope = tuple(
        rows.task(narrow.plan, key=f"n{n}", scope=("src/**",), updated_at=NOW) for n in range(4)
    )
    fronts = [_front(2, ready=6), Front(loop=narrow.loop, plan=narrow.plan, ready=one_scope)]
    assert _starts(fronts, 6) == [5, 1]


def test_a_more_urgent_loop_takes_its_place_before_those_that_are_only_made_ready() -> None:
    busy = _front(1, ready=3, working=6, preparing=2)
    urgent = _front(2, ready=3, priority=1)
    assert _starts([busy, urgent], 0) == [0, 2]
    assert _starts([busy, urgent], 0, verify_room=None) == [0, 0], "a shared home prepares nothing ahead"
    assert _starts([busy, _front(3, ready=3)], 0) == [0, 0], "an equal one waits"


def test_loops_that_waited_for_long_add_no_workspaces_beyond_the_room() -> None:
    busy, waiting = _front(1, ready=3, working=8, preparing=4), [_front(n, ready=6) for n in range(2, 50)]
    later = NOW + 10 * AGING
    decided = decide(Frontier(fronts=(busy, *waiting), room=0, verify_room=1), later)
    assert not decided.decisions
    decided = decide(Frontier(fronts=(busy, *waiting), room=1, verify_room=1), later)
    assert len(decided.decisions) == 1


def test_only_a_loop_without_an_agent_gets_more_urgent() -> None:
    later = NOW + 3 * AGING
    assert urgency_of(_front(1, ready=1), later) == 2
    assert urgency_of(_front(1, ready=1, working=1), later) == 5
    assert urgency_of(_front(1, ready=0), later) == 5
