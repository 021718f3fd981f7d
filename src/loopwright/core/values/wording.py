"""Lists, counts, sums and durations as people write them."""

from collections.abc import Sequence


def listed(names: Sequence[str], limit: int = 5) -> str:
    """Return names as one phrase, the first few when there are many."""
    shown = ", ".join(names[:limit])
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{count} {singular if count == 1 else plural or singular + 's'}"


def one_line(text: str, limit: int = 160) -> str:
    """Return a text on one line, without control characters, shortened in front of what does not fit."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def money(micros: int | None, *, estimated: bool = False) -> str:
    """Return a sum as people write it; unknown is not zero, and an estimate is marked as one."""
    if micros is None:
        return "unknown"
    # What rounds to nothing is not nothing: one digit of it is shown.
    small = 0 < micros < 5_000
    amount = f"{micros / 1_000_000:.{7 - len(str(micros))}f}" if small else f"{micros / 1_000_000:.2f}"
    return f"{'~' if estimated else ''}${amount}"


def duration(seconds: float | None) -> str:
    """Return a duration as people say it."""
    if seconds is None:
        return ""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} m"
