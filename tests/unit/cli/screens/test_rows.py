"""Tables that fit: on a narrow terminal whole columns give way, and no line is wider than there is room."""

import io

from rich.console import Console
from rich.text import Text
from tests.cases import each_case

from loopwright.cli.screens.layout import Rows, RowsWithNotes
from loopwright.cli.shell.lines import Wrapped

ROWS = [
    tuple(map(Text, ("x", "a-rather-long-name", "verified", "12 s", "$0.01", "what is said last of all"))),
    tuple(map(Text, ("y", "b", "failed", "1 m 02 s", "$10.50", "short"))),
]


def _rows() -> Rows:
    return Rows(ROWS, spare=(4, 3, 5), cut=1, right=(3, 4))


def test_everything_is_shown_aligned_where_there_is_room() -> None:
    assert [line.plain for line in _rows().lines(100)] == [
        "x  a-rather-long-name  verified      12 s   $0.01  what is said last of all",
        "y  b                   failed    1 m 02 s  $10.50  short",
    ]


def test_columns_give_way_in_their_order_then_names_are_cut() -> None:
    firsts = {room: _rows().lines(room)[0].plain for room in (70, 60, 50, 40, 33, 24)}
    assert firsts == {
        70: "x  a-rather-long-name  verified      12 s   $0.01  what is said last …",
        60: "x  a-rather-long-name  verified      12 s  what is said las…",
        50: "x  a-rather-long-name  verified  what is said las…",
        40: "x  a-rather-long-name  verified",
        33: "x  a-rather-long-name  verified",
        24: "x  a-rather-l…  verified",
    }


@each_case("room", range(12, 100))
def test_no_line_is_wider_than_the_room(room: int) -> None:
    assert max(line.cell_len for line in _rows().lines(room)) <= room


def _noted(room: int) -> list[str]:
    return [
        line.plain
        for line in RowsWithNotes(ROWS, kept=(True, False), spare=(4, 3), cut=1, right=(3, 4)).lines(room)
    ]


def test_a_note_that_matters_goes_below_and_another_one_is_left_out() -> None:
    assert _noted(100)[0].endswith("what is said last of all")
    assert _noted(60) == [
        "x  a-rather-long-name  verified      12 s   $0.01",
        "    what is said last of all",
        "y  b                   failed    1 m 02 s  $10.50  short",
    ]
    assert _noted(50)[2] == "y  b                   failed    1 m 02 s  $10.50"


@each_case("room", range(12, 100))
def test_no_line_with_a_note_is_wider_than_the_room(room: int) -> None:
    assert max(len(line) for line in _noted(room)) <= room


def test_a_column_in_which_nothing_stands_takes_no_room() -> None:
    rows = Rows([(Text("a"), Text(""), Text("b"))], spare=(), cut=0)
    assert [line.plain for line in rows.lines(80)] == ["a  b"]
    assert Rows([], spare=(), cut=0).lines(80) == []


def _printed(*parts: object, terminal: bool) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=40, force_terminal=terminal, no_color=True, soft_wrap=True)
    for part in parts:
        console.print(part)
    return out.getvalue().splitlines()


def test_a_file_gets_whole_lines_and_a_terminal_gets_wrapped_ones() -> None:
    told = Text("Ctrl-C pauses cleanly, and so does closing this terminal.")
    assert _printed(Wrapped(told, indent="  "), terminal=False) == [told.plain]
    assert _printed(Wrapped(told, indent="  "), terminal=True) == [
        "Ctrl-C pauses cleanly, and so does",
        "  closing this terminal.",
    ]
    assert _printed(_rows(), terminal=False)[0].endswith("what is said last of all")
    assert max(map(len, _printed(_rows(), terminal=True))) <= 40
