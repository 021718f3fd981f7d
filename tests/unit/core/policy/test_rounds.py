"""What follows a round of a loop over one prompt, and what stops it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from tests.cases import each_case
from tests.contracts.store import rows
from tests.wording_plugin import Wording

from loopwright.core.policy.decide import BeginVerify, Decision, Front, Frontier, NextRound, decide
from loopwright.core.policy.rejections import REJECTED
from loopwright.core.policy.retry import After, Again, Failed, GiveUp, after_failure
from loopwright.core.policy.rounds import (
    ROUND,
    Last,
    Stop,
    after_red,
    carried,
    following,
    loops,
    tries,
    unchanged,
    words,
)
from loopwright.core.prompts.prompts import implementer
from loopwright.core.rows.model import Attempt, Plan, Task
from loopwright.core.values.failures import Failure
from loopwright.core.values.policy import Policy, RoundsPolicy
from loopwright.core.values.states import AttemptState, LoopState, PlanState
from loopwright.prompts import packaged

NOW = rows.AT
SECOND = timedelta(seconds=1)


def plan(**rounds: Any) -> Plan:
    loop = rows.loop(rows.project())
    policy = Policy(rounds=RoundsPolicy(on=True, **rounds))
    return rows.plan(loop, status=PlanState.RUNNING, open_tasks=0, policy=policy, executed_at=NOW)


def task(**changes: Any) -> Task:
    return rows.task(plan(), **{"max_attempts": 5, **changes})


def tried(*attempts: tuple[AttemptState, str]) -> list[Attempt]:
    one = task()
    return [
        replace(
            rows.attempt(one),
            n=n,
            state=state,
            touched=(touched,) if touched else (),
            tip_sha=f"{n:040x}",
        )
        for n, (state, touched) in enumerate(attempts, 1)
    ]


RED, BROKEN, CANCELLED, LANDED = (
    AttemptState.REJECTED,
    AttemptState.BROKEN,
    AttemptState.CANCELLED,
    AttemptState.LANDED,
)


@each_case(
    ("attempts", "found"),
    [
        ([(RED, "a")], 0),
        ([(RED, "")], 1),
        ([(RED, "a"), (RED, ""), (RED, "")], 2),
        ([(RED, ""), (BROKEN, ""), (RED, "")], 2),
        ([(RED, ""), (BROKEN, "a"), (RED, "")], 1),
        ([(RED, ""), (CANCELLED, ""), (RED, "")], 1),
    ],
)
def test_rounds_that_changed_nothing_are_counted_up_to_the_last_that_did(
    attempts: list[tuple[AttemptState, str]], found: int
) -> None:
    every = tried(*attempts)
    assert unchanged(every, every[-1]) == found


def test_a_round_begins_with_what_the_one_before_left_unless_that_landed_or_lost_to_others() -> None:
    first, second, third = tried((RED, "a"), (BROKEN, "b"), (AttemptState.PREPARING, ""))
    every = [first, second, replace(third, tip_sha=None)]
    assert carried(task(), every, every[2]) == second.tip_sha
    assert carried(task(), every, first) is None
    assert carried(task(failure=Failure.CONFLICT), every, every[2]) is None
    assert carried(task(), every, replace(every[2], evidence=f"{REJECTED}\n\nNot so.")) is None
    assert carried(task(), [first, replace(second, tip_sha=None), third], third) == first.tip_sha
    assert carried(task(), [first, replace(second, state=LANDED), third], third) is None


def after(failure: Failure, *, attempts: int = 0, same: int = 0, **rounds: Any) -> tuple[After, Stop | None]:
    one, whole = task(attempts=attempts), plan(**rounds)
    failed = Failed(failure=failure, detail="it was red")
    usual = after_failure(one, failed, whole.policy, now=NOW)
    return after_red(usual, one, failed, whole, same=same, now=NOW)


def test_a_round_that_is_not_green_is_followed_by_the_next_after_a_sleep_until_something_stops_it() -> None:
    followed, stopped = after(Failure.GATE, sleep=7)
    assert isinstance(followed, Again)
    assert (followed.at, followed.attempts, stopped) == (NOW + 7 * SECOND, 1, None)
    for stop, found in {
        Stop.ROUNDS: after(Failure.GATE, attempts=4),
        Stop.UNCHANGED: after(Failure.NO_CHANGE, same=2),
        Stop.TIME: after(Failure.GATE, sleep=7, stop_after=7),
    }.items():
        assert isinstance(found[0], GiveUp)
        assert found[1] is stop
    assert after(Failure.NO_CHANGE, same=1)[1] is None
    # What a machine broke is no round: it has its own pauses, and its own end.
    broken, stopped = after(Failure.CRASH, same=2, sleep=1000)
    assert isinstance(broken, Again)
    assert broken.at < NOW + 10 * SECOND
    assert after(Failure.CANNOT_CHECK) == (
        GiveUp(reason=after(Failure.CANNOT_CHECK)[0].reason, attempts=0, call_failures=0),  # type: ignore[union-attr]
        None,
    )


def last(**changes: Any) -> Last:
    given = {"at": NOW, "left": 3, "green": True, "settled": False, "has_goal": False}
    return Last(**{**given, **changes})


def test_a_round_that_landed_is_followed_by_the_next_until_the_goal_or_a_limit_is_reached() -> None:
    assert following(plan(sleep=5), last()) == NOW + 5 * SECOND
    assert following(plan(), last(has_goal=True)) is Stop.GREEN
    assert following(plan(until="green"), last()) is Stop.GREEN
    assert following(plan(until="green"), last(green=False)) == NOW + 10 * SECOND, (
        "passing with an excuse is not green; and it sleeps as long as the plain loop of a shell does"
    )
    assert following(plan(until="quiet", sleep=0), last(has_goal=True)) == NOW
    assert following(plan(), last(settled=True)) is Stop.SETTLED
    assert following(plan(), last(left=0)) is Stop.ROUNDS
    assert following(plan(sleep=5, stop_after=5), last()) is Stop.TIME
    assert following(replace(plan(sleep=0, stop_after=0), executed_at=None), last()) == NOW


def decided(whole: Plan, newest: Last, at: timedelta = timedelta(0)) -> tuple[Decision, ...]:
    loop = rows.loop(rows.project(), state=LoopState.RUNNING)
    front = Front(loop=loop, plan=whole, last_round=newest)
    return decide(Frontier(fronts=(front,), room=4), NOW + at).decisions


def test_the_next_round_begins_when_the_sleep_is_over_and_not_once_the_time_is() -> None:
    whole = plan(sleep=5, stop_after=60)
    assert decided(whole, last()) == ()
    assert decided(whole, last(), 5 * SECOND) == (NextRound(plan_id=whole.id),)
    assert decided(whole, last(), 61 * SECOND) == (
        BeginVerify(plan_id=whole.id, stopped=Stop.TIME, green=True),
    )
    settled = BeginVerify(plan_id=whole.id, stopped=Stop.SETTLED, green=True)
    assert decided(whole, last(settled=True)) == (settled,)


def test_only_the_prompt_s_own_tasks_are_rounds() -> None:
    whole = plan()
    assert [loops(whole, task(origin=origin)) for origin in ("", ROUND, "fix", "discovered")] == [
        True,
        True,
        False,
        False,
    ]
    assert not loops(replace(whole, policy=Policy()), task())


def test_what_stopped_it_is_said_with_the_setting_that_can_be_changed(wording: Wording) -> None:
    whole = plan(max=3, unchanged=1, stop_after=90.0)
    wording(words(Stop.GREEN, whole))
    wording(words(Stop.UNCHANGED, whole))
    wording(words(Stop.ROUNDS, whole))
    wording(words(Stop.ROUNDS, whole, green=True))
    wording(words(Stop.SETTLED, whole))
    wording(words(Stop.SETTLED, whole, green=True))
    wording(words(Stop.ROUNDS, whole, used=2))
    wording(words(Stop.TIME, whole))


def test_an_agent_is_told_that_it_is_one_of_many_rounds_and_what_it_finds_in_its_workspace() -> None:
    whole, one, template = plan(), task(), packaged("implementer")
    first = replace(rows.attempt(one), n=1, evidence="")
    second = replace(first, n=2, evidence="b failed")
    assert "round after round" in implementer(template, whole, one, first, gates=())
    carried_on = implementer(template, whole, one, second, gates=())
    assert "as the last round left it" in carried_on
    assert "b failed" in carried_on
    for anew in (replace(one, failure=Failure.CONFLICT), replace(one, origin="fix")):
        assert "You start again from a clean tree" in implementer(template, whole, anew, second, gates=())


def test_a_round_may_be_tried_as_often_as_the_loop_goes_and_another_task_as_every_task() -> None:
    loop = plan(max=7)
    assert tries(loop, rows.task(loop)) == 7
    assert tries(loop, rows.task(loop, origin="fix")) == loop.policy.max_attempts
