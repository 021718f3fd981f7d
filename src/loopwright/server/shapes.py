"""The JSON documents of the HTTP interface.

Plans, runs and events are camelCase, loops snake_case: programs for either form exist already.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from fastapi import Form
from pydantic import AliasChoices, AliasGenerator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from loopwright.core.rows.events import CATALOGUE, RecordedEvent
from loopwright.core.rows.model import Run
from loopwright.core.values.documents import plain
from loopwright.core.values.findings import CheckStatus, Verdict, VerdictStatus
from loopwright.core.values.states import PlanState, TaskState
from loopwright.services.remote.loops import LoopHealth, LoopView
from loopwright.services.remote.plans import PlanRecord, TaskRecord
from loopwright.services.remote.projects import ProjectView
from loopwright.services.remote.runs import LogPage

ModelName = Annotated[str, Field(max_length=200, pattern=r"^[A-Za-z0-9][!-~]*$")]
"""The name of a model. It cannot look like an option of the agent's program."""
ModelText = Annotated[str, Form(max_length=200, pattern=r"^$|^[A-Za-z0-9][!-~]*$")]
"""The same in a form, where it may be left out."""
AgentName = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
ORG: Final = "local"
"""The organisation of everything in a home: each home has exactly one."""


NEXT: Final = Field(default=None, description="`after` for the next page; null on the last one.")


class Camel(BaseModel):
    """A document whose names are camelCase."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True)


def _both(*ways: Callable[[str], str]) -> AliasGenerator:
    return AliasGenerator(
        validation_alias=lambda name: AliasChoices(*dict.fromkeys(way(name) for way in ways))
    )


class SnakeRequest(BaseModel):
    """A body whose names are snake_case; camelCase is taken as well, and an unknown name is refused."""

    model_config = ConfigDict(alias_generator=_both(str, to_camel), extra="forbid")


class CamelRequest(BaseModel):
    """A body whose names are camelCase; snake_case is taken as well, and an unknown name is refused."""

    model_config = ConfigDict(alias_generator=_both(to_camel, str), extra="forbid")


class Place(BaseModel):
    """One problem and its place."""

    place: str = Field(alias="in", description="The field of the request, or the file with the work.")
    message: str


class Problem(BaseModel):
    """An RFC 9457 problem."""

    type: str
    title: str
    status: int
    code: str = Field(description="The stable name of the cause.")
    detail: str
    hint: str | None = Field(default=None, description="What to do.")
    errors: list[Place] | None = Field(default=None, description="Every problem with its place.")
    choices: list[str] | None = Field(default=None, description="The possible meanings of an ambiguous name.")


class GateCheck(Camel):
    """One check of the complete gate."""

    name: str
    passed: bool
    message: str
    duration: int | None = Field(default=None, description="Milliseconds.")


class GateResult(Camel):
    """The result of the complete gate."""

    passed: bool
    checks: list[GateCheck]


class EvaluationFinding(Camel):
    """A finding of a plan's evaluation."""

    check: str
    weight: str
    text: str


class PlanEvaluation(Camel):
    """Whether a plan may run. A plan that did not pass needs a reason to be dispatched."""

    passed: bool
    despite: str = Field(default="", description="Why it runs although it did not pass.")
    findings: list[EvaluationFinding]


class PlanTask(Camel):
    """A task of a plan."""

    task_id: str
    key: str = Field(description="Its name in the source.")
    title: str
    description: str
    priority: int
    dependencies: list[str] = Field(description="The ids of the tasks that this one depends on.")
    run_id: str | None = None
    status: TaskState
    attempts: int = Field(description="Attempts that count against the limit. A reset sets it to 0.")
    outcome: str | None = None
    reason: str = ""
    landed_sha: str | None = None


class PlanDocument(Camel):
    """A plan."""

    plan_id: str
    project_id: str
    loop_id: str
    org_id: str = ORG
    run_id: str | None = Field(default=None, description="The run that its inspection packet is about.")
    packet_id: str | None = Field(default=None, description="The inspection packet that it was planned from.")
    replaces: str | None = Field(default=None, description="The plan that it replaces.")
    planner_plan_id: str | None = Field(
        default=None, description="The plan of the planner that writes the tasks."
    )
    title: str
    status: PlanState
    planning: bool = Field(default=False, description="An agent is writing its tasks.")
    autonomy: str
    evaluating: bool = Field(
        default=False,
        description="The complete gate runs before verification, while a task can still fix failures.",
    )
    evaluation: PlanEvaluation
    outcome: str | None = None
    reason: str = ""
    tasks: list[PlanTask]
    verify_run_id: str | None = Field(default=None, description="The run of the complete gate.")
    gate_result: GateResult | None = None
    branch: str
    base_sha: str
    result_sha: str | None = None
    spent_micros: int
    created_at: datetime
    updated_at: datetime
    executed_at: datetime | None = Field(default=None, description="When it was dispatched.")
    completed_at: datetime | None = Field(default=None, description="When its last task ended.")
    verified_at: datetime | None = Field(default=None, description="When the complete gate finished.")


