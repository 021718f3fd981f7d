"""`receipt replay`: the recorded gates once more, on the recorded trees, in a clean workspace.

They are judged as they were then: test runners are watched from inside, what was there before the work is no fault of
its, and what may have failed by chance is run again.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from loopwright.cli.clean_tree import CleanTree, Trial, clean_tree
from loopwright.config.resolve import Settings
from loopwright.core.errors import UserError
from loopwright.core.findings import Verdict, VerdictStatus
from loopwright.core.gates import Commands
from loopwright.core.held_out import veiled
from loopwright.core.policy import GateCommand, HeldFile
from loopwright.core.receipt_facts import (
    gate_files_of,
    gates_asked,
    held_asked,
    plan_asked,
    setup_of,
    task_asked,
    unseen_asked,
)
from loopwright.core.receipt_verdicts import latest as verdicts_of
from loopwright.core.verdicts import gate_key
from loopwright.core.witnesses import Baseline, baseline, held_against, is_compared
from loopwright.engine.baselines import id_prefixes
from loopwright.engine.held_files import lay, missing
from loopwright.engine.reruns import Ran, settle
from loopwright.engine.world import HomePaths

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
    unseen: bool = False
    """Whether these are held-out checks."""
    files: tuple[HeldFile, ...] = ()
    """Laid over the tree for them."""


def judged_trees(receipt: Mapping[str, Any], wanted: Sequence[str] = ()) -> list[Judged]:
    """Return the tree of the result, or those on which the named tasks landed; each with its recorded verdict."""
    plan = receipt["plan"]
    latest = verdicts_of(receipt)
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
            ),
            *_unseen(receipt, [task for task, _ in unseen_asked(receipt)], plan["result_sha"], latest),
        ]
    landed = [(_task(receipt, key), _landed(receipt, key, latest)) for key in wanted]
    return [
        each for task, one in landed for each in (one, *_unseen(receipt, [task], task["landed_sha"], latest))
    ]


def _unseen(
    receipt: Mapping[str, Any],
    tasks: Sequence[Mapping[str, Any]],
    sha: str,
    latest: Mapping[tuple[str, str], Mapping[str, Any]],
) -> list[Judged]:
    """Return what was held out from these tasks, with the verdict on exactly the tree of this commit."""
    plan, found = receipt["plan"], []
    for task in tasks:
        if not task["held_out"]:
            continue
        commands = held_asked(plan, task)
        tree = plan["result_tree"] if sha == plan["result_sha"] else task["tree"]
        recorded = latest.get((tree, gate_key(commands)))
        if recorded is None:
            continue  # `not_run` says so
        found.append(
            Judged(
                what=_held(task),
                sha=sha,
                commands=commands,
                recorded=recorded,
                before=None,
                gates=gates_asked(plan),
                setup=setup_of(plan),
                unseen=True,
                files=tuple(HeldFile(**file) for one in task["held_out"] for file in one["files"]),
            )
        )
    return found


def not_run(
    receipt: Mapping[str, Any], wanted: Sequence[str], judged: Sequence[Judged], home: Path
) -> dict[str, str]:
    """Say what the receipt has a verdict of and cannot be run again, and why.

    Files of held-out checks stay in the home where the plan ran, and so do trees that were judged and landed nowhere.
    """
    named = [_task(receipt, key) for key in wanted]
    asked = named or [task for task, _ in unseen_asked(receipt)]
    known = {one.what: missing(HomePaths(root=home), one.files) for one in judged}
    told = {}
    for task in asked:
        what = _held(task)
        if not task["held_out"]:
            continue
        if what not in known:
            beside = named and gate_files_of(task)["pinned_tree"]
            told[what] = _BESIDE if beside else "the receipt has no verdict of theirs on exactly this commit"
        elif paths := known[what]:
            told[what] = f"not in this home as they were submitted: {', '.join(paths[:10])}"
    for task in named:
        facts = gate_files_of(task)
        if facts["pinned_tree"]:
            told[f"task {task['key']} with the gate's files as they were before its work"] = _BESIDE
        if facts["red_tree"]:
            told[f"what checks task {task['key']}, without its work"] = _WITHOUT
    return told


_BESIDE: Final = (
    "they ran on a tree that landed nowhere: it is in the home where the plan ran, and in no commit"
)
_WITHOUT: Final = "it is run again on what landed, not on how it was before"


def _held(task: Mapping[str, Any]) -> str:
    return f"held out from task {task['key']}"


def _landed(
    receipt: Mapping[str, Any], key: str, latest: Mapping[tuple[str, str], Mapping[str, Any]]
) -> Judged:
    task = _task(receipt, key)
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


def _task(receipt: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    task: Mapping[str, Any] | None = next((one for one in receipt["tasks"] if one["key"] == key), None)
    if task is None:
        known = ", ".join(one["key"] for one in receipt["tasks"])
        raise UserError(f"the receipt has no task {key!r}", hint=f"it has: {known}")
    return task


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
        verdict, denial = asyncio.run(_judge(one, place))
        yield one, veiled(verdict) if one.unseen else verdict, denial


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    repository: Path
    subfolder: str
    settings: Settings

    async def ran(self, sha: str, commands: Commands, files: Sequence[HeldFile] = ()) -> Trial:
        """Run commands on a commit of their own."""
        async with self.tree(sha, files) as tree:
            return await tree.judge(commands)

    @asynccontextmanager
    async def tree(self, sha: str, files: Sequence[HeldFile]) -> AsyncIterator[CleanTree]:
        """Make a clean clone of a commit, with what was held out laid over it."""
        copied = self.settings.policy().copy_files
        async with clean_tree(
            self.repository, sha, self.settings, subfolder=self.subfolder, copy_files=copied
        ) as tree:
            lay(HomePaths(root=self.settings.home), tree.tree / self.subfolder, files)
            yield tree


async def _judge(one: Judged, place: _Place) -> tuple[Verdict, str | None]:
    async with place.tree(one.sha, one.files) as tree:
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
                _Again(tree=tree, place=place, one=one),
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
    one: Judged

    async def __call__(
        self, _folder: str, commands: tuple[GateCommand, ...], /, *, only: frozenset[str], fresh: bool
    ) -> Ran:
        if fresh:
            tried = await self.place.ran(self.one.sha, commands, self.one.files)
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
