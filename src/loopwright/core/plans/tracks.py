"""The loop of a conductor track as data: its steps, the meaning of each status, and the role of each step.

Readers, writers, tests and docs use the same table. A step changes only as a row of it allows.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from loopwright.core.replies.qa import BUSINESS_LOGIC, CODE_QUALITY, INTEGRATION, UI_UX
from loopwright.core.values.errors import IllegalTransition


class TrackStep(StrEnum):
    """A step of the loop."""

    PLAN = "PLAN"
    EVALUATE_PLAN = "EVALUATE_PLAN"
    EXECUTE = "EXECUTE"
    PARALLEL_EXECUTE = "PARALLEL_EXECUTE"
    EVALUATE_EXECUTION = "EVALUATE_EXECUTION"
    FIX = "FIX"
    BUSINESS_SYNC = "BUSINESS_SYNC"
    COMPLETE = "COMPLETE"


class StepStatus(StrEnum):
    """The status of a step."""

    NOT_STARTED = "NOT_STARTED"
    IN_PROGRESS = "IN_PROGRESS"
    PASSED = "PASSED"
    FAILED = "FAILED"
    PARTIAL_FAIL = "PARTIAL_FAIL"
    BLOCKED = "BLOCKED"
    SKIPPED = "SKIPPED"
    BOARD_REVIEW = "BOARD_REVIEW"


class TrackAction(StrEnum):
    """What a step with a status requires."""

    START = "start the role"
    RESUME = "resume the role"
    ADVANCE = "go to the next step"
    ISOLATE = "continue with tasks that do not depend on the failed ones"
    FIX = "fix what failed, at most `fix_cycles` times"
    ASK = "ask you"
    FINISH = "nothing is left to do"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What follows from a step with one status."""

    action: TrackAction
    to: tuple[TrackStep, ...] = ()
    """The possible next steps; empty if the step stays."""


ROLES: Final[Mapping[TrackStep, str]] = MappingProxyType(
    {
        TrackStep.PLAN: "loop-planner",
        TrackStep.EVALUATE_PLAN: "loop-plan-evaluator",
        TrackStep.EXECUTE: "loop-executor",
        TrackStep.PARALLEL_EXECUTE: "loop-executor",
        TrackStep.EVALUATE_EXECUTION: "loop-execution-evaluator",
        TrackStep.FIX: "loop-fixer",
        TrackStep.BUSINESS_SYNC: "business-docs-sync",
    }
)
"""The role of each step: `agent` of its checkpoint."""

_S, _T, _A = TrackStep, StepStatus, TrackAction
_EXECUTED: Final[Mapping[str, Rule]] = {
    _T.NOT_STARTED: Rule(action=_A.START),
    _T.IN_PROGRESS: Rule(action=_A.RESUME),
    _T.PASSED: Rule(action=_A.ADVANCE, to=(_S.EVALUATE_EXECUTION,)),
    _T.PARTIAL_FAIL: Rule(action=_A.ISOLATE),
    _T.FAILED: Rule(action=_A.ASK),
    _T.BLOCKED: Rule(action=_A.ASK),
}

