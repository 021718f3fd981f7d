"""What a plan has in the user's repository, and whether the user's own branches have its work as well."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from loopwright.adapters.git.branches.branches import PINS, pin_of
from loopwright.adapters.git.branches.merging import Merging
from loopwright.adapters.git.plumbing import names
from loopwright.adapters.git.plumbing.place import Source
from loopwright.adapters.git.plumbing.refs import Ref, Refs
from loopwright.adapters.git.plumbing.runner import Git
from loopwright.core.values.errors import GitFailed

_OURS: Final = "refs/heads/loopwright/"
_YOURS: Final = ("refs/heads", "refs/remotes")
_PUSHED: Final = re.compile(r"refs/remotes/.+/loopwright/plan_")
"""What git keeps of a plan branch that was pushed for a pull request: its work is not merged yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """A ref of Loopwright that belongs to a plan."""

    ref: Ref
    branch: str | None
    """A branch of the user's that has the work; None when that is not proven."""
    same_commits: bool = False
    """Whether that branch has the exact commits, rather than the same changes."""

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

    async def of_plan(self, plan_id: str, branch: str, *, into: str | None = None) -> list[Leftover]:
        """Return every ref of a plan, each with where else its work is; `into` is the branch that it started from."""
        pins = names.pin(f"refs/loopwright/attempts/{plan_id}")
        # The plan branch, and those on which people did tasks by hand.
        branches, noted = names.branch(branch.rpartition("/")[0]), pin_of(branch)
        found = await self._refs.read(branches, noted, pins)
        shas = {ref.sha for ref in found.values()}
        merged = await self._merged(shas, into)
        taken = await self._squashed(shas - merged.keys(), into)
        return [
            Leftover(ref=ref, branch=(merged | taken).get(ref.sha), same_commits=ref.sha in merged)
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
        """Delete refs that did not change since they were listed."""
        for ref in refs:
            if ref.worktree:
                raise GitFailed(f"{ref.name} is checked out in {ref.worktree}")
            if not ref.name.startswith(_OURS):
                names.pin(ref.name)
        await self._refs.delete(refs)

    async def _merged(self, shas: Collection[str], into: str | None) -> dict[str, str]:
        """Return the commits that a branch of the user's contains, each with the name of such a branch."""
        waiting, found = set(shas), dict[str, str]()
        form = "--format=%(refname)"
        done = await self._git.run("for-each-ref", form, *_YOURS, env=self._source.env())
        yours = [name for name in done.text.splitlines() if not _is_ours(name)]
        lost = await self._lacking(waiting, yours)
        likely = await self._likely(into)
        for name in sorted(yours, key=lambda name: name not in likely):
            if waiting == lost:
                break
            lacking = await self._lacking(waiting, (name,))
            found |= dict.fromkeys(waiting - lacking, _short(name))
            waiting = lacking
        return found

    async def _lacking(self, shas: Collection[str], branches: Sequence[str]) -> set[str]:
        """Return the commits that none of these branches contains."""
        asked = "".join(f"{line}\n" for line in (*shas, *(f"^{name}" for name in branches)))
        done = await self._git.run("rev-list", "--stdin", env=self._source.env(), stdin=asked.encode())
        return set(shas).intersection(done.text.split())

    async def _squashed(self, shas: Collection[str], into: str | None) -> dict[str, str]:
        """Return the commits whose changes a likely branch of the user's has as other commits, with its name."""
        found: dict[str, str] = {}
        for name in await self._likely(into):
            tip = await self._refs.tip(name)
            if tip is not None and (rest := set(shas) - found.keys()):
                found |= dict.fromkeys(await self._merging.arrived(rest, tip), _short(name))
        return found

    async def _likely(self, into: str | None) -> list[str]:
        """Return the branches of the user's in which a squash may be: the current one, and where the plan began."""
        head = await self._git.run("symbolic-ref", "-q", "HEAD", env=self._source.env(), ok=(0, 1))
        named = dict.fromkeys((head.text, f"refs/heads/{into}" if into else ""))
        return [name for name in named if name and not _is_ours(name)]


def _is_ours(name: str) -> bool:
    """Return whether a branch belongs to Loopwright, here or as it was pushed."""
    return name.startswith(_OURS) or _PUSHED.match(name) is not None


def _short(name: str) -> str:
    return name.removeprefix("refs/heads/").removeprefix("refs/remotes/")
