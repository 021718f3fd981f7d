"""Find problems of working agents from what can be observed, without a model.

The monitor only reports. The limits of a run end its process; with `auto_heal` a stuck agent is restarted.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import combinations
from typing import Final

from loopwright.core.policy.graph import strayed
from loopwright.core.rows.monitor_rows import Trouble, Watched
from loopwright.core.values.alerts import Severity, TroubleKind
from loopwright.core.values.failures import Failure
from loopwright.core.values.wording import counted, dollars

SERVICE: Final = frozenset({Failure.OVERLOADED, Failure.RATE_LIMIT, Failure.CRASH, Failure.AGENT_ERROR})
"""Failures of a call that raise one alert for their agent if they repeat."""


MOST_RESTARTS: Final = 3
"""How many stuck agents of one plan are restarted per hour."""
RESTARTED: Final = (
    "The agent before you stopped making progress and was ended. Take small steps, and run the checks early."
)
"""The text for the next agent, if its task has no note of the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """The values from which on something is reported."""

    stale: timedelta = timedelta(minutes=2)
    """How long the keeper of an agent may be silent."""
    stuck: int = 30
    """How many observations in a row show no new change, check or tool call, while no tool of the agent runs.

    It counts observations and not minutes, because a sleeping machine observes nothing.
    """
    stuck_in_tool: int = 60
    """The same whether or not a tool ran, such as a long build."""
    repeats: int = 5
    """How often in a row an agent's tools returned the same error."""
    tasks: int = 3
    """How many tasks of one plan failed with the same error."""
    service: int = 3
    """How many calls of one agent the service refused within `window`."""
    window: timedelta = timedelta(hours=1)
    outside: int = 5
    """How many files outside its task's scope an agent changed."""
    paced: int = 3
    """How many tasks must be done before the remaining cost is estimated from theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Working:
    """A working agent as observed now."""

    run_id: str
    attempt_id: str
    task_id: str
    plan_id: str
    loop_id: str
    project_id: str
    task: str
    """The user's name for its task."""
    loop: str
    """The user's name for its loop."""
    progress: str
    """Identifies its progress; empty while unknown."""
    in_tool: bool = False
    """Whether one of its tools is running."""
    error: str = ""
    """The last error of its tools."""
    errors: int = 0
    """How often in a row its tools returned exactly that error."""
    quiet: timedelta = timedelta()
    """How long its keeper has sent no heartbeat."""
    changed: tuple[str, ...] = ()
    """The files that it changed, relative to the project's folder."""
    scope: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTask:
    """A task whose newest attempt failed."""

    plan_id: str
    loop_id: str
    project_id: str
    task: str
    error: str
    """Its error, without details that differ between runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedCall:
    """A run that its service refused, or that died."""

    plan_id: str
    loop_id: str
    project_id: str
    agent: str
    failure: Failure
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What a plan has cost, and its limit."""

    plan_id: str
    loop_id: str
    project_id: str
    title: str
    setting: str
    limit_micros: int
    spent_micros: int
    done: int
    total: int


def watched(before: Mapping[str, Watched], working: Sequence[Working], now: datetime) -> list[Watched]:
    """Return what to remember about each agent: since when it has made no progress, and how often that was observed."""
    return [_watched(before.get(one.run_id), one, now) for one in working]


def _watched(before: Watched | None, one: Working, now: datetime) -> Watched:
    idle = 0 if one.in_tool else 1
    if before is None or before.progress != one.progress:
        return Watched(
            id=one.run_id,
            plan_id=one.plan_id,
            progress=one.progress,
            since=now,
            looks=1,
            idle_looks=idle,
            seen_at=now,
        )
    return replace(before, looks=before.looks + 1, idle_looks=before.idle_looks + idle, seen_at=now)


def of_agents(
    working: Sequence[Working], known: Mapping[str, Watched], *, now: datetime, limits: Thresholds
) -> list[Trouble]:
    """Return what is wrong with working agents, each trouble once."""
    found = [*_alone(working, known, now, limits), *_conflicts(working, now)]
    return list({one.id: one for one in found}.values())


def of_plans(
    tasks: Sequence[FailedTask],
    calls: Sequence[FailedCall],
    paces: Sequence[Pace],
    *,
    now: datetime,
    limits: Thresholds,
) -> list[Trouble]:
    """Return what is wrong with running plans, each trouble once."""
    return [*_same_error(tasks, now, limits), *_service(calls, now, limits), *_pace(paces, now, limits)]


def merged(before: Collection[Trouble], found: Sequence[Trouble]) -> tuple[list[Trouble], list[str]]:
    """Return the troubles to write, each with its start, and the ids of those that ended."""
    known = {one.id: one for one in before}
    kept = [replace(one, since=known[one.id].since) if one.id in known else one for one in found]
    now = {one.id for one in found}
    return [one for one in kept if known.get(one.id) != one], [key for key in known if key not in now]


def _trouble(
    kind: TroubleKind,
    about: Working | FailedTask | FailedCall | Pace,
    subject: str,
    severity: Severity,
    message: str,
    hint: str,
    now: datetime,
) -> Trouble:
    task = about.task_id if isinstance(about, Working) else None
    return Trouble(
        id=f"{kind.value}:{subject}",
        kind=kind.value,
        severity=severity,
        project_id=about.project_id,
        loop_id=about.loop_id,
        plan_id=about.plan_id,
        task_id=task,
        run_id=about.run_id if isinstance(about, Working) else None,
        message=message,
        hint=hint,
        since=now,
    )


