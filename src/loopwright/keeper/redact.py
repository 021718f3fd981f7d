"""Takes secrets out of complete lines before anything is stored.

A secret is looked for in the text as a terminal would show it: colours and control bytes inside do not hide it. Speed
matters, since all output passes here: a shape is tried only where its keyword is, and keywords are looked for only in
long words.
"""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_right
from math import log2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Span = tuple[int, int]
    Shown = tuple[bytes, Callable[[Span], Span]]

MASK = b"[redacted]"
SHORTEST_SECRET = 4
"""Shorter values are left alone: masking every `1` or `on` would destroy the output and protect nothing."""

_TOKEN = rb"[A-Za-z0-9._~+/=-]"

# Not in the middle of a word, as in "task-". In a line of JSON the letter in front may be the end of an escaped break.
_ALONE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-F]{2}))"

SHAPES: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("sk-",),
        _ALONE
        + r"sk-(?:(?:ant|proj|svcacct|admin|or|live|test)-[A-Za-z0-9_-]{16,4000}|[A-Za-z0-9]{20,4000})",
    ),
    (("sk_live_", "sk_test_", "rk_live_", "rk_test_"), _ALONE + r"[rs]k_(?:live|test)_[A-Za-z0-9]{24,4000}"),
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{20,4000}"),
    (("github_pat_",), r"github_pat_[A-Za-z0-9_]{20,4000}"),
    (("glpat-",), r"glpat-[A-Za-z0-9_-]{16,4000}"),
    (("AKIA", "ASIA"), r"A(?:KI|SI)A[A-Z0-9]{16}(?![A-Z0-9])"),
    (("AIza",), r"AIza[A-Za-z0-9_-]{35}"),
    (("ya29.",), r"ya29\.[A-Za-z0-9_-]{20,4000}"),
    (("xox",), r"xox[abeoprs]-[A-Za-z0-9-]{13,4000}"),
    (("npm_",), r"npm_[A-Za-z0-9]{36}"),
    (("pypi-AgE",), r"pypi-AgE[A-Za-z0-9_-]{40,4000}"),
    (("hf_",), _ALONE + r"hf_[A-Za-z0-9]{30,4000}"),
    (("gsk_",), r"gsk_[A-Za-z0-9]{40,4000}"),
    (("xai-",), r"xai-[A-Za-z0-9]{40,4000}"),
    (("SG.",), r"SG\.[A-Za-z0-9_-]{20,24}\.[A-Za-z0-9_-]{40,4000}"),
    (("doo_v1_", "dop_v1_", "dor_v1_"), r"do[opr]_v1_[a-f0-9]{64}"),
    (("shpat_", "shpca_", "shppa_", "shpss_"), r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}"),
    (
        ("eyJ",),
        r"eyJ[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{8,4000}(?:\.[A-Za-z0-9_-]{0,4000})?",
    ),
)
"""Our own shapes, each with the words that it can start with: wider than the rules of gitleaks, or not among them.
The lengths are those of real secrets, so that no name in a program is taken for one."""

_LONGEST = 4000
"""No part of a shape is longer, so that no text takes long; what is left of a longer token is masked with it."""
_REST = re.compile(rb"[A-Za-z0-9_-]*")
_SIGNS = b"_.~=+/-"
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_SKETCH = bytes(
    ord("a") if code in _LETTERS else ord("b") if code in _SIGNS else ord(" ") for code in range(256)
)
_LONG = b"a" * 16
"""Every token has so many letters in a row, as no path or sentence has."""
_BACK, _AHEAD, _WINDOW = 300, 300, 4000
"""Where a keyword is in the middle of its token: how far that reaches at most, and how much is searched at once."""


class _Rule:
    """One shape of a token."""

    def __init__(self, told: dict[str, Any]) -> None:
        self._regex = told["regex"]
        self._expression: re.Pattern[bytes] | None = None
        self._entropy = float(told.get("entropy", 0))
        self._allowed = [one.encode() for one in told.get("allowed", ())]
        self.by_head = bool(told.get("by_head", True))

    def spans(self, text: bytes, at: int, until: int) -> Iterator[Span]:
        """Yield what has the shape: at a place, or anywhere between two."""
        if self._expression is None:
            self._expression = re.compile(self._regex.encode())
        if self.by_head:
            found = self._expression.match(text, at)
            matches = [found] if found else []
        else:
            matches = list(self._expression.finditer(text, at, until))
        for match in matches:
            start, end = match.span()
            token = text[start:end]
            if self._entropy and _entropy(token) < self._entropy:
                continue
            if any(re.search(one, token) for one in self._allowed):
                continue
            if end - start >= _LONGEST:
                end = _REST.match(text, end).end()  # type: ignore[union-attr]
            yield start, end


