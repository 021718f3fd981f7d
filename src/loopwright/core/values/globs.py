"""Matching paths with patterns, as a plan's `scope` and the setting `gate_files` write them."""

import re
from collections.abc import Iterable
from functools import cache


def covers(pattern: str, path: str) -> bool:
    """Return whether a pattern matches a path, or a folder above it; `**` means any number of folders."""
    return _compiled(pattern).fullmatch(path) is not None


def any_covers(patterns: Iterable[str], path: str) -> bool:
    """Return whether one of several patterns matches a path."""
    return any(covers(pattern, path) for pattern in patterns)


def names_anything(pattern: str) -> bool:
    """Return whether a pattern matches every path, and so names none in particular."""
    return all(part in ("", ".", "*", "**") for part in pattern.split("/"))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    text = ""
    for n, part in enumerate(parts):
        last = n == len(parts) - 1
        if part == "**":
            text += ".*" if last else "(?:[^/]+/)*"
        else:
            text += _segment(part) + ("" if last else "/")
    return re.compile(f"{text}(?:/.*)?", re.DOTALL)


def _segment(part: str) -> str:
    """Translate one part; an unclosed set of characters is literal."""
    pieces = re.split(r"(\*+|\?|\[[^\]]+\])", part)
    text = ""
    for piece in pieces:
        if piece.startswith("*"):
            text += "[^/]*"
        elif piece == "?":
            text += "[^/]"
        elif piece.startswith("[") and piece.endswith("]"):
            inside = piece[1:-1].replace("\\", "\\\\").replace("[", "\\[")
            text += f"[{'^' + inside[1:] if inside.startswith('!') and len(inside) > 1 else inside}]"
        else:
            text += re.escape(piece)
    return text
