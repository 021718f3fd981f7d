"""What may still be spent: checked before an agent starts and whenever it reports its use."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any, Final

from loopwright.core.policy import budget
from loopwright.core.policy.budget import Over, nobody_knows
from loopwright.core.policy.prices import estimate
from loopwright.core.rows.events import RecordedEvent, happened
from loopwright.core.rows.model import AGENT_ROLES, Attempt, Plan, Project, Role, Run, Task, Usage
from loopwright.core.values.states import AttemptState, RunState, TaskState
from loopwright.engine.money.charges import TokenSpending, spending_of_plan
from loopwright.engine.rows.moves import MACHINE, need
from loopwright.engine.rows.reservations import Reservations
from loopwright.engine.rows.world import World
from loopwright.ports import AgentEvent, Tx

_LAST_WORDS_S = 1.0
_AGENT_TO_COME = (AttemptState.QUEUED, AttemptState.PREPARING, AttemptState.WORKING, AttemptState.WAITING)


def caps(
    tx: Tx,
    world: World,
    plan: Plan,
    run: Run,
    *,
    own: int = 0,
    estimated: bool = False,
    reserve: bool = False,
) -> budget.Caps:
    """Return the caps of a run, with `own` as its own cost.

    The costs of other agents so far count. With `reserve`, the most that each of them may cost is reserved;
    without a limit, its probable cost.
    """
    token = spending_of_plan(tx, plan)
    return _caps(tx, world, plan, run, token, own=own, estimated=estimated, reserve=reserve)


def _caps(
    tx: Tx,
    world: World,
    plan: Plan,
    run: Run,
    token: TokenSpending | None,
    *,
    own: int = 0,
    estimated: bool = False,
    reserve: bool,
) -> budget.Caps:
    if not _has_caps(plan, token):
        return ()
    spent = spent_before(tx, plan, token) + _spent_on_task(tx, plan, run)
    spent += Counter(dict.fromkeys((*budget.CAPS, budget.GRANT), own))
    reserved: Counter[str] = Counter()
    expected: Counter[str] = Counter()
    reservations = Reservations(tx)
    for other in tx.find(Run, state=RunState.RUNNING, role=AGENT_ROLES):
        theirs = need(tx.get(Plan, other.plan_id), "the plan")
        is_here = theirs.project_id == plan.project_id
        is_charged = token is not None and theirs.id in token.plans
        if other.id == run.id or not (is_here or is_charged):
            continue
        same = {
            "max_cost_per_day": is_here,
            "max_cost_per_project": is_here,
            budget.GRANT: is_charged,
            "max_cost_per_loop": theirs.loop_id == plan.loop_id,
            "max_cost": theirs.id == plan.id,
        }
        held = so_far = world.ledger.so_far(other.id)
        if reserve and theirs.policy.max_cost_per_run is not None:
            held = max(other.max_cost_micros or 0, so_far)
        elif reserve:
            rest = max(0, reservations.of(theirs, other) - so_far)
            expected.update({setting: rest for setting, counts in same.items() if counts})
        counted = reserved if reserve else spent
        counted.update({setting: held for setting, counts in same.items() if counts})
    estimated = estimated or tx.count(Run, plan_id=plan.id, cost_estimated=True) > 0
    return budget.caps(
        plan.policy,
        spent,
        reserved,
        expected,
        estimated=estimated,
        token_limit=token.limit if token else None,
        now=tx.now(),
    )


def ended_caps(tx: Tx, plan: Plan, task: Counter[str] | None = None) -> budget.Caps:
    """Return the caps of a plan with the costs of ended runs; `task` is what a task has cost."""
    token = spending_of_plan(tx, plan)
    if not _has_caps(plan, token):
        return ()
    spent = spent_before(tx, plan, token) + (task or Counter())
    return budget.caps(plan.policy, spent, token_limit=token.limit if token else None, now=tx.now())


def _has_caps(plan: Plan, token: TokenSpending | None) -> bool:
    return token is not None or budget.has_caps(plan.policy)


def allowance(tx: Tx, world: World, plan: Plan, run: Run) -> int | None:
    """Return how much a run that is about to start may cost; None if nothing limits it, 0 if it has to wait."""
    these = caps(tx, world, plan, run, reserve=True)
    left = budget.allowance(these, expected=Reservations(tx).of(plan, run) if these else 0)
    cap = review_cap(tx, run)
    return left if cap is None else cap.left if left is None else min(left, cap.left)


def review_cap(tx: Tx, run: Run, *, own: int = 0) -> budget.Cap | None:
    """Return the cap on the reviews of a task, if this run is one of them; `own` is its own cost."""
    if run.role is not Role.REVIEWER:
        return None
    policy = need(tx.get(Plan, run.plan_id), "the plan").policy
    others = [one for one in tx.find(Run, task_id=run.task_id, role=AGENT_ROLES) if one.id != run.id]
    reviewed = sum(one.cost_micros or 0 for one in others if one.role is Role.REVIEWER)
    worked = sum(one.cost_micros or 0 for one in others if one.role is not Role.REVIEWER)
    return budget.review_cap(policy, worked=worked, reviewed=reviewed + own)


def is_reviewed_out(tx: Tx, run: Run, over: Over | None) -> bool:
    """Return whether a run was stopped by the cap on reviews, and not by one that pauses the loop."""
    if over is not None:
        return over.setting == budget.REVIEW
    cap = review_cap(tx, run)
    return cap is not None and run.max_cost_micros is not None and cap.left <= run.max_cost_micros


def waiting(tx: Tx, plan: Plan) -> dict[str, Any]:
    """Return what to write on an attempt whose agent waits until others leave enough of the budget.

    It continues when one of them ends, when the user sets other limits, or on a new day.
    """
    daily = plan.policy.max_cost_per_day is not None
    return {"wait_reason": budget.WAITS, "wake_at": budget.next_day(tx.now()) if daily else None}


def has_to_wait(tx: Tx, world: World, plan: Plan, run: Run) -> bool:
    """Return whether running agents reserve the rest of the budget, although it is not spent yet."""
    if budget.over_budget(plan) or may_not_start(tx, world, plan, run):
        return False
    left = allowance(tx, world, plan, run)
    return left is not None and left <= 0


def spent_before(tx: Tx, plan: Plan, token: TokenSpending | None) -> Counter[str]:
    """Return the costs of ended runs for each cap, except those of a single run or task."""
    project = need(tx.get(Project, plan.project_id), "the project")
    today, _ = budget.spent_today(project, tx.now())
    spent = Counter({"max_cost": plan.spent_micros, "max_cost_per_day": today})
    for setting, plans in _together(tx, plan).items():
        spent[setting] = sum(one.spent_micros for one in plans)
    if token is not None:
        spent[budget.GRANT] = token.spent
    return spent


def _spent_on_task(tx: Tx, plan: Plan, run: Run) -> Counter[str]:
    if plan.policy.max_cost_per_task is None or run.task_id is None:
        return Counter()
    ended = tx.find(Run, task_id=run.task_id, role=AGENT_ROLES)
    return Counter({"max_cost_per_task": sum(one.cost_micros or 0 for one in ended)})


def _together(tx: Tx, plan: Plan) -> dict[str, list[Plan]]:
    """Return the plans that share each cap."""
    found: dict[str, list[Plan]] = {}
    if plan.policy.max_cost_per_loop is not None:
        found["max_cost_per_loop"] = tx.find(Plan, loop_id=plan.loop_id)
    if plan.policy.max_cost_per_project is not None:
        found["max_cost_per_project"] = tx.find(Plan, project_id=plan.project_id)
    return found


def may_not_start(tx: Tx, world: World, plan: Plan, run: Run) -> Over | None:
    """Return the cap that keeps an agent from starting, if any; `over_budget` alone checks that of a plan."""
    for setting, plans in _together(tx, plan).items():
        if any(one.unknown_costs for one in plans):
            return nobody_knows(setting)
    if plan.policy.max_cost_per_day is not None:
        project = need(tx.get(Project, plan.project_id), "the project")
        if budget.spent_today(project, tx.now())[1]:
            return nobody_knows("max_cost_per_day", until=budget.next_day(tx.now()))
    token = spending_of_plan(tx, plan)
    return _unknown_of_token(token) or budget.used_up(_caps(tx, world, plan, run, token, reserve=True))


def _unknown_of_token(token: TokenSpending | None) -> Over | None:
    return nobody_knows(budget.GRANT) if token is not None and token.unknown else None


def still_over(tx: Tx, plan: Plan) -> Over | None:
    """Return the cap that would pause a plan again at once; None if it could continue."""
    if not _has_agents_to_start(tx, plan):
        return None
    these = ended_caps(tx, plan, _dearest_task(tx, plan))
    return budget.over_budget(plan) or _unknown_of_token(spending_of_plan(tx, plan)) or budget.used_up(these)


def _has_agents_to_start(tx: Tx, plan: Plan) -> bool:
    """Return whether more could be spent: checking and landing cost nothing."""
    queued = tx.find(Task, plan_id=plan.id, status=TaskState.QUEUED, limit=1)
    return bool(queued or tx.find(Attempt, plan_id=plan.id, state=_AGENT_TO_COME, limit=1))


def _dearest_task(tx: Tx, plan: Plan) -> Counter[str]:
    """Return the highest cost among the tasks in progress."""
    going = {one.id for one in tx.find(Task, plan_id=plan.id, status=TaskState.RUNNING)}
    if plan.policy.max_cost_per_task is None or not going:
        return Counter()
    costs: Counter[str] = Counter()
    for run in tx.find(Run, plan_id=plan.id, task_id=going, role=AGENT_ROLES):
        costs[run.task_id or ""] += run.cost_micros or 0
    return Counter({"max_cost_per_task": max(costs.values(), default=0)})


def warn_when_charged(tx: Tx, run: Run) -> None:
    """Warn of nearly used up caps after a run has ended: many agents report their cost only then."""
    plan = need(tx.get(Plan, run.plan_id), "the plan")
    warn(tx, plan, run, ended_caps(tx, plan, _spent_on_task(tx, plan, run)))


class SpendingWatch:
    """Adds up a run's reports, warns before a cap is reached, and reports a reached cap."""

    def __init__(self, world: World, run: Run, prices: tuple[str, ...]) -> None:
        self._world = world
        self._run = run
        self._prices = prices
        self._model = run.model
        self._cost = 0
        """The cost in its last report; a run that has not reported yet is stopped like the others."""
        self._highest = 0
        """The highest cost so far: an estimate may be above the final report."""
        self._estimated = False
        self._warned: frozenset[str] = frozenset()
        """The caps that were already warned about."""
        self.over: Over | None = None
        """Why it has to stop; None while it may continue."""

    def hear(self, event: AgentEvent) -> None:
        """Take in a report of the run."""
        if event.kind == "Started":
            self._model = event.data.get("model") or self._model
        if event.kind == "Usage":
            cost = cost_so_far(event.data, self._model, self._prices)
            if cost is not None:
                self._cost = cost
                self._estimated = event.data["run"].get("cost_micros") is None
                self._highest = max(cost, self._highest)
                self._world.ledger.note(self._run.id, cost)

    async def until_over(self) -> None:
        """Wait until the run has reached its cost limit."""
        grown = self._world.ledger.watch(self._run.id)
        while not await self.is_over():
            await grown.wait()
            grown.clear()
        # The last report of the cost often comes with its last message: then it is done, and need not be stopped.
        await self._world.clock.sleep(_LAST_WORDS_S)

    async def is_over(self) -> bool:
        """Return whether the run has reached its cost limit; warn once of each nearly used up cap."""
        own = self._cost
        found = await self._world.store.read(lambda tx: self._look(tx, own))
        self.over = budget.used_up(found)
        counted = [cap for cap in found if cap.setting != budget.REVIEW]
        near = tuple(cap for cap in counted if cap.is_near and cap.setting not in self._warned)
        if self.over is None and near:
            self._warned |= {cap.setting for cap in near}
            await self._world.store.transact("budget.near", lambda tx: self._warn(tx, near))
        return self.over is not None

    async def was_over(self) -> bool:
        """Return whether the run had to be stopped at some moment."""
        most = self._highest
        self.over = budget.used_up(await self._world.store.read(lambda tx: self._look(tx, most)))
        return self.over is not None

    def forget(self) -> None:
        """Stop counting the run as active."""
        self._world.ledger.forget(self._run.id)

    def _look(self, tx: Tx, own: int) -> budget.Caps:
        plan = need(tx.get(Plan, self._run.plan_id), "the plan")
        found = caps(
            tx, self._world, plan, self._run, own=own, estimated=self._estimated or own != self._cost
        )
        share = review_cap(tx, self._run, own=own)
        return (*found, share) if share is not None else found

    def _warn(self, tx: Tx, near: budget.Caps) -> None:
        warn(tx, need(tx.get(Plan, self._run.plan_id), "the plan"), self._run, near)


