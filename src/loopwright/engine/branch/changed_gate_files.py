"""Find the judging files that landed work of a plan changed: other rules apply to their tests."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from loopwright.core.integrity.gate_files import Kind, kind_of
from loopwright.core.integrity.mixed_files import steers_differently
from loopwright.core.rows.model import Attempt, Plan, Project, Task
from loopwright.core.values.states import AttemptState
from loopwright.engine.integrity.gate_scripts import gate_rules, inside, judges_of
from loopwright.ports import Candidate, FileChange, Repository, Step, Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Steered:
    """The changed judging files that matter for a verdict on a plan's result."""

    exempt: tuple[str, ...]
    """Changed with permission: their tests may be missing."""
    rewritten: tuple[str, ...]
    """All that were changed: earlier passes of their tests say nothing."""


def steered(tx: Tx, plan_id: str, *, landings: Collection[str | None] | None = None) -> Steered:
    """Return what the plan's tasks changed, or only those tasks that landed as one of these commits."""
    landed = tx.find(Attempt, plan_id=plan_id, state=AttemptState.LANDED)
    changed = [
        one.gate_files
        for one in landed
        if one.gate_files is not None and (landings is None or one.candidate_sha in landings)
    ]
    exempt = tuple(path for facts in changed for path in facts.exempt)
    pinned = tuple(path for facts in changed for path in facts.pinned)
    return Steered(exempt=exempt, rewritten=(*exempt, *pinned))


# Judging files that a commit from outside Loopwright changed: later work was judged with them.

_MOST: Final = 200
"""The most files that are named in the record."""


async def gate_files_in(
    repository: Repository, project: Project, plan: Plan, tasks: Sequence[Task], step: Step
) -> list[str]:
    """Return the judging files that a commit changed, except new tests that do not affect others."""
    changes = await changes_by(repository, step.sha, parent=step.parent)
    made = Candidate(parent=step.parent, sha=step.sha, tree=step.tree, empty=False, changes=changes)
    judges = judges_of(project, plan, *tasks)
    rules = await gate_rules(repository, judges, made)
    found = []
    for change in changes:
        path = inside(project.subfolder, change.path)
        kind = kind_of(path, rules, existed=change.before is not None)
        if kind is not None and await _steers(repository, step, change, path, kind, judges.said):
            found.append(path.encode("utf-8", "replace").decode())
    return found[:_MOST]


async def changes_by(repository: Repository, sha: str, *, parent: str) -> tuple[FileChange, ...]:
    """Return what a commit changed against its parent."""
    after = await repository.listed(sha)
    if not parent:  # the branch was merged into a history with another root
        return tuple(FileChange(path=path, before=None, after=entry) for path, entry in after.items())
    changed, before = await repository.changed(parent, sha), await repository.listed(parent)
    return tuple(FileChange(path=path, before=before.get(path), after=after.get(path)) for path in changed)


async def _steers(
    repository: Repository, step: Step, change: FileChange, path: str, kind: Kind, commands: Sequence[str]
) -> bool:
    if kind is Kind.MIXED:
        was = (
            _text(await repository.files_at(step.parent, [change.path]), change.path)
            if change.before
            else None
        )
        now = _text(await repository.files_at(step.sha, [change.path]), change.path)
        return steers_differently(path, was, now, commands)
    return kind is not Kind.TEST or change.before is not None


def _text(files: Mapping[str, bytes], path: str) -> str | None:
    return files[path].decode("utf-8", "replace") if path in files else None
