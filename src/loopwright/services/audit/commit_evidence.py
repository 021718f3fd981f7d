"""The commits behind finished items: those that a source names, or else those that the home has a record of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loopwright.adapters.git import GitRepository
from loopwright.adapters.git.plumbing.environment import user_env
from loopwright.core.plans.audits import COMMIT, Named
from loopwright.core.policy.finishing import PICKED_TRAILER, PULL_REQUEST
from loopwright.core.rows.model import Finish, Task
from loopwright.core.values.states import FinishState, TaskState
from loopwright.ports import PlannedTask, Tx
from loopwright.services.homes.read_only_home import glancing
from loopwright.services.plans.source_plans import is_home, plans_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What the home knows of how an item was done."""

    sha: str
    """The commit in which it landed."""
    result: str | None
    """What the whole plan came to."""
    ends: tuple[str, ...]
    """Commits by which it was brought into a branch of the user's."""


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
    """Looks for commits in what is checked out; whether a branch arrived there is asked once."""

    def __init__(self, repository: GitRepository, base: str, root: Path) -> None:
        self._repository = repository
        self._base = base
        self._root = root
        self._arrived: dict[str, bool] = {}
        self._stand_ins: dict[str, str] | None = None

    async def named(self, text: str, record: Recorded | None, *, recorded: bool) -> Named:
        """Return the state of a commit; `record` is what the home knows of this commit."""
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
        """Return the checked-out commit whose message names this one; a clone has no home that could say so."""
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
