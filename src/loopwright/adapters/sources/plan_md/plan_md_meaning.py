"""From the outline of a checkbox plan to the work that it asks for."""

import hashlib
import json
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Final

from loopwright.adapters.sources.plan_md.plan_md_dag import Dag, Entry, read_dag
from loopwright.adapters.sources.plan_md.plan_md_outline import Item, Outline, SectionKind, fields, reference
from loopwright.adapters.sources.plan_md.plan_md_text import Body, Guess, body, commands, paths, references
from loopwright.adapters.sources.spec.plan_format import MAX_CRITERION, MAX_DESCRIPTION, MAX_TITLE
from loopwright.adapters.sources.text.markdown import MARKS, Kind
from loopwright.adapters.sources.text.meaning import without_marks
from loopwright.adapters.sources.text.near_boxes import tell_disputed
from loopwright.adapters.sources.text.problems import Problems, check_graph
from loopwright.adapters.sources.text.sections import is_called_finished, is_for_people, section_at
from loopwright.adapters.sources.text.titles import (
    OURS,
    is_manual,
    is_sha,
    settled_by,
    slug,
    without_checkpoint,
    without_comments,
)
from loopwright.config.gates import read_gates
from loopwright.config.kinds import is_inside
from loopwright.config.nearest import did_you_mean, quoted
from loopwright.core.values.policy import GateCommand
from loopwright.ports import Mark, PlannedTask, PlannedWork

MAX_NAMES: Final = 100_000
"""How many paths and dependencies may be written in a plan."""
MAX_GROUP: Final = 100
"""How many tasks of a parallel group run before the next one that is not in it."""
_NEAR: Final = 10
"""How many tasks above and below a task its agent sees."""
_NO_TASK: Final = "there is no task here: write each as a line such as `- [ ] Add the login form`"
_NO_BREAKS: Final = (
    "this line has the two characters \\n for line breaks: replace them and write `- [ ]` before tasks"
)
_COMPLEXITIES: Final = ("high", "medium", "low")
_YES_OR_NO: Final = {"yes": True, "no": False, "true": True, "false": False}
_CALLED: Final = {
    "acceptance": "Acceptance",
    "complexity": "Complexity",
    "deps": "Depends on",
    "files": "Files",
    "prove": "Prove",
    "reason": "Reason",
    "type": "Type",
}
"""What to write for each label."""


def meaning(found: Outline, name: str, problems: Problems, context: str) -> PlannedWork:
    """Return the work; `context` is what other files say about it."""
    dag = read_dag(found.markdown.lines, problems)
    tasks = _Reader(found, dag, problems).tasks()
    if not tasks and not problems.count:
        first = found.markdown.lines[0].text if found.markdown.lines else ""
        message = _NO_BREAKS if "\\n" in first else _NO_TASK
        problems.note(1, "", message)
    title, prose = _around(found, dag)
    beside = ", with what lies beside the plan," if context and len(prose) <= MAX_DESCRIPTION else ""
    context = "\n\n".join(part for part in (prose, context) if part)
    if len(context) > MAX_DESCRIPTION:
        problems.note(1, "", f"the text around the tasks{beside} has more than {MAX_DESCRIPTION} characters")
    return PlannedWork(
        title=title[:MAX_TITLE] or name,
        tasks=tasks,
        sha256=_sha256(title, tasks, context, {item.key for item in found.tasks if item.ours}),
        context=context,
        notes=problems.notes,
    )


def commit_of(item: Item) -> str | None:
    """Return the commit that a comment on a task's line names: we write it there."""
    return next((comment for comment in reversed(item.comments) if is_sha(comment)), None)


