"""A transcript in pieces: any part of a recording of any size, and a search through all of it."""

import asyncio
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Final

from loopwright.adapters.processes.keeper_files import OutputReader, line_begin, lines_with, output_size
from loopwright.core.rows.model import Run
from loopwright.core.values.access import Caller
from loopwright.core.values.states import ENDED_RUN
from loopwright.engine.rows.world import HomePaths
from loopwright.ports import OutputLine
from loopwright.services.homes.session import Session
from loopwright.services.recordings.output import Shown, Transcript
from loopwright.services.remote.seen import seen_run

PIECE_BYTES: Final = 96 * 1024
"""How much of a recording one piece of a transcript shows."""
LONGEST_TEXT: Final = 4_000
"""Longer texts are cut on a page; the log endpoint has the full text."""
MOST_HITS: Final = 100
_BLOCK_LINES: Final = 40
"""The most lines of output in one entry: a page with an element for each line is slow."""
_NOISE: Final = frozenset({"Usage", "Raw", "Started", "Finished"})
_MOST_LINES: Final = 20_000
"""A search stops after this many lines that have the text only in their JSON."""
_AROUND: Final = 80
"""How many characters a search result shows on each side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing in a transcript."""

    kind: str
    text: str
    name: str = ""
    """The tool."""
    result: str = ""
    """What the tool returned."""
    ok: bool | None = None
    """Whether the tool succeeded; None while that is unknown."""
    folded: bool = False
    """Whether it is shown as one line until it is opened."""
    cut: int = 0
    """How many characters were left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a transcript."""

    entries: tuple[Entry, ...]
    begin: int
    """The position of its beginning in the recording; 0 is the start."""
    end: int
    """The position of its end: the next piece begins here."""
    size: int
    live: bool
    """Whether more may come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One place where a search found its text."""

    position: int
    kind: str
    before: str
    found: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The result of a search."""

    wanted: str
    hits: tuple[Hit, ...]
    more: bool
    """Whether there are more places than are listed."""


async def transcript(
    at: Session,
    caller: Caller,
    run_id: str,
    *,
    before: int | None = None,
    after: int | None = None,
) -> Piece:
    """Return a piece of a transcript: the one that ends at `before`, the one that begins at `after`, or the last."""
    run = await at.home.store.read(lambda tx: seen_run(tx, caller, run_id))
    return read_piece(run, HomePaths(root=at.home.root).run(run.id), before=before, after=after)


async def search(at: Session, caller: Caller, run_id: str, wanted: str) -> Found:
    """Return where a transcript contains a text, from its beginning on; case is ignored."""
    run = await at.home.store.read(lambda tx: seen_run(tx, caller, run_id))
    wanted = wanted.strip()
    if not wanted:
        return Found(wanted="", hits=(), more=False)
    directory = HomePaths(root=at.home.root).run(run.id)
    hits = await asyncio.to_thread(_hits, run, directory, wanted)
    return Found(wanted=wanted, hits=tuple(hits[:MOST_HITS]), more=len(hits) > MOST_HITS)


def read_piece(run: Run, directory: Path, *, before: int | None = None, after: int | None = None) -> Piece:
    """Read a piece of what a run printed."""
    size = output_size(directory)
    if after is not None:
        begin = line_begin(directory, min(after, size))
        lines = tuple(_until(OutputReader(directory, begin).all(), begin + PIECE_BYTES))
    else:
        end = size if before is None else min(before, size)
        begin = line_begin(directory, max(0, end - PIECE_BYTES))
        lines = tuple(_up_to(OutputReader(directory, begin).all(), end))
    codec = Transcript(run)
    shown = [one for line in lines for one in codec.take(line)]
    return Piece(
        entries=tuple(one for one in _entries(shown) if one.text or one.result or one.name),
        begin=begin,
        end=lines[-1].offset if lines else begin,
        size=size,
        live=run.state not in ENDED_RUN,
    )


def _until(lines: Iterable[OutputLine], end: int) -> Iterator[OutputLine]:
    """Yield at least one line, and no more after `end`."""
    for line in lines:
        yield line
        if line.offset >= end:
            return


def _up_to(lines: Iterable[OutputLine], end: int) -> Iterator[OutputLine]:
    for line in lines:
        if line.offset > end:
            return
        yield line


def _entries(shown: Iterable[Shown]) -> list[Entry]:
    """Return the visible entries: each tool call with its result, and lines of output in blocks."""
    made: list[Entry] = []
    calls: dict[str, int] = {}
    block: list[str] = []

    def close() -> None:
        if block:
            gone = sum(max(0, len(line) - LONGEST_TEXT) for line in block)
            text = "\n".join(line[:LONGEST_TEXT] for line in block)
            made.append(Entry(kind="Line", text=text, cut=gone))
            block.clear()

    for one in shown:
        if one.kind == "Line":
            if len(block) >= _BLOCK_LINES or sum(map(len, block)) + len(one.text) > LONGEST_TEXT:
                close()
            block.append(one.text)
            continue
        close()
        name = str(one.data.get("name") or "")
        call = str(one.data.get("id") or name)
        if one.kind == "ToolStart":
            calls[call] = len(made)
            made.append(_cut(Entry(kind="Tool", name=name, text=_given(one), folded=True)))
        elif one.kind == "ToolEnd" and (begun := calls.pop(call, None)) is not None:
            made[begun] = _cut(replace(made[begun], result=one.text, ok=one.data.get("ok") is True))
        elif one.kind == "ToolEnd":
            ok = one.data.get("ok") is True
            made.append(_cut(Entry(kind="Tool", name=name, text="", result=one.text, ok=ok, folded=True)))
        else:
            folded = one.kind in _NOISE or len(one.text) > 2_000
            made.append(_cut(Entry(kind=one.kind, text=one.text, name=name, folded=folded)))
    close()
    return made


def _given(one: Shown) -> str:
    """Return the arguments of a tool call: a single one as it is, several as JSON."""
    given = one.data.get("input")
    if not isinstance(given, dict) or not given:
        return one.text
    if len(given) == 1:
        return str(next(iter(given.values())))
    return json.dumps(given, ensure_ascii=False, indent=1)


def _cut(entry: Entry) -> Entry:
    """Cut long texts, and add how much is missing."""
    gone = max(0, len(entry.text) - LONGEST_TEXT) + max(0, len(entry.result) - LONGEST_TEXT)
    text, result = entry.text[:LONGEST_TEXT], entry.result[:LONGEST_TEXT]
    return replace(entry, text=text, result=result, cut=entry.cut + gone)


def _hits(run: Run, directory: Path, wanted: str) -> list[Hit]:
    # Agents print JSON, which may write a letter in two ways.
    forms = {
        wanted.lower(),
        json.dumps(wanted.lower(), ensure_ascii=False)[1:-1],
        json.dumps(wanted.lower())[1:-1],
    }
    pattern = re.compile(b"|".join(re.escape(one.encode()) for one in sorted(forms)))
    hits: list[Hit] = []
    for position, line in islice(lines_with(directory, pattern, 0), _MOST_LINES):
        for one in Transcript(run).take(line):
            said = f"{one.text} {_given(one)}" if one.kind == "ToolStart" else one.text
            found = re.search(re.escape(wanted), said, re.IGNORECASE)
            if found is not None:
                begin, end = found.span()
                hits.append(
                    Hit(
                        position=position,
                        kind=one.kind,
                        before=said[max(0, begin - _AROUND) : begin],
                        found=said[begin:end],
                        after=said[end : end + _AROUND],
                    )
                )
                break
        if len(hits) > MOST_HITS:
            break
    return hits