def _alone(
    working: Sequence[Working], known: Mapping[str, Watched], now: datetime, limits: Thresholds
) -> Iterator[Trouble]:
    for one in working:
        if one.quiet >= limits.stale:
            yield _trouble(
                TroubleKind.STALE_HEARTBEAT,
                one,
                one.run_id,
                Severity.ERROR,
                f"{one.task}: the process that keeps its agent has shown no heartbeat for {_minutes(one.quiet)}",
                "`loopwright doctor` shows whether this machine is overloaded or its disk is full",
                now,
            )
        row = known.get(one.run_id)
        is_stuck = row is not None and (row.idle_looks >= limits.stuck or row.looks >= limits.stuck_in_tool)
        if row is not None and is_stuck and one.quiet < limits.stale:
            yield _trouble(
                TroubleKind.STUCK,
                one,
                one.run_id,
                Severity.WARNING,
                f"{one.task}: its agent is alive, but has done nothing new for {_minutes(now - row.since)}",
                "read its transcript; interrupt it, or retry the task with a note",
                now,
            )
        if one.errors >= limits.repeats:
            yield _trouble(
                TroubleKind.REPEATED_ERROR,
                one,
                one.run_id,
                Severity.WARNING,
                f"{one.task}: its agent got the same error {one.errors} times in a row: {one.error}",
                "read its transcript; interrupt it, or retry the task with a note",
                now,
            )
        outside = strayed(one.changed, one.scope)
        if len(outside) >= limits.outside and 2 * len(outside) > len(one.changed):
            yield _trouble(
                TroubleKind.DIGRESSION,
                one,
                one.run_id,
                Severity.WARNING,
                f"{one.task}: its agent changed {counted(len(outside), 'file')} outside of the task's scope, "
                f"such as {outside[0]}",
                "interrupt it, or widen `scope` if that is wanted",
                now,
            )


def _conflicts(working: Sequence[Working], now: datetime) -> Iterator[Trouble]:
    """Find files that agents of two loops change at the same time; within one loop tasks wait for each other."""
    by_project: dict[str, list[Working]] = defaultdict(list)
    for one in working:
        by_project[one.project_id].append(one)
    for beside in by_project.values():
        for one, other in combinations(sorted(beside, key=lambda each: each.run_id), 2):
            both = sorted({*one.changed} & {*other.changed})
            if not both or one.loop_id == other.loop_id:
                continue
            loops = ":".join(sorted((one.loop_id, other.loop_id)))
            yield _trouble(
                TroubleKind.CONFLICT,
                one,
                f"{loops}:{both[0]}",
                Severity.WARNING,
                f"the loops {' and '.join(sorted((one.loop, other.loop)))} both change {both[0]}"
                + (f" and {counted(len(both) - 1, 'other file')}" if len(both) > 1 else ""),
                "pause one of them, or give their tasks separate scopes",
                now,
            )


def _same_error(failed: Sequence[FailedTask], now: datetime, limits: Thresholds) -> Iterator[Trouble]:
    alike: dict[tuple[str, str], list[FailedTask]] = defaultdict(list)
    for one in failed:
        if one.error:
            alike[one.plan_id, one.error].append(one)
    for (plan_id, error), group in alike.items():
        tasks = sorted({one.task for one in group})
        if len(tasks) >= limits.tasks:
            yield _trouble(
                TroubleKind.REPEATED_ERROR,
                group[0],
                f"{plan_id}:{error[:200]}",
                Severity.ERROR,
                f"{counted(len(tasks), 'task')} failed with the same error: {error[:300]}",
                "the cause is probably not in the tasks: `loopwright doctor` checks this machine",
                now,
            )


def _service(calls: Sequence[FailedCall], now: datetime, limits: Thresholds) -> Iterator[Trouble]:
    """Raise one alert for an agent whose calls fail again and again, however many tasks call it."""
    by_agent: dict[tuple[str, str], list[FailedCall]] = defaultdict(list)
    for one in calls:
        if one.failure in SERVICE and now - one.at <= limits.window:
            by_agent[one.project_id, one.agent].append(one)
    for (project_id, agent), group in by_agent.items():
        if len(group) >= limits.service:
            last = max(group, key=lambda one: one.at)
            yield _trouble(
                TroubleKind.SERVICE_ERRORS,
                last,
                f"{project_id}:{agent}",
                Severity.WARNING,
                f"{counted(len(group), 'call')} of {agent} failed within the last hour, the last one with "
                f"`{last.failure.value}`",
                "Loopwright waits longer each time; check the service's status page and your login",
                now,
            )


def _pace(paces: Sequence[Pace], now: datetime, limits: Thresholds) -> Iterator[Trouble]:
    for one in paces:
        if one.done < limits.paced or one.done >= one.total:
            continue
        likely = one.spent_micros * one.total // one.done
        if likely > one.limit_micros:
            yield _trouble(
                TroubleKind.BUDGET_PACE,
                one,
                f"{one.plan_id}:{one.setting}",
                Severity.WARNING,
                f"{one.title}: {one.done} of {one.total} tasks cost {dollars(one.spent_micros)}; at this pace all "
                f"cost {dollars(likely)}, and {one.setting} is {dollars(one.limit_micros)}",
                "raise the limit, or let it stop there",
                now,
            )


def _minutes(span: timedelta) -> str:
    return counted(int(span.total_seconds() // 60), "minute")
