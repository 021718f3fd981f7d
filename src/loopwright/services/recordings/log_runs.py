"""Which runs `logs` prints: those of a task's attempt, of a plan's verification, or a single one."""

from dataclasses import dataclass
from typing import Final, Literal

from loopwright.core.rows.model import Attempt, Loop, Plan, Role, Run, Task, VerdictRecord
from loopwright.core.values.errors import NotFound
from loopwright.core.values.ids import short_id
from loopwright.core.values.states import LIVE_ATTEMPT, PROCESS_OVER, SETTLED_TASK, LoopState
from loopwright.ports import Tx
from loopwright.services.homes.read_only_home import find_target

RoleName = Literal[
    "agent",
    "reviewer",
    "planner",
    "plan-evaluator",
    "investigator",
    "gate",
    "setup",
    "verify",
    "evaluation",
    "baseline",
    "finish",
]
ROLES: Final[dict[RoleName, Role]] = {
    "agent": Role.IMPLEMENTER,
    "reviewer": Role.REVIEWER,
    "planner": Role.PLANNER,
    "plan-evaluator": Role.PLAN_EVALUATOR,
    "investigator": Role.INVESTIGATOR,
    "gate": Role.GATE,
    "setup": Role.SETUP,
    "verify": Role.VERIFY,
    "evaluation": Role.EVALUATION,
    "baseline": Role.BASELINE,
    "finish": Role.FINISH,
}
NAMES: Final = {role: name for name, role in ROLES.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The runs to print, in order, and whether more may come."""

    runs: tuple[Run, ...]
    attempts: dict[str, int]
    """The number of each run's attempt, by run id."""
    more: bool
    reused: dict[str, str]
    """Earlier gate runs whose verdict was reused: the original run, by run id."""
    became: str = ""
    """How the named task ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the user wants to see."""

    target: str
    role: RoleName | None
    attempt: int | None


def choose(tx: Tx, wish: Wish, since: frozenset[str] = frozenset()) -> Chosen:
    """Find the runs to print; with `since`, those that follow what was already printed, including later attempts."""
    row = find_target(tx, wish.target)
    attempts: list[Attempt] = []
    earlier: list[Run] = []
    if isinstance(row, Run):
        runs, plan_id = [row], row.plan_id
    elif isinstance(row, Task):
        attempts = _attempts(tx, row, wish, since)
        runs = tx.find(Run, attempt_id=[one.id for one in attempts], order_by=("created_at",))
        plan_id = row.plan_id
        earlier = _judged_before(tx, attempts, runs)
        runs += [run for run in earlier if run.id not in since]
        # A baseline shows the checks without the work, and says nothing about the work itself.
        runs.sort(key=lambda run: run.role is not Role.BASELINE)
    else:
        complete = (Role.FINISH,) if wish.role == "finish" else (Role.VERIFY, Role.EVALUATION)
        runs, plan_id = tx.find(Run, plan_id=row.id, role=complete, order_by=("created_at",)), row.id
        # Held-out checks ran after the visible commands.
        begun = next((n for n, run in enumerate(runs) if run.id == row.verify_run_id), -1)
        runs = runs[begun if wish.role != "finish" else -1 :]
    wanted = [
        run
        for run in runs
        if run.started_at is not None and (wish.role is None or run.role is ROLES[wish.role])
    ]
    numbers = {one.id: one.n for one in attempts}
    return Chosen(
        runs=tuple(wanted),
        attempts={run.id: numbers[run.attempt_id] for run in wanted if run.attempt_id in numbers},
        more=_more(tx, row, plan_id, attempts, runs, wish),
        reused={run.id: _where(tx, run) for run in earlier},
        became=_became(row, attempts) if isinstance(row, Task) else "",
    )


def _became(task: Task, attempts: list[Attempt]) -> str:
    """Return the state of a task, or how an earlier attempt ended."""
    last = attempts[-1] if attempts else None
    if last is not None and last.id != task.attempt_id:
        why = f" ({last.failure.value.replace('_', ' ')})" if last.failure else ""
        return f"attempt {last.n} at {task.key}: {last.state.value.lower()}{why}"
    word = (task.outcome or task.status).value.lower().replace("_", " ")
    landed = f", landed as {task.landed_sha[:7]}" if task.landed_sha else ""
    return f"{task.key}: {word}{landed}"


def _judged_before(tx: Tx, attempts: list[Attempt], runs: list[Run]) -> list[Run]:
    """Return the gates whose verdict was reused: a tree is not checked twice."""
    records = [tx.get(VerdictRecord, one.verdict_id) for one in attempts if one.verdict_id]
    ids = dict.fromkeys(one.run_id for one in records if one is not None)
    own = {run.id for run in runs}
    return [run for one in ids if one not in own and (run := tx.get(Run, one)) is not None]


def _where(tx: Tx, run: Run) -> str:
    attempt = tx.get(Attempt, run.attempt_id) if run.attempt_id else None
    task = tx.get(Task, run.task_id) if run.task_id else None
    return f"attempt {attempt.n} at {task.key}" if attempt and task else "an earlier attempt"


def _attempts(tx: Tx, task: Task, wish: Wish, since: frozenset[str]) -> list[Attempt]:
    """Return the wanted attempt; while following, the later ones too."""
    every = tx.find(Attempt, task_id=task.id, order_by=("n",))
    if wish.attempt is not None:
        return [one for one in every if one.n == wish.attempt]
    runs = tx.find(Run, task_id=task.id)
    started = {run.attempt_id for run in runs if run.started_at is not None}
    begun = [one for one in every if one.id in started]
    if not since and wish.role not in (None, "gate"):
        # The newest attempt may have no such run yet: then use an earlier one. (A gate may have been reused.)
        of_role = {run.attempt_id for run in runs if run.started_at and NAMES[run.role] == wish.role}
        return [one for one in begun if one.id in of_role][-1:] or begun[-1:]
    if not since:
        return begun[-1:]
    seen = {run.attempt_id for run in runs if run.id in since}
    first = min((one.n for one in every if one.id in seen), default=0)
    return [one for one in begun if one.n >= first]


def _more(
    tx: Tx, row: Plan | Task | Run, plan_id: str, attempts: list[Attempt], runs: list[Run], wish: Wish
) -> bool:
    """Return whether more output may follow."""
    if any(run.state not in PROCESS_OVER and run.started_at is not None for run in runs):
        return True
    if isinstance(row, Run):
        return False
    plan = tx.get(Plan, plan_id)
    loop = tx.get(Loop, plan.loop_id) if plan else None
    if loop is None or loop.plan_id != plan_id or loop.state is not LoopState.RUNNING:
        return False
    if isinstance(row, Task):
        if wish.attempt is not None:
            return any(one.state in LIVE_ATTEMPT for one in attempts)
        return row.status not in SETTLED_TASK
    return True


def nothing(tx: Tx, wish: Wish) -> NotFound:
    """Return the error that says why there is no output, and what to request instead."""
    row = find_target(tx, wish.target)
    what = f" {wish.role}" if wish.role else ""
    if isinstance(row, Run):
        if row.started_at is None:
            return NotFound(
                f"{row.id} has not started yet", code="run_not_started", hint="--follow waits for it"
            )
        return NotFound(
            f"{row.id} is no{what} run but {NAMES[row.role]}",
            code="run_of_another_role",
            hint="leave out --role",
        )
    if isinstance(row, Plan):
        keys = [task.key for task in tx.find(Task, plan_id=row.id, order_by=("position",), limit=5)]
        return NotFound(
            f"the plan {row.title!r} has not been verified yet, so its gate printed nothing",
            code="no_output",
            hint=f"name a task: {', '.join(keys)}",
        )
    tried = {run.attempt_id: run for run in tx.find(Run, task_id=row.id) if run.started_at is not None}
    numbers = [one.n for one in tx.find(Attempt, task_id=row.id, order_by=("n",)) if one.id in tried]
    if wish.attempt is not None and wish.attempt not in numbers:
        return NotFound(
            f"there is no attempt {wish.attempt} at {row.key}",
            code="attempt_not_found",
            hint=f"there are: {', '.join(map(str, numbers)) or 'none yet'}",
        )
    if wish.role in ("verify", "evaluation"):
        return NotFound(
            "a task has no verification: the plan has",
            code="no_output",
            hint=f"loopwright logs {short_id(row.plan_id)}",
        )
    if wish.role == "gate" and numbers:
        return NotFound(
            f"no gate ran in this attempt at {row.key}: it did not get so far, or exactly this tree was judged before",
            code="no_output",
            hint=f"--attempt picks another: {', '.join(map(str, numbers))}",
        )
    return NotFound(
        f"there is no{what} output of {row.key} yet",
        code="no_output",
        hint="--follow waits for it, --attempt picks another",
    )
