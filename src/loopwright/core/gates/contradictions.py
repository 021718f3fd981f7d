"""Existing checks that new work contradicts: which ones, who may allow that, and what the user is asked.

A check is contradicted if it passed before the work and fails, or no longer runs, with the new code and the
old judging files. This needs a decision and is not a failed attempt: a named permission, a reviewer or the
user decides.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from loopwright.core.rows.model import Attempt
from loopwright.core.values.findings import Verdict, VerdictStatus
from loopwright.core.values.globs import any_covers
from loopwright.core.values.patches import Patch
from loopwright.core.values.policy import Policy
from loopwright.core.values.wording import shortened

KIND: Final = "contradiction"
ACCEPT: Final = "accept"
REJECT: Final = "reject"
OPTIONS: Final = (ACCEPT, REJECT)
MOST: Final = 200
"""The most checks that are named in the record."""
LEAST_KEPT: Final = 0.9
"""The user is asked if fewer than this share of the previously passing tests still pass, even if all old tests pass."""
_SHOWN: Final = 20
_MANY: Final = 5
_LONGEST_REASON: Final = 1500
_LONGEST_DIFF: Final = 6000
_FILE: Final = re.compile(r"^diff --git ", re.MULTILINE)
_FROM: Final = re.compile(r"^--- ", re.MULTILINE)


def contradicted(verdict: Verdict) -> tuple[str, ...]:
    """Return the checks that a run with the old judging files contradicts; empty if there are none."""
    failed = verdict.broken if verdict.status is not VerdictStatus.PASSED else ()
    return tuple(dict.fromkeys((*failed, *verdict.lost)))


def is_tampered(verdict: Verdict) -> bool:
    """Return whether a run with the old judging files failed for a reason other than a contradicted check."""
    if verdict.status is not VerdictStatus.FAILED:
        return False
    return verdict.tampered or not (verdict.broken or verdict.lost)


def has_had_its_turn(attempt: Attempt) -> bool:
    """Return whether the agent was already shown which checks its work contradicts."""
    facts = attempt.gate_files
    return facts is not None and bool(facts.contradicted) and not any(facts.allowed_by)


def collapsed(checks: Iterable[str]) -> tuple[str, ...]:
    """Name a file once if it could not be loaded or many of its tests are contradicted."""
    found = tuple(dict.fromkeys(checks))
    files = Counter(map(file_of, found))
    whole = {file for file, count in files.items() if file in found or count > _MANY}
    return tuple(dict.fromkeys(file if (file := file_of(one)) in whole else one for one in found))


def file_of(check: str) -> str:
    """Return the file, class or package that a test's id starts with; the id itself when it has no parts."""
    return check.partition("::")[0] if "::" in check else check.rpartition(".")[0] or check


def allowed_by(check: str, policy: Policy, approved: Sequence[str], changed: Iterable[str] = ()) -> str:
    """Return which permission of the user covers a contradicted check; empty if none does.

    `changed` are the judging files that the work changed. A test's id does not always begin with its file's
    path.
    """
    by_path = file_of(check).endswith(".py")
    files = [path for path in changed if not by_path and check.startswith(id_prefixes((path,)))]
    for name, patterns in (
        ("the task's may_change", approved),
        ("the setting may_change", policy.may_change),
    ):
        for pattern in patterns:
            if _covers(pattern, check) or any(any_covers((pattern,), path) for path in files):
                return f"{name}: {pattern}"
    return 'the setting test_changes = "allow"' if policy.test_changes == "allow" else ""


def id_prefixes(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the prefixes of test ids in these files: the path, or the module name."""
    stems = [path.removesuffix(".py") for path in paths]
    dotted = [f"{stem.replace('/', '.')}." for stem in stems]
    reported = [f"{stem.replace('/', '.')}::" for stem in stems]
    return (*paths, *dotted, *reported, *(f"{stem.rpartition('/')[2]}." for stem in stems))


def _covers(pattern: str, check: str) -> bool:
    if "::" not in pattern:
        return any_covers((pattern,), file_of(check)) or pattern == check
    # `tests/test_x.py::test_y` covers its parametrised cases and, as a class, its methods.
    inside = check.removeprefix(pattern)
    return check.startswith(pattern) and inside[:1] in ("", "[", ":", ".")


def missing_too_many(verdict: Verdict) -> bool:
    """Return whether so many old tests are gone, and so few replaced, that the user must be asked."""
    return bool(verdict.lost) and verdict.passed_now < LEAST_KEPT * verdict.passed_before


def question(key: str, checks: Sequence[str], removed: Collection[str], *, reason: str, diff: str) -> str:
    """Return the question to the user: the contradicted and removed checks, the agent's reason, the old and new check.

    `removed` are the checks that no longer run.
    """
    fails = [one for one in checks if one not in removed]
    does = " and ".join(
        word for word, found in (("contradicts", fails), ("removes", len(fails) < len(checks))) if found
    )
    asked = (
        f"{key}: the work passes its own versions of all checks, but {does} existing checks. Accept the change?\n\n"
        + split(checks, removed)
    )
    said = (
        f"The agent's reason:\n{shortened(reason, _LONGEST_REASON)}"
        if reason
        else "The agent gave no reason."
    )
    parts = [asked, said]
    if diff:
        parts.append(f"Old check (-) and new check (+):\n{shortened(diff, _LONGEST_DIFF)}")
    return "\n\n".join(parts)


def plan_question(
    title: str, checks: Sequence[str], removed: Collection[str], *, tasks: Sequence[str], diff: str
) -> str:
    """Return the question about a plan's result, with the checks of its base commit that no longer pass."""
    asked = (
        f"{title}: the result passes its own checks, but contradicts checks of the plan's base commit without "
        "permission. Accept the result?"
    )
    parts = [
        asked,
        split(checks, removed),
        f"The judging files were changed by: {', '.join(tasks) or 'no task'}",
    ]
    if diff:
        parts.append(f"Old check (-) and new check (+):\n{shortened(diff, _LONGEST_DIFF)}")
    return "\n\n".join(parts)


def split(checks: Sequence[str], removed: Collection[str]) -> str:
    """Return two lists: the checks that fail with the new code, and those that no longer run."""
    gone = [one for one in checks if one in removed]
    fails = [one for one in checks if one not in removed]
    parts = (("Contradicted: these fail with the new code", fails), ("Removed: these no longer run", gone))
    return "\n\n".join(f"{title}:\n{listed(collapsed(found))}" for title, found in parts if found)


def listed(checks: Sequence[str]) -> str:
    """Return checks as a list short enough to read."""
    more = f"\n- and {len(checks) - _SHOWN} more" if len(checks) > _SHOWN else ""
    return "\n".join(f"- {one}" for one in checks[:_SHOWN]) + more


def diff_of(patch: Patch, files: Collection[str]) -> str:
    """Return the part of a patch that changes any of these files."""
    shown = []
    for part in _FILE.split(patch.text)[1:]:
        header, found = part.partition("\n")[0], _FROM.search(part)
        if any(f"a/{file} " in header for file in files):
            shown.append(part[found.start() :] if found else header)
    return "".join(shown).rstrip()
