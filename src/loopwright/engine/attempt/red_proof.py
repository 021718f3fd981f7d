"""Red before green: find something that fails without the work and passes with it."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from loopwright.core.gates.contradictions import id_prefixes
from loopwright.core.gates.gates import with_setup
from loopwright.core.gates.missing_tests import (
    NOT_THE_SAME,
    counted,
    is_shown,
    listed,
    now_passing,
    refused_without,
    unloaded_skips,
)
from loopwright.core.gates.verdicts import gate_key
from loopwright.core.policy.red_first import (
    NOTHING_SHOWS,
    RedFound,
    RedProof,
    is_asked,
    is_check_file,
    is_red,
    red_commands,
    why_skipped,
)
from loopwright.core.rows.model import Role, VerdictRecord
from loopwright.core.values.errors import Denied, TookTooMuch
from loopwright.core.values.findings import Baseline, Verdict, VerdictStatus, Witnessed
from loopwright.engine.attempt.landing_line import Landing
from loopwright.engine.gates.baselines import baseline_in
from loopwright.engine.gates.gate_runs import judge_until_known
from loopwright.engine.gates.judging import Judging
from loopwright.engine.gates.reuse import found_without_work
from loopwright.engine.integrity.gate_scripts import inside
from loopwright.ports import Candidate, FileChange

_MOST: Final = 200
_FEW: Final = 20
_MOST_BYTES: Final = 300_000
GONE: Final = "what was seen inside of its test runners is not there any more"


async def red_proof(
    landing: Landing,
    ask: Judging,
    candidate: Candidate,
    verdict: Verdict,
    verdict_id: str | None,
    interrupt: asyncio.Event,
) -> RedFound:
    """Find proof that the task's checks fail without its work.

    `ask` is the question that the candidate passed with this verdict. Results of the gates on the base commit
    are used first. The checks run again, without the work, only for a task that has to show it, or if its
    acceptance left out tests that were compared with nothing.
    """
    asked = is_asked(landing.plan, landing.task)
    if not asked and all(one.tests is None for one in verdict.commands):
        return RedFound()
    tree = await landing.repository.tree_of(ask.before) if ask.before is not None else ""
    now, records = await landing.world.store.read(
        lambda tx: (
            tx.get(VerdictRecord, verdict_id) if verdict_id else None,
            tx.find(VerdictRecord, plan_id=landing.plan.id, tree=tree),
        )
    )
    seen_now, before = _seen(landing, now), baseline_in(landing.world, ask, records)
    if seen_now and before is not None:
        own = {one.command for one in landing.task.acceptance} or set(seen_now)
        shown = now_passing(before.seen.values(), [seen_now[each] for each in own & seen_now.keys()])
        if shown:
            return RedFound(seen=shown[:_FEW])
    off = landing.plan.policy.red_proof == RedProof.OFF
    if not asked and (off or not _left_out(landing, candidate, seen_now or {}, before)):
        return RedFound()
    found, without = await _tried(landing, candidate, interrupt)
    if without is None:
        return found
    seen_then = _seen(landing, without)
    if seen_then is None or seen_now is None:
        return replace(found, missing=GONE)
    names = {one.command: one.name for one in without.verdict.commands}
    if left := refused_without(seen_then, seen_now, names):
        return replace(found, not_run=left)
    if not found.proof:
        return found
    if not is_shown(without.verdict.commands, seen_then, seen_now):
        return replace(found, missing=NOT_THE_SAME)
    mine = id_prefixes(tuple(inside(landing.project.subfolder, one.path) for one in candidate.changes))
    skipped = {
        test
        for command, saw in seen_now.items()
        for test in unloaded_skips(seen_then.get(command), saw)
        if not test.startswith(mine)  # the verdict itself names those that the work added
    }
    if not skipped:
        return found
    told = f"{counted(skipped)} could not be loaded without it, and did not run with it: {listed(skipped)}"
    return replace(found, missing=told)


def _left_out(
    landing: Landing, candidate: Candidate, seen: Mapping[str, Witnessed], before: Baseline | None
) -> bool:
    """Return whether acceptance left out tests of old files that the gates do not run: they may have failed before."""
    new = tuple(
        inside(landing.project.subfolder, one.path) for one in candidate.changes if one.before is None
    )
    known = frozenset[str]().union(*(one.tests for one in before.seen.values())) if before is not None else ()
    return any(
        test not in known and not test.startswith(id_prefixes(new))
        for one in landing.task.acceptance
        if (found := seen.get(one.command)) is not None
        for test in found.skipped | found.deselected
    )


def _seen(landing: Landing, record: VerdictRecord | None) -> dict[str, Witnessed] | None:
    """Return what the witness saw in a verdict's commands; None if its files are gone."""
    if record is None:
        return {}
    results, world = record.verdict.commands, landing.world
    found = world.gate.witnessed(world.paths.run(record.run_id), len(results))
    if found is None:
        return None if any(one.tests is not None for one in results) else {}
    return {result.command: one for result, one in zip(results, found, strict=False) if one is not None}


async def _tried(
    landing: Landing, candidate: Candidate, interrupt: asyncio.Event
) -> tuple[RedFound, VerdictRecord | None]:
    """Run the checks without the work; return also the record of their verdict."""
    plan, task = landing.plan, landing.task
    new = _new_tests(landing, candidate)
    # Without new tests, the gates prove nothing beyond the tree before the work.
    commands = red_commands(plan, task, with_gates=bool(new))
    if why := why_skipped(task):
        return RedFound(skipped=why), None
    if not commands:
        return RedFound(missing=NOTHING_SHOWS), None
    sha, tree = candidate.parent, await landing.repository.tree_of(candidate.parent)
    if new:
        kept = {change.path for change in new}
        rest = [change for change in candidate.changes if change.path not in kept]
        laid = await landing.repository.laid_over(candidate, restore=rest, texts={})
        sha, tree = laid.sha, laid.tree
    ask = Judging(
        project=landing.project,
        plan=plan,
        attempt=landing.attempt,
        role=Role.BASELINE,
        sha=sha,
        tree=tree,
        commands=commands,
        still_mine=landing.still_mine,
    )
    record, verdict = await _judged(landing, ask, interrupt)
    names = tuple(inside(landing.project.subfolder, change.path) for change in new[:_MOST])
    red = is_red(verdict.status, [one.exit_code for one in verdict.commands])
    missing = "" if red is not None else verdict.reason or verdict.status.value
    return RedFound(proof=red, tree=tree, tests=names, missing=missing), record


async def _judged(
    landing: Landing, ask: Judging, interrupt: asyncio.Event
) -> tuple[VerdictRecord | None, Verdict]:
    """Run the checks without the work, once: a review, or another leg, asks for the same again."""
    key = gate_key(with_setup(ask.plan, ask.commands))
    known = await landing.world.store.read(lambda tx: found_without_work(tx, ask, key))
    if known is not None:
        return known, known.verdict
    try:
        return await judge_until_known(landing.world, landing.repository, ask, interrupt)
    except (Denied, TookTooMuch) as trouble:
        # It ran with the work, so the work does not wait for a fix of this.
        return None, Verdict(status=VerdictStatus.INCONCLUSIVE, reason=str(trouble))


def _new_tests(landing: Landing, candidate: Candidate) -> list[FileChange]:
    """Return the checks that the work added or changed: without them acceptance might fail for any reason."""
    return [
        change
        for change in candidate.changes
        if change.after is not None and is_check_file(inside(landing.project.subfolder, change.path))
    ]