def _entropy(token: bytes) -> float:
    """Return how many bits each byte carries: a word repeated, or a row of zeros, is not a secret."""
    size = len(token)
    return -sum(count / size * log2(count / size) for count in map(token.count, set(token)))


def _known() -> tuple[dict[bytes, list[_Rule]], dict[bytes, list[_Rule]]]:
    """Return the rules by keyword: those with one at the start of a word, and those with one anywhere."""
    with open(os.path.join(os.path.dirname(__file__), "token_rules.json"), encoding="utf-8") as file:
        told = json.load(file)["rules"]
    own = [{"keywords": words, "regex": regex, "at_words": True} for words, regex in SHAPES]
    at_words: dict[bytes, list[_Rule]] = {}
    anywhere: dict[bytes, list[_Rule]] = {}
    for entry in (*own, *told):
        rule = _Rule(entry)
        for word in entry["keywords"]:
            (at_words if entry["at_words"] else anywhere).setdefault(word.encode(), []).append(rule)
    # A keyword that begins with another one is found with that one, which comes before it in this order.
    grouped: dict[bytes, list[_Rule]] = {}
    first = b""
    for word in sorted(at_words):
        if not first or not word.startswith(first):
            first = word
            grouped[first] = []
        grouped[first] += [rule for rule in at_words[word] if rule not in grouped[first]]
    return grouped, anywhere


def _any_of(words: list[bytes]) -> bytes:
    """Return an expression for these words, none of which begins another: a tree, which is quicker than a list."""
    if words == [b""]:
        return b""
    by_first: dict[bytes, list[bytes]] = {}
    for word in words:
        by_first.setdefault(word[:1], []).append(word[1:])
    ways = [re.escape(first) + _any_of(rest) for first, rest in sorted(by_first.items())]
    return ways[0] if len(ways) == 1 else b"(?:" + b"|".join(ways) + b")"


_AT_WORDS, _ANYWHERE = _known()
_KEYWORD = re.compile(_any_of(list(_AT_WORDS)))
_WORD = rb"[A-Za-z0-9]*+[" + re.escape(_SIGNS) + rb"]++"
_NEXT_WORD = re.compile(_WORD)
_OTHER_WORDS = re.compile(rb"(?:(?!" + _KEYWORD.pattern + rb")" + _WORD + rb")*+")

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
    # The password in an address; and a single word there that is too long for a person's name.
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
_KEY_BEGIN = re.compile(rb"-----BEGIN" + _KEY_EDGE)
_KEY_END = re.compile(rb"-----END" + _KEY_EDGE)
# Not with the letter of an escaped break: what is left would be no JSON any more.
_KEY_MATERIAL = re.compile(rb"(?<!\\)[A-Za-z0-9+/=]{16,}")
_KEY_FOLLOWS = re.compile(rb"(?:\s|\\[nrt])*$|\s*\\[nrt]|\s*[A-Za-z0-9+/=]{32,}")
"""What comes behind the header of a key: the end of its line, a break that was written out, or the key. Where it is
only spoken of, or looked for in a program, something else does."""
_KEY_ROW = re.compile(rb"(?<!\\)[A-Za-z0-9+/=]{41,}")
"""A row of a key beside which other things may stand, such as the ids of a protocol."""
_KEY_LINE = re.compile(
    rb"\s*+(?:[A-Za-z-]++: .*)?"
    rb"|[^A-Za-z0-9]*+(?:[0-9]++\W++(?=[A-Za-z0-9]))?+[A-Za-z0-9][A-Za-z0-9+/=]*+[^A-Za-z0-9]*+"
)
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


_CONTROLS = bytes(code for code in (*range(32), 127) if code not in b"\t\n\r")
_END = rb"[0-?]*[ -/]*[@-~]"
_STYLE = rb"\[" + _END + rb"|[ -/]+[0-~]"
_SPELLED_ESC = rb"(?:u001[bB]|x1[bB]|033)"
_STOP = rb"(?:\x07|\\+(?:u0007|x07)|(?:\x1b|\\+" + _SPELLED_ESC + rb")\\+)"
_COMMAND = rb"[]PX^_][^\n\x07\x1b\\]{0,2000}" + _STOP


