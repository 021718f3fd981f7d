"""Draw the picture in the README from a real `loopwright demo`: `make picture`.

It shows the last screen of `run` and the verified receipt, and no line that names a folder of this machine.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).resolve().parent.parent / "docs/run.svg"
WIDTH = 92
CODES = re.compile(r"[\x1b\ufffd]\[[0-9;?]*[A-Za-z]")
"""Codes of a terminal; a program that prints another one's output writes their first character differently."""
FONTS = re.compile(r"@font-face \{.*?\n    \}\n", re.DOTALL)
"""The web fonts of rich's pictures, which a viewer would have to fetch."""
MONOSPACE = ("Fira Code, monospace", "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace")


def screen() -> list[str]:
    """Run the demo and return what it printed, with its colours."""
    env = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "loopwright.cli", "demo"]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()


def shown(lines: list[str]) -> Iterator[Text]:
    """Yield the lines of the picture: the last screen of `run`, then what `receipt verify` found."""
    plain = [CODES.sub("", line) for line in lines]
    end = next(n for n, text in enumerate(plain) if text.startswith("merge it:"))
    start = max(n for n, text in enumerate(plain[:end]) if text.startswith("A very small shop"))
    yield Text("$ loopwright run plan.yaml", style="bold")
    for line in lines[start : end + 1]:
        yield Text.from_ansi(line)
    verify = next(n for n, text in enumerate(plain) if text.startswith("$ loopwright receipt verify"))
    yield Text()
    yield Text("$ loopwright receipt verify", style="bold")
    for text in plain[verify + 1 :]:
        if text.startswith("  ·"):
            yield Text(text.strip(), style="dim")
        if "AGREES" in text:
            yield Text(text.strip(), style="bold green")
            return


def main() -> int:
    """Write the picture."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(
            record=True, width=WIDTH, file=nowhere, force_terminal=True, color_system="truecolor"
        )
        for line in shown(screen()):
            console.print(line)
        picture = console.export_svg(title="loopwright", unique_id="run")
    PICTURE.write_text(FONTS.sub("", picture).replace(*MONOSPACE).rstrip() + "\n", encoding="utf-8")
    sys.stdout.write(f"{PICTURE.name} written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
