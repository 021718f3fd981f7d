"""The words of healing: what kind of thing keeps a task from being done, and what a step tries against it."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Cause(StrEnum):
    """What kind of thing keeps a task from being done."""

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
