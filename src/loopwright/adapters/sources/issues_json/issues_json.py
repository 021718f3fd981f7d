"""Issues of a GitHub repository as `gh issue list --json …` exports them: one task each."""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from loopwright.adapters.sources.spec.plan_format import MAX_CRITERION, MAX_DESCRIPTION, MAX_TITLE
from loopwright.adapters.sources.text.json_edits import JsonEdits, opened, storable
from loopwright.adapters.sources.text.located import Located, tables
from loopwright.adapters.sources.text.markdown import Kind, read_markdown
from loopwright.adapters.sources.text.plan_file import document
from loopwright.adapters.sources.text.problems import Problems, check_graph, refuse
from loopwright.adapters.sources.text.reading import located_at, read_file
from loopwright.adapters.sources.text.unreadable import Unreadable
from loopwright.config.nearest import quoted
from loopwright.ports import Files, ItemProgress, Mark, PlannedTask, PlannedWork, Progress, Source

MAX_ISSUES: Final = 10_000
EXPORT: Final = "gh issue list --state all --json number,title,body,labels,state,stateReason,url"
COPY: Final = "it is a copy: what is done is closed here, on the forge it is for you to close"
OURS: Final = "loopwright"
"""The key of an issue that says why it stands as it does."""
_PRIORITIES: Final = {
    **dict.fromkeys(("p0", "critical", "urgent", "blocker", "highest"), 10),
    **dict.fromkeys(("p1", "high"), 25),
    **dict.fromkeys(("p2", "medium", "normal"), 50),
    **dict.fromkeys(("p3", "low"), 75),
    **dict.fromkeys(("p4", "lowest"), 90),
}
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
_LOOKS: Final = re.compile(rb"\s{0,99}\[\s{0,99}\{")
_START: Final = 256 * 1024


class IssuesSource(Source):
    """Reads an export, and closes in it what is done; on the forge that is for a person to do."""

    kind = "issues_json"

    def recognises(self, place: Path) -> bool:
        """Take a JSON file that begins like a list of issues."""
        if place.suffix.casefold() != ".json" or not place.is_file():
            return False
        try:
            with place.open("rb") as file:
                start = file.read(_START).removeprefix(b"\xef\xbb\xbf")
        except OSError:
            return False
        return _LOOKS.match(start) is not None and b'"number"' in start and b'"title"' in start

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
        for entry in tables(edits.document):
            table = entry.plain()
            item = progress.items.get(f"#{table.get('number')}")
            if item is not None:
                _tell(edits, entry, table, item)
        made = edits.bytes()
        return {name: made} if made != content else {}


def _tell(edits: JsonEdits, entry: Located, table: dict[str, Any], item: ItemProgress) -> None:
    mark = Mark.OPEN if item.mark is Mark.RUNNING else item.mark
    if mark is not _standing(table) or mark is Mark.BLOCKED:
        closed = mark in (Mark.DONE, Mark.SKIPPED)
        was = table.get("state")
        state = "CLOSED" if closed else "OPEN"
        if closed is not _is_closed(table):
            edits.put(entry, "state", state.lower() if isinstance(was, str) and was.islower() else state)
        why = ("COMPLETED" if mark is Mark.DONE else "NOT_PLANNED") if closed else ""
        if str(table.get("stateReason") or "") != why and (closed or _is_closed(table)):
            edits.put(entry, "stateReason", why)
    ours = _ours(mark, item)
    if ours is not None:
        edits.put(entry, OURS, ours)
    else:
        edits.drop(entry, OURS)


def _ours(mark: Mark, item: ItemProgress) -> dict[str, str] | None:
    """Return what a forge has no word for; nothing where there is nothing to say."""
    match mark:
        case Mark.BLOCKED:
            return {"status": "blocked", "reason": storable(item.reason).strip() or "no reason was given"}
        case Mark.DONE if item.commit:
            return {"status": "done", "commit": item.commit, "summary": storable(item.summary)}
        case Mark.SKIPPED if item.reason.strip():
            return {"status": "skipped", "reason": storable(item.reason).strip()}
    return None


def _is_closed(table: dict[str, Any]) -> bool:
    return str(table.get("state", "OPEN")).upper() == "CLOSED"


def _standing(table: dict[str, Any]) -> Mark:
    """Return how an issue stands."""
    if _is_closed(table):
        return Mark.SKIPPED if str(table.get("stateReason")).upper() == "NOT_PLANNED" else Mark.DONE
    return Mark.BLOCKED if _blocked_because(table) is not None else Mark.OPEN


def _blocked_because(table: dict[str, Any]) -> str | None:
    ours = table.get(OURS)
    if not isinstance(ours, dict) or ours.get("status") != "blocked" or _is_closed(table):
        return None
    return str(ours.get("reason") or "blocked in the file, without a reason")


