"""Plans written in YAML, or in JSON with the same shape."""

import hashlib
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final

from loopwright.adapters.sources.spec.foreign import looks_like
from loopwright.adapters.sources.spec.plan_format import (
    MAX_ATTEMPTS,
    MAX_CRITERION,
    MAX_DESCRIPTION,
    MAX_ID,
    MAX_PRIORITY,
    MAX_TITLE,
    PLAN_KEYS,
    STATUS,
    TASK_KEYS,
)
from loopwright.adapters.sources.spec.plan_versions import WrongVersion, brought_up
from loopwright.adapters.sources.text.held_out import HeldOutReader, with_held_files
from loopwright.adapters.sources.text.located import Located, line_of
from loopwright.adapters.sources.text.plan_file import document
from loopwright.adapters.sources.text.problems import Problems, Unreadable, check_graph, refuse
from loopwright.adapters.sources.text.reading import located_at, read_file
from loopwright.config.gates import read_gates
from loopwright.config.groups import AGENT_NAME
from loopwright.config.kinds import SWITCH, WrongValue, choice, count, is_inside, text
from loopwright.config.layers import Level, check_values
from loopwright.config.nearest import did_you_mean, quoted
from loopwright.core.policy.complexity import LEVELS
from loopwright.core.values.errors import BadPlan
from loopwright.core.values.policy import GateCommand, HeldOut
from loopwright.ports import Files, Mark, PlannedTask, PlannedWork, Source

_AGENT: Final = text(what="the name of an agent, such as claude", pattern=AGENT_NAME)
_MODEL: Final = text(what="the name of a model")
_PRIORITY: Final = count(0, MAX_PRIORITY)
_ATTEMPTS: Final = count(1, MAX_ATTEMPTS)
_COMPLEXITY: Final = choice(*LEVELS)


class YamlSource(Source):
    """Reads a plan from one YAML or JSON file."""

    kind = "yaml"
    format_name = "Plan file"
    usual_places = ("plan.yaml", "plan.yml", "plans/*.yaml", "plans/*.yml")

    def recognises(self, place: Path) -> bool:
        """Take every file that ends like one; a source with a name of its own is asked before."""
        return place.suffix.lower() in (".yaml", ".yml", ".json") and place.is_file()

    def files(self, place: Path) -> Files:
        """Return the plan file, and beside it what its held-out checks name."""
        content = read_file(place)
        return {place.name: content, **with_held_files(place, content)}

    def parse(self, files: Files, name: str) -> PlannedWork:
        """Return the work, or raise `BadPlan` with located problems."""
        file, content = next(iter(files.items()))
        try:
            found = document(file, content)
        except Unreadable as broken:
            raise located_at(name, broken) from broken
        problems = Problems(name)
        if other := looks_like(found):
            raise BadPlan(name, (f"{name}:{found.line}: this is not a plan file: it looks like {other}",))
        work = PlanReader(problems, files).plan(found, hashlib.sha256(content).hexdigest())
        refuse(name, problems)
        assert work is not None  # else there was a problem
        return work