def _unseen(after_escape: bytes) -> re.Pattern[bytes]:
    """Return an expression for what a terminal does not show, as it is, and as JSON or a program spells it."""
    # Each way starts with one certain byte, by which the text is searched at speed.
    ways = [
        rb"\x1b(?:" + after_escape + rb")?",
        rb"\\\\*(?:" + _SPELLED_ESC + rb"(?:" + after_escape + rb")?|e\[" + _END + rb"|"
        rb"(?:u00|x)(?:0[0-8bBcCeEfF]|1[0-9a-fA-F]|7[fF]))",
        rb"\xc2(?:\x9b" + _END + rb"|[\x80-\x9f])",
        *(re.escape(bytes([code])) for code in _CONTROLS if code != 0x1B),
    ]
    return re.compile(rb"|".join(ways))


_HIDDEN = _unseen(_STYLE + rb"|" + _COMMAND + rb"|[0-~]")
"""What a terminal does not show: it may be in the middle of a secret."""
_BETWEEN = _unseen(_STYLE)
"""The same, but for the text of a command, such as the address of a link: there may be a secret in it. Such a thing may
also be the border between a secret and the rest of the line."""
_SPELLS = re.compile(rb"\\(?:(?:u00|x)[017]|033|e\[)")
_C1 = re.compile(rb"\xc2[\x80-\x9f]")
_CONTROL = bytes(ord("!") if code in _CONTROLS else ord(" ") for code in range(256))


def _lines_that_hide(text: bytes) -> dict[int, int]:
    """Return where the lines start and end in which there is something that a terminal does not show."""
    lines: dict[int, int] = {}

    def note(at: int) -> int:
        end = text.find(b"\n", at)
        end = len(text) if end < 0 else end
        lines[text.rfind(b"\n", 0, at) + 1] = end
        return end

    sketch = text.translate(_CONTROL)
    at = sketch.find(b"!")
    while at >= 0:
        at = sketch.find(b"!", note(at))
    for expression in (_SPELLS, _C1):
        found = expression.search(text)
        while found:
            found = expression.search(text, note(found.start()))
    return lines


def _hides(text: bytes) -> bool:
    return (
        len(text.translate(None, _CONTROLS)) < len(text)
        or (b"\\" in text and _SPELLS.search(text) is not None)
        or (b"\xc2" in text and _C1.search(text) is not None)
    )


class Redactor:
    """Redacts one stream; it remembers whether the stream is inside a private key."""

    def __init__(self, forms: list[bytes]) -> None:
        self._forms = forms
        self._key_lines_left = 0
        self._key_gap = 0

    def redact(self, text: bytes) -> bytes:
        """Return complete lines without the secrets in them."""
        spans = self._spans(text)
        shown = self._shown(text, spans) if _hides(text) else {}
        if (
            self._key_lines_left
            or _KEY_NEEDLE in text
            or any(_KEY_NEEDLE in one for one, _ in shown.values())
        ):
            spans += self._key_spans(text, shown)
        return _masked(text, spans) if spans else text

    def _shown(self, text: bytes, spans: list[Span]) -> dict[int, Shown]:
        """Add what is found in lines as a terminal shows them, and return those."""
        shown: dict[int, Shown] = {}
        for start, end in _lines_that_hide(text).items():
            line = text[start:end]
            shown[start] = visible, place = _shown(line, start)
            spans += map(place, self._spans(visible))
            parted = _BETWEEN.sub(lambda found: b" " * len(found[0]), line)
            spans += ((start + at, start + until) for at, until in self._spans(parted))
        return shown

    def _spans(self, text: bytes) -> list[Span]:
        spans = list(_tokens(text))
        for form in self._forms:
            at = text.find(form)
            while at >= 0:
                spans.append((at, at + len(form)))
                at = text.find(form, at + len(form))
        lowered = text.lower()
        for needle, named in NAMED:
            if needle in lowered:
                spans += ((found.end("keep"), found.end()) for found in named.finditer(text))
        return spans

    def _key_spans(self, text: bytes, shown: dict[int, Shown]) -> Iterator[Span]:
        at = 0
        for line in text.split(b"\n"):
            if at in shown:
                visible, place = shown[at]
                yield from map(place, self._in_line(visible))
            else:
                yield from ((at + start, at + end) for start, end in self._in_line(line))
            at += len(line) + 1

    def _in_line(self, line: bytes) -> list[Span]:
        if not self._key_lines_left and _KEY_NEEDLE not in line:
            return []
        spans = list(_whole_keys(line))
        if spans:
            rest = bytearray(line)
            for start, end in spans:
                rest[start:end] = b" " * (end - start)
            line = bytes(rest)
        behind = 0
        if self._key_lines_left:
            last = _KEY_END.search(line)
            if last is None:
                return spans + self._inside_of_a_key(line)
            self._key_lines_left, behind = 0, last.end()
            spans += [found.span() for found in _KEY_MATERIAL.finditer(line, 0, last.start())]
        begin = _KEY_BEGIN.search(line, behind)
        if begin is None or _KEY_FOLLOWS.match(line, begin.end()) is None:
            return spans
        self._key_lines_left, self._key_gap = _KEY_LINES, _KEY_GAP
        # In a line of a protocol the key ends with its text: ids behind that are needed.
        quote = line.find(b'"', begin.end()) if _is_object(line) else -1
        stop = len(line) if quote < 0 else quote
        return spans + [found.span() for found in _KEY_MATERIAL.finditer(line, begin.end(), stop)]

    def _inside_of_a_key(self, line: bytes) -> list[Span]:
        if not line:
            return []  # what follows a newline is not a separate line
        self._key_lines_left -= 1
        shape = _KEY_ROW if _is_object(line) else _KEY_MATERIAL
        spans = [found.span() for found in shape.finditer(line)]
        is_key = bool(spans) if shape is _KEY_ROW else _KEY_LINE.fullmatch(line) is not None
        self._key_gap = _KEY_GAP if is_key else self._key_gap - 1
        if not self._key_gap:
            self._key_lines_left = 0
        return spans


