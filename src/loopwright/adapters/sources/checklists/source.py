"""A source that is one Markdown file of tasks, with documents beside it."""

import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import ClassVar, Final

from loopwright.adapters.sources.checklists.entries import Entry, open_asides, plain
from loopwright.adapters.sources.spec.plan_format import MAX_CRITERION, MAX_DESCRIPTION, MAX_ID, MAX_TITLE
from loopwright.adapters.sources.text.criteria import acceptance
from loopwright.adapters.sources.text.manual_titles import is_manual
from loopwright.adapters.sources.text.markdown import MARKS, Kind, Markdown, read_markdown
from loopwright.adapters.sources.text.markdown_edits import MarkdownEdits
from loopwright.adapters.sources.text.meaning import fingerprint
from loopwright.adapters.sources.text.problems import Problems, refuse
from loopwright.adapters.sources.text.reading import located_at, read_file
from loopwright.adapters.sources.text.titles import slug, without_comments
from loopwright.adapters.sources.text.unreadable import Unreadable
from loopwright.config.nearest import quoted
from loopwright.core.policy.graph import find_cycle
from loopwright.core.values.errors import BadPlan
from loopwright.ports import Files, Mark, PlannedTask, PlannedWork, Progress, Source

MAX_TASKS: Final = 5_000
MAX_CONTEXT: Final = 12_000
MAX_SECTION: Final = 4_000
_MAX_ORDER: Final = 50_000
"""How many pairs the order of the file may make."""
_WAITS: Final = r"(?:depends(?:[ _]on)?|dependenc(?:y|ies)|deps|blocked[ _]by|blockers?|requires|after)"
_IN_BRACKETS: Final = re.compile(rf"\({_WAITS}[: \t]+([^()]{{1,300}})\)", re.IGNORECASE)
_AS_LABEL: Final = re.compile(
    rf"^[-*+_ \t]{{0,6}}{_WAITS}[*_]{{0,2}}[ \t]*:[*_]{{0,2}}[ \t]*(.{{1,300}})$", re.IGNORECASE
)
_NOTHING_ELSE: Final = re.compile(r"(?:[\s,;&#`*_.–—-]|\b(?:and|tasks?|to|through)\b)*", re.IGNORECASE)
_RANGE: Final = re.compile(
    r"\b([A-Za-z-]{0,10})([0-9]{1,4})[ \t]*(?:-|–|—|\.\.|to|through)[ \t]*\1([0-9]{1,4})\b(?!\.)"
)
_REFERENCE: Final = re.compile(
    r"\b(?:[A-Z][A-Z0-9]{0,9}-)?T?-?[0-9]{1,5}(?:\.[0-9]{1,4}){0,5}[a-z]?\b|\b[A-Z][A-Z0-9]{0,9}-[0-9]{1,6}\b"
)
_FINISHED_SIGN: Final = " ✅"
_RULE: Final = re.compile(r"(?m)^-{3,}$\n?")
_MOST_LINES: Final = 300
"""How many lines of a section its tasks get."""


