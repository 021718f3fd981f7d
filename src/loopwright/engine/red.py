"""Red before green: a task's checks, with the tests that its work brought along, have to fail without the work."""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from loopwright.core.errors import Denied, TookTooMuch
from loopwright.core.findings import Verdict, VerdictStatus
from loopwright.core.gate_files import GateFiles, Kind, Rules, kind_of
from loopwright.core.gates import with_setup
from loopwright.core.idle_changes import is_idle
from loopwright.core.known_answers import LARGEST
from loopwright.core.left_out import NOT_THE_SAME, counted, is_shown, listed, refused_without, unloaded_skips
from loopwright.core.model import Role, VerdictRecord
from loopwright.core.tdd import (
    NO_ACCEPTANCE,
    NOTHING_SHOWS,
    RedProof,
    is_asked,
    is_red,
    mends,
    red_commands,
    why_skipped,
)
from loopwright.core.verdicts import gate_key
from loopwright.core.witnesses import Witnessed
from loopwright.engine.baselines import id_prefixes
from loopwright.engine.checks import Judging, judge_until_known
from loopwright.engine.gate_scripts import inside
from loopwright.engine.known_verdicts import found_without_work
from loopwright.ports import Candidate, FileChange

if TYPE_CHECKING:
    from loopwright.engine.land import Landing

_MOST: Final = 200
_FEW: Final = 20
NOT_RUN: Final = (
    "Without the work these fail, so it has to make them pass: a test that does not run shows nothing."
)
GONE: Final = "what was seen inside of its test runners is not there any more"


async def with_red_proof(
    landing: "Landing",
    candidate: Candidate,
    facts: GateFiles,
    rules: Rules,
    verdict_id: str | None,
    interrupt: asyncio.Event,
) -> tuple[GateFiles, tuple[str, ...]]:
    """Return the facts with what running the checks without the work showed, or why that was not done.

    The rules say what of the work are tests. The second says which tests failed without the work and did not run with
    it, in the verdict that it has.
    """
    facts, without = await _tried(landing, candidate, facts, rules, interrupt)
    if without is None or not facts.red_proof:
        return facts, ()
    now = await landing.world.store.read(lambda tx: tx.get(VerdictRecord, verdict_id) if verdict_id else None)
    seen_then, seen_now = (_seen(landing, one) for one in (without, now))
    if seen_then is None or seen_now is None:
        return replace(facts, red_missing=GONE), ()
    names = {one.command: one.name for one in without.verdict.commands}
    if left := refused_without(seen_then, seen_now, names):
        return facts, left
    if not is_shown(without.verdict.commands, seen_then, seen_now):
        return replace(facts, red_missing=NOT_THE_SAME), ()
    mine = id_prefixes(tuple(inside(landing.project.subfolder, one.path) for one in candidate.changes))
    skipped = {
        test
        for command, found in seen_now.items()
        for test in unloaded_skips(seen_then.get(command), found)
        if not test.startswith(mine)  # of those that the work brought the verdict itself tells
    }
    if skipped:
        told = (
            f"{counted(skipped)} could not be loaded without it, and did not run with it: {listed(skipped)}"
        )
        return replace(facts, red_missing=told), ()
    return facts, ()


def _seen(landing: "Landing", record: VerdictRecord | None) -> dict[str, Witnessed] | None:
    """Return what was seen inside of the test runners of a verdict's commands; None when there was, and it is gone."""
    if record is None:
        return {}
    results, world = record.verdict.commands, landing.world
    found = world.gate.witnessed(world.paths.run(record.run_id), len(results))
    if found is None:
        return None if any(one.tests is not None for one in results) else {}
    return {result.command: one for result, one in zip(results, found, strict=False) if one is not None}


async def _tried(
    landing: "Landing", candidate: Candidate, facts: GateFiles, rules: Rules, interrupt: asyncio.Event
) -> tuple[GateFiles, VerdictRecord | None]:
    """Run the checks without the work, where that is asked for; the second is what was found there."""
    plan, task = landing.plan, landing.task
    mode, why = plan.policy.red_proof, why_skipped(task)
    idle = mode != RedProof.OFF and await _is_idle(landing, candidate)
    if not is_asked(plan, task) and not idle:
        skipped = replace(facts, red_skipped=why or NO_ACCEPTANCE) if mode == RedProof.LOGIC else facts
        return skipped, None
    new = _new_tests(landing, candidate, rules)
    # The gates would be the second run of the whole project: that is for those who have to show that it was broken.
    commands = red_commands(plan, task, with_gates=idle or (bool(new) and mends(task)))
    if not commands:
        return replace(facts, red_missing=NOTHING_SHOWS) if mends(task) and not why else facts, None
    if why:
        return replace(facts, red_skipped=why), None
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
    return replace(facts, red_proof=red, red_tree=tree, red_tests=names, red_missing=missing), record


async def _judged(
    landing: "Landing", ask: Judging, interrupt: asyncio.Event
) -> tuple[VerdictRecord | None, Verdict]:
    """Run the checks without the work, once: a review, or another leg, asks for the same again."""
    key = gate_key(with_setup(ask.plan, ask.commands))
    known = await landing.world.store.read(lambda tx: found_without_work(tx, ask, key))
    if known is not None:
        return known, known.verdict
    try:
        return await judge_until_known(landing.world, landing.repository, ask, interrupt)
    except (Denied, TookTooMuch) as trouble:
        # With the work it went well, so whatever this is, the work is not to wait for somebody to mend it.
        return None, Verdict(status=VerdictStatus.INCONCLUSIVE, reason=str(trouble))


async def _is_idle(landing: "Landing", candidate: Candidate) -> bool:
    """Say whether nothing but comments and the like changed: then what passes now may have passed before."""
    pairs = [(change.path, change.before, change.after) for change in candidate.changes]
    if not 0 < len(pairs) <= _FEW or any(
        old is None or new is None or old.mode != new.mode for _, old, new in pairs
    ):
        return False
    ids = list(dict.fromkeys(entry.id for _, *both in pairs for entry in both if entry is not None))
    texts = await landing.repository.texts(ids, limit=LARGEST)
    return all(
        old is not None
        and new is not None
        and old.id in texts
        and new.id in texts
        and is_idle(path, texts[old.id], texts[new.id])
        for path, old, new in pairs
    )


def _new_tests(landing: "Landing", candidate: Candidate, rules: Rules) -> list[FileChange]:
    """Return the tests that the work brought along or changed: without them acceptance might fail for any reason."""
    return [
        change
        for change in candidate.changes
        if change.after is not None
        and kind_of(inside(landing.project.subfolder, change.path), rules, existed=change.before is not None)
        in (Kind.TEST, Kind.STEERING)
    ]
