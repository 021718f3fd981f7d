"""Write lists, counts, sums, durations and command lines for people, and make external text safe to show."""

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Final
from unicodedata import category

# Command lines to paste: each word is quoted for the shell, and none is mistaken for an option.


def to_type(*words: str, **options: str | bool | Sequence[str]) -> str:
    """Return the command line that calls Loopwright with these words and options.

    `to_type("retry", key, note="…")` is `loopwright retry KEY --note '…'`. An option that is False is left
    out, one with several values is repeated, and an underscore at the end of its name is dropped.
    """
    return shlex.join(command(*words, **options))


def command(*words: str, **options: str | bool | Sequence[str]) -> tuple[str, ...]:
    """Return the words of the command line that `to_type` returns."""
    flags = [one for name, value in options.items() if value is not False for one in _flags(name, value)]
    at = next((n for n, word in enumerate(words) if word.startswith("-")), None)
    if at is None:
        return ("loopwright", *words, *flags)
    # Words that look like an option go after `--`.
    return ("loopwright", *words[:at], *flags, "--", *words[at:])


def _flags(name: str, value: str | bool | Sequence[str]) -> list[str]:
    flag = "--" + name.rstrip("_").replace("_", "-")
    if isinstance(value, bool):
        return [flag]
    values = [value] if isinstance(value, str) else value
    return [word for one in values for word in ([f"{flag}={one}"] if one.startswith("-") else [flag, one])]


def listed(names: Sequence[str], limit: int = 5) -> str:
    """Return names as one phrase, the first few if there are many."""
    shown = ", ".join(names[:limit])
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{count} {singular if count == 1 else plural or singular + 's'}"


_WORD: Final = re.compile(r"[a-z]+[ ,]")


def capitalized(text: str) -> str:
    """Return a text that begins with a capital letter, if it begins with a word and not with a name."""
    return text[:1].upper() + text[1:] if _WORD.match(text) else text


def sentence(text: str) -> str:
    """Return a text as a sentence, with its capital letter and its full stop."""
    begun = capitalized(text)
    return begun if begun.endswith((".", "!", "?")) else f"{begun}."


def advised(said: str, hint: str) -> str:
    """Return what is wrong and what to do about it as two sentences; without a hint, what is wrong as it is."""
    return f"{sentence(said)} {sentence(hint)}" if hint else said


def one_line(text: str, limit: int = 160) -> str:
    """Return a text on one line, without control characters, shortened to fit."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def money(micros: int | None, *, estimated: bool = False) -> str:
    """Return an amount of money in dollars; unknown is not zero, and an estimate is marked as one."""
    if micros is None:
        return "unknown"
    # An amount that would round to nothing keeps one digit.
    small = 0 < micros < 5_000
    amount = f"{micros / 1_000_000:.{7 - len(str(micros))}f}" if small else f"{micros / 1_000_000:.2f}"
    return f"{'~' if estimated else ''}${amount}"


def dollars(micros: int) -> str:
    """Return a sum in dollars, to the cent unless that would hide a small one."""
    return f"${micros / 1e6:.2f}" if micros % 10_000 == 0 else f"${micros / 1e6:.6f}".rstrip("0")


def duration(seconds: float | None) -> str:
    """Return a duration in words."""
    if seconds is None:
        return ""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} m"


# Text from agents, as the user sees it: nothing in it controls a terminal, hides, or looks like something else.

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Characters that are not visible themselves.

They are control characters, those that only change how others look (writing direction, zero-width spaces),
and line breaks that a shell ignores.
"""
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Characters that are drawn as blank: these letters, and all unusual spaces, which a shell treats as letters."""


def visible(text: str) -> str:
    r"""Return a text with every invisible character written out, as `\x1b`; its lines stay lines."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        letter.encode("unicode_escape").decode("ascii") if _is_hidden(letter) else letter for letter in text
    )


def _is_hidden(letter: str) -> bool:
    kind = category(letter)
    return (kind in _HIDDEN and letter not in "\n\t") or letter in _BLANK or (kind == "Zs" and letter != " ")


def drawable(text: str) -> str:
    """Return a text with `�` for every invisible character: as long as before."""
    if text.isascii() and text.isprintable():
        return text
    return "".join("\N{REPLACEMENT CHARACTER}" if _is_hidden(letter) else letter for letter in text)


def on_one_line(text: str) -> str:
    """Return a text with every invisible character written out, and line breaks as spaces."""
    return visible(" ".join(text.split()))


def shortened(text: str, most: int) -> str:
    """Return a text of at most this many characters; a text that was cut ends in `…`."""
    return text if len(text) <= most else text[: most - 1] + "…"


_ANSI: Final = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
# Databases refuse NUL and lone surrogates; terminals obey other control characters, and some write backwards.
_CONTROL: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_BREAK: Final = re.compile(r"\r\n|\n|\r")


def clean(text: str) -> str:
    """Return text without colours and control characters, with plain line ends."""
    return _CONTROL.sub("", _BREAK.sub("\n", _ANSI.sub("", text)))


_PLACE: Final = re.compile(r"^(?P<file>[^\s:][^:\n]*?)(?::\d+)?: (?P<said>.+)$", re.DOTALL)


def grouped(notes: Iterable[str]) -> tuple[str, ...]:
    """Return notes; of several that only name different places the first, with the number of the others."""
    first: dict[str, str] = {}
    count: dict[str, int] = {}
    for note in dict.fromkeys(notes):
        found = _PLACE.match(note)
        kind = found["said"] if found else note
        first.setdefault(kind, note)
        count[kind] = count.get(kind, 0) + 1
    return tuple(
        f"{note} ({count[kind] - 1} more like this)" if count[kind] > 1 else note
        for kind, note in first.items()
    )
