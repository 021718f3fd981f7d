"""`receipt replay`: run the recorded gates again, on the recorded trees, in a clean workspace.

They are judged as before: test runners are watched from inside, failures from before the work do not count,
and possibly flaky checks run again.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from loopwright.adapters.git import GitRepository
from loopwright.config.resolve import Settings
from loopwright.core.gates.contradictions import id_prefixes
from loopwright.core.gates.gate_run import JUDGED, GateRun, RunAgain, Terms, judge_run
from loopwright.core.gates.gates import Commands
from loopwright.core.gates.held_out import veiled
from loopwright.core.gates.verdicts import gate_key
from loopwright.core.gates.witnesses import baseline, is_compared
from loopwright.core.receipts.model import Receipt, TaskFacts, VerdictEntry
from loopwright.core.receipts.verdicts import (
    Verdicts,
    acceptance_commands,
    gate_commands,
    held_out_commands,
    held_out_tasks,
    latest_verdicts,
    pinned_commands,
    red_verdict,
    result_commands,
    task_commands,
)
from loopwright.core.rows.model import Plan
from loopwright.core.values.errors import LoopwrightError, UserError
from loopwright.core.values.findings import Baseline, CheckStatus, Verdict, VerdictStatus
from loopwright.core.values.policy import GateCommand, HeldFile
from loopwright.engine.branch.changed_gate_files import changes_by
from loopwright.engine.integrity.gate_scripts import Judges, inside
from loopwright.engine.integrity.old_checks import with_old_checks
from loopwright.engine.processes.held_files import lay, missing
from loopwright.engine.rows.world import HomePaths
from loopwright.ports import Candidate, Repository
from loopwright.services.gates.clean_tree import CleanTree, FindCommit, Trial, clean_tree

# Rebuild trees that were checked and did not land, from a receipt and its repository.
#
# The receipt has the hash of each, so a rebuilt tree is proven to be the same, or not.


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """A tree in no commit: what a task landed, with some files as they were before its work."""

    tree: str
    """Its hash in the receipt."""
    build: Callable[[Repository], Awaitable[Candidate | None]]


def pinned(receipt: Receipt, task: TaskFacts) -> Laid | None:
    """Return the tree with the old judging files of a task; None if it needed no such tree."""
    facts = task.gate_files
    tree = facts.pinned_tree

    async def build(repository: Repository) -> Candidate | None:
        made = await _landed_commits(repository, task)
        found = await with_old_checks(repository, _judges(receipt, task), made)
        return found.restored

    return Laid(tree=tree, build=build) if tree else None


def without_work(receipt: Receipt, task: TaskFacts) -> Laid | None:
    """Return the tree from before a task with its new tests; None if it added none."""
    facts, subfolder = task.gate_files, receipt.project.subfolder
    brought = frozenset(facts.red_tests)

    async def build(repository: Repository) -> Candidate | None:
        made = await _landed_commits(repository, task)
        named = {change.path: inside(subfolder, change.path) for change in made.changes}
        rest = [change for change in made.changes if named[change.path] not in brought]
        return await repository.laid_over(made, restore=rest, texts={})

    return Laid(tree=facts.red_tree, build=build) if facts.red_tree and brought else None


async def built(laid: Laid, repository: Repository) -> str | None:
    """Rebuild a tree; return a commit with it, None if the result differs."""
    made = await laid.build(repository)
    return made.sha if made is not None and made.tree == laid.tree else None


async def why_not(laid: Laid, where: Path) -> str:
    """Return why a tree cannot be rebuilt in this repository; empty if it can."""
    with tempfile.TemporaryDirectory(prefix="loopwright-replay-") as scratch:
        repository = GitRepository(where, project_id="replay", home=Path(scratch))
        try:
            made = await built(laid, repository)
        except LoopwrightError as trouble:
            return f"the tree on which it was judged cannot be built again here: {trouble}"
    return (
        ""
        if made
        else f"the tree on which it was judged ({laid.tree[:10]}) did not come of building it again"
    )


async def _landed_commits(repository: Repository, task: TaskFacts) -> Candidate:
    parent, sha, tree = task.parent_sha or "", task.landed_sha or "", task.tree or ""
    changes = await changes_by(repository, sha, parent=parent)
    return Candidate(parent=parent, sha=sha, tree=tree, empty=False, changes=changes)


def _judges(receipt: Receipt, task: TaskFacts) -> Judges:
    plan = receipt.plan
    return Judges(
        subfolder=receipt.project.subfolder,
        gates=plan.gates,
        acceptance=task.acceptance,
        setup=plan.setup,
        patterns=plan.policy.gate_files,
        may_change=(*plan.policy.may_change, *task.approved),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One tree with a verdict in the receipt, and its commands."""

    what: str
    """Its description in plain words."""
    sha: str
    """The commit; for a tree in no commit, the tree's own hash."""
    commands: Commands
    recorded: VerdictEntry
    """The verdict in the receipt."""
    before: str | None
    """The base commit of the work; None if the work changed nothing."""
    gates: Commands
    """The commands that ran there."""
    setup: GateCommand | None
    exempt: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    unseen: bool = False
    """Whether these are held-out checks."""
    files: tuple[HeldFile, ...] = ()
    """Files that are put into the tree for them."""
    laid: Laid | None = None
    """How to rebuild the tree, if it is in no commit."""
    bare: bool = False
    """Whether it was a run without the work: then it was compared with nothing, and nothing excused it."""


