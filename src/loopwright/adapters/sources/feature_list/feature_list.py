"""Features in a feature_list.json: what each asks for, in which order, and how status gets back."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from loopwright.adapters.sources.feature_list.feature_found import add_found, is_found
from loopwright.adapters.sources.feature_list.feature_schema import COMPLEXITIES, ITEM
from loopwright.adapters.sources.feature_list.qa_fixes import (
    add_fixes,
    category_of,
    is_look,
    waiting_for_all,
    without_fixes,
)
from loopwright.adapters.sources.lists.item_order import levels, needs, note_near_misses, priority
from loopwright.adapters.sources.lists.item_status import KEYS, StatusStyle, standing
from loopwright.adapters.sources.lists.work_items import (
    PHASE,
    Item,
    context,
    criteria,
    description,
    list_title,
    read_items,
    text_at,
)
from loopwright.adapters.sources.text.criteria import acceptance
from loopwright.adapters.sources.text.json_edits import opened
from loopwright.adapters.sources.text.located import inner, line_of, plain
from loopwright.adapters.sources.text.meaning import fingerprint
from loopwright.adapters.sources.text.problems import Problems, refuse
from loopwright.adapters.sources.text.reading import read_file
from loopwright.core.replies.qa import TYPE
from loopwright.ports import Files, PlannedTask, PlannedWork, Progress, Source

FILE: Final = "feature_list.json"
LISTS: Final = ("features", "feature_list", "featureList", "items", "tasks", "userStories", "stories")
DEFAULT_PRIORITY: Final = 99
_BAND: Final = 100
_ALONE: Final = ("one_feature_at_a_time", "single_active_feature")


class FeatureListSource(Source):
    """Reads and writes a feature_list.json."""

    kind = "feature_list"
    format_name = "Feature list"
    usual_places = ("feature_list.json", "*/feature_list.json", ".harness/feature_list.json")

    def recognises(self, place: Path) -> bool:
        """Take the file by its name."""
        return place.name.lower() == FILE and place.is_file()

    def files(self, place: Path) -> Files:
        """Return the one file."""
        return {place.name: read_file(place)}

    def parse(self, files: Files, name: str) -> PlannedWork:
        """Return the features as tasks in the order of their levels and priorities."""
        ((_, content),) = files.items()
        document = opened(name, content).document
        problems = Problems(name)
        found = read_items(document, LISTS, problems).items
        # Work that agents found is not a task before the user says so.
        items = [one for one in found if not is_found(one)]
        edges = needs(items, problems)
        refuse(name, problems)
        if not found:
            problems.warn(document.line, "", "the list is empty: add a feature to have it done")
        waits = waiting_for_all(items, edges, problems)
        refuse(name, problems)
        note_near_misses(items, (*KEYS, *ITEM["properties"]), problems)
        tasks = _ordered(items, waits, problems)
        title, about = list_title(document, "Feature list"), context(document)
        rules = inner(document, "rules")
        alone = rules is not None and any(plain(rules, key) is True for key in _ALONE)
        settings = {"parallel": 1} if alone else {}
        return PlannedWork(
            title=title,
            tasks=tasks,
            settings=settings,
            sha256=fingerprint(without_fixes(tasks, items), title, about, settings),
            context=about,
            notes=problems.notes,
        )

    def written(self, files: Files, progress: Progress) -> Files:
        """Return the file with its status as the progress has it."""
        ((name, content),) = files.items()
        edits = opened(name, content)
        found = read_items(edits.document, LISTS, Problems(name))
        style = StatusStyle(found.items, edits.document, usual="passes")
        for feature in found.items:
            item = progress.items.get(feature.key)
            if item is not None and not is_found(feature):
                style.tell(edits, feature.found, item, progress.at)
        add_fixes(edits, found, progress)
        add_found(edits, found, progress)
        made = edits.bytes()
        return {name: made} if made != content else {}


def _ordered(
    items: Sequence[Item], edges: Mapping[str, tuple[str, ...]], problems: Problems
) -> tuple[PlannedTask, ...]:
    """Return the features by level, then by priority; a tie is as in the file."""
    deep = levels(edges)
    ranked: list[tuple[int, float, PlannedTask]] = []
    for item in items:
        wanted = priority(item, DEFAULT_PRIORITY, problems)
        # A band for each level, so that a feature of a lower level comes first whatever its number is. Equal numbers
        # go by their place in the file: a rank among all would change whenever a feature is added.
        number = deep[item.key] * _BAND + int(min(max(wanted, 0), _BAND - 1))
        task = replace(_task(item, problems), depends_on=edges[item.key], priority=number)
        ranked.append((deep[item.key], wanted, task))
    return tuple(task for _, _, task in sorted(ranked, key=lambda each: each[:2]))


def _task(item: Item, problems: Problems) -> PlannedTask:
    complexity = plain(item.found, "complexity")
    if complexity is not None and complexity not in COMPLEXITIES:
        message = f"expected one of: {', '.join(COMPLEXITIES)}; it is ignored"
        problems.warn_once(
            "complexity", line_of(item.found, "complexity"), f"{item.place}.complexity", message
        )
        complexity = None
    said = criteria(item)
    mark, reason = standing(item.found)
    return PlannedTask(
        key=item.key,
        title=item.title,
        description=description(item),
        criteria=said,
        acceptance=acceptance(said),
        phase=item.group or text_at(item.found, PHASE),
        type=TYPE if is_look(item) else category_of(item),
        complexity=complexity,
        mark=mark,
        reason=reason,
        line=line_of(item.found, "id"),
    )
