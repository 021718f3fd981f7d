"""Failure classes, and the rule of each one.

A rule is data: policy reads it, docs print it. To add one, add a member and its rule, then run `make docs`.
Adapters of agents return it as the failure of a run, `core.policy.landing` as an objection to work, and
`engine.attempt` for problems of the machine. Older receipts stay valid, so their format keeps its version;
`python -m tests.unit.core.receipts.test_receipt_golden` writes its golden schema again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Failure(StrEnum):
    """Why an attempt did not land."""

    NO_CHANGE = "no_change"
    GATE = "gate"
    CONTRADICTION = "contradiction"
    REVIEW = "review"
    LOOK = "look"
    ISSUES = "issues"
    CONFLICT = "conflict"
    TOGETHER = "together"
    AGENT_ERROR = "agent_error"
    REFUSAL = "refusal"
    TOOL = "tool"
    TURNS = "turns"
    CONTEXT = "context"
    TIMEOUT = "timeout"
    HANG = "hang"
    STRAY_WRITE = "stray_write"
    LINKED_GIT = "linked_git"
    UNRECORDABLE = "unrecordable"
    UNVERIFIED = "unverified"
    CANNOT_CHECK = "cannot_check"
    UNANSWERED = "unanswered"
    RATE_LIMIT = "rate_limit"
    USAGE_LIMIT = "usage_limit"
    OVERLOADED = "overloaded"
    LOGIN_RENEWED = "login_renewed"
    AUTH = "auth"
    BILLING = "billing"
    BUDGET = "budget"
    MODEL = "model"
    CANNOT_START = "cannot_start"
    SETUP = "setup"
    HOST_LOST = "host_lost"
    CRASH = "crash"
    ENVIRONMENT = "environment"
    CANCELLED = "cancelled"


class Level(StrEnum):
    """The counter that a failure uses: each level has its own, so that they do not use up each other."""

    ATTEMPT = "attempt"  # the work was judged and rejected
    RACE = "race"  # the work may be good, but others landed first
    CALL = "call"  # transport or machine: the work was never judged
    NONE = "none"  # Loopwright does not try again


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule of one failure class."""

    level: Level
    advice: str
    parks: bool = False
    """The attempt waits with its work kept, instead of ending."""
    first_s: float = 1.0
    longest_s: float = 60.0
    """The pauses before another try: doubled each time, from the first up to the longest."""
    honours: bool = False
    """Whether the service's own time for another try counts.

    If it closes an account it replaces our pause, else the later time counts.
    """
    closes: bool = False
    """Nothing more uses the account until it opens; the failure does not count against the task."""
    person: bool = False
    """Only the user can fix it; until then it is tried again from time to time."""
    hopeless: bool = False
    """After two identical instant failures there is no third try."""
    fallback: bool = False
    """The next agent of the list `fallback` takes over, if any: until a closed account opens, else permanently."""
    pauses: bool = False
    """If the limit is Loopwright's, the attempt waits with its work kept, the loop pauses and asks the user.

    At any other limit the attempt ends.
    """
    stopped: bool = False
    """It was stopped on request.

    If Loopwright requested it, the attempt waits with its work kept, or ends if it was cancelled. Otherwise
    the attempt ends.
    """


POINTERS: Final = ("; read its last lines", "; read its findings")
"""Advice that only helps together with these."""

