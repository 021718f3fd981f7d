"""Secrets are redacted by their shape, also with colours and control bytes in the middle of them."""

import json
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import pytest

from loopwright.keeper import redact
from loopwright.keeper.record import Lines
from loopwright.keeper.redact import MASK, Redactor, forms_of

RULES = json.loads(Path(redact.__file__).with_name("token_rules.json").read_text())["rules"]
EVERYTHING = [
    *((rule["id"], rule["regex"], rule.get("entropy", 0.0), rule.get("allowed", ())) for rule in RULES),
    *((words[0], regex, 0.0, ()) for words, regex in redact.SHAPES),
]


def made_from(items: Any, dice: random.Random) -> str:
    """Return a text that a parsed expression matches."""
    return "".join(_part(kind, value, dice) for kind, value in items)


def _part(kind: Any, value: Any, dice: random.Random) -> str:
    if kind is op.LITERAL:
        return chr(value)
    if kind is op.IN:
        members = [*_members(value)]
        return dice.choice([one for one in members if one.isalnum()] or members)
    if kind is op.SUBPATTERN:
        return made_from(value[3], dice)
    if kind is op.BRANCH:
        return made_from(dice.choice(value[1]), dice)
    if kind is op.MAX_REPEAT:
        least, most, inner = value
        count = least if least == most else min(most, least + 12)
        return "".join(made_from(inner, dice) for _ in range(count))
    assert kind in {op.AT, op.ASSERT, op.ASSERT_NOT}, kind
    return ""


def _members(value: Any) -> Iterator[str]:
    for kind, one in value:
        if kind is op.LITERAL:
            yield chr(one)
        elif kind is op.RANGE:
            yield from map(chr, range(one[0], one[1] + 1))
        else:
            yield from "0123456789" if one is op.CATEGORY_DIGIT else "abcXYZ0123456789_"


def sample(regex: str, entropy: float, allowed: tuple[str, ...], dice: random.Random) -> str:
    """Make a token at run time: none is written down in a file."""
    for _ in range(200):
        text = made_from(_parser.parse(regex.replace(r"\/\\_+\-\r\n", "a-z")), dice)
        if redact._entropy(text.encode()) >= entropy and not any(re.search(one, text) for one in allowed):
            return text
    raise AssertionError(f"nothing random enough was made from {regex}")


def tokens() -> Iterator[tuple[str, str]]:
    dice = random.Random(17)
    for name, regex, entropy, allowed in EVERYTHING:
        yield name, sample(regex, entropy, allowed, dice)


def hidden(said: bytes, token: str) -> bool:
    """Return whether nothing is left of a token but the mask and what cannot be a part of it."""
    kept = Redactor([]).redact(said)
    # What a terminal shows of the rest: half a token is no less of a secret.
    shown = re.sub(rb"\x1b\[[0-9;]*[mK]|\\u001b\[[0-9;]*[mK]|\x00|\\u0000", b"", kept)
    return MASK in kept and token[4:12].encode() not in shown and token[-12:-4].encode() not in shown


@pytest.mark.capability("C108")
def test_one_token_of_every_shape_is_redacted_whatever_is_in_the_middle_of_it() -> None:
    assert len(RULES) > 100
    missed = []
    for name, token in tokens():
        half = len(token) // 2
        ways = {
            "alone": token,
            "assigned": f"KEY={token}",
            "in JSON, behind a break": json.dumps({"text": f'first\n{token}\nand "{token}"'}),
            "in an address": f"https://host.example/?key%3D{token}&more",
            "coloured by grep": f"\x1b[01;31m\x1b[K{token[:3]}\x1b[m\x1b[K{token[3:]}",
            "coloured, in JSON": json.dumps(
                {"text": f"a: \x1b[1m{token[:half]}\x1b[0m{token[half:]}\x1b[0m b"}
            ),
            "with NUL bytes": "\0".join(token),
            "with NUL bytes, in JSON": json.dumps("\0".join(token[at : at + 3] for at in range(0, 999, 3))),
            "between colours": f"word\x1b[31m{token}\x1b[0mword",
            "with a link inside": f"{token[:half]}\x1b]8;;http://x.example\x1b\\{token[half:]}",
        }
        missed += [(name, way) for way, said in ways.items() if not hidden(f"{said}\n".encode(), token)]
    assert missed == []


