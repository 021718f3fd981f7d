"""Features in a feature_list.json: what each asks for, in which order, and how `passes` and `blocked` get back."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

from loopwright.adapters.sources.feature_list.feature_found import add_found, is_found
from loopwright.adapters.sources.feature_list.feature_schema import COMPLEXITIES, FEATURE_LIST
from loopwright.adapters.sources.feature_list.qa_fixes import (
    add_fixes,
    category_of,
    is_look,
    waiting_for_all,
    without_fixes,
)
from loopwright.adapters.sources.text.criteria import acceptance
from loopwright.adapters.sources.text.json_edits import JsonEdits, opened, stamp, storable
from loopwright.adapters.sources.text.located import Located, inner, line_of, plain, tables, words
from loopwright.adapters.sources.text.meaning import fingerprint
from loopwright.adapters.sources.text.problems import Problems, check_graph, refuse
from loopwright.adapters.sources.text.reading import read_file
from loopwright.adapters.sources.text.schema_check import check_schema
from loopwright.config.nearest import nearest, quoted
from loopwright.core.policy.graph import topological
from loopwright.core.replies.qa import TYPE
from loopwright.core.values.errors import BadPlan
from loopwright.ports import Files, ItemProgress, Mark, PlannedTask, PlannedWork, Progress, Source

FILE: Final = "feature_list.json"
_KEYS: Final = frozenset(FEATURE_LIST["properties"]["features"]["items"]["properties"])
DEFAULT_PRIORITY: Final = 99
MAX_FEATURES: Final = 10_000
_BAND: Final = 100
NEEDS_REVIEW: Final = "it needs a review by a person first (needs_review)"


class FeatureListSource(Source):
    """Reads and writes a feature_list.json."""

    kind = "feature_list"

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
        check_schema(document, FEATURE_LIST, problems)
        features = tables(inner(document, "features"))
        if len(features) > MAX_FEATURES:
            refuse(name, problems)
            line = features[MAX_FEATURES].line
            raise BadPlan(name, (f"{name}:{line}: a list has at most {MAX_FEATURES} features",))
        # What agents came upon is nobody's task before a person says so.
        features = [one for one in features if not is_found(one)]
        edges, places = _graph(features, problems)
        check_graph(problems, edges, places, "feature")
        refuse(name, problems)
        waits = waiting_for_all(features, edges, problems)
        refuse(name, problems)
        tasks = _ordered(features, waits, problems)
        title = _title(document)
        asked = fingerprint(without_fixes(tasks, features), title)
        return PlannedWork(title=title, tasks=tasks, sha256=asked, notes=problems.notes)

    def written(self, files: Files, progress: Progress) -> Files:
        """Return the file with `passes` and the blocked fields as the progress has them."""
        ((name, content),) = files.items()
        edits = opened(name, content)
        for feature in tables(inner(edits.document, "features")):
            item = progress.items.get(words(feature, "id"))
            if item is not None and not is_found(feature):
                _tell(edits, feature, item, progress.at)
        add_fixes(edits, progress)
        add_found(edits, progress)
        made = edits.bytes()
        return {name: made} if made != content else {}


def _title(document: Located) -> str:
    for key in ("title", "project", "name"):
        found = plain(document, key)
        if isinstance(found, str) and found.strip():
            return " ".join(found.split())[:200]
    return "Feature list"


def _graph(
    features: list[Located], problems: Problems
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[int, str]]]:
    """Return who waits for whom, as far as the file has the right shape: what has not is noted already."""
    edges: dict[str, tuple[str, ...]] = {}
    places: dict[str, tuple[int, str]] = {}
    lines: dict[str, int] = {}
    for index, feature in enumerate(features):
        key, title = words(feature, "id"), words(feature, "name")
        line, place = line_of(feature, "id"), f"features[{index}]"
        for name in ("id", "name"):
            if (held := str(plain(feature, name, ""))) and not held.strip():
                problems.note(line_of(feature, name), f"{place}.{name}", "empty")
        if "\n" in title:
            problems.note(
                line_of(feature, "name"), f"{place}.name", "must be one line; use description for more"
            )
        if key and key in lines:
            problems.note(line, f"{place}.id", f"{quoted(key)} is already on line {lines[key]}")
        if not key or key in lines:
            continue
        lines[key] = line
        needs = plain(feature, "dependencies", [])
        named = [each for each in needs if isinstance(each, str | int)] if isinstance(needs, list) else []
        edges[key] = tuple(dict.fromkeys(str(each).strip() for each in named))
        places[key] = (line_of(feature, "dependencies"), f"{place}.dependencies")
    return edges, places


def _ordered(
    features: list[Located], edges: Mapping[str, tuple[str, ...]], problems: Problems
) -> tuple[PlannedTask, ...]:
    """Return the features by level, then by priority; a tie is as in the file."""
    levels: dict[str, int] = {}
    for key in topological(edges):
        levels[key] = max((levels[needed] + 1 for needed in edges[key]), default=0)
    ranked: list[tuple[int, float, PlannedTask]] = []
    for index, feature in enumerate(features):
        priority = _priority(feature, f"features[{index}]", problems)
        key = words(feature, "id")
        # A band for each level, so that a feature of a lower level comes first whatever its number is. What is alike
        # in a band goes by its place below: a rank among all would be another number whenever a feature is added.
        number = levels[key] * _BAND + int(min(max(priority, 0), _BAND - 1))
        task = replace(_task(feature, f"features[{index}]", problems), depends_on=edges[key], priority=number)
        ranked.append((levels[key], priority, task))
    return tuple(task for _, _, task in sorted(ranked, key=lambda each: each[:2]))


def _priority(feature: Located, place: str, problems: Problems) -> float:
    found = inner(feature, "priority")
    if found is None or found.value is None:
        return DEFAULT_PRIORITY
    if isinstance(found.value, bool) or not isinstance(found.value, int | float):
        problems.warn(found.line, f"{place}.priority", f"not a number: {DEFAULT_PRIORITY} is taken")
        return DEFAULT_PRIORITY
    return found.value


def _task(feature: Located, place: str, problems: Problems) -> PlannedTask:
    key = words(feature, "id")
    category = category_of(feature)
    complexity = plain(feature, "complexity")
    if complexity is not None and complexity not in COMPLEXITIES:
        known = ", ".join(COMPLEXITIES)
        message = f"expected one of: {known}; it is ignored"
        problems.warn(line_of(feature, "complexity"), f"{place}.complexity", message)
        complexity = None
    tests = tuple(entry.strip() for entry in plain(feature, "tests", []) if entry.strip())
    _warn_of_misspelt(feature, place, problems)
    mark, reason = _standing(feature)
    return PlannedTask(
        key=key,
        title=words(feature, "name"),
        description=words(feature, "description"),
        criteria=tests,
        acceptance=acceptance(tests),
        type=TYPE if is_look(feature) else category,
        complexity=complexity,
        mark=mark,
        reason=reason,
        line=line_of(feature, "id"),
    )


def _warn_of_misspelt(feature: Located, place: str, problems: Problems) -> None:
    """Say what is nearly one of our keys: all others are somebody's, and none of our business."""
    given = feature.value if isinstance(feature.value, dict) else {}
    for key, value in given.items():
        guess = nearest(key, _KEYS, cutoff=0.8) if key not in _KEYS else None
        if guess is not None and guess not in given:
            problems.warn(value.line, f"{place}.{key}", f"unknown key, it is ignored: did you mean {guess}?")


