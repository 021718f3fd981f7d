"""Loops: list, show, start, stop, pause and resume them."""

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Response
from pydantic import Field

from loopwright.server.context import Home, Operator, Paging, Reader, Writer
from loopwright.server.plan_bodies import InjectTask, Pause
from loopwright.server.shapes import (
    AgentName,
    HealthDocument,
    LoopDocument,
    LoopPage,
    ModelName,
    PlanDocument,
    RunPage,
    SnakeRequest,
    health_document,
    loop_document,
    plan_document,
    run_document,
)
from loopwright.services.remote import loops, plans, starting

router = APIRouter(prefix="/api/loops", tags=["loops"])


class LoopSettings(SnakeRequest):
    """Settings for the plans of a loop; they override the settings of the project."""

    agent: AgentName | None = None
    model: ModelName | None = None
    max_concurrent: int | None = Field(
        default=None, ge=1, le=256, description="How many agents may work on it at once."
    )

    def flags(self) -> dict[str, Any]:
        """Return them by the keys of settings."""
        named = {"agent": self.agent, "model": self.model, "parallel": self.max_concurrent}
        return {key: value for key, value in named.items() if value is not None}


class CreateLoop(LoopSettings):
    """A loop to create, from exactly one of `source`, `spec` and `template`."""

    project_id: str
    source: str | None = Field(
        default=None,
        max_length=1000,
        description="The file or folder with the work, relative to the project.",
    )
    spec: dict[str, Any] | None = Field(
        default=None, description="A plan, as a plan file has it. It defines commands, so it needs `admin`."
    )
    template: str | None = Field(default=None, max_length=64, description="A registered template.")
    values: dict[str, str] = Field(default={}, description="The values of the template's parameters.")
    kind: str | None = Field(
        default=None,
        max_length=64,
        description="The format of the source; by default, Loopwright recognises it.",
    )
    name: str | None = Field(default=None, min_length=1, max_length=200)
    priority: int | None = Field(default=None, ge=1, le=10, description="1 is the most urgent.")
    max_attempts: int | None = Field(default=None, ge=1, le=100)
    max_cost: int | None = Field(
        default=None, gt=0, description="Millionths of a dollar for each plan; needs `admin`."
    )

    def flags(self) -> dict[str, Any]:
        """Return the settings by their keys."""
        more = {} if self.max_attempts is None else {"max_attempts": self.max_attempts}
        cost = {} if self.max_cost is None else {"max_cost": f"{self.max_cost / 1_000_000:.6f}"}
        return {**super().flags(), **more, **cost}


class ChangeLoop(LoopSettings):
    """What to change in a loop. Another agent or model applies to tasks that have not begun."""

    priority: int | None = Field(default=None, ge=1, le=10, description="1 is the most urgent.")


def _tagged(response: Response, view: loops.LoopView) -> LoopDocument:
    """Return a loop, with its version as the ETag."""
    response.headers["ETag"] = f'"{view.version}"'
    return loop_document(view)


@router.get("")
async def list_loops(home: Home, caller: Reader, page: Paging, project: str | None = None) -> LoopPage:
    """List the loops."""
    found = await loops.list_loops(home.at, caller, page, project_id=project)
    return LoopPage(loops=list(map(loop_document, found.items)), next=found.next)


@router.get("/{loop_id}")
async def get_loop(loop_id: str, home: Home, caller: Reader, response: Response) -> LoopDocument:
    """Return a loop."""
    return _tagged(response, await loops.get_loop(home.at, caller, loop_id))


@router.get("/{loop_id}/health")
async def get_health(loop_id: str, home: Home, caller: Reader) -> HealthDocument:
    """Return whether a loop is live, and whether it could start work now."""
    return health_document(await loops.loop_health(home.at, caller, loop_id))


@router.post("", status_code=HTTPStatus.CREATED)
async def create_loop(wanted: CreateLoop, home: Home, caller: Operator, response: Response) -> LoopDocument:
    """Create a loop in a registered project: over a source, from a spec, or from a template."""
    new = starting.NewLoop(
        project_id=wanted.project_id,
        source=wanted.source,
        spec=wanted.spec,
        template=wanted.template,
        values=wanted.values,
        kind=wanted.kind,
        name=wanted.name,
        priority=wanted.priority,
        settings=wanted.flags(),
    )
    return _tagged(response, await starting.create_loop(home.at, caller, new))


