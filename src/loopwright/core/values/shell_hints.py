"""Command lines to paste: each word is quoted for the shell, and none is taken for an option."""

import shlex
from collections.abc import Sequence


def to_type(*words: str, **options: str | bool | Sequence[str]) -> str:
    """Return the command line that calls Loopwright with these words and options.

    `to_type("retry", key, note="…")` is `loopwright retry KEY --note '…'`. An option that is False is left out, one
    with several values is given several times, and an underscore at the end of its name is not part of it.
    """
    return shlex.join(command(*words, **options))


def command(*words: str, **options: str | bool | Sequence[str]) -> tuple[str, ...]:
    """Return the words of the command line that `to_type` returns."""
    flags = [one for name, value in options.items() if value is not False for one in _flags(name, value)]
    at = next((n for n, word in enumerate(words) if word.startswith("-")), None)
    if at is None:
        return ("loopwright", *words, *flags)
    # What looks like an option goes behind `--`, where nothing is one any more.
    return ("loopwright", *words[:at], *flags, "--", *words[at:])


def _flags(name: str, value: str | bool | Sequence[str]) -> list[str]:
    flag = "--" + name.rstrip("_").replace("_", "-")
    if isinstance(value, bool):
        return [flag]
    values = [value] if isinstance(value, str) else value
    return [word for one in values for word in ([f"{flag}={one}"] if one.startswith("-") else [flag, one])]