class PlanChange(Camel):
    """One change of a plan's status."""

    type: str
    at: datetime
    actor: str
    reason: str = ""


class PlanDetail(PlanDocument):
    """A plan with its history."""

    history: list[PlanChange] = Field(
        description="Every change of its status in all cycles, the oldest first."
    )


class PlanPage(Camel):
    """Some plans."""

    plans: list[PlanDocument]
    next: str | None = NEXT


class RunDocument(Camel):
    """A run: one agent process, or one gate execution."""

    run_id: str
    session_id: str | None = None
    plan_id: str
    plan_task_id: str | None = None
    task_run_id: str = Field(description="`verify_<planId>` for the plan's own gate, else the attempt.")
    role: str
    status: str
    agent: str | None = None
    model: str | None = None
    prompt: str | None = None
    summary: str = ""
    cost_micros: int | None = None
    exit_code: int | None = None
    failure: str | None = None
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None


class RunPage(Camel):
    """Some runs."""

    runs: list[RunDocument]
    next: str | None = NEXT


class LogLine(Camel):
    """One line of output."""

    offset: int
    stream: str
    line: str


class Logs(Camel):
    """Some lines of output."""

    logs: list[LogLine]
    next_offset: int
    has_more: bool


class EventDocument(Camel):
    """Something that happened."""

    n: int = Field(description="Its number in the log: without gaps, in order.")
    id: str
    org_id: str = ORG
    type: str
    timestamp: datetime
    actor: str
    importance: Literal["low", "normal", "high"]
    summary: str
    project_id: str | None = None
    loop_id: str | None = None
    plan_id: str | None = None
    task_id: str | None = None
    attempt_id: str | None = None
    run_id: str | None = None
    details: dict[str, Any]


class EventPage(Camel):
    """Some events."""

    events: list[EventDocument]
    last: int = Field(description="The value of `after` for the next request.")
    has_more: bool = Field(description="Whether the log has more events, even if this page is empty.")


class Progress(BaseModel):
    """How many tasks passed."""

    passed: int
    total: int


class Resources(BaseModel):
    """The resources of a loop."""

    agent: str | None
    model: str | None
    max_concurrent: int | None


class Budget(BaseModel):
    """The budget of a loop, in millionths of a dollar."""

    max_cost: int | None
    spent: int


class LoopDocument(BaseModel):
    """A loop."""

    id: str
    name: str
    project_id: str
    project: str
    source_kind: str
    source_path: str
    status: str = Field(description="idle, starting, running, paused, stopped, completed or failed.")
    reason: str
    plan_id: str | None
    plan_status: str | None
    pid: int | None
    started_at: datetime | None
    last_heartbeat: datetime | None
    current_test: str | None
    current_tasks: list[str]
    progress: Progress
    priority: int
    resources: Resources | None
    budget: Budget | None
    resume_at: datetime | None
    created_at: datetime
    updated_at: datetime


class LoopPage(BaseModel):
    """Some loops."""

    loops: list[LoopDocument]
    next: str | None = NEXT


class HealthDocument(BaseModel):
    """Whether a loop is alive and could start work now."""

    loop_id: str
    status: str
    live: bool
    ready: bool
    why_not: str
    pid: int | None
    last_heartbeat: datetime | None
    progress: Progress
    current_test: str | None


class ProjectDocument(Camel):
    """A project."""

    project_id: str
    org_id: str = ORG
    name: str
    path: str
    subfolder: str
    loops: int
    running_loops: int
    plans: int
    open_questions: int
    needs_response: bool
    has_environment: bool
    created_at: datetime


class ProjectPage(Camel):
    """Some projects."""

    projects: list[ProjectDocument]
    next: str | None = NEXT


def loop_document(view: LoopView) -> LoopDocument:
    """Return a loop as a document."""
    status = "starting" if view.starting else view.status.value.lower()
    return LoopDocument(**{**plain(view), "status": status})


def health_document(health: LoopHealth) -> HealthDocument:
    """Return the health of a loop as a document."""
    return HealthDocument(**{**plain(health), "status": health.status.value.lower()})


def project_document(view: ProjectView) -> ProjectDocument:
    """Return a project as a document."""
    project = view.project
    return ProjectDocument(
        project_id=project.id,
        name=project.name,
        path=project.path,
        subfolder=project.subfolder,
        loops=view.loops,
        running_loops=view.running,
        plans=view.plans,
        open_questions=view.open_questions,
        needs_response=view.open_questions > 0,
        has_environment=project.environment is not None,
        created_at=project.created_at,
    )