def judged_trees(receipt: Receipt, wanted: Sequence[str] = ()) -> list[Judged]:
    """Return the tree of the result, or those on which the named tasks were checked; each with its recorded verdict."""
    plan = receipt.plan
    latest = latest_verdicts(receipt)
    if not wanted:
        found = latest.get((plan.result_tree, gate_key(result_commands(receipt))))
        if plan.result_sha is None or found is None:
            raise UserError(
                "this receipt has no verdict on a result: there is nothing to run again",
                code="receipt_without_verdict",
                hint="name a task that landed: --task KEY",
            )
        return [
            _judged(
                receipt,
                "the result",
                plan.result_sha,
                result_commands(receipt),
                found,
                before=plan.base_sha,
                tasks=receipt.tasks,
            ),
            *(
                one
                for task, _ in held_out_tasks(receipt)
                for one in _unseen(receipt, task, plan.result_sha, plan.result_tree, latest)
            ),
        ]
    judged: list[Judged] = []
    for key in wanted:
        task, landed = _task(receipt, key), _landed(receipt, key, latest)
        judged += [landed, *_pinned(receipt, task, landed, latest), *_red(receipt, task)]
        laid = pinned(receipt, task)
        # With the old judging files, if the work changed them, as when it landed.
        sha, tree = (laid.tree, laid.tree) if laid else (landed.sha, task.tree)
        judged += [replace(one, laid=laid) for one in _unseen(receipt, task, sha, tree, latest)]
    return judged


def _unseen(
    receipt: Receipt,
    task: TaskFacts,
    sha: str,
    tree: str | None,
    latest: Verdicts,
) -> list[Judged]:
    """Return the held-out checks of a task, with the verdict on exactly this tree."""
    plan = receipt.plan
    commands = held_out_commands(plan, task)
    recorded = latest.get((tree, gate_key(commands)))
    if not task.held_out or recorded is None:
        return []  # `not_run` reports it
    return [
        Judged(
            what=_held(task),
            sha=sha,
            commands=commands,
            recorded=recorded,
            before=None,
            gates=gate_commands(plan),
            setup=plan.setup,
            unseen=True,
            files=tuple(file for one in task.held_out for file in one.files),
        )
    ]


def _pinned(
    receipt: Receipt,
    task: TaskFacts,
    landed: Judged,
    latest: Verdicts,
) -> list[Judged]:
    """Return the same with the old judging files, if the work changed them."""
    laid = pinned(receipt, task)
    commands = pinned_commands(receipt.plan, task)
    recorded = latest.get((laid.tree, gate_key(commands))) if laid else None
    if laid is None or recorded is None:
        return []  # verifying reports it
    return [
        replace(landed, what=_steered(task), sha=laid.tree, commands=commands, recorded=recorded, laid=laid)
    ]


