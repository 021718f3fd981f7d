"""Have an agent evaluate a plan before it runs, if the settings require it."""

from pathlib import Path
from typing import Final

from loopwright.config.resolve import Settings
from loopwright.core.plans.plan_evaluators import (
    CHECK,
    FENCE,
    FILE,
    KEY,
    SCHEMA,
    Judgement,
    in_words,
    instructions,
    read_findings,
    reasons,
)
from loopwright.core.plans.tracks import evaluators
from loopwright.core.rows.model import Role
from loopwright.core.values.errors import Refused
from loopwright.core.values.policy import Answering, ExecutionEvaluation
from loopwright.engine.intake.evaluation import Evaluation
from loopwright.ports import Base, PlannedWork
from loopwright.prompts import packaged
from loopwright.services.driving.driver import Drive
from loopwright.services.homes.context import Place
from loopwright.services.homes.session import Session
from loopwright.services.plans.agent_answers import Asked, ask, who
from loopwright.services.preflight.checks import check_named

__all__ = ["Judgement", "check_evaluator", "evaluated", "in_words", "judged", "wanted"]


def wanted(settings: Settings, work: PlannedWork) -> tuple[str, ...]:
    """Return why an agent has to evaluate a plan before it runs; a plan whose own report approves it needs none."""
    if work.evaluated == "passed":
        return ()
    if work.track is not None and not work.evaluated:
        return ("a track is evaluated before it runs",)
    return reasons(settings.values.evaluator.mode, work.tasks)


def is_configured(settings: Settings) -> bool:
    """Return whether an agent evaluates tracks: one is configured, or plans are evaluated anyway."""
    evaluator = settings.values.evaluator
    return evaluator.mode != "off" or evaluator.agent is not None


def execution_evaluation(settings: Settings, work: PlannedWork) -> ExecutionEvaluation | None:
    """Return the evaluator of a track's result; None for other work, and if no evaluator is configured."""
    if work.track is None or not is_configured(settings):
        return None
    by = who(settings, settings.values.evaluator.agent, settings.values.evaluator.model, fallback=False)
    words = " ".join([work.title, work.track.name, *(f"{one.type} {one.title}" for one in work.tasks)])
    return ExecutionEvaluation(evaluators=evaluators(work.track.type, words), agent=by.agent, model=by.model)


def check_evaluator(settings: Settings) -> None:
    """Refuse an evaluator that could not work, before any cost."""
    evaluator = settings.values.evaluator
    if evaluator.agent is not None:
        check_named(settings, "evaluator.agent", evaluator.agent, evaluator.model)


async def judged(
    at: Session, place: Place, base: Base, work: PlannedWork, drive: Drive, *, name: str, goal: str = ""
) -> Judgement | None:
    """Have an agent evaluate a plan, or use its judgement of exactly this plan; None without a usable answer."""
    settings = at.settings
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
    answered = await ask(at, place, base, asked, by, drive)
    found = read_findings(answered.text or "", [task.key for task in work.tasks])
    if isinstance(found, str):
        return None
    summary, findings = found
    return Judgement(
        plan_id=answered.plan_id, agent=by.agent, model=by.model, summary=summary, findings=findings
    )


async def evaluated(
    at: Session, place: Place, base: Base, work: PlannedWork, known: Evaluation, drive: Drive, *, name: str
) -> Evaluation:
    """Add an agent's judgement to an evaluation, if the settings require one; raise if the plan may not run.

    If the user gave a reason to run the plan, no agent is asked.
    """
    why = wanted(at.settings, work)
    if is_left_unevaluated(at.settings, work):
        if not known.despite and not known.rests:
            raise _unevaluated(name)
        return known.with_judgement(why, None)
    if not why or known.despite:
        return known.with_judgement(why, None)
    said = await judged(at, place, base, work, drive, name=name)
    return known.with_judgement(why, said)


UNEVALUATED: Final = "it has no evaluation: a track is evaluated before it runs, and no agent is set to do it"


def is_left_unevaluated(settings: Settings, work: PlannedWork) -> bool:
    """Return whether a track has no evaluation, and no agent would make one."""
    return work.track is not None and not work.evaluated and not is_configured(settings)


def _unevaluated(name: str) -> Refused:
    return Refused(
        f"{name}: {UNEVALUATED}",
        code="track_unevaluated",
        hint=(
            "have an agent evaluate it: set evaluator.agent (LOOPWRIGHT_EVALUATOR__AGENT=claude); or ask for the "
            "evaluation elsewhere (loop-plan-evaluator), which puts its report into the track; or say why it runs "
            'without one: --despite "..."'
        ),
    )
