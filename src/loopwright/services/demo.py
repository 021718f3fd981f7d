"""The demonstration: a sample repository, a scripted agent, and a summary of its records.

Not here: the commands that run in it, and what is printed (`cli.commands.start.demo`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Final

from loopwright.adapters.store.sql import SqlStore
from loopwright.core.rows.model import Attempt, Plan, Role, Run, Task
from loopwright.core.values.failures import Failure
from loopwright.core.values.states import AttemptState
from loopwright.engine.rows.world import HomePaths
from loopwright.engine.views.views import AttemptView, PlanView, TaskDetail, plan_view, task_detail
from loopwright.ports import Tx
from loopwright.testing.sample import demo_plan, demo_script, make_sample_repository
from loopwright.testing.scripted import write_script

# Create the sample repository of the demonstration, with its plan and the script of its agent.

SAMPLE: Final = "demo"
"""The folder of a home with the sample that the dashboard's first page creates."""
SHOP: Final = "shop"
"""The folder of the repository."""
SCRIPT: Final = "script.json"
"""The script of its agent."""


def make_sample(folder: Path, *, pause_s: float = 0.3) -> None:
    """Create everything that the demonstration needs in an empty folder; its agent pauses in each attempt."""
    shop = folder / SHOP
    shop.mkdir()
    # Written before the first commit, which includes every file.
    (shop / "plan.yaml").write_text(demo_plan(), encoding="utf-8")
    make_sample_repository(shop)
    write_script(folder / SCRIPT, demo_script(pause_s=pause_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyClaim:
    """An attempt that claimed to be done and had changed nothing."""

    task: str
    attempt: int
    claim: str
    landed_in: int
    """The attempt that then did the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """An attempt that a check rejected, and whose successor got the reason."""

    task: str
    attempt: int
    check: str
    evidence: str
    """What the check printed, as the next attempt's prompt repeated it."""
    landed_in: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """Two agents that worked at the same time."""

    tasks: tuple[str, str]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """The parts of a demonstration's plan that are shown."""

    plan: PlanView
    empty_claim: EmptyClaim | None
    fixed: Fixed | None
    side_by_side: SideBySide | None


def read_story(home: Path) -> Story | None:
    """Read the story of the newest plan of a home; None if it has none."""
    store = SqlStore.open(home / "loopwright.db", create=False)
    try:
        return store.read_sync(lambda tx: _story(tx, HomePaths(root=home)))
    finally:
        store.close_sync()


def _story(tx: Tx, paths: HomePaths) -> Story | None:
    plans = tx.find(Plan, order_by=("-created_at",), limit=1)
    if not plans:
        return None
    tasks = tx.find(Task, plan_id=plans[0].id, order_by=("position",))
    details = [task_detail(tx, task.id, paths) for task in tasks]
    attempts = {one.id: one for one in tx.find(Attempt, plan_id=plans[0].id)}
    runs = tx.find(Run, plan_id=plans[0].id, role=Role.IMPLEMENTER)
    return Story(
        plan=plan_view(tx, plans[0].id, paths),
        empty_claim=next(filter(None, map(_empty_claim, details)), None),
        fixed=next(filter(None, (_fixed(detail, attempts) for detail in details)), None),
        side_by_side=_side_by_side(runs, {task.id: task.key for task in tasks}),
    )


def _landed(detail: TaskDetail) -> int | None:
    return next((one.n for one in detail.attempts if one.state == AttemptState.LANDED), None)


def _failed(detail: TaskDetail, failure: Failure) -> AttemptView | None:
    return next((one for one in detail.attempts if one.failure == failure), None)


def _empty_claim(detail: TaskDetail) -> EmptyClaim | None:
    failed, landed = _failed(detail, Failure.NO_CHANGE), _landed(detail)
    if failed is None or landed is None or not failed.summary:
        return None
    return EmptyClaim(task=detail.task.key, attempt=failed.n, claim=failed.summary, landed_in=landed)


def _fixed(detail: TaskDetail, attempts: dict[str, Attempt]) -> Fixed | None:
    failed, landed = _failed(detail, Failure.GATE), _landed(detail)
    if failed is None or landed is None or not failed.failing_checks:
        return None
    check = failed.failing_checks[0]
    told = "\n".join(attempts[one.id].evidence for one in detail.attempts if one.n == failed.n + 1)
    # The check's own output, and only if the next attempt really got it.
    said = [line.strip() for line in check.message.splitlines()[1:] if line.strip() and line.strip() in told]
    if not said:
        return None
    return Fixed(
        task=detail.task.key, attempt=failed.n, check=check.name, evidence=said[-1], landed_in=landed
    )


def _side_by_side(runs: Sequence[Run], keys: dict[str, str]) -> SideBySide | None:
    """Return the two tasks whose agents worked at the same time for longest."""
    best: SideBySide | None = None
    for one, other in combinations(runs, 2):
        if one.task_id is None or other.task_id is None or one.task_id == other.task_id:
            continue
        if not (one.started_at and one.ended_at and other.started_at and other.ended_at):
            continue
        shared = min(one.ended_at, other.ended_at) - max(one.started_at, other.started_at)
        seconds = shared.total_seconds()
        if seconds > (best.seconds if best else 0.0):
            best = SideBySide(tasks=(keys[one.task_id], keys[other.task_id]), seconds=seconds)
    return best
