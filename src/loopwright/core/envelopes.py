"""Which account an attempt may draw from now: pure, over the envelopes as they stand.

An envelope that was closed is half open once its time is over: one attempt is let through to find out. When the
service answers it, everybody may draw again; when not, the envelope stays closed for longer.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from loopwright.core.failures import RULES
from loopwright.core.model import Envelope
from loopwright.core.policy import Policy
from loopwright.core.states import EnvelopeState

ACCOUNT: Final = "default"
"""The only account that an agent has today: the one that its own program is logged in with."""

SPREAD: Final = timedelta(seconds=5)
"""Up to so much is waited beyond a reset: clocks differ, and many may wait for the same moment."""

PROVEN_AFTER: Final = timedelta(seconds=60)
"""A service that refuses says so at once: a probe that works for so long has been let in."""


def envelope_id(agent: str, account: str = ACCOUNT) -> str:
    """Return the id of the envelope that an agent's runs draw from."""
    return f"{agent}/{account}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An agent that may start, and what it takes to let it."""

    agent: str
    model: str | None
    probes: str | None = None
    """The closed envelope that it finds out about."""
    because: str = ""
    """Why it takes over from the agent that was meant to work; empty when it is that one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Nobody may start: the envelope of the agent that was meant to work, and when to look again."""

    envelope: Envelope
    look_again_at: datetime | None


class Admission:
    """Lets attempts through in one pass of policy: one probe for each envelope, and nobody else while it is closed."""

    def __init__(self, envelopes: Mapping[str, Envelope], now: datetime) -> None:
        self._envelopes = envelopes
        self._now = now
        self._probing = {one.id for one in envelopes.values() if one.probe is not None}

    @property
    def proven(self) -> Iterator[Envelope]:
        """Return the closed envelopes whose probe works long enough to know that they are open."""
        return (one for one in self._envelopes.values() if _is_proven(one, self._now))

    def choose(self, agent: str, model: str | None, fallback: Sequence[str] = ()) -> Choice | Held:
        """Return who works: the agent itself, or the first open one of those that may take over."""
        if not self._is_closed(agent):
            return Choice(agent=agent, model=model)
        envelope = self._envelopes[envelope_id(agent)]
        if self._may_probe(envelope):
            self._probing.add(envelope.id)
            return Choice(agent=agent, model=model, probes=envelope.id)
        if envelope.failure is not None and RULES[envelope.failure].fallback:
            for other, its_model in map(named, fallback):
                if not self._is_closed(other):
                    return Choice(
                        agent=other, model=its_model, because=f"{agent} is closed: {because(envelope)}"
                    )
        return Held(envelope=envelope, look_again_at=self._look_again_at(envelope))

    def _is_closed(self, agent: str) -> bool:
        envelope = self._envelopes.get(envelope_id(agent))
        return (
            envelope is not None
            and envelope.state is EnvelopeState.CLOSED
            and not _is_proven(envelope, self._now)
        )

    def _may_probe(self, envelope: Envelope) -> bool:
        # Now before the last change: the clock was set back, and how long it still is nobody knows but who finds out.
        over = envelope.until is None or envelope.until <= self._now or self._now < envelope.updated_at
        return over and envelope.id not in self._probing

    def _look_again_at(self, envelope: Envelope) -> datetime | None:
        if envelope.probe is None:
            return envelope.until if envelope.until and envelope.until > self._now else None
        # Until its agent works, and when it ends, there is an event to wait for.
        return envelope.probed_at + PROVEN_AFTER if envelope.probed_at else None


def _is_proven(envelope: Envelope, now: datetime) -> bool:
    return (
        envelope.state is EnvelopeState.CLOSED
        and envelope.probe is not None
        and envelope.probed_at is not None
        and envelope.probed_at + PROVEN_AFTER <= now
    )


def named(entry: str) -> tuple[str, str | None]:
    """Return agent and model of an entry of `fallback`."""
    agent, _, model = entry.partition(":")
    return agent, model or None


def because(envelope: Envelope) -> str:
    """Say in one sentence why an envelope is closed."""
    advice = RULES[envelope.failure].advice if envelope.failure else ""
    return advice or envelope.reason


def standing(envelope: Envelope) -> str:
    """Say in a few words how an envelope stands, and what a person can do about it."""
    if envelope.state is EnvelopeState.OPEN:
        return "open"
    if needs_person(envelope):
        tried = f"; it is tried again at {envelope.until:%Y-%m-%d %H:%M:%S} UTC" if envelope.until else ""
        return f"closed: {to_do(envelope)}{tried}"
    when = f" until {envelope.until:%Y-%m-%d %H:%M:%S} UTC" if envelope.until else ""
    return f"closed{when}: {because(envelope)}"


def needs_person(envelope: Envelope) -> bool:
    """Say whether only a person can mend what closed it."""
    return envelope.failure is not None and RULES[envelope.failure].person


def to_do(envelope: Envelope) -> str:
    """Say what a person has to do about it."""
    return f"{because(envelope)} Then `loopwright quota open {envelope.agent}`"


def unwilling(policy: Policy, envelope: Envelope, now: datetime) -> str:
    """Say why a plan does not wait for an envelope; empty when it does."""
    name = f"{envelope.agent} is {standing(envelope)}"
    if not policy.wait_for_limits:
        return name
    if policy.longest_wait_s is None:
        return ""
    longest = timedelta(seconds=policy.longest_wait_s)
    still = envelope.until - now if envelope.until else timedelta()
    waited = now - envelope.closed_at if envelope.closed_at else timedelta()
    return f"{name}; that is longer than `longest_wait`" if max(still, waited) > longest else ""