class PlanReader:
    """Turns a located document into work, and gathers everything that is wrong with it."""

    def __init__(self, problems: Problems, files: Files) -> None:
        self._problems = problems
        self._note = problems.note
        self._held_out = HeldOutReader(files, self._note)

    def plan(self, document: Located, sha256: str) -> PlannedWork | None:
        """Return the whole plan; None when something is wrong with it."""
        if not isinstance(document.value, dict):
            self._note(document.line, "", "a plan is an object with title and tasks")
            return None
        try:
            table = brought_up(document.value)
        except WrongVersion as wrong:
            # The rest is not looked at: in another version it may well be right.
            self._note(document.value["version"].line, "version", str(wrong))
            return None
        self.known(table, PLAN_KEYS, "")
        title = self._title(table, "", document.line)
        settings = self.settings(table)
        gates = self.gates(table, "gates", "") if _given(table, "gates") else None
        self._value(table, "write_status", "", SWITCH.read)
        tasks = self._tasks(table, document.line)
        if self._problems.count:
            return None
        return PlannedWork(
            title=title,
            tasks=tuple(tasks.values()),
            gates=gates,
            settings=settings,
            sha256=_with_files(sha256, self._held_out.contents),
            lines=_lines(table),
            held_files=self._held_out.contents,
        )

    def known(self, table: dict[str, Located], keys: Any, prefix: str) -> None:
        """Note keys that mean nothing here."""
        for key, inner in table.items():
            if key not in keys:
                place = f"{prefix}{quoted(key)[1:-1]}"
                self._note(inner.line, place, f"unknown key{did_you_mean(key, tuple(keys))}")

    def settings(self, table: dict[str, Located]) -> dict[str, Any]:
        """Return the settings that stand in the table, as they were written."""
        if not _given(table, "settings"):
            return {}
        located = table["settings"]
        if not isinstance(located.value, dict):
            self._note(located.line, "settings", "expected an object of settings")
            return {}
        tree = located.plain()
        if tree.pop("gates", None) is not None:
            self._note(
                located.value["gates"].line, "settings.gates", "write gates at the top of the plan instead"
            )
        _, problems = check_values(tree, Level.PLAN)
        for problem in problems:
            line = line_of(located, problem.key)
            self._note(line, f"settings.{quoted(problem.key, 120)[1:-1]}", problem.message)
        return dict(tree)

    def gates(self, table: dict[str, Located], key: str, prefix: str) -> tuple[GateCommand, ...]:
        """Return the commands that stand at a key."""
        if not _given(table, key):
            return ()
        located = table[key]
        entries = located.value if isinstance(located.value, list) else [located]
        gates, problems = read_gates([entry.plain() for entry in entries])
        for problem in problems:
            entry = entries[problem.index]
            line = line_of(entry, problem.key)
            self._note(line, f"{prefix}{key}{problem.place}", problem.message)
        return gates

    def _unseen(self, table: dict[str, Located], prefix: str) -> tuple[HeldOut, ...]:
        """Return the held-out checks; the agent has to be told of some check too."""
        if not _given(table, "held_out"):
            return ()
        if not _given(table, "acceptance"):
            words = "needs `acceptance` beside it: commands that the agent sees"
            self._note(table["held_out"].line, f"{prefix}held_out", words)
        return self._held_out.read(_entries(table, "held_out"), f"{prefix}held_out")

    def _title(self, table: dict[str, Located], prefix: str, line: int) -> str:
        title = self._text(table, "title", prefix, line, limit=MAX_TITLE)
        if "\n" in title:
            self._note(table["title"].line, f"{prefix}title", "must be one line; use description for more")
        return title

    def _text(self, table: dict[str, Located], key: str, prefix: str, line: int, *, limit: int) -> str:
        """Return a required text; numbers and dates are taken as they were written."""
        if not _given(table, key):
            self._note(table[key].line if key in table else line, f"{prefix}{key}", "missing")
            return ""
        located = table[key]
        if isinstance(located.value, bool | list | dict):
            self._note(located.line, f"{prefix}{key}", f"expected a text{_quotes(located)}")
            return ""
        found = located.text.strip()
        if not found or len(found) > limit:
            self._note(located.line, f"{prefix}{key}", f"expected a text of 1 to {limit} characters")
        return found

    def _tasks(self, table: dict[str, Located], line: int) -> dict[str, PlannedTask]:
        if not _given(table, "tasks"):
            self._note(
                table["tasks"].line if "tasks" in table else line, "tasks", "missing: a plan needs tasks"
            )
            return {}
        located = table["tasks"]
        if not isinstance(located.value, list):
            self._note(located.line, "tasks", "expected a list of tasks")
            return {}
        if not located.value:
            self._note(located.line, "tasks", "empty: a plan needs at least one task")
        tasks: dict[str, PlannedTask] = {}
        places: dict[str, tuple[int, str]] = {}
        order: dict[str, tuple[int, str]] = {}
        lines: dict[str, int] = {}
        for index, entry in enumerate(located.value):
            task = self._task(entry, f"tasks[{index}]")
            if task is None:
                continue
            if task.key in tasks:
                first = lines[task.key]
                self._note(
                    line_of(entry, "id"),
                    f"tasks[{index}].id",
                    f"{quoted(task.key)} is already on line {first}",
                )
                continue
            tasks[task.key] = task
            order[task.key] = (line_of(entry, "after"), f"tasks[{index}].after")
            places[task.key] = (line_of(entry, "depends_on"), f"tasks[{index}].depends_on")
            lines[task.key] = entry.line
        edges = {key: task.depends_on for key, task in tasks.items()}
        check_graph(self._problems, edges, places, "task")
        for key, task in tasks.items():
            for one in task.after:
                if one not in tasks:
                    line, place = order[key]
                    self._note(line, place, f"unknown task {quoted(one)}{did_you_mean(one, tuple(tasks))}")
        return tasks

    def _task(self, entry: Located, place: str) -> PlannedTask | None:
        if not isinstance(entry.value, dict):
            self._note(entry.line, place, "expected an object with id and title")
            return None
        table = entry.value
        prefix = f"{place}."
        self.known(table, TASK_KEYS, prefix)
        key = self._text(table, "id", prefix, entry.line, limit=MAX_ID)
        mark, more = self._standing(table, prefix)
        return PlannedTask(
            key=key or place,
            title=self._title(table, prefix, entry.line),
            description=self._words(table, "description", prefix, MAX_DESCRIPTION),
            criteria=self.texts(table, "criteria", prefix, is_criterion, "a text"),
            acceptance=self.gates(table, "acceptance", prefix),
            held_out=self._unseen(table, prefix),
            depends_on=self._ids(table, "depends_on", prefix),
            after=self._ids(table, "after", prefix),
            manual=self._value(table, "manual", prefix, SWITCH.read, False),
            scope=self.texts(table, "scope", prefix, is_inside, "a path relative to the project, without .."),
            may_change=self.texts(
                table, "may_change", prefix, is_inside, "a path relative to the project, without .."
            ),
            priority=self._value(table, "priority", prefix, _PRIORITY.read, 50),
            complexity=self._value(table, "complexity", prefix, _COMPLEXITY.read),
            prove=self._value(table, "prove", prefix, SWITCH.read, False),
            phase=self._words(table, "phase", prefix, MAX_TITLE),
            type=self._words(table, "type", prefix, MAX_ID),
            max_attempts=self._value(table, "max_attempts", prefix, _ATTEMPTS.read),
            agent=self._value(table, "agent", prefix, _AGENT.read),
            model=self._value(table, "model", prefix, _MODEL.read),
            mark=mark,
            reason=more if mark is Mark.BLOCKED else "",
            commit=(more or None) if mark is Mark.DONE else None,
        )

    def _standing(self, table: dict[str, Located], prefix: str) -> tuple[Mark, str]:
        """Return how a task stands, and the commit or the reason that its status names."""
        status = self._words(table, "status", prefix, MAX_CRITERION)
        if not status:
            return Mark.OPEN, ""
        if not re.fullmatch(STATUS, status):
            known = "open, running, done, done in COMMIT, blocked: WHY or skipped"
            self._note(table["status"].line, f"{prefix}status", f"expected {known}, got {quoted(status)}")
            return Mark.OPEN, ""
        word, _, more = status.partition(" ")
        return Mark(word.rstrip(":")), more.removeprefix("in ") if word == "done" else more

    def _value(
        self,
        table: dict[str, Located],
        key: str,
        prefix: str,
        read: Callable[[Any], Any],
        default: Any = None,
    ) -> Any:
        if not _given(table, key):
            return default
        try:
            return read(table[key].plain())
        except WrongValue as wrong:
            self._note(table[key].line, f"{prefix}{key}", str(wrong))
            return default

    def _words(self, table: dict[str, Located], key: str, prefix: str, limit: int) -> str:
        return self._text(table, key, prefix, 0, limit=limit) if _given(table, key) else ""

    def texts(
        self, table: dict[str, Located], key: str, prefix: str, right: Callable[[str], bool], what: str
    ) -> tuple[str, ...]:
        """Return the texts that stand at a key, one or a list of them."""
        found: list[str] = []
        for index, entry in enumerate(_entries(table, key)):
            if isinstance(entry.value, bool | list | dict) or entry.value is None or not right(entry.text):
                self._note(entry.line, f"{prefix}{key}[{index}]", f"expected {what}{_quotes(entry)}")
            else:
                found.append(entry.text.strip())
        return tuple(found)

    def _ids(self, table: dict[str, Located], key: str, prefix: str) -> tuple[str, ...]:
        ids = self.texts(table, key, prefix, _is_id, "the id of a task")
        return tuple(dict.fromkeys(ids))


