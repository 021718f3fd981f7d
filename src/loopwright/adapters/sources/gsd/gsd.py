"""The plans of a GSD phase: tasks are elements, and a plan with a summary beside it is finished."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Final

from loopwright.adapters.sources.checklists.source import MAX_CONTEXT, MAX_TASKS, called
from loopwright.adapters.sources.checklists.tasks import bounded
from loopwright.adapters.sources.gsd.roadmap import FOLDER, RoadmapSource
from loopwright.adapters.sources.spec.plan_format import MAX_CRITERION, MAX_DESCRIPTION, MAX_TITLE
from loopwright.adapters.sources.text.criteria import acceptance, runnable
from loopwright.adapters.sources.text.located import Located, check_text, inner, plain, read_yaml, words
from loopwright.adapters.sources.text.meaning import fingerprint
from loopwright.adapters.sources.text.plan_file import decoded_lines
from loopwright.adapters.sources.text.problems import Problems, Unreadable, refuse
from loopwright.adapters.sources.text.reading import located_at, read_file, start_of
from loopwright.adapters.sources.text.titles import plain_title
from loopwright.config.nearest import quoted
from loopwright.core.values.errors import BadPlan
from loopwright.ports import Files, Mark, PlannedTask, PlannedWork, Progress, Source

_PLAN: Final = re.compile(r"(?:(?P<id>[0-9]{1,3}(?:\.[0-9]{1,2})?-[0-9]{1,3})-)?PLAN\.md$")
_TASK: Final = re.compile(r"^[ \t]*<task\b([^>\n]{0,300})>", re.MULTILINE)
_END: Final = re.compile(r"^[ \t]*</task>|</task>[ \t]*$", re.MULTILINE)
_KIND: Final = re.compile(r"\btype=[\"']?([\w:-]+)")
_STATUS: Final = re.compile(r"[ \t]+status=[\"']([\w-]*)[\"']")
_NUMBERED: Final = re.compile(
    r"Task[ \t]+([0-9]{1,3}(?:\.[0-9]{1,3})?[a-z]?)[ \t]*[:.–—-][ \t]*", re.IGNORECASE
)
_SUMMARY: Final = "SUMMARY.md"
_CHECKPOINT: Final = "checkpoint"
_DONE: Final = "done"
_CONTEXT: Final = ("objective", "context", "interfaces", "constraints", "verification", "success_criteria")
_MAX_FILES: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class _Element:
    """One `<task>` of a plan."""

    start: int
    """Where its attributes begin."""
    attributes: str
    body: str
    line: int


_ROADMAP: Final = RoadmapSource()


class GsdSource(Source):
    """Reads one plan, all plans of a phase, or the roadmap."""

    kind = "gsd"
    usual_places: ClassVar = (f"{FOLDER}/phases/*/*-PLAN.md", f"{FOLDER}/ROADMAP.md")

    def canonical(self, place: Path) -> Path:
        """Return the roadmap of a project."""
        return _ROADMAP.canonical(place) if _ROADMAP.recognises(place) else place

    def recognises(self, place: Path) -> bool:
        """Take a plan with `<task>` elements, a folder of such plans, and a roadmap."""
        if _ROADMAP.recognises(place):
            return True
        if place.is_dir():
            return any(self.recognises(one) for one in _plans(place))
        return (
            place.is_file() and _PLAN.search(place.name) is not None and bool(_TASK.search(start_of(place)))
        )

    def files(self, place: Path) -> Files:
        """Return the plans, and the summaries of those that are finished; or the roadmap."""
        if _ROADMAP.recognises(place):
            return _ROADMAP.files(place)
        plans = _plans(place) if place.is_dir() else [place]
        if not plans or len(plans) > _MAX_FILES:
            raise BadPlan(place.name, (f"expected between 1 and {_MAX_FILES} files NN-MM-PLAN.md here",))
        summaries = (one.with_name(_summary(one.name)) for one in plans)
        return {one.name: read_file(one) for one in (*plans, *(two for two in summaries if two.is_file()))}

    def status_files(self, files: Files) -> tuple[str, ...]:
        """Return the plans: a summary is its author's."""
        return tuple(name for name in files if not name.endswith(_SUMMARY))

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
            text = _text(files[file], called(name, file))
            found = _tasks(text, _prefix(file) if len(plans) > 1 else "", problems)
            if _summary(file) in files:
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
        """Return the plans in which a task gets `status="done"`, or loses it; in the roadmap, boxes."""
        if _is_roadmap(files):
            return _ROADMAP.written(files, progress)
        plans = self.status_files(files)
        changed: dict[str, bytes] = {}
        for file in plans:
            text = _text(files[file], file)
            prefix = _prefix(file) if len(plans) > 1 else ""
            parts: list[str] = []
            at = 0
            for key, element in zip(_keys(text, prefix), _elements(text), strict=True):
                item = progress.items.get(key)
                if item is None or (item.mark is Mark.DONE) is (_mark(element) is Mark.DONE):
                    continue
                bare = _STATUS.sub("", element.attributes)
                said = f'{bare} status="{_DONE}"' if item.mark is Mark.DONE else bare
                parts += (text[at : element.start], said)
                at = element.start + len(element.attributes)
            mark = "\ufeff" if files[file].startswith(b"\xef\xbb\xbf") else ""
            content = (mark + "".join((*parts, text[at:]))).encode()
            if content != files[file]:
                changed[file] = content
        return changed


