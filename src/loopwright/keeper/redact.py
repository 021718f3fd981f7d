"""Takes secrets out of complete lines before anything is stored.

Speed matters, since all output passes here: exact values are replaced without any expression, and an expression is
tried only on text that has a needle of its own in it.
"""

from __future__ import annotations

import json
import re

MASK = b"[redacted]"
SHORTEST_SECRET = 4
"""Shorter values are left alone: masking every `1` or `on` would destroy the output and protect nothing."""

_TOKEN = rb"[A-Za-z0-9._~+/=-]"

# Not in the middle of a word, as in "task-". In a line of JSON the letter in front may be the end of an escaped break.
_ALONE = rb"%b(?:(?<![A-Za-z0-9]%b)|(?<=\\[nrt]%b))"

SHAPES: tuple[tuple[bytes, bytes], ...] = (
    (
        b"sk-",
        _ALONE % (b"sk-", b"sk-", b"sk-")
        + rb"(?:(?:ant|proj|svcacct|admin|or|live|test)-[A-Za-z0-9_-]{16,}|[A-Za-z0-9]{20,})",
    ),
    (b"k_live_", _ALONE % ((rb"[rs]k_live_",) * 3) + rb"[A-Za-z0-9]{24,}"),
    (b"k_test_", _ALONE % ((rb"[rs]k_test_",) * 3) + rb"[A-Za-z0-9]{24,}"),
    (b"gh", rb"gh[pousr]_[A-Za-z0-9]{20,}"),
    (b"github_pat_", rb"github_pat_[A-Za-z0-9_]{20,}"),
    (b"glpat-", rb"glpat-[A-Za-z0-9_-]{16,}"),
    (b"IA", rb"A(?:KI|SI)A[A-Z0-9]{16}(?![A-Z0-9])"),
    (b"AIza", rb"AIza[A-Za-z0-9_-]{35}"),
    (b"ya29.", rb"ya29\.[A-Za-z0-9_-]{20,}"),
    (b"xox", rb"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    (b"npm_", rb"npm_[A-Za-z0-9]{36}"),
    (b"pypi-AgE", rb"pypi-AgE[A-Za-z0-9_-]{40,}"),
    (b"hf_", _ALONE % (b"hf_", b"hf_", b"hf_") + rb"[A-Za-z0-9]{30,}"),
    (b"gsk_", rb"gsk_[A-Za-z0-9]{40,}"),
    (b"xai-", rb"xai-[A-Za-z0-9]{40,}"),
    (b"SG.", rb"SG\.[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{40,}"),
    (b"_v1_", rb"do[opr]_v1_[a-f0-9]{64}"),
    (b"shp", rb"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}"),
    (b"eyJ", rb"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
)
"""Each with a needle, which is looked for at the speed of memory: only where it is found the expression is tried, and
compiled. The lengths are those of real secrets, so that no name in a program is taken for one."""

_NEEDLES = re.compile(b"|".join(re.escape(needle) for needle, _ in SHAPES))
_LINE = 1000
"""Up to so many bytes a text is taken for a line or two."""

# Where the case is not certain, a needle in the lowered text says whether the expression is worth its time.
# The group `keep` stays in front of the mask.
NAMED: tuple[tuple[bytes, re.Pattern[bytes]], ...] = (
    (
        b"authorization",
        re.compile(
            rb"(?P<keep>authorization\W{1,6}(?:(?:bearer|basic|token)\s+)?)(?!bearer|basic|token)"
            + _TOKEN
            + rb"{8,}",
            re.IGNORECASE,
        ),
    ),
    # A token has a digit somewhere; prose after the word "bearer" has none.
    (
        b"bearer ",
        re.compile(rb"(?P<keep>\bbearer\s+)(?=\S*[0-9])" + _TOKEN + rb"{20,}", re.IGNORECASE),
    ),
    # The password in an address; and what stands alone there and is too long for a person's name.
    (
        b"://",
        re.compile(rb"(?P<keep>://[^\s/:@?#\"'<>\\]{0,200}:)[^\s/?#\"'<>\\]{1,400}(?=@)"),
    ),
    (b"://", re.compile(rb"(?P<keep>://)[A-Za-z0-9_-]{20,}(?=@)")),
    (
        b"api-key",
        re.compile(rb"(?P<keep>x-(?:[a-z]+-)?api-key\W{1,6})" + _TOKEN + rb"{12,}", re.IGNORECASE),
    ),
)

_KEY_NEEDLE = b"PRIVATE KEY"
_KEY_EDGE = rb" [A-Z ]*PRIVATE KEY(?: BLOCK)?-----"
_KEY_WHOLE = re.compile(rb"-----BEGIN" + _KEY_EDGE + rb".*?-----END" + _KEY_EDGE)
_KEY_BEGIN = re.compile(rb"-----BEGIN" + _KEY_EDGE)
_KEY_END = re.compile(rb"-----END" + _KEY_EDGE)
# Not with the letter of an escaped break: what is left would be no JSON any more.
_KEY_MATERIAL = re.compile(rb"(?<!\\)[A-Za-z0-9+/=]{16,}")
_KEY_FOLLOWS = re.compile(rb"(?:\s|\\[nrt])*$|\s*\\[nrt]|\s*[A-Za-z0-9+/=]{32,}")
"""What comes behind the header of a key: the end of its line, a break that was written out, or the key. Where it is
only spoken of, or looked for in a program, something else does."""
_KEY_ROW = re.compile(rb"(?<!\\)[A-Za-z0-9+/=]{41,}")
"""A row of a key beside which other things may stand, such as the ids of a protocol."""
_KEY_LINE = re.compile(rb"\s*(?:[A-Za-z-]+: .*)?|[^A-Za-z0-9]*(?:[0-9]+\W+)?[A-Za-z0-9+/=]+[^A-Za-z0-9]*")
"""All that a line of a key is made of, with what may stand before and behind it where it is quoted or numbered."""
_KEY_LINES = 300
"""A block without an end stops being one after so many lines; keys of PGP with several below them have about 200."""
_KEY_GAP = 3
"""And after so many in a row in which nothing is left of it: other output may have got in between."""


def forms_of(secrets: list[str]) -> list[bytes]:
    """Return every spelling of the secrets that can stand in a line, longest first."""
    forms: set[bytes] = set()
    for secret in secrets:
        spellings = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
        spellings.update(line.strip() for line in secret.splitlines())
        forms.update(
            spelling.encode(errors="surrogatepass") for spelling in spellings if "\n" not in spelling
        )
    return sorted((form for form in forms if len(form) >= SHORTEST_SECRET), key=len, reverse=True)


class Redactor:
    """Redacts one stream; it remembers whether the stream is inside a private key."""

    def __init__(self, forms: list[bytes]) -> None:
        self._forms = forms
        self._key_lines_left = 0
        self._key_gap = 0

    def redact(self, text: bytes) -> bytes:
        """Return complete lines without the secrets in them."""
        for form in self._forms:
            text = text.replace(form, MASK)
        if self._key_lines_left or _KEY_NEEDLE in text:
            text = b"\n".join(self._without_keys(line) for line in text.split(b"\n"))
        # In a line one look for all needles is the quickest, in a long text one for each.
        if len(text) > _LINE or _NEEDLES.search(text):
            for needle, shape in SHAPES:
                if needle in text:
                    text = re.sub(shape, MASK, text)
        lowered = text.lower()
        for needle, named in NAMED:
            if needle in lowered:
                text = named.sub(rb"\g<keep>" + MASK, text)
        return text

    def _without_keys(self, line: bytes) -> bytes:
        if not self._key_lines_left and _KEY_NEEDLE not in line:
            return line
        line = _KEY_WHOLE.sub(MASK, line)
        if self._key_lines_left:
            end = _KEY_END.search(line)
            if end is None:
                return self._inside_of_a_key(line)
            self._key_lines_left = 0
            line = _KEY_MATERIAL.sub(MASK, line[: end.start()]) + line[end.start() :]
        begin = _KEY_BEGIN.search(line)
        if begin is None or _KEY_FOLLOWS.match(line, begin.end()) is None:
            return line
        self._key_lines_left, self._key_gap = _KEY_LINES, _KEY_GAP
        # In a line of a protocol the key ends with the text that it stands in: ids behind that are needed.
        quote = line.find(b'"', begin.end()) if _is_object(line) else -1
        stop = len(line) if quote < 0 else quote
        return line[: begin.end()] + _KEY_MATERIAL.sub(MASK, line[begin.end() : stop]) + line[stop:]

    def _inside_of_a_key(self, line: bytes) -> bytes:
        if not line:
            return line  # what follows a newline is no line of its own
        self._key_lines_left -= 1
        shape = _KEY_ROW if _is_object(line) else _KEY_MATERIAL
        masked = shape.sub(MASK, line)
        is_key = masked != line if shape is _KEY_ROW else _KEY_LINE.fullmatch(line) is not None
        self._key_gap = _KEY_GAP if is_key else self._key_gap - 1
        if not self._key_gap:
            self._key_lines_left = 0
        return masked


def _is_object(line: bytes) -> bool:
    return line.lstrip()[:1] == b"{"
