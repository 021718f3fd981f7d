"""Transcripts by pieces: every line once, whatever its length, and a search through all of it."""

import random
import re
from pathlib import Path

import pytest
from tests.contracts.store import rows

from loopwright.core.rows.model import Role, Run
from loopwright.core.values.states import RunState
from loopwright.keeper import places
from loopwright.services.dashboard.transcript import MOST_HITS, PIECE_BYTES, Piece, _hits, read_piece


def _run(agent: str | None = None) -> Run:
    plan = rows.plan(rows.loop(rows.project()))
    state = RunState.COMPLETE
    return Run(id="run_x", plan_id=plan.id, role=Role.GATE, agent=agent, state=state, created_at=rows.AT)


def _record(directory: Path, *segments: list[str]) -> None:
    (directory / places.OUTPUT).mkdir()
    at = 0
    for lines in segments:
        data = b"".join(b"o " + one.encode() + b"\n" for one in lines)
        (directory / places.OUTPUT / places.segment_name(at)).write_bytes(data)
        at += len(data)


def _said(pieces: list[Piece]) -> list[str]:
    return [line for piece in pieces for one in piece.entries for line in one.text.split("\n")]


def _backward(directory: Path) -> list[Piece]:
    pieces = [read_piece(_run(), directory)]
    while pieces[0].begin:
        pieces.insert(0, read_piece(_run(), directory, before=pieces[0].begin))
    return pieces


def _forward(directory: Path) -> list[Piece]:
    pieces = [read_piece(_run(), directory, after=0)]
    while pieces[-1].end < pieces[-1].size:
        pieces.append(read_piece(_run(), directory, after=pieces[-1].end))
    return pieces


@pytest.mark.parametrize("seed", range(4))
def test_every_line_is_in_exactly_one_piece_in_both_directions(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    lengths = [chance.choice((0, 5, 80, 3_000, 400_000 if n % 50 == 7 else 30)) for n in range(300)]
    lines = [f"{n} {'x' * length}" for n, length in enumerate(lengths)]
    _record(tmp_path, lines[:120], lines[120:121], lines[121:])
    numbers = [str(n) for n in range(300)]
    for pieces in (_backward(tmp_path), _forward(tmp_path)):
        assert [one.partition(" ")[0] for one in _said(pieces)] == numbers
        assert [one.end for one in pieces[:-1]] == [one.begin for one in pieces[1:]]
        assert max(one.end - one.begin for one in pieces) < PIECE_BYTES + 410_000
    assert len(_backward(tmp_path)) >= 2


def test_a_position_inside_a_line_shows_this_line(tmp_path: Path) -> None:
    _record(tmp_path, ["first", "second", "third"])
    piece = read_piece(_run(), tmp_path, after=12)
    assert (_said([piece]), piece.begin, piece.end) == (["second", "third"], 8, 25)


def test_a_search_finds_every_place_and_says_where_it_begins(tmp_path: Path) -> None:
    # The fourth line goes over the end of the block that is read at once.
    _record(tmp_path, ["one", "Needle here"], ["x" * (4 << 20), "y needle", "a needle, another needle"])
    found = _hits(_run(), tmp_path, "NEEDLE")
    assert [(one.before[-4:], one.found, one.after) for one in found] == [
        ("", "Needle", " here"),
        ("y ", "needle", ""),
        ("a ", "needle", ", another needle"),
    ]
    for one in found:
        assert "needle" in _said([read_piece(_run(), tmp_path, after=one.position)])[0].lower()


def test_a_search_looks_at_what_an_agent_says_and_not_at_its_json(tmp_path: Path) -> None:
    lines = [
        '{"event":"text","text":"a \\"quoted\\" word and caf\\u00e9"}',
        '{"event":"tool_start","name":"shell","input":"ls text"}',
    ]
    _record(tmp_path, lines)
    agent = _run("scripted")
    assert [one.kind for one in _hits(agent, tmp_path, "text")] == ["ToolStart"]
    assert [one.found for one in _hits(agent, tmp_path, '"quoted"')] == ['"quoted"']
    assert [one.found for one in _hits(agent, tmp_path, "CAFÉ")] == ["café"]
    assert _hits(agent, tmp_path, "event") == []


def test_a_search_with_very_many_places_stops(tmp_path: Path) -> None:
    _record(tmp_path, ["same"] * 5_000)
    assert len(_hits(_run(), tmp_path, "same")) == MOST_HITS + 1


def test_a_tool_call_is_one_entry_with_its_result(tmp_path: Path) -> None:
    _record(
        tmp_path,
        [
            '{"event":"text","text":"I look."}',
            '{"event":"tool_start","name":"shell","input":"ls"}',
            '{"event":"tool_end","name":"shell","ok":false,"output":"no such file"}',
            '{"event":"tool_end","name":"shell","ok":true,"output":"of an earlier piece"}',
        ],
    )
    piece = read_piece(_run("scripted"), tmp_path)
    assert [(one.kind, one.text, one.result, one.ok, one.folded) for one in piece.entries] == [
        ("Text", "I look.", "", None, False),
        ("Tool", "ls", "no such file", False, True),
        ("Tool", "", "of an earlier piece", True, True),
    ]


def test_lines_of_output_come_in_blocks_and_long_ones_are_cut(tmp_path: Path) -> None:
    _record(tmp_path, [*(f"line {n}" for n in range(90)), "z" * 9_000])
    entries = read_piece(_run(), tmp_path).entries
    assert len(entries) < 6
    assert re.search("z{4000}", entries[-1].text)
    assert (max(len(one.text) for one in entries), entries[-1].cut) == (4_000, 5_000)
