"""QA reviews in a feature list: what they wait for, and the features that fix what they found."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from loopwright.adapters.sources.lists.work_items import CATEGORY, NEEDS, Item, WorkList, text_at
from loopwright.adapters.sources.text.json_edits import JsonEdits
from loopwright.adapters.sources.text.located import inner, plain
from loopwright.adapters.sources.text.problems import MAX_WAITS, Problems
from loopwright.core.policy.graph import dependents
from loopwright.core.replies.qa import TYPE, is_fix_of
from loopwright.ports import FixTask, Mark, PlannedTask, Progress


def category_of(item: Item) -> str:
    """Return what kind of work the file says it is."""
    return text_at(item.found, CATEGORY)


def is_look(item: Item) -> bool:
    """Return whether a feature asks for a QA review rather than for a change."""
    return category_of(item).lower() == TYPE or item.key.lower().startswith(f"{TYPE}-")


def is_own_fix(item: Item) -> bool:
    """Return whether Loopwright added a feature because of a QA review."""
    return is_fix_of(item.key, str(plain(item.found, "qa_origin", "")))


def waiting_for_all(
    items: Sequence[Item], edges: Mapping[str, tuple[str, ...]], problems: Problems
) -> Mapping[str, tuple[str, ...]]:
    """Let a QA review without dependencies wait for everything that does not wait for it."""
    looks = {one.key: one for one in items if is_look(one)}
    fixes = {one.key for one in items if is_own_fix(one)}
    unsaid = [key for key in looks if set(edges[key]) <= fixes]
    if not unsaid:
        return edges
    if len(unsaid) * len(edges) > MAX_WAITS:
        problems.note(
            looks[unsaid[0]].found.line,
            "dependencies",
            f"{len(unsaid)} QA reviews have to say what they wait for",
        )
        return edges
    followers = dependents(edges)
    made = dict(edges)
    for key in unsaid:
        behind, todo = {key}, [key]
        while todo:
            new = [one for one in followers[todo.pop()] if one not in behind]
            behind.update(new)
            todo += new
        rest = (one for one in edges if one not in looks and one not in behind)
        made[key] = tuple(dict.fromkeys((*edges[key], *rest)))
    return made


def without_fixes(tasks: Iterable[PlannedTask], items: Sequence[Item]) -> list[PlannedTask]:
    """Return what the user asks for: the same before and after a QA review has added fixes."""
    fixes = {one.key for one in items if is_own_fix(one)}
    # Fixes may move what waits for them to a later level, which changes its number but not what is asked for.
    return [
        replace(task, depends_on=tuple(sorted(set(task.depends_on) - fixes)), priority=task.priority % 100)
        for task in sorted(tasks, key=lambda one: one.key)
        if task.key not in fixes
    ]


def add_fixes(edits: JsonEdits, found: WorkList, progress: Progress) -> None:
    """Add a feature for each fix that the file does not have; the QA review that found it waits for it."""
    known = {one.key: one.found for one in found.items}
    missing = [one for one in progress.fixes if one.found_by in known and one.key not in known]
    if not found.lists or not isinstance(found.lists[-1].value, list) or not missing:
        return
    needed: dict[str, list[str]] = {}
    for fix in missing:
        edits.append(found.lists[-1], _feature(fix, progress))
        needed.setdefault(fix.found_by, []).append(fix.key)
    for look, keys in needed.items():
        name = next((key for key in NEEDS if inner(known[look], key) is not None), NEEDS[0])
        said = inner(known[look], name)
        if said is not None and isinstance(said.value, list) and said.value:
            for key in keys:
                edits.append(said, key)
        else:
            edits.put(known[look], name, keys)


def _feature(fix: FixTask, progress: Progress) -> dict[str, object]:
    item = progress.items.get(fix.key)
    return {
        "id": fix.key,
        "name": fix.title,
        "description": fix.issue,
        "category": "fix",
        "priority": fix.priority,
        "severity": fix.severity,
        "qa_origin": fix.found_by,
        "passes": item is not None and item.mark is Mark.DONE,
    }
