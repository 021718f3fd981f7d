"""Rows of the product for simulated tasks: what its decisions read."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from bench.worth.agents import Nature
from loopwright.core.gates.verdicts import command_checks, judge
from loopwright.core.rows.model import Attempt, Plan, Review, Task
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import CommandResult, Verdict
from loopwright.core.values.healing import Cause
from loopwright.core.values.patches import ChangedFile, Patch
from loopwright.core.values.policy import GateCommand, HeldOut, Policy
from loopwright.core.values.states import AttemptState, PlanState, ReviewState, TaskState

AT: Final = datetime(2030, 1, 1, tzinfo=UTC)
GATE: Final = GateCommand(name="tests", command="make test")
_HELD: Final = HeldOut(check=GateCommand(name="held out", command="make held-out"))
_TELLING: Final = {
    Cause.DEPENDENCY: "ModuleNotFoundError: No module named 'parts'",
    Cause.ENVIRONMENT: "connection refused",
}
_FAILURES: Final = {Cause.UNCLEAR: Failure.NO_CHANGE, Cause.TOO_LARGE: Failure.TURNS}


def plan(policy: Policy) -> Plan:
    """Return a plan with one gate."""
    return Plan(
        id="plan",
        project_id="project",
        loop_id="loop",
        title="Simulated",
        status=PlanState.RUNNING,
        source_sha256="",
        base_ref="main",
        base_sha="",
        branch="plan",
        policy=policy,
        gates=(GATE,),
        created_at=AT,
        updated_at=AT,
    )


def task(of: Nature, owner: Plan, *, held_out: bool) -> Task:
    """Return the row of a task: it names the file in which its mistake is made."""
    return Task(
        id=f"task_{of.seed}_{of.n}",
        plan_id=owner.id,
        key=f"t{of.n}",
        title=f"Change `{_file(of)}`",
        acceptance=(GATE,),
        held_out=(_HELD,) if held_out else (),
        max_attempts=owner.policy.max_attempts,
        status=TaskState.RUNNING,
        created_at=AT,
        updated_at=AT,
    )


def attempt(of: Task, n: int, agent: str) -> Attempt:
    """Return the row of an attempt at work."""
    return Attempt(
        id=f"att_{of.id}_{n}",
        plan_id=of.plan_id,
        task_id=of.id,
        n=n,
        state=AttemptState.CHECKING,
        agent=agent,
        created_at=AT,
        updated_at=AT,
    )


def verdict(of: Nature, *, passes: bool, tells: bool, command: GateCommand = GATE) -> Verdict:
    """Return what the checks found, with an output that shows what is wrong, or only where."""
    told = _TELLING.get(of.cause) if tells else None
    tail = "" if passes else told or f"{_file(of)}: AssertionError: mistake {of.pitfall}"
    result = CommandResult(
        name=command.name,
        command=command.command,
        exit_code=0 if passes else 1,
        duration_s=1.0,
        output_sha256="",
        output_bytes=len(tail),
        tail=tail,
    )
    return judge(command_checks(1, result, (), timeout_s=60.0), (result,))


def failure(of: Nature, *, tells: bool) -> Failure:
    """Return how a failure is classified before any check runs; `GATE` where only the checks tell."""
    return _FAILURES.get(of.cause, Failure.GATE) if tells else Failure.GATE


def patch(of: Nature, n: int) -> Patch:
    """Return a change."""
    files = (ChangedFile(path=_file(of), added=20),)
    return Patch(sha256=f"{of.seed}.{of.n}.{n}", files=files, text="", is_whole=True)


def review(of: Attempt, n: int, *, blocks: bool) -> Review:
    """Return what a reviewer said about the change of an attempt."""
    return Review(
        id=f"review_{of.id}_{n}",
        plan_id=of.plan_id,
        task_id=of.task_id,
        attempt_id=of.id,
        n=n,
        state=ReviewState.BLOCKING if blocks else ReviewState.CLEAR,
        run_id="run",
        agent="reviewer",
        parent_sha="",
        candidate_sha="",
        patch_sha256="",
        created_at=AT,
    )


def ended(attempts: Sequence[Attempt], last: Attempt, failure: Failure | None) -> list[Attempt]:
    """Return attempts with the last one ended."""
    state = AttemptState.LANDED if failure is None else AttemptState.REJECTED
    return [*attempts, replace(last, state=state, failure=failure)]


def _file(of: Nature) -> str:
    return f"src/part{of.pitfall}.py"
