"""Guess what a misspelt word was meant to be."""

from collections.abc import Collection
from difflib import get_close_matches


def nearest(word: str, known: Collection[str], cutoff: float = 0.6) -> str | None:
    """Return the known word that is most like `word`, or None when none is close."""
    # Comparing is quadratic in the length: no one mistypes a setting by hundreds of letters.
    matches = get_close_matches(word[:100].lower(), {each.lower() for each in known}, n=1, cutoff=cutoff)
    if not matches:
        return None
    return min(each for each in known if each.lower() == matches[0])


def did_you_mean(word: str, known: Collection[str]) -> str:
    """Return ` (did you mean "…"?)` for the nearest known word, or nothing."""
    guess = nearest(word, known)
    return f' (did you mean "{guess}"?)' if guess is not None else ""


def quoted(value: object, limit: int = 60) -> str:
    """Return a value as a message may show it: short, on one line, without control characters."""
    text = value if isinstance(value, str) else repr(value)
    text = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    return f'"{text}"' if isinstance(value, str) else text
