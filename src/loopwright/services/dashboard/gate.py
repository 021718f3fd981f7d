"""The complete gate while it runs: which of its commands have ended, and how."""

from dataclasses import dataclass
from pathlib import Path

from loopwright.adapters.gates.records import folder_of
from loopwright.core.rows.model import Plan, Role, Run
from loopwright.core.values.states import RunState
from loopwright.engine.rows.world import HomePaths
from loopwright.engine.views.activity import read_json
from loopwright.ports import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class GateStep:
    """One command of the gate."""

    name: str
    command: str
    state: str
    """`passed`, `failed`, `RUNNING` or `QUEUED`."""
    duration_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateProgress:
    """A complete gate that runs now."""

    run_id: str
    steps: tuple[GateStep, ...]

    @property
    def ended(self) -> int:
        """How many commands have ended."""
        return sum(one.duration_s is not None for one in self.steps)


def gate_progress(tx: Tx, plan: Plan, paths: HomePaths) -> GateProgress | None:
    """Return the complete gate of a plan while it runs; None while none does."""
    found = tx.find(
        Run,
        plan_id=plan.id,
        role=[Role.VERIFY, Role.EVALUATION, Role.FINISH],
        state=RunState.RUNNING,
        order_by=("-created_at",),
        limit=1,
    )
    return GateProgress(run_id=found[0].id, steps=gate_steps(paths.run(found[0].id))) if found else None


def gate_steps(directory: Path) -> tuple[GateStep, ...]:
    """Return the commands of a gate run in their order, from what its runner has written so far."""
    folder = folder_of(directory)
    commands = read_json(folder / "job.json").get("commands", [])
    results = read_json(folder / "results.json").get("commands", [])
    ended = {(one["name"], one["command"]): one for one in results}
    steps: list[GateStep] = []
    for one in commands:
        result = ended.get((one["name"], one["command"]))
        if result is not None:
            passed = result["exit_code"] == 0 and not result["timed_out"]
            state, lasted = "passed" if passed else "failed", float(result["duration_s"])
            steps.append(GateStep(name=one["name"], command=one["command"], state=state, duration_s=lasted))
            continue
        runs = all(step.state != "RUNNING" for step in steps)
        steps.append(
            GateStep(name=one["name"], command=one["command"], state="RUNNING" if runs else "QUEUED")
        )
    return tuple(steps)
