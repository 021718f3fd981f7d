"""A QA review: its checklist, how its report is read, and which fixes follow from it.

An agent does the review, so its report is a claim. These are facts: that it ran, on which commit, that it
covers every part of its checklist, and how many issues it names. A review without a readable report does not
count.
"""

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Any, Final

from loopwright.core.replies.answers import Unreadable, clean, missing, object_in
from loopwright.core.values.shapes import one_of

TYPE: Final = "qa"
"""The type of a task that asks for a QA review instead of a change."""
ORIGIN: Final = "qa"
"""The origin of a task that fixes what a QA review found."""
FENCE: Final = "loopwright-qa"
"""The language of the fenced block with the report of an agent that does not accept a schema."""
FULL, LITE = "full", "lite"
EXECUTION: Final = "execution"
"""The mode of the review that evaluates the execution of a track."""
EVALUATION: Final = "evaluation"
"""The origin of the task that requests it."""
STRUCTURE: Final = "structure"
UI_UX, CODE_QUALITY, INTEGRATION, BUSINESS_LOGIC = "ui_ux", "code_quality", "integration", "business_logic"

AREAS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        FULL: {
            "visual": "layout, spacing, colours and texts are as they should be, small and large screens included",
            "elements": "every button, link, field, option or command is there and does something",
            "functions": "what can be done works from end to end, wrong and unusual input included",
            "data": "what is saved is there afterwards, unharmed, and what is deleted is gone",
            "accessibility": "it can be used by keyboard and screen reader, with labels and enough contrast",
        },
        LITE: {
            "load": "it starts, or its pages load, without an error",
            "happy_path": "what it is for works once, from end to end",
            "persistence": "what was saved is there after a restart",
            "validation": "plainly wrong input is refused with words that help",
        },
        EXECUTION: {
            STRUCTURE: "every task of the plan is done as it says, and nothing else was built",
            UI_UX: "design, layout, states, texts and accessibility",
            CODE_QUALITY: "build, types, patterns, errors, dead code and tests",
            INTEGRATION: "contracts with other services, authentication, stored data, recovery and configuration",
            BUSINESS_LOGIC: "the rules of the product, edge cases, states and whole journeys",
        },
    }
)
"""The areas of a QA review, by its mode."""
PRIORITIES: Final[Mapping[str, int]] = MappingProxyType({"critical": 45, "high": 50, "medium": 55, "low": 60})
"""How soon an issue is fixed, by its severity: lower is sooner."""
RESULTS: Final = ("fine", "issues", "does_not_apply")
MOST_ISSUES: Final = 50
_LONGEST: Final = 2000
_LONGEST_NAME: Final = 200
_PARTS: Final = ("where", "steps", "expected", "actual", "screenshot")
_NUMBER: Final = re.compile(r"\d{3,}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedIssue:
    """One issue as an agent reports it."""

    what: str
    where: str = ""
    steps: str = ""
    expected: str = ""
    actual: str = ""
    severity: str = "medium"
    screenshot: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QaIssue(ReportedIssue):
    """An issue with what Loopwright added to it."""

    by_gate: bool = False
    """Whether the checks found it, not the agent."""
    fix: str = ""
    """The key of the task that fixes it; empty if there is none."""

    @property
    def title(self) -> str:
        """The title of the task that fixes it."""
        return " ".join(f"Fix: {self.what}{f' ({self.where})' if self.where else ''}".split())[:_LONGEST_NAME]

    @property
    def description(self) -> str:
        """Everything about it, a line for each part."""
        said = [f"{name.capitalize()}: {words}" for name in _PARTS if (words := getattr(self, name))]
        return "\n".join([self.what, *said])


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What the agent checked in one area."""

    area: str
    result: Annotated[str, one_of(RESULTS)]
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QaReport:
    """The result of a QA review."""

    mode: str
    summary: str
    checked: tuple[Checked, ...]
    issues: tuple[QaIssue, ...] = ()

    @property
    def sha256(self) -> str:
        """The hash of what the agent reported, without what Loopwright added since."""
        said = [
            [one.what, *(getattr(one, name) for name in _PARTS), one.severity]
            for one in self.issues
            if not one.by_gate
        ]
        seen = [[one.area, one.result, one.how] for one in self.checked]
        text = json.dumps(["loopwright.qa/1", self.mode, self.summary, seen, said], separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    @property
    def in_words(self) -> str:
        """The result as part of a line."""
        count = len(self.issues)
        found = "nothing" if not count else "1 issue" if count == 1 else f"{count} issues"
        return f"a QA review ({self.mode}) found {found}"


def scope_of(mode: str, origin: str, evaluators: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return the mode and the areas of a task's review: the evaluation of a track has those of its evaluators."""
    return (EXECUTION, (STRUCTURE, *evaluators)) if origin == EVALUATION else (mode, tuple(AREAS[mode]))


def schema(mode: str, areas: Sequence[str] = ()) -> dict[str, Any]:
    """Return the schema of a report, for agents that accept a schema; without `areas`, with all."""
    text = {"type": "string"}
    return _object(
        summary={"type": "string", "description": "What you did and came to, in a few sentences."},
        checked={
            "type": "array",
            "description": "One entry for each area.",
            "items": _object(
                area={"type": "string", "enum": list(areas or AREAS[mode])},
                result={"type": "string", "enum": list(RESULTS)},
                how={"type": "string", "description": "What you did and saw, or why it does not apply."},
            ),
        },
        issues={
            "type": "array",
            "items": _object(
                what={"type": "string", "description": "What is wrong, in one sentence."},
                **dict.fromkeys(_PARTS, text),
                severity={"type": "string", "enum": list(PRIORITIES)},
            ),
        },
    )


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


def read_report(
    structured: Mapping[str, Any] | None, text: str, mode: str, areas: Sequence[str] = ()
) -> QaReport | Unreadable:
    """Read the report of a QA review; it has to cover every area of the mode, or these areas."""
    value = structured if structured is not None else object_in(text, FENCE)
    if value is None:
        return missing(FENCE)
    areas = areas or tuple(AREAS[mode])
    checked, listed = value.get("checked"), value.get("issues")
    if not isinstance(checked, list) or not isinstance(listed, list):
        return Unreadable(problem="`checked` and `issues` have to be lists")
    seen = [one for entry in checked if (one := _checked(entry, areas)) is not None]
    if left := [area for area in areas if area not in {one.area for one in seen}]:
        return Unreadable(
            problem=f"nothing usable is said of {', '.join(left)}: `result` and `how` for each area"
        )
    found: list[QaIssue] = []
    for n, entry in enumerate(listed, 1):
        issue = _issue(entry)
        if isinstance(issue, str):
            return Unreadable(problem=f"issue {n}: {issue}")
        found.append(issue)
    if not found and (bad := [one.area for one in seen if one.result == "issues"]):
        return Unreadable(problem=f"{', '.join(bad)}: `result` is issues, but there is none in the list")
    # Of too many, the worst are kept: the next review finds the others.
    ranked = sorted(dict.fromkeys(found), key=lambda one: PRIORITIES[one.severity])[:MOST_ISSUES]
    summary = clean(value.get("summary"), _LONGEST)
    return QaReport(mode=mode, summary=summary, checked=tuple(seen), issues=tuple(ranked))


def _checked(value: object, areas: Sequence[str]) -> Checked | None:
    if not isinstance(value, dict):
        return None
    # "happy path" is the usual name.
    area, result = (str(value.get(key)).strip().replace(" ", "_") for key in ("area", "result"))
    if area not in areas or result not in RESULTS:
        return None
    how = clean(value.get("how"), _LONGEST)
    # The example in a prompt that a program repeats has dots instead of words.
    if not how.strip(". …"):
        return None
    return Checked(area=area, result=result, how=how)


def _issue(value: object) -> QaIssue | str:
    if not isinstance(value, dict):
        return "not an object"
    what = clean(value.get("what"), _LONGEST)
    if not what.strip(". …"):
        return "`what` is missing"
    if value.get("severity") not in PRIORITIES:
        return f"`severity` must be one of {', '.join(PRIORITIES)}"
    parts: dict[str, Any] = {name: clean(value.get(name), _LONGEST) for name in _PARTS}
    return QaIssue(what=what, severity=str(value["severity"]), **parts)


# --- fixes --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """The current state of a task that fixes an issue."""

    key: str
    title: str
    is_done: bool = False
    is_declined: bool = False
    """Whether the user declined it."""


def with_fixes(
    issues: Sequence[QaIssue], qa_key: str, known: Sequence[Fix], taken: Collection[str]
) -> tuple[QaIssue, ...]:
    """Return the open issues, each with the task that fixes it: an existing one, or a new one.

    Issues that the user declined are left out. A fix that did not help does not close its issue.
    """
    standing = {_sameness(fix.title): fix for fix in known if not fix.is_done}
    prefix = f"fix-{qa_key}-"
    # Exactly this prefix and a number: `fix-qa-1-001` does not belong to `qa-1-001`.
    numbers = [int(key.removeprefix(prefix)) for key in taken if is_fix_of(key, qa_key)]
    last = max(numbers, default=0)
    made: list[QaIssue] = []
    for issue in issues:
        fix = standing.get(_sameness(issue.title))
        if fix is None:
            last += 1
            fix = Fix(key=f"{prefix}{last:03d}", title=issue.title)
            standing[_sameness(issue.title)] = fix
        if not fix.is_declined and fix.key not in {one.fix for one in made}:
            made.append(replace(issue, fix=fix.key))
    return tuple(made)


def is_fix_of(key: str, qa_key: str) -> bool:
    """Return whether a key belongs to a task that fixes what this review found."""
    prefix = f"fix-{qa_key}-"
    return key.startswith(prefix) and _NUMBER.fullmatch(key.removeprefix(prefix)) is not None


def rounds(reports: Sequence[QaReport]) -> int:
    """Return how many reviews in a row led to fixes, the newest last; an abandoned one resets the count."""
    count = 0
    for report in reports:
        count = count + 1 if any(issue.fix for issue in report.issues) else 0
    return count


def told(report: QaReport) -> str:
    """Return the findings of an earlier review, for the next one."""
    lines = [
        f"- {_flat(one.description)}" + (f" (fixed by {one.fix})" if one.fix else "") for one in report.issues
    ]
    after = "Check whether each one is fixed; report what is not."
    return "\n".join(["An earlier QA review found:", *lines, after]) if lines else ""


def _flat(text: str) -> str:
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())


def _sameness(name: str) -> str:
    return " ".join(name.lower().split())
