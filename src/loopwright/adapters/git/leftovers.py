"""What a plan has in the user's repository, and whether the user's own branches have its work as well."""

import re
from dataclasses import dataclass
from typing import Final

from loopwright.adapters.git import names
from loopwright.adapters.git.branches import PINS, pin_of
from loopwright.adapters.git.merging import Merging
from loopwright.adapters.git.place import Source
from loopwright.adapters.git.refs import Ref, Refs
from loopwright.adapters.git.runner import Git
from loopwright.core.errors import GitFailed

_OURS: Final = "refs/heads/loopwright/"
_YOURS: Final = ("refs/heads", "refs/remotes")
_PUSHED: Final = re.compile(r"refs/remotes/.+/loopwright/plan_")
"""What git keeps of a plan branch that was pushed for a pull request: nobody has taken its work yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """A ref of ours that belongs to a plan."""

    ref: Ref
    branch: str | None
    """A branch of the user's that has the work; None when that is not proven."""
    same_commits: bool = False
    """Whether that branch has the very commits, rather than the same changes."""

    @property
    def is_branch(self) -> bool:
        """Whether it is the plan's branch, or what we noted of it, and not the pin of an attempt."""
        return self.ref.name.startswith((_OURS, PINS))

    @property
    def name(self) -> str:
        """How people call it."""
        return self.ref.name.removeprefix("refs/heads/")


class Leftovers:
    """Looks through the refs of one repository."""

    def __init__(self, git: Git, source: Source, refs: Refs, merging: Merging) -> None:
        self._git = git
        self._source = source
        self._refs = refs
        self._merging = merging

    async def of_plan(self, plan_id: str, *, into: str | None = None) -> list[Leftover]:
        """Return every ref of a plan, each with where else its work is; `into` is the branch that it started from."""
        pins = names.pin(f"refs/loopwright/attempts/{plan_id}")
        # The plan branch, and those on which people did tasks by hand.
        branches, noted = names.branch(f"loopwright/{plan_id}"), pin_of(f"loopwright/{plan_id}/main")
        found = await self._refs.read(branches, noted, pins)
        known: dict[str, tuple[str | None, bool]] = {}
        for ref in found.values():
            if ref.sha not in known:
                known[ref.sha] = await self._elsewhere(ref.sha, into)
        return [
            Leftover(ref=ref, branch=known[ref.sha][0], same_commits=known[ref.sha][1])
            for ref in found.values()
        ]

    async def on_branch(self, branch: str, refs: list[Ref]) -> frozenset[str]:
        """Return the commits that a plan branch has, if it is among these refs or what we noted of it is."""
        tips = [ref.sha for ref in refs if ref.name in (names.branch(branch), pin_of(branch))]
        if not tips:
            return frozenset()
        done = await self._git.run("rev-list", *tips, env=self._source.env())
        return frozenset(done.text.split())

    async def let_go(self, refs: list[Ref]) -> None:
        """Delete refs of ours that are still what they were when they were looked at."""
        for ref in refs:
            if ref.worktree:
                raise GitFailed(f"{ref.name} is checked out in {ref.worktree}")
            if not ref.name.startswith(_OURS):
                names.pin(ref.name)
        await self._refs.delete(refs)

    async def _elsewhere(self, sha: str, into: str | None) -> tuple[str | None, bool]:
        env = self._source.env()
        done = await self._git.run(
            "for-each-ref", f"--contains={sha}", "--format=%(refname)", *_YOURS, env=env
        )
        yours = [name for name in done.text.splitlines() if not _is_ours(name)]
        if yours:
            return _short(yours[0]), True
        # A squash has other commits: only the content tells, so only branches that it may well be in are looked at.
        head = await self._git.run("symbolic-ref", "-q", "HEAD", env=env, ok=(0, 1))
        likely = [head.text, f"refs/heads/{into}" if into else ""]
        for name in dict.fromkeys(one for one in likely if one and not _is_ours(one)):
            tip = await self._git.run("rev-parse", "-q", "--verify", name, env=env, ok=(0, 1, 128))
            if tip.code == 0 and await self._merging.proven(sha, tip.text):
                return _short(name), False
        return None, False


def _is_ours(name: str) -> bool:
    """Say whether a branch is one of ours, here or as it was pushed."""
    return name.startswith(_OURS) or _PUSHED.match(name) is not None


def _short(name: str) -> str:
    return name.removeprefix("refs/heads/").removeprefix("refs/remotes/")
