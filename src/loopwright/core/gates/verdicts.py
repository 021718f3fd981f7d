"""How checks become a verdict, and verdicts become the outcome of a task and a plan.

Done is a ladder: claimed < accepted on the candidate < reviewed < gate:all on the final tree. A complete task
has at least the second rung, a verified plan the last. An agent's claim alone never gets past the first.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from loopwright.core.rows.model import Outcome
from loopwright.core.values.findings import (
    Check,
    CheckStatus,
    CommandResult,
    Verdict,
    VerdictStatus,
    is_sentence,
)
from loopwright.core.values.policy import GateCommand, Policy
from loopwright.core.values.states import TaskState

MAX_CHECKS: Final = 5000
MAX_MESSAGE: Final = 4096
MAX_EVIDENCE: Final = 6000
_FULL_MESSAGES: Final = 256 * 1024
_SHORT_MESSAGE: Final = 200
_BAD: Final = frozenset({CheckStatus.FAILED, CheckStatus.ERROR})
_NOT_FOUND: Final = 127
_PLAIN_WORD: Final = re.compile(r"\s*([A-Za-z0-9_.+-]+)(?=\s|$)")
_NOISE: Final = ("[notice]", "WARNING: ")
_ERROR: Final = re.compile(r"(?:ERROR|error)\b")
_CANNOT_RUN: Final = {
    126: "the shell cannot execute this command (exit code 126): is the file executable?",
    127: "command not found (exit code 127): is the program installed here and on PATH?",
}


def gate_key(commands: Sequence[GateCommand]) -> str:
    """Return a stable hash of a list of commands: the same key means the same question about a tree."""
    asked = [[c.name, c.command, float(c.timeout_s), c.junit] for c in commands]
    text = json.dumps(["loopwright.gate/1", asked], ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def is_bad(check: Check) -> bool:
    """Return whether a check speaks against the tree."""
    return check.status in _BAD


def is_of(check: Check, prefix: str) -> bool:
    """Return whether a check belongs to the command with this id."""
    return check.id == prefix or check.id.startswith(f"{prefix}/")


def command_id(position: int, name: str) -> str:
    """Return the id of the check for a whole command; positions count from 1."""
    return f"{position}:{name}"


def command_checks(
    position: int, result: CommandResult, found: Sequence[Check], *, timeout_s: float
) -> tuple[Check, ...]:
    """Return the checks of one command: those found in its output or report, and the command itself if needed.

    Exit code and checks are compared, so neither can hide the other. The command itself is a check if nothing
    (or only skips) was found, and whenever it exits with a code other than 0.
    """
    spoke = any(check.status is not CheckStatus.SKIPPED for check in found)
    if result.exit_code == 0 and not result.timed_out and spoke:
        return tuple(found)
    if result.timed_out:
        status, reason = CheckStatus.FAILED, f"ended at its time limit of {timeout_s:g} s"
    elif result.exit_code == 0:
        status, reason = CheckStatus.PASSED, ""
    elif result.exit_code is not None and result.exit_code < 0:
        status, reason = CheckStatus.FAILED, f"ended by signal {-result.exit_code}"
    else:
        status = CheckStatus.FAILED
        reason = _CANNOT_RUN.get(result.exit_code or 0, f"exit code {result.exit_code}")
    message = f"{reason}\n{result.tail}".rstrip() if reason else ""
    own = Check(
        id=command_id(position, result.name),
        name=result.name,
        status=status,
        message=keep_ends(message, MAX_MESSAGE),
        duration_s=result.duration_s,
    )
    return (own, *found)


def telling_line(output: str) -> str:
    """Return the line of a failed command's output to quote: its last error, else its last line.

    Notices and warnings that a package manager adds at the end are ignored, unless there is nothing else.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for wanted in (_ERROR.match, lambda line: not line.startswith(_NOISE), bool):
        if found := [line for line in lines if wanted(line)]:
            return found[-1]
    return ""


