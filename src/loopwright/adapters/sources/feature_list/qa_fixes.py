"""Looks at the whole in a feature list: whom they wait for, and the features that mend what they found."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from loopwright.adapters.sources.text.json_edits import JsonEdits
from loopwright.adapters.sources.text.located import Located, inner, plain, tables, words
from loopwright.adapters.sources.text.problems import MAX_WAITS, Problems
from loopwright.core.policy.graph import dependents
from loopwright.core.replies.qa import TYPE, is_fix_of
from loopwright.ports import FixTask, Mark, PlannedTask, Progress


def category_of(feature: Located) -> str:
    """Return what kind of work the file says it is."""
    return str(plain(feature, "category", "")).strip()


def is_look(feature: Located) -> bool:
    """Say whether a feature asks for a look at the whole rather than for a change."""
    return category_of(feature).lower() == TYPE or words(feature, "id").lower().startswith(f"{TYPE}-")


def is_own_fix(feature: Located) -> bool:
    """Say whether a feature was added here because of a look."""
    return is_fix_of(words(feature, "id"), str(plain(feature, "qa_origin", "")))


def waiting_for_all(
    features: list[Located], edges: Mapping[str, tuple[str, ...]], problems: Problems
) -> Mapping[str, tuple[str, ...]]:
    """Let a look that names nothing to wait for wait for everything that does not wait for it."""
    looks = {words(one, "id"): one for one in features if is_look(one)}
    fixes = {words(one, "id") for one in features if is_own_fix(one)}
    unsaid = [key for key in looks if set(edges[key]) <= fixes]
    if not unsaid:
        return edges
    if len(unsaid) * len(edges) > MAX_WAITS:
        problems.note(
            looks[unsaid[0]].line, "dependencies", f"{len(unsaid)} looks have to say what they wait for"
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


def without_fixes(tasks: Iterable[PlannedTask], features: list[Located]) -> list[PlannedTask]:
    """Return what is asked for by people: the same before and after a look has added fixes."""
    fixes = {words(one, "id") for one in features if is_own_fix(one)}
    # Fixes may lift what waits for them to a later level, which changes its number but not what is asked for.
    return [
        replace(task, depends_on=tuple(sorted(set(task.depends_on) - fixes)), priority=task.priority % 100)
        for task in sorted(tasks, key=lambda one: one.key)
        if task.key not in fixes
    ]


def add_fixes(edits: JsonEdits, progress: Progress) -> None:
    """Add a feature for each fix that the file does not have; the look that found it waits for it."""
    features = inner(edits.document, "features")
    known = {words(one, "id"): one for one in tables(features)}
    missing = [one for one in progress.fixes if one.found_by in known and one.key not in known]
    if features is None or not missing:
        return
    needed: dict[str, list[str]] = {}
    for fix in missing:
        edits.append(features, _feature(fix, progress))
        needed.setdefault(fix.found_by, []).append(fix.key)
    for look, keys in needed.items():
        said = inner(known[look], "dependencies")
        if said is not None and isinstance(said.value, list) and said.value:
            for key in keys:
                edits.append(said, key)
        else:
            edits.put(known[look], "dependencies", keys)


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
