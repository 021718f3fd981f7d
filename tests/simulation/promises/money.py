"""The promises about money and accounts: what may start, what is stopped, and what a closed account lets through."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.simulation.promises.invariants import Problems, Watch, at_end, moves, on_commit, on_effect
from tests.simulation.rows import Change

from loopwright.core.policy.budget import CAPS, WAITS
from loopwright.core.policy.quotas import PROVEN_AFTER, envelope_id
from loopwright.core.rows.model import AGENT_ROLES, Attempt, Loop, Plan, Run, Task
from loopwright.core.rows.waiting_rows import Envelope
from loopwright.core.values.failures import RULES, Failure
from loopwright.core.values.states import AttemptState, EnvelopeState, LoopState, RunState

_SEES_NOTHING: Final = frozenset({"crash", "freeze", "reboot", "gone", "slow", "store_away", "lost_answer"})
"""After one of these, nobody may be there to see what an agent costs."""
_BLIND_S: Final = 130.0
"""So long at most: a machine that is frozen stays so for two minutes."""
_SOON_S: Final = 12.0
"""How long it may take until an agent has ended that is to be stopped."""


def _caps(plan: Plan) -> dict[str, int | None]:
    return {name: getattr(plan.policy, name) for name in CAPS}


@on_commit(Run)
def the_budget_is_never_exceeded(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """No agent is started in a plan whose budget is used up or unknown."""
    for change in changes:
        if change.before is None:
            continue
        agent = change.kind is Run and change.after.role in AGENT_ROLES
        if agent and change.before.state is RunState.QUEUED and change.after.state is RunState.RUNNING:
            plan = watch.all(Plan)[change.after.plan_id]
            limit = plan.policy.max_cost
            if limit is not None and (plan.spent_micros >= limit or plan.unknown_costs):
                yield f"{name} starts {change.id} with {plan.spent_micros} of {limit} spent"


@on_commit(Run)
def nothing_starts_beyond_a_cap(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """What a run may cost, with what was spent and what others that run may cost, is within every cap."""
    for change in moves(changes, Run, RunState.RUNNING):
        run, plan = change.after, watch.all(Plan)[change.after.plan_id]
        caps = _caps(plan)
        if run.agent is None or not any(caps.values()):
            continue
        runs = [one for one in watch.all(Run).values() if one.agent is not None and one.id != run.id]
        same_project = [one for one in runs if _plan_of(watch, one).project_id == plan.project_id]
        same_loop = [one for one in runs if _plan_of(watch, one).loop_id == plan.loop_id]
        mine = [one for one in runs if one.plan_id == plan.id]
        held = {
            "max_cost_per_run": 0,
            "max_cost_per_task": _spent([one for one in mine if one.task_id == run.task_id]),
            "max_cost": _spent(mine) + _reserved(watch, mine),
            "max_cost_per_loop": _spent(same_loop) + _reserved(watch, same_loop),
            "max_cost_per_project": _spent(same_project) + _reserved(watch, same_project),
            # No day ends within a run of the simulation.
            "max_cost_per_day": _spent(same_project) + _reserved(watch, same_project),
        }
        if run.max_cost_micros is None:
            yield f"{name} starts {run.id} without a limit"
            continue
        for setting, limit in caps.items():
            if limit is not None and held[setting] + run.max_cost_micros > limit:
                told = f"{run.max_cost_micros} of {setting} {limit}, of which {held[setting]} are taken"
                yield f"{name} lets {run.id} cost {told}"


def _plan_of(watch: Watch, run: Run) -> Plan:
    plan: Plan = watch.all(Plan)[run.plan_id]
    return plan


def _spent(runs: list[Run]) -> int:
    return sum(one.cost_micros or 0 for one in runs)


def _reserved(watch: Watch, runs: list[Run]) -> int:
    limited = [
        one
        for one in runs
        if one.state is RunState.RUNNING and _caps(_plan_of(watch, one))["max_cost_per_run"]
    ]
    return sum(one.max_cost_micros or 0 for one in limited)


@on_commit(Run)
def what_running_agents_will_cost_is_kept_free(
    watch: Watch, name: str, changes: tuple[Change, ...]
) -> Problems:
    """Beside others an agent starts only if each of them, and it, can cost what such a run probably does."""
    for change in moves(changes, Run, RunState.RUNNING):
        run, plan = change.after, watch.all(Plan)[change.after.plan_id]
        if run.agent is None:
            continue
        agents = [one for one in watch.all(Run).values() if one.agent is not None and one.id != run.id]
        beside = [one for one in agents if one.state is RunState.RUNNING]
        caps = watch.caps_at_start[run.id] = _caps(plan)
        wanted = caps["max_cost_per_run"] or _expected(watch, run)
        for setting, limit in caps.items():
            scope = _SCOPES.get(setting)
            if limit is None or scope is None:
                continue
            others = [one for one in beside if scope(_plan_of(watch, one)) == scope(plan)]
            held = sum(_kept_free(watch, one) for one in others)
            spent = _spent([one for one in agents if scope(_plan_of(watch, one)) == scope(plan)])
            if held and spent + held + wanted > limit:
                told = f"{spent} of {setting} {limit} are spent, {held} kept free and {wanted} needed"
                yield f"{name} starts {run.id} although {told}"


@on_commit(Attempt)
def who_waits_for_the_budget_has_no_leg(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """An attempt that waits for others to leave enough of the budget is parked, and no other task joins it there."""
    begun = [one.after for one in moves(changes, Attempt, AttemptState.PREPARING)]
    begun = [one for one in begun if one.leg == 1]
    if not begun and not any(one.kind is Attempt and one.after.wait_reason == WAITS for one in changes):
        return
    for attempt in (one for one in watch.all(Attempt).values() if one.wait_reason == WAITS):
        if attempt.state is not AttemptState.WAITING:
            yield f"{name}: {attempt.id} waits while it is {attempt.state.value}"
        for other in (one for one in begun if one.plan_id == attempt.plan_id and attempt.wake_at is None):
            yield f"{name} begins {other.id} while {attempt.id} waits"


@on_commit(Run)
def who_waits_for_the_budget_is_woken(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """When an agent ends, everyone in its project who waits for others to leave enough of the budget looks again."""
    over = [
        _plan_of(watch, one.after).project_id
        for one in changes
        if one.kind is Run and one.before is not None and one.after.agent is not None
        if one.before.state is RunState.RUNNING is not one.after.state
    ]
    if not over:
        return
    now = watch.universe.database._clock.now()
    for attempt in watch.all(Attempt).values():
        waits = attempt.state is AttemptState.WAITING and attempt.wait_reason == WAITS
        looks = attempt.wake_at is not None and attempt.wake_at <= now
        if waits and not looks and watch.all(Plan)[attempt.plan_id].project_id in over:
            yield f"{name}: {attempt.id} is left waiting for the budget"


_SCOPES: Final[Mapping[str, Callable[[Plan], str]]] = {
    "max_cost": lambda plan: plan.id,
    "max_cost_per_loop": lambda plan: plan.loop_id,
    "max_cost_per_project": lambda plan: plan.project_id,
    # No day ends within a run of the simulation.
    "max_cost_per_day": lambda plan: plan.project_id,
}


def _kept_free(watch: Watch, run: Run) -> int:
    limited = _caps(_plan_of(watch, run))["max_cost_per_run"]
    return (run.max_cost_micros or 0) if limited else _expected(watch, run)


def _expected(watch: Watch, run: Run) -> int:
    """Return what a run like this one has cost on average, at least what its plan says."""
    plan = _plan_of(watch, run)
    ended = [
        one
        for one in watch.all(Run).values()
        if one.ended_at is not None
        and (one.agent, one.role) == (run.agent, run.role)
        and _plan_of(watch, one).project_id == plan.project_id
    ]
    same = [one for one in ended if run.model and one.model == run.model]
    newest = sorted(same or ended, key=lambda one: (one.ended_at, one.id))[-20:]
    costs = [one.cost_micros for one in newest if one.cost_micros]
    return max(math.ceil(sum(costs) / max(len(costs), 1)), plan.policy.reserve_per_run or 0)


@on_effect("cost")
@on_effect("finished")
def all_of_them_stop_at_the_cap(watch: Watch, about: Mapping[str, Any]) -> Problems:
    """Agents that one worker watches spend no more together than there is, but for what they do between two looks."""
    run, now = watch.all(Run)[about["kept"].spec.run_id], watch.universe.loop.time()
    watch.told[run.id] = about.get("micros", watch.told.get(run.id, 0))
    plan, where = _plan_of(watch, run), (run.plan_id, run.host_id or "")
    beside = [
        one
        for one in watch.all(Run).values()
        if (one.plan_id, one.host_id) == where and one.state is RunState.RUNNING
    ]
    limit, caps = plan.policy.max_cost, _caps(plan)
    total = plan.spent_micros + sum(watch.told.get(one.id, 0) for one in beside)
    if limit is None or total < limit or watch.full.get(where, (now, caps))[1] != caps:
        watch.full.pop(where, None)
        return
    since, _ = watch.full.setdefault(where, (now, caps))
    if _is_watched(watch, since) and now - since > _SOON_S and run.state is RunState.RUNNING:
        yield f"{run.id} goes on {now - since:.0f} s after {total} of {limit} were spent"


@on_effect("cost")
@on_effect("finished")
def a_run_is_stopped_at_its_limit(watch: Watch, about: Mapping[str, Any]) -> Problems:
    """An agent that is watched and has cost as much as it may does not go on."""
    run, now = watch.all(Run)[about["kept"].spec.run_id], watch.universe.loop.time()
    caps = _caps(_plan_of(watch, run))
    # What it was given at its start holds while nobody sets other limits.
    limit = run.max_cost_micros if caps == watch.caps_at_start.get(run.id) else None
    if limit is not None and about.get("micros", 0) >= limit:
        watch.over.setdefault(run.id, (now, caps))
    if run.id not in watch.over:
        return
    since, caps_then = watch.over[run.id]
    if (
        _is_watched(watch, since)
        and now - since > _SOON_S
        and caps == caps_then
        and run.state is RunState.RUNNING
    ):
        yield f"{run.id} went on for {now - since:.0f} s after it had cost {run.max_cost_micros}"


def _is_watched(watch: Watch, since: float) -> bool:
    """Say whether somebody was there to see what agents cost."""
    struck = [at for fault, at in watch.universe.trouble.last_struck.items() if fault in _SEES_NOTHING]
    return max(struck, default=-_BLIND_S) + _BLIND_S <= since


@on_commit(Run)
def a_run_over_its_limit_pauses_the_loop(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """A run that was stopped over its cost keeps its work, and its loop waits for a person with the reason."""
    for change in moves(changes, Run, RunState.ERROR):
        run = change.after
        if run.failure is not Failure.BUDGET:
            continue
        attempt, plan = watch.all(Attempt)[run.attempt_id], _plan_of(watch, run)
        loop = watch.all(Loop)[plan.loop_id]
        if attempt.state is AttemptState.WAITING and (attempt.tip_sha is None or not attempt.wait_reason):
            yield f"{name}: {attempt.id} is parked without its work or without a reason"
        # Nobody has to decide about work that a person called off, or does by hand: who starts next is asked anew.
        if loop.state is LoopState.RUNNING and attempt.state is not AttemptState.CANCELLED:
            yield f"{name}: {loop.id} goes on"


@at_end
def every_cost_is_charged_once(watch: Watch) -> Problems:
    """What a plan has spent is the sum of what its runs have cost."""
    for plan in watch.all(Plan).values():
        cost = _spent([one for one in watch.all(Run).values() if one.plan_id == plan.id])
        if plan.spent_micros != cost:
            yield f"{plan.id} has spent {plan.spent_micros}, its runs cost {cost}"


# --- accounts --------------------------------------------------------------------------------------------


@on_commit(Run)
def a_closed_account_lets_one_probe_in(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """While an account is closed no run starts that draws from it, but for one at a time that finds out."""
    for change in moves(changes, Run, RunState.RUNNING):
        run = change.after
        envelope = watch.all(Envelope).get(envelope_id(run.agent or ""))
        if envelope is None or envelope.state is EnvelopeState.OPEN:
            continue
        if envelope.probe != run.attempt_id:
            yield f"{name} starts {run.id}, but {envelope.id} is closed and {envelope.probe} finds out"
        before = watch.all(Run).get(watch.probes.get(envelope.id, ""))
        if before is not None and before.state is RunState.RUNNING:
            yield f"{name} starts {run.id} while {before.id} finds out about {envelope.id}"
        watch.probes[envelope.id] = run.id


@on_commit(Envelope)
def an_account_opens_for_a_reason(watch: Watch, name: str, changes: tuple[Change, ...]) -> Problems:
    """A closed account opens because a person says so, or because its probe was let in."""
    for change in changes:
        if change.kind is not Envelope:
            continue
        if change.after.state is EnvelopeState.OPEN:
            watch.probes.pop(change.id, None)
        if change.before is None or (change.before.state, change.after.state) != (
            EnvelopeState.CLOSED,
            EnvelopeState.OPEN,
        ):
            continue
        if name == "command.open":
            continue
        before = change.before
        if before.probe is None or before.probed_at is None:
            yield f"{name} opens {change.id} without a probe"
            continue
        run = watch.all(Run)[watch.all(Attempt)[before.probe].run_id]
        lasted = watch.universe.database._clock.now() - before.probed_at
        if run.state is RunState.RUNNING and lasted < PROVEN_AFTER:
            yield f"{name} opens {change.id} after {lasted}, while {run.id} only finds out"
        if run.failure is not None and RULES[run.failure].closes:
            yield f"{name} opens {change.id}, which let nobody in: {run.failure.value}"


@at_end
def one_alert_for_each_closing(watch: Watch) -> Problems:
    """An account that closes gives one alert, and no task fails because of it."""
    closed: set[str] = set()
    types = ("envelope_closed", "envelope_opened")
    for event in watch.universe.database.read_sync(lambda tx: tx.events(limit=10**9, types=types)):
        account = event.payload["envelope"]
        if event.type == "envelope_opened":
            closed.discard(account)
        elif account in closed:
            yield f"event {event.n} tells once more that {account} is closed"
        else:
            closed.add(account)
    for task in watch.all(Task).values():
        if task.failure is not None and RULES[task.failure].closes:
            yield f"{task.key} failed of its account: {task.failure.value}"