def _with_files(sha256: str, contents: Collection[str]) -> str:
    """Return the hash of a plan together with the files that it names: other files are another plan."""
    if not contents:
        return sha256
    return hashlib.sha256("\n".join([sha256, *sorted(contents)]).encode()).hexdigest()


def _given(table: dict[str, Located], key: str) -> bool:
    return key in table and table[key].value is not None


def _entries(table: dict[str, Located], key: str) -> list[Located]:
    if not _given(table, key):
        return []
    value = table[key].value
    return value if isinstance(value, list) else [table[key]]


def _is_id(words: str) -> bool:
    return 0 < len(words.strip()) <= MAX_ID


def is_criterion(words: str) -> bool:
    """Return whether this can be a criterion."""
    return 0 < len(words.strip()) <= MAX_CRITERION


def _quotes(located: Located) -> str:
    return f': put "{located.text}" in quotes' if isinstance(located.value, bool) else ""


def _lines(table: dict[str, Located]) -> dict[str, int]:
    """Return where each setting of a good plan is written, and the agent of each task."""
    found = lines_in(table["settings"], "") if _given(table, "settings") else {}
    entries = table["tasks"].value
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry.value, dict):
            found[f"tasks.{entry.value['id'].text.strip()}"] = line_of(entry, "agent")
    return found


def lines_in(located: Located, prefix: str) -> dict[str, int]:
    """Return where each key inside of a table is written."""
    found: dict[str, int] = {}
    for key, inner in located.value.items() if isinstance(located.value, dict) else ():
        found |= {f"{prefix}{key}": inner.line, **lines_in(inner, f"{prefix}{key}.")}
    return found
