"""Holding a gate to the tree that it was given: what its commands changed there is held against it."""

from typing import TYPE_CHECKING

from loopwright.core.gates.gates import setup_command
from loopwright.core.gates.witnesses import held_to_files
from loopwright.core.integrity.gate_files import kind_of
from loopwright.core.rows.model import Role
from loopwright.core.values.findings import Baseline, Verdict
from loopwright.engine.integrity.gate_scripts import Judges, gate_rules, inside
from loopwright.ports import Candidate, Entry, FileChange, Repository

if TYPE_CHECKING:
    from loopwright.engine.gates.judging import Judging


async def held_to_tree(
    repository: Repository, ask: "Judging", verdict: Verdict, before: Baseline | None
) -> Verdict:
    """Fail a gate that changed what judges the work, and name what else it changed, unless it did so before too."""
    changed = tuple(dict.fromkeys(path for one in verdict.commands for path in one.changed))
    if not (changed or any(one.touched for one in verdict.commands)) or ask.role is Role.BASELINE:
        return verdict
    if ask.before is not None and await repository.tree_of(ask.before) == ask.tree:
        return verdict  # nothing was changed, so whatever the gate does is the project's own
    top, setup = ask.project.subfolder, setup_command(ask.plan.policy)
    judges = Judges(
        subfolder=top,
        gates=ask.commands,
        acceptance=ask.own,
        setup=setup,
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
    known = before.changed if before is not None else frozenset()
    return held_to_files(
        verdict,
        known,
        lambda path: kind_of(inside(top, path), rules, existed=True) is not None,
        setup=setup.command if setup else "",
    )
