"""Bodies of requests about plans, and the short replies."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from loopwright.core.plans.draft_edits import DraftEdit, DraftTask
from loopwright.core.values.states import PlanState
from loopwright.server.shapes import AgentName, Camel, CamelRequest, GateResult, ModelName, SnakeRequest
from loopwright.services.remote import plans


class Result(BaseModel):
    """The result of a decision."""

    command: str = Field(description="The id of its record.")
    result: str
    notes: list[str]


class Pause(SnakeRequest):
    """How to pause."""

    now: bool = Field(default=False, description="Interrupt running agents; otherwise they may finish.")


class Retry(SnakeRequest):
    """How to try a task again."""

    note: str | None = Field(default=None, max_length=20_000, description="A note for the agent.")
    agent: AgentName | None = None
    model: ModelName | None = None


class Skip(SnakeRequest):
    """Why you give up the task."""

    reason: str = Field(default="", max_length=2000)
    chain: bool = Field(default=False, description="Also give up every task that depends on this one.")


class ChangeTask(SnakeRequest):
    """What to change in a task."""

    priority: int | None = Field(default=None, ge=0, le=100, description="Lower goes first.")
    agent: AgentName | None = None
    model: ModelName | None = None


class InjectTask(SnakeRequest):
    """A task to add."""

    key: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
    title: str = Field(min_length=1, max_length=500)
    description: str = Field(default="", max_length=20_000)
    criteria: list[str] = Field(default_factory=list, max_length=100)
    acceptance: list[str] = Field(
        default_factory=list,
        max_length=100,
        description="Commands that must pass; they need the scope `admin`.",
    )
    priority: int = Field(default=50, ge=0, le=100)

    def item(self) -> plans.NewTask:
        """Return it as a value."""
        return plans.NewTask(
            key=self.key,
            title=self.title,
            description=self.description,
            criteria=tuple(self.criteria),
            acceptance=tuple(self.acceptance),
            priority=self.priority,
        )


class DispatchPlan(SnakeRequest):
    """How to dispatch a draft."""

    parallel: bool = Field(default=True, description="Run tasks at the same time.")
    despite: str = Field(
        default="", max_length=2000, description="Your reason to run a plan that its evaluation refused."
    )


class VerifyPlan(SnakeRequest):
    """How to verify a plan."""

    partial: bool = Field(default=False, description="Give up the failed tasks, and judge the landed work.")


class Fail(SnakeRequest):
    """Why a plan failed."""

    reason: str = Field(min_length=1, max_length=2000)


class Replan(SnakeRequest):
    """How to plan again."""

    goal: str = Field(default="", max_length=20_000, description="Empty for the goal of the plan.")
    model: ModelName | None = None
    autonomy: Literal["manual", "supervised", "auto"] | None = None


class EditTask(CamelRequest):
    """The new content of a draft's task; a part that you leave out does not change."""

    task_id: str = Field(
        min_length=1, max_length=128, description="Its id or its key; a new key adds a task."
    )
    title: str | None = Field(default=None, min_length=1, max_length=500)
    description: str | None = Field(default=None, max_length=20_000)
    priority: int | None = Field(default=None, ge=0, le=1000)
    dependencies: list[str] | None = Field(default=None, max_length=200, description="Ids or keys.")
    criteria: list[str] | None = Field(default=None, max_length=100)
    acceptance: list[str] | None = Field(
        default=None, max_length=100, description="Commands that must pass; they need the scope `admin`."
    )


class EditDraft(CamelRequest):
    """The new content of a draft."""

    title: str | None = Field(default=None, min_length=1, max_length=500)
    tasks: list[EditTask] | None = Field(
        default=None, min_length=1, max_length=1000, description="All tasks in their order."
    )

    def edit(self) -> DraftEdit:
        """Return it as a value."""
        return DraftEdit(
            title=self.title, tasks=None if self.tasks is None else tuple(map(_edited, self.tasks))
        )


def _edited(task: EditTask) -> DraftTask:
    def many(values: list[str] | None) -> tuple[str, ...] | None:
        return None if values is None else tuple(values)

    return DraftTask(
        key=task.task_id,
        title=task.title,
        description=task.description,
        priority=task.priority,
        depends_on=many(task.dependencies),
        criteria=many(task.criteria),
        acceptance=many(task.acceptance),
    )


class DispatchedRun(Camel):
    """The run of a task."""

    task_id: str
    run_id: str | None


class DispatchedPlan(Camel):
    """A plan that was dispatched."""

    plan_id: str
    status: PlanState
    runs: list[DispatchedRun]
    executed_at: datetime | None


class VerifiedPlan(Camel):
    """A verified plan, or one that failed verification."""

    plan_id: str
    status: PlanState
    verify_run_id: str | None
    gate_result: GateResult | None
    verified_at: datetime | None
