"""Webhooks: which addresses are public, what signatures look like, and what follows from an answer."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from standardwebhooks.webhooks import Webhook as Verifier
from tests.cases import each_case

from loopwright.core.integrations.webhooks import (
    Dead,
    Delivery,
    Later,
    Off,
    Patience,
    Reply,
    Taken,
    after_delivery,
    may_send_to,
    new_secret,
    reply_of,
    signature,
)

AT = datetime(2030, 1, 1, tzinfo=UTC)


def test_the_official_library_verifies_a_signature() -> None:
    secret, body, now = new_secret(b"k" * 32), b'{"a":1}', datetime.now(UTC)
    headers = {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": signature(secret, "evt_1", now, body),
    }
    assert Verifier(secret).verify(body, headers) == json.loads(body)


@each_case(
    "address, allowed, may",
    [
        ("93.184.216.34", (), True),
        ("2606:2800:220:1:248:1893:25c8:1946", (), True),
        ("127.0.0.1", (), False),
        ("127.9.9.9", (), False),
        ("0.0.0.0", (), False),
        ("10.1.2.3", (), False),
        ("172.16.0.1", (), False),
        ("192.168.1.1", (), False),
        ("169.254.169.254", (), False),
        ("100.64.0.1", (), False),
        ("198.18.0.1", (), False),
        ("224.0.0.1", (), False),
        ("240.0.0.1", (), False),
        ("255.255.255.255", (), False),
        ("::", (), False),
        ("::1", (), False),
        ("fe80::1%eth0", (), False),
        ("fd00::1", (), False),
        ("ff0e::1", (), False),
        ("::ffff:127.0.0.1", (), False),
        ("::ffff:10.0.0.1", (), False),
        ("64:ff9b::7f00:1", (), False),
        ("64:ff9b::5db8:d822", (), True),
        ("2002:7f00:1::", (), False),
        ("2001:0:4136:e378:8000:63bf:80ff:fffe", (), False),
        ("127.0.0.1", ("127.0.0.0/8",), True),
        ("::ffff:127.0.0.1", ("127.0.0.0/8",), True),
        ("::1", ("127.0.0.0/8",), False),
        ("::1", ("::1/128", "127.0.0.0/8"), True),
        ("10.0.0.1", ("127.0.0.0/8",), False),
    ],
)
def test_only_public_and_allowed_addresses_may_be_sent_to(
    address: str, allowed: tuple[str, ...], may: bool
) -> None:
    assert may_send_to(address, allowed) is may


@each_case(
    "status, reply",
    [
        (200, Reply.TAKEN),
        (204, Reply.TAKEN),
        (302, Reply.AWAY),
        (400, Reply.REFUSED),
        (401, Reply.AWAY),
        (404, Reply.AWAY),
        (410, Reply.GONE),
        (422, Reply.REFUSED),
        (429, Reply.AWAY),
        (503, Reply.AWAY),
    ],
)
def test_a_status_says_whether_the_message_or_the_receiver_is_at_fault(status: int, reply: Reply) -> None:
    assert reply_of(status) is reply


PATIENCE = Patience(first_s=10, longest_s=60, away=5, refused=2)


@each_case(
    "reply, failures, more, follows",
    [
        (Reply.TAKEN, 3, {}, Taken()),
        (Reply.GONE, 0, {}, Off(failures=1, error="why")),
        (Reply.REFUSED, 0, {}, Later(at=AT + timedelta(seconds=10), failures=1, error="why")),
        (Reply.REFUSED, 1, {}, Dead(failures=2, error="why")),
        (Reply.AWAY, 1, {}, Later(at=AT + timedelta(seconds=20), failures=2, error="why")),
        (Reply.AWAY, 3, {}, Later(at=AT + timedelta(seconds=60), failures=4, error="why")),
        (Reply.AWAY, 4, {}, Off(failures=5, error="why")),
        (
            Reply.AWAY,
            0,
            {"retry_after": timedelta(minutes=2)},
            Later(at=AT + timedelta(minutes=2), failures=1, error="why"),
        ),
        (
            Reply.AWAY,
            0,
            {"retry_after": timedelta(days=300)},
            Later(at=AT + timedelta(days=1), failures=1, error="why"),
        ),
    ],
)
def test_what_follows_from_an_answer(reply: Reply, failures: int, more: Any, follows: Any) -> None:
    delivery = Delivery(reply=reply, detail="why", **more)
    assert after_delivery(delivery, failures, PATIENCE, now=AT, chance=0.5) == follows


def test_chance_spreads_the_pauses() -> None:
    away = Delivery(reply=Reply.AWAY)
    at = {after_delivery(away, 0, PATIENCE, now=AT, chance=one) for one in (0.0, 0.5, 0.999)}
    assert len(at) == 3