TRACK_TABLE: Final[Mapping[str, Mapping[str, Rule]]] = MappingProxyType(
    {
        _S.PLAN: {
            _T.NOT_STARTED: Rule(action=_A.START),
            _T.IN_PROGRESS: Rule(action=_A.RESUME),
            _T.PASSED: Rule(action=_A.ADVANCE, to=(_S.EVALUATE_PLAN,)),
            _T.FAILED: Rule(action=_A.ASK),
            _T.BLOCKED: Rule(action=_A.ASK),
        },
        _S.EVALUATE_PLAN: {
            _T.NOT_STARTED: Rule(action=_A.START),
            _T.IN_PROGRESS: Rule(action=_A.RESUME),
            _T.PASSED: Rule(action=_A.ADVANCE, to=(_S.EXECUTE, _S.PARALLEL_EXECUTE)),
            # The user said why it runs without an evaluation.
            _T.SKIPPED: Rule(action=_A.ADVANCE, to=(_S.EXECUTE, _S.PARALLEL_EXECUTE)),
            # To EXECUTE only if the user gives a reason.
            _T.FAILED: Rule(action=_A.ADVANCE, to=(_S.PLAN, _S.EXECUTE, _S.PARALLEL_EXECUTE)),
            _T.BOARD_REVIEW: Rule(action=_A.ASK),
            _T.BLOCKED: Rule(action=_A.ASK),
        },
        _S.EXECUTE: _EXECUTED,
        _S.PARALLEL_EXECUTE: _EXECUTED,
        _S.EVALUATE_EXECUTION: {
            _T.NOT_STARTED: Rule(action=_A.START),
            _T.IN_PROGRESS: Rule(action=_A.RESUME),
            _T.PASSED: Rule(action=_A.ADVANCE, to=(_S.BUSINESS_SYNC, _S.COMPLETE)),
            _T.FAILED: Rule(action=_A.FIX, to=(_S.FIX,)),
            _T.BLOCKED: Rule(action=_A.ASK),
        },
        _S.FIX: {
            _T.NOT_STARTED: Rule(action=_A.START),
            _T.IN_PROGRESS: Rule(action=_A.RESUME),
            _T.PASSED: Rule(action=_A.ADVANCE, to=(_S.EVALUATE_EXECUTION,)),
            _T.FAILED: Rule(action=_A.ASK),
            _T.BLOCKED: Rule(action=_A.ASK),
        },
        _S.BUSINESS_SYNC: {
            _T.NOT_STARTED: Rule(action=_A.START),
            _T.IN_PROGRESS: Rule(action=_A.RESUME),
            _T.PASSED: Rule(action=_A.ADVANCE, to=(_S.COMPLETE,)),
            _T.SKIPPED: Rule(action=_A.ADVANCE, to=(_S.COMPLETE,)),
            _T.FAILED: Rule(action=_A.ASK),
            _T.BLOCKED: Rule(action=_A.ASK),
        },
        _S.COMPLETE: {
            _T.NOT_STARTED: Rule(action=_A.FINISH),
            _T.IN_PROGRESS: Rule(action=_A.FINISH),
            _T.PASSED: Rule(action=_A.FINISH),
        },
    }
)


def rule_of(step: str, status: str) -> Rule | None:
    """Return what follows from a step with a status; None if the table has no such row."""
    return TRACK_TABLE.get(step, {}).get(status)


def enter(step: str, status: str, known: Mapping[str, str], track: str) -> dict[str, str]:
    """Return a position of a track, or raise `IllegalTransition` if the table does not lead to it.

    `known` has the statuses of the preceding steps, by name.
    """
    if rule_of(step, status) is None:
        raise IllegalTransition("track", track, step, status)
    for before in _BEFORE.get(step, ()):
        rule = rule_of(before, known[before]) if before in known else None
        if before in known and (rule is None or step not in rule.to):
            raise IllegalTransition("track", track, f"{before} {known[before]}", step)
    return {"current_step": step, "step_status": status}


_BEFORE: Final[Mapping[str, tuple[TrackStep, ...]]] = MappingProxyType(
    {
        _S.FIX: (_S.EVALUATE_EXECUTION,),
        _S.BUSINESS_SYNC: (_S.EVALUATE_EXECUTION,),
        _S.COMPLETE: (_S.EVALUATE_EXECUTION, _S.BUSINESS_SYNC),
    }
)
"""The steps that must precede a step, with the status that they must have."""


# The evaluators of the execution, by the subject of the track. All of them have to pass.

_WORDS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        UI_UX: frozenset({
            "component", "components", "css", "design", "layout", "screen", "screens", "style", "ui", "ux",
            "visual",
        }),
        INTEGRATION: frozenset({
            "api", "auth", "database", "integration", "migration", "oauth", "webhook", "webhooks",
        }),
        BUSINESS_LOGIC: frozenset({
            "billing", "business", "dependency", "discount", "download", "generation", "lock", "logic",
            "pipeline", "price", "prices", "pricing", "rules", "tier", "tiers", "unlock",
        }),
    }
)  # fmt: skip
_ONLY_UI: Final = frozenset({"ui", "ux", "design"})


def evaluators(type: str, words: str) -> tuple[str, ...]:
    """Return the evaluators of a track's execution, by its type and by the words of its title and tasks.

    A purely visual track has no code evaluator.
    """
    said = frozenset(re.findall(r"[a-z]+", f"{type} {words}".lower()))
    found = [name for name, known in _WORDS.items() if said & known]
    if type.lower() in _ONLY_UI and found == [UI_UX]:
        return (UI_UX,)
    return (CODE_QUALITY, *found)