RULES: Final[Mapping[Failure, Rule]] = MappingProxyType(
    {
        Failure.NO_CHANGE: Rule(Level.ATTEMPT, "The agent changed nothing, or nothing of what was rejected."),
        Failure.GATE: Rule(Level.ATTEMPT, f"A check failed on the result{POINTERS[0]}."),
        Failure.CONTRADICTION: Rule(
            Level.ATTEMPT, "The work contradicts existing checks, and a person wants them kept."
        ),
        Failure.REVIEW: Rule(Level.ATTEMPT, f"A reviewer found what must not land{POINTERS[1]}."),
        Failure.LOOK: Rule(Level.ATTEMPT, "The QA review was not reported in the form asked for."),
        Failure.ISSUES: Rule(Level.NONE, "The QA review found what has to be fixed first."),
        Failure.CONFLICT: Rule(
            Level.RACE, "The work changes the same places as work that landed since it began."
        ),
        Failure.TOGETHER: Rule(
            Level.RACE, "The work passes alone, but not together with work that landed since it began."
        ),
        Failure.AGENT_ERROR: Rule(Level.ATTEMPT, "The agent itself reported an error.", hopeless=True),
        Failure.REFUSAL: Rule(Level.ATTEMPT, "The model refused the task; reword it.", fallback=True),
        Failure.TOOL: Rule(Level.ATTEMPT, "A tool that the agent needs does not work."),
        Failure.TURNS: Rule(Level.ATTEMPT, "The agent used up its turns; raise them or split the task."),
        Failure.CONTEXT: Rule(Level.ATTEMPT, "The task did not fit the model; split it.", fallback=True),
        Failure.TIMEOUT: Rule(Level.ATTEMPT, "The run hit its time limit; raise it or split."),
        Failure.HANG: Rule(Level.ATTEMPT, "The run showed no sign of life and was ended."),
        Failure.STRAY_WRITE: Rule(Level.ATTEMPT, "The agent wrote into your own checkout."),
        Failure.LINKED_GIT: Rule(Level.ATTEMPT, "The agent's .git folder leads out of its workspace."),
        Failure.UNRECORDABLE: Rule(
            Level.NONE, "Git cannot record what the agent left; its files are kept as an archive."
        ),
        Failure.UNVERIFIED: Rule(Level.NONE, "Nothing checks this task; add a gate."),
        Failure.CANNOT_CHECK: Rule(
            Level.NONE,
            "A check cannot run here, or failed before the work too; install what it needs, or fix it.",
        ),
        Failure.UNANSWERED: Rule(
            Level.NONE, "You did not answer its question in time; retry it, and answer."
        ),
        Failure.RATE_LIMIT: Rule(
            Level.CALL,
            "The service asked to slow down.",
            parks=True,
            first_s=5.0,
            longest_s=300.0,
            honours=True,
        ),
        Failure.USAGE_LIMIT: Rule(
            Level.CALL,
            "The account's limit is reached.",
            parks=True,
            first_s=60.0,
            longest_s=3600.0,
            honours=True,
            closes=True,
            fallback=True,
        ),
        Failure.OVERLOADED: Rule(
            Level.CALL,
            "The service is overloaded.",
            parks=True,
            first_s=5.0,
            longest_s=300.0,
            honours=True,
            fallback=True,
        ),
        Failure.LOGIN_RENEWED: Rule(
            Level.CALL,
            "Another run renewed the login at the same moment; it is tried again with the new one.",
            parks=True,
        ),
        Failure.AUTH: Rule(
            Level.NONE,
            "The agent is not logged in; log in.",
            parks=True,
            first_s=300.0,
            longest_s=3600.0,
            closes=True,
            person=True,
            fallback=True,
        ),
        Failure.BILLING: Rule(
            Level.NONE,
            "The account has no credit; top up.",
            parks=True,
            first_s=300.0,
            longest_s=3600.0,
            closes=True,
            person=True,
            fallback=True,
        ),
        Failure.BUDGET: Rule(Level.NONE, "The budget is used up.", pauses=True),
        Failure.MODEL: Rule(
            Level.NONE, "The service does not have that model; choose another.", fallback=True
        ),
        Failure.CANNOT_START: Rule(Level.NONE, "The agent could not be started."),
        Failure.SETUP: Rule(Level.NONE, "The setup command failed in a clean workspace."),
        Failure.HOST_LOST: Rule(Level.CALL, "The machine that ran it went away."),
        Failure.CRASH: Rule(Level.CALL, "The run died without saying how.", hopeless=True),
        Failure.ENVIRONMENT: Rule(Level.CALL, "This machine got in the way (disk, permissions, sandbox)."),
        Failure.CANCELLED: Rule(Level.NONE, "It was cancelled.", stopped=True),
    }
)