def plan_document(record: PlanRecord) -> PlanDocument:
    """Return a plan as a document."""
    plan = record.plan
    ids = {one.task.key: one.task.id for one in record.tasks}
    return PlanDocument(
        plan_id=plan.id,
        project_id=plan.project_id,
        loop_id=plan.loop_id,
        run_id=plan.source_run_id,
        packet_id=plan.packet_id,
        replaces=plan.replaces,
        planner_plan_id=record.planner_plan_id,
        title=plan.title,
        status=PlanState.RUNNING if plan.evaluating else plan.status,
        planning=not record.is_written and plan.status is PlanState.DRAFT,
        autonomy=plan.policy.autonomy,
        evaluating=plan.evaluating,
        evaluation=PlanEvaluation(
            passed=bool(plan.evaluation.get("passed")),
            despite=str(plan.evaluation.get("despite") or ""),
            findings=[EvaluationFinding(**one) for one in plan.evaluation.get("findings", ())],
        ),
        outcome=plan.outcome.value if plan.outcome else None,
        reason=plan.reason,
        tasks=[_task(one, ids) for one in record.tasks],
        verify_run_id=plan.verify_run_id,
        gate_result=gate_result(record),
        branch=plan.branch,
        base_sha=plan.base_sha,
        result_sha=plan.result_sha,
        spent_micros=plan.spent_micros,
        created_at=plan.created_at,
        updated_at=plan.updated_at,
        executed_at=plan.executed_at,
        completed_at=plan.completed_at,
        verified_at=plan.verified_at,
    )


def plan_detail(record: PlanRecord) -> PlanDetail:
    """Return a plan with its history as a document."""
    changes = [
        PlanChange(type=one.type, at=one.at, actor=one.actor, reason=str(one.payload.get("reason") or ""))
        for one in record.history
    ]
    return PlanDetail(**dict(plan_document(record)), history=changes)


def _task(record: TaskRecord, ids: dict[str, str]) -> PlanTask:
    task = record.task
    return PlanTask(
        task_id=task.id,
        key=task.key,
        title=task.title,
        description=task.description or task.title,
        priority=task.priority,
        dependencies=[ids.get(one, one) for one in task.depends_on],
        run_id=record.run_id,
        status=task.status,
        attempts=task.attempts,
        outcome=task.outcome.value if task.outcome else None,
        reason=task.reason,
        landed_sha=task.landed_sha,
    )


def gate_result(record: PlanRecord) -> GateResult | None:
    """Return the result of the complete gate, command by command; for a draft without tasks, the planning error."""
    plan = record.plan
    verdict = plan.verdict
    if plan.status is PlanState.FAILED and (plan.policy.answer is not None or not record.is_written):
        return GateResult(
            passed=False, checks=[GateCheck(name="plan_generation", passed=False, message=plan.reason)]
        )
    if verdict is None:
        return None
    checks = [
        GateCheck(
            name=one.name,
            passed=one.exit_code == 0 and not one.timed_out,
            message=_message(one.name, verdict) or ("passed" if one.exit_code == 0 else "failed"),
            duration=round(one.duration_s * 1000),
        )
        for one in verdict.commands
    ]
    if not checks and verdict.reason:
        passed = verdict.status is VerdictStatus.PASSED
        checks = [GateCheck(name="gate", passed=passed, message=verdict.reason)]
    return GateResult(passed=verdict.status is VerdictStatus.PASSED, checks=checks)


def _message(command: str, verdict: Verdict) -> str:
    failed = [
        one.message or one.name
        for one in verdict.checks
        if one.id.startswith(command) and one.status in (CheckStatus.FAILED, CheckStatus.ERROR)
    ]
    return "; ".join(failed[:5])


def run_document(run: Run, prompt: str | None = None) -> RunDocument:
    """Return a run as a document."""
    return RunDocument(
        run_id=run.id,
        session_id=run.session_ref,
        plan_id=run.plan_id,
        plan_task_id=run.task_id,
        task_run_id=run.label or run.attempt_id or run.id,
        role=run.role.value,
        status=run.state.value,
        agent=run.agent,
        model=run.model,
        prompt=prompt if prompt is not None else _gate_prompt(run),
        summary=run.summary,
        cost_micros=run.cost_micros,
        exit_code=run.exit_code,
        failure=run.failure.value if run.failure else None,
        created_at=run.created_at,
        started_at=run.started_at,
        ended_at=run.ended_at,
    )


def _gate_prompt(run: Run) -> str | None:
    return "Execute gate:all verification" if run.label.startswith("verify_") else None


def logs_document(page: LogPage) -> Logs:
    """Return lines of output as a document."""
    return Logs(
        logs=[LogLine(offset=one.offset, stream=one.stream, line=one.text) for one in page.lines],
        next_offset=page.next_offset,
        has_more=not page.ended,
    )


def event_document(event: RecordedEvent) -> EventDocument:
    """Return an event as a document."""
    known = CATALOGUE.get(event.type)
    return EventDocument(
        n=event.n,
        id=event.id,
        type=event.type,
        timestamp=event.at.astimezone(UTC),
        actor=event.actor,
        importance=event.importance.value,
        summary=known.meaning if known else event.type,
        project_id=event.project,
        loop_id=event.loop,
        plan_id=event.plan,
        task_id=event.task,
        attempt_id=event.attempt,
        run_id=event.run,
        details=plain(event.payload),
    )
