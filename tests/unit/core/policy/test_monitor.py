"""What the monitor calls wrong, one threshold at a time."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from loopwright.core.policy.monitor import (
    FailedCall,
    FailedTask,
    Pace,
    Thresholds,
    Working,
    merged,
    of_agents,
    of_plans,
    watched,
)
from loopwright.core.rows.monitor_rows import Trouble, Watched
from loopwright.core.values.alerts import Severity
from loopwright.core.values.failures import Failure

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LIMITS = Thresholds()
AGENT = Working(
    run_id="run_1",
    attempt_id="att_1",
    task_id="task_1",
    plan_id="plan_1",
    loop_id="loop_1",
    project_id="proj_1",
    task="login",
    loop="auth",
    progress="1",
)
OTHER = replace(AGENT, run_id="run_2", loop_id="loop_2", loop="billing")
SEEN = Watched(id="run_1", plan_id="plan_1", progress="1", since=NOW, looks=1, idle_looks=1, seen_at=NOW)
FAILED = FailedTask(plan_id="plan_1", loop_id="loop_1", project_id="proj_1", task="a", error="no space")
CALL = FailedCall(
    plan_id="plan_1",
    loop_id="loop_1",
    project_id="proj_1",
    agent="claude",
    failure=Failure.OVERLOADED,
    at=NOW,
)
PACE = Pace(
    plan_id="plan_1",
    loop_id="loop_1",
    project_id="proj_1",
    title="Rate limiting",
    setting="max_cost",
    limit_micros=10_000_000,
    spent_micros=6_000_000,
    done=3,
    total=6,
)


def wrong(*agents: Working, looks: int = 1, idle: int = 1) -> list[str]:
    known = {"run_1": replace(SEEN, looks=looks, idle_looks=idle)}
    return [one.kind for one in of_agents(agents, known, now=NOW, limits=LIMITS)]


def under_way(
    tasks: list[FailedTask] | None = None,
    calls: list[FailedCall] | None = None,
    paces: list[Pace] | None = None,
) -> list[Trouble]:
    return of_plans(tasks or [], calls or [], paces or [], now=NOW, limits=LIMITS)


def test_an_agent_is_remembered_until_it_does_something_new() -> None:
    (first,) = watched({}, [AGENT], NOW)
    assert (first.looks, first.since) == (1, NOW)
    (again,) = watched({"run_1": first}, [AGENT], NOW + timedelta(minutes=1))
    assert (again.looks, again.idle_looks, again.since) == (2, 2, NOW)
    (building,) = watched({"run_1": again}, [replace(AGENT, in_tool=True)], NOW + timedelta(minutes=2))
    assert (building.looks, building.idle_looks) == (3, 2)
    (new,) = watched({"run_1": again}, [replace(AGENT, progress="2")], NOW + timedelta(minutes=2))
    assert (new.looks, new.since) == (1, NOW + timedelta(minutes=2))


def test_an_agent_is_stuck_after_a_while_and_later_while_a_tool_works() -> None:
    assert wrong(AGENT, looks=LIMITS.stuck, idle=LIMITS.stuck - 1) == []
    assert wrong(AGENT, looks=LIMITS.stuck, idle=LIMITS.stuck) == ["stuck"]
    assert wrong(AGENT, looks=LIMITS.stuck_in_tool - 1) == []
    assert wrong(AGENT, looks=LIMITS.stuck_in_tool) == ["stuck"]


def test_without_a_heartbeat_nothing_else_is_known_of_an_agent() -> None:
    assert wrong(replace(AGENT, quiet=LIMITS.stale), idle=LIMITS.stuck) == ["stale_heartbeat"]


def test_an_agent_that_was_never_seen_before_is_not_stuck() -> None:
    assert of_agents([AGENT], {}, now=NOW, limits=LIMITS) == []


def test_an_error_is_repeated_from_the_fifth_time_on() -> None:
    assert wrong(replace(AGENT, errors=4, error="no")) == []
    assert wrong(replace(AGENT, errors=5, error="no")) == ["repeated_error"]


def test_most_of_the_changes_outside_the_scope_are_a_digression() -> None:
    outside = tuple(f"docs/{n}.md" for n in range(5))
    assert wrong(replace(AGENT, changed=outside)) == []
    assert wrong(replace(AGENT, changed=outside, scope=("src/**",))) == ["digression"]
    inside = tuple(f"src/{n}.py" for n in range(5))
    assert wrong(replace(AGENT, changed=(*inside, *outside), scope=("src/**",))) == []


def test_two_loops_that_change_one_file_are_one_conflict() -> None:
    both = ("a.py", "b.py", "c.py")
    (found,) = of_agents(
        [replace(AGENT, changed=both), replace(OTHER, changed=both)], {}, now=NOW, limits=LIMITS
    )
    assert (found.kind, found.id) == ("conflict", "conflict:loop_1:loop_2:a.py")
    one = ("a.py",)
    assert wrong(replace(AGENT, changed=one), replace(OTHER, changed=one)) == ["conflict"]
    assert wrong(replace(AGENT, changed=one), replace(OTHER, changed=("z.py",))) == []
    assert wrong(replace(AGENT, changed=one), replace(OTHER, changed=one, loop_id="loop_1")) == []
    assert wrong(replace(AGENT, changed=one), replace(OTHER, changed=one, project_id="proj_2")) == []


def test_three_tasks_with_one_error_are_one_alert() -> None:
    three = [replace(FAILED, task=one) for one in "abc"]
    assert [(one.kind, one.severity) for one in under_way(three)] == [("repeated_error", Severity.ERROR)]
    assert under_way(three[:2]) == []
    assert under_way([replace(one, error="") for one in three]) == []
    assert under_way([*three[:2], replace(FAILED, task="c", error="another")]) == []


def test_calls_that_fail_again_and_again_are_one_alert_for_their_agent() -> None:
    assert [one.id for one in under_way(calls=[CALL, CALL, CALL])] == ["service_errors:proj_1:claude"]
    assert under_way(calls=[CALL, CALL]) == []
    assert under_way(calls=[CALL, CALL, replace(CALL, agent="codex")]) == []
    assert under_way(calls=[CALL, CALL, replace(CALL, failure=Failure.GATE)]) == []
    assert under_way(calls=[CALL, CALL, replace(CALL, at=NOW - LIMITS.window - timedelta(seconds=1))]) == []


def test_a_pace_is_reported_when_the_rest_will_not_fit() -> None:
    assert [one.kind for one in under_way(paces=[PACE])] == ["budget_pace"]
    assert under_way(paces=[replace(PACE, spent_micros=5_000_000)]) == []
    assert under_way(paces=[replace(PACE, done=2)]) == []
    assert under_way(paces=[replace(PACE, done=6)]) == []


def test_what_is_known_keeps_its_moment_and_what_is_gone_is_named() -> None:
    (found,) = under_way(paces=[PACE])
    older = replace(found, since=NOW - timedelta(hours=1))
    assert merged([older], [found]) == ([], [])
    worse = replace(found, message="worse")
    assert merged([older], [worse]) == ([replace(worse, since=older.since)], [])
    assert merged([], [found]) == ([found], [])
    assert merged([older], []) == ([], [found.id])
