"""Text that an agent wrote, as a person is shown it: nothing in it steers a terminal, hides, or looks like another."""

from typing import Final
from unicodedata import category

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Controls, signs that only change how others look (the direction of writing, blanks without width), and breaks that
are none to a shell."""
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters that are drawn as nothing; so is every blank but the usual one, which to a shell is a letter too."""


def visible(text: str) -> str:
    r"""Return a text with everything that is not seen written out, as `\x1b`; its lines stay lines."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        letter.encode("unicode_escape").decode("ascii") if _is_hidden(letter) else letter for letter in text
    )


def _is_hidden(letter: str) -> bool:
    kind = category(letter)
    return (kind in _HIDDEN and letter not in "\n\t") or letter in _BLANK or (kind == "Zs" and letter != " ")


def drawable(text: str) -> str:
    """Return a text with `\N{REPLACEMENT CHARACTER}` for everything that is not seen: as long as before."""
    if text.isascii() and text.isprintable():
        return text
    return "".join("\N{REPLACEMENT CHARACTER}" if _is_hidden(letter) else letter for letter in text)


def on_one_line(text: str) -> str:
    """Return a text with everything that is not seen written out, and its breaks as blanks."""
    return visible(" ".join(text.split()))


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many letters; one that was cut ends in `…`."""
    return text if len(text) <= most else text[: most - 1] + "…"
