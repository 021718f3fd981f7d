"""What each issue of a beads tracker waits for, with its epics resolved to the issues in them."""

from collections.abc import Mapping
from typing import Final

from loopwright.adapters.sources.beads import beads_found
from loopwright.adapters.sources.beads.bd import NO_WORK, RECORD_LABELS, RECORDS, mark_of
from loopwright.adapters.sources.text.located import MAX_NODES, Located, inner, plain, tables, words
from loopwright.adapters.sources.text.problems import Problems, check_graph
from loopwright.config.nearest import did_you_mean, quoted
from loopwright.ports import Mark

_BLOCKS: Final = "blocks"
_KINDS: Final = frozenset({_BLOCKS, "parent-child", "discovered-from", "related"})


def status_of(issue: Located) -> str:
    return words(issue, "status") or "open"


def named_in(issue: Located, kind: str) -> list[str]:
    """Return the issues that this one names in dependencies of a kind; a bare id is one that blocks."""
    held = inner(issue, "dependencies")
    entries = held.value if held is not None and isinstance(held.value, list) else []
    bare = [one.text for one in entries if isinstance(one.value, str)] if kind == _BLOCKS else []
    named = (one for one in tables(held) if (words(one, "type") or _BLOCKS) == kind)
    return [*bare, *(words(one, "depends_on_id") for one in named)]


def _is_record(issue: Located) -> bool:
    labels = plain(issue, "labels", [])
    is_labelled = isinstance(labels, list) and not RECORD_LABELS.isdisjoint(map(str, labels))
    return is_labelled or words(issue, "issue_type") in RECORDS


def _is_epic(issue: Located) -> bool:
    return words(issue, "issue_type") == "epic"


def edges_of(issues: Mapping[str, Located], problems: Problems) -> dict[str, tuple[str, ...]]:
    """Return for each task what it waits for.

    An epic is a container and never a task. It is done when its issues are: an issue that waits for the epic waits for
    them, and they wait for whatever the epic waits for.
    """
    work = {
        key: issue
        for key, issue in issues.items()
        if status_of(issue) not in NO_WORK and not _is_record(issue) and not beads_found.is_found(issue)
    }
    children: dict[str, list[str]] = {}
    edges: dict[str, tuple[str, ...]] = {}
    places = {key: (issue.line, "dependencies") for key, issue in work.items()}
    odd: dict[str, int] = {}
    absent: dict[str, int] = {}
    for key, issue in work.items():
        for parent in named_in(issue, "parent-child"):
            children.setdefault(parent, []).append(key)
        needs = dict.fromkeys(named_in(issue, _BLOCKS))
        # A deleted or pinned issue holds nothing up.
        edges[key] = tuple(need for need in needs if need in work)
        for need in needs:
            if need not in issues:
                absent.setdefault(need, issue.line)
        for one in tables(inner(issue, "dependencies")):
            kind = words(one, "type") or _BLOCKS
            if kind not in _KINDS:
                odd.setdefault(kind, issue.line)
    for kind, line in odd.items():
        problems.warn(line, "dependencies", f"those of the type {quoted(kind)} put nothing in order here")
    if absent:
        named = ", ".join(list(absent)[:10]) + (", …" if len(absent) > 10 else "")
        meant = did_you_mean(next(iter(absent)), tuple(work)) if len(work) <= 1000 else ""
        message = f"no issue is called {named}{meant}; Loopwright does not wait for it"
        problems.warn(next(iter(absent.values())), "dependencies", message)
    childless = [key for key in work if _is_epic(work[key]) and key not in children]
    for key in childless:
        if mark_of(status_of(work[key])) is not Mark.DONE:
            problems.warn(work[key].line, "", f"the epic {quoted(key)} has no issues: it is not a task")
    check_graph(problems, edges, places, "issue")
    if problems.count:
        return {}
    containers = {key for key in work if _is_epic(work[key])}
    made: dict[str, tuple[str, ...]] = {}
    left = MAX_NODES
    for key, issue in work.items():
        if key not in containers:
            wanted = [*edges[key], *_inherited(issue, work, containers, edges)]
            made[key] = tuple(
                dict.fromkeys(each for need in wanted for each in _inside(need, children, containers))
            )
            left -= len(made[key])
            if left < 0:
                problems.note(issue.line, "dependencies", "too many of them, with those of epics counted in")
                return {}
    check_graph(problems, made, places, "issue")
    return made


def _inherited(
    issue: Located, issues: Mapping[str, Located], containers: set[str], edges: Mapping[str, tuple[str, ...]]
) -> list[str]:
    found: list[str] = []
    seen: set[str] = set()
    above = named_in(issue, "parent-child")
    while above:
        parent = above.pop()
        if parent in containers and parent not in seen:
            seen.add(parent)
            found += edges[parent]
            above += named_in(issues[parent], "parent-child")
    return found


def _inside(key: str, children: Mapping[str, list[str]], containers: set[str]) -> list[str]:
    """Return the issues that a container comes down to, or the issue itself."""
    found: list[str] = []
    seen: set[str] = set()
    below = [key]
    for each in below:
        if each in seen:
            continue
        seen.add(each)
        if each in containers:
            below += children.get(each, [])
        else:
            found.append(each)
    return found