def judge(checks: Sequence[Check], commands: Sequence[CommandResult]) -> Verdict:
    """Combine the checks of one gate run into its verdict."""
    unique = _unique_ids(checks)
    if not commands:
        return Verdict(
            status=VerdictStatus.UNVERIFIED, checks=unique, reason="no command checks this; add a gate"
        )
    if missing := _missing(commands):
        return Verdict(
            status=VerdictStatus.INCONCLUSIVE,
            checks=bounded(unique),
            commands=tuple(commands),
            reason=f"the program {missing!r} was not found",
            lasting=True,
        )
    bad = sum(map(is_bad, unique))
    refused = any(command.refused for command in commands)
    status = VerdictStatus.FAILED if bad or refused or not unique else VerdictStatus.PASSED
    reason = f"{bad} of {len(unique)} checks failed" if status is VerdictStatus.FAILED else ""
    return Verdict(status=status, checks=bounded(unique), commands=tuple(commands), reason=reason)


def judged_again(
    verdict: Verdict, checks: Sequence[Check], commands: Sequence[CommandResult], **more: Any
) -> Verdict:
    """Return a verdict with other checks and commands, and the status that follows from them."""
    bad = sum(map(is_bad, checks))
    refused = any(command.refused for command in commands)
    status = VerdictStatus.FAILED if bad or refused else VerdictStatus.PASSED
    reason = (
        (f"{bad} of {len(checks)} checks failed" if bad else verdict.reason)
        if status is VerdictStatus.FAILED
        else ""
    )
    return replace(
        verdict, status=status, checks=bounded(checks), commands=tuple(commands), reason=reason, **more
    )


def _missing(commands: Sequence[CommandResult]) -> str:
    """Return the program of a command that is not on this machine; empty if all programs could run.

    Only programs that the shell itself looked up count: a missing file of the project, or a program that
    another one did not find, may be what the work is about.
    """
    for command in commands:
        first = _PLAIN_WORD.match(command.command)
        if command.exit_code == _NOT_FOUND and first and _is_not_found(first[1], command.tail):
            return first[1]
    return ""


def _is_not_found(name: str, said: str) -> bool:
    return any(
        re.search(rf"(^|\s){re.escape(name)}: (command )?not found$", line) for line in said.splitlines()
    )


def passed(verdict: Verdict | None) -> bool:
    """Return whether a verdict passes by its own facts, not only by its status."""
    if verdict is None or verdict.status is not VerdictStatus.PASSED:
        return False
    refused = any(command.refused for command in verdict.commands)
    held = any(check.status is CheckStatus.PASSED for check in verdict.checks)
    return held and not refused and not any(map(is_bad, verdict.checks))


def combine(verdicts: Iterable[Verdict]) -> Verdict:
    """Combine verdicts on one tree: a failure wins, then a broken gate, then a pass."""
    given = tuple(verdicts)
    statuses = {v.status for v in given}
    if any(v.status is VerdictStatus.PASSED and not passed(v) for v in given):
        statuses.add(VerdictStatus.FAILED)
    order = (VerdictStatus.FAILED, VerdictStatus.INCONCLUSIVE, VerdictStatus.PASSED)
    status = next((s for s in order if s in statuses), VerdictStatus.UNVERIFIED)
    return Verdict(
        status=status,
        checks=bounded(_unique_ids([check for v in given for check in v.checks])),
        commands=tuple(command for v in given for command in v.commands),
        reason="; ".join(dict.fromkeys(v.reason for v in given if v.reason)),
    )


def bounded(checks: Sequence[Check], limit: int = MAX_CHECKS) -> tuple[Check, ...]:
    """Keep at most `limit` checks, bad ones first, and add one that counts the rest."""
    kept = list(checks)
    if len(kept) > limit:
        ranked = sorted(range(len(kept)), key=lambda i: (not is_bad(kept[i]), i))
        stay = set(ranked[: limit - 1])
        left = [kept[i] for i in ranked[limit - 1 :]]
        counts = {status: sum(c.status is status for c in left) for status in CheckStatus}
        summary = Check(
            id="more",
            name=f"{len(left)} more checks",
            status=CheckStatus.FAILED if any(map(is_bad, left)) else CheckStatus.PASSED,
            message=", ".join(f"{n} {status.value}" for status, n in counts.items() if n),
        )
        kept = [*(check for i, check in enumerate(kept) if i in stay), summary]
    return _with_short_messages(kept)


