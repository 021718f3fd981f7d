"""Plans that are spread over files: an overview, and a file for each phase."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from loopwright.adapters.sources.located import Unreadable
from loopwright.adapters.sources.markdown_lines import Kind, Line, Markdown, read_markdown
from loopwright.adapters.sources.plan_format import MAX_DESCRIPTION, MAX_ID, MAX_TITLE
from loopwright.adapters.sources.plan_md_meaning import is_sha
from loopwright.adapters.sources.plan_md_outline import MARKS, OURS, without_comments
from loopwright.adapters.sources.plan_md_write import BOXES, SHA_LENGTH, Rows, one_line
from loopwright.adapters.sources.problems import Problems, refuse
from loopwright.adapters.sources.reading import located_at, read_file
from loopwright.adapters.sources.thoughts_criteria import measured_by
from loopwright.adapters.sources.thoughts_files import PhaseSet, phase_set_of, phase_sets
from loopwright.core.errors import BadPlan
from loopwright.ports import Files, ItemProgress, Mark, PlannedTask, PlannedWork, Progress

MAX_FILES: Final = 1_000
_STATUS: Final = re.compile(
    r"\*\*Status\*\*: (open|running|done|blocked|skipped)(?: in ([0-9a-f]{7,64}))?(?:: (.*))?$"
)
_NAME: Final = re.compile(r"[\w.-]+")
_BLOCKED: Final = "Blocked:"
_SHA: Final = re.compile(r" <!-- [0-9a-f]{7,64} -->")
_COPIES: Final = "searchable"
"""A folder of links to everything else in `thoughts`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standing:
    """How a phase is marked, and where that is written."""

    mark: Mark = Mark.OPEN
    commit: str | None = None
    reason: str = ""


class ThoughtsSource:
    """Reads phase plans from a folder, from one overview, or one phase by itself."""

    kind = "thoughts"

    def recognises(self, place: Path) -> bool:
        """Take a folder with such a set, and any file of one."""
        return bool(_chosen(place))

    def files(self, place: Path) -> Files:
        """Return the overviews and phases that are meant."""
        names = [name for one in _chosen(place) for name in one.names]
        if not names:
            raise BadPlan(place.name, ("there is no overview here with phases such as plan-01-first.md",))
        if len(names) > MAX_FILES:
            raise BadPlan(
                place.name, (f"there are more than {MAX_FILES} files of plans here: name an overview",)
            )
        folder = place if place.is_dir() else place.parent
        return {name: read_file(folder / name) for name in names}

    def parse(self, files: Files, name: str) -> PlannedWork:
        """Return a task for each phase, or raise `BadPlan` with located problems."""
        found = {file: _markdown(content, _called(name, file)) for file, content in files.items()}
        gathered: list[Problems] = []
        tasks: list[PlannedTask] = []
        context: list[str] = []
        for one in phase_sets(files, alone=True):
            context += [_overview_text(found[overview]) for overview in one.overviews]
            listed = _listed(found, one)
            before: PlannedTask | None = None
            numbers: dict[int, str] = {}
            for phase in one.phases:
                problems = Problems(_called(name, phase.name))
                gathered.append(problems)
                if phase.number in numbers:
                    problems.note(1, "", f"{numbers[phase.number]} is phase {phase.number:02} too")
                numbers[phase.number] = phase.name
                standing = _standing(found, listed, phase.name)
                before = _task(phase.name, found[phase.name], standing, before, problems)
                tasks.append(before)
        if sum(map(len, context)) > MAX_DESCRIPTION:
            gathered.append(Problems(name))
            gathered[-1].note(1, "", f"the overviews have more than {MAX_DESCRIPTION} characters")
        refuse(name, *gathered)
        said = [f"{task.key}\0{task.description}" for task in tasks]
        return PlannedWork(
            title=_title(found, phase_sets(files, alone=True)),
            tasks=tuple(tasks),
            context="\n\n".join(context),
            sha256=hashlib.sha256("\0".join((*context, *said)).encode()).hexdigest(),
        )

    def written(self, files: Files, progress: Progress) -> Files:
        """Return the files whose boxes or status lines change."""
        found = {file: _markdown(content, file) for file, content in files.items()}
        changed: dict[str, bytes] = {}
        for one in phase_sets(files, alone=True):
            listed = _listed(found, one)
            ticked: dict[str, dict[int, ItemProgress]] = {}
            for phase in one.phases:
                standing = progress.items.get(_key(phase.name))
                if standing is None:
                    continue
                if (place := listed.get(PurePosixPath(phase.name).stem)) is not None:
                    ticked.setdefault(place[0], {})[place[1]] = standing
                else:
                    changed[phase.name] = _with_status(found[phase.name], standing)
            changed |= {file: _ticked(found[file], places) for file, places in ticked.items()}
        return {file: content for file, content in changed.items() if content != files[file]}


