"""Audit the finished items of a source: is the commit there, and do the checks pass now?"""

import os
from dataclasses import dataclass
from pathlib import Path

from loopwright.config.resolve import Settings
from loopwright.core.gates.gates import setup_command
from loopwright.core.plans.audits import BAD, Audited, Checked, Named, Proof, proof_of
from loopwright.engine.processes.process_environment import below
from loopwright.ports import Mark, PlannedTask
from loopwright.services.audit.commit_evidence import commits_of
from loopwright.services.gates.clean_tree import clean_tree
from loopwright.services.gates.gate_trial import ran_in
from loopwright.services.homes.context import Place, settings_for
from loopwright.services.homes.repository_glance import glance_at, needed_place
from loopwright.services.plans.unmerged_branches import unmerged
from loopwright.services.preflight.run_inputs import meant_path, project_settings, read_plan

__all__ = ["Audit", "Audited", "Proof", "audit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What was found about the finished items of a source."""

    items: tuple[Audited, ...]
    newer_branch: str | None
    """A branch that is not merged yet and has a newer status of the source."""

    @property
    def holds(self) -> bool:
        """Whether no item is marked as finished wrongly."""
        return not any(one.proof in BAD for one in self.items)


async def audit(path: Path, *, source: str | None = None, run_checks: bool = True) -> Audit:
    """Look for the commit of every finished item, and run the items' own checks in a clean clone."""
    path = meant_path(path, source)
    _, work = read_plan(path, source)
    place = needed_place(path)
    done = [task for task in work.tasks if task.mark is Mark.DONE]
    with glance_at(place.root) as repository:
        base = await repository.base()
        name = os.path.relpath(path.resolve(), place.root)
        named = await commits_of(repository, base.sha, place.root, name, done)
        project = await project_settings(repository, base.sha, place)
        branch = await unmerged(repository, base.sha, str(place.root), name)
    settings = settings_for(plan=work, plan_name=path.name, loop=name, project_text=project.text)
    checked = await _checked(place, base.sha, settings, done) if run_checks else {}
    items = tuple(_audited(task, named.get(task.key), checked.get(task.key)) for task in done)
    return Audit(items=items, newer_branch=branch)


def _audited(task: PlannedTask, named: Named | None, checked: Checked | None) -> Audited:
    proof, reason = proof_of(named, len(task.acceptance), checked)
    return Audited(
        key=task.key,
        title=task.title,
        proof=proof,
        reason=reason,
        commit=named.sha if named is not None else None,
        line=task.line,
    )


async def _checked(place: Place, sha: str, settings: Settings, done: list[PlannedTask]) -> dict[str, Checked]:
    """Run the checks of every item that has some, each item by itself, in one clean clone."""
    wanted = [task for task in done if task.acceptance]
    if not wanted:
        return {}
    copied = below(place.subfolder, settings.values.copy_files)
    found = {}
    async with clean_tree(place.root, sha, settings, subfolder=place.subfolder, copy_files=copied) as tree:
        if setup := setup_command(settings.policy()):
            ready = await ran_in(tree, setup)
            if not ready.passed:
                return {
                    task.key: Checked(passed=None, reason=f"the setup failed: {ready.reason}")
                    for task in wanted
                }
        for task in wanted:
            for command in task.acceptance:
                ran = await ran_in(tree, command)
                found[task.key] = Checked(passed=ran.passed, reason=f"{command.name}: {ran.reason}")
                if not ran.passed:
                    break
    return found
