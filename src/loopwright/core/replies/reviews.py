"""Reviews: which changes need one, how a reviewer's answer is read, and the effect of a finding.

A reviewer is an agent, so its answer is a claim. These are facts: that it ran, on exactly which change, and
how many findings it calls blocking. Only findings on lines of that change can send work back.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.replies.answers import Unreadable, clean, findings_schema, missing
from loopwright.core.values.globs import any_covers
from loopwright.core.values.patches import ChangedFile, Patch, file_of
from loopwright.core.values.policy import ReviewPolicy
from loopwright.core.values.shapes import Count
from loopwright.core.values.states import ReviewState

FENCE: Final = "loopwright-review"
"""The language of the fenced block with the answer of an agent that does not accept a schema."""
MOST_TRIES: Final = 2
"""After this many runs without a readable answer, a review is unclear."""
MOST_FINDINGS: Final = 100
_LONGEST: Final = 2000
_LONGEST_NAME: Final = 500
_NAMED: Final = 5

RISKY_WORDS: Final = frozenset(
    {"auth", "authentication", "authorization", "login", "oauth", "password", "passwords", "permissions"}
    | {"secret", "secrets", "token", "tokens", "crypto", "security", "payment", "payments", "billing"}
    | {"migration", "migrations"}
)
"""Parts of names of files in which mistakes are expensive."""
RISKY_PLACES: Final = (".github", ".gitlab-ci.yml", ".circleci", "**/Dockerfile*", "**/*.tf")
"""Files that decide how the project is built and delivered."""


class Ground(StrEnum):
    """The kind of reason to review a change."""

    COMPLEX = "complex"
    SIZE = "size"
    PLACE = "place"
    GATE = "gate"
    """It touched its judging files, or only looks right to its tests."""


BY_COMPLEXITY: Final[Mapping[str, frozenset[Ground]]] = {
    "high": frozenset(Ground),
    "medium": frozenset({Ground.SIZE, Ground.PLACE, Ground.GATE}),
    "low": frozenset({Ground.GATE}),
}
"""The reasons that count for a task of each complexity: a complex task is always reviewed, an easy one rarely."""


class Decision(StrEnum):
    """A reviewer's decision about a change as a whole."""

    APPROVE = "approve"
    OBJECT = "object"
    UNCLEAR = "unclear"


class Severity(StrEnum):
    """How serious a finding is."""

    BLOCKING = "blocking"
    """The work must not land as it is."""
    OPINION = "opinion"
    """It is recorded, and has no effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One remark of a reviewer about a change."""

    file: str
    line: Count | None
    severity: Severity
    text: str
    in_diff: bool = False
    """Whether the place is in the reviewed change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A reviewer's answer."""

    summary: str
    findings: tuple[Finding, ...]
    decision: Decision | None = None
    """None if the reviewer only gave findings."""

    @property
    def blocking(self) -> tuple[Finding, ...]:
        """The findings that keep the work from landing."""
        return blocking(self.findings)


_FINDINGS: Final = findings_schema(
    {
        "file": {"type": "string", "description": "The path as the diff has it."},
        "line": {
            "type": "integer",
            "description": "A line of the diff, by its number in the file as it is now.",
        },
    },
    (one.value for one in Severity),
)
SCHEMA: Final[Mapping[str, Any]] = {
    **_FINDINGS,
    "required": ["decision", *_FINDINGS["required"]],
    "properties": {
        "decision": {
            "type": "string",
            "enum": list(Decision),
            "description": "Whether the change may land; `unclear` if you cannot tell.",
        },
        **_FINDINGS["properties"],
    },
}
"""The schema of an answer, for agents that accept a schema."""


# --- how much review -------------------------------------------------------------------------------------


def reasons(
    policy: ReviewPolicy, patch: Patch, facts: GateFiles, *, subfolder: str = "", complexity: str = "medium"
) -> tuple[str, ...]:
    """Return why a change needs a review; empty if it does not."""
    if policy.mode == "off":
        return ()
    counts = BY_COMPLEXITY[complexity] if policy.mode == "complex" else frozenset(Ground)
    found = ["every change is reviewed"] if policy.mode == "always" else []
    if complexity == "high":
        found.append("the task is complex")
    if patch.lines > policy.lines and Ground.SIZE in counts:
        found.append(f"{patch.lines} lines changed, more than {policy.lines}")
    top = f"{subfolder}/" if subfolder else ""
    risky = [path for one in patch.files if is_risky(path := one.path.removeprefix(top), policy.paths)]
    for ground, what, names in (
        (Ground.PLACE, "it changes places where mistakes are dear", risky),
        (Ground.GATE, "it contradicts existing checks", facts.contradicted),
        (Ground.GATE, "tests that ran before do not run any more", facts.missing),
        (Ground.GATE, "it changes build files that may steer the gate", facts.build_files),
        (Ground.GATE, "it may only look right to its tests, so look here first", facts.suspicious),
    ):
        if names and ground in counts:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            found.append(f"{what}: {', '.join(names[:_NAMED])}{more}")
    return tuple(found)


