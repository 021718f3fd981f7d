"""When a mechanism that does not help switches itself off, by the product's own rules."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Final

from bench.worth.agents import nature
from bench.worth.assumptions import values
from bench.worth.loop import Mechanisms, Project
from bench.worth.rows import AT
from loopwright.core.healing.lessons import MOST
from loopwright.core.healing.steps import MOST_IN_VAIN, useless
from loopwright.core.rows.healing_rows import Healing
from loopwright.core.values.healing import Cause, HealStep
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import HealingState, LessonState

LIFTS_PP: Final = (-30.0, -10.0, 0.0, 10.0, 30.0)
RATES: Final = (0.0, 0.05, 0.25, 0.5)
_CHANCES: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Switched:
    """How often something was switched off, and what it cost until then."""

    true: float
    """The true lift in percentage points, or the true share that is healed."""
    of: int
    off: float
    """The share that was switched off."""
    kept: float
    """The share that was shown to help, or is still used."""
    after: float
    """After how many tasks on average."""
    longest: int
    limit: int
    """What the product promises at most."""


def lessons(*, tasks: int, projects: int, lifts_pp: Sequence[float] = LIFTS_PP) -> Iterator[Switched]:
    """Let lessons of a known true lift be measured."""
    for lift in lifts_pp:
        a = values(lesson_pp=lift)
        states: list[LessonState] = []
        judged: list[int] = []
        for seed in range(projects):
            project = Project(a, Mechanisms(policy=Policy(), lessons=True))
            for n in range(tasks):
                project.run(nature(1_000 + seed, n, a))
            for lesson_id, one in project.learned.lessons.items():
                count = sum(use.passed is not None for use in project.learned.uses[lesson_id].values())
                if one.state is not LessonState.TRIED:
                    states.append(one.state)
                if one.state is LessonState.REMOVED:
                    judged.append(count)
        removed = states.count(LessonState.REMOVED)
        yield Switched(
            true=lift,
            of=len(states),
            off=removed / len(states) if states else 0.0,
            kept=states.count(LessonState.KEPT) / len(states) if states else 0.0,
            after=mean(judged) if judged else 0.0,
            longest=max(judged, default=0),
            limit=MOST if lift <= 0 else 0,
        )


def steps(*, projects: int) -> Iterator[Switched]:
    """Let a healing step of a known true success be tried as often as it is chosen, at most 200 times."""
    for rate in RATES:
        tried: list[int] = []
        for seed in range(projects):
            chance, ended = random.Random(f"{seed}/{rate}"), list[Healing]()
            for _ in range(_CHANCES):
                if HealStep.RESTATE in useless(ended, AT):
                    break
                ended.append(_tried(is_healed=chance.random() < rate))
            tried.append(len(ended))
        off = [one for one in tried if one < _CHANCES]
        yield Switched(
            true=rate,
            of=projects,
            off=len(off) / projects,
            kept=1 - len(off) / projects,
            after=mean(off) if off else 0.0,
            longest=max(off, default=0),
            limit=MOST_IN_VAIN if rate == 0 else 0,
        )


def _tried(*, is_healed: bool) -> Healing:
    row = Healing(
        id="",
        project_id="",
        plan_id="",
        task_id="",
        n=1,
        step=HealStep.RESTATE,
        state=HealingState.FAILED,
        cause=Cause.UNCLEAR,
        signature="",
        because="",
        created_at=AT,
        ended_at=AT,
    )
    return replace(row, state=HealingState.HEALED) if is_healed else row