class ChecklistSource(Source):
    """Reads the tasks of one Markdown file and ticks their boxes."""

    file_name: ClassVar[str] = "tasks.md"
    """What the file is called in a folder of this form."""
    beside: ClassVar[tuple[str, ...]] = ()
    """Glob patterns of the documents beside the file that agents should read."""
    marks: ClassVar[Mapping[str, Mark]] = MARKS
    """What each sign in a box says."""
    signs: ClassVar[Mapping[Mark, str]] = {Mark.OPEN: " ", Mark.DONE: "x"}
    """What is written into a box. A mark without a sign leaves the box open: the tool of the form knows no other."""

    @abstractmethod
    def is_like(self, file: Path) -> bool:
        """Return whether a file is in this form."""

    @abstractmethod
    def entries(self, markdown: Markdown) -> list[Entry]:
        """Return the tasks of a file."""

    def recognises(self, place: Path) -> bool:
        """Take the file, and the folder that it is in."""
        file = place / self.file_name if place.is_dir() else place
        return file.suffix.casefold() == ".md" and file.is_file() and self.is_like(file)

    def files(self, place: Path) -> Files:
        """Return the file of tasks."""
        file = place / self.file_name if place.is_dir() else place
        return {file.name: read_file(file)}

    def documents(self, place: Path) -> tuple[str, ...]:
        """Return the documents of the form that are beside the file."""
        folder = place if place.is_dir() else place.parent
        own = self.file_name if place.is_dir() else place.name
        found = (path for pattern in self.beside for path in sorted(folder.glob(pattern)) if path.is_file())
        return tuple(
            dict.fromkeys(path.relative_to(folder).as_posix() for path in found if path.name != own)
        )[:20]

    def parse(self, files: Files, name: str) -> PlannedWork:
        """Return the work, or raise `BadPlan` with located problems."""
        file, content = _only(files, self.file_name)
        shown = called(name, file)
        markdown = _markdown(content, shown)
        problems = Problems(shown)
        entries = self.entries(markdown)
        self.check(markdown, entries, problems)
        refuse(shown, problems)
        keys = unique_keys(entries, markdown, problems)
        tasks = self.finished(markdown, self._tasks(markdown, entries, keys, problems), name, problems)
        refuse(shown, problems)
        blank = [replace(task, description=_unmarked(task.description)) for task in tasks]
        title = self.title(markdown) or PurePosixPath(name).parent.name or PurePosixPath(name).stem
        context = self.context(markdown, entries)
        return PlannedWork(
            title=title[:MAX_TITLE],
            tasks=tuple(tasks),
            context=context,
            sha256=fingerprint(blank, title, context),
            notes=problems.notes,
        )

    def check(self, markdown: Markdown, entries: Sequence[Entry], problems: Problems) -> None:
        """Take down what makes the file unusable, and what was guessed about it."""
        if not entries:
            problems.note(
                1, "", "there is no task here: write each as a line such as `- [ ] Add the login form`"
            )
        if len(entries) > MAX_TASKS:
            problems.note(entries[MAX_TASKS].line + 1, "", f"a file has at most {MAX_TASKS} tasks")
        for line, title in open_asides(markdown, entries, self.marks):
            problems.warn(line + 1, "", f"the boxes under {quoted(title)} are read as text, not as tasks")

    def title(self, markdown: Markdown) -> str:
        """Return what the plan is called."""
        return re.sub(
            r"^(?:implementation )?(?:tasks|plan)[ \t]*[:–—-][ \t]*", "", markdown.title, flags=re.IGNORECASE
        )

    def context(self, markdown: Markdown, entries: Sequence[Entry]) -> str:
        """Return the text above the first section that has tasks."""
        first = min((_outer(markdown, entry) for entry in entries), default=0)
        line = max(markdown.sections[first].line, 0)
        return bounded(_Prose(markdown).text(markdown.front, line), MAX_CONTEXT)

    def finished(
        self, markdown: Markdown, tasks: list[PlannedTask], name: str, problems: Problems
    ) -> list[PlannedTask]:
        """Return the tasks with what the form says about the whole file."""
        del markdown, name, problems
        return tasks

    def written(self, files: Files, progress: Progress) -> Files:
        """Return the file with the boxes that change."""
        file, content = _only(files, self.file_name)
        markdown = _markdown(content, file)
        entries = self.entries(markdown)
        edits = MarkdownEdits(markdown)
        done = (
            next((one.box for one in markdown.items if one.box in ("x", "X")), None) or self.signs[Mark.DONE]
        )
        for key, entry in zip(unique_keys(entries, markdown, Problems(file)), entries, strict=True):
            item = progress.items.get(key)
            if item is not None:
                self._tell(edits, markdown, entry, item.mark, done)
        changed = edits.content
        return {file: changed} if changed != content else {}

    def _tell(self, edits: MarkdownEdits, markdown: Markdown, entry: Entry, mark: Mark, done: str) -> None:
        wanted = mark if mark in self.signs else Mark.OPEN
        if entry.mark is wanted or (
            Mark.DONE not in (entry.mark, wanted) and not self._moves(entry.mark, wanted)
        ):
            return
        sign = done if wanted is Mark.DONE else self.signs[wanted]
        if entry.box is not None:
            edits.set_box(entry.box, sign)
        if Mark.DONE not in (entry.mark, wanted):
            return
        for line in entry.below:
            is_done = self.marks.get(markdown.lines[line].box or "") is Mark.DONE
            if is_done is not (wanted is Mark.DONE):
                edits.set_box(line, done if wanted is Mark.DONE else " ")
        if entry.box is None and (not entry.below or wanted is not Mark.DONE):
            text = edits.text(entry.line).rstrip()
            bare = text.removesuffix(_FINISHED_SIGN)
            edits.replace(entry.line, f"{bare}{_FINISHED_SIGN}" if wanted is Mark.DONE else bare)

    def _moves(self, present: Mark, wanted: Mark) -> bool:
        """Return whether the form has a sign for work in progress that changes."""
        return Mark.RUNNING in self.signs and {present, wanted} == {Mark.OPEN, Mark.RUNNING}

    def _tasks(
        self, markdown: Markdown, entries: Sequence[Entry], keys: Sequence[str], problems: Problems
    ) -> list[PlannedTask]:
        known: dict[str, str] = {}
        for key, entry in zip(keys, entries, strict=True):
            known.setdefault(entry.name or key, key)
        needs = _without_cycles(
            {
                key: self._needs(markdown, entry, key, known, problems)
                for key, entry in zip(keys, entries, strict=True)
            },
            problems,
        )
        after = order(entries, keys)
        optional = [
            key for key, entry in zip(keys, entries, strict=True) if entry.optional and _is_open(entry.mark)
        ]
        if optional:
            shown = ", ".join(optional[:5]) + (", …" if len(optional) > 5 else "")
            problems.warn(
                1, "", f"optional tasks are skipped: {shown}; remove the * behind the box to have one done"
            )
        inner = sum(1 for entry in entries if entry.hidden and _is_open(entry.mark))
        if inner:
            problems.warn(
                1, "", f"{inner} tasks have optional parts, which are left out: remove the * to include one"
            )
        prose = _Prose(markdown)
        parts = _parts(known)
        return [
            PlannedTask(
                key=key,
                title=entry.title[:MAX_TITLE],
                description=_description(markdown, entry, parts.get(entry.name, ())),
                criteria=tuple(one[:MAX_CRITERION] for one in entry.criteria),
                acceptance=acceptance(entry.criteria),
                depends_on=needs[key],
                after=after[key],
                manual=is_manual(entry.title),
                section=prose.around(entry),
                phase=markdown.sections[_outer(markdown, entry)].title[:MAX_TITLE],
                mark=Mark.SKIPPED if entry.optional and _is_open(entry.mark) else entry.mark,
                line=entry.line + 1,
            )
            for key, entry in zip(keys, entries, strict=True)
        ]

    def _needs(
        self, markdown: Markdown, entry: Entry, key: str, known: Mapping[str, str], problems: Problems
    ) -> tuple[str, ...]:
        found: dict[str, None] = {}
        last = entry.end if entry.box is not None else min(entry.end, entry.line + 40)
        for at in range(entry.line, last):
            line = markdown.lines[at]
            if line.kind in (Kind.CODE, Kind.COMMENT, Kind.BLANK) or len(line.words) > 2_000:
                continue
            for name in _needed(line.words):
                needed = known.get(name)
                if needed is None and not name[0].isdigit():
                    problems.warn(
                        at + 1, "", f"{quoted(key)} depends on {quoted(name)}, which is not a task here"
                    )
                elif needed is not None and needed != key:
                    found[needed] = None
        return tuple(found)