def _is_roadmap(files: Files) -> bool:
    return len(files) == 1 and next(iter(files)).endswith(RoadmapSource.file_name)


def _plans(folder: Path) -> list[Path]:
    return sorted(one for one in folder.glob("*PLAN.md") if _PLAN.fullmatch(one.name))


def _summary(name: str) -> str:
    return f"{name.removesuffix('PLAN.md')}{_SUMMARY}"


def _prefix(name: str) -> str:
    match = _PLAN.search(name)
    return (match["id"] or "plan") if match is not None else name


def _text(content: bytes, name: str) -> str:
    try:
        return check_text(decoded_lines(content), 1)
    except Unreadable as broken:
        raise located_at(name, broken) from broken


def _elements(text: str) -> Iterator[_Element]:
    at, line = 0, 1
    while (start := _TASK.search(text, at)) is not None:
        end = _END.search(text, start.end())
        stop = end.start() if end is not None else len(text)
        line += text.count("\n", at, start.start(1))
        yield _Element(start=start.start(1), attributes=start[1], body=text[start.end() : stop], line=line)
        line += text.count("\n", start.start(1), stop)
        at = stop


def _keys(text: str, prefix: str) -> list[str]:
    """Return a key for each task: the number in its name, else its place in the plan."""
    keys: list[str] = []
    for place, element in enumerate(_elements(text), start=1):
        match = _NUMBERED.match(_inside(element.body, "name") or _first_words(element.body))
        number = match[1] if match is not None else str(place)
        key = f"{prefix}.{number}" if prefix else number
        keys.append(key if key not in keys[-200:] else f"{key}~{place}")
    return keys


def _inside(body: str, tag: str) -> str:
    start = body.find(f"<{tag}>")
    end = body.find(f"</{tag}>", start)
    return body[start + len(tag) + 2 : end].strip() if 0 <= start < end else ""


def _first_words(body: str) -> str:
    """Return the first line of a task that has no name; empty if it begins with another element."""
    first = next((line.strip() for line in body.splitlines() if line.strip()), "")
    bold = re.match(r"\*\*(.+?)\*\*", first)
    return "" if first.startswith("<") else plain_title(bold[1] if bold is not None else first)


def _mark(element: _Element) -> Mark:
    said = _STATUS.search(element.attributes)
    return Mark.DONE if said is not None and said[1] in (_DONE, "complete", "completed") else Mark.OPEN


def _tasks(text: str, prefix: str, problems: Problems) -> list[PlannedTask]:
    found: list[PlannedTask] = []
    for key, element in zip(_keys(text, prefix), _elements(text), strict=True):
        if len(found) == MAX_TASKS:
            problems.note(element.line, "", f"a plan has at most {MAX_TASKS} tasks")
            break
        kind = match[1] if (match := _KIND.search(element.attributes)) is not None else "auto"
        manual = kind.startswith(_CHECKPOINT)
        title = _NUMBERED.sub("", _inside(element.body, "name"), count=1)
        title = title or next(
            filter(None, (_inside(element.body, tag) for tag in ("decision", "what-built", "what"))), ""
        )
        title = title or _NUMBERED.sub("", _first_words(element.body), count=1)
        if not title:
            problems.note(
                element.line, "", f"task {quoted(key)} has no <name>: write what is to be done there"
            )
        done, verify = _inside(element.body, "done"), _inside(element.body, "verify")
        criteria = tuple(one[:MAX_CRITERION] for one in (done, verify) if one and "<" not in one)
        automated = _inside(verify, "automated")
        gates = runnable([automated]) if automated and "\n" not in automated else acceptance(criteria)
        found.append(
            PlannedTask(
                key=key,
                title=" ".join(title.split())[:MAX_TITLE],
                description=bounded(element.body.strip(), MAX_DESCRIPTION),
                criteria=criteria,
                acceptance=() if manual else gates,
                after=(found[-1].key,) if found else (),
                manual=manual,
                phase=prefix,
                type=kind,
                mark=_mark(element),
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
    parts = ((tag, _inside(text, tag)) for tag in _CONTEXT)
    return "\n\n".join(f"{tag.replace('_', ' ').capitalize()}:\n\n{said}" for tag, said in parts if said)
