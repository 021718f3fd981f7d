"""Agents that speak the Agent Client Protocol: the codec, and what a run of it came to."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Final

from loopwright.adapters.agents import endings
from loopwright.adapters.agents.acp import dialogue, failures, meters, rpc, starting, tries
from loopwright.adapters.agents.acp.profiles import (
    ACP,
    CLAUDE,
    COPILOT,
    GEMINI,
    GOOSE,
    OPENCODE,
    QWEN,
    Profile,
)
from loopwright.adapters.agents.acp.state import LAST_WORDS, AcpState, Ending, Problem, Stalled
from loopwright.adapters.agents.endings import resets_in
from loopwright.adapters.agents.output import readable
from loopwright.core.replies.questions import Asking, asked_in
from loopwright.core.values.failures import Failure
from loopwright.ports import (
    AgentRequest,
    AgentResult,
    Exit,
    Folded,
    Invocation,
    OutputLine,
    QuotaWindow,
    Spent,
)

_BY_STOP_REASON: Final[Mapping[str, Failure | None]] = MappingProxyType(
    {
        "end_turn": None,
        "max_tokens": Failure.CONTEXT,
        "max_turn_requests": Failure.TURNS,
        "refusal": Failure.REFUSAL,
        "cancelled": Failure.CANCELLED,
    }
)
_NUMBERS: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){1,3}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AcpAgent:
    """Codec for one kind of agent that speaks the protocol."""

    profile: Profile = ACP
    name: str = field(default="", init=False)
    capabilities: frozenset[str] = field(default=frozenset(), init=False)
    tested: tuple[str, str] | None = field(default=None, init=False)
    """The oldest and the newest version of the program that were tried."""

    def __post_init__(self) -> None:
        """Take from the profile what others ask an agent for."""
        for name in ("name", "capabilities", "tested"):
            object.__setattr__(self, name, getattr(self.profile, name))

    def invocation(self, request: AgentRequest) -> Invocation:
        """Return how to start it; everything else is told on stdin when it is ready."""
        starting.aim(self.profile, request)  # what is wrong with its options is to be told before it starts
        return starting.invocation(self.profile, request)

    def initial(self, request: AgentRequest | None = None, *, before: Spent | None = None) -> AcpState:
        """Return the state before the first line."""
        anew = request is not None and request.fork and self.profile.fork_counts_anew
        return AcpState(
            aim=starting.aim(self.profile, request) if request else None,
            before_micros=before.cost_micros if before and not anew else 0,
        )

    def fold(self, state: AcpState, line: OutputLine) -> Folded:
        """Take in one line of output."""
        folded = dialogue.fold(state, self.profile, line)
        return replace(folded, stops=folded.state.is_stopping and not state.is_stopping)

    def interrupt(self, state: AcpState) -> tuple[str, ...]:
        """Return what makes the turn stop in order; nothing when there is none."""
        return dialogue.interrupt(state)

    def result(self, state: AcpState, exit: Exit) -> AgentResult:
        """Judge the run: only a turn that ended well and a clean exit together are a claim of success."""
        failure, detail, retry_at = _judge(state, exit)
        asked = _asked(state) if failure is None else ()
        return AgentResult(
            claimed=failure is None and not asked,
            summary=readable(state.said) if failure is None else "",
            last_words=readable(state.said, LAST_WORDS) if failure is None else "",
            failure=failure,
            detail=self._detail(state, failure, detail),
            retry_at=retry_at,
            usage=state.usage if "usage" in self.capabilities else None,
            cost_micros=meters.own_cost(state) if "cost" in self.capabilities else None,
            session_ref=state.session,
            model=state.model,
            version=state.version,
            asked=asked,
            windows=_windows(state, detail, retry_at) if failure is Failure.USAGE_LIMIT else (),
        )

    def probe(self) -> tuple[str, ...]:
        """Return the command that prints the program's version; any program's own is only known per run."""
        return (self.profile.program, "--version") if self.profile.program else ("/bin/sh", "-c", "echo acp")

    def _detail(self, state: AcpState, failure: Failure | None, detail: str) -> str:
        denied = ", ".join(dict.fromkeys(state.denied))
        parts = [detail, f"permission was denied for {denied}" if denied else ""]
        if failure in (Failure.AGENT_ERROR, Failure.CRASH, Failure.CANNOT_START) and self._is_untried(state):
            oldest, newest = self.tested or ("", "")
            tried = oldest if oldest == newest else f"{oldest} to {newest}"
            parts.append(f"this is version {state.version}; tried was {tried}")
        return "; ".join(part for part in parts if part)

    def _is_untried(self, state: AcpState) -> bool:
        found = _NUMBERS.match(state.version or "")
        if self.tested is None or found is None:
            return False
        oldest, newest = map(_numbers, self.tested)
        return not oldest <= _numbers(found[0]) <= newest


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _windows(state: AcpState, detail: str, resets_at: datetime | None) -> tuple[QuotaWindow, ...]:
    """Return the window of one model that refused, by the words of it: the protocol tells nothing of quotas."""
    named = (state.aim.model if state.aim else None) or state.model
    model = failures.limited_model(detail, named)
    return (QuotaWindow(name=model, model=model, resets_at=resets_at, rejected=True),) if model else ()


def _asked(state: AcpState) -> tuple[Asking, ...]:
    return state.asked or asked_in(state.said)


def _judge(state: AcpState, exit: Exit) -> tuple[Failure | None, str, datetime | None]:
    ended, ending = endings.ended_by_us(exit), state.ending
    # An error that it recovered from at the moment it was stopped does not count: it has continued since.
    got_over = state.did_something and ending is not None and ending.stop_reason == "end_turn"
    stalled = None if got_over else state.stalled
    # It may not have listened when it was told to stop: what that was for is known all the same.
    stopped = state.asked or stalled or state.circling
    if ended is not None and not (stopped and ended[0] in (Failure.TIMEOUT, Failure.HANG)):
        return (*ended, None)
    if state.asked:
        return None, "", None
    if state.circling:
        told = (
            "it said the same kind of thing again and again without doing anything: its context is too small"
        )
        return Failure.CONTEXT, told, None
    if stalled is not None:
        return _of_stalling(stalled, exit)
    if ending is None:
        return (*_without_end(state, exit), None)
    if ending.problem is not None:
        return _of_problem(ending, ending.problem, exit)
    if ending.stop_reason != "end_turn":
        failure = _BY_STOP_REASON.get(ending.stop_reason, Failure.AGENT_ERROR)
        return failure, f"its turn ended with {ending.stop_reason or 'no reason'}", None
    return _of_success(state, exit)


def _of_stalling(stalled: Stalled, exit: Exit) -> tuple[Failure, str, datetime | None]:
    times = f"failed {stalled.attempt} times" if stalled.attempt > 1 else "failed"
    at = tries.again_at(stalled.failure, stalled.message, stalled.pause_s, exit.ended_at)
    return stalled.failure, f"{stalled.message} ({times}; it would have kept trying)", at


def _of_problem(ending: Ending, problem: Problem, exit: Exit) -> tuple[Failure, str, datetime | None]:
    failure, detail, at = _told(problem, exit)
    if failure is Failure.AGENT_ERROR and ending.step != rpc.PROMPT:
        # A conversation that cannot be continued is not there any more: the engine lets it begin another.
        failure = Failure.CRASH if ending.going_on else Failure.CANNOT_START
    return failure, detail, at


def _told(problem: Problem, exit: Exit) -> tuple[Failure, str, datetime | None]:
    failure = tries.limit(failures.failure(problem), resets_in(problem.message))
    return failure, problem.message, tries.again_at(failure, problem.message, None, exit.ended_at)


def _of_success(state: AcpState, exit: Exit) -> tuple[Failure | None, str, datetime | None]:
    match state.complaint:
        case ("error", text):
            return _told(Problem(message=text), exit)
        case ("turns", text):
            return Failure.TURNS, text, None
        case ("refused", text):
            return Failure.TOOL, f"it stopped when it was refused something: {text}", None
    if not state.did_something:
        return Failure.AGENT_ERROR, "it ended its turn without a word", None
    if exit.ended_by == "itself" and exit.code != 0:
        return Failure.CRASH, f"it reported success but {endings.in_words(exit.code)}", None
    return None, "", None


def _without_end(state: AcpState, exit: Exit) -> tuple[Failure, str]:
    said = " / ".join(state.tail[-5:])
    detail = f"it {endings.in_words(exit.code)} without a result" + (f": {said}" if said else "")
    if state.session is None and exit.code != 0 and not endings.is_signal(exit.code):
        return failures.by_words(said) or Failure.CANNOT_START, detail
    return Failure.CRASH, detail


acp = partial(AcpAgent, profile=ACP)
gemini = partial(AcpAgent, profile=GEMINI)
opencode = partial(AcpAgent, profile=OPENCODE)
goose = partial(AcpAgent, profile=GOOSE)
qwen = partial(AcpAgent, profile=QWEN)
copilot = partial(AcpAgent, profile=COPILOT)
claude = partial(AcpAgent, profile=CLAUDE)
"""Where the registry finds them."""