class _Reader:
    """Reads each task, then the order of all."""

    def __init__(self, found: Outline, dag: Dag | None, problems: Problems) -> None:
        self._found = found
        self._problems = problems
        self._left = MAX_NAMES
        self._nodes = self._entries(dag, "nodes")
        self._groups = self._entries(dag, "parallel_groups")
        self._explicit: dict[str, tuple[str, ...]] = {}
        self._places: dict[str, tuple[int, str]] = {}
        self._numbers = {item.key: number for number, item in enumerate(found.tasks)}
        disputed = [item for item in found.tasks if self._is_disputed(item)]
        tell_disputed([(item.at, item.title) for item in disputed], problems)
        for line, title in found.skipped:
            problems.warn(line, "", f"the boxes under {quoted(title)} are read as text, not as tasks")
        known = {item.key for item in found.tasks}
        for key, entry in self._nodes.items():
            if key not in known:
                problems.warn(entry.line, "dag", f"there is no checkbox for the node {quoted(key)}")

    def tasks(self) -> tuple[PlannedTask, ...]:
        found = [self._task(item) for item in self._found.tasks]
        self._check_groups({task.key for task in found})
        self._check_graph(found)
        if self._problems.count:
            return ()
        after = self._order()
        return tuple(
            replace(task, depends_on=self._explicit[task.key])
            if task.key in self._explicit
            else replace(task, after=after[task.key])
            for task in found
        )

    def _task(self, item: Item) -> PlannedTask:
        inside = body(self._found.body(item), item.at + 2)
        node = self._nodes.get(item.key, Entry(line=item.at + 1))
        self._dependencies(item, inside, node)
        if item.mark not in (Mark.DONE, Mark.SKIPPED):
            self._misspelt(inside)
        criteria, acceptance = self._acceptance(inside)
        title, description = item.title, textwrap.dedent("\n".join(inside.prose)).strip("\n")
        if len(title) > MAX_TITLE:
            title, description = f"{title[: MAX_TITLE - 1]}…", f"{title}\n\n{description}".strip()
        if len(description) > MAX_DESCRIPTION:
            self._problems.note(item.at + 1, "", f"the task has more than {MAX_DESCRIPTION} characters")
        return PlannedTask(
            key=item.key,
            title=title,
            description=description,
            criteria=criteria,
            acceptance=acceptance,
            scope=self._scope(inside, node),
            phase=without_checkpoint(self._found.sections[item.section].title)[0],
            manual=bool(item.under)
            or self._is_disputed(item)
            or is_manual(title)
            or self._is_for_people(item),
            section=self._section(item),
            type=_first(inside, "type").casefold() or node.text("type"),
            complexity=self._complexity(inside),
            prove=self._prove(inside),
            mark=item.mark,
            reason=self._reason(item, inside) if item.mark is Mark.BLOCKED else "",
            commit=(commit_of(item) or item.sha) if item.mark is Mark.DONE else None,
            line=item.at + 1,
        )

    def _is_disputed(self, item: Item) -> bool:
        words = self._found.markdown.lines[item.at].words
        return item.mark not in (Mark.DONE, Mark.SKIPPED) and (
            settled_by(without_comments(words)[0]) is not None
            or is_called_finished(self._found.markdown, section_at(self._found.markdown, item.at))
        )

    def _is_for_people(self, item: Item) -> bool:
        return is_for_people(self._found.markdown, section_at(self._found.markdown, item.at))

    def _dependencies(self, item: Item, inside: Body, node: Entry) -> None:
        """Keep what is said about who this task waits for, if anything is."""
        said = [value for comment in item.comments for field, value in fields(comment) if field == "deps"]
        keys = self._few(item.at + 1, (key for value in said for key in references(value)))
        keys += self._few(node.line, map(reference, node.texts("depends_on")))
        told = inside.texts("deps")
        labelled = self._few(item.at + 1, (key for _, value in told for key in references(value)))
        found = [key for one in labelled if (key := self._meant(item, one)) is not None]
        self._places[item.key] = (item.at + 1, quoted(item.name)[1:-1])
        keys += found
        if item.under:
            keys.append(item.under)
        is_told = bool(inside.of("deps")) and (bool(found) or not labelled)
        if said or is_told or item.key in self._nodes or item.under:
            self._explicit[item.key] = tuple(dict.fromkeys(keys))

    def _meant(self, item: Item, said: str) -> str | None:
        """Return the key of the task that a label names, also by the beginning of its title; None if there is none."""
        if said in self._numbers:
            return said if said != item.key else None
        begun = [key for key in self._numbers if key.startswith(f"{slug(said)}-")] if said else []
        if len(begun) == 1:
            return begun[0]
        if item.mark not in (Mark.DONE, Mark.SKIPPED):
            told = f"{quoted(item.name)} depends on {quoted(said)}, which is not a task here"
            self._problems.warn(item.at + 1, "", told)
        return None

    def _acceptance(self, inside: Body) -> tuple[tuple[str, ...], tuple[GateCommand, ...]]:
        criteria: list[str] = []
        found: dict[str, int] = {}
        for line, words in inside.texts("acceptance"):
            run = commands(words)
            for command in run:
                found.setdefault(command, line)
            if len(words) > MAX_CRITERION:
                self._problems.note(line, "acceptance", f"longer than {MAX_CRITERION} characters")
            if not run:
                criteria.append(words)
        for one in inside.of("acceptance"):
            for line, script in one.scripts:
                found.setdefault(script, line)
        gates, wrong = read_gates(list(found))
        for problem in wrong:
            self._problems.note(list(found.values())[problem.index], "acceptance", problem.message)
        return tuple(dict.fromkeys(criteria)), gates

    def _misspelt(self, inside: Body) -> None:
        """Note which label was probably meant: a check that silently does not run is an error."""
        for one in inside.misspelt:
            said, meant = quoted(one.said), quoted(_CALLED[one.label])
            if one.guess is Guess.LIKE:
                if one.runs:
                    self._problems.warn(
                        one.line, "", f"{said} is read as text, so its command does not run: is it {meant}?"
                    )
            elif one.label == "acceptance" and one.runs:
                self._problems.note(
                    one.line,
                    "",
                    f"{said} is not a label, so its command would not run: did you mean {meant}?",
                )
            else:
                self._problems.warn(one.line, "", f"{said} is read as text: did you mean {meant}?")

    def _scope(self, inside: Body, node: Entry) -> tuple[str, ...]:
        named = [
            (line, path) for line, words in inside.texts("files") for path in self._few(line, paths(words))
        ]
        named = named or [(node.line, path) for path in node.texts("files")]
        for line, path in named:
            if not is_inside(path):
                told = f"{quoted(path)} is outside of the project, so it is ignored"
                self._problems.warn(line, "files", told)
        return tuple(dict.fromkeys(path for _, path in named if is_inside(path)))

    def _few(self, line: int, names: Iterable[str]) -> list[str]:
        """Return names as long as the plan does not have too many of them."""
        found = list(islice(names, self._left + 1))
        if len(found) > self._left:
            self._problems.note(line, "", f"more than {MAX_NAMES} paths and dependencies in one plan")
            found = []
        self._left -= len(found)
        return found

    def _complexity(self, inside: Body) -> str | None:
        line, said = next(iter(inside.texts("complexity")), (0, ""))
        if said and said.casefold() not in _COMPLEXITIES:
            known, guess = ", ".join(_COMPLEXITIES), did_you_mean(said, _COMPLEXITIES)
            self._problems.warn(
                line, "complexity", f"expected one of: {known}; {quoted(said)} is ignored{guess}"
            )
        return said.casefold() if said.casefold() in _COMPLEXITIES else None

    def _prove(self, inside: Body) -> bool:
        line, said = next(iter(inside.texts("prove")), (0, ""))
        if said and said.casefold() not in _YES_OR_NO:
            known, guess = ", ".join(_YES_OR_NO), did_you_mean(said, tuple(_YES_OR_NO))
            self._problems.warn(line, "prove", f"expected one of: {known}; {quoted(said)} is ignored{guess}")
        return _YES_OR_NO.get(said.casefold(), False)

    def _reason(self, item: Item, inside: Body) -> str:
        commented = [
            value for comment in item.comments for field, value in fields(comment) if field == "blocked"
        ]
        return inside.blocked or _first(inside, "reason") or next(iter(commented), "")

    def _entries(self, dag: Dag | None, part: str) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        for entry in dag.entries.get(part, ()) if dag is not None else ():
            key = reference(entry.text("id"))
            if not key:
                self._problems.note(entry.line, "dag", f"{part}: an entry needs an id")
            elif key in found:
                self._problems.note(
                    entry.line, "dag", f"{part}: {quoted(key)} is already on line {found[key].line}"
                )
            else:
                found[key] = entry
        return found

    def _check_groups(self, known: set[str]) -> None:
        for key, entry in self._groups.items():
            for task in entry.texts("tasks"):
                if reference(task) not in known:
                    self._problems.note(entry.line, "dag", f"{quoted(key)}: unknown task {quoted(task)}")

    def _order(self) -> Mapping[str, tuple[str, ...]]:
        """Return what comes before each task in the file: the task above it, or all of the group above it."""
        groups = {
            reference(task): key for key, entry in self._groups.items() for task in entry.texts("tasks")
        }
        after: dict[str, tuple[str, ...]] = {}
        before: tuple[str, ...] = ()
        current: list[str] = []
        group = ""
        for item in self._found.tasks:
            said = [
                value for comment in item.comments for field, value in fields(comment) if field == "parallel"
            ]
            own = next(iter(said), groups.get(item.key, ""))
            if not own or own != group or len(current) >= MAX_GROUP:
                before, current = tuple(current), []
            group = own
            current.append(item.key)
            after[item.key] = before
        return after

    def _section(self, item: Item) -> str:
        """Return the headings around a task, and the tasks beside it."""
        path = [section.title for section in self._found.around(item.section) if section.title]
        number = self._numbers[item.key]
        near = self._found.tasks[max(number - _NEAR, 0) : number + _NEAR + 1]
        beside = [
            f"- {one.title[:MAX_TITLE]}" for one in near if one.section == item.section and not one.ours
        ]
        lines = [" > ".join(reversed(path))] if path else []
        return "\n".join([*lines, *(beside if len(beside) > 1 else ())])

    def _check_graph(self, found: Iterable[PlannedTask]) -> None:
        """Look for unknown tasks and cycles among the dependencies that are written down."""
        edges = {task.key: self._explicit.get(task.key, ()) for task in found}
        lines = self._found.markdown.lines
        broken = {item.key for item in self._found.tasks if lines[item.at].box not in MARKS}
        check_graph(self._problems, edges, self._places, "task", broken=broken)


