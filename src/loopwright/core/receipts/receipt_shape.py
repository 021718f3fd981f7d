"""The shape of a receipt: what a file that came from outside must look like before any part of it is used."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from loopwright.core.gates.flakes import FOLDERS
from loopwright.core.policy.finishing import WAYS
from loopwright.core.policy.red_first import RedProof
from loopwright.core.receipts.receipt_checkout import WHOSE
from loopwright.core.receipts.receipt_facts import USAGE
from loopwright.core.receipts.receipt_overrides import OVERRIDES
from loopwright.core.receipts.receipt_qa import SAID, is_checked, is_issue
from loopwright.core.receipts.receipt_sandboxes import FIELDS, is_made_with
from loopwright.core.replies.qa import AREAS, RESULTS
from loopwright.core.replies.reviews import Severity
from loopwright.core.values import ids
from loopwright.core.values.findings import CheckStatus, VerdictStatus
from loopwright.core.values.states import FinishState, PlanState, ReviewState, TaskState

SCHEMA: Final = "loopwright.receipt/1"

_SHA: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class _Test:
    """What may stand at a place, for us to ask and for others to read."""

    holds: Callable[[Any], bool]
    schema: Mapping[str, Any]

    def __call__(self, value: Any) -> bool:
        return self.holds(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_sha(value: Any) -> bool:
    return isinstance(value, str) and _SHA.fullmatch(value) is not None


_text: Final = _Test(lambda value: isinstance(value, str), {"type": "string"})
_count: Final = _Test(_is_count, {"type": "integer", "minimum": 0})
_number: Final = _Test(lambda value: isinstance(value, int | float), {"type": "number"})
_flag: Final = _Test(lambda value: isinstance(value, bool), {"type": "boolean"})
_code: Final = _Test(lambda value: isinstance(value, int), {"type": "integer"})
_sha: Final = _Test(_is_sha, {"type": "string", "pattern": f"^({_SHA.pattern})$"})


def _maybe(test: _Test) -> _Test:
    return _Test(lambda value: value is None or test(value), {"anyOf": [test.schema, {"type": "null"}]})


def _id(kind: ids.Kind) -> _Test:
    return _Test(
        lambda value: isinstance(value, str) and ids.is_id(value, kind),
        {"type": "string", "pattern": f"^{kind.value}_[0-9a-f-]{{36}}$"},
    )


def _one_of(words: Iterable[str]) -> _Test:
    known = sorted(str(word) for word in words)
    return _Test(lambda value: isinstance(value, str) and value in known, {"enum": known})


def _exactly(shape: Mapping[str, _Test]) -> _Test:
    """Ask for an object with these keys and no other."""
    return _Test(
        lambda value: (
            isinstance(value, dict)
            and value.keys() == shape.keys()
            and all(test(value[name]) for name, test in shape.items())
        ),
        {
            "type": "object",
            "additionalProperties": False,
            "required": list(shape),
            "properties": {name: test.schema for name, test in shape.items()},
        },
    )


_COMMAND: Final[dict[str, _Test]] = {
    "name": _text,
    "command": _text,
    "timeout_s": _number,
    "junit": _maybe(_text),
}
_command: Final = _exactly(_COMMAND)
_texts: Final = _Test(
    lambda value: isinstance(value, list) and all(map(_text, value)), {"type": "array", "items": _text.schema}
)


def _is_held_out(value: Any) -> bool:
    if not isinstance(value, dict) or value.keys() != {"check", "files", "hint"}:
        return False
    files = value["files"]
    return (
        _command(value["check"])
        and _text(value["hint"])
        and isinstance(files, list)
        and all(isinstance(one, dict) and one.keys() == {"path", "sha256"} for one in files)
        and all(_inside(one["path"]) and _sha(one["sha256"]) for one in files)
    )


def _inside(value: Any) -> bool:
    """Say whether it is a path that stays below the folder that it is relative to: files are laid there."""
    if not _text(value) or not value.strip():
        return False
    return not (value.startswith("/") or ".." in value.split("/") or "\0" in value)


_held_out: Final = _Test(
    _is_held_out,
    {
        "type": "object",
        "additionalProperties": False,
        "required": ["check", "files", "hint"],
        "properties": {
            "check": _command.schema,
            "files": {
                "type": "array",
                "items": _exactly({"path": _text, "sha256": _sha}).schema,
            },
            "hint": _text.schema,
        },
    },
)
_gate_files: Final = _exactly(
    {
        "pinned": _texts,
        "pinned_tree": _maybe(_sha),
        "pinned_without": _texts,
        "exempt": _texts,
        "build_files": _texts,
        "contradicted": _texts,
        "allowed_by": _texts,
        "removed": _texts,
        "reason": _text,
        "missing": _texts,
        "added_tests": _count,
        "red_proof": _maybe(_flag),
        "red_tree": _maybe(_sha),
        "red_tests": _texts,
        "red_skipped": _text,
        "red_missing": _text,
        "red_seen": _texts,
        "suspicious": _texts,
    }
)


_finding: Final = _exactly(
    {
        "file": _text,
        "line": _maybe(_count),
        "severity": _one_of([*Severity]),
        "text": _text,
        "in_diff": _flag,
    }
)


_checked: Final = _Test(
    is_checked, _exactly({"area": _text, "result": _one_of(RESULTS), "how": _text}).schema
)
_issue: Final = _Test(is_issue, _exactly(dict.fromkeys(SAID, _text)).schema)
_made_with: Final = _Test(is_made_with, _exactly(dict.fromkeys(sorted(FIELDS), _text)).schema)
_RAN: Final[dict[str, Any]] = {
    "name": _text,
    "command": _text,
    "exit_code": _maybe(_code),
    "timed_out": _flag,
    "output_sha256": _text,
    "output_bytes": _count,
    "tests": _maybe(_count),
    "reported": _flag,
    "known_failures": _count,
    "known_failed": _texts,
    "flaky": _texts,
    "kept_sha256": _text,
    "seen_sha256": _text,
    "report_sha256": _text,
    "changed": _texts,
    "touched": _texts,
    "only_new_tests": _flag,
}
_RECEIPT: Final[dict[str, Any]] = {
    "schema": _one_of((SCHEMA,)),
    "sha256": _text,
    "outcome": _text,
    "gaps": [{"task": _maybe(_text), "cause": _text, "remedy": _text}],
    "notes": [{"task": _maybe(_text), "text": _text}],
    "not_checked": [_text],
    "project": {"subfolder": _text},
    "plan": {
        "id": _id(ids.Kind.PLAN),
        "status": _one_of([*PlanState]),
        "base_sha": _sha,
        "result_sha": _maybe(_sha),
        "result_tree": _maybe(_sha),
        "diff_sha256": _maybe(_text),
        "not_ours": [{"sha": _sha, "subject": _text, "gate_files": _texts}],
        "contradicted": _texts,
        "allowed_by": _texts,
        "red_on_base": _texts,
        "setup": _maybe(_command),
        "gates": [_COMMAND],
        "policy": {
            "unseen_proof": _flag,
            "red_proof": _one_of([*RedProof]),
            "gate_files": _texts,
            "may_change": _texts,
            "installed_gates": _texts,
            "test_changes": _one_of(["ask", "allow"]),
        },
    },
    "tasks": [
        {
            "id": _id(ids.Kind.TASK),
            "key": _text,
            "title": _text,
            "type": _text,
            "origin": _text,
            "prove": _flag,
            "manual": _flag,
            "described_sha256": _text,
            "status": _one_of([*TaskState]),
            "outcome": _text,
            "failure": _maybe(_text),
            "criteria": _count,
            "scope": _texts,
            "acceptance": [_COMMAND],
            "held_out": [_held_out],
            "landed_sha": _maybe(_sha),
            "tree": _maybe(_sha),
            "parent_sha": _maybe(_sha),
            "diff_sha256": _maybe(_text),
            "attempts": [
                {
                    "id": _id(ids.Kind.ATTEMPT),
                    "n": _count,
                    "agent": _maybe(_text),
                    "model": _maybe(_text),
                    "base_sha": _maybe(_sha),
                    "tip_sha": _maybe(_sha),
                    "state": _text,
                    "failure": _maybe(_text),
                    "wait_reason": _text,
                    "candidate_sha": _maybe(_sha),
                    "touched": _texts,
                    "gate_files": _maybe(_gate_files),
                    "review_id": _maybe(_id(ids.Kind.REVIEW)),
                    "fix_turns": _count,
                }
            ],
        }
    ],
    "verdicts": [
        {
            "id": _id(ids.Kind.VERDICT),
            "tree": _sha,
            "gate_key": _text,
            "run_id": _id(ids.Kind.RUN),
            "status": _one_of([*VerdictStatus]),
            "unknown_before": _text,
            "left_open": _texts,
            "notes": _texts,
            "checks": {status.value: _count for status in CheckStatus},
            "commands": [_RAN],
            "reruns": [{"folder": _one_of(FOLDERS), "alone": _flag, "commands": [_RAN]}],
        }
    ],
    "reviews": [
        {
            "id": _id(ids.Kind.REVIEW),
            "task_id": _id(ids.Kind.TASK),
            "run_id": _id(ids.Kind.RUN),
            "state": _one_of([*ReviewState]),
            "patch_sha256": _text,
            "said_sha256": _text,
            "shown_whole": _flag,
            "contradicted": _texts,
            "problem": _text,
            "blocking": _count,
            "opinions": _count,
        }
    ],
    "claims": [
        {
            "id": _id(ids.Kind.REVIEW),
            "summary": _text,
            "findings": [_finding],
        }
    ],
    "opinions": [
        {
            "id": _id(ids.Kind.PLAN),
            "agent": _text,
            "model": _maybe(_text),
            "summary": _text,
            "findings": [{"task": _text, "severity": _one_of([*Severity]), "text": _text}],
        }
    ],
    "looks": [
        {
            "id": _id(ids.Kind.ATTEMPT),
            "task_id": _id(ids.Kind.TASK),
            "run_id": _maybe(_id(ids.Kind.RUN)),
            "commit": _maybe(_sha),
            "mode": _one_of([*AREAS]),
            "areas": _texts,
            "issues": _count,
            "by_gate": _count,
            "fixes": [_id(ids.Kind.TASK)],
            "report_sha256": _text,
        }
    ],
    "reports": [
        {
            "id": _id(ids.Kind.ATTEMPT),
            "summary": _text,
            "checked": [_checked],
            "issues": [_issue],
        }
    ],
    "overrides": [
        {
            "type": _one_of([*OVERRIDES]),
            "actor": _text,
            "at": _text,
            "task": _maybe(_id(ids.Kind.TASK)),
            "why": _text,
            "commit": _maybe(_sha),
            "took_out": [{"task": _id(ids.Kind.TASK), "sha": _sha}],
            "note": _text,
        }
    ],
    "checkout_changes": [
        {
            "at": _text,
            "task": _maybe(_id(ids.Kind.TASK)),
            "run": _id(ids.Kind.RUN),
            "whose": _one_of([*WHOSE]),
            "changes": _texts,
            "patch_sha256": _maybe(_sha),
        }
    ],
    "runs": [
        {
            "id": _id(ids.Kind.RUN),
            "task_id": _maybe(_text),
            "attempt_id": _maybe(_text),
            "ended_event": _maybe(_sha),
            "output_bytes": _maybe(_count),
            "exit_code": _maybe(_code),
            "model": _maybe(_text),
            "role": _text,
            "output_sha256": _maybe(_text),
            "files_sha256": _text,
            "reused_run_id": _maybe(_text),
            "prompt_sha256": _maybe(_text),
            "agent": _maybe(_text),
            "account": _maybe(_text),
            "agent_version": _maybe(_text),
            "permission_mode": _maybe(_text),
            "sandbox": _maybe(_text),
            "sandbox_made_with": _maybe(_made_with),
            "template": _maybe(_exactly({"file": _text, "version": _count, "sha256": _sha})),
            "started_at": _maybe(_text),
            "cost_micros": _maybe(_count),
            "cost_estimated": _flag,
            "usage": {name: _maybe(_count) for name in USAGE},
        }
    ],
    "finishes": [
        {
            "id": _id(ids.Kind.FINISH),
            "how": _one_of(WAYS),
            "state": _one_of([*FinishState]),
            "tasks": [_id(ids.Kind.TASK)],
            "source_sha": _maybe(_sha),
            "target_sha": _maybe(_sha),
            "commit_sha": _maybe(_sha),
            "tree": _maybe(_sha),
            "verdict_id": _maybe(_id(ids.Kind.VERDICT)),
            "receipt_sha256": _maybe(_sha),
            "signed": _flag,
            "request_url": _maybe(_text),
        }
    ],
    "cost": {},
    "usage": {},
}


def shape_problems(receipt: Any) -> list[str]:
    """Say what keeps a value that came from outside from being a receipt; only then may its parts be used."""
    problems = _misshapen(receipt, _RECEIPT, "receipt")
    if not problems and len({task["id"] for task in receipt["tasks"]}) != len(receipt["tasks"]):
        problems.append("receipt.tasks: an id stands there twice")
    return problems


def receipt_schema() -> dict[str, Any]:
    """Return the JSON Schema of what is asked of a receipt; a newer program may have more in it."""
    return {"title": "Loopwright: a receipt", **_published(_RECEIPT)}


def _published(shape: Any) -> dict[str, Any]:
    if isinstance(shape, _Test):
        return dict(shape.schema)
    if isinstance(shape, list):
        return {"type": "array", "items": _published(shape[0])}
    named = {name: _published(part) for name, part in shape.items()}
    if shape is _COMMAND:
        return dict(_command.schema)
    return {"type": "object", **({"required": list(named), "properties": named} if named else {})}


def _misshapen(value: Any, shape: Any, place: str) -> list[str]:
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return [f"{place}: not an object"]
        if shape is _COMMAND and value.keys() != shape.keys():
            return [f"{place}: not a command"]
        return [
            problem
            for name, part in shape.items()
            for problem in (
                _misshapen(value[name], part, f"{place}.{name}")
                if name in value
                else [f"{place}.{name}: missing"]
            )
        ]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{place}: not a list"]
        return [p for n, item in enumerate(value) for p in _misshapen(item, shape[0], f"{place}[{n}]")]
    return [] if shape(value) else [f"{place}: {value!r:.80} cannot stand here"]
