"""Checkbox plans: `plan.md` alone, or in a track's folder with its specification and metadata."""

import re
from dataclasses import replace
from itertools import pairwise, takewhile
from pathlib import Path, PurePosixPath
from typing import Any, Final

from loopwright.adapters.sources.plan_md.plan_md_meaning import meaning
from loopwright.adapters.sources.plan_md.plan_md_metadata import (
    Metadata,
    checkpointed,
    read_metadata,
    verdict_in,
)
from loopwright.adapters.sources.plan_md.plan_md_outline import Outline, Section, SectionKind, outline
from loopwright.adapters.sources.plan_md.plan_md_sync import HOW, flagged
from loopwright.adapters.sources.plan_md.plan_md_write import finished, told
from loopwright.adapters.sources.plan_md.tracks_list import TRACKS, tracks_file, with_track
from loopwright.adapters.sources.spec.plan_format import MAX_DESCRIPTION
from loopwright.adapters.sources.text.located import check_text
from loopwright.adapters.sources.text.markdown import read_markdown
from loopwright.adapters.sources.text.plan_file import decoded
from loopwright.adapters.sources.text.problems import Problems, Unreadable, refuse
from loopwright.adapters.sources.text.reading import located_at, read_file
from loopwright.adapters.sources.text.titles import is_prompt
from loopwright.adapters.sources.todo_md.todo_md import is_called_todo, tell_without_box
from loopwright.config.nearest import quoted
from loopwright.core.replies.doc_sync import DocSync
from loopwright.core.values.errors import BadPlan
from loopwright.ports import Files, Mark, PlannedWork, Progress, Source, Track

PLAN: Final = "plan.md"
SPEC: Final = "spec.md"
METADATA: Final = "metadata.json"
_NAMES: Final = ("plan.md", "tasks.md", "todo.md")
_BOX: Final = re.compile(
    rb"^[ \t]{0,40}(?:[-*+]|[0-9]{1,9}[.)])[ \t]{1,8}\[(?:[ xX~!/-]|pending|in_progress|completed)\][ \t]"
    rb"|^#{2,6}[ \t]+\[[ xX~]\][ \t]+(?:\*\*)?Track\b",
    re.MULTILINE,
)
_LOOK: Final = 64 * 1024
_BESIDE: Final = (SPEC, "design.md", "requirements.md", "proposal.md")
_ARCHIVED: Final = ("conductor", "archive")
_MOST: Final = 20
"""How many documents are named."""


