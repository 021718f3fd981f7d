"""Having a plan looked at by an agent before anything of it runs, where the settings ask for that."""

from dataclasses import replace
from pathlib import Path

from loopwright.app import Home
from loopwright.config.resolve import Settings
from loopwright.core.plans.plan_evaluators import (
    CHECK,
    FENCE,
    FILE,
    KEY,
    SCHEMA,
    Judgement,
    instructions,
    read_findings,
    reasons,
)
from loopwright.core.rows.model import Role
from loopwright.core.values.policy import Answering
from loopwright.engine.intake.submit import Submission
from loopwright.ports import Base, PlannedWork
from loopwright.prompts import packaged
from loopwright.services.homes.context import Place
from loopwright.services.plans.agent_answers import Asked, ask, who
from loopwright.services.runs.preflight import check_named


def wanted(settings: Settings, work: PlannedWork) -> tuple[str, ...]:
    """Say why an agent has to look at a plan before it runs; what its own report calls good needs no second one."""
    if work.evaluated == "passed":
        return ()
    return reasons(settings.values.evaluator.mode, work.tasks)


def check_evaluator(settings: Settings) -> None:
    """Refuse an evaluator that could not look at anything, before anything is spent."""
    evaluator = settings.values.evaluator
    if evaluator.mode != "off" and evaluator.agent is not None:
        check_named(settings, "evaluator.agent", evaluator.agent, evaluator.model)


async def judged(
    home: Home,
    settings: Settings,
    place: Place,
    base: Base,
    work: PlannedWork,
    *,
    name: str,
    goal: str = "",
    quiet: bool,
) -> Judgement | None:
    """Have a plan judged, or take the judgement that there is of this very plan; None when it came to nothing."""
    evaluator = settings.values.evaluator
    by = who(settings, evaluator.agent, evaluator.model, fallback=False)
    gates = work.gates if work.gates is not None else settings.gates
    asked = Asked(
        key=KEY,
        title=f"Evaluate: {work.title}",
        text=instructions(packaged("parts/evaluation"), work.title, work.tasks, gates, goal=goal),
        answering=Answering(
            role=Role.PLAN_EVALUATOR.value, file=FILE, fence=FENCE, schema=SCHEMA, asks=False
        ),
        check=CHECK,
        arguments=("loopwright.services.plans.evaluation_check",),
        source=f"evaluation:{Path(name).stem}-{work.sha256[:12]}",
    )
    answered = await ask(home, settings, place, base, asked, by, quiet=quiet)
    found = read_findings(answered.text or "", [task.key for task in work.tasks])
    if isinstance(found, str):
        return None
    summary, findings = found
    return Judgement(
        plan_id=answered.plan_id, agent=by.agent, model=by.model, summary=summary, findings=findings
    )


async def evaluated(
    home: Home, settings: Settings, place: Place, asked: Submission, *, quiet: bool
) -> Submission:
    """Return a submission with what an agent says of its plan, if one has to look at it.

    With a person's reason to run it whatever anybody says, nobody is asked.
    """
    why = wanted(settings, asked.work)
    if not why:
        return asked
    if asked.despite:
        return replace(asked, wanted=why)
    judgement = await judged(
        home, settings, place, asked.base, asked.work, name=asked.source_path, quiet=quiet
    )
    return replace(asked, wanted=why, judgement=judgement)