@pytest.mark.capability("C108")
def test_a_token_is_redacted_however_its_bytes_arrive() -> None:
    missed = []
    for name, token in tokens():
        text = f"before\nKEY=\x1b[1m{token[:9]}\x1b[0m{token[9:]} behind\nafter\n".encode()
        for step in (7, 64):
            lines = Lines(Redactor([]), longest=8192, overlap=4096)
            got = b"".join(lines.feed(text[at : at + step]) for at in range(0, len(text), step))
            if got != b"before\nKEY=\x1b[1m" + MASK + b" behind\nafter\n":
                missed.append((name, step, got))
    assert missed == []


@pytest.mark.capability("C108")
def test_what_was_handed_over_is_redacted_with_colours_in_it_and_keys_too() -> None:
    redactor = Redactor(forms_of(["correct horse battery"]))
    said = "it is correct \x1b[31mhorse\x1b[0m battery, correct\0 horse\\u001b[0m battery\n"
    assert redactor.redact(said.encode()).decode() == "it is [redacted], [redacted]\n"
    row = "MIIEowIBAAKCAQEA75kVqC0aH5qXvDn3c0wJ1RBi8VqQbS7"
    key = f"\x1b[32m-----BEGIN \x1b[0mRSA PRIVATE\x1b[0m KEY-----\n\x1b[2m{row}\x1b[0m\nplain words\n"
    assert row.encode() not in redactor.redact(key.encode())
    link = "\x1b]8;;https://someone:hunter2@host.example/\x1b\\shown\x1b]8;;\x1b\\\n"
    assert redactor.redact(link.encode()).decode() == link.replace("hunter2", "[redacted]")


def test_colours_around_honest_words_stay_as_they_are() -> None:
    said = (
        "\x1b[1mtask-based\x1b[0m disk-usage \x1b]0;a title\x07 C:\\x1b\\new\\e[tc \\u001b[31mred\\u001b[0m\n"
        "progress 10%\rprogress 20%\r\n\0\0binary\x7f \x1b(B\x1b[m done \xc2\x9b31m é ü\n"
    )
    assert Redactor([]).redact(said.encode("latin-1")) == said.encode("latin-1")


def test_no_text_takes_long() -> None:
    """A shape that backtracks, or is tried at every letter of a long line, would take minutes for these."""
    dice = random.Random(18)
    size = 20_000
    began = time.process_time()
    for name, regex, entropy, allowed in EVERYTHING:
        token = sample(regex, entropy, allowed, dice)
        for piece in (token[:-1], token[:6], f"{token[:-1]}-", f".{token[:4]}"):
            text = (piece * (size // len(piece) + 1))[:size].encode() + b"\n"
            one = time.process_time()
            Redactor([]).redact(text)
            took = time.process_time() - one
            assert took < 5, f"{name} took {took:.1f} s for {piece[:30]!r} again and again"
    for piece in (b"\x1b]", b"\\u001b]8;;", b"\x1b[1;", b"\\" * 9, b"\x1b", b"-eyJ", b"://a:", b"Q~"):
        Redactor([]).redact(piece * (size // len(piece)) + b"\n")
    assert time.process_time() - began < 60


def test_no_line_takes_long_whatever_is_in_it() -> None:
    """A keeper that is busy with a line ends no run at its time limit: some of these once took hours."""
    header = b"-----BEGIN PRIVATE KEY-----"
    for name, text in {
        "headers without an end": header * 20_000,
        "keys": (header + b"abc-----END PRIVATE KEY-----") * 10_000,
        "signs below a header": header + b"\n1" + b"=" * 200_000 + b"a!a",
        "commands of a terminal": b"\x1b]a" * 100_000,
    }.items():
        redacted = Redactor([]).redact(text + b"\n")
        assert (b"abc" in redacted) is False, name