class PlanMdSource(Source):
    """Reads a plan made of checkboxes, and keeps its marks."""

    kind = "plan_md"
    format_name = "Checkbox plan"
    usual_places = ("*plan.md", "*PLAN.md", "[Tt]asks.md", "TASKS.md", "conductor/tracks/*", "plans/*.md")

    def recognises(self, place: Path) -> bool:
        """Take `plan.md` and its like, a folder with one, and any other Markdown file with a checkbox in it.

        Other forms of Markdown come before this one.
        """
        if place.is_dir():
            return _plan_in(place) is not None
        name = place.name.casefold()
        if not name.endswith(".md") or not place.is_file() or is_prompt(name):
            return False
        return name.endswith(_NAMES) or _BOX.search(_beginning(place)) is not None

    def canonical(self, place: Path) -> Path:
        """Return the folder of a track, or else the plan in a folder."""
        if place.absolute().parent.parent.name == "tracks" and place.name.casefold() == PLAN:
            return place.parent
        is_track = place.absolute().parent.name == "tracks"
        return (_plan_in(place) or place) if place.is_dir() and not is_track else place

    def files(self, place: Path) -> Files:
        """Return the plan, with the specification, metadata and list of tracks of a `plan.md`."""
        plan = (_plan_in(place) or place / PLAN) if place.is_dir() else place
        found = {plan.name: read_file(plan)}
        if plan.name.casefold() == PLAN:
            beside = (plan.with_name(name) for name in (SPEC, METADATA))
            found |= {path.name: read_file(path) for path in beside if path.is_file()}
            tracks = tracks_file(plan) if METADATA in found else None
            found |= {TRACKS: read_file(tracks)} if tracks is not None else {}
        return found

    def finished(self, place: Path) -> str:
        """Return that a track of Conductor is archived."""
        return "this track is archived" if _ARCHIVED in pairwise(place.absolute().parts) else ""

    def documents(self, place: Path) -> tuple[str, ...]:
        """Return the other documents in the folder of a track or beside a plan that is called `plan.md`."""
        plan = (_plan_in(place) or place / PLAN) if place.is_dir() else place
        if plan.name.casefold() != PLAN:
            return ()
        is_track = plan.absolute().parent.parent.name == "tracks"
        found = sorted(plan.parent.glob("*.md")) if is_track else map(plan.with_name, _BESIDE)
        return tuple(path.name for path in found if path.is_file() and path.name != plan.name)[:_MOST]

    def parse(self, files: Files, name: str) -> PlannedWork:
        """Return the work, or raise `BadPlan` with located problems."""
        plan = _plan_name(files)
        problems = Problems(_called(name, plan))
        try:
            found = outline(read_markdown(files[plan]), problems)
        except Unreadable as broken:
            raise located_at(_called(name, plan), broken) from broken
        if is_called_todo(plan):
            tell_without_box(found.markdown, problems)
        beside = Problems(_called(name, METADATA))
        metadata = _metadata(files, name, beside)
        work = meaning(found, name, problems, _spec(files, name, plan))
        sync = _doc_sync(found, metadata, problems, beside)
        refuse(_called(name, plan), problems, beside)
        # A track, and a plan that names documents, are kept by people who have such documents.
        asks: dict[str, Any] = {"business_docs": True} if metadata is not None or sync is not None else {}
        if metadata is not None and metadata.max_fix_cycles is not None:
            asks["fix_cycles"] = metadata.max_fix_cycles
        work = replace(work, doc_sync=sync, settings=asks, notes=problems.notes)
        return _with_metadata(work, found, metadata, beside.notes)

    def status_files(self, files: Files) -> tuple[str, ...]:
        """Return the plan and a track's metadata: a specification has no place for status."""
        plan = _plan_name(files)
        return tuple(name for name in (plan, METADATA, TRACKS) if name in files)

    def written(self, files: Files, progress: Progress) -> Files:
        """Return the plan with its marks, and the track's metadata with its checkpoints, where they change."""
        plan = _plan_name(files)
        problems = Problems(METADATA)
        metadata = _metadata(files, plan, problems)
        refuse(METADATA, problems)
        try:
            changed = {
                plan: told(files[plan], progress, plan, metadata.track if metadata is not None else "")
            }
        except Unreadable as broken:
            raise located_at(plan, broken) from broken
        if metadata is not None:
            found = outline(read_markdown(changed[plan]), Problems(plan))
            verdict = metadata.verdict or _verdict(found)
            phases = [found.sections[at].title for at in finished(found)]
            changed[METADATA] = checkpointed(files[METADATA], progress, found.tasks, verdict, phases)
            if TRACKS in files:
                marks = [item.mark for item in found.tasks]
                changed[TRACKS] = with_track(files[TRACKS], metadata.track, marks)
        return {name: content for name, content in changed.items() if content != files[name]}


def _plan_in(folder: Path) -> Path | None:
    try:
        return next((path for path in sorted(folder.iterdir()) if path.name.casefold() == PLAN), None)
    except OSError:
        return None


def _beginning(place: Path) -> bytes:
    try:
        with place.open("rb") as file:
            return file.read(_LOOK)
    except OSError:
        return b""


def _plan_name(files: Files) -> str:
    """Return the plan among the files; `spec.md` is a plan only if you name it by itself."""
    found = next((name for name in files if name.casefold() not in (SPEC, METADATA, TRACKS)), "")
    alone = next(iter(files), "") if len(files) == 1 and METADATA not in files else ""
    if not (found or alone):
        raise BadPlan(PLAN, (f"there is no {PLAN} here any more",))
    return found or alone


def _called(name: str, file: str) -> str:
    """Return what a person calls one of the files."""
    path = PurePosixPath(name)
    if path.name.casefold() == file.casefold():
        return name
    return str(path.with_name(file) if path.name.casefold().endswith(".md") else path / file)


def _spec(files: Files, name: str, plan: str) -> str:
    if SPEC not in files or plan == SPEC:
        return ""
    try:
        text = check_text(decoded(files[SPEC]).replace("\r\n", "\n").strip(), 1)
        if len(text) > MAX_DESCRIPTION:
            line = text.count("\n", 0, MAX_DESCRIPTION) + 1
            raise Unreadable(line, f"it has more than {MAX_DESCRIPTION} characters")
        return text
    except Unreadable as broken:
        raise located_at(_called(name, SPEC), broken) from broken