@router.delete("/{loop_id}", status_code=HTTPStatus.NO_CONTENT)
async def delete_loop(loop_id: str, home: Home, caller: Writer) -> None:
    """Delete a loop that is at rest; its plans are kept."""
    await starting.delete_loop(home.at, caller, loop_id)


@router.post("/{loop_id}/start", status_code=HTTPStatus.ACCEPTED)
async def start_loop(loop_id: str, home: Home, caller: Writer, response: Response) -> LoopDocument:
    """Start a loop: continue its plan, or make a plan of the open work in its source."""
    return _tagged(response, await starting.ask_to_start(home.at, caller, loop_id))


@router.post("/{loop_id}/stop")
async def stop_loop(loop_id: str, home: Home, caller: Writer, response: Response) -> LoopDocument:
    """Stop a loop: interrupt its agents and keep their work."""
    return _tagged(response, await loops.steer_loop(home.at, caller, loop_id, "stop"))


@router.post("/{loop_id}/pause")
async def pause_loop(
    loop_id: str, home: Home, caller: Writer, response: Response, how: Pause | None = None
) -> LoopDocument:
    """Start nothing new in a loop; with `now`, interrupt its agents too."""
    now = how is not None and how.now
    return _tagged(response, await loops.steer_loop(home.at, caller, loop_id, "pause", now=now))


@router.post("/{loop_id}/resume")
async def resume_loop(loop_id: str, home: Home, caller: Writer, response: Response) -> LoopDocument:
    """Continue a paused loop."""
    return _tagged(response, await loops.steer_loop(home.at, caller, loop_id, "resume"))


@router.patch("/{loop_id}")
async def change_loop(
    loop_id: str, wanted: ChangeLoop, home: Home, caller: Writer, response: Response
) -> LoopDocument:
    """Change the priority of a loop, or the agent and model for tasks that have not begun."""
    view = await loops.change_loop(
        home.at,
        caller,
        loop_id,
        priority=wanted.priority,
        agent=wanted.agent,
        model=wanted.model,
        max_concurrent=wanted.max_concurrent,
    )
    return _tagged(response, view)


@router.post("/{loop_id}/tests", status_code=HTTPStatus.CREATED)
@router.post("/{loop_id}/tasks", status_code=HTTPStatus.CREATED)
async def inject(loop_id: str, wanted: InjectTask, home: Home, caller: Writer) -> PlanDocument:
    """Add a task to the current plan of a loop."""
    plan = await loops.driven_plan(home.at, caller, loop_id)
    return plan_document(await plans.inject_task(home.at, caller, plan, wanted.item()))


@router.post("/{loop_id}/tests/{task}/reset")
@router.post("/{loop_id}/tasks/{task}/reset")
async def reset(loop_id: str, task: str, home: Home, caller: Writer) -> PlanDocument:
    """Let a task start over with no attempt used up; its history is kept."""
    plan = await loops.driven_plan(home.at, caller, loop_id)
    await plans.decide_task(home.at, caller, plan, task, "reset")
    return plan_document(await plans.get_plan(home.at, caller, plan))


@router.post("/{loop_id}/tests/{task}/skip")
@router.post("/{loop_id}/tasks/{task}/skip")
async def skip(loop_id: str, task: str, home: Home, caller: Writer) -> PlanDocument:
    """Give up a task."""
    plan = await loops.driven_plan(home.at, caller, loop_id)
    await plans.decide_task(home.at, caller, plan, task, "skip")
    return plan_document(await plans.get_plan(home.at, caller, plan))


@router.get("/{loop_id}/transcripts")
async def list_transcripts(loop_id: str, home: Home, caller: Reader, page: Paging) -> RunPage:
    """List the runs of a loop's current plan; `/api/runs/{id}/logs` has the output of each."""
    plan = await loops.driven_plan(home.at, caller, loop_id)
    found = await plans.plan_runs(home.at, caller, plan, page)
    return RunPage(runs=list(map(run_document, found.items)), next=found.next)
