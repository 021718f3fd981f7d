"""Audit the finished items of a source: is the commit there, and do the checks pass now?"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loopwright.adapters.git import GitRepository
from loopwright.adapters.git.plumbing.runner import user_env
from loopwright.config.resolve import Settings
from loopwright.core.gates.gates import setup_command
from loopwright.core.plans.audits import BAD, COMMIT, Audited, Checked, Named, Proof, proof_of
from loopwright.core.policy.finishing import PICKED_TRAILER, PULL_REQUEST
from loopwright.core.rows.model import Finish, Plan, Task
from loopwright.core.values.states import FinishState, TaskState
from loopwright.engine.processes.process_environment import below
from loopwright.ports import Mark, PlannedTask, Tx
from loopwright.services.gates.clean_tree import clean_tree
from loopwright.services.gates.gate_trial import ran_in
from loopwright.services.homes.context import Place, glance_at, needed_place, settings_for
from loopwright.services.homes.loop_sources import is_home, plans_of
from loopwright.services.homes.read_only_home import glancing
from loopwright.services.preflight.run_inputs import meant_path, project_settings, read_plan

# The commits behind finished items: those that a source names, or else those in the home's records.


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What the home knows about how an item was done."""

    sha: str
    """The commit in which it landed."""
    result: str | None
    """The outcome of the whole plan."""
    ends: tuple[str, ...]
    """Commits that brought it into a branch of the user."""


async def commits_of(
    repository: GitRepository, base: str, root: Path, source: str, done: Sequence[PlannedTask]
) -> Mapping[str, Named]:
    """Return the state of the commit of each finished item that has one, by its key."""
    known: Mapping[str, Recorded] = {}
    if is_home():
        with glancing() as look:
            known = look.store.read_sync(lambda tx: _recorded(tx, str(root), source))
    search = _Search(repository, base, root)
    found = {}
    for task in done:
        record = known.get(task.key)
        text = task.commit or (record.sha if record is not None else "")
        if text:
            same = record if record is not None and record.sha.startswith(text) else None
            found[task.key] = await search.named(text, same, recorded=not task.commit)
    return found


def _recorded(tx: Tx, root: str, source: str) -> Mapping[str, Recorded]:
    """Return the newest record of each item that landed, by its key."""
    found: dict[str, Recorded] = {}
    for plan in plans_of(tx, root, source):
        ends = [one for one in tx.find(Finish, plan_id=plan.id, state=FinishState.FINISHED) if one.commit_sha]
        for task in tx.find(Task, plan_id=plan.id, status=TaskState.COMPLETE):
            if task.landed_sha is not None:
                brought = [one for one in ends if not one.tasks or task.id in one.tasks]
                shas = tuple(one.commit_sha or "" for one in brought if one.how != PULL_REQUEST)
                found.setdefault(task.key, Recorded(sha=task.landed_sha, result=plan.result_sha, ends=shas))
    return found


class _Search:
    """Finds commits in the checked-out branch; whether a branch was merged is computed once."""

    def __init__(self, repository: GitRepository, base: str, root: Path) -> None:
        self._repository = repository
        self._base = base
        self._root = root
        self._arrived: dict[str, bool] = {}
        self._stand_ins: dict[str, str] | None = None

    async def named(self, text: str, record: Recorded | None, *, recorded: bool) -> Named:
        """Return the state of a commit; `record` is what the home knows about it."""
        sha = await self._repository.known_commit(text) if COMMIT.fullmatch(text) else None
        for end in record.ends if record is not None else ():
            # A squash has the work, and may outlive the commit itself.
            there = await self._repository.known_commit(end)
            if there is not None and await self._repository.is_ancestor(there, self._base):
                return Named(text=text, sha=sha or there, contained=True, recorded=recorded)
        if sha is not None and await self._repository.is_ancestor(sha, self._base):
            return Named(text=text, sha=sha, contained=True, recorded=recorded)
        if (made := await self._stand_in(text)) is not None:
            return Named(text=text, sha=sha or made, contained=True, recorded=recorded)
        if sha is None:
            return Named(text=text, recorded=recorded)
        branches = await self._branches(sha)
        tips = [tip for _, tip in branches]
        if record is not None and record.result is not None:
            tips.append(record.result)
        for tip in tips:
            if await self._has_arrived(tip):
                return Named(text=text, sha=sha, contained=True, recorded=recorded)
        return Named(text=text, sha=sha, branch=branches[0][0] if branches else "", recorded=recorded)

    async def _stand_in(self, text: str) -> str | None:
        """Return the checked-out commit whose message names this one; a clone has no home with records."""
        if not COMMIT.fullmatch(text):
            return None
        if self._stand_ins is None:
            done = await self._repository.git.run(
                "log",
                f"--grep=^{PICKED_TRAILER}: ",
                f"--format=%H %(trailers:key={PICKED_TRAILER},valueonly,separator=%x20)",
                self._base,
                env=user_env(),
                cwd=self._root,
            )
            lines = [line.split() for line in done.text.splitlines()]
            self._stand_ins = {one: made for made, *picked in lines for one in picked}
        found = {made for one, made in self._stand_ins.items() if one.startswith(text)}
        return found.pop() if len(found) == 1 else None

    async def _branches(self, sha: str) -> list[tuple[str, str]]:
        """Return the branches that have a commit, each with its tip."""
        done = await self._repository.git.run(
            "for-each-ref",
            f"--contains={sha}",
            "--format=%(refname:short) %(objectname)",
            "refs/heads",
            env=user_env(),
            cwd=self._root,
        )
        return [(name, tip) for name, tip in (line.split() for line in done.text.splitlines())]

    async def _has_arrived(self, tip: str) -> bool:
        if tip not in self._arrived:
            known = await self._repository.known_commit(tip)
            self._arrived[tip] = known is not None and await self._repository.proven(known, self._base)
        return self._arrived[tip]


# Branches of plans that a checkout does not have yet: their status of the source is not in its file.


async def unmerged(repository: GitRepository, base: str, root: str, source: str) -> str | None:
    """Return the branch of the newest plan of a source with newer status, if the base does not contain it.

    A base with the same changes as a squash contains it too.
    """
    if not is_home():
        return None
    with glancing() as look:
        found = look.store.read_sync(lambda tx: _newest(tx, root, source))
    tip = await repository.known_commit(found.result_sha) if found and found.result_sha else None
    if found is None or tip is None or await repository.proven(tip, base):
        return None
    return found.branch


def _newest(tx: Tx, root: str, source: str) -> Plan | None:
    plans = plans_of(tx, root, source)
    return plans[0] if plans and plans[0].books else None


__all__ = ["Audit", "Audited", "Proof", "audit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What was found about the finished items of a source."""

    items: tuple[Audited, ...]
    newer_branch: str | None
    """A branch that is not merged yet and has a newer status of the source."""

    @property
    def holds(self) -> bool:
        """Whether no item is wrongly marked as finished."""
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
