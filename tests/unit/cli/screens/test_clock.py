"""The clock beside a step that takes long."""

import io

from rich.console import Console

from loopwright.cli.screens.clock import Clock


def _said(*, terminal: bool, quiet: bool = False) -> str:
    file = io.StringIO()
    out = Console(file=file, width=40, force_terminal=terminal, no_color=True, soft_wrap=True)
    with Clock(quiet=quiet, out=out) as tell:
        tell("setup: npm ci")
        tell("running on the base (1a2b3c4): tests, lint and much more")
    return file.getvalue()


def test_a_file_gets_one_line_for_each_step() -> None:
    assert _said(terminal=False).splitlines() == [
        "… setup: npm ci",
        "… running on the base (1a2b3c4): tests, lint and much more",
    ]


def test_a_terminal_sees_how_long_each_step_takes() -> None:
    said = _said(terminal=True)
    assert "setup: npm ci" in said
    ended = [line for line in said.splitlines() if line.rstrip().endswith("0 s")]
    assert len(ended) >= 2
    assert "much more" not in said, "a step is one line, so that its clock does not tear the screen"


def test_nothing_is_shown_where_nobody_looks() -> None:
    assert _said(terminal=True, quiet=True) == ""
