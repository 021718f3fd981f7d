"""What a file is that is not a plan file."""

from collections.abc import Mapping
from typing import Any, Final

from loopwright.adapters.sources.text.located import Located

_RUN: Final = "; run it with `--source {}`"
_STORIES: Final = frozenset({"userStories", "user_stories"})
_TASK_MASTER: Final = frozenset({"testStrategy", "subtasks", "dependencies"})


def looks_like(document: Located) -> str:
    """Return which other form a document has, and how to run it; nothing if it may be a plan."""
    value = document.value
    if isinstance(value, list):
        return _of_list(_first(document))
    if not isinstance(value, dict) or "title" in value:
        return ""
    keys = value.keys()
    if keys & _STORIES:
        return "a Ralph prd.json" + _RUN.format("prd_json")
    if "features" in keys:
        return "a feature list" + _RUN.format("feature_list")
    if "development_status" in keys:
        return "a BMAD sprint-status.yaml" + _RUN.format("bmad")
    if "issues" in keys:
        return "a list of issues" + _RUN.format("issues_json")
    if {"loopName", "tests"} <= keys:
        return "a test-state.json" + _RUN.format("test_state")
    if {"name", "version"} <= keys and keys & {"scripts", "dependencies", "devDependencies"}:
        return "a package.json, which has no tasks"
    return _of_tasks(value)


def _of_list(first: Mapping[str, Any]) -> str:
    if {"number", "title"} <= first.keys():
        return "a list of issues" + _RUN.format("issues_json")
    if first.keys() & {"passes", "steps", "category", "status", "description", "title", "name"}:
        return "a feature list" + _RUN.format("feature_list")
    return ""


def _of_tasks(value: Mapping[str, Located]) -> str:
    tagged = [
        one.value["tasks"] for one in value.values() if isinstance(one.value, dict) and "tasks" in one.value
    ]
    tasks = [*([value["tasks"]] if "tasks" in value else []), *tagged]
    first = next((found for one in tasks if (found := _first(one))), {})
    if "label" in first and first.keys() & {"command", "type"}:
        return "a tasks.json of VS Code, which has no work"
    if len(first.keys() & _TASK_MASTER) > 1:
        return "a Task Master tasks.json" + _RUN.format("task_master")
    return ""


def _first(found: Located) -> Mapping[str, Any]:
    """Return the first entry of a list, if it is an object."""
    entry = found.value[0].value if isinstance(found.value, list) and found.value else None
    return entry if isinstance(entry, dict) else {}
