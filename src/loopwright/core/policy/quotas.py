"""Choose the account that an attempt may use now: pure, from the current envelopes.

An envelope that was closed is half open after its time: one attempt may start as a probe. If the service
accepts it, the envelope opens for all; if not, it stays closed for longer. An agent may have several
accounts, each with its own envelope. The agent is closed only if all of them are. A limit of one model has an
envelope beside its account's, and closes the account to that model alone.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from types import MappingProxyType
from typing import Final

from loopwright.core.policy.fallback import named
from loopwright.core.rows.waiting_rows import Envelope, QuotaKind, QuotaWindow
from loopwright.core.values.accounts import ACCOUNT, called
from loopwright.core.values.failures import RULES
from loopwright.core.values.policy import Policy, too_long
from loopwright.core.values.states import EnvelopeState
from loopwright.core.values.wording import to_type

UNKNOWN: Final = 0.5
"""The share left of an account about which nothing is known: neither full nor empty.

It is chosen after an account that is known to be less than half used, and before one that is more than half
used.
"""

_WORDS: Final = re.compile(r"[^a-z]+")
"""The separators in a model's name."""

_WINDOWS: Final = frozenset({QuotaKind.SUBSCRIPTION, QuotaKind.WEEKLY})

_STEP: Final = 5
"""After this many more hundredths of a window are used, others may choose another account."""

SPREAD: Final = timedelta(seconds=5)
"""The longest extra wait after a reset: clocks differ, and many may wait for the same moment."""

PROVEN_AFTER: Final = timedelta(seconds=60)
"""A service refuses at once: a probe that works this long was accepted."""


def envelope_id(agent: str, account: str = ACCOUNT, model: str = "") -> str:
    """Return the id of the envelope of an agent's account, or of the limit of one model beside it."""
    return f"{agent}/{account}:{model}" if model else f"{agent}/{account}"


def concerns(envelope: Envelope, model: str | None) -> bool:
    """Return whether runs with this model, or without a named one, use an envelope.

    The refused models are known; a run with another model may try.
    """
    return not envelope.models or (model or "") in envelope.models or _is_of(envelope.models[0], model)


def _is_of(limited: str, model: str | None) -> bool:
    """Return whether a limit applies to this model, or to its kind: `claude-opus-5-5` is an `opus`."""
    name = (model or "").lower()
    return name == limited.lower() or limited.lower() in _WORDS.split(name)


