"""Plans that are spread over files: an overview, and a file for each phase."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Final

from loopwright.adapters.sources.spec.plan_format import MAX_DESCRIPTION, MAX_ID, MAX_TITLE
from loopwright.adapters.sources.text.markdown import Kind, Markdown, read_markdown
from loopwright.adapters.sources.text.problems import Problems, Unreadable, refuse
from loopwright.adapters.sources.text.reading import called, located_at, read_file
from loopwright.adapters.sources.text.sections import is_manual_heading
from loopwright.adapters.sources.text.titles import without_comments
from loopwright.adapters.sources.thoughts.thoughts_criteria import measured_by
from loopwright.adapters.sources.thoughts.thoughts_files import (
    PhaseFile,
    PhaseSet,
    left_out,
    may_stand_alone,
    phase_set_of,
    phase_sets,
)
from loopwright.adapters.sources.thoughts.thoughts_overview import (
    listed_in,
    overview_text,
    standing_at,
    ticked_at,
    unmet,
)
from loopwright.adapters.sources.thoughts.thoughts_phases import (
    around,
    is_lone_plan,
    phases_in,
    standings,
    with_statuses,
)
from loopwright.adapters.sources.thoughts.thoughts_status import (
    Rows,
    Said,
    Standing,
    own_standing,
    said_in_plan,
    said_in_tables,
    standing_in,
    status_at,
    text_of,
    write_status,
)
from loopwright.core.values.errors import BadPlan
from loopwright.ports import Files, ItemProgress, Mark, PlannedTask, PlannedWork, Progress, Source

MAX_FILES: Final = 1_000
_TO_DO: Final = (Mark.OPEN, Mark.RUNNING, Mark.BLOCKED)
_MOST_LEFT: Final = 50
"""Of more files that are left out only so many are named."""
_COPIES: Final = "searchable"
"""A folder of links to everything else in `thoughts`."""


class ThoughtsSource(Source):
    """Reads phase plans from a folder, from one overview, or from one file by itself."""

    kind = "thoughts"
    format_name = "Phase files"
    usual_places = ("thoughts", "thoughts/*/plans", "thoughts/*/plans/*.md")

    def recognises(self, place: Path) -> bool:
        """Take a folder with such a set, any file of one, and a plan by itself in a `plans` folder."""
        return bool(_chosen(place)) or is_lone_plan(place)

    def files(self, place: Path) -> Files:
        """Return the overviews and phases that are meant."""
        chosen = _chosen(place)
        names = [name for one in chosen for name in one.names]
        if not names and may_stand_alone(place):
            names = [place.name]
        if not names:
            raise BadPlan(place.name, ("there is no overview here with phases such as plan-01-first.md",))
        if len(names) > MAX_FILES:
            raise BadPlan(
                place.name, (f"there are more than {MAX_FILES} files of plans here: name an overview",)
            )
        folder = place if place.is_dir() else place.parent
        return {name: read_file(folder / name) for name in names}

    def left_out(self, place: Path) -> tuple[str, ...]:
        """Return a note for each file that looks like part of a set and is not read."""
        return tuple(
            f"{_called(called(place), file)} is left out: no phase is called like that (PREFIX-NN-NAME.md)"
            for file in _left_out(place, _chosen(place))
        )

    def parse(self, files: Files, name: str) -> PlannedWork:
        """Return a task for each phase, or raise `BadPlan` with located problems."""
        sets = _sets(files)
        found = {file: _markdown(files[file], _called(name, file)) for one in sets for file in one.names}
        if len(files) == 1 and phases_in(found[next(iter(found))]):
            return _one_file(*found.popitem(), name)
        gathered: list[Problems] = []
        tasks: list[PlannedTask] = []
        overviews = [
            "\n\n".join(overview_text(found[overview]) for overview in one.overviews) for one in sets
        ]
        for one, overview in zip(sets, overviews, strict=True):
            listed = listed_in(found, one)
            if PurePosixPath(name).name not in (phase.name for phase in one.phases):
                gathered += unmet(found, one, lambda file: _called(name, file))
            before: PlannedTask | None = None
            numbers: dict[int, str] = {}
            for phase in one.phases:
                problems = Problems(_called(name, phase.name))
                gathered.append(problems)
                if phase.number in numbers:
                    problems.note(1, "", f"{numbers[phase.number]} is phase {phase.number:02} too")
                numbers[phase.number] = phase.name
                standing = _standing(found, one, listed, phase)
                task = _task(phase.name, found[phase.name], standing, problems)
                # A phase gets only the overview of its own set.
                before = _behind(replace(task, section=overview if len(sets) > 1 else ""), before)
                tasks.append(before)
            if len(overview) > MAX_DESCRIPTION:
                gathered.append(Problems(_called(name, one.overviews[0])))
                gathered[-1].note(1, "", f"the overview has more than {MAX_DESCRIPTION} characters")
        refuse(name, *gathered)
        said = [f"{task.key}\0{task.description}" for task in tasks]
        return PlannedWork(
            title=_title(found, sets),
            tasks=tuple(tasks),
            context=overviews[0] if len(sets) == 1 else "",
            documents=tuple(file for one in sets for file in one.overviews),
            sha256=hashlib.sha256("\0".join((*filter(None, overviews), *said)).encode()).hexdigest(),
            notes=tuple(note for problems in gathered for note in problems.notes),
        )

    def written(self, files: Files, progress: Progress) -> Files:
        """Return the files whose boxes or status lines change."""
        sets = _sets(files)
        found = {file: _markdown(files[file], file) for one in sets for file in one.names}
        changed: dict[str, bytes] = {}
        if len(files) == 1 and phases_in(found[next(iter(found))]):
            changed = {file: with_statuses(markdown, progress.items) for file, markdown in found.items()}
            sets = ()
        for one in sets:
            listed = listed_in(found, one)
            ticked: dict[str, dict[int, ItemProgress]] = {}
            for phase in one.phases:
                standing = progress.items.get(_key(phase.name))
                if standing is None:
                    continue
                if (place := listed.get(PurePosixPath(phase.name).stem)) is not None:
                    ticked.setdefault(place[0], {})[place[1]] = standing
                else:
                    said = _said(found, one, phase)
                    changed[phase.name] = _with_status(found[phase.name], said, standing)
            changed |= {file: ticked_at(found[file], places) for file, places in ticked.items()}
        return {file: content for file, content in changed.items() if content != files[file]}


def _sets(files: Files) -> tuple[PhaseSet, ...]:
    """Return the sets among these files; one file is a plan by itself, whatever it is called."""
    sets = phase_sets(files, alone=True)
    if sets or len(files) != 1:
        return sets
    (name,) = files
    return (PhaseSet(prefix=_key(name), overviews=(), phases=(PhaseFile(name=name, number=1),)),)


def _left_out(place: Path, chosen: tuple[PhaseSet, ...]) -> tuple[str, ...]:
    """Return the files beside the chosen sets that look like one of their phases, or like a plan."""
    if place.is_dir():
        return left_out(_names(place), chosen)[:_MOST_LEFT]
    if not any(place.name in one.overviews for one in chosen):
        return ()
    beside = sorted(path.name for path in place.parent.iterdir() if path.is_file())
    prefix = f"{chosen[0].prefix}-"
    return tuple(one for one in left_out(beside, phase_sets(beside)) if one.startswith(prefix))[:_MOST_LEFT]


def _one_file(file: str, markdown: Markdown, name: str) -> PlannedWork:
    """Return a task for each phase of a file."""
    problems = Problems(_called(name, file))
    phases = phases_in(markdown)
    standing = standings(markdown, phases)
    tasks: list[PlannedTask] = []
    for phase in phases:
        if "~" in phase.key:
            told = f"there is a {phase.key.partition('~')[0]} already, so this phase is called {phase.key}"
            problems.warn(phase.start + 1, "", told)
        task = _phase_task(markdown, (phase.start, phase.end), standing[phase.key], problems)
        title = phase.title[:MAX_TITLE]
        manual = task.manual or is_manual_heading(title)
        task = replace(task, key=phase.key, title=title, phase=title, manual=manual)
        tasks.append(_behind(task, tasks[-1] if tasks else None))
    context = around(markdown, phases)
    if len(context) > MAX_DESCRIPTION:
        problems.note(1, "", f"the text around the phases has more than {MAX_DESCRIPTION} characters")
    refuse(name, problems)
    said = (f"{task.key}\0{task.description}" for task in tasks)
    return PlannedWork(
        title=_heading(markdown)[:MAX_TITLE] or PurePosixPath(file).stem,
        tasks=tuple(tasks),
        context=context,
        documents=(file,),
        sha256=hashlib.sha256("\0".join((context, *said)).encode()).hexdigest(),
        notes=problems.notes,
    )


def _phase_task(
    markdown: Markdown, lines: tuple[int, int], standing: Standing, problems: Problems
) -> PlannedTask:
    """Return the task of a phase between its heading (-1: the whole file) and a line, without its names."""
    start, end = lines
    first = max(start, 0)
    text = text_of(markdown.lines[first:end])
    measured = measured_by(markdown, start, end)
    if len(text) > MAX_DESCRIPTION:
        problems.note(first + 1, "", f"a phase has at most {MAX_DESCRIPTION} characters")
    if standing.note:
        problems.warn(first + 1, "", standing.note)
    if standing.ask:
        problems.warn(first + 1, "", f"Loopwright asks you whether this phase is done. {standing.ask}")
    elif measured.manual and standing.mark in _TO_DO:
        problems.warn(first + 1, "", f"{_counted(measured.manual)} left to you, not given to the agent")
    return PlannedTask(
        key="",
        title="",
        description=text,
        criteria=measured.criteria,
        acceptance=measured.acceptance,
        manual=bool(standing.ask),
        mark=standing.mark,
        commit=standing.commit if standing.mark is Mark.DONE else None,
        reason=standing.reason if standing.mark is Mark.BLOCKED else "",
        line=first + 1,
    )


def _counted(manual: tuple[str, ...]) -> str:
    return "1 manual check is" if len(manual) == 1 else f"{len(manual)} manual checks are"


def _behind(task: PlannedTask, before: PlannedTask | None) -> PlannedTask:
    """Return a phase that needs the phase before it; one that waits for a person only comes first."""
    if before is None:
        return task
    key = (before.key,)
    return replace(task, after=key) if before.manual else replace(task, depends_on=key)


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
    """Return a file whose phases can be read, or raise `BadPlan`."""
    try:
        markdown = read_markdown(content)
        phases_in(markdown)
        return markdown
    except Unreadable as broken:
        raise located_at(name, broken) from broken


def _called(name: str, file: str) -> str:
    """Return what a person calls one of the files."""
    path = PurePosixPath(name)
    return str(path.with_name(file) if path.name.casefold().endswith(".md") else path / file)


def _key(name: str) -> str:
    return name[: -len(".md")]


def _task(name: str, markdown: Markdown, standing: Standing, problems: Problems) -> PlannedTask:
    task = _phase_task(markdown, (-1, len(markdown.lines)), standing, problems)
    if not task.description:
        problems.note(1, "", "the phase is empty: say what is to be done")
    if len(_key(name)) > MAX_ID:
        problems.note(1, "", f"the name of a phase has at most {MAX_ID} characters")
    stem = PurePosixPath(name).stem
    return replace(task, key=_key(name), title=(_heading(markdown) or stem)[:MAX_TITLE], phase=stem)


def _heading(markdown: Markdown) -> str:
    found = (line.words for line in markdown.lines if line.kind is Kind.HEADING and line.level == 1)
    return without_comments(next(found, ""))[0]


def _title(found: dict[str, Markdown], sets: tuple[PhaseSet, ...]) -> str:
    if len(sets) != 1:
        return f"{len(sets)} plans"
    heading = next((words for name in sets[0].overviews if (words := _heading(found[name]))), "")
    return heading[:MAX_TITLE] or PurePosixPath(sets[0].prefix).name or "Phases"


def _standing(
    found: dict[str, Markdown], one: PhaseSet, listed: dict[str, tuple[str, int]], phase: PhaseFile
) -> Standing:
    place = listed.get(PurePosixPath(phase.name).stem)
    if place is not None:
        return standing_at(found[place[0]], place[1])
    markdown = found[phase.name]
    return standing_in(markdown, -1, len(markdown.lines), _said(found, one, phase))


def _said(found: dict[str, Markdown], one: PhaseSet, phase: PhaseFile) -> tuple[Said, ...]:
    """Return what a phase's file and the tables of its overviews say about it."""
    markdown = found[phase.name]
    tables = [said_in_tables(found[file]).get(str(phase.number), Said.NOTHING) for file in one.overviews]
    return (said_in_plan(markdown, _first_section(markdown)), *tables)


def _first_section(markdown: Markdown) -> int:
    """Return the line of the first heading below the title: status lines are above it."""
    return next((one.line for one in markdown.sections if one.level > 1), len(markdown.lines))


def _with_status(markdown: Markdown, said: tuple[Said, ...], standing: ItemProgress) -> bytes:
    """Return a phase's file with its line of status below the heading, or above everything."""
    rows: Rows = [(line.text, ending) for line, ending in zip(markdown.lines, markdown.endings, strict=True)]
    titles = (at + 1 for at in range(len(markdown.lines)) if _is_title(markdown, at))
    own = own_standing(markdown, -1, len(markdown.lines), said)
    write_status(rows, status_at(markdown.lines), next(titles, markdown.front), own, standing)
    return markdown.joined(rows)


def _is_title(markdown: Markdown, at: int) -> bool:
    """Return whether this is the heading's last line: the one below it when it is underlined."""
    line = markdown.lines[at]
    if line.kind is Kind.COMMENT and at and markdown.lines[at - 1].kind is Kind.HEADING:
        return not line.text.strip().strip("=")
    return line.kind is Kind.HEADING and line.level == 1 and line.text.lstrip().startswith("#")
