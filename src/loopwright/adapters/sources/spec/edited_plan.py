"""Change a plan file as a person would: what is not named stays as it is, comments too."""

import io
from typing import Any

from loopwright.core.plans.draft_edits import DraftEdit, DraftTask
from loopwright.core.values.errors import Refused


def edited(text: str, edit: DraftEdit) -> str:
    """Return the text of a plan file after an edit."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = 110
    try:
        plan = yaml.load(text)
    except YAMLError as broken:
        raise _unreadable() from broken
    if not isinstance(plan, dict) or not isinstance(plan.get("tasks"), list):
        raise _unreadable()
    if edit.title is not None:
        plan["title"] = edit.title
    if edit.tasks is not None:
        known = {str(task.get("id")): task for task in plan["tasks"] if isinstance(task, dict)}
        plan["tasks"][:] = [_task(known.get(task.key), task) for task in edit.tasks]
    out = io.StringIO()
    yaml.dump(plan, out)
    return out.getvalue()


def _task(before: Any, wanted: DraftTask) -> Any:
    task = before if before is not None else {"id": wanted.key, "title": wanted.title or wanted.key}
    for name in ("title", "description", "priority"):
        if (value := getattr(wanted, name)) is not None:
            task[name] = value
    for name in ("depends_on", "criteria", "acceptance"):
        if (values := getattr(wanted, name)) is not None:
            task[name] = list(values)
    return task


def _unreadable() -> Refused:
    return Refused(
        "the file of this draft is not a plan any more",
        code="plan_not_editable",
        hint="put the file back, or plan again",
    )