def limited_model(windows: Sequence[QuotaWindow]) -> str:
    """Return the only model that a limit applies to, by the windows that refused; empty for the account."""
    refused = {one.model for one in windows if one.rejected}
    return refused.pop().lower() if len(refused) == 1 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An agent that may start, and the conditions."""

    agent: str
    model: str | None
    probes: tuple[str, ...] = ()
    """The closed envelopes that it probes: that of its account, that of its model, or both."""
    because: str = ""
    """Why it takes over from the attempt's own agent; empty if it is that agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """No agent may start: the envelope of the attempt's own agent, and when to decide again."""

    envelope: Envelope
    look_again_at: datetime | None


class Admission:
    """Admit attempts in one pass of policy: one probe for each closed envelope, and no other attempt."""

    def __init__(
        self,
        envelopes: Mapping[str, Envelope],
        now: datetime,
        accounts: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> None:
        """Take the current envelopes, and the accounts of each agent that has several, in order."""
        self._envelopes = envelopes
        self._now = now
        self._accounts = accounts
        self._probing = {one.id for one in envelopes.values() if one.probe is not None}

    @property
    def proven(self) -> Iterator[Envelope]:
        """Return the closed envelopes whose probe has worked long enough to show that they are open."""
        return (one for one in self._envelopes.values() if _is_proven(one, self._now))

    def choose(
        self, agent: str, model: str | None, fallback: Sequence[str] = (), *, stays: str | None = None
    ) -> Choice | Held:
        """Return who works: the agent itself, or the first open one of those that may take over.

        `stays` is the account of its conversation.
        """
        if probed := self._probe(agent, model, stays):
            ids = tuple(one.id for one in probed)
            self._probing.update(ids)
            return Choice(agent=agent, model=model, probes=ids)
        if self._open(agent, model):
            return Choice(agent=agent, model=model)
        envelope = self._first_to_open(agent, model)
        if envelope.failure is not None and RULES[envelope.failure].fallback:
            closed = ":".join((agent, *envelope.models[:1]))
            for other, its_model in map(named, fallback):
                if self._open(other, its_model):
                    return Choice(
                        agent=other, model=its_model, because=f"{closed} is closed: {because(envelope)}"
                    )
        closed_ones = chain.from_iterable(self._closed(agent, model).values())
        due = [at for one in closed_ones if (at := self._look_again_at(one))]
        return Held(envelope=envelope, look_again_at=min(due, default=None))

    def account(
        self, agent: str, attempt: str, stays: str | None = None, *, model: str | None = None
    ) -> str | None:
        """Return the account that an attempt uses now; None if all are closed to it.

        The account that it probes comes first, then that of its conversation. Otherwise it is the open
        account with most left; equal ones are used in the order of the settings.
        """
        for name in self._names(agent):
            closed = [one for one in self._of(agent, name, model) if one.state is EnvelopeState.CLOSED]
            if closed and all(one.probe == attempt for one in closed):
                return name
        opened = self._open(agent, model)
        if stays in opened:
            return stays

        def left(name: str) -> float:
            return remaining(self._envelopes.get(envelope_id(agent, name)), self._now, model)

        # The first of several equal accounts: `max` keeps the order.
        return max(opened, key=left, default=None)

    def _names(self, agent: str) -> Sequence[str]:
        return self._accounts.get(agent) or (ACCOUNT,)

    def _of(self, agent: str, account: str, model: str | None) -> list[Envelope]:
        mine = [one for one in self._envelopes.values() if (one.agent, one.account) == (agent, account)]
        return [one for one in mine if concerns(one, model)]

    def _open(self, agent: str, model: str | None) -> list[str]:
        closed = self._closed(agent, model)
        return [name for name in self._names(agent) if name not in closed]

    def _closed(self, agent: str, model: str | None) -> dict[str, list[Envelope]]:
        """Return the closed envelope that keeps a model off each closed account."""
        found = {
            name: [
                one
                for one in self._of(agent, name, model)
                if one.state is EnvelopeState.CLOSED and not _is_proven(one, self._now)
            ]
            for name in self._names(agent)
        }
        return {name: closed for name, closed in found.items() if closed}

    def _probe(self, agent: str, model: str | None, stays: str | None) -> list[Envelope]:
        """Return the envelopes to probe: of the account that it stays with, else of the first that is due.

        An account that only the user can repair is not probed while another is open: it would only fail
        again.
        """
        opened = self._open(agent, model)
        if stays in opened:
            return []
        closed = self._closed(agent, model).values()
        due = [several for several in closed if all(map(self._may_probe, several))]
        hopeful = [several for several in due if not (opened and any(map(needs_person, several)))]
        return min(hopeful, key=lambda several: several[0].account != stays, default=[])

    def _may_probe(self, envelope: Envelope) -> bool:
        # Now is before the last change: the clock was set back, so only a probe can find out how long it still takes.
        over = envelope.until is None or envelope.until <= self._now or self._now < envelope.updated_at
        return over and envelope.id not in self._probing

    def _first_to_open(self, agent: str, model: str | None) -> Envelope:
        def until(one: Envelope) -> datetime:
            return one.until or self._now

        last = [max(several, key=until) for several in self._closed(agent, model).values()]
        return min(last, key=until)

    def _look_again_at(self, envelope: Envelope) -> datetime | None:
        if envelope.probe is None:
            return envelope.until if envelope.until and envelope.until > self._now else None
        # An event will follow when its agent has worked long enough, and when it ends.
        return envelope.probed_at + PROVEN_AFTER if envelope.probed_at else None


def remaining(envelope: Envelope | None, now: datetime, model: str | None = None) -> float:
    """Return the share of an account that is left for a model, from 0 to 1: that of its most used window."""
    windows = envelope.windows if envelope is not None else ()
    return min((_left(window, now) for window in windows if _bounds(window, model)), default=UNKNOWN)


def _bounds(window: QuotaWindow, model: str | None) -> bool:
    """Return whether it says how much is left: a balance does not say how much work an account can still do."""
    if window.model and not _is_of(window.model, model):
        return False
    return window.kind not in (QuotaKind.CREDITS, QuotaKind.DOLLARS) or window.used is not None


def newest(known: Sequence[QuotaWindow], told: Sequence[QuotaWindow]) -> tuple[QuotaWindow, ...]:
    """Return what is known about an account's quota after the newest report.

    An account that pays per call has no windows any more, and an account with windows is paid for by them:
    the user has logged in differently.
    """
    kinds = {one.kind for one in told}
    gone = (
        {QuotaKind.DOLLARS} if kinds & _WINDOWS else _WINDOWS if QuotaKind.DOLLARS in kinds else frozenset()
    )
    # If only a refusal is known, the envelope that it closed reports it.
    said = [one for one in told if one != QuotaWindow(name=one.name, model=one.model, rejected=True)]
    merged = {one.name: one for one in (*(one for one in known if one.kind not in gone), *said)}
    return tuple(merged.values())


def noticeable(known: Sequence[QuotaWindow], told: Sequence[QuotaWindow]) -> bool:
    """Return whether a quota report should be stored at once, not only when the run ends."""
    before = {one.name: one for one in known}
    return any(one.name not in before or _differs(before[one.name], one) for one in told)


def _differs(known: QuotaWindow, told: QuotaWindow) -> bool:
    if (known.kind, known.rejected, known.used is None) != (told.kind, told.rejected, told.used is None):
        return True
    if known.resets_at is None or told.resets_at is None:
        moved = known.resets_at is not told.resets_at
    else:
        # Some services recompute it with each answer, and differ by a second.
        moved = abs(told.resets_at - known.resets_at) >= timedelta(minutes=1)
    return moved or abs(round(100 * (told.used or 0.0)) - round(100 * (known.used or 0.0))) >= _STEP


def _left(window: QuotaWindow, now: datetime) -> float:
    if window.resets_at is not None and window.resets_at <= now:
        return 1.0
    if window.rejected:
        return 0.0
    return UNKNOWN if window.used is None else 1.0 - min(window.used, 1.0)


def _is_proven(envelope: Envelope, now: datetime) -> bool:
    return (
        envelope.state is EnvelopeState.CLOSED
        and envelope.probe is not None
        and envelope.probed_at is not None
        and envelope.probed_at + PROVEN_AFTER <= now
    )


def label(envelope: Envelope) -> str:
    """Return its name for people: the agent alone for its usual account, with the model if it has one."""
    return ":".join((called(envelope.agent, envelope.account), *envelope.models[:1]))


def because(envelope: Envelope) -> str:
    """Return in one sentence why an envelope is closed."""
    if envelope.models:
        return f"The account's limit of {envelope.models[0]} is reached."
    advice = RULES[envelope.failure].advice if envelope.failure else ""
    return advice or envelope.reason


def standing(envelope: Envelope) -> str:
    """Return in a few words the state of an envelope, and what the user can do about it."""
    if envelope.state is EnvelopeState.OPEN:
        return "open"
    if needs_person(envelope):
        tried = f"; it is tried again at {envelope.until:%Y-%m-%d %H:%M:%S} UTC" if envelope.until else ""
        return f"closed: {to_do(envelope)}{tried}"
    when = f" until {envelope.until:%Y-%m-%d %H:%M:%S} UTC" if envelope.until else ""
    return f"closed{when}: {because(envelope)}"


def needs_person(envelope: Envelope) -> bool:
    """Return whether only the user can repair what closed it."""
    return envelope.failure is not None and RULES[envelope.failure].person


def to_do(envelope: Envelope) -> str:
    """Return what the user has to do about it."""
    return f"{because(envelope)} Then `{to_type('stats', 'quota', 'open', label(envelope))}`"


def unwilling(policy: Policy, envelope: Envelope, now: datetime) -> str:
    """Return why a plan does not wait for an envelope; empty if it does."""
    name = f"{label(envelope)} is {standing(envelope)}"
    if not policy.wait_for_limits:
        return name
    why = too_long(policy, since=envelope.closed_at or now, until=envelope.until, now=now)
    return f"{name}; that is {why}" if why else ""
