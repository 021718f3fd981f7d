"""`receipt replay`: the recorded gates once more, on the recorded trees, in a clean workspace."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopwright.cli.clean_tree import clean_tree
from loopwright.config.resolve import Settings
from loopwright.core.errors import UserError
from loopwright.core.findings import Verdict
from loopwright.core.gates import Commands
from loopwright.core.receipt_facts import plan_asked, task_asked
from loopwright.core.verdicts import gate_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One tree that the receipt says was judged, and how."""

    what: str
    """In plain words."""
    sha: str
    commands: Commands
    recorded: Mapping[str, Any]
    """The verdict in the receipt."""


def judged_trees(receipt: Mapping[str, Any], wanted: Sequence[str] = ()) -> list[Judged]:
    """Return the tree of the result, or those on which the named tasks landed; each with its recorded verdict."""
    plan = receipt["plan"]
    latest = {(one["tree"], one["gate_key"]): one for one in receipt["verdicts"]}
    if not wanted:
        found = latest.get((plan["result_tree"], gate_key(plan_asked(receipt))))
        if plan["result_sha"] is None or found is None:
            raise UserError(
                "this receipt has no verdict on a result: there is nothing to run again",
                hint="name a task that landed: --task KEY",
            )
        return [
            Judged(what="the result", sha=plan["result_sha"], commands=plan_asked(receipt), recorded=found)
        ]
    return [_landed(receipt, key, latest) for key in wanted]


def _landed(
    receipt: Mapping[str, Any], key: str, latest: Mapping[tuple[str, str], Mapping[str, Any]]
) -> Judged:
    task = next((one for one in receipt["tasks"] if one["key"] == key), None)
    if task is None:
        known = ", ".join(one["key"] for one in receipt["tasks"])
        raise UserError(f"the receipt has no task {key!r}", hint=f"it has: {known}")
    commands = task_asked(receipt["plan"], task)
    found = latest.get((task["tree"], gate_key(commands)))
    if task["landed_sha"] is None or found is None:
        raise UserError(
            f"task {key!r} has no verdict on a tree that landed",
            hint="name a task that landed, or leave --task out",
        )
    return Judged(what=f"task {key}", sha=task["landed_sha"], commands=commands, recorded=found)


def replay(
    judged: Sequence[Judged], *, repository: Path, subfolder: str, settings: Settings
) -> Iterator[tuple[Judged, Verdict, str | None]]:
    """Run each tree's commands again, as a gate runs them; the text says what the sandbox refused to them."""
    for one in judged:
        yield one, *asyncio.run(_judge(one, repository, subfolder, settings))


async def _judge(
    one: Judged, repository: Path, subfolder: str, settings: Settings
) -> tuple[Verdict, str | None]:
    copied = settings.policy().copy_files
    async with clean_tree(repository, one.sha, settings, subfolder=subfolder, copy_files=copied) as tree:
        return await tree.judge(one.commands)


def differences(recorded: Mapping[str, Any], found: Verdict) -> list[str]:
    """Say where a verdict differs from the recorded one in what it says; outputs and times may differ."""
    said: list[str] = []
    if found.status.value != recorded["status"]:
        said.append(f"it was {recorded['status']} and is {found.status.value} now: {found.reason}")
    for then, now in zip(recorded["commands"], found.commands, strict=False):
        if (then["exit_code"], then["timed_out"]) != (now.exit_code, now.timed_out):
            said.append(f"{then['command']}: exit code {then['exit_code']} then, {now.exit_code} now")
    counts = {
        status: sum(check.status.value == status for check in found.checks) for status in recorded["checks"]
    }
    for status, then_count in recorded["checks"].items():
        if counts[status] != then_count:
            said.append(f"{then_count} checks {status} then, {counts[status]} now")
    return said
