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
from loopwright.core.model import Role
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
from loopwright.engine.checks import Judging, judge_until_known
from loopwright.engine.gate_scripts import inside
from loopwright.engine.known_verdicts import found_without_work
from loopwright.ports import Candidate, FileChange

if TYPE_CHECKING:
    from loopwright.engine.land import Landing

_MOST: Final = 200
_FEW: Final = 20


async def with_red_proof(
    landing: "Landing", candidate: Candidate, facts: GateFiles, rules: Rules, interrupt: asyncio.Event
) -> GateFiles:
    """Return the facts with what running the checks without the work showed, or why that was not done.

    The rules say what of the work are tests.
    """
    plan, task = landing.plan, landing.task
    mode, why = plan.policy.red_proof, why_skipped(task)
    idle = mode != RedProof.OFF and await _is_idle(landing, candidate)
    if not is_asked(plan, task) and not idle:
        return replace(facts, red_skipped=why or NO_ACCEPTANCE) if mode == RedProof.LOGIC else facts
    new = _new_tests(landing, candidate, rules)
    # The gates would be the second run of the whole project: that is for those who have to show that it was broken.
    commands = red_commands(plan, task, with_gates=idle or (bool(new) and mends(task)))
    if not commands:
        return replace(facts, red_missing=NOTHING_SHOWS) if mends(task) and not why else facts
    if why:
        return replace(facts, red_skipped=why)
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
    verdict = await _judged(landing, ask, interrupt)
    names = tuple(inside(landing.project.subfolder, change.path) for change in new[:_MOST])
    red = is_red(verdict.status, [one.exit_code for one in verdict.commands])
    missing = "" if red is not None else verdict.reason or verdict.status.value
    return replace(facts, red_proof=red, red_tree=tree, red_tests=names, red_missing=missing)


async def _judged(landing: "Landing", ask: Judging, interrupt: asyncio.Event) -> Verdict:
    """Run the checks without the work, once: a review, or another leg, asks for the same again."""
    key = gate_key(with_setup(ask.plan, ask.commands))
    known = await landing.world.store.read(lambda tx: found_without_work(tx, ask, key))
    if known is not None:
        return known.verdict
    try:
        _, verdict = await judge_until_known(landing.world, landing.repository, ask, interrupt)
    except (Denied, TookTooMuch) as trouble:
        # With the work it went well, so whatever this is, the work is not to wait for somebody to mend it.
        return Verdict(status=VerdictStatus.INCONCLUSIVE, reason=str(trouble))
    return verdict


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