def is_risky(path: str, patterns: Sequence[str]) -> bool:
    """Return whether a mistake in this file is expensive; the last matching pattern decides, `!` excludes it."""
    for pattern in reversed(patterns):
        if any_covers([pattern.removeprefix("!")], path):
            return not pattern.startswith("!")
    words = {word for part in re.split(r"[/._-]", path) for word in _words(part)}
    return bool(words & RISKY_WORDS) or any_covers(RISKY_PLACES, path)


def _words(part: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", part)]


# --- a reviewer's answer ---------------------------------------------------------------------------------


def read_answer(structured: Mapping[str, Any] | None, text: str, patch: Patch) -> Answer | Unreadable:
    """Read a reviewer's structured answer, and match each finding with the change. Other text is ignored."""
    value = structured if structured is not None else _only_block(text)
    if value is None:
        return missing(FENCE)
    if isinstance(value, Unreadable):
        return value
    decision = value.get("decision")
    if decision is not None and decision not in tuple(Decision):
        return Unreadable(problem=f"`decision` must be {', '.join(Decision)}")
    listed = value.get("findings")
    if not isinstance(listed, list):
        return Unreadable(problem="`findings` is not a list")
    found: list[Finding] = []
    for n, one in enumerate(listed, 1):
        finding = _finding(one, patch.files)
        if isinstance(finding, str):
            return Unreadable(problem=f"finding {n}: {finding}")
        found.append(finding)
    # Of too many, those that require something are kept.
    ranked = sorted(dict.fromkeys(found), key=lambda one: one.severity is not Severity.BLOCKING)
    return Answer(
        summary=clean(value.get("summary"), _LONGEST),
        findings=tuple(ranked[:MOST_FINDINGS]),
        decision=Decision(decision) if decision is not None else None,
    )


def _only_block(text: str) -> Mapping[str, Any] | Unreadable | None:
    """Return the only answer block in a reviewer's last message.

    A second block may be a quotation from the change, so then neither counts.
    """
    blocks = re.findall(rf"^```{FENCE}[ \t]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    if len(blocks) > 1:
        return Unreadable(problem=f"there are {len(blocks)} blocks ```{FENCE} in your last message: give one")
    try:
        value = json.loads(blocks[0] if blocks else text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def outcome(answer: Answer, *, decides: bool) -> tuple[ReviewState, str]:
    """Return the result of a review, with the reason if it is unclear.

    A review that `decides` about contradicted checks needs an explicit approval.
    """
    if answer.blocking:
        return ReviewState.BLOCKING, ""
    match answer.decision:
        case Decision.UNCLEAR:
            return ReviewState.UNCLEAR, "the reviewer could not decide"
        case Decision.OBJECT:
            return ReviewState.UNCLEAR, "the reviewer objects, but names no line of the change"
        case None if decides:
            return ReviewState.UNCLEAR, "the reviewer gave no decision"
    return ReviewState.CLEAR, ""


def _finding(value: object, files: Sequence[ChangedFile]) -> Finding | str:
    if not isinstance(value, dict):
        return "not an object"
    file, text = clean(value.get("file"), _LONGEST_NAME), clean(value.get("text"), _LONGEST)
    if not text:
        return "`text` is missing"
    if not file:
        return "`file` is missing"
    severity, line = value.get("severity"), value.get("line")
    if severity not in tuple(Severity):
        return f"`severity` must be {' or '.join(Severity)}"
    if line is not None and (isinstance(line, bool) or not isinstance(line, int)):
        return "`line` is not a whole number"
    changed = file_of(files, file)
    found = Finding(
        file=changed.path if changed else file,
        line=line if line is not None and 0 < line < 2**31 else None,
        severity=Severity(severity),
        text=text,
        in_diff=changed is not None and line is not None and changed.has(line),
    )
    return found if found.in_diff else replace(found, severity=Severity.OPINION)


def blocking(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the findings that keep work from landing."""
    return tuple(one for one in findings if one.severity is Severity.BLOCKING)


def said_hash(summary: str, findings: Sequence[Finding]) -> str:
    """Return the hash of a reviewer's answer."""
    said = [[one.file, one.line, one.severity.value, one.text, one.in_diff] for one in findings]
    text = json.dumps(["loopwright.review/1", summary, said], ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def in_words(findings: Sequence[Finding]) -> str:
    """Return findings as a list, for a prompt or for the user."""
    return "\n".join(f"- {place(one)}: {_indented(one.text)}" for one in findings)


def place(finding: Finding) -> str:
    """Return the place of a finding."""
    return finding.file if finding.line is None else f"{finding.file}:{finding.line}"


def _indented(text: str) -> str:
    return "\n  ".join(text.splitlines())