def cost_so_far(data: Mapping[str, Any], model: str | None, prices: tuple[str, ...]) -> int | None:
    """Return a run's cost by its own report, or by its total tokens; None if unknown.

    Of several models, those without a price are left out: while it runs, too little is better than nothing.
    """
    told = data.get("run")
    if told is None:
        return None
    cost: int | None = told.get("cost_micros")
    if cost is not None:
        return cost
    used = data.get("models") or {model: told}
    known = [sum_ for name, one in used.items() if (sum_ := estimate(name, _usage(one), prices)) is not None]
    return sum(known) if known else None


def _usage(told: Mapping[str, Any]) -> Usage:
    return Usage(**{one.name: told.get(one.name) for one in fields(Usage)})


# The warning that a cap is nearly used up: written once for each, and shown while it holds.

_EVENT: Final = "budget_near"
_GOES_ON: Final = frozenset({TaskState.QUEUED, TaskState.RUNNING, TaskState.AWAITING_RESPONSE})


def warn(tx: Tx, plan: Plan, run: Run, these: budget.Caps) -> None:
    """Warn of each of these caps that is nearly used up, unless that was done before.

    A worker that adopts a run reads all reports again, and the next run of a plan meets the same caps.
    """
    near = [cap for cap in these if cap.is_near]
    said = tx.events(plan=plan.id, types=(_EVENT,)) if near else []
    for cap in near:
        if not any(_is_of(one, cap.setting, cap.limit, run, tx.now()) for one in said):
            told: dict[str, Any] = {
                "cap": cap.setting,
                "spent_micros": cap.spent,
                "limit_micros": cap.limit,
            }
            tx.append(happened(_EVENT, MACHINE, plan=plan, run=run, **told))


