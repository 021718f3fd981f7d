"""What a source asks for, apart from how far it has come: the same hash before and after status was written back."""

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Final

from loopwright.adapters.sources.text.markdown import STATUS_WORD
from loopwright.ports import PlannedTask

_STATUS: Final = ("mark", "reason", "commit", "attempts", "line", "first")

_MARKED: Final = re.compile(
    rf"(?mi)^([ \t]*(?:[-*+]|[0-9]{{1,9}}[.)])[ \t]+)\[(?:[ x~/!-]|{STATUS_WORD}(?=\][ \t]))\]"
)


def without_marks(text: str) -> str:
    """Return a text as if every checkbox in it were open."""
    return _MARKED.sub(r"\1[ ]", text)


def fingerprint(tasks: Iterable[PlannedTask], *more: Any) -> str:
    """Return the SHA-256 of these tasks without their status, and of whatever else is asked for."""
    asked = [{key: value for key, value in asdict(task).items() if key not in _STATUS} for task in tasks]
    return hashlib.sha256(json.dumps([asked, *more], sort_keys=True).encode()).hexdigest()
