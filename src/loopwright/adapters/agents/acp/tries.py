"""What an agent tries again by itself, and from when on we no longer let it: then the run ends as what it met.

It would keep trying silently, for minutes or for hours, and Loopwright would not know that the account is used up.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from loopwright.adapters.agents.acp import failures
from loopwright.adapters.agents.acp.profiles import Profile
from loopwright.adapters.agents.acp.state import AcpState, Problem, Stalled
from loopwright.adapters.agents.endings import resets_in
from loopwright.core.values.failures import RULES, Failure
from loopwright.ports import AgentEvent

LONGEST_PAUSE_S: Final = 90.0
"""An agent that has to wait longer than that has used up its quota; a limit per minute has ended by then."""

MOST_TRIES: Final[Mapping[Failure, int]] = MappingProxyType(
    {
        Failure.USAGE_LIMIT: 1,
        Failure.BILLING: 1,
        Failure.RATE_LIMIT: 3,
        # Most get over it by themselves, and give up before that.
        Failure.OVERLOADED: 6,
    }
)
"""So many in a row may fail in this way, the same for every agent. What is not here it may try as often as it likes."""

_ESCAPED: Final = re.compile(r"\\(.)")
_MEANT: Final = MappingProxyType({"n": " ", "t": " ", "r": " "})
_LINES: Final = 8
"""What was said of one try may go over so many lines."""


def seen(state: AcpState, profile: Profile) -> tuple[AcpState, AgentEvent | None]:
    """Look at the last lines that were printed: whether it tries again now, and whether that is enough."""
    found = _found(profile, state.tail[-_LINES:])
    if found is None:
        return state, None
    told = found.groupdict()
    # Who does not count them is counted for, since it last said or did something.
    attempt = int(told["attempt"]) if "attempt" in told else state.tries + 1
    status = int(told["status"]) if told.get("status") else None
    pause_s = int(told["pause_ms"]) / 1000 if told.get("pause_ms") else None
    words = _ESCAPED.sub(lambda one: _MEANT.get(one[1], one[1]), told["message"] or "").strip()
    problem = Problem(message=words or f"the service answered with status {status or 'unknown'}", code=status)
    failure = failures.failure(problem)
    ahead_s = resets_in(problem.message) or pause_s
    state = replace(state, tries=attempt)
    enough = failure in MOST_TRIES and (attempt >= MOST_TRIES[failure] or (ahead_s or 0.0) > LONGEST_PAUSE_S)
    text = f"{problem.message} (attempt {attempt})"
    if not enough:
        return state, AgentEvent(kind="Retry", text=text, data={"attempt": attempt})
    failure = limit(failure, ahead_s)
    stalled = Stalled(failure=failure, message=problem.message, pause_s=pause_s, attempt=attempt)
    event = AgentEvent(kind="Error", text=f"{text}, and it is stopped", data={"class": failure.value})
    # Some end their turn as if all were well when they are stopped here: from now on it has yet to do something.
    return replace(state, stalled=stalled, did_something=False), event


def limit(failure: Failure, ahead_s: float | None) -> Failure:
    """Return the kind of a failure by how long it lasts: its name says less."""
    far = ahead_s is not None and ahead_s > LONGEST_PAUSE_S
    return Failure.USAGE_LIMIT if failure is Failure.RATE_LIMIT and far else failure


def again_at(failure: Failure, message: str, pause_s: float | None, after: datetime) -> datetime | None:
    """Return when the service is to be asked again, where it said so."""
    if not RULES[failure].honours:
        return None
    # Some pause a bit longer than they were told to, so the words count first.
    told = failures.resets_at(message, after)
    return after + timedelta(seconds=pause_s) if told is None and pause_s is not None else told


def _found(profile: Profile, lines: tuple[str, ...]) -> re.Match[str] | None:
    """Return the last try, if the newest line tells of it."""
    if profile.tries is None or not lines:
        return None
    text = "\n".join(lines)
    found = list(profile.tries.finditer(text))
    return found[-1] if found and found[-1].end() > len(text) - len(lines[-1]) else None