def _chosen(place: Path) -> tuple[PhaseSet, ...]:
    """Return what a path means: every set of a folder, the set of an overview, or one phase."""
    if place.is_dir():
        return (
            phase_sets(_names(place)) if place.name in ("plans", "thoughts") or "plans" in place.parts else ()
        )
    found = phase_set_of(place)
    if found is None or place.name in found.overviews:
        return (found,) if found is not None else ()
    alone = tuple(phase for phase in found.phases if phase.name == place.name)
    return (PhaseSet(prefix=found.prefix, overviews=found.overviews, phases=alone),)


def _names(folder: Path) -> Iterator[str]:
    """Return the names of a folder of plans, or of all such folders in `thoughts`, no file twice."""
    inner = folder.glob("*.md") if folder.name != "thoughts" else folder.glob("**/plans/*.md")
    seen: set[tuple[int, int]] = set()
    for count, path in enumerate(sorted(inner)):
        name = path.relative_to(folder)
        if count > 10 * MAX_FILES:
            return
        if _COPIES in name.parts or not path.is_file():
            continue
        status = path.stat()
        if (status.st_dev, status.st_ino) not in seen:
            seen.add((status.st_dev, status.st_ino))
            yield name.as_posix()


def _markdown(content: bytes, name: str) -> Markdown:
    try:
        return read_markdown(content)
    except Unreadable as broken:
        raise located_at(name, broken) from broken


def _called(name: str, file: str) -> str:
    """Return what a person calls one of the files."""
    path = PurePosixPath(name)
    return str(path.with_name(file) if path.name.casefold().endswith(".md") else path / file)


def _key(name: str) -> str:
    return name[: -len(".md")]


def _task(
    name: str, markdown: Markdown, standing: _Standing, before: PlannedTask | None, problems: Problems
) -> PlannedTask:
    text = _text(markdown)
    criteria, acceptance = measured_by(markdown.lines)
    if not text:
        problems.note(1, "", "the phase is empty: say what is to be done")
    if len(text) > MAX_DESCRIPTION:
        problems.note(1, "", f"a phase has at most {MAX_DESCRIPTION} characters")
    if len(_key(name)) > MAX_ID:
        problems.note(1, "", f"the name of a phase has at most {MAX_ID} characters")
    return PlannedTask(
        key=_key(name),
        title=(_heading(markdown) or PurePosixPath(name).stem)[:MAX_TITLE],
        description=text,
        criteria=criteria,
        acceptance=acceptance,
        depends_on=(before.key,) if before is not None else (),
        phase=PurePosixPath(name).stem,
        mark=standing.mark,
        commit=standing.commit if standing.mark is Mark.DONE else None,
        reason=standing.reason if standing.mark is Mark.BLOCKED else "",
        line=1,
    )


def _text(markdown: Markdown) -> str:
    """Return a phase's text without the line of ours."""
    rows: Rows = [(line.text, None) for line in markdown.lines]
    present = _status_at(markdown)
    if present is not None:
        _take_out(rows, present)
    return "\n".join(text for text, _ in rows).strip()


