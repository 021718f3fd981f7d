"""What an agent may do to us, and what must come of it: a table that the suite, the docs and stand-ins share."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from signal import SIGKILL
from types import MappingProxyType
from typing import Final, Literal

from loopwright.core.values.failures import Failure
from loopwright.core.values.permissions import Permissions
from loopwright.core.values.policy import Limits

HOUR: Final = (3400.0, 3700.0)
"""An hour from now, give or take what a test takes and what a protocol rounds."""

MINUTE: Final = (20.0, 70.0)
"""A minute from now, less what a test takes on a busy machine."""

GARBAGE: Final = "gibberish"
NOVELTY: Final = "novelty"
"""Words that are in what a stand-in prints for the behaviours `garbage` and `unknown_events`, and in nothing else."""

ASKED_FOR: Final = "command:make dist"
"""The key of the permission that the behaviour `permission` asks for."""

LIMITS: Final = Limits(hard=75.0, idle=60.0, done_grace=40.0, term_grace=10.0)
"""Of a behaviour that should come to its end long before them, even on a machine that does much else. Who needs one of
them to come to its end is known by how it was ended."""

Stop = Literal["never", "when working", "when done", "by a signal from elsewhere"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What must come of a behaviour."""

    claimed: bool | None = False
    """None: both are right."""
    failures: tuple[Failure, ...] = ()
    """One of these, where it is not claimed; none at all when empty."""
    asked: str = ""
    """The key of the wish that a person is asked about."""
    retry_in_s: tuple[float, float] | None = None
    """How far ahead the time to try again lies, for an agent that can tell it."""
    ended_by: tuple[str, ...] = ("itself",)
    """How the keeper may have come to the end of the process."""
    orderly: bool = False
    """Where the adapter had words to stop it with, these alone brought it to its end."""
    makes: tuple[str, ...] = ()
    """Files of the workspace that must be there afterwards."""
    makes_not: tuple[str, ...] = ()
    keeps: str = ""
    """A word: every line of the output that has it must be in an event `Raw`, and there must be such lines."""
    code: int | None = None
    """The exit code, or the negative signal, without which it has not done what the behaviour says."""
    prints: int = 0
    """So many bytes of output at least, for the same reason."""
    wordless: bool = False
    """Nothing was said to it to have it stop."""
    at_most_s: float = 60.0
    """Far above what it takes, so that a busy machine does not fail it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """Something that an agent does, in what surroundings, and what must come of it."""

    says: str
    expected: Expected
    plays: str = ""
    """What the stand-in is told to do, where that is not the name of the behaviour."""
    needs: str = ""
    """A capability without which an agent cannot be asked for this."""
    permissions: Permissions = field(default_factory=Permissions)
    limits: Limits = LIMITS
    stop: Stop = "never"
    twice: bool = False
    """A second run continues the conversation of the first."""
    copied: bool = False
    """A second run continues a copy of the conversation of the first, and a third the original."""
    adopted: bool = False
    """The driver dies after the first event, and another one takes over."""


def _fails(
    failure: Failure, says: str, *, needs: str = "", stop: Stop = "never", code: int | None = None
) -> Behaviour:
    expected = Expected(failures=(failure,), code=code)
    return Behaviour(says=says, expected=expected, needs=needs, stop=stop)


_DONE: Final = Expected(claimed=True, makes=("made.txt",))

BEHAVIOURS: Final[Mapping[str, Behaviour]] = MappingProxyType(
    {
        "done": Behaviour(says="It changes a file and ends well: that is claimed.", expected=_DONE),
        "adopted": Behaviour(
            says="Another worker takes the run over after its first word, and comes to the same end.",
            plays="done",
            adopted=True,
            expected=_DONE,
        ),
        "resume": Behaviour(
            says="A conversation continues: its second run is charged with what it added, and nothing twice.",
            needs="resume",
            twice=True,
            expected=_DONE,
        ),
        "fork": Behaviour(
            says="A copy of a conversation is another one, charged with its own, and the first continues as it was.",
            plays="resume",
            needs="fork",
            copied=True,
            expected=_DONE,
        ),
        "garbage": Behaviour(
            says="Garbage and half lines between its words are kept, and hide nothing.",
            expected=replace(_DONE, keeps=GARBAGE),
        ),
        "unknown_events": Behaviour(
            says="Unknown events are kept, and disturb nothing.",
            expected=replace(_DONE, keeps=NOVELTY),
        ),
        "huge_output": Behaviour(
            says="Twenty megabytes of output do not bury the end.",
            # The one that takes seconds by itself, and many times that on a busy machine.
            limits=replace(LIMITS, hard=150.0),
            expected=replace(_DONE, at_most_s=120.0, prints=20_000_000),
        ),
        "overload_then_done": Behaviour(
            says="An overload that the agent survives by itself does not count as a failure.", expected=_DONE
        ),
        "children": Behaviour(
            says="What it leaves running in the background is ended with it.",
            expected=Expected(claimed=True, makes=("made.txt", "late.txt")),
        ),
        "done_then_hang": Behaviour(
            says="It says done and never leaves: it is ended, and its word counts.",
            limits=replace(LIMITS, done_grace=0.3, term_grace=0.5),
            expected=Expected(claimed=True, makes=("made.txt",), ended_by=("done_hang",)),
        ),
        "permission": Behaviour(
            says="It wants to do what was not settled: a person is asked, and it is not done.",
            needs="permissions",
            expected=Expected(asked=ASKED_FOR, makes_not=("dist.txt",), ended_by=("itself", "asked")),
        ),
        "permission_granted": Behaviour(
            says="What a person said yes to is allowed, and done.",
            plays="permission",
            needs="permissions",
            permissions=Permissions(granted=(ASKED_FOR,)),
            expected=Expected(claimed=True, makes=("dist.txt",)),
        ),
        "permission_listed": Behaviour(
            says="A command on the list is allowed, and done.",
            plays="permission",
            needs="permissions",
            permissions=Permissions(commands=("make *",)),
            expected=Expected(claimed=True, makes=("dist.txt",)),
        ),
        "permission_refused": Behaviour(
            says="What a person denied is refused at once, without asking again.",
            plays="permission",
            needs="permissions",
            permissions=Permissions(refused=(ASKED_FOR,)),
            expected=Expected(
                claimed=None, failures=(Failure.AGENT_ERROR, Failure.TOOL), makes_not=("dist.txt",)
            ),
        ),
        "interrupt": Behaviour(
            says="A person stops it in its own words, and it ends its turn in order.",
            needs="interrupt",
            stop="when working",
            expected=Expected(failures=(Failure.CANCELLED,), ended_by=("asked", "itself"), orderly=True),
        ),
        "ignores_sigint": Behaviour(
            says="It does not listen when it is stopped: it is ended all the same.",
            stop="when working",
            limits=replace(LIMITS, term_grace=0.3),
            expected=Expected(failures=(Failure.CANCELLED,), ended_by=("asked",), code=-SIGKILL),
        ),
        "stopped_after_done": Behaviour(
            says="It is stopped after its turn ended: nothing is sent to an agent that no longer listens.",
            plays="done_then_hang",
            stop="when done",
            limits=replace(LIMITS, term_grace=0.3),
            expected=Expected(
                claimed=None, failures=(Failure.CANCELLED,), ended_by=("asked",), wordless=True
            ),
        ),
        "zero_on_sigterm": _fails(
            Failure.CRASH,
            "Another process ends it and it exits with 0: without a result it did not succeed.",
            stop="by a signal from elsewhere",
            code=0,
        ),
        "crash_mid_write": _fails(Failure.CRASH, "It dies in the middle of a line.", code=-SIGKILL),
        "hang": Behaviour(
            says="It shows no sign of life: it is ended.",
            limits=replace(LIMITS, idle=0.5, term_grace=0.3),
            expected=Expected(failures=(Failure.HANG,), ended_by=("idle",)),
        ),
        "deadline": Behaviour(
            says="It works for longer than it may: it is ended.",
            plays="interrupt",
            limits=replace(LIMITS, hard=1.0, term_grace=0.3),
            expected=Expected(failures=(Failure.TIMEOUT,), ended_by=("deadline",)),
        ),
        "missing": Behaviour(
            says="The program is not there.",
            expected=Expected(failures=(Failure.CANNOT_START,), ended_by=("itself", "not_started")),
        ),
        "limit": Behaviour(
            says="The usage limit is reached: it says when it ends, where the agent can tell.",
            expected=Expected(failures=(Failure.USAGE_LIMIT,), retry_in_s=HOUR),
        ),
        "rate_limit": _fails(Failure.RATE_LIMIT, "The service asks to slow down, and it gives up."),
        "retry_after": Behaviour(
            says="The service asks to slow down, and says for how long: so long it is left alone.",
            needs="reset_time",
            expected=Expected(failures=(Failure.RATE_LIMIT,), retry_in_s=MINUTE),
        ),
        "overloaded": _fails(Failure.OVERLOADED, "The service is overloaded, and it gives up."),
        "auth": _fails(Failure.AUTH, "It is not logged in."),
        "billing": _fails(Failure.BILLING, "The account has no credit."),
        "model": _fails(Failure.MODEL, "The service does not have that model."),
        "context": _fails(Failure.CONTEXT, "The work does not fit into the model."),
        "refusal": _fails(Failure.REFUSAL, "The model refuses the work."),
        "tool": _fails(Failure.TOOL, "A tool that it was given does not work."),
        "turns": _fails(Failure.TURNS, "It has used up its turns.", needs="turns"),
        "budget": _fails(Failure.BUDGET, "It has used up its budget.", needs="budget"),
        "error_result": _fails(
            Failure.AGENT_ERROR, "It reports an error and exits with 0: it did not succeed.", code=0
        ),
    }
)
"""By name, in the order of the docs."""

NO_STAND_IN: Final = frozenset({"missing"})
"""Behaviours that need no program at all."""
