"""What a look at the whole found, as features to be mended: each once, before the look is taken again."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from loopwright.adapters.sources.json_edits import opened
from loopwright.adapters.sources.located import inner, tables, words
from loopwright.core.errors import BadPlan
from loopwright.ports import Files

PRIORITIES: Final[Mapping[str, int]] = MappingProxyType({"critical": 45, "high": 50, "medium": 55, "low": 60})
_NUMBER: Final = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class QaIssue:
    """One thing that is wrong, as a tester writes it down."""

    what: str
    where: str = ""
    steps: str = ""
    expected: str = ""
    actual: str = ""
    severity: str = "medium"
    screenshot: str = ""

    @property
    def description(self) -> str:
        """Everything about it, a line for each part."""
        parts = (
            ("Where", self.where), ("Steps", self.steps), ("Expected", self.expected),
            ("Actual", self.actual), ("Screenshot", self.screenshot),
        )  # fmt: skip
        return "\n".join([self.what, *(f"{name}: {words}" for name, words in parts if words)])


def fix_features(
    features: Iterable[Mapping[str, Any]], qa_id: str, issues: Iterable[QaIssue]
) -> tuple[dict[str, Any], ...]:
    """Return the features that are to be added for a QA feature's issues, those already there left out."""
    prefix = f"fix-{qa_id}-"
    known: set[str] = set()
    last = 0
    for feature in features:
        key = str(feature.get("id", ""))
        # A fix that passed and did not help is no reason to leave the issue alone.
        if feature.get("qa_origin") == qa_id and feature.get("passes") is not True:
            known.add(_sameness(str(feature.get("name", ""))))
        # Exactly this prefix and a number: `fix-qa-1-001` is none of `qa-1-001`'s.
        if key.startswith(prefix) and _NUMBER.fullmatch(number := key.removeprefix(prefix)):
            last = max(last, int(number))
    made: list[dict[str, Any]] = []
    for issue in issues:
        if issue.severity not in PRIORITIES:
            raise BadPlan(qa_id, (f"{issue.severity!r} is no severity: {', '.join(PRIORITIES)}",))
        name = " ".join(f"Fix: {issue.what}{f' ({issue.where})' if issue.where else ''}".split())[:200]
        if _sameness(name) in known:
            continue
        known.add(_sameness(name))
        last += 1
        made.append(
            {
                "id": f"{prefix}{last:03d}",
                "name": name,
                "description": issue.description,
                "category": "fix",
                "priority": PRIORITIES[issue.severity],
                "severity": issue.severity,
                "qa_origin": qa_id,
                "passes": False,
            }
        )
    return tuple(made)


def with_fixes(files: Files, qa_id: str, issues: Iterable[QaIssue]) -> Files:
    """Return the feature list with a fix for each issue; the QA feature stays open and waits for all of them."""
    ((name, content),) = files.items()
    edits = opened(name, content)
    features = inner(edits.document, "features")
    origin = next((entry for entry in tables(features) if words(entry, "id") == qa_id), None)
    if features is None or origin is None:
        raise BadPlan(name, (f"there is no feature {qa_id}",))
    fixes = fix_features([entry.plain() for entry in tables(features)], qa_id, issues)
    for fix in fixes:
        edits.append(features, fix)
    needs = inner(origin, "dependencies")
    if needs is not None and isinstance(needs.value, list):
        for fix in fixes:
            edits.append(needs, fix["id"])
    elif fixes:
        edits.put(origin, "dependencies", [fix["id"] for fix in fixes])
    return {name: edits.bytes()} if fixes else {}


def _sameness(name: str) -> str:
    return " ".join(name.lower().split())
