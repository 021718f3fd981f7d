"""Reviews: which changes need one, how a reviewer's answer is read, and what a finding may do.

A reviewer is an agent, so what it says is a claim. These are facts: that it ran, on exactly which change, and how
many findings it calls blocking. Only findings on lines of that change can send work back.
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
"""The language of the fenced block that has the answer of an agent that cannot be given a schema."""
MOST_TRIES: Final = 2
"""After so many runs without a readable answer, a review is unclear."""
MOST_FINDINGS: Final = 100
_LONGEST: Final = 2000
_LONGEST_NAME: Final = 500
_NAMED: Final = 5

RISKY_WORDS: Final = frozenset(
    {"auth", "authentication", "authorization", "login", "oauth", "password", "passwords", "permissions"}
    | {"secret", "secrets", "token", "tokens", "crypto", "security", "payment", "payments", "billing"}
    | {"migration", "migrations"}
)
"""Parts of names behind which mistakes are dear."""
RISKY_PLACES: Final = (".github", ".gitlab-ci.yml", ".circleci", "**/Dockerfile*", "**/*.tf")
"""What decides how the project is built and delivered."""


class Ground(StrEnum):
    """What kind of reason there may be to review a change."""

    COMPLEX = "complex"
    SIZE = "size"
    PLACE = "place"
    GATE = "gate"
    """It touched what judges it, or only looks right to its tests."""


BY_COMPLEXITY: Final[Mapping[str, frozenset[Ground]]] = {
    "high": frozenset(Ground),
    "medium": frozenset({Ground.SIZE, Ground.PLACE, Ground.GATE}),
    "low": frozenset({Ground.GATE}),
}
"""Which of them count for a task where its complexity decides: a hard one is always reviewed, an easy one hardly."""


class Decision(StrEnum):
    """What a reviewer decides about a change as a whole."""

    APPROVE = "approve"
    OBJECT = "object"
    UNCLEAR = "unclear"


class Severity(StrEnum):
    """What a finding asks for."""

    BLOCKING = "blocking"
    """The work must not land as it is."""
    OPINION = "opinion"
    """It is kept, and nothing follows from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a reviewer says about a change."""

    file: str
    line: Count | None
    severity: Severity
    text: str
    in_diff: bool = False
    """Whether the place is part of the change that was reviewed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a reviewer came to."""

    summary: str
    findings: tuple[Finding, ...]
    decision: Decision | None = None
    """None if the reviewer gave findings alone."""

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
"""What an answer looks like, for agents that can be given a schema."""


# --- how much review -------------------------------------------------------------------------------------


def reasons(
    policy: ReviewPolicy, patch: Patch, facts: GateFiles, *, subfolder: str = "", complexity: str = "medium"
) -> tuple[str, ...]:
    """Return why a change is to be reviewed; nothing when it is not."""
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
    """Return whether a mistake in this file is expensive; the last pattern that matches it decides, `!` excludes it."""
    for pattern in reversed(patterns):
        if any_covers([pattern.removeprefix("!")], path):
            return not pattern.startswith("!")
    words = {word for part in re.split(r"[/._-]", path) for word in _words(part)}
    return bool(words & RISKY_WORDS) or any_covers(RISKY_PLACES, path)


def _words(part: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", part)]


# --- what a reviewer says --------------------------------------------------------------------------------


def read_answer(structured: Mapping[str, Any] | None, text: str, patch: Patch) -> Answer | Unreadable:
    """Read a reviewer's structured answer, and tie each finding to the change. No other word of it counts."""
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
    # Of too many, those are kept that ask for something.
    ranked = sorted(dict.fromkeys(found), key=lambda one: one.severity is not Severity.BLOCKING)
    return Answer(
        summary=clean(value.get("summary"), _LONGEST),
        findings=tuple(ranked[:MOST_FINDINGS]),
        decision=Decision(decision) if decision is not None else None,
    )


def _only_block(text: str) -> Mapping[str, Any] | Unreadable | None:
    """Return the answer in a reviewer's last words.

    A second block may be one that the reviewer quotes from the change, so then neither counts.
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
    """Return how a review ends, with the reason if it is unclear.

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
    """Return the hash of what a reviewer said."""
    said = [[one.file, one.line, one.severity.value, one.text, one.in_diff] for one in findings]
    text = json.dumps(["loopwright.review/1", summary, said], ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def in_words(findings: Sequence[Finding]) -> str:
    """Return findings as a list, for a prompt or for a person."""
    return "\n".join(f"- {place(one)}: {_indented(one.text)}" for one in findings)


def place(finding: Finding) -> str:
    """Return where a finding stands."""
    return finding.file if finding.line is None else f"{finding.file}:{finding.line}"


def _indented(text: str) -> str:
    return "\n  ".join(text.splitlines())
