"""Which account an attempt may draw from now: pure, over the envelopes as they stand.

An envelope that was closed is half open once its time has come: one attempt may start and find out. When the
service answers it, everybody may draw again; when not, the envelope stays closed for longer.

An agent may have several accounts, each with its own envelope. It is closed only when all of them are. A limit of
one model has an envelope beside its account's, and closes the account to that model alone.
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
"""What is left of an account of which nothing is known: neither full nor empty. One that is known to be less than half
used goes before it, and one that is known to be more than half used after it."""

_WORDS: Final = re.compile(r"[^a-z]+")
"""What is between the words of a model's name."""

_WINDOWS: Final = frozenset({QuotaKind.SUBSCRIPTION, QuotaKind.WEEKLY})

_STEP: Final = 5
"""When so many hundredths of a window more are used, others may choose another account."""

SPREAD: Final = timedelta(seconds=5)
"""Up to so much is waited beyond a reset: clocks differ, and many may wait for the same moment."""

PROVEN_AFTER: Final = timedelta(seconds=60)
"""A service that refuses says so at once: a probe that works for so long has been let in."""


def envelope_id(agent: str, account: str = ACCOUNT, model: str = "") -> str:
    """Return the id of the envelope that an agent's runs draw from, or of the limit of one model beside it."""
    return f"{agent}/{account}:{model}" if model else f"{agent}/{account}"


def concerns(envelope: Envelope, model: str | None) -> bool:
    """Return whether runs for which this model is named, or none, draw from an envelope.

    The models that were refused are known; a run that names another model may try.
    """
    return not envelope.models or (model or "") in envelope.models or _is_of(envelope.models[0], model)


def _is_of(limited: str, model: str | None) -> bool:
    """Return whether a limit is about this model, or about its kind: `claude-opus-5-5` is an `opus`."""
    name = (model or "").lower()
    return name == limited.lower() or limited.lower() in _WORDS.split(name)


def limited_model(windows: Sequence[QuotaWindow]) -> str:
    """Return the one model that a limit is of, by the windows that refused; empty where it is of the account."""
    refused = {one.model for one in windows if one.rejected}
    return refused.pop().lower() if len(refused) == 1 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An agent that may start, and what it takes to let it."""

    agent: str
    model: str | None
    probes: tuple[str, ...] = ()
    """The closed envelopes that it finds out about: that of its account, that of its model, or both."""
    because: str = ""
    """Why it takes over from the agent that was meant to work; empty when it is that one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """No agent may start: the envelope of the agent that was meant to work, and when to look again."""

    envelope: Envelope
    look_again_at: datetime | None


class Admission:
    """Lets attempts through in one pass of policy: one probe for each closed envelope, and no other attempt."""

    def __init__(
        self,
        envelopes: Mapping[str, Envelope],
        now: datetime,
        accounts: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> None:
        """Take the envelopes as they stand, and the accounts of each agent that has several, in order."""
        self._envelopes = envelopes
        self._now = now
        self._accounts = accounts
        self._probing = {one.id for one in envelopes.values() if one.probe is not None}

    @property
    def proven(self) -> Iterator[Envelope]:
        """Return the closed envelopes whose probe works long enough to know that they are open."""
        return (one for one in self._envelopes.values() if _is_proven(one, self._now))

    def choose(
        self, agent: str, model: str | None, fallback: Sequence[str] = (), *, stays: str | None = None
    ) -> Choice | Held:
        """Return who works: the agent itself, or the first open one of those that may take over.

        `stays` is the account that its conversation lives with.
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
        """Return the account that an attempt draws from now; None when all are closed to it.

        The one that it finds out about; else the one that its conversation lives with; else, of those that are open,
        the one with most left, in the order of the settings where they are alike.
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

        # The first of several that are alike: `max` keeps the order.
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
        """Return what keeps a model off each account that is closed to it."""
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
        """Return the envelopes to find out about: of the account that it stays with, else of the first that is due.

        An account that only a person can repair is not tried while another is open: it would only fail again.
        """
        opened = self._open(agent, model)
        if stays in opened:
            return []
        closed = self._closed(agent, model).values()
        due = [several for several in closed if all(map(self._may_probe, several))]
        hopeful = [several for several in due if not (opened and any(map(needs_person, several)))]
        return min(hopeful, key=lambda several: several[0].account != stays, default=[])

    def _may_probe(self, envelope: Envelope) -> bool:
        # Now before the last change: the clock was set back, so only a probe can tell how long it still takes.
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
        # Until its agent works, and when it ends, there is an event to wait for.
        return envelope.probed_at + PROVEN_AFTER if envelope.probed_at else None


def remaining(envelope: Envelope | None, now: datetime, model: str | None = None) -> float:
    """Return how much of an account is left to a model, from 0 to 1: as much as in the window that has least."""
    windows = envelope.windows if envelope is not None else ()
    return min((_left(window, now) for window in windows if _bounds(window, model)), default=UNKNOWN)


def _bounds(window: QuotaWindow, model: str | None) -> bool:
    """Return whether it says how much is left: a balance says nothing about how much an account can still do."""
    if window.model and not _is_of(window.model, model):
        return False
    return window.kind not in (QuotaKind.CREDITS, QuotaKind.DOLLARS) or window.used is not None


def newest(known: Sequence[QuotaWindow], told: Sequence[QuotaWindow]) -> tuple[QuotaWindow, ...]:
    """Return what is known of an account's quota after the newest word on it.

    An account that is paid for call by call has no windows any more, and one that has some is paid for by them: the
    person has logged in otherwise.
    """
    kinds = {one.kind for one in told}
    gone = (
        {QuotaKind.DOLLARS} if kinds & _WINDOWS else _WINDOWS if QuotaKind.DOLLARS in kinds else frozenset()
    )
    # Of one that is only known to have refused, the envelope that it closed tells.
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
    """Return what people call it: the agent alone where it is its usual account, with the model if it is of one."""
    return ":".join((called(envelope.agent, envelope.account), *envelope.models[:1]))


def because(envelope: Envelope) -> str:
    """Return in one sentence why an envelope is closed."""
    if envelope.models:
        return f"The account's limit of {envelope.models[0]} is reached."
    advice = RULES[envelope.failure].advice if envelope.failure else ""
    return advice or envelope.reason


def standing(envelope: Envelope) -> str:
    """Return in a few words how an envelope stands, and what a person can do about it."""
    if envelope.state is EnvelopeState.OPEN:
        return "open"
    if needs_person(envelope):
        tried = f"; it is tried again at {envelope.until:%Y-%m-%d %H:%M:%S} UTC" if envelope.until else ""
        return f"closed: {to_do(envelope)}{tried}"
    when = f" until {envelope.until:%Y-%m-%d %H:%M:%S} UTC" if envelope.until else ""
    return f"closed{when}: {because(envelope)}"


def needs_person(envelope: Envelope) -> bool:
    """Return whether only a person can repair what closed it."""
    return envelope.failure is not None and RULES[envelope.failure].person


def to_do(envelope: Envelope) -> str:
    """Return what a person has to do about it."""
    return f"{because(envelope)} Then `{to_type('stats', 'quota', 'open', label(envelope))}`"


def unwilling(policy: Policy, envelope: Envelope, now: datetime) -> str:
    """Return why a plan does not wait for an envelope; empty when it does."""
    name = f"{label(envelope)} is {standing(envelope)}"
    if not policy.wait_for_limits:
        return name
    why = too_long(policy, since=envelope.closed_at or now, until=envelope.until, now=now)
    return f"{name}; that is {why}" if why else ""
