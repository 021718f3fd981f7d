"""The gate that runs a list of commands on a tree."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from loopwright.adapters.gates.records import (
    NoRecords,
    Record,
    folder_of,
    read_records,
    read_seen,
    witness_of,
)
from loopwright.adapters.gates.reuse import conditions, reuse
from loopwright.adapters.gates.text import STATUS, line_checks
from loopwright.adapters.gates.witnesses import prepare
from loopwright.core.gates.verdict_reuse import narrowed_to
from loopwright.core.gates.verdicts import command_checks, command_id, gate_key, judge
from loopwright.core.values.findings import (
    Check,
    CheckStatus,
    CommandResult,
    Verdict,
    VerdictStatus,
    Witnessed,
)
from loopwright.core.values.policy import GateCommand, Limits
from loopwright.core.values.wording import clean
from loopwright.ports import Exit, GateRequest, RunSpec, ShownBy

__all__ = ["RUNNER", "CommandGate", "OutputLimits", "gate_key"]

RUNNER: Final = Path(__file__).with_name("runner.py")
"""The program that runs a gate's commands."""

_GRACE_S: Final = 30.0
_FINISHED: Final = frozenset({0, 1})
_ENDED: Final = {
    "deadline": "the gate did not end within its hard limit",
    "idle": "the gate was ended because it showed no sign of life",
    "done_hang": "the gate was ended because it did not exit",
    "asked": "the gate was stopped before it was finished",
    "not_started": "the gate could not be started",
    "lost": "the gate's process was lost",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputLimits:
    """How much of one command's output is kept on disk; its hash always covers all of it."""

    head_bytes: int = 4 * 1024 * 1024
    tail_bytes: int = 1024 * 1024
    mark_bytes: int = 1024 * 1024
    """For lines that name a check, found between start and end."""
    junit_bytes: int = 16 * 1024 * 1024
    seen_bytes: int = 64 * 1024 * 1024
    """For what is seen inside test runners."""


class CommandGate:
    """Runs commands in order under one keeper, and computes the verdict outside from what was recorded."""

    def __init__(
        self,
        *,
        limits: OutputLimits | None = None,
        term_grace_s: float = 5.0,
        secrets: tuple[str, ...] = (),
    ) -> None:
        self._limits = limits or OutputLimits()
        self._term_grace_s = term_grace_s
        self._secrets = secrets

    def spec(self, request: GateRequest) -> RunSpec:
        """Write the runner's job into the run's directory, and say how to run it under a keeper."""
        secrets = (*self._secrets, *request.secrets)
        folder = folder_of(request.directory)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        job = {
            "directory": str(folder),
            "tree": str(request.tree),
            "commands": [asdict(command) for command in request.commands],
            "limits": asdict(self._limits),
            "term_grace_s": self._term_grace_s,
            "wrapper": list(request.wrapper),
            "tracked": _tracked(request),
            "witness": witness_of(folder) or prepare(request.commands, request.only, request.runners),
            "conditions": conditions(request, request.commands),
            "within": _within(request),
            # They are told on its stdin, so that no file holds them.
            "secrets_told": bool(secrets),
        }
        draft = folder / "job.tmp"
        draft.write_text(json.dumps(job), encoding="utf-8")
        draft.replace(folder / "job.json")
        count = len(request.commands)
        each = self._term_grace_s + 2.0
        kept = self._limits.head_bytes + self._limits.tail_bytes + self._limits.mark_bytes
        return RunSpec(
            run_id=request.run_id,
            directory=request.directory,
            argv=(sys.executable, "-I", "-S", os.fspath(RUNNER), str(folder / "job.json")),
            cwd=request.tree,
            env=dict(request.env),
            home=request.home,
            limits=Limits(
                hard=sum(_runs(request, command) * (command.timeout_s + each) for command in request.commands)
                + _GRACE_S,
                # Each command has its own limit, and a long silent build is not a sign of death.
                idle=None,
                done_grace=None,
                output=max(Limits().output, (kept + 64 * 1024) * count),
                term_grace=self._term_grace_s + 2.0,
            ),
            stdin="pipe" if secrets else "null",
            stdin_data=f"{json.dumps(secrets)}\n" if secrets else "",
            secrets=secrets,
        )

    def reuse(
        self, request: GateRequest, source: Path, shown: Mapping[str, ShownBy], at: datetime, /
    ) -> bool:
        """Record the commands as ended now with the results of an earlier run; False when it cannot answer for them."""
        return reuse(request, source, shown, at)

    def witnessed(self, directory: Path, count: int) -> list[Witnessed | None] | None:
        """Return what was seen inside the test runners of a run's commands; None when its files are gone."""
        try:
            return read_seen(directory, count)
        except NoRecords:
            return None

    def verdict(self, request: GateRequest, exit: Exit) -> Verdict:
        """Compute the verdict from the runner's records; asked again, it finds the same."""
        if not request.commands:
            return judge((), ())
        if exit.ended_by != "itself":
            detail = f": {exit.error}" if exit.error else ""
            return Verdict(status=VerdictStatus.INCONCLUSIVE, reason=_ENDED[exit.ended_by] + detail)
        if exit.code not in _FINISHED:
            return Verdict(
                status=VerdictStatus.INCONCLUSIVE, reason=f"the gate's runner died (exit code {exit.code})"
            )
        try:
            records = read_records(request.directory, request.commands)
        except NoRecords as error:
            return Verdict(status=VerdictStatus.INCONCLUSIVE, reason=str(error))
        checks: list[Check] = []
        results: list[CommandResult] = []
        for n, (command, record) in enumerate(zip(request.commands, records, strict=True), 1):
            result = CommandResult(
                name=record.name,
                command=record.command,
                exit_code=record.exit_code,
                duration_s=record.duration_s,
                output_sha256=record.output_sha256,
                output_bytes=record.output_bytes,
                tail=clean(record.tail),
                timed_out=record.timed_out,
                kept_sha256=record.kept_sha256,
                seen_sha256=record.seen_sha256,
                report_sha256=record.report_sha256,
                changed=record.changed,
                touched=record.touched,
            )
            found = [*line_checks(n, record.name, record.kept), *_lost_checks(n, record)]
            if command.junit is not None:
                found += _report_checks(n, command.junit, record)
            checks += command_checks(n, result, found, timeout_s=command.timeout_s)
            results.append(result)
        unwatched = tuple(_not_watched(record) for record in records if record.unwatched)
        return replace(judge(checks, results), left_open=unwatched)


def _not_watched(record: Record) -> str:
    return (
        f"{record.name}: {', '.join(record.unwatched)} ran without being watched, so only the exit code counts. "
        "Let the command add to PYTHONPATH and NODE_OPTIONS instead of replacing them"
    )


def _tracked(request: GateRequest) -> dict[str, Any] | None:
    """Return how the runner finds out what a command changed in the tree."""
    asked = request.tracked
    if asked is None:
        return None
    return {
        "top": str(asked.top),
        "git": list(asked.git),
        "env": dict(asked.env),
        "laid": list(request.laid),
    }


def _within(request: GateRequest) -> list[dict[str, Any] | None]:
    """Return for each command which wider one may run its tests too, and the paths of these tests."""
    found: list[dict[str, Any] | None] = [None] * len(request.commands)
    watched = [
        (n, one)
        for n, one in enumerate(request.commands)
        if one.junit is None and not any(each.command in one.command for each in request.runners)
    ]
    paths = {
        (n, by): narrowed_to(one.command, wide.command)
        for n, one in watched
        if one.command in request.may_share
        for by, wide in watched
    }
    narrow = {n for (n, _), some in paths.items() if some}
    for (n, by), some in paths.items():
        if some and by not in narrow:
            found[n] = {"by": by + 1, "paths": list(some)}
    return found


def _runs(request: GateRequest, command: GateCommand) -> int:
    """Return how often something is run for a command: a configured test runner is tried with two canaries."""
    return 3 if any(one.command in command.command for one in request.runners) else 1


def _lost_checks(position: int, record: Record) -> Iterator[Check]:
    """Return the check lines that did not fit on disk, so that no failure is lost with them."""
    for word, count in sorted(record.lost.items()):
        yield Check(
            id=f"{command_id(position, record.name)}/more {word}",
            name=f"{count} more {STATUS[word].value}",
            status=STATUS[word],
            message="these lines did not fit into the kept output",
        )


def _report_checks(position: int, path: str, record: Record) -> tuple[Check, ...]:
    from loopwright.adapters.gates.junit import Unreadable, junit_checks  # few gates write a report

    prefix = command_id(position, record.name)
    problem = record.report_problem
    if record.report is not None:
        try:
            return junit_checks(record.report, prefix=prefix)
        except Unreadable as error:
            problem = str(error)
    return (
        Check(
            id=f"{prefix}/report",
            name=f"report {path}",
            status=CheckStatus.ERROR,
            message=f"the JUnit report {path} proves nothing: {problem}",
        ),
    )