def _metadata(files: Files, name: str, problems: Problems) -> Metadata | None:
    if METADATA not in files:
        return None
    try:
        return read_metadata(files[METADATA], problems)
    except Unreadable as broken:
        raise located_at(_called(name, METADATA), broken) from broken


def _doc_sync(
    found: Outline, metadata: Metadata | None, problems: Problems, beside: Problems
) -> DocSync | None:
    """Return which documents have to follow: the plan's own word, else that of the track's metadata."""
    sync = flagged(found, problems)
    if sync is not None or metadata is None:
        return sync
    for line, one in metadata.unusable:
        beside.note(line, "affected_docs", f"{quoted(one)} is not inside of the project: {HOW}")
    if metadata.unnamed:
        beside.note(
            metadata.unnamed, "business_sync_required", f"none is named in BUSINESS_SYNC.affected_docs: {HOW}"
        )
    return metadata.doc_sync


def _with_metadata(
    work: PlannedWork, found: Outline, metadata: Metadata | None, odd: tuple[str, ...]
) -> PlannedWork:
    """Return the work with what the track's metadata adds to it."""
    if metadata is None:
        return replace(work, evaluated=_verdict(found))
    notes = [*work.notes, *odd]
    if not metadata.versioned:
        notes.append(f"{METADATA} has no version: it is brought to the present one when work starts")
    ahead = [item.name for item in found.tasks if item.name in metadata.done and item.mark is not Mark.DONE]
    if ahead:
        names = quoted(", ".join(ahead), 200)[1:-1]
        notes.append(f"{METADATA} says that these were done, the plan does not, and the plan counts: {names}")
    ours = "passed" if metadata.evaluated_sha256 and metadata.evaluated_sha256 == work.sha256 else ""
    track = Track(name=metadata.track, type=metadata.type, stopped=metadata.stopped)
    work = replace(work, evaluated=metadata.verdict or _verdict(found) or ours, track=track)
    if metadata.last_task:
        work, lost = _resumed(work, found, metadata.last_task)
        notes += lost
    return replace(work, notes=tuple(notes))


def _resumed(work: PlannedWork, found: Outline, last: str) -> tuple[PlannedWork, list[str]]:
    """Return the work, with the first open task behind the last finished one marked as the first."""
    names = [item.name for item in found.tasks]
    called = quoted(last, 200)
    if last not in names:
        return work, [f"{METADATA} says that {called} was done last, but no task of the plan is called that"]
    at = names.index(last)
    if found.tasks[at].mark is not Mark.DONE:
        return work, [f"{METADATA} says that {called} was done last, the plan does not, and the plan counts"]
    place = next((n for n, task in enumerate(work.tasks) if n > at and task.mark is Mark.OPEN), None)
    # It continues where it was left, whatever else is open above.
    tasks = tuple(
        replace(task, first=True, after=()) if n == place else replace(task, first=False)
        for n, task in enumerate(work.tasks)
    )
    return replace(work, tasks=tasks), []


def _verdict(found: Outline) -> str:
    """Return what the last report of an evaluation in the plan itself says."""
    verdict = ""
    for at, section in enumerate(found.sections):
        title = section.title.casefold()
        if section.kind is not SectionKind.REPORT or "evaluation report" not in title or "execution" in title:
            continue
        verdict = _verdict_of(found, section, found.sections[at + 1 :]) or verdict
    return verdict


def _verdict_of(found: Outline, report: Section, after: tuple[Section, ...]) -> str:
    """Return what one report says: under a heading *Verdict*, in its own lines, or by the single results in it.

    The verdict of a board is below the board's own heading, and is one result among others.
    """
    inner = tuple(takewhile(lambda one: one.level > report.level, after))
    own, below = _lines(found, report), [line for one in inner for line in (one.title, *_lines(found, one))]
    headed = [one for one in inner if one.title.casefold().startswith("verdict")]
    places = (
        [one.title for one in headed],
        [line for one in headed for line in _lines(found, one)],
        [line for line in own if "verdict" in line.casefold()],
        [line for line in own if "result" in line.casefold()],
        [*own, *below],
    )
    for lines in places:
        said = {word for line in lines if (word := verdict_in(line))}
        if said:
            return "failed" if "failed" in said else "passed"
    return ""


def _lines(found: Outline, section: Section) -> list[str]:
    return [line.text for line in found.markdown.lines[section.start + 1 : section.end]]
