"""Values that pure functions of the engine take: the rows of a leg, and the end of a run."""

from typing import Any

from tests.contracts.store import rows as made

from loopwright.core.values.policy import GateCommand, Policy
from loopwright.engine.processes.runs import Ended
from loopwright.engine.rows.legs import Rows
from loopwright.ports import AgentResult, Exit


def leg_rows(*, policy: Policy | None = None, task: Any = None, attempt: Any = None) -> Rows:
    project = made.project()
    loop = made.loop(project)
    gates = (GateCommand(name="tests", command="pytest"),)
    plan = made.plan(loop, policy=policy or Policy(), gates=gates)
    owner = made.task(plan, **(task or {}))
    tried = made.attempt(owner, **(attempt or {}))
    return Rows(project=project, loop=loop, plan=plan, task=owner, attempt=tried)


def ended_with(result: AgentResult | None, *, ended_by: Any = "itself", **more: Any) -> Ended:
    left = Exit(
        code=0,
        ended_by=ended_by,
        started_at=made.AT,
        ended_at=made.AT,
        output_bytes=0,
        output_sha256="",
    )
    return Ended(exit=left, result=result, **{"interrupted": False, **more})