def _overview_text(markdown: Markdown) -> str:
    """Return an overview's text as if nothing had been done yet."""
    texts: list[str] = []
    for line in markdown.lines:
        if _is_reason(line) and OURS in line.text:
            continue
        boxed = line.kind is Kind.BULLET and line.box in MARKS
        bare = f"{line.text[: line.box_at]} {line.text[line.box_at + 1 :]}" if boxed else line.text
        texts.append(_SHA.sub("", bare) if boxed else bare)
    return "\n".join(texts).strip()


def _heading(markdown: Markdown) -> str:
    found = (line.words for line in markdown.lines if line.kind is Kind.HEADING and line.level == 1)
    return without_comments(next(found, ""))[0]


def _title(found: dict[str, Markdown], sets: tuple[PhaseSet, ...]) -> str:
    if len(sets) != 1:
        return f"{len(sets)} plans"
    heading = next((words for name in sets[0].overviews if (words := _heading(found[name]))), "")
    return heading[:MAX_TITLE] or PurePosixPath(sets[0].prefix).name or "Phases"


def _standing(found: dict[str, Markdown], listed: dict[str, tuple[str, int]], name: str) -> _Standing:
    place = listed.get(PurePosixPath(name).stem)
    if place is not None:
        markdown, at = found[place[0]], place[1]
        line = markdown.lines[at]
        below = (markdown.lines[one] for one in _below(markdown, at))
        reason = next((without_comments(one.words)[0] for one in below if _is_reason(one)), "")
        commit = next(filter(is_sha, _comments(line)), None)
        return _Standing(
            mark=MARKS[line.box or ""], commit=commit, reason=reason.removeprefix(_BLOCKED).strip()
        )
    present = _status_at(found[name])
    if present is None:
        return _Standing()
    match = _STATUS.match(without_comments(found[name].lines[present].words)[0])
    assert match is not None
    return _Standing(mark=Mark(match[1]), commit=match[2], reason=match[3] or "")


def _comments(line: Line) -> list[str]:
    return without_comments(line.words)[1]


def _listed(found: dict[str, Markdown], one: PhaseSet) -> dict[str, tuple[str, int]]:
    """Return the checkboxes of the overview that name a phase's file: its status is kept there."""
    listed: dict[str, tuple[str, int]] = {}
    for file in one.overviews:
        for at, line in enumerate(found[file].lines):
            if line.kind is Kind.BULLET and line.box in MARKS:
                for word in _NAME.findall(line.words):
                    listed.setdefault(word.strip(".-").removesuffix(".md"), (file, at))
    return listed


def _below(markdown: Markdown, at: int) -> range:
    """Return the lines that belong to a box alone: what is nested in it up to another box, and words that go on."""
    lines, indent = markdown.lines, markdown.lines[at].indent
    after = range(at + 1, len(lines))
    ends = (n for n in after if lines[n].kind is not Kind.TEXT and not _is_nested(lines[n], indent))
    return range(at + 1, next(ends, len(lines)))


def _is_nested(line: Line, indent: int) -> bool:
    return line.kind is Kind.BULLET and line.indent > indent and line.box is None


def _is_reason(line: Line) -> bool:
    return line.kind is Kind.BULLET and line.box is None and line.words.startswith(_BLOCKED)


def _tell_reason(markdown: Markdown, rows: Rows, at: int, standing: ItemProgress) -> None:
    """Write below a phase's box why it is blocked, or take that out; what a person wrote there says it as well."""
    line, below = markdown.lines[at], _below(markdown, at)
    reason = one_line(standing.reason) if standing.mark is Mark.BLOCKED else ""
    present = [one for one in below if _is_reason(markdown.lines[one]) and OURS in markdown.lines[one].text]
    theirs = (one_line(markdown.lines[one].text) for one in (at, *below) if one not in present)
    space = line.text[: len(line.text) - len(line.text.lstrip())] + " " * (len(line.bullet) + 1)
    said = reason and not any(reason in words for words in theirs)
    wanted = [f"{space}- {_BLOCKED} {reason} {OURS}"] if said else []
    if [rows[one][0] for one in present] != wanted:
        place = present[0] if present else below.stop
        for one in reversed(present):
            del rows[one]
        rows[place:place] = [(words, None) for words in wanted]