def _first(inside: Body, label: str) -> str:
    return next((value for _, value in inside.texts(label)), "")


def _around(found: Outline, dag: Dag | None) -> tuple[str, str]:
    """Return the plan's title, and the text that belongs to no task."""
    lines = found.markdown.lines
    taken = {at for item in found.tasks for at in range(item.at, item.end)}
    taken |= set(range(dag.start, dag.end)) if dag is not None else set()
    title = next((one for one in found.sections if one.level == 1 and one.title), None)
    kept: list[str] = []
    for section in found.sections:
        if section.kind in (SectionKind.REPORT, SectionKind.DISCOVERED) or section.start in taken:
            continue
        inner = [
            lines[at].text
            for at in range(section.start + 1, section.end)
            if at not in taken and OURS not in lines[at].text and lines[at].kind is not Kind.COMMENT
        ]
        words = "\n".join(inner).strip("\n")
        heading = lines[section.start] if section.start >= 0 and section is not title else None
        is_theirs = heading is not None and heading.kind is Kind.HEADING and OURS not in heading.text
        if words.strip() and heading is not None and is_theirs:
            words = f"{heading.text.strip()}\n\n{words}"
        kept.append(words if words.strip() else "")
    return title.title if title is not None else "", "\n\n".join(part for part in kept if part)


def _sha256(title: str, tasks: Iterable[PlannedTask], context: str, ours: set[str]) -> str:
    """Return the hash of what is asked for: neither marks nor what Loopwright wrote change it."""
    said = [title, context]
    for task in tasks:
        if task.key not in ours:
            needs = [key for key in task.depends_on if key not in ours]
            run = [gate.command for gate in task.acceptance]
            described = without_marks(task.description)
            asked = (task.key, task.title, described, task.criteria, run, task.scope, task.phase)
            said.append(json.dumps((*asked, task.type, task.complexity, needs)))
    return hashlib.sha256("\0".join(said).encode()).hexdigest()
