"""Settings, quota, the record of agents, and metrics for Prometheus."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import PlainTextResponse

from loopwright.core.values.documents import document
from loopwright.server.context import Home, Operator, Reader
from loopwright.server.shapes import Camel, SnakeRequest
from loopwright.services.reports import figures
from loopwright.services.reports.figures import Counts

router = APIRouter(tags=["figures"])


class Settings(BaseModel):
    """The settings in force."""

    settings: list[dict[str, Any]]


class Quota(BaseModel):
    """The accounts of a home."""

    accounts: list[dict[str, Any]]


class OpenAccount(SnakeRequest):
    """An account to open again."""

    account: str = Field(min_length=1, max_length=200, description="AGENT, AGENT/ACCOUNT or AGENT:MODEL.")


class Opened(BaseModel):
    """The result."""

    result: str


class GateDocument(Camel):
    """One command of the complete gate, with its last result."""

    name: str
    command: str
    timeout_s: float | None
    passed: bool | None
    duration_s: float | None
    run_id: str | None
    at: datetime | None


class Gates(Camel):
    """The complete gate in its order."""

    gates: list[GateDocument]


class TypeDocument(Camel):
    """The record of an agent at tasks of one type."""

    task_type: str = Field(description="As the source names it; empty if the source names none.")
    tasks: int
    first_pass: int
    first_pass_rate: float
    attempts: int


class AgentDocument(Camel):
    """The record of one agent with one model."""

    agent: str
    model: str = Field(description="Empty for the agent's own default.")
    tasks: int = Field(description="Tasks whose first judged attempt was by this agent.")
    first_pass: int = Field(description="How many of these landed with that attempt and were not taken back.")
    first_pass_rate: float | None
    attempts: int = Field(description="Attempts that were judged.")
    refusals: int = Field(description="Attempts at which the model refused the task.")
    caught_by_witness: int = Field(description="Rejected attempts whose test run was manipulated.")
    caught_by_old_checks: int = Field(
        description="Rejected attempts that passed with their changed checks, but not with the old ones."
    )
    runs: int
    cost_micros: int
    unknown_costs: int = Field(description="Ended runs of unknown cost: the sum does not include them.")
    cost_estimated: bool
    types: list[TypeDocument]


class Agents(Camel):
    """The record of each agent and model."""

    agents: list[AgentDocument]


@router.get("/api/agents")
async def get_agents(home: Home, caller: Reader, project: str | None = None) -> Agents:
    """Return the record of each agent and model from all runs, those with the most tasks first."""
    found = await figures.agent_record(home.at, caller, project)
    return Agents(agents=[AgentDocument(**document(one)) for one in found])


@router.get("/api/projects/{project_id}/settings")
async def get_settings(project_id: str, home: Home, caller: Reader) -> Settings:
    """Return every setting in force in a project, with its origin."""
    found = await figures.project_settings(home.at, caller, project_id)
    return Settings(settings=[dict(one) for one in found])


@router.get("/api/projects/{project_id}/gates")
async def get_gates(project_id: str, home: Home, caller: Reader) -> Gates:
    """Return the complete gate of a project in its order, with the last result of each command."""
    found = await figures.project_gates(home.at, caller, project_id)
    return Gates(gates=[GateDocument(**document(one)) for one in found])


@router.get("/api/quota")
async def get_quota(home: Home, caller: Reader) -> Quota:
    """Return the accounts of agents, and when closed ones open again."""
    return Quota(accounts=[document(one) for one in await figures.quota(home.at, caller)])


@router.post("/api/quota/open")
async def open_account(wanted: OpenAccount, home: Home, caller: Operator) -> Opened:
    """Open a closed account again: the tasks that wait for it continue."""
    return Opened(result=(await figures.open_account(home.at, caller, wanted.account)).result)


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(home: Home, caller: Reader) -> PlainTextResponse:
    """Return counters and gauges of the caller's projects in the text format of Prometheus.

    Those of the daemon itself are only for a token without named projects.
    """
    lines = [*_lines(await figures.counts(home.at, caller))]
    if caller.sees(None):
        lines += home.figures.lines()
    return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")


def _lines(counts: Counts) -> Iterator[str]:
    yield from _gauge(
        "loopwright_loops", "Loops by state.", {one.value: n for one, n in counts.loops.items()}
    )
    yield from _gauge(
        "loopwright_plans", "Plans by status.", {one.value: n for one, n in counts.plans.items()}
    )
    for name, text, value in (
        ("loopwright_attempts_live", "Attempts that have not ended.", counts.live_attempts),
        ("loopwright_agents_running", "Agent processes that run.", counts.running_agents),
        ("loopwright_questions_open", "Questions that wait for an answer.", counts.open_questions),
        ("loopwright_workers", "Workers that are alive.", counts.workers),
    ):
        yield from (f"# HELP {name} {text}", f"# TYPE {name} gauge", f"{name} {value}")
    for name, text, total in (
        ("loopwright_events_total", "Events recorded.", counts.last_event),
        (
            "loopwright_spent_micros_today",
            "Cost of today's runs in millionths of a dollar.",
            counts.spent_micros,
        ),
    ):
        if total is not None:
            yield from (f"# HELP {name} {text}", f"# TYPE {name} counter", f"{name} {total}")


def _gauge(name: str, text: str, by_state: dict[str, int]) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} gauge"
    for state, count in by_state.items():
        yield f'{name}{{state="{state.lower()}"}} {count}'
