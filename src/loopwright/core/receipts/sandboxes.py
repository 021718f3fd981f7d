"""Sandboxes in a receipt: which program made them, in which version, and of which image."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from loopwright.core.values.containment import Containment, MadeWith

FIELDS: Final = frozenset(MadeWith.__dataclass_fields__)


def is_made_with(value: Any) -> bool:
    """Say whether a value that came from outside names what a sandbox was made with."""
    return isinstance(value, dict) and value.keys() == FIELDS and all(map(_is_text, value.values()))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def sandbox_differences(receipt: Mapping[str, Any]) -> list[str]:
    """Say of which runs the sandbox and what it was made with do not go together."""
    return [
        f"{run['id']} had the sandbox {run['sandbox'] or Containment.NONE.value}, {wrong}"
        for run in receipt["runs"]
        if (wrong := _wrong(run["sandbox"], run["sandbox_made_with"]))
    ]


def _wrong(level: str | None, made: Mapping[str, str] | None) -> str:
    if level in (None, Containment.NONE.value):
        return "and it says what that was made with" if made is not None else ""
    if made is None or not made["program"]:
        return "and which program made it is not said"
    images = bool(made["image"] and made["image_id"])
    if images != (level == Containment.CONTAINER.value):
        return "and of which image is not said" if not images else "which needs no image"
    return ""


def sandboxes(receipt: Mapping[str, Any]) -> Counter[str]:
    """Count the runs that began, by their sandbox in words."""
    return Counter(_said(run) for run in receipt["runs"] if run["started_at"])


def _said(run: Mapping[str, Any]) -> str:
    said = run["sandbox"] or "not known"
    if run["sandbox_made_with"] is None:
        return said
    made = str(MadeWith(**run["sandbox_made_with"]))
    return made if made.startswith(said) else f"{said}: {made}"
