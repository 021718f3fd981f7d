"""Business documents that a change makes wrong: who reported them, and which are still unchanged."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from loopwright.core.replies.answers import clean
from loopwright.core.values.globs import any_covers
from loopwright.core.values.templates import Template

FENCE: Final = "loopwright-docs"
"""The language of a fenced block in which an agent lists documents that must follow its change."""
ORIGIN: Final = "docs"
"""The origin of the task that updates them."""
KEY: Final = "business-sync"
_BLOCK: Final = re.compile(rf"^```{FENCE}[ \t]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
MOST: Final = 20
"""How many are taken from one report."""
_LONGEST: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class DocSync:
    """A statement that documents must follow a change."""

    reason: str
    documents: tuple[str, ...]
    """Files or folders, relative to the project."""
    by: str = ""
    """The attempt that reported it; empty if it was the source."""


def flagged_in(text: str, by: str) -> tuple[DocSync, ...]:
    """Return the documents that an agent lists in its last message; an unreadable block is skipped."""
    found = []
    for block in _BLOCK.findall(text)[:MOST]:
        try:
            value = json.loads(block)
        except (ValueError, RecursionError):
            continue
        listed = value.get("documents") if isinstance(value, dict) else None
        documents = usable(listed if isinstance(listed, list) else [])
        if documents:
            found.append(DocSync(reason=clean(value.get("reason"), _LONGEST), documents=documents, by=by))
    return tuple(dict.fromkeys(found))


def usable(paths: Iterable[object]) -> tuple[str, ...]:
    """Return the paths inside the project, each once."""
    cleaned = (clean(path, _LONGEST).removeprefix("./").rstrip("/") for path in paths)
    inside = (path for path in cleaned if path.strip(". …") and not path.startswith(("/", "~", "-")))
    return tuple(dict.fromkeys(path for path in inside if ".." not in path.split("/")))[:MOST]


def documents_of(flags: Iterable[DocSync]) -> tuple[str, ...]:
    """Return all named documents, in order."""
    return tuple(dict.fromkeys(document for flag in flags for document in flag.documents))


def by_registry(documents: Iterable[str], registry: Sequence[str]) -> tuple[str, ...]:
    """Return the documents in the order of the registry; others come last."""
    known = [entry.partition(":")[0].strip() for entry in registry]
    return tuple(sorted(documents, key=lambda one: known.index(one) if one in known else len(known)))


def unchanged(documents: Sequence[str], changed: Sequence[str]) -> tuple[str, ...]:
    """Return the documents that contain no changed path and are not one."""
    return tuple(one for one in documents if not any(any_covers([one], path) for path in changed))


def description(template: Template, flags: Sequence[DocSync], documents: Sequence[str]) -> str:
    """Return the description of the task that updates these documents."""
    reasons = dict.fromkeys(flag.reason for flag in flags if flag.reason)
    listed = {"documents": documents, "reasons": reasons}
    return template.fill(
        {name: "\n".join(f"- {one}" for one in each) for name, each in listed.items()}
    ).strip()