def _is_of(said: RecordedEvent, setting: str, limit: int, run: Run, now: datetime) -> bool:
    if (said.payload["cap"], said.payload["limit_micros"]) != (setting, limit):
        return False
    # Caps per run, task and day are warned about again.
    if setting == "max_cost_per_run":
        return said.run == run.id
    if setting == "max_cost_per_task":
        return said.task == run.task_id
    return setting != "max_cost_per_day" or said.at.date() == now.date()


def in_force(tx: Tx, plan: Plan, these: budget.Caps) -> dict[str, str]:
    """Return the warnings of a plan that still hold, by the setting of their cap."""
    found: dict[str, str] = {}
    for said in tx.events(plan=plan.id, types=(_EVENT,)):
        cap = next((one for one in these if one.setting == said.payload["cap"]), None)
        if cap is None or cap.limit != said.payload["limit_micros"] or not _holds(tx, said, cap):
            continue
        spent = max(cap.spent, said.payload["spent_micros"])
        found[cap.setting] = budget.Cap(setting=cap.setting, limit=cap.limit, spent=spent).warning
    return found


def _holds(tx: Tx, said: RecordedEvent, cap: budget.Cap) -> bool:
    """Return whether a warning still holds: nearly, but not completely used up."""
    if cap.setting == "max_cost_per_run":
        run = tx.get(Run, said.run or "")
        return run is not None and run.state is RunState.RUNNING
    if cap.setting == "max_cost_per_task":
        task = tx.get(Task, said.task or "")
        spent = sum(one.cost_micros or 0 for one in tx.find(Run, task_id=said.task, role=AGENT_ROLES))
        return task is not None and task.status in _GOES_ON and spent < cap.limit
    today = cap.setting != "max_cost_per_day" or said.at.date() == tx.now().date()
    return today and cap.spent < cap.limit