def evidence(verdict: Verdict, *, limit: int = MAX_EVIDENCE) -> str:
    """Describe in plain text what failed, for the prompt of the next attempt."""
    bad = [check for check in verdict.checks if is_bad(check)]
    if verdict.status is not VerdictStatus.FAILED and not bad:
        return keep_start(verdict.reason, limit)
    whole_commands = {command_id(n, c.name) for n, c in enumerate(verdict.commands, 1)}
    failed = refused_commands(verdict)
    parts = [f"{len(bad)} of {len(verdict.checks)} checks failed."]
    listed = "".join(_listed(check, brief=check.id in whole_commands) for check in bad[:50])
    if len(bad) > 50:
        listed += f"- and {len(bad) - 50} more\n"
    parts.append(keep_start(listed, limit // 2).rstrip())
    if old := tuple(dict.fromkeys(name for result in failed for name in result.known_failed)):
        parts.append(
            keep_start(
                f"These failed before your work too and are not held against it: {', '.join(old)}", 1000
            )
        )
    room = max(300, (limit - sum(map(len, parts)) - 100) // max(1, len(failed)))
    for result in failed:
        how = "ended at its time limit" if result.timed_out else f"exit code {result.exit_code}"
        head = f'command "{result.name}": {keep_start(result.command, 300)}\n{how}, {result.duration_s:.1f} s'
        tail = keep_end(result.tail.strip(), max(0, room - len(head) - 20))
        parts.append(f"{head}, last lines:\n{tail}" if tail else f"{head}, no output")
    return keep_start("\n\n".join(part for part in parts if part), limit)


def first_line(verdict: Verdict) -> str:
    """Describe in one line what failed: the names of checks, and what is wrong if that is known in words."""
    failing = [check for check in verdict.checks if is_bad(check)]
    if not failing:
        return verdict.reason or "the gate failed"
    names = [check.name for check in failing if not is_sentence(check)]
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    failed = [f"{', '.join(names[:5])}{more} failed"] if names else []
    return "; ".join([*failed, *(check.name for check in failing if is_sentence(check))][:5])


def refused_commands(verdict: Verdict) -> list[CommandResult]:
    """Return the commands that failed or have a failed check."""
    bad = [check for check in verdict.checks if is_bad(check)]
    return [
        command
        for n, command in enumerate(verdict.commands, 1)
        if command.refused or any(check.id.startswith(f"{command_id(n, command.name)}/") for check in bad)
    ]


def of_installed(policy: Policy, verdict: Verdict) -> str:
    """Return a note if a failed gate tests an installed build (`installed_gates`): it may not see the work."""
    names = [one.name for one in refused_commands(verdict) if one.name in policy.installed_gates]
    if not names:
        return ""
    return (
        f"\n{', '.join(names)}: `installed_gates` says that this tests an installed build, not the workspace. If that "
        "build is old, no work can pass: install each workspace with the setting `setup`"
    )


def task_outcome(
    *,
    status: TaskState,
    landed: bool,
    verdict: VerdictStatus | None,
    waits_for_quota: bool = False,
    capped: bool = False,
) -> Outcome:
    """Return what the facts prove about a task; `verdict` is the one on exactly the tree that landed.

    `capped` is whether the task has a gap (`core.receipts.gaps`).
    """
    if status is TaskState.CANCELLED:
        return Outcome.CANCELLED
    if status is TaskState.AWAITING_RESPONSE:
        return Outcome.NEEDS_HUMAN
    if status is not TaskState.COMPLETE:
        return Outcome.WAITING_QUOTA if waits_for_quota else Outcome.NOT_VERIFIED
    if verdict is VerdictStatus.PASSED:
        if capped:
            return Outcome.VERIFIED_WITH_GAPS
        return Outcome.VERIFIED if landed else Outcome.NO_CHANGE_PROVEN
    return Outcome.UNVERIFIED if verdict is VerdictStatus.UNVERIFIED else Outcome.NOT_VERIFIED


def plan_outcome(
    *, tasks: Sequence[Outcome], final: VerdictStatus | None, cancelled: bool = False, capped: bool = False
) -> Outcome:
    """Return what the facts prove about a plan; `final` is gate:all on exactly the result's tree.

    `capped` is whether the result itself has a gap (`core.receipts.gaps`), whatever failed while its tasks
    landed.
    """
    if cancelled or (tasks and all(outcome is Outcome.CANCELLED for outcome in tasks)):
        return Outcome.CANCELLED
    for stops in (Outcome.NEEDS_HUMAN, Outcome.WAITING_QUOTA, Outcome.NOT_VERIFIED):
        if stops in tasks:
            return stops
    if final is VerdictStatus.UNVERIFIED or not tasks:
        return Outcome.UNVERIFIED
    if final is not VerdictStatus.PASSED:
        return Outcome.NOT_VERIFIED
    whole = all(outcome in (Outcome.VERIFIED, Outcome.NO_CHANGE_PROVEN) for outcome in tasks)
    return Outcome.VERIFIED if whole and not capped else Outcome.VERIFIED_WITH_GAPS


def keep_start(text: str, limit: int) -> str:
    """Cut a text at its end, and mark the cut."""
    return text if len(text) <= limit else text[: max(0, limit - 6)] + "\n[cut]"


def keep_end(text: str, limit: int) -> str:
    """Cut a text at its start, and mark the cut."""
    if len(text) <= limit:
        return text
    return f"[cut]\n{text[-(limit - 6) :]}" if limit > 6 else ""


def keep_ends(text: str, limit: int) -> str:
    """Keep the first line and the end of a text."""
    head, _, rest = text.partition("\n")
    head = keep_start(head, limit // 2)
    return f"{head}\n{keep_end(rest, limit - len(head) - 1)}".rstrip()


def _listed(check: Check, *, brief: bool) -> str:
    """Render one bad check; a whole command is shown with its last lines."""
    message = check.message.partition("\n")[0] if brief else keep_start(check.message, 1200)
    text = message.replace("\n", "\n  ") if not is_sentence(check) else ""
    return f"- {check.name} ({check.status.value})" + (f": {text}\n" if text else "\n")


def _with_short_messages(checks: Sequence[Check]) -> tuple[Check, ...]:
    """Shorten messages beyond a total length, so that a row stays small whatever a tool prints."""
    used = 0
    result = []
    for check in checks:
        message = keep_start(check.message, MAX_MESSAGE if used < _FULL_MESSAGES else _SHORT_MESSAGE)
        used += len(message)
        result.append(check if message == check.message else replace(check, message=message))
    return tuple(result)


def _unique_ids(checks: Sequence[Check]) -> tuple[Check, ...]:
    seen: dict[str, int] = {}
    taken: set[str] = set()
    result = []
    for check in checks:
        name, n = check.id, seen.get(check.id, 1)
        while name in taken:
            n += 1
            name = f"{check.id}#{n}"
        seen[check.id] = n
        taken.add(name)
        result.append(check if name == check.id else replace(check, id=name))
    return tuple(result)


# Commands that were ended from outside: by the system when memory ran out, or by a signal.

_HANGUP: Final = 1
_KILL: Final = 9
_TERM: Final = 15
_FROM_OUTSIDE: Final = {
    **{-number: number for number in (_HANGUP, _KILL, _TERM)},
    # How a shell or a sandbox reports a killed process. 129 is left out: git exits with it on a usage error.
    **{128 + number: number for number in (_KILL, _TERM)},
}
"""Exit codes of commands that were killed, and the signal.

A program that crashes has other exit codes and counts as red.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """Commands of one gate run that were killed."""

    commands: tuple[str, ...]
    signal: int
    """The signal that killed the first of them."""
    name: str

    @property
    def reason(self) -> str:
        """What happened, in words."""
        why = ", probably out of memory" if self.signal == _KILL else ""
        return f"{self.name}: killed by signal {self.signal}{why}"


def killed_in(verdict: Verdict) -> Killed | None:
    """Return what was killed in a gate run; None if every command ended by itself or at its own time limit."""
    dead = [one for one in verdict.commands if _signal(one) is not None]
    if not dead or verdict.status is not VerdictStatus.FAILED:
        return None
    number = _signal(dead[0])
    assert number is not None
    return Killed(commands=tuple(one.command for one in dead), signal=number, name=dead[0].name)


def _signal(result: CommandResult) -> int | None:
    return None if result.timed_out or result.exit_code is None else _FROM_OUTSIDE.get(result.exit_code)


def not_judged(verdict: Verdict, killed: Killed, *, lasting: bool = False) -> Verdict:
    """Return a verdict that says nothing about the tree."""
    status = VerdictStatus.INCONCLUSIVE
    return Verdict(status=status, reason=killed.reason, commands=verdict.commands, lasting=lasting)


def red(verdict: Verdict, killed: Killed) -> Verdict:
    """Return a failed verdict: a command was killed again, and is not killed on the base commit."""
    reason = f"{killed.reason}; again when it ran alone, and not on the base"
    return replace(verdict, status=VerdictStatus.FAILED, reason=reason)
