"""Exported issues, one task each: of `gh issue list --json …`, of the REST API, or a list under `issues`."""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from loopwright.adapters.sources.issues_json.issue_state import (
    commit_of,
    is_pull_request,
    keys,
    listed,
    repository,
    standing,
    tell,
)
from loopwright.adapters.sources.lists.item_order import PRIORITIES
from loopwright.adapters.sources.spec.plan_format import MAX_CRITERION, MAX_DESCRIPTION, MAX_TITLE
from loopwright.adapters.sources.text.json_edits import opened
from loopwright.adapters.sources.text.located import Located, tables
from loopwright.adapters.sources.text.markdown import Kind, read_markdown
from loopwright.adapters.sources.text.plan_file import document
from loopwright.adapters.sources.text.problems import Problems, Unreadable, check_graph, refuse
from loopwright.adapters.sources.text.reading import located_at, read_file, start_of
from loopwright.ports import Files, PlannedTask, PlannedWork, Progress, Source

MAX_ISSUES: Final = 10_000
EXPORT: Final = "gh issue list --state all --json number,title,body,labels,state,stateReason,url"
COPY: Final = "this is a copy: Loopwright closes finished issues in it, and you close them on the forge"
_BARE: Final = frozenset(("p0", "p1", "p2", "p3", "p4", "critical", "urgent"))
"""Labels that mean a priority without saying so; `high` alone may be about anything."""
_TYPES: Final = frozenset(("bug", "documentation", "enhancement", "feature", "refactor", "test"))
_COMPLEXITIES: Final = {"complexity: high": "high", "complexity: medium": "medium", "complexity: low": "low"}
_NEEDS: Final = re.compile(
    r"\b(?:depends on|blocked by|requires)\b:?[ \t]{0,3}"
    r"(#[0-9]{1,9}(?:(?:,|[ \t]and|,[ \t]and)?[ \t]#[0-9]{1,9}){0,50})",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"#([0-9]{1,9})")
_LOOKS: Final = re.compile(r"\s{0,99}\[\s{0,99}\{")
_HOLDS: Final = re.compile(r"\s{0,99}\{")


class IssuesSource(Source):
    """Reads an export, and closes in it what is done; you close the issues on the forge."""

    kind = "issues_json"
    format_name = "Exported issues"
    usual_places = ("issues.json", "*issues*.json", "docs/*issues*.json")

    def recognises(self, place: Path) -> bool:
        """Take a JSON file that begins like a list of issues, or has a list called `issues`."""
        if place.suffix.casefold() != ".json" or not place.is_file():
            return False
        start = start_of(place)
        if _LOOKS.match(start) is not None:
            # A feature list has titles and ids, too, but nothing that comes from a forge.
            telling = '"number"' in start or '"body"' in start or "/issues/" in start
            return telling and '"title"' in start
        return _HOLDS.match(start) is not None and '"issues"' in start and '"title"' in start

    def files(self, place: Path) -> Files:
        """Return the one file."""
        return {place.name: read_file(place)}

    def parse(self, files: Files, name: str) -> PlannedWork:
        """Return a task for each issue, or raise `BadPlan` with located problems."""
        ((file, content),) = files.items()
        problems = Problems(name)
        try:
            found = document(file, content)
        except Unreadable as broken:
            raise located_at(name, broken) from broken
        tasks = _Reader(problems).tasks(found)
        refuse(name, problems)
        said = [(task.key, task.title, task.description, task.priority, task.type) for task in tasks.values()]
        return PlannedWork(
            title=_title(found, name),
            tasks=tuple(tasks.values()),
            sha256=hashlib.sha256(json.dumps(said).encode()).hexdigest(),
            notes=(*problems.notes, f"{name}: {COPY}"),
            is_copy=True,
        )

    def written(self, files: Files, progress: Progress) -> Files:
        """Return the file with `state`, `stateReason` and a key of our own as the progress has them."""
        ((name, content),) = files.items()
        edits = opened(name, content)
        entries = [(entry, entry.plain()) for entry in tables(listed(edits.document))]
        is_rest = any("state_reason" in table for _, table in entries)
        names = keys([table for _, table in entries])
        for (entry, table), key in zip(entries, names, strict=True):
            item = progress.items.get(key)
            if item is not None and not is_pull_request(table):
                tell(edits, entry, table, item, is_rest=is_rest)
        made = edits.bytes()
        return {name: made} if made != content else {}


