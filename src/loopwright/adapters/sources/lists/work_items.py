"""Items of a work list in JSON whose keys differ from one project to the next.

The reader knows the keys that people use and leaves every other key alone. It notes a key that is nearly one of them.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from loopwright.adapters.sources.spec.plan_format import MAX_CRITERION, MAX_DESCRIPTION, MAX_ID, MAX_TITLE
from loopwright.adapters.sources.text.criteria import lines_of
from loopwright.adapters.sources.text.located import Located, inner, line_of
from loopwright.adapters.sources.text.problems import Problems
from loopwright.config.nearest import quoted

MAX_ITEMS: Final = 10_000
ID: Final = ("id", "key", "story_id", "storyId", "task_id", "taskId", "feature_id", "featureId")
TITLE: Final = ("title", "name", "feature", "story", "task", "summary")
DESCRIPTION: Final = (
    "description", "details", "user_story", "userStory", "user_visible_behavior", "summary", "story", "behavior",
    "implementation", "implementation_notes", "implementationNotes", "technical_notes", "technicalNotes", "approach",
    "rationale", "notes",
)  # fmt: skip
FILES: Final = (
    "files", "file", "test", "files_to_modify", "filesToModify", "test_file", "impl_file", "spec", "spec_ref",
    "section_ref", "spec_file", "plan_file", "references",
)  # fmt: skip
CRITERIA: Final = (
    "tests", "steps", "acceptance", "acceptance_criteria", "acceptanceCriteria", "criteria", "success_criteria",
    "successCriteria", "verification", "verification_steps", "verificationSteps", "test_steps", "testSteps",
    "test_strategy", "testStrategy", "definition_of_done", "definitionOfDone",
)  # fmt: skip
COMMANDS: Final = (
    "verification_command", "verification_commands", "verificationCommand", "verificationCommands", "verify_command",
    "verifyCommand", "test_command", "testCommand",
)  # fmt: skip
NEEDS: Final = (
    "dependencies", "depends_on", "dependsOn", "blockedBy", "requires", "prerequisites", "needs",
)  # fmt: skip
CATEGORY: Final = ("category", "type", "area", "component")
PHASE: Final = ("phase", "epic", "milestone", "sprint")
PRIORITY: Final = ("priority",)
READ: Final = frozenset(
    (*ID, *TITLE, *DESCRIPTION, *FILES, *CRITERIA, *COMMANDS, *NEEDS, *CATEGORY, *PHASE, *PRIORITY)
)
_GROUPS: Final = ("phases", "epics", "milestones", "sprints", "modules", "categories", "groups", "sections")
_WORDS: Final = re.compile(r"\w+")
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s|\n")
_SHORT: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An entry of the list, with the key that its task gets."""

    key: str
    found: Located
    place: str
    """Where in the document it is, such as `features[3]`."""
    title: str
    group: str = ""
    """The title of the group around it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkList:
    """The items of a document, and the list to which a new item is added."""

    items: tuple[Item, ...]
    lists: tuple[Located, ...]


def text_at(found: Located, keys: Iterable[str]) -> str:
    """Return the first text or number that one of these keys has."""
    for key in keys:
        held = inner(found, key)
        if (
            held is not None
            and isinstance(held.value, str | int | float)
            and not isinstance(held.value, bool)
        ):
            said = " ".join(held.text.split())
            if said:
                return said
    return ""


def read_items(document: Located, names: Sequence[str], problems: Problems) -> WorkList:
    """Return the items of the first list that is there: the document itself, one of these keys, or its groups."""
    lists = list(_lists(document, names, problems))
    if not lists and not problems.count:
        wanted = f'an object with the list "{names[0]}"'
        problems.note(document.line, "", f"expected a list, or {wanted}")
    raw: list[tuple[Located, str, str, str]] = []
    for found, place, group in lists:
        for name, entry in _entries(found):
            where = f"{place}[{name}]"
            if not isinstance(entry.value, dict):
                problems.note(entry.line, where, f"expected an object, got {shown(entry)}")
            elif len(raw) >= MAX_ITEMS:
                problems.note(entry.line, place, f"a list has at most {MAX_ITEMS} items")
                return WorkList(items=(), lists=())
            else:
                raw.append((entry, where, group, name if isinstance(found.value, dict) else ""))
    return WorkList(items=_keyed(raw, problems), lists=tuple(found for found, _, _ in lists))


def shown(found: Located) -> str:
    """Return what a value is, in the words of JSON."""
    if isinstance(found.value, dict | list):
        return "an object" if isinstance(found.value, dict) else "a list"
    return quoted(found.value) if isinstance(found.value, str) else found.text[:60]


def _lists(document: Located, names: Sequence[str], problems: Problems) -> Iterator[tuple[Located, str, str]]:
    if isinstance(document.value, list):
        yield document, "", ""
        return
    taken = ""
    for name in names:
        found = inner(document, name)
        if found is None or not isinstance(found.value, list | dict):
            continue
        if not taken:
            taken = name
            yield from _by_name(found, name)
        elif found.value:
            problems.warn(found.line, name, f"Loopwright reads only {quoted(taken)}; this list is left out")
    if taken:
        return
    grouped = list(_grouped(document, names))
    yield from grouped
    if not grouped:
        yield from _items_by_name(document)


def _by_name(found: Located, name: str) -> Iterator[tuple[Located, str, str]]:
    """Return a list as it is, and an object of lists as one list for each name in it."""
    held = list(_entries(found)) if isinstance(found.value, dict) else []
    if held and all(isinstance(entry.value, list) for _, entry in held):
        yield from ((entry, f"{name}.{key}", key) for key, entry in held)
    else:
        yield found, name, ""


def _grouped(document: Located, names: Sequence[str]) -> Iterator[tuple[Located, str, str]]:
    for name in _GROUPS:
        groups = inner(document, name)
        for at, group in _entries(groups) if groups is not None else ():
            for one in names:
                held = inner(group, one)
                if held is not None and isinstance(held.value, list):
                    yield held, f"{name}[{at}].{one}", text_at(group, (*TITLE, *ID))
                    break


def _items_by_name(document: Located) -> Iterator[tuple[Located, str, str]]:
    """Return an object that has nothing but items, or its phases: each value is an object with its own title."""
    for found, name in ((document, ""), *((inner(document, one), one) for one in ("phases", "epics"))):
        entries = [entry for _, entry in _entries(found)] if found is not None else []
        if found is not None and entries and all(text_at(one, (*TITLE, "description")) for one in entries):
            yield found, name, ""
            return


def _entries(found: Located) -> Iterator[tuple[str, Located]]:
    """Return the entries of a list by their index, or those of an object by their name."""
    if isinstance(found.value, dict):
        yield from found.value.items()
    elif isinstance(found.value, list):
        yield from ((str(index), entry) for index, entry in enumerate(found.value))


def _keyed(raw: list[tuple[Located, str, str, str]], problems: Problems) -> tuple[Item, ...]:
    """Give each item its key: its id, or the words of its title; a repeated one gets more of the item behind it."""
    titles = [_title(found, name) for found, _, _, name in raw]
    ids = [text_at(found, ID) or name for found, _, _, name in raw]
    repeated = {one for one, count in _counted(ids).items() if count > 1}
    alike = _counted(slug(title) for title, name in zip(titles, ids, strict=True) if not name)
    lines: dict[str, int] = {}
    made: list[Item] = []
    for (found, place, group, _), title, name in zip(raw, titles, ids, strict=True):
        if not title:
            problems.note(found.line, place, "it has no title and no description")
            continue
        words = slug(title)
        key = name if name and name not in repeated else "-".join(filter(None, (name, words)))
        if not name and alike[words] > 1:
            key = f"{words}-{_digest(json.dumps(_asked(found), ensure_ascii=False))}"
        key = key if len(key) <= MAX_ID else f"{key[: MAX_ID - 9]}-{_digest(key)}"
        line = line_of(found, "id")
        if key in lines:
            what = "item" if not name else f"item {quoted(name)}"
            problems.note(line, place, f"the {what} is already on line {lines[key]}")
            continue
        if name in repeated:
            problems.warn(
                line, place, f"the id {quoted(name)} is used twice; the task is called {quoted(key)}"
            )
        lines[key] = line
        made.append(Item(key=key, found=found, place=place, title=title, group=group))
    return tuple(made)


def _asked(found: Located) -> list[tuple[str, ...]]:
    """Return what tells two items without an id apart that are called alike: their texts and criteria."""
    return [texts(inner(found, key)) for key in (*DESCRIPTION, *CRITERIA)]


def _counted(names: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        if name:
            counts[name] = counts.get(name, 0) + 1
    return counts


def slug(title: str) -> str:
    """Return the first words of a title as a name, which another title that begins alike does not share."""
    words = "-".join(_WORDS.findall(title.casefold()))
    return words if len(words) <= 48 else f"{words[:40].rstrip('-')}-{_digest(title)[:7]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]


def _title(found: Located, name: str) -> str:
    said = text_at(found, TITLE)
    if said:
        return said if len(said) <= MAX_TITLE else f"{said[: MAX_TITLE - 1]}…"
    text = next((one for key in DESCRIPTION if (one := _prose(inner(found, key)))), "")
    if not text:
        return text_at(found, ID) or name
    first = " ".join(_SENTENCE.split(text, maxsplit=1)[0].split())
    return first if len(first) <= _SHORT else f"{first[: _SHORT - 1].rsplit(' ', 1)[0]}…"


def description(item: Item, *, without: Collection[str] = ()) -> str:
    """Return what the item says besides its title: each text once, then the files that it names."""
    parts: list[str] = []
    for key in DESCRIPTION:
        said = _prose(inner(item.found, key)) if key not in without else ""
        if said and said != item.title and said not in parts:
            parts.append(said)
    for key in FILES:
        listed = ", ".join(texts(inner(item.found, key)))
        if listed:
            parts.append(f"{key.replace('_', ' ')}: {listed}")
    return "\n\n".join(parts)[:MAX_DESCRIPTION]


def _prose(found: Located | None) -> str:
    if found is None or not isinstance(found.value, str | list):
        return ""
    return (
        found.value.strip() if isinstance(found.value, str) else "\n".join(f"- {one}" for one in texts(found))
    )


def criteria(item: Item) -> tuple[str, ...]:
    """Return what must be true of the result, commands to run in backticks."""
    said = [one for key in CRITERIA for one in texts(inner(item.found, key))]
    run = [f"`{one}` passes" for key in COMMANDS for one in texts(inner(item.found, key)) if "`" not in one]
    return tuple(dict.fromkeys(one[:MAX_CRITERION] for one in (*said, *run)))


def texts(found: Located | None) -> tuple[str, ...]:
    """Return the texts of a value: its lines, its entries, or the telling words of the objects in it."""
    if found is None or isinstance(found.value, bool):
        return ()
    if isinstance(found.value, str):
        return lines_of(found.value)
    if isinstance(found.value, list):
        return tuple(one for entry in found.value if (one := _words(entry)))
    return ()


def _words(entry: Located) -> str:
    if isinstance(entry.value, dict):
        said = text_at(entry, ("description", "text", "criterion", "criteria", *TITLE, "step", "path", *ID))
        return said or json.dumps(entry.plain(), ensure_ascii=False)
    return " ".join(entry.text.split()) if not isinstance(entry.value, list) else ", ".join(texts(entry))


def list_title(document: Located, usual: str) -> str:
    """Return what the whole list is called."""
    keys = ("title", "project", "projectName", "project_name", "productName", "product", "name", "feature")
    return text_at(document, keys)[:200] or usual


def context(document: Located) -> str:
    """Return what the document says about the whole, for every task."""
    parts = (_prose(inner(document, key)) for key in ("description", "overview", "goal", "tagline"))
    return "\n\n".join(dict.fromkeys(part for part in parts if part))[:MAX_DESCRIPTION]