def _ticked(markdown: Markdown, places: dict[int, ItemProgress]) -> bytes:
    rows: Rows = [(line.text, ending) for line, ending in zip(markdown.lines, markdown.endings, strict=True)]
    # From the end, so that what is put in below one box moves no other.
    for at, standing in sorted(places.items(), reverse=True):
        _tell_reason(markdown, rows, at, standing)
        line = markdown.lines[at]
        text, mark = line.text, MARKS[line.box or ""]
        if mark is not standing.mark:
            text = f"{text[: line.box_at]}{BOXES[standing.mark]}{text[line.box_at + 1 :]}"
        bare = _SHA.sub("", text)
        if mark is Mark.DONE and standing.mark is not Mark.DONE:
            text = bare
        elif (
            standing.mark is Mark.DONE
            and standing.commit
            and standing.commit[:7] not in text[len(bare.rstrip()) :]
        ):
            end = len(bare.rstrip())
            text = f"{bare[:end]} <!-- {standing.commit[:SHA_LENGTH]} -->{bare[end:]}"
        rows[at] = (text, rows[at][1])
    return markdown.joined(rows)


def _with_status(markdown: Markdown, standing: ItemProgress) -> bytes:
    """Return a phase's file with its line of status below the heading, or above everything."""
    said = standing.mark.value
    if standing.mark is Mark.DONE and standing.commit:
        said += f" in {standing.commit[:SHA_LENGTH]}"
    reason = one_line(standing.reason)
    if standing.mark is Mark.BLOCKED and reason:
        said += f": {reason}"
    status = f"**Status**: {said} {OURS}"
    rows: Rows = [(line.text, ending) for line, ending in zip(markdown.lines, markdown.endings, strict=True)]
    present = _status_at(markdown)
    if present is not None and standing.mark is Mark.OPEN:
        _take_out(rows, present)
    elif present is not None:
        rows[present] = (status, rows[present][1])
    elif standing.mark is not Mark.OPEN:
        titles = (at + 1 for at in range(len(markdown.lines)) if _is_title(markdown, at))
        place = next(titles, _after_front_matter(markdown))
        rows[place:place] = [("", None), (status, None)] if place else [(status, None), ("", None)]
    return markdown.joined(rows)


def _status_at(markdown: Markdown) -> int | None:
    return next((at for at, line in enumerate(markdown.lines) if _is_status(line)), None)


def _take_out(rows: Rows, present: int) -> None:
    """Take the line of status out, together with the blank one that came with it."""
    del rows[present]
    blank = present - 1 if present else 0
    if blank < len(rows) and not rows[blank][0].strip():
        del rows[blank]


def _after_front_matter(markdown: Markdown) -> int:
    texts = [line.text.rstrip() for line in markdown.lines]
    return texts.index("---", 1) + 1 if texts[:1] == ["---"] and "---" in texts[1:] else 0


def _is_status(line: Line) -> bool:
    return OURS in line.text and _STATUS.match(without_comments(line.words)[0]) is not None


def _is_title(markdown: Markdown, at: int) -> bool:
    """Say whether this is the heading's last line: the one below it when it is underlined."""
    line = markdown.lines[at]
    if line.kind is Kind.COMMENT and at and markdown.lines[at - 1].kind is Kind.HEADING:
        return not line.text.strip().strip("=")
    return line.kind is Kind.HEADING and line.level == 1 and line.text.lstrip().startswith("#")
