"""Text that an agent wrote, as a person is shown it: nothing in it steers a terminal, hides, or looks like another."""

from typing import Final
from unicodedata import category

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Controls, signs that only change how others look (the direction of writing, blanks without width), and breaks that
are none to a shell."""


def visible(text: str) -> str:
    r"""Return a text with everything that is not seen written out, as `\x1b`; its lines stay lines."""
    if text.isprintable():
        return text
    return "".join(
        letter.encode("unicode_escape").decode("ascii")
        if category(letter) in _HIDDEN and letter not in "\n\t"
        else letter
        for letter in text
    )


def on_one_line(text: str) -> str:
    """Return a text with everything that is not seen written out, and its breaks as blanks."""
    return visible(" ".join(text.split()))


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many letters; one that was cut ends in `…`."""
    return text if len(text) <= most else text[: most - 1] + "…"
