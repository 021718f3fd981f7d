"""The rows of what an attempt may wait for: the user's answer, and an account's quota."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from loopwright.core.values.failures import Failure
from loopwright.core.values.states import EnvelopeState, QuestionState


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question of runs to the user. The same permission, requested by many, is one question."""

    id: str
    project_id: str
    loop_id: str
    plan_id: str
    task_id: str
    run_id: str
    """The first run that asked; `asked_by` has every attempt that waits for the answer."""
    kind: str
    key: str
    """Identifies the question; for a permission, the key of the wish."""
    text: str
    options: tuple[str, ...] = ()
    default: str | None = None
    asked_by: tuple[str, ...] = ()
    state: QuestionState = QuestionState.OPEN
    answer: str | None = None
    holds_for: str = "run"
    """The scope of a permission's answer: run, loop or project."""
    answered_by: str = ""
    deadline: datetime | None = None
    created_at: datetime
    answered_at: datetime | None = None


class QuotaKind(StrEnum):
    """How a part of an account's quota is paid for."""

    SUBSCRIPTION = "subscription"
    """A window of hours in a subscription."""
    WEEKLY = "weekly"
    """A week of a subscription, or longer."""
    CREDITS = "credits"
    """Prepaid, or granted by a company."""
    DOLLARS = "dollars"
    """An API key of the service: each call is paid for."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaWindow:
    """What is known about one part of an account's quota: a window of time, credits, or payment per call."""

    name: str
    """The service's name for it, for example `five_hour`."""
    kind: QuotaKind = QuotaKind.UNKNOWN
    used: float | None = None
    """Between 0 and 1."""
    left: str = ""
    """What is left, in the service's own words: `12.50` credits, or `unlimited`."""
    resets_at: datetime | None = None
    rejected: bool = False
    """Whether a request was refused because of it."""
    model: str = ""
    """The only model that it applies to, as the service names it, for example `opus`; empty for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """The shared quota of all runs on one account of an agent.

    A limit of a single model has its own envelope beside that of its account.
    """

    id: str
    """The agent's name and the account's: `claude/default`; for a limit of one model `claude/default:opus`."""
    agent: str
    account: str = "default"
    models: tuple[str, ...] = ()
    """The model that it applies to, and other names in refused runs; empty name for a run without one.

    None at all: it applies to the whole account.
    """
    state: EnvelopeState = EnvelopeState.OPEN
    failure: Failure | None = None
    """Why it is or was last closed."""
    reason: str = ""
    until: datetime | None = None
    """When one attempt may probe whether it is open again."""
    closed_at: datetime | None = None
    closings: int = 0
    """How often in a row it was found closed."""
    probe: str | None = None
    """The attempt that probes."""
    probed_at: datetime | None = None
    """Since when the probe's agent works."""
    windows: tuple[QuotaWindow, ...] = ()
    runs: int = 0
    last_run_id: str | None = None
    created_at: datetime
    updated_at: datetime