def _red(receipt: Receipt, task: TaskFacts) -> list[Judged]:
    """Return the checks that had to fail without a task's work, on the tree without it."""
    tree, plan = task.gate_files.red_tree, receipt.plan
    commands = acceptance_commands(plan, task) or gate_commands(plan)
    recorded = red_verdict(receipt, tree, gate_key(commands)) if tree else None
    if recorded is None:
        return []  # `not_run` reports it
    laid = without_work(receipt, task)
    return [
        Judged(
            what=_bare(task),
            sha=laid.tree if laid else task.parent_sha or "",
            commands=commands,
            recorded=recorded,
            before=None,
            gates=gate_commands(plan),
            setup=plan.setup,
            laid=laid,
            bare=True,
        )
    ]


def not_run(
    receipt: Receipt,
    wanted: Sequence[str],
    judged: Sequence[Judged],
    *,
    home: Path,
    repository: Path,
) -> dict[str, str]:
    """Return what was checked and cannot run again, and why.

    Files of held-out checks stay in the home where the plan ran. A tree that did not land is rebuilt, which
    may fail if another version's rules made it.
    """
    named = [_task(receipt, key) for key in wanted]
    known = {one.what for one in judged}
    told = {}
    for task in named or [task for task, _ in held_out_tasks(receipt)]:
        if task.held_out and _held(task) not in known:
            told[_held(task)] = _NO_VERDICT
    for task in named:
        facts = task.gate_files
        steered = facts.pinned_tree and pinned_commands(receipt.plan, task)
        if steered and _steered(task) not in known:
            told[_steered(task)] = _NO_VERDICT
        if facts.red_tree and _bare(task) not in known:
            told[_bare(task)] = _NO_VERDICT
    for one in judged:
        if paths := missing(HomePaths(root=home), one.files):
            told[one.what] = f"not in this home as they were submitted: {', '.join(paths[:10])}"
        elif one.laid is not None and (why := asyncio.run(why_not(one.laid, repository))):
            told[one.what] = why
    return told


_NO_VERDICT: Final = "the receipt has no verdict on exactly this tree"


def _held(task: TaskFacts) -> str:
    return f"held out from task {task.key}"


def _steered(task: TaskFacts) -> str:
    return f"task {task.key} with the gate's files as they were before its work"


def _bare(task: TaskFacts) -> str:
    return f"what checks task {task.key}, without its work"


def _landed(receipt: Receipt, key: str, latest: Verdicts) -> Judged:
    task = _task(receipt, key)
    commands = task_commands(receipt.plan, task)
    found = latest.get((task.tree, gate_key(commands)))
    if task.landed_sha is None or found is None:
        raise UserError(
            f"task {key!r} has no verdict on a tree that landed",
            code="receipt_without_verdict",
            hint="name a task that landed, or leave --task out",
        )
    return _judged(
        receipt,
        f"task {key}",
        task.landed_sha,
        commands,
        found,
        before=task.parent_sha,
        tasks=[task],
    )


def _task(receipt: Receipt, key: str) -> TaskFacts:
    task = next((one for one in receipt.tasks if one.key == key), None)
    if task is None:
        known = ", ".join(one.key for one in receipt.tasks)
        raise UserError(
            f"the receipt has no task {key!r}", code="task_not_in_receipt", hint=f"it has: {known}"
        )
    return task


def _judged(
    receipt: Receipt,
    what: str,
    sha: str,
    commands: Commands,
    recorded: VerdictEntry,
    *,
    before: str | None,
    tasks: Sequence[TaskFacts],
) -> Judged:
    changed = [task.gate_files for task in tasks]
    exempt = tuple(path for facts in changed for path in facts.exempt)
    return Judged(
        what=what,
        sha=sha,
        commands=commands,
        recorded=recorded,
        before=before if before != sha else None,
        gates=gate_commands(receipt.plan),
        setup=receipt.plan.setup,
        exempt=exempt,
        rewritten=(*exempt, *(path for facts in changed for path in facts.pinned)),
    )


