"""The one door to the terminal: nobody but the program steers it."""

import io
import json
import re
from pathlib import Path

import pytest
from rich.live import Live
from rich.table import Table
from rich.text import Text

from loopwright import cli
from loopwright.cli.shell.output import SafeConsole, print_json

HOSTILE = "a\x1b]0;OWNED\x07b\x1b[2Jc\u009b1md\u202ee\x7f"


def test_whatever_is_printed_keeps_its_colour_and_loses_its_escapes() -> None:
    out = io.StringIO()
    console = SafeConsole(file=out, force_terminal=True, width=60, color_system="standard", highlight=False)
    table = Table("name")
    table.add_row(HOSTILE)
    for one in (HOSTILE, Text(HOSTILE, style="red"), table):
        console.print(one)
    with Live(Text(HOSTILE), console=console, refresh_per_second=1, transient=True):
        console.print(f"[bold]{HOSTILE}[/]")
    drawn = out.getvalue()
    assert "\x1b[31m" in drawn, "our own colour is there"
    rest = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn)
    assert not set(rest) & set("\x1b\x07\u009b\u202e\x7f")
    assert "\x1b[2J" not in drawn
    assert drawn.count("OWNED") >= 5
    rows = [line for line in rest.splitlines() if line.startswith(("┃", "│", "┏", "└"))]
    assert len({len(row) for row in rows}) == 1, "what is replaced is as wide as it looks"


def test_a_document_for_programs_is_the_same_document_without_escapes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_json({"title": HOSTILE})
    said = capsys.readouterr().out
    assert json.loads(said) == {"title": HOSTILE}
    assert said.rstrip("\n").replace("\n", "").isascii()


def test_no_other_console_is_made() -> None:
    made = {
        path.name
        for path in Path(cli.__file__).parent.rglob("*.py")
        if re.search(r"(?<!Safe)\bConsole\(", path.read_text())
    }
    assert made == {"command_table.py"}, "all but the pages of --help go through the safe one"
