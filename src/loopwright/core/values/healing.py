"""The words of healing: causes that stop a task, and the steps against them."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Cause(StrEnum):
    """The kind of cause that stops a task."""

    UNCLEAR = "unclear_task"
    TOO_LARGE = "too_large"
    ENVIRONMENT = "environment"
    DEPENDENCY = "dependency"
    FLAKY = "flaky_check"
    MODEL = "model_limit"


MEANINGS: Final[Mapping[Cause, str]] = MappingProxyType(
    {
        Cause.UNCLEAR: "the task is unclear",
        Cause.TOO_LARGE: "the task is too large",
        Cause.ENVIRONMENT: "this machine or its setup gets in the way",
        Cause.DEPENDENCY: "something that the task builds on is missing or changed",
        Cause.FLAKY: "a check gives inconsistent results",
        Cause.MODEL: "the task is beyond this agent or model",
    }
)


class HealStep(StrEnum):
    """What is tried for a task that failed for good."""

    INVESTIGATE = "investigate"
    SPLIT = "split"
    RESTATE = "restate"
    PRUNE = "prune_context"
    FRESH = "fresh_start"
    BYPASS = "bypass"
    """For a task that waits for a failed one: try it without that."""
    OTHER_AGENT = "other_agent"
    STRONGER = "stronger_agent"


STEPS: Final[Mapping[HealStep, str]] = MappingProxyType(
    {
        HealStep.INVESTIGATE: "let an agent read why it failed",
        HealStep.SPLIT: "do it as several smaller tasks",
        HealStep.RESTATE: "tell the agent what the checks ask for, with the diagnosis",
        HealStep.PRUNE: "tell the agent its task and nothing else",
        HealStep.FRESH: "start from a clean base, without the earlier evidence",
        HealStep.BYPASS: "try it without the task that failed",
        HealStep.OTHER_AGENT: "let the next agent of `fallback` do it",
        HealStep.STRONGER: "let the agent of `heal.stronger` do it",
    }
)
"""Each step in words."""
CONSULTS: Final = frozenset({HealStep.INVESTIGATE, HealStep.SPLIT})
"""Steps whose attempt only answers: its agent changes nothing, and nothing lands."""
