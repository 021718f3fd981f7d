"""The plans of a GSD phase: tasks are elements, and a plan with a summary beside it is finished."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Final

from loopwright.adapters.sources.checklists.source import MAX_CONTEXT, MAX_TASKS, called
from loopwright.adapters.sources.checklists.tasks import bounded
from loopwright.adapters.sources.gsd.plan_text import (
    TASK,
    Element,
    elements,
    has_headings,
    inside,
    keys,
    plan_text,
    titled,
)
from loopwright.adapters.sources.gsd.roadmap import FOLDER, RoadmapSource
from loopwright.adapters.sources.gsd.summary import (
    SUMMARY,
    is_ours,
    says_complete,
    summary_of,
    summary_text,
)
from loopwright.adapters.sources.spec.plan_format import MAX_CRITERION, MAX_DESCRIPTION, MAX_TITLE
from loopwright.adapters.sources.text.criteria import acceptance, runnable
from loopwright.adapters.sources.text.located import Located, inner, plain, read_yaml, words
from loopwright.adapters.sources.text.meaning import fingerprint
from loopwright.adapters.sources.text.plan_file import content
from loopwright.adapters.sources.text.problems import Problems, Unreadable, refuse
from loopwright.adapters.sources.text.reading import read_file, start_of
from loopwright.config.nearest import quoted
from loopwright.core.values.errors import BadPlan
from loopwright.ports import Files, Mark, PlannedTask, PlannedWork, Progress, Source

_PLAN: Final = re.compile(r"(?:(?P<id>[0-9]{1,3}(?:\.[0-9]{1,2})?(?:-[A-Za-z0-9]{1,40}){0,8})-)?PLAN\.md")
"""Also `06-03a-PLAN.md` and `06-gap-fixes-PLAN.md`."""
_KIND: Final = re.compile(r"\btype=[\"']?([\w:-]+)")
_CHECKPOINT: Final = "checkpoint"
_CONTEXT: Final = ("objective", "context", "interfaces", "constraints", "verification", "success_criteria")
_MAX_FILES: Final = 200
_SHIPPED: Final = (FOLDER, "milestones")
_ROADMAP: Final = RoadmapSource()


class GsdSource(Source):
    """Reads one plan, all plans of a phase, or the roadmap."""

    kind = "gsd"
    format_name = "GSD"
    usual_places: ClassVar = (f"{FOLDER}/phases/*/*-PLAN.md", f"{FOLDER}/ROADMAP.md")

    def canonical(self, place: Path) -> Path:
        """Return the roadmap of a project."""
        return _ROADMAP.canonical(place) if _ROADMAP.recognises(place) else place

    def recognises(self, place: Path) -> bool:
        """Take a plan with `<task>` elements, or headings in the folder of GSD; a folder of plans, and a roadmap."""
        if _ROADMAP.recognises(place):
            return True
        if place.is_dir():
            return any(self.recognises(one) for one in _plans(place))
        if not place.is_file() or not place.name.endswith("PLAN.md"):
            return False
        return TASK.search(start_of(place)) is not None or (
            FOLDER in place.absolute().parts and _has_headings(place)
        )

    def files(self, place: Path) -> Files:
        """Return the plans, and the summaries of those that are finished; or the roadmap."""
        if _ROADMAP.recognises(place):
            return _ROADMAP.files(place)
        plans = _plans(place) if place.is_dir() else [place]
        if not plans or len(plans) > _MAX_FILES:
            raise BadPlan(place.name, (f"expected between 1 and {_MAX_FILES} files NN-MM-PLAN.md here",))
        summaries = (one.with_name(summary_of(one.name)) for one in plans)
        return {one.name: read_file(one) for one in (*plans, *(two for two in summaries if two.is_file()))}

    def status_files(self, files: Files) -> tuple[str, ...]:
        """Return the plans: a summary says only that its plan is finished."""
        return tuple(name for name in files if not name.endswith(SUMMARY))

    def created(self, files: Files) -> tuple[str, ...]:
        """Return the summaries of the plans that have none."""
        plans = () if _is_roadmap(files) else self.status_files(files)
        return tuple(one for one in map(summary_of, plans) if one not in files)

    def finished(self, place: Path) -> str:
        """Return that a plan is one of a shipped milestone: GSD moves those."""
        return "this milestone is shipped" if _SHIPPED in pairwise(place.absolute().parts) else ""

    def documents(self, place: Path) -> tuple[str, ...]:
        """Return what the phase and the project say about the work."""
        if _ROADMAP.recognises(place):
            return _ROADMAP.documents(place)
        folder = place if place.is_dir() else place.parent
        beside = [path.name for end in ("CONTEXT", "RESEARCH") for path in sorted(folder.glob(f"*{end}.md"))]
        above = [
            name
            for name in ("PROJECT.md", "ROADMAP.md", "REQUIREMENTS.md")
            if (folder / "../.." / name).is_file()
        ]
        return (*beside[:4], *(f"../../{name}" for name in above))

    def parse(self, files: Files, name: str) -> PlannedWork:
        """Return the work, or raise `BadPlan` with located problems."""
        if _is_roadmap(files):
            return _ROADMAP.parse(files, name)
        plans = self.status_files(files)
        gathered: list[Problems] = []
        tasks: list[PlannedTask] = []
        context: list[str] = []
        for file in plans:
            problems = Problems(called(name, file))
            gathered.append(problems)
            text = plan_text(files[file], called(name, file))
            found = _tasks(text, _prefix(file) if len(plans) > 1 else "", problems)
            summary = files.get(summary_of(file))
            if summary is not None and not is_ours(summary):
                found = [replace(task, mark=Mark.DONE) for task in found]
            tasks += _following(found, tasks, _front(text), many=len(plans) > 1)
            context.append(_around(text))
        refuse(name, *gathered)
        known = {task.key for task in tasks}
        tasks = [
            replace(one, depends_on=tuple(key for key in one.depends_on if key in known)) for one in tasks
        ]
        whole = bounded("\n\n".join(context), MAX_CONTEXT)
        title = f"GSD {_prefix(plans[0])}" if len(plans) == 1 else name
        return PlannedWork(
            title=title,
            tasks=tuple(tasks),
            context=whole,
            sha256=fingerprint(tasks, whole),
            notes=tuple(note for one in gathered for note in one.notes),
        )

    def written(self, files: Files, progress: Progress) -> Files:
        """Return the plans in which a task is marked, with the summaries of finished ones; in the roadmap, boxes."""
        if _is_roadmap(files):
            return _ROADMAP.written(files, progress)
        plans = self.status_files(files)
        changed: dict[str, bytes] = {}
        for file in plans:
            text = plan_text(files[file], file)
            prefix = _prefix(file) if len(plans) > 1 else ""
            tasks = list(zip(keys(text, prefix), elements(text), strict=True))
            marked = _marked(text, tasks, progress)
            if marked != text:
                bom = "\ufeff" if files[file].startswith(b"\xef\xbb\xbf") else ""
                changed[file] = (bom + marked).encode()
            summary = _summary(files.get(summary_of(file)), file, text, tasks, progress)
            if summary is not None:
                changed[summary_of(file)] = summary
        return changed


def _is_roadmap(files: Files) -> bool:
    return len(files) == 1 and next(iter(files)).endswith(RoadmapSource.file_name)


def _plans(folder: Path) -> list[Path]:
    return sorted(one for one in folder.glob("*PLAN.md") if _PLAN.fullmatch(one.name))


def _has_headings(place: Path) -> bool:
    try:
        return has_headings(content(place))
    except Unreadable:
        return False


def _marked(text: str, tasks: Sequence[tuple[str, Element]], progress: Progress) -> str:
    """Return a plan with the status of its tasks."""
    parts: list[str] = []
    at = 0
    for key, element in tasks:
        item = progress.items.get(key)
        if item is None or (item.mark is Mark.DONE) is (element.mark is Mark.DONE):
            continue
        parts += (text[at : element.start], element.marked(done=item.mark is Mark.DONE))
        at = element.start + len(element.attributes)
    return "".join((*parts, text[at:]))


def _summary(
    present: bytes | None, file: str, text: str, tasks: Sequence[tuple[str, Element]], progress: Progress
) -> bytes | None:
    """Return the summary of a plan if it is to be written; what another author wrote stays."""
    if not any(key in progress.items for key, _ in tasks) or (present is not None and not is_ours(present)):
        return None
    marks = [progress.items[key].mark if key in progress.items else one.mark for key, one in tasks]
    complete = all(mark is Mark.DONE for mark in marks)
    if complete is (present is not None and says_complete(present)) or (present is None and not complete):
        return None
    rows = [
        (key.rpartition(".")[2], titled(one.body), progress.items.get(key))
        for (key, one), mark in zip(tasks, marks, strict=True)
        if mark is Mark.DONE
    ]
    return summary_text(file.removesuffix(".md"), _front(text), rows, complete=complete)


def _prefix(name: str) -> str:
    match = _PLAN.fullmatch(name)
    return (match["id"] or "plan") if match is not None else name.removesuffix(".md")


def _tasks(text: str, prefix: str, problems: Problems) -> list[PlannedTask]:
    found: list[PlannedTask] = []
    for key, element in zip(keys(text, prefix), elements(text), strict=True):
        if len(found) == MAX_TASKS:
            problems.note(element.line, "", f"a plan has at most {MAX_TASKS} tasks")
            break
        kind = match[1] if (match := _KIND.search(element.attributes)) is not None else "auto"
        manual = kind.startswith(_CHECKPOINT)
        title = titled(element.body)
        if not title:
            problems.note(
                element.line, "", f"task {quoted(key)} has no <name>: write what is to be done there"
            )
        done, verify = inside(element.body, "done"), inside(element.body, "verify")
        criteria = tuple(one[:MAX_CRITERION] for one in (done, verify) if one and "<" not in one)
        automated = inside(verify, "automated")
        gates = runnable([automated]) if automated and "\n" not in automated else acceptance(criteria)
        found.append(
            PlannedTask(
                key=key,
                title=title[:MAX_TITLE],
                description=bounded(element.body.strip(), MAX_DESCRIPTION),
                criteria=criteria,
                acceptance=() if manual else gates,
                after=(found[-1].key,) if found else (),
                manual=manual,
                phase=prefix,
                type=kind,
                mark=element.mark,
                line=element.line,
            )
        )
    if not found:
        problems.note(1, "", 'found no task here: write each as <task type="auto"><name>…</name>…</task>')
    return found


def _front(text: str) -> Mapping[str, object]:
    """Return the wave and the dependencies of a plan."""
    end = text.find("\n---", 3)
    if not text.startswith("---") or end < 0:
        return {}
    try:
        front = read_yaml(text[3:end])
    except Unreadable:
        return {}  # the tasks are readable without it, and the order of the files is that of the phase
    needs = plain(front, "depends_on", [])
    return {
        "depends_on": [str(one) for one in needs] if isinstance(needs, list) else [],
        "wave": _wave(front),
        "phase": words(front, "phase"),
        "plan": words(front, "plan"),
        "requirements": plain(front, "requirements", []),
    }


def _wave(front: Located) -> int:
    found = inner(front, "wave")
    return found.value if found is not None and isinstance(found.value, int) else len(words(front, "wave"))


def _following(
    found: list[PlannedTask], before: list[PlannedTask], front: Mapping[str, object], *, many: bool
) -> list[PlannedTask]:
    """Return the tasks of a plan, behind those of the plans that it depends on."""
    needs = front.get("depends_on")
    if not many or not found or not isinstance(needs, list):
        return found
    waited = tuple(
        task.key
        for task in before
        if any(task.phase == one or task.phase.rpartition("-")[2] == one for one in needs)
    )
    return [replace(found[0], depends_on=waited), *found[1:]] if waited else found


def _around(text: str) -> str:
    """Return what a plan says to all of its tasks."""
    parts = ((tag, inside(text, tag)) for tag in _CONTEXT)
    return "\n\n".join(f"{tag.replace('_', ' ').capitalize()}:\n\n{said}" for tag, said in parts if said)