def _whole_keys(line: bytes) -> Iterator[Span]:
    """Yield the keys that begin and end in a line. Not by one expression: many headers without an end take it long."""
    begin = _KEY_BEGIN.search(line)
    while begin is not None and (end := _KEY_END.search(line, begin.end())) is not None:
        yield begin.start(), end.end()
        begin = _KEY_BEGIN.search(line, end.end())


def _tokens(text: bytes) -> Iterator[Span]:
    """Yield what has the shape of a token."""
    searched: dict[_Rule, int] = {}
    for word, rules in _ANYWHERE.items():
        at = text.find(word)
        while at >= 0:
            for rule in rules:
                yield from _around(text, at, rule, searched)
            at = text.find(word, at + 1)
    sketch = text.translate(_SKETCH)
    long = sketch.find(_LONG)
    while long >= 0:
        end = sketch.find(b" ", long)
        end = len(text) if end < 0 else end
        at = _first_word(text, sketch.rfind(b" ", 0, long) + 1)
        while True:
            at = _OTHER_WORDS.match(text, at, end).end()  # type: ignore[union-attr]
            found = _KEYWORD.match(text, at, end)
            if found is None:
                break
            for span in [one for rule in _AT_WORDS[found[0]] for one in _around(text, at, rule, searched)]:
                yield span
                at = max(at, span[1])
            following = _NEXT_WORD.match(text, at, end)
            if following is None:
                break
            at = following.end()
        long = sketch.find(_LONG, end)


def _first_word(text: bytes, at: int) -> int:
    """Return where the first word of a run starts: not with the letter of an escaped break, nor of a spelled sign."""
    before = text[at - 1 : at]
    if before == b"\\" and text[at] in b"nrt":
        return at + 1
    return at + 2 if before == b"%" else at


def _around(text: bytes, at: int, rule: _Rule, searched: dict[_Rule, int]) -> Iterator[Span]:
    """Yield what has this shape at a keyword; no part of the text is searched twice."""
    if rule.by_head:
        yield from rule.spans(text, at, at)
    elif at >= searched.get(rule, 0):
        searched[rule] = at + _WINDOW
        yield from rule.spans(text, max(at - _BACK, 0), at + _WINDOW + _AHEAD)


def _shown(text: bytes, offset: int) -> Shown:
    """Return a line as a terminal shows it, and a function from places in that to those in the whole text."""
    pieces: list[bytes] = []
    shown_at: list[int] = []
    raw_at: list[int] = []
    size = at = 0
    for hidden in _HIDDEN.finditer(text):
        if hidden.start() > at:
            shown_at.append(size)
            raw_at.append(at)
            pieces.append(text[at : hidden.start()])
            size += hidden.start() - at
        at = hidden.end()
    shown_at.append(size)
    raw_at.append(at)
    pieces.append(text[at:])

    def raw(place: int) -> int:
        piece = bisect_right(shown_at, place) - 1
        return offset + raw_at[piece] + place - shown_at[piece]

    return b"".join(pieces), lambda span: (raw(span[0]), raw(span[1] - 1) + 1)


def _masked(text: bytes, spans: list[Span]) -> bytes:
    """Return the text with one mask in the place of each span, and of spans that overlap."""
    pieces: list[bytes] = []
    at = 0
    for start, end in sorted(spans):
        if start >= at:
            pieces += [text[at:start], MASK]
        at = max(at, end)
    return b"".join((*pieces, text[at:]))


def _is_object(line: bytes) -> bool:
    return line.lstrip()[:1] == b"{"
