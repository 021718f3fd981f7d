"""Worker fan-out: the slices that a round's plan record authorizes, in parallel, and the pass that integrates them."""

from collections.abc import Mapping
from dataclasses import replace

from loopwright.core.orchestrator.checks import fan_out_problems
from loopwright.core.orchestrator.manifest import round_folder, worker_file
from loopwright.core.orchestrator.records import RoundPlan, Worker
from loopwright.core.values.policy import GateCommand
from loopwright.ports import PlannedTask
from loopwright.services.orchestrator.control_plane import ControlError
from loopwright.services.orchestrator.delegation import Assignment, brief, record_check
from loopwright.services.orchestrator.record_check import FILE
from loopwright.services.orchestrator.round_work import Now, RoundWork


async def assignment(work: RoundWork, now: Now, round_id: str) -> Assignment:
    """Return the integration of a round's slices, with the slices before it."""
    plan = now.observed[round_id].plan
    assert plan is not None, "only a plan record authorizes a fan-out"
    if problems := fan_out_problems(plan):
        raise ControlError("; ".join(problems))
    asked = await work.assignment(now, round_id)
    integration = plan.integration
    assert integration is not None, "a fan-out without an integration is a problem"
    slices = [await _slice(work, asked, plan, worker) for worker in plan.workers]
    needed = integration.depends_on_worker_ids
    return replace(
        asked,
        slices=tuple(slices),
        needs=needed,
        acceptance=_commands(integration.verification_commands, "integration"),
        told={
            **asked.told,
            "request": f"Integrate the work of {', '.join(needed)}, which is in your clone: {integration.summary}",
        },
    )


async def _slice(work: RoundWork, asked: Assignment, plan: RoundPlan, worker: Worker) -> PlannedTask:
    round_id, name = plan.round_id, worker.worker_id
    handoff = worker_file("handoff", round_id, name)
    files = (worker_file("worker_notes", round_id, name), handoff)
    plane = work.desk.plane.at(asked.worktree_path)
    told: Mapping[str, str] = {
        "request": plane.text(worker_file("assignment", round_id, name)),
    }
    own = replace(asked, stage=f"implement, worker {name}", files=files, told={**asked.told, **told})
    text = await brief(work.desk, own, await work.desk.branches.tip(asked.branch))
    ids = asked.check[1:]
    return PlannedTask(
        key=name,
        title=f"{round_id}: {name}: {worker.summary}"[:200],
        description=text,
        acceptance=(
            *_commands(worker.verification_commands, name),
            record_check(FILE, *ids, *files),
        ),
        depends_on=worker.depends_on_worker_ids,
        scope=(*worker.write_scope, f"{round_folder(round_id)}/workers/{name}"),
    )


def _commands(commands: tuple[str, ...], of: str) -> tuple[GateCommand, ...]:
    return tuple(GateCommand(name=f"{of} {n}", command=one) for n, one in enumerate(commands, 1))