def _standing(feature: Located) -> tuple[Mark, str]:
    if plain(feature, "passes") is True:
        return Mark.DONE, ""
    if plain(feature, "blocked") is True:
        reason = str(plain(feature, "blocked_reason", "")).strip() or "blocked in the file, without a reason"
        by = plain(feature, "blocked_by", [])
        if isinstance(by, list) and by:
            reason += f" (blocked by: {', '.join(str(each) for each in by)})"
        fix = str(plain(feature, "suggested_fix", "")).strip()
        return Mark.BLOCKED, f"{reason} (suggested fix: {fix})" if fix else reason
    if plain(feature, "needs_review") is True:
        return Mark.BLOCKED, NEEDS_REVIEW
    return Mark.OPEN, ""


def _tell(edits: JsonEdits, feature: Located, item: ItemProgress, at: datetime) -> None:
    standing, present = _standing(feature)
    match item.mark:
        case Mark.DONE:
            if standing is not Mark.DONE:
                edits.put(feature, "passes", True)
                _unblock(edits, feature)
        case Mark.OPEN | Mark.RUNNING:
            if standing is Mark.DONE:
                edits.put(feature, "passes", False)
            _unblock(edits, feature)
            if plain(feature, "needs_review") is True:
                edits.put(feature, "needs_review", False)
        case Mark.BLOCKED | Mark.SKIPPED:
            # The format has no word for what nobody wants: it waits for a person, too.
            reason = storable(item.reason) or "no reason was given"
            reason = f"skipped: {reason}" if item.mark is Mark.SKIPPED else reason
            if (standing, present) == (Mark.BLOCKED, reason):
                return
            if standing is Mark.DONE:
                edits.put(feature, "passes", False)
            is_new = plain(feature, "blocked") is not True or plain(feature, "blocked_reason") != reason
            edits.put(feature, "blocked", True)
            edits.put(feature, "blocked_reason", reason)
            if is_new:
                edits.put(feature, "blocked_at", stamp(item.ended_at or at))


def _unblock(edits: JsonEdits, feature: Located) -> None:
    if plain(feature, "blocked") is True:
        edits.put(feature, "blocked", False)
        edits.drop(feature, "blocked_reason")
        edits.drop(feature, "blocked_at")
