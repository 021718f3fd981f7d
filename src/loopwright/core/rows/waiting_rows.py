"""The rows of what an attempt may have to wait for: a person's answer, and an account's quota."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from loopwright.core.values.failures import Failure
from loopwright.core.values.states import EnvelopeState, QuestionState


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Something that runs need a person to answer. The same permission, asked by many, is one question."""

    id: str
    project_id: str
    loop_id: str
    plan_id: str
    task_id: str
    run_id: str
    """The first that asked; `asked_by` has every attempt that waits for the answer."""
    kind: str
    key: str
    """What makes two of them the same; for a permission, the key of the wish."""
    text: str
    options: tuple[str, ...] = ()
    default: str | None = None
    asked_by: tuple[str, ...] = ()
    state: QuestionState = QuestionState.OPEN
    answer: str | None = None
    holds_for: str = "run"
    """How far an answer to a permission goes: run, loop or project."""
    answered_by: str = ""
    deadline: datetime | None = None
    created_at: datetime
    answered_at: datetime | None = None


class QuotaKind(StrEnum):
    """What a part of an account's quota is paid with."""

    SUBSCRIPTION = "subscription"
    """Some hours of a subscription."""
    WEEKLY = "weekly"
    """A week of a subscription, or longer."""
    CREDITS = "credits"
    """Bought beforehand, or allowed by a company."""
    DOLLARS = "dollars"
    """A key of the service's API: each call is paid for."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaWindow:
    """What is known of one part of an account's quota: a window of time, credits, or that calls are paid for."""

    name: str
    """As the service calls it, for example `five_hour`."""
    kind: QuotaKind = QuotaKind.UNKNOWN
    used: float | None = None
    """Between 0 and 1."""
    left: str = ""
    """What is left, in the service's own words: `12.50` credits, or `unlimited`."""
    resets_at: datetime | None = None
    rejected: bool = False
    """A request was refused because of it."""
    model: str = ""
    """The only model that it is of, as the service names it, for example `opus`; empty: it is of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What the runs on one account of an agent draw from together, with its limits.

    Where a limit is of one model alone, it has an envelope of its own beside that of its account.
    """

    id: str
    """The agent's name and the account's: `claude/default`; for a limit of one model `claude/default:opus`."""
    agent: str
    account: str = "default"
    models: tuple[str, ...] = ()
    """The model that it is of, and what else those runs called it that were refused: empty for one that named none.
    None at all: it is of the whole account."""
    state: EnvelopeState = EnvelopeState.OPEN
    failure: Failure | None = None
    """Why it is closed, or was last."""
    reason: str = ""
    until: datetime | None = None
    """From when on one attempt may find out whether it is open again."""
    closed_at: datetime | None = None
    closings: int = 0
    """How often in a row it was found closed."""
    probe: str | None = None
    """The attempt that finds out."""
    probed_at: datetime | None = None
    """Since when the probe's agent works."""
    windows: tuple[QuotaWindow, ...] = ()
    runs: int = 0
    last_run_id: str | None = None
    created_at: datetime
    updated_at: datetime
