"""The baseline of a gate run: results of the project's gates on the base commit, and other data for comparison."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from loopwright.core.gates.contradictions import id_prefixes
from loopwright.core.gates.gates import setup_command, with_setup
from loopwright.core.gates.witnesses import (
    baseline,
    failed_unseen,
    files_named,
    is_compared,
    stand_in,
    uncompared,
)
from loopwright.core.integrity.gate_files import kind_of
from loopwright.core.rows.model import Role, VerdictRecord
from loopwright.core.values.errors import TookTooMuch
from loopwright.core.values.findings import Baseline, CommandResult, Verdict, VerdictStatus, Witnessed
from loopwright.engine.gates.judging import Judging
from loopwright.engine.integrity.gate_scripts import Judges, gate_rules, inside
from loopwright.engine.rows.world import World
from loopwright.ports import Candidate, Entry, FileChange, Repository

Judge = Callable[[World, Repository, Judging, asyncio.Event], Awaitable[tuple[VerdictRecord | None, Verdict]]]


async def baseline_of(
    world: World,
    repository: Repository,
    ask: Judging,
    verdict: Verdict,
    seen: Sequence[Witnessed | None],
    interrupt: asyncio.Event,
    judge: Judge,
) -> tuple[Baseline | None, Verdict | None]:
    """Return what the project's gates saw on the base commit; they run there once.

    If they could not run there, the second value is the verdict that says why.
    """
    setup = setup_command(ask.plan.policy)
    if ask.before is None or not (
        is_compared(ask.plan.gates, with_setup(ask.plan, ask.commands), seen)
        or failed_unseen(ask.plan.gates, ask.own, verdict, seen)
        or any(
            one.changed or (one.touched and not (setup and one.command == setup.command))
            for one in verdict.commands
        )
    ):
        return None, None
    tree = await repository.tree_of(ask.before)
    if tree == ask.tree:
        return None, None
    before = await known_baseline(world, ask, tree)
    if before is None and await world.underway.ended(
        ask.plan.id, tree, asked_by=ask.tree, interrupt=interrupt
    ):
        before = await known_baseline(world, ask, tree)
    if before is None:
        asked = replace(on_base(ask, sha=ask.before, tree=tree), commands=ask.plan.gates)
        try:
            record, found = await judge(world, repository, asked, interrupt)
        except TookTooMuch as taken:
            # The work reached this point, so it may be exactly what fixes this.
            return None, Verdict(status=VerdictStatus.INCONCLUSIVE, reason=str(taken), lasting=True)
        if found.status is VerdictStatus.INCONCLUSIVE:
            return None, found
        before = _seen_by(world, ask, record) if record is not None else None
    return before, None


def on_base(ask: Judging, *, sha: str, tree: str) -> Judging:
    """Return the same question about the base commit, where there is nothing to compare with."""
    asked = replace(ask, role=Role.BASELINE, sha=sha, tree=tree, landed=True)
    return replace(asked, before=None, exempt=(), brought=())


async def uncompared_commands(
    repository: Repository,
    ask: Judging,
    verdict: Verdict,
    seen: Sequence[Witnessed | None],
    before: Baseline | None,
) -> tuple[CommandResult, ...]:
    """Return the work's own commands that may have run other tests on the base commit.

    A command that runs only new files that it names has lost no test.
    """
    found = uncompared(ask.own, ask.plan.gates, verdict, seen, before)
    if ask.before is None or not found or await repository.tree_of(ask.before) == ask.tree:
        return ()
    top = f"{ask.project.subfolder}/" if ask.project.subfolder else ""
    named = sorted({top + path for one, _ in found for path in files_named(one.command)})
    now, then = await repository.files_at(ask.sha, named), await repository.files_at(ask.before, named)
    left = []
    for one, saw in found:
        new = tuple(path for path in files_named(one.command) if top + path in now.keys() - then.keys())
        if not stand_in(saw, id_prefixes(new)):
            left.append(one)
    return tuple(left)


async def known_baseline(world: World, ask: Judging, tree: str) -> Baseline | None:
    """Return what the project's gates saw on a tree, if they ran on it before."""
    found = await world.store.read(lambda tx: tx.find(VerdictRecord, plan_id=ask.plan.id, tree=tree))
    return baseline_in(world, ask, found)


def baseline_in(world: World, ask: Judging, records: Sequence[VerdictRecord]) -> Baseline | None:
    """Return what the project's gates saw on the tree of these verdicts."""
    known = (_seen_by(world, ask, record) for record in records)
    return next((one for one in known if one is not None), None)


def _seen_by(world: World, ask: Judging, record: VerdictRecord) -> Baseline | None:
    """Return what a gate saw inside its test runners by command, if it ran all gates of the plan."""
    results = record.verdict.commands
    if not {gate.command for gate in ask.plan.gates} <= {result.command for result in results}:
        return None
    found = world.gate.witnessed(world.paths.run(record.run_id), len(results))
    if found is None:
        return None  # it ran on another machine, or its files were cleaned up
    return baseline(
        results,
        found,
        checks=record.verdict.checks,
        exempt=id_prefixes(ask.exempt),
        own=ask.own,
        commit=ask.before or "",
    )


async def changed_judging_files(
    repository: Repository, ask: Judging, verdict: Verdict
) -> frozenset[str] | None:
    """Return the judging files that a gate's commands changed; None if such changes are not counted against them."""
    changed = tuple(dict.fromkeys(path for one in verdict.commands for path in one.changed))
    if not (changed or any(one.touched for one in verdict.commands)) or ask.role is Role.BASELINE:
        return None
    if ask.before is not None and await repository.tree_of(ask.before) == ask.tree:
        return None  # the tree contains no work, so the project's gates always do this
    top = ask.project.subfolder
    judges = Judges(
        subfolder=top,
        gates=ask.commands,
        acceptance=ask.own,
        setup=setup_command(ask.plan.policy),
        patterns=ask.plan.policy.gate_files,
    )
    was = Entry(mode="100644", id="")
    done = Candidate(
        parent=ask.sha,
        sha=ask.sha,
        tree=ask.tree,
        empty=False,
        changes=tuple(FileChange(path=path, before=was, after=None) for path in changed),
    )
    rules = await gate_rules(repository, judges, done)
    return frozenset(path for path in changed if kind_of(inside(top, path), rules, existed=True) is not None)
