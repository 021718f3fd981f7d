"""User stories in a Ralph prd.json: done in the order of their priority, with `passes` or `status` written back."""

from pathlib import Path
from typing import Final

from loopwright.adapters.sources.lists.item_order import levels, needs, note_near_misses, priority
from loopwright.adapters.sources.lists.item_status import KEYS, StatusStyle, standing
from loopwright.adapters.sources.lists.work_items import (
    CATEGORY,
    PHASE,
    Item,
    context,
    criteria,
    description,
    list_title,
    read_items,
    text_at,
    texts,
)
from loopwright.adapters.sources.text.criteria import acceptance
from loopwright.adapters.sources.text.json_edits import opened
from loopwright.adapters.sources.text.located import inner, line_of, plain
from loopwright.adapters.sources.text.meaning import fingerprint
from loopwright.adapters.sources.text.problems import Problems, refuse
from loopwright.adapters.sources.text.reading import read_file, start_of
from loopwright.core.policy.complexity import LEVELS
from loopwright.ports import Files, Mark, PlannedTask, PlannedWork, Progress, Source

FILE: Final = "prd.json"
LISTS: Final = ("userStories", "user_stories", "stories", "tasks", "features", "items", "requirements")
_LAST: Final = 999


class PrdJsonSource(Source):
    """Reads and writes a prd.json."""

    kind = "prd_json"
    format_name = "Ralph's prd.json"
    usual_places = (
        "prd.json",
        "scripts/ralph/prd.json",
        "ralph/prd.json",
        ".ralph/prd.json",
        "plans/prd.json",
    )

    def recognises(self, place: Path) -> bool:
        """Take the file by its name, and every JSON file that has `userStories`."""
        if place.suffix.lower() != ".json" or not place.is_file():
            return False
        return place.name.lower() == FILE or '"userStories"' in start_of(place)

    def files(self, place: Path) -> Files:
        """Return the one file."""
        return {place.name: read_file(place)}

    def parse(self, files: Files, name: str) -> PlannedWork:
        """Return the stories as tasks, each after the one before it in the order of their priority."""
        ((_, content),) = files.items()
        document = opened(name, content).document
        problems = Problems(name)
        items = read_items(document, LISTS, problems).items
        edges = needs(items, problems)
        refuse(name, problems)
        if not items:
            problems.warn(document.line, "", "the list is empty: add a story to have it done")
        note_near_misses(items, KEYS, problems)
        deep = levels(edges)
        ranks = {item.key: priority(item, _LAST, problems) for item in items}
        ordered = sorted(items, key=lambda item: (deep[item.key], ranks[item.key]))
        tasks: list[PlannedTask] = []
        for item in ordered:
            before = (tasks[-1].key,) if tasks else ()
            tasks.append(_task(item, edges[item.key], before, int(min(max(ranks[item.key], 0), _LAST))))
        title, about = list_title(document, "Product requirements"), context(document)
        baseline = acceptance(
            f"`{one}`" for one in texts(inner(document, "verifyCommands")) if "`" not in one
        )
        return PlannedWork(
            title=title,
            tasks=tuple(tasks),
            baseline=baseline,
            sha256=fingerprint(tasks, title, about, [one.command for one in baseline]),
            context=about,
            notes=problems.notes,
        )

    def written(self, files: Files, progress: Progress) -> Files:
        """Return the file with the status of each story that the progress knows."""
        ((name, content),) = files.items()
        edits = opened(name, content)
        items = read_items(edits.document, LISTS, Problems(name)).items
        style = StatusStyle(items, edits.document, usual="passes")
        for story in items:
            item = progress.items.get(story.key)
            if item is not None:
                style.tell(edits, story.found, item, progress.at)
        made = edits.bytes()
        return {name: made} if made != content else {}


def _task(item: Item, depends_on: tuple[str, ...], before: tuple[str, ...], rank: int) -> PlannedTask:
    said = criteria(item)
    mark, reason = standing(item.found)
    complexity = plain(item.found, "complexity")
    return PlannedTask(
        key=item.key,
        title=item.title,
        description=description(item),
        criteria=said,
        acceptance=acceptance(said),
        depends_on=depends_on,
        after=tuple(one for one in before if one not in depends_on),
        priority=rank,
        phase=item.group or text_at(item.found, PHASE),
        type=text_at(item.found, CATEGORY),
        complexity=complexity if complexity in LEVELS else None,
        mark=mark,
        reason=reason if mark is Mark.BLOCKED else "",
        line=line_of(item.found, "id"),
    )
