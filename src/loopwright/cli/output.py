"""Everything that is printed: plain words for people, one JSON document for programs."""

import json
import os
import sys
from typing import Any

from rich.console import Console

from loopwright.cli.exits import ExitCode
from loopwright.core.documents import plain


def console(*, stderr: bool = False) -> Console:
    """Return where to print; colour only for a terminal, and never with NO_COLOR."""
    bare = bool(os.environ.get("NO_COLOR"))
    return Console(stderr=stderr, highlight=False, no_color=bare, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print one document for programs."""
    sys.stdout.write(json.dumps(plain(value), indent=2, ensure_ascii=False) + "\n")


def complain(
    message: str, *, code: ExitCode, hint: str | None = None, as_json: bool = False, kind: str = "user_error"
) -> int:
    """Say what is wrong and what to do about it; return the exit code."""
    if as_json:
        print_json({"error": {"code": kind, "message": message, "hint": hint}, "exit_code": int(code)})
        return code
    out = console(stderr=True)
    out.print(f"[bold red]error[/]: {_escaped(message)}")
    if hint:
        out.print(f"[bold]to do[/]: {_escaped(hint)}")
    return code


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def money(micros: int | None, *, estimated: bool = False) -> str:
    """Return a sum as people write it; unknown is not zero, and an estimate is marked as one."""
    if micros is None:
        return "$?"
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