def called(name: str, file: str) -> str:
    """Return what the user calls one of the files."""
    path = PurePosixPath(name)
    if path.name == file:
        return name
    return str(path.with_name(file) if path.name.casefold().endswith(".md") else path / file)


def bounded(text: str, limit: int) -> str:
    """Return a text that is not too long; where it was cut is marked."""
    return text if len(text) <= limit else f"{text[: limit - 2]}\n…"


def unique_keys(entries: Sequence[Entry], markdown: Markdown, problems: Problems) -> list[str]:
    """Return a key for each entry: its number, else its words; a repeated one gets the name of its section."""
    seen: dict[str, int] = {}
    keys: list[str] = []
    for entry in entries:
        base = (entry.name or slug(entry.title) or "task")[: MAX_ID - 60]
        key = base
        if key in seen:
            if entry.name:
                problems.warn(
                    entry.line + 1,
                    "",
                    f"{quoted(base)} is already on line {seen[base]}: this is another task",
                )
            key = f"{slug(markdown.sections[entry.section].title)[:40] or 'more'}/{base}"
        count = 1
        while key in seen:
            count += 1
            key = f"{key.rpartition('~')[0] or key}~{count}"
        seen[key] = entry.line + 1
        keys.append(key)
    return keys


def order(entries: Sequence[Entry], keys: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return for each task those before it in the file; neighbours that are marked as parallel share a place."""
    groups: list[list[str]] = []
    before: Entry | None = None
    for entry, key in _parents_last(entries, keys):
        beside = before is not None and entry.parallel and before.parallel and before.section == entry.section
        if beside:
            groups[-1].append(key)
        else:
            groups.append([key])
        before = entry
    found: dict[str, tuple[str, ...]] = {}
    last: tuple[str, ...] = ()
    left = _MAX_ORDER
    for group in groups:
        left -= len(group) * len(last)
        last = last if left > 0 else last[-1:]
        found.update(dict.fromkeys(group, last))
        last = tuple(group)
    return found


def _parents_last(entries: Sequence[Entry], keys: Sequence[str]) -> list[tuple[Entry, str]]:
    """Return the entries in their order; `4.` comes after `4.1` and `4.2` if those are tasks of their own."""
    result: list[tuple[Entry, str]] = []
    waiting: list[tuple[Entry, str]] = []
    for entry, key in zip(entries, keys, strict=True):
        while waiting and not entry.name.startswith(f"{waiting[-1][0].name}."):
            result.append(waiting.pop())
        if entry.name and entry.box is not None:
            waiting.append((entry, key))
        else:
            result.append((entry, key))
    return result + waiting[::-1]


def _parts(known: Mapping[str, str]) -> Mapping[str, list[str]]:
    """Return the tasks that are part of another one by their number: `4.1` and `4.2` of `4`."""
    found: dict[str, list[str]] = {}
    for name, key in known.items():
        found.setdefault(name.rpartition(".")[0], []).append(key)
    return found


def _description(markdown: Markdown, entry: Entry, parts: Sequence[str]) -> str:
    hidden = {at for start, end in entry.hidden for at in range(start, end)}
    lines = [markdown.lines[at].text for at in range(entry.line + 1, entry.end) if at not in hidden]
    head = without_comments(entry.words)[0]
    if entry.name and parts and entry.box is not None:
        lines.append(f"Its parts are tasks of their own: {', '.join(parts[:20])}. Do only what is left.")
    return bounded("\n".join((head, *lines)).strip(), MAX_DESCRIPTION)


def _only(files: Files, name: str) -> tuple[str, bytes]:
    if not files:
        raise BadPlan(name, (f"there is no {name} here any more",))
    return next(iter(files.items()))


def _markdown(content: bytes, name: str) -> Markdown:
    try:
        return read_markdown(content)
    except Unreadable as broken:
        raise located_at(name, broken) from broken


def _is_open(mark: Mark) -> bool:
    return mark not in (Mark.DONE, Mark.SKIPPED)


def _outer(markdown: Markdown, entry: Entry) -> int:
    """Return the outermost section around an entry that is not the title of the file."""
    around = [at for at in markdown.around(entry.section) if markdown.sections[at].level > 1]
    return around[-1] if around else entry.section


class _Prose:
    """The text of a file without its checkboxes and what is below them."""

    def __init__(self, markdown: Markdown) -> None:
        self._markdown = markdown
        self._texts: dict[tuple[int, bool], str] = {}
        self._kept = [line.kind is not Kind.COMMENT for line in markdown.lines]
        until = 0
        for item in markdown.items:
            if item.box is not None and item.end > until:
                start, until = max(item.line, until), item.end
                self._kept[start:until] = [False] * (until - start)

    def text(self, start: int, end: int) -> str:
        kept = [self._markdown.lines[at].text for at in range(start, end) if self._kept[at]]
        return _RULE.sub("", re.sub(r"\n{3,}", "\n\n", "\n".join(kept))).strip()

    def around(self, entry: Entry) -> str:
        """Return the headings around an entry with their own text, the outermost first."""
        place = (entry.section, entry.box is None)
        if place not in self._texts:
            self._texts[place] = self._around(entry)
        return self._texts[place]

    def _around(self, entry: Entry) -> str:
        sections = self._markdown.sections
        around = [at for at in self._markdown.around(entry.section) if sections[at].level > 1]
        if entry.box is None:
            around = around[1:]
        parts = (
            f"{self._markdown.lines[sections[at].line].text.strip()}\n\n"
            f"{self.text(sections[at].line + 1, min(sections[at].end, sections[at].line + _MOST_LINES))}"
            for at in reversed(around)
        )
        return bounded("\n\n".join(part.strip() for part in parts), MAX_SECTION)


_SUB_BOX: Final = re.compile(r"(?m)^([ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)\[[ xX~/!-]\]")


def _unmarked(text: str) -> str:
    """Return a description as if no box below the task were ticked."""
    return _SUB_BOX.sub(r"\1[ ]", text).replace(_FINISHED_SIGN, "")


def _needed(words: str) -> Iterable[str]:
    """Return what a line says that a task waits for: `(depends on T012)` or `Dependencies: 1.1, 1.2`."""
    for match in _IN_BRACKETS.finditer(words):
        yield from _references(match[1])
    label = _AS_LABEL.match(words)
    if label is not None and _NOTHING_ELSE.fullmatch(_REFERENCE.sub(" ", label[1])):
        yield from _references(label[1])


def _references(words: str) -> Iterable[str]:
    for match in _RANGE.finditer(words):
        first, last = int(match[2]), int(match[3])
        if first < last <= first + 100:
            yield from (f"{match[1]}{n:0{len(match[2])}}" for n in range(first, last + 1))
    yield from _REFERENCE.findall(_RANGE.sub(" ", words))


def _without_cycles(needs: dict[str, tuple[str, ...]], problems: Problems) -> dict[str, tuple[str, ...]]:
    """Return the dependencies without those that wait for each other, which the file cannot mean."""
    for _ in range(20):
        cycle = find_cycle(needs)
        if cycle is None:
            return needs
        problems.warn(
            1,
            "",
            f"these tasks wait for each other, so their order in the file counts: {' -> '.join(cycle[:10])}",
        )
        needs |= {key: tuple(one for one in needs[key] if one not in cycle) for key in cycle}
    return dict.fromkeys(needs, ())


__all__ = ["ChecklistSource", "bounded", "called", "order", "plain", "unique_keys"]
