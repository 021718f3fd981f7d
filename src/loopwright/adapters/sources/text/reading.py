"""From a path to its work: which kind of source it is, its files, and what they say."""

import codecs
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from loopwright.adapters.sources.text.plan_file import content
from loopwright.adapters.sources.text.problems import Unreadable
from loopwright.config.nearest import did_you_mean
from loopwright.core.values.errors import BadPlan, UserError
from loopwright.core.values.wording import to_type
from loopwright.ports import Mark, PlannedWork, Source

_LOOSE: Final = {"thoughts": 1, "plan_md": 2, "yaml": 3}
"""Formats that many files fit, from the strictest: one is meant when no format before it knows the file."""


def folder_of(place: Path) -> Path:
    """Return the folder that the names of a source's files are relative to."""
    return place if place.is_dir() else place.parent


def read(source: Source, place: Path) -> PlannedWork:
    """Return what a source asks for, or raise `BadPlan` with located problems."""
    work = source.parse(source.files(place), called(place))
    if reason := source.finished(place):
        work = _without_open(work, called(place), reason)
    documents = tuple(dict.fromkeys((*work.documents, *source.documents(place))))
    return replace(work, documents=documents, notes=(*work.notes, *source.left_out(place)))


def _without_open(work: PlannedWork, name: str, reason: str) -> PlannedWork:
    """Return work whose open tasks are skipped."""
    ended = (Mark.DONE, Mark.SKIPPED)
    left = sum(task.mark not in ended for task in work.tasks)
    if not left:
        return work
    tasks = (task if task.mark in ended else replace(task, mark=Mark.SKIPPED) for task in work.tasks)
    open_tasks = "its open task is" if left == 1 else f"its {left} open tasks are"
    return replace(
        work, tasks=tuple(tasks), notes=(*work.notes, f"{name}: {reason}, so {open_tasks} skipped")
    )


def called(place: Path) -> str:
    """Return what a person calls a source: the path that they wrote, or its name."""
    return place.name if place.is_absolute() else place.as_posix()


def check_there(place: Path) -> None:
    """Refuse a path that leads nowhere, with what was probably meant."""
    if place.exists():
        return
    try:
        beside = [one.name for one in place.parent.iterdir()]
    except OSError:
        beside = []
    meant = did_you_mean(place.name, beside)
    if not meant and place.name == str(place) and not place.suffix:
        meant = f"; if it is a goal, `{to_type('plan', place.name)}` has a plan written for it"
    # With its folder, as it was written: another file of that name may be here.
    raise BadPlan(
        place.as_posix(), (f"there is no such file{meant}",), hint="name a file or folder that has work"
    )


def recognise(place: Path, sources: Iterable[Source]) -> Source:
    """Return the one source that knows this file or folder, or raise with what to do."""
    name = place.as_posix()
    check_there(place)
    found = most_specific([one for one in sources if one.recognises(place)])
    if not found:
        known = ", ".join(sorted(one.kind for one in sources))
        raise BadPlan(name, (f"nothing here is a known form of work; `--source` names one of: {known}",))
    if len(found) > 1:
        kinds = ", ".join(sorted(one.kind for one in found))
        raise UserError(
            f"{name} could be read as: {kinds}", code="source_ambiguous", hint="say which with --source KIND"
        )
    return found[0]


def most_specific(found: Sequence[Source]) -> list[Source]:
    """Return the sources that know a place best: one that knows any Markdown file leaves it to one with a structure."""
    best = min((_LOOSE.get(one.kind, 0) for one in found), default=0)
    return [one for one in found if _LOOSE.get(one.kind, 0) == best]


def read_file(path: Path) -> bytes:
    """Return the bytes of one of a source's files, or raise `BadPlan`."""
    try:
        return content(path)
    except Unreadable as broken:
        raise located_at(called(path), broken) from broken


def located_at(name: str, broken: Unreadable) -> BadPlan:
    """Say which file cannot be read, where, and why."""
    place = f"{name}:{broken.line}" if broken.line is not None else name
    return BadPlan(name, (f"{place}: {broken.message}",))


_START: Final = 256 * 1024


def start_of(path: Path) -> str:
    """Return the beginning of a file as text, whatever its encoding; nothing if it cannot be read."""
    try:
        with path.open("rb") as file:
            start = file.read(_START)
    except OSError:
        return ""
    wide = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return start.decode("utf-16" if wide else "utf-8-sig", "ignore")


_FENCE: Final = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})([^\n]*)")


def without_code(text: str) -> str:
    """Return Markdown without its fenced blocks: a sample of a form is not the form."""
    kept: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        match = _FENCE.match(line)
        if match is None:
            kept += [] if fence else [line]
        elif not fence:
            fence = match[1]
        elif match[1].startswith(fence) and not match[2].strip():
            fence = ""
    return "".join(kept)
