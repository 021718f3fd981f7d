"""From the entries of a file to tasks: their keys, their order, what they depend on, and what their agents read."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from loopwright.adapters.sources.checklists.entries import Entry
from loopwright.adapters.sources.spec.plan_format import MAX_CRITERION, MAX_DESCRIPTION, MAX_ID, MAX_TITLE
from loopwright.adapters.sources.text.criteria import acceptance
from loopwright.adapters.sources.text.markdown import Kind, Markdown
from loopwright.adapters.sources.text.near_boxes import tell_disputed
from loopwright.adapters.sources.text.problems import Problems
from loopwright.adapters.sources.text.sections import is_for_people
from loopwright.adapters.sources.text.titles import is_manual, plain_title, slug, without_comments
from loopwright.config.nearest import quoted
from loopwright.core.policy.graph import find_cycle
from loopwright.ports import Mark, PlannedTask

MAX_SECTION: Final = 4_000
_MAX_ORDER: Final = 50_000
"""How many pairs the order of the file may make."""
_NAMED: Final = 5
"""How many tasks a note names."""
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
_MUST: Final = re.compile(
    r"[*_]{0,2}(?:acceptance(?:[ \t]criteria)?|done[ \t]when|success[ \t]criteria|verif(?:y|ication))"
    r"[*_]{0,2}[ \t]*:(.*)",
    re.IGNORECASE,
)
_RULE: Final = re.compile(r"(?m)^-{3,}$\n?")
_MOST_LINES: Final = 300
"""How many lines of a section its tasks get."""
_HEADED_LINES: Final = 40
"""How many lines below a heading may say what the task depends on."""
_LONGEST: Final = 2_000


def planned_tasks(
    markdown: Markdown, entries: Sequence[Entry], keys: Sequence[str], problems: Problems
) -> list[PlannedTask]:
    """Return a task for each entry."""
    both = list(zip(keys, entries, strict=True))
    known: dict[str, str] = {}
    for key, entry in both:
        known.setdefault(entry.name or key, key)
    needs = _without_cycles(
        {key: _needs(markdown, entry, key, known, problems) for key, entry in both}, problems
    )
    at_line = {entry.line: (key, entry) for key, entry in both}
    for key, entry in both:
        around = at_line.get(entry.under) if entry.under is not None else None
        if around is not None and around[1].mark is not Mark.SKIPPED and key not in needs[around[0]]:
            needs[key] = tuple(dict.fromkeys((around[0], *needs[key])))
    after = order(entries, keys)
    _tell_optional(both, problems)
    tell_disputed([(entry.line, entry.words) for entry in entries if entry.disputed], problems)
    prose = Prose(markdown, entries)
    parts = _parts({entry.name or key: key for key, entry in both if entry.under is None})
    criteria = {key: _criteria(markdown, entry) for key, entry in both}
    return [
        PlannedTask(
            key=key,
            title=entry.title[:MAX_TITLE],
            description=_description(markdown, entry, parts.get(entry.name, ())),
            criteria=criteria[key],
            acceptance=acceptance(criteria[key]),
            depends_on=needs[key],
            after=after[key],
            manual=entry.disputed or is_manual(entry.title) or is_for_people(markdown, entry.section),
            section=prose.around(entry),
            phase=_phase(markdown, entry)[:MAX_TITLE],
            mark=_mark(entry, at_line),
            line=entry.line + 1,
        )
        for key, entry in both
    ]


def _mark(entry: Entry, at_line: Mapping[int, tuple[str, Entry]]) -> Mark:
    """Return how far a task is; an optional one is skipped, and so is a step of a task that is skipped."""
    around = at_line.get(entry.under) if entry.under is not None else None
    is_left_out = entry.optional or (around is not None and around[1].mark is Mark.SKIPPED)
    return Mark.SKIPPED if is_left_out and _is_open(entry.mark) else entry.mark


def _criteria(markdown: Markdown, entry: Entry) -> tuple[str, ...]:
    """Return what must be true of the result: boxes about acceptance, and lines such as `Done when: …`."""
    found = list(entry.criteria)
    below = -1  # the indent of a label whose entries follow
    left_out = entry.left_out
    for at in range(entry.line + 1, min(entry.end, entry.line + _MOST_LINES)):
        line = markdown.lines[at]
        if line.kind not in (Kind.TEXT, Kind.BULLET) or at in left_out:
            continue
        label = _MUST.match(line.words) if line.box is None else None
        if label is not None:
            found += [label[1].strip("*_ ")] if label[1].strip("*_ ") else []
            below = line.indent if not label[1].strip("*_ ") else -1
        elif 0 <= below < line.indent and line.kind is Kind.BULLET and line.box is None:
            found.append(plain_title(line.words))
        elif line.indent <= below:
            below = -1
    return tuple(one[:MAX_CRITERION] for one in found)


def bounded(text: str, limit: int) -> str:
    """Return a text that is not too long; where it was cut is marked."""
    return text if len(text) <= limit else f"{text[: limit - 2]}\n…"


def unique_keys(entries: Sequence[Entry], markdown: Markdown, problems: Problems) -> list[str]:
    """Return a key for each entry: its number, else its words; a repeated one gets the name of its section."""
    seen: dict[str, int] = {}
    counts: dict[str, int] = {}
    keys: list[str] = []
    for entry in entries:
        base = (entry.name or slug(entry.title) or "task")[: MAX_ID - 60]
        key = base
        if key in seen:
            if entry.name:
                told = f"{quoted(base)} is already on line {seen[base]}: this is another task"
                problems.warn(entry.line + 1, "", told)
            within = f"{slug(markdown.sections[entry.section].title)[:40] or 'more'}/{base}"
            key = within
            while key in seen:
                counts[within] = counts.get(within, 1) + 1
                key = f"{within}~{counts[within]}"
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
    """Return the entries in their order; `4.` comes after `4.1` and `4.2` if those are separate tasks.

    Steps for a person follow the task that they are written below.
    """
    result: list[tuple[Entry, str]] = []
    waiting: list[tuple[Entry, str]] = []
    steps: dict[int, list[tuple[Entry, str]]] = {}
    for entry, key in zip(entries, keys, strict=True):
        if entry.under is not None:
            steps.setdefault(entry.under, []).append((entry, key))
            continue
        while waiting and not entry.name.startswith(f"{waiting[-1][0].name}."):
            result.append(waiting.pop())
        if entry.name and entry.box is not None:
            waiting.append((entry, key))
        else:
            result.append((entry, key))
    ordered = result + waiting[::-1]
    return [one for both in ordered for one in (both, *steps.get(both[0].line, ()))]


def _parts(known: Mapping[str, str]) -> Mapping[str, list[str]]:
    """Return the tasks that are part of another one by their number: `4.1` and `4.2` of `4`."""
    found: dict[str, list[str]] = {}
    for name, key in known.items():
        found.setdefault(name.rpartition(".")[0], []).append(key)
    return found


def _description(markdown: Markdown, entry: Entry, parts: Sequence[str]) -> str:
    left_out = entry.left_out
    lines = [markdown.lines[at].text for at in range(entry.line + 1, entry.end) if at not in left_out]
    head = without_comments(entry.words)[0]
    if entry.name and parts and entry.box is not None:
        lines.append(f"Its parts are separate tasks: {', '.join(parts[:20])}. Do only what is left.")
    return bounded("\n".join((head, *lines)).strip(), MAX_DESCRIPTION)


def _is_open(mark: Mark) -> bool:
    return mark not in (Mark.DONE, Mark.SKIPPED)


def outer_section(markdown: Markdown, entry: Entry) -> int:
    """Return the outermost section around an entry that is not the title of the file."""
    around = [at for at in markdown.around(entry.section) if markdown.sections[at].level > 1]
    return around[-1] if around else entry.section


def _phase(markdown: Markdown, entry: Entry) -> str:
    outer = outer_section(markdown, entry)
    # A heading that is itself a task is not the phase around it.
    return markdown.sections[outer].title if entry.box is not None or outer != entry.section else ""


def _tell_optional(both: Sequence[tuple[str, Entry]], problems: Problems) -> None:
    optional = [(key, entry) for key, entry in both if entry.optional and _is_open(entry.mark)]
    if optional:
        names = [key for key, _ in optional]
        shown = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
        told = f"optional tasks are skipped: {shown}; remove the * behind the box to have one done"
        problems.warn(optional[0][1].line + 1, "", told)
    inner = [entry for _, entry in both if entry.optional_parts and _is_open(entry.mark)]
    if inner:
        have = "1 task has" if len(inner) == 1 else f"{len(inner)} tasks have"
        told = f"{have} optional parts, which are left out: remove the * behind a box to include it"
        problems.warn(inner[0].optional_parts[0] + 1, "", told)


class Prose:
    """The text of a file without its tasks, its checkboxes and what is below them."""

    def __init__(self, markdown: Markdown, entries: Sequence[Entry]) -> None:
        self._markdown = markdown
        self._texts: dict[tuple[int, bool], str] = {}
        self._kept = [line.kind is not Kind.COMMENT for line in markdown.lines]
        boxes = [(item.line, item.end) for item in markdown.items if item.box is not None]
        until = 0
        for line, end in sorted((*boxes, *((one.line, one.end) for one in entries if one.box is not None))):
            if end > until:
                start, until = max(line, until), end
                self._kept[start:until] = [False] * (until - start)

    def text(self, start: int, end: int) -> str:
        """Return the text of some lines."""
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


def _needs(
    markdown: Markdown, entry: Entry, key: str, known: Mapping[str, str], problems: Problems
) -> tuple[str, ...]:
    found: dict[str, None] = {}
    left_out = entry.left_out
    last = entry.end if entry.box is not None else min(entry.end, entry.line + _HEADED_LINES)
    for at in range(entry.line, last):
        line = markdown.lines[at]
        if line.kind in (Kind.CODE, Kind.COMMENT, Kind.BLANK) or len(line.words) > _LONGEST:
            continue
        if at in left_out:
            continue
        for name in _needed(line.words):
            needed = known.get(name)
            if needed is None and not name[0].isdigit():
                told = f"{quoted(key)} depends on {quoted(name)}, which is not a task here"
                problems.warn(at + 1, "", told)
            elif needed is not None and needed != key:
                found[needed] = None
    return tuple(found)


def _needed(words: str) -> Iterable[str]:
    """Return what a line says that a task waits for: `(depends on T012)` or `Dependencies: 1.1, 1.2`."""
    for match in _IN_BRACKETS.finditer(words):
        yield from _references(match[1])
    label = _AS_LABEL.match(words)
    said = label[1].strip("*_ \t") if label is not None else ""
    if _NOTHING_ELSE.fullmatch(_REFERENCE.sub(" ", said)):
        yield from _references(said)


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
        shown = " -> ".join(cycle[:10])
        problems.warn(1, "", f"these tasks wait for each other, so their order in the file counts: {shown}")
        needs |= {key: tuple(one for one in needs[key] if one not in cycle) for key in cycle}
    return dict.fromkeys(needs, ())
