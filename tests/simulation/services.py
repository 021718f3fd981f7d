"""What stands behind the agents: the accounts that let them in or not, whatever the rows say of them."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from tests.simulation.trouble import Trouble

AGENT: Final = "scripted"
"""The agent that every plan names."""
OTHER: Final = "other"
"""One with an account of its own, that may take over."""

_CLOSINGS: Final[Mapping[str, tuple[float, str]]] = {
    "usage_limit": (0.1, "window used up"),
    "auth": (0.06, "not logged in"),
    "billing": (0.06, "no credit"),
}
"""How likely a run finds its account closed in this way, and what the service says then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why an account lets nobody in."""

    failure: str
    until: float | None
    """By the simulation's time; None until a person mends it."""
    named: float | None = None
    """The time that the service names, which may be wrong."""


class Services:
    """Knows of each agent's account whether it is in order."""

    def __init__(self, trouble: Trouble) -> None:
        self._trouble = trouble
        self._shut: dict[str, Refusal] = {}

    def knock(self, agent: str, run_id: str, now: Callable[[], datetime]) -> dict[str, Any] | None:
        """Let a run in, or return what it is told instead."""
        time = asyncio.get_running_loop().time()
        refusal = self._shut.get(agent)
        if refusal is not None and refusal.until is not None and refusal.until <= time:
            refusal = None
        if refusal is None:
            for failure, (likely, _) in _CLOSINGS.items():
                if self._trouble.strikes(failure, likely, run_id):
                    refusal = self._shut[agent] = self._drawn(failure, time)
                    break
        if refusal is None:
            return None
        said = {"event": "result", "ok": False, "failure": refusal.failure}
        said["message"] = _CLOSINGS[refusal.failure][1]
        if refusal.named is not None:
            said["retry_at"] = int((now() + timedelta(seconds=refusal.named - time)).timestamp())
        return said

    def mend(self) -> None:
        """Log in and top up everywhere, as a person does."""
        self._shut = {agent: one for agent, one in self._shut.items() if one.until is not None}

    def _drawn(self, failure: str, now: float) -> Refusal:
        if failure != "usage_limit":
            return Refusal(failure=failure, until=None)
        chance = self._trouble.chance("service")
        # A time that has passed already, one that is right or too early, or none.
        named_s = chance.choice((-60, 30, 120, 600, None))
        lasts_s = named_s if named_s and named_s > 0 else chance.choice((5, 60, 200))
        lasts_s += chance.choice((0, 0, 40))
        return Refusal(failure=failure, until=now + lasts_s, named=None if named_s is None else now + named_s)