def _commit(table: dict[str, Any]) -> str | None:
    """Return the commit that we told of an issue which is closed by it."""
    ours = table.get(OURS)
    told = ours.get("commit") if isinstance(ours, dict) and _is_closed(table) else None
    return told if isinstance(told, str) and told else None


class _Reader:
    """Turns the export into tasks, and gathers everything that is wrong with it."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems

    def tasks(self, found: Located) -> dict[str, PlannedTask]:
        entries = found.value
        if not isinstance(entries, list):
            self._problems.note(found.line, "", f"expected a list of issues, as `{EXPORT}` gives it")
            return {}
        if not entries:
            self._problems.note(found.line, "", "there is no issue here")
        if len(entries) > MAX_ISSUES:
            self._problems.note(found.line, "", f"more than {MAX_ISSUES} issues")
            return {}
        tasks: dict[str, PlannedTask] = {}
        places: dict[str, tuple[int, str]] = {}
        for index, entry in enumerate(entries):
            task = self._task(entry, f"[{index}]")
            if task is not None and task.key in tasks:
                self._problems.note(entry.line, task.key, "this issue stands here a second time")
            elif task is not None:
                tasks[task.key] = task
                places[task.key] = (entry.line, task.key)
        edges = {key: [one for one in task.depends_on if one in tasks] for key, task in tasks.items()}
        for key, task in tasks.items():
            for missing in set(task.depends_on) - tasks.keys():
                self._problems.note(
                    *places[key], f"it waits for {missing}, which is not here: export with --state all"
                )
        check_graph(self._problems, edges, places, "issue")
        return tasks

    def _task(self, entry: Located, place: str) -> PlannedTask | None:
        if not isinstance(entry.value, dict):
            self._problems.note(entry.line, place, "expected an issue with number and title")
            return None
        table = {key: inner.plain() for key, inner in entry.value.items()}
        number, title, body = table.get("number"), table.get("title"), table.get("body")
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            self._problems.note(entry.line, f"{place}.number", "expected the number of an issue")
            return None
        key = f"#{number}"
        if not isinstance(title, str) or not title.strip():
            self._problems.note(entry.line, f"{key}.title", "expected a text")
            return None
        if "body" not in table:
            self._problems.warn(entry.line, key, f"it has no body: export with `{EXPORT}`")
        if body is not None and not isinstance(body, str):
            self._problems.note(entry.line, f"{key}.body", "expected a text")
            body = ""
        text = (body or "").replace("\r\n", "\n").strip()
        if len(text) > MAX_DESCRIPTION:
            self._problems.note(entry.line, f"{key}.body", f"longer than {MAX_DESCRIPTION} characters")
        labels = [label.casefold() for label in _labels(table.get("labels"))]
        return PlannedTask(
            key=key,
            title=" ".join(title.split())[:MAX_TITLE],
            description=text,
            criteria=tuple(dict.fromkeys(_criteria(text))),
            depends_on=tuple(dict.fromkeys(_needs(text, key))),
            priority=next((found for label in labels if (found := _priority(label)) is not None), 50),
            type=next((label for label in labels if label in _TYPES), ""),
            complexity=next((_COMPLEXITIES[label] for label in labels if label in _COMPLEXITIES), None),
            mark=self._mark(table, entry, key),
            reason=_blocked_because(table) or "",
            commit=_commit(table),
            line=entry.line,
        )

    def _mark(self, table: dict[str, object], entry: Located, key: str) -> Mark:
        state = table.get("state", "OPEN")
        if not isinstance(state, str) or state.upper() not in ("OPEN", "CLOSED"):
            self._problems.note(entry.line, f"{key}.state", f"expected OPEN or CLOSED, not {quoted(state)}")
            return Mark.OPEN
        return _standing(table)


def _title(found: Located, name: str) -> str:
    first = found.value[0].plain() if isinstance(found.value, list) and found.value else {}
    parts = str(first.get("url") or "").split("/") if isinstance(first, dict) else []
    return (
        f"Issues of {parts[3]}/{parts[4]}"[:MAX_TITLE] if len(parts) >= 7 else f"Issues in {name}"[:MAX_TITLE]
    )


def _labels(found: object) -> Iterator[str]:
    for label in found if isinstance(found, list) else ():
        name = label.get("name") if isinstance(label, dict) else label
        if isinstance(name, str):
            yield name


def _priority(label: str) -> int | None:
    for sign in (":", "/", "-", "_"):
        before, found, after = label.partition(sign)
        if found and before.strip() in ("priority", "prio", "severity"):
            return _PRIORITIES.get(after.strip())
    return _PRIORITIES[label] if label in _BARE else None


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
