"""Webhooks: signatures, allowed addresses, and what follows from a receiver's answer."""

import base64
import hmac
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from loopwright.core.policy.retry import backoff

SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - as the standard names it
LONGEST_WAIT: Final = timedelta(days=1)
"""The longest pause that a receiver can request."""

Address = IPv4Address | IPv6Address

_NAT64: Final = IPv6Network("64:ff9b::/96")


def new_secret(random: bytes) -> str:
    """Return a new secret as text."""
    return SECRET_PREFIX + base64.b64encode(random).decode()


def signature(secret: str, message_id: str, sent_at: datetime, body: bytes) -> str:
    """Sign a message as Standard Webhooks 1 does."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    signed = b"%s.%d.%s" % (message_id.encode(), int(sent_at.timestamp()), body)
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()


def may_send_to(address: str, allowed: Collection[str]) -> bool:
    """Return whether a message may go to an address: on the public internet, or in an allowed network."""
    found = ip_address(address.partition("%")[0])
    meant = _meant(found)
    # An IPv4 address is in no IPv6 network, and the other way round.
    if any(one in network for network in map(ip_network, allowed) for one in (found, meant)):
        return True
    # Some multicast addresses count as global.
    return meant.is_global and not meant.is_multicast


def _meant(address: Address) -> Address:
    """Return the IPv4 address inside an IPv6 address, if it has one."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else address)


class Reply(StrEnum):
    """What a receiver did with a message."""

    TAKEN = "taken"
    REFUSED = "refused"
    """It does not accept this message; it may accept others."""
    AWAY = "away"
    """It could not be reached, or could not accept any message."""
    GONE = "gone"
    """It wants no more messages."""


_REFUSED: Final = frozenset({400, 413, 414, 415, 422, 431})
_GONE: Final = 410


def reply_of(status: int) -> Reply:
    """Return the meaning of a status code."""
    if 200 <= status < 300:
        return Reply.TAKEN
    if status == _GONE:
        return Reply.GONE
    return Reply.REFUSED if status in _REFUSED else Reply.AWAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """The outcome of one message."""

    reply: Reply
    detail: str = ""
    """Why it was not accepted."""
    retry_after: timedelta | None = None
    """The pause that the receiver asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often and for how long a delivery is tried."""

    first_s: float = 5.0
    longest_s: float = 28_800.0
    away: int = 16
    """How many failures in a row turn a receiver off: about a day and a half."""
    refused: int = 3
    """How often a message may be refused before it is a dead letter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The message arrived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """Send the same message again, before any other."""

    at: datetime
    failures: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dead:
    """Keep the message as a dead letter, and continue with the next."""

    failures: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Off:
    """Send nothing more until the user requests it; no event is lost."""

    failures: int
    error: str


Next = Taken | Later | Dead | Off


def after_delivery(
    delivery: Delivery, failures: int, patience: Patience, *, now: datetime, chance: float
) -> Next:
    """Decide what follows after a message; `failures` counts those before in a row."""
    failures += 1
    if delivery.reply is Reply.TAKEN:
        return Taken()
    if delivery.reply is Reply.GONE:
        return Off(failures=failures, error=delivery.detail)
    if delivery.reply is Reply.REFUSED and failures >= patience.refused:
        return Dead(failures=failures, error=delivery.detail)
    if failures >= patience.away:
        return Off(failures=failures, error=delivery.detail)
    pause = backoff(failures, first_s=patience.first_s, limit_s=patience.longest_s, chance=chance)
    asked = min(delivery.retry_after or timedelta(), LONGEST_WAIT)
    return Later(at=now + max(pause, asked), failures=failures, error=delivery.detail)
