"""`receipt replay`: the recorded gates once more, on the recorded trees, in a clean workspace.

They are judged as they were then: test runners are watched from inside, what was there before the work is no fault of
its, and what may have failed by chance is run again.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopwright.cli.clean_tree import CleanTree, Trial, clean_tree
from loopwright.config.resolve import Settings
from loopwright.core.errors import UserError
from loopwright.core.findings import Verdict, VerdictStatus
from loopwright.core.gates import Commands
from loopwright.core.policy import GateCommand
from loopwright.core.receipt_facts import gate_files_of, gates_asked, plan_asked, setup_of, task_asked
from loopwright.core.verdicts import gate_key
from loopwright.core.witnesses import Baseline, baseline, held_against, is_compared
from loopwright.engine.checks import id_prefixes
from loopwright.engine.reruns import Ran, settle

_JUDGED = (VerdictStatus.PASSED, VerdictStatus.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One tree that the receipt says was judged, and how."""

    what: str
    """In plain words."""
    sha: str
    commands: Commands
    recorded: Mapping[str, Any]
    """The verdict in the receipt."""
    before: str | None
    """The commit that the work started from; None where the work changed nothing."""
    gates: Commands
    """What was run there."""
    setup: GateCommand | None
    exempt: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()


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
            _judged(
                receipt,
                "the result",
                plan["result_sha"],
                plan_asked(receipt),
                found,
                before=plan["base_sha"],
                tasks=receipt["tasks"],
            )
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
    return _judged(
        receipt,
        f"task {key}",
        task["landed_sha"],
        commands,
        found,
        before=task["parent_sha"],
        tasks=[task],
    )


def _judged(
    receipt: Mapping[str, Any],
    what: str,
    sha: str,
    commands: Commands,
    recorded: Mapping[str, Any],
    *,
    before: str | None,
    tasks: Sequence[Mapping[str, Any]],
) -> Judged:
    changed = [gate_files_of(task) for task in tasks]
    exempt = tuple(path for facts in changed for path in facts["exempt"])
    return Judged(
        what=what,
        sha=sha,
        commands=commands,
        recorded=recorded,
        before=before if before != sha else None,
        gates=gates_asked(receipt["plan"]),
        setup=setup_of(receipt["plan"]),
        exempt=exempt,
        rewritten=(*exempt, *(path for facts in changed for path in facts["pinned"])),
    )


def replay(
    judged: Sequence[Judged], *, repository: Path, subfolder: str, settings: Settings
) -> Iterator[tuple[Judged, Verdict, str | None]]:
    """Run each tree's commands again, as a gate runs them; the text says what kept them from being run as then."""
    for one in judged:
        place = _Place(repository=repository, subfolder=subfolder, settings=settings)
        yield one, *asyncio.run(_judge(one, place))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    repository: Path
    subfolder: str
    settings: Settings

    async def ran(self, sha: str, commands: Commands) -> Trial:
        """Run commands on a commit of their own."""
        copied = self.settings.policy().copy_files
        async with clean_tree(
            self.repository, sha, self.settings, subfolder=self.subfolder, copy_files=copied
        ) as tree:
            return await tree.judge(commands)


async def _judge(one: Judged, place: _Place) -> tuple[Verdict, str | None]:
    copied = place.settings.policy().copy_files
    async with clean_tree(
        place.repository, one.sha, place.settings, subfolder=place.subfolder, copy_files=copied
    ) as tree:
        tried = await tree.judge(one.commands)
        if tried.denial is not None or tried.verdict.status not in _JUDGED:
            return tried.verdict, tried.denial
        before, trouble = await _before(one, tried, place)
        verdict = tried.verdict
        if before is not None or any(tried.seen):
            verdict = held_against(verdict, tried.seen, before)
        if verdict.status is VerdictStatus.FAILED:
            settled = await settle(
                verdict,
                tried.seen,
                before,
                _Again(tree=tree, place=place, sha=one.sha),
                setup=one.setup,
                commands=one.commands,
                green_here=_green_then(one.recorded),
                rewritten=id_prefixes(one.rewritten),
            )
            verdict = settled.verdict
        return verdict, trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class _Again:
    """Runs commands once more: alone in the tree where they failed, or whole in another one."""

    tree: CleanTree
    place: _Place
    sha: str

    async def __call__(
        self, _folder: str, commands: tuple[GateCommand, ...], /, *, only: frozenset[str], fresh: bool
    ) -> Ran:
        if fresh:
            tried = await self.place.ran(self.sha, commands)
        else:
            tried = await self.tree.judge(commands, only=only)
        return Ran(verdict=tried.verdict, seen=tried.seen, exit=tried.exit)


async def _before(one: Judged, tried: Trial, place: _Place) -> tuple[Baseline | None, str | None]:
    """Return what the gates see on the tree that the work started from, and why they could not be run there."""
    if one.before is None or not is_compared(one.gates, one.commands, tried.seen):
        return None, None
    found = await place.ran(one.before, one.gates)
    if found.verdict.status not in _JUDGED:
        return None, f"how it was before could not be found out: {found.verdict.reason}"
    return baseline(found.verdict.commands, found.seen, exempt=id_prefixes(one.exempt)), found.denial


def _green_then(recorded: Mapping[str, Any]) -> frozenset[str]:
    """Return the commands that passed on this very tree, as the receipt has it."""
    commands = recorded["commands"] if recorded["status"] == VerdictStatus.PASSED.value else ()
    return frozenset(one["command"] for one in commands if not one["flaky"])


def differences(recorded: Mapping[str, Any], found: Verdict) -> list[str]:
    """Say where a verdict differs from the recorded one in what it says.

    Outputs and times may differ, and so may what is flaky: that is what the word means.
    """
    said: list[str] = []
    if found.status.value != recorded["status"]:
        said.append(f"it was {recorded['status']} and is {found.status.value} now: {found.reason}")
    for then, now in zip(recorded["commands"], found.commands, strict=False):
        if then["flaky"] or now.flaky:
            continue
        if (then["exit_code"], then["timed_out"]) != (now.exit_code, now.timed_out):
            said.append(f"{then['command']}: exit code {then['exit_code']} then, {now.exit_code} now")
        if then["known_failures"] != now.known_failures:
            known = f"{then['known_failures']} tests had failed before the work, {now.known_failures} now"
            said.append(f"{then['command']}: {known}")
        if then["tests"] != now.tests:
            said.append(
                f"{then['command']}: {_tests(then['tests'])} seen to run then, {_tests(now.tests)} now"
            )
    counts = {
        status: sum(check.status.value == status for check in found.checks) for status in recorded["checks"]
    }
    for status, then_count in recorded["checks"].items():
        if counts[status] != then_count:
            said.append(f"{then_count} checks {status} then, {counts[status]} now")
    return said


def _tests(count: int | None) -> str:
    return "no tests" if count is None else f"{count} tests"