def replay(
    judged: Sequence[Judged],
    *,
    repository: Path,
    subfolder: str,
    settings: Settings,
    plan: Plan | None = None,
) -> Iterator[tuple[Judged, Verdict, str | None]]:
    """Run each tree's commands again, as a gate runs them; the text says why some could not run in the same way.

    They get the environment of the plan, if this home has it.
    """
    for one in judged:
        place = _Place(repository=repository, subfolder=subfolder, settings=settings, plan=plan)
        verdict, denial = asyncio.run(_judge(one, place))
        yield one, veiled(verdict) if one.unseen else verdict, denial


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    repository: Path
    subfolder: str
    settings: Settings
    plan: Plan | None

    def clone(self, commit: str | FindCommit) -> AbstractAsyncContextManager[CleanTree]:
        """Create a clean clone of a commit."""
        copied = self.settings.policy().copy_files
        return clean_tree(
            self.repository,
            commit,
            self.settings,
            subfolder=self.subfolder,
            copy_files=copied,
            plan=self.plan,
        )

    @asynccontextmanager
    async def tree(self, one: Judged) -> AsyncIterator[CleanTree]:
        """Create a clean clone with the checked tree, and put held-out files into it."""

        async def find(repository: Repository) -> str:
            sha = await built(one.laid, repository) if one.laid else one.sha
            assert sha is not None, "it was built before"
            return sha

        async with self.clone(find) as tree:
            lay(HomePaths(root=self.settings.home), tree.tree / self.subfolder, one.files)
            yield tree


async def _judge(one: Judged, place: _Place) -> tuple[Verdict, str | None]:
    async with place.tree(one) as tree:
        tried = await tree.judge(one.commands)
        if tried.denial is not None or tried.verdict.status not in JUDGED:
            return tried.verdict, tried.denial
        before, trouble = await _before(one, tried, place)
        terms = Terms(
            commands=one.commands,
            setup=one.setup,
            rewritten=id_prefixes(one.rewritten),
            is_baseline=one.bare,
        )
        run = GateRun(
            verdict=tried.verdict,
            terms=terms,
            seen=tried.seen,
            before=before,
            green_here=_green_then(one.recorded),
        )
        verdict = judge_run(run)
        while isinstance(verdict, RunAgain):
            run = replace(run, again=(*run.again, await _second_run(verdict, tree, place, one)))
            verdict = judge_run(run)
        return verdict, trouble


async def _second_run(wanted: RunAgain, tree: CleanTree, place: _Place, one: Judged) -> GateRun:
    """Run commands once more: alone in the tree where they failed, or all of them in a new one."""
    if wanted.fresh:
        async with place.tree(one) as fresh:
            tried = await fresh.judge(wanted.commands)
    else:
        tried = await tree.judge(wanted.commands, only=wanted.only)
    return GateRun(verdict=tried.verdict, seen=tried.seen)


async def _before(one: Judged, tried: Trial, place: _Place) -> tuple[Baseline | None, str | None]:
    """Return what the gates see on the base tree of the work, and why they could not run there."""
    if one.before is None or not is_compared(one.gates, one.commands, tried.seen):
        return None, None
    async with place.clone(one.before) as tree:
        found = await tree.judge(one.gates)
    if found.verdict.status not in JUDGED:
        return None, f"how it was before could not be found out: {found.verdict.reason}"
    return baseline(found.verdict.commands, found.seen, exempt=id_prefixes(one.exempt)), found.denial


def _green_then(recorded: VerdictEntry) -> frozenset[str]:
    """Return the commands that passed on this exact tree, according to the receipt."""
    commands = recorded.commands if recorded.status is VerdictStatus.PASSED else ()
    return frozenset(one.command for one in commands if not one.flaky)


def differences(recorded: VerdictEntry, found: Verdict) -> list[str]:
    """Describe the differences between a verdict and the recorded one.

    Outputs and times may differ, and so may flaky checks.
    """
    said: list[str] = []
    if found.status is not recorded.status:
        said.append(f"it was {recorded.status} and is {found.status.value} now: {found.reason}")
    for then, now in zip(recorded.commands, found.commands, strict=False):
        if then.flaky or now.flaky:
            continue
        if (then.exit_code, then.timed_out) != (now.exit_code, now.timed_out):
            said.append(f"{then.command}: exit code {then.exit_code} then, {now.exit_code} now")
        if then.known_failures != now.known_failures:
            known = f"{then.known_failures} tests had failed before the work, {now.known_failures} now"
            said.append(f"{then.command}: {known}")
        if then.tests != now.tests:
            said.append(f"{then.command}: {_tests(then.tests)} seen to run then, {_tests(now.tests)} now")
    for status in CheckStatus:
        then_count = getattr(recorded.checks, status.value)
        count = sum(check.status is status for check in found.checks)
        if count != then_count:
            said.append(f"{then_count} checks {status} then, {count} now")
    return said


def _tests(count: int | None) -> str:
    return "no tests" if count is None else f"{count} tests"