class _Reader:
    """Turns the export into tasks, and gathers every problem in it."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems

    def tasks(self, document: Located) -> dict[str, PlannedTask]:
        found = listed(document)
        if found is None or not isinstance(found.value, list):
            self._problems.note(document.line, "", f"expected a list of issues, as `{EXPORT}` gives it")
            return {}
        if not found.value:
            self._problems.warn(found.line, "", "the list is empty: there is no issue to work on")
        if len(found.value) > MAX_ISSUES:
            self._problems.note(found.line, "", f"more than {MAX_ISSUES} issues")
            return {}
        tasks: dict[str, PlannedTask] = {}
        places: dict[str, tuple[int, str]] = {}
        for index, entry in enumerate(found.value):
            if not isinstance(entry.value, dict):
                self._problems.note(entry.line, f"[{index}]", "expected an object with number and title")
        entries = [(entry, entry.plain()) for entry in tables(found)]
        without_body: list[Located] = []
        for (entry, table), key in zip(entries, keys([one for _, one in entries]), strict=True):
            if is_pull_request(table):
                continue
            task = self._task(entry, table, key)
            if task is not None and task.key in tasks:
                self._problems.note(entry.line, task.key, f"this issue is already on line {places[key][0]}")
            elif task is not None:
                tasks[task.key] = task
                places[task.key] = (entry.line, task.key)
                without_body += [] if "body" in table else [entry]
        if without_body:
            message = f"{len(without_body)} issues have no body, only a title: export with `{EXPORT}`"
            self._problems.warn(without_body[0].line, "", message)
        return self._without_absent(tasks, places)

    def _without_absent(
        self, tasks: dict[str, PlannedTask], places: dict[str, tuple[int, str]]
    ) -> dict[str, PlannedTask]:
        """Leave out dependencies on issues that are not in the export, and say so once."""
        absent = {one: key for key, task in tasks.items() for one in task.depends_on if one not in tasks}
        if absent:
            named = ", ".join(list(absent)[:10]) + (", …" if len(absent) > 10 else "")
            message = (
                f"issues wait for {named}, not in this export; they count as closed: export with --state all"
            )
            self._problems.warn(places[next(iter(absent.values()))][0], "", message)
        made = {
            key: replace(task, depends_on=tuple(one for one in task.depends_on if one in tasks))
            for key, task in tasks.items()
        }
        check_graph(self._problems, {key: task.depends_on for key, task in made.items()}, places, "issue")
        return made

    def _task(self, entry: Located, table: dict[str, Any], key: str) -> PlannedTask | None:
        title, body = table.get("title"), table.get("body", table.get("description"))
        if not key:
            self._problems.note(entry.line, "number", "expected the number of an issue, or a title")
            return None
        if not isinstance(title, str) or not title.strip():
            self._problems.note(entry.line, f"{key}.title", "expected a text")
            return None
        if body is not None and not isinstance(body, str):
            self._problems.note(entry.line, f"{key}.body", "expected a text")
            body = ""
        text = (body or "").replace("\r\n", "\n").strip()
        if len(text) > MAX_DESCRIPTION:
            self._problems.note(entry.line, f"{key}.body", f"longer than {MAX_DESCRIPTION} characters")
        labels = [label.casefold() for label in _labels(table.get("labels"))]
        said = PRIORITIES.get(str(table.get("priority") or "").casefold())
        mark, reason = standing(table)
        return PlannedTask(
            key=key,
            title=" ".join(title.split())[:MAX_TITLE],
            description=text,
            criteria=tuple(dict.fromkeys(_criteria(text))),
            depends_on=tuple(dict.fromkeys(_needs(text, key))),
            priority=next((found for label in labels if (found := _priority(label)) is not None), said or 50),
            type=next((label for label in labels if label in _TYPES), ""),
            complexity=next((_COMPLEXITIES[label] for label in labels if label in _COMPLEXITIES), None),
            mark=mark,
            reason=reason,
            commit=commit_of(table),
            line=entry.line,
        )


def _title(document: Located, name: str) -> str:
    found = listed(document)
    first = (
        found.value[0].plain() if found is not None and isinstance(found.value, list) and found.value else {}
    )
    owner = repository(first) if isinstance(first, dict) else ""
    return (f"Issues of {owner}" if owner else f"Issues in {name}")[:MAX_TITLE]


def _labels(found: object) -> Iterator[str]:
    for label in found if isinstance(found, list) else ():
        name = label.get("name") if isinstance(label, dict) else label
        if isinstance(name, str):
            yield name


def _priority(label: str) -> int | None:
    for sign in (":", "/", "-", "_"):
        before, found, after = label.partition(sign)
        if found and before.strip() in ("priority", "prio", "severity"):
            return PRIORITIES.get(after.strip())
    return PRIORITIES[label] if label in _BARE else None


def _plain_lines(text: str) -> Iterator[tuple[str | None, str]]:
    """Return the lines of a body that are neither code nor quoted, with the mark of a task list."""
    try:
        lines = read_markdown(text.encode("utf-8", "replace")).lines
    except Unreadable:
        return  # a fence without an end, or far too long: nothing in it is sure
    for line in lines:
        if line.kind in (Kind.TEXT, Kind.BULLET) and not line.words.startswith(">"):
            yield line.box, line.words


def _criteria(text: str) -> Iterator[str]:
    for box, words in _plain_lines(text):
        if box in (" ", "x", "X") and words:
            yield words[:MAX_CRITERION]


def _needs(text: str, key: str) -> Iterator[str]:
    for _, words in _plain_lines(text):
        for match in _NEEDS.finditer(words[:20_000]):
            yield from (f"#{number}" for number in _NUMBER.findall(match[1]) if f"#{number}" != key)
