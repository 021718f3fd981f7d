"""Plan branches, each with one of our pins beside it that says where we left it: so what others do to it is noticed."""

import asyncio
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Final

from loopwright.adapters.git.branches.history import History
from loopwright.adapters.git.branches.merging import Merging
from loopwright.adapters.git.plumbing import names
from loopwright.adapters.git.plumbing.private_git import Depot
from loopwright.adapters.git.plumbing.refs import FOLDER, PinList, RefFiles, Refs
from loopwright.adapters.git.plumbing.runner import Git
from loopwright.core.values.errors import BranchRewritten, GitFailed
from loopwright.ports import Standing

# Putting back what keeps the work of attempts, where others took it away or moved it.

_LONG_S: Final = 0.1
_REST: Final = 50
"""A look at pins that takes longer than a moment is made so seldom that it takes a fiftieth of the time:
each attempt has one, and a look is asked for after each run."""


class Pins:
    """The pins of one repository's plans."""

    def __init__(self, git: Git, refs: Refs, depot: Depot, made: PinList) -> None:
        self._git = git
        self._refs = refs
        self._depot = depot
        self._made = made
        self._files = RefFiles(depot.source.common_dir)
        self._next_look: dict[str, float] = {}

    async def of_plan(self, plan_id: str) -> Mapping[str, str]:
        """Return the pins of a plan's attempts, each with its commit."""
        return await self._here(f"{FOLDER}{plan_id}/")

    async def put_back(self, plan_id: str, *, near: str) -> tuple[str, ...]:
        """Put back the pins that others deleted or moved; return each of them in plain words.

        Those of all plans of the repository, where a look at so many is not too soon; else those of one.
        """
        for folder in (FOLDER, f"{FOLDER}{plan_id}/"):
            began = monotonic()
            if began >= self._next_look.get(folder, began):
                return await self._put_back(folder, plan_id, near, began)
        return ()

    async def _put_back(self, folder: str, plan_id: str, near: str, began: float) -> tuple[str, ...]:
        here = await self._here(folder)
        expected = self._made.below(folder)
        # A kill came between the pin and the note. Those of other plans may be another home's, to let go of at will.
        own = f"{FOLDER}{plan_id}/"
        self._made.note({n: sha for n, sha in here.items() if n.startswith(own) and n not in expected})
        took = monotonic() - began
        self._next_look[folder] = began + took * (1 + _REST if took > _LONG_S else 1)
        suspected = _lost(expected, here)
        if not suspected:
            return ()
        # Once more: one that we move ourselves is for a moment without the pin that keeps what it was at.
        known = await self._refs.read(*(name for pin in suspected for name in (pin, f"{pin}-was-*")))
        still = self._made.below(folder)
        suspected = {name: sha for name, sha in suspected.items() if still.get(name) == sha}
        lost = _lost(suspected, {name: ref.sha for name, ref in known.items()})
        await self._refs.pin(lost, origin=self._depot.path, near=near, known=known)
        return tuple(
            f"{name} was {'moved' if name in known else 'deleted'}; it is at {sha} again"
            for name, sha in sorted(lost.items())
        )

    async def _here(self, folder: str) -> Mapping[str, str]:
        if self._files.usable:
            return await asyncio.to_thread(self._files.listing, [folder], without="refs/heads/")
        form = "--format=%(refname) %(objectname)"
        listed = await self._git.run("for-each-ref", form, folder, env=self._depot.source.env())
        lines = (line.rpartition(" ") for line in listed.text.splitlines())
        return {name: sha for name, _, sha in lines}


def _lost(expected: Mapping[str, str], here: Mapping[str, str]) -> dict[str, str]:
    """Return the pins that are not where they have to be; one that we moved has another beside it that is."""
    return {
        name: sha
        for name, sha in expected.items()
        if here.get(name) != sha and here.get(f"{name}-was-{sha[:12]}") != sha
    }


PINS: Final = "refs/loopwright/branches/"
_LOOKS: Final = 5


def pin_of(branch: str) -> str:
    """Return where we note the tip of a plan branch: it also keeps what landed from being collected as garbage."""
    return names.pin(PINS + branch.removeprefix("loopwright/"))


class Branches:
    """The plan branches of one repository."""

    def __init__(self, refs: Refs, merging: Merging, history: History) -> None:
        self._refs = refs
        self._merging = merging
        self._history = history

    async def create(self, branch: str, sha: str) -> bool:
        """Create a branch with its pin; False when it exists."""
        return await self._refs.create_both(names.branch(branch), pin_of(branch), sha)

    async def swap(self, branch: str, *, new: str, old: str) -> bool:
        """Move a branch with its pin; False when it was not at `old`."""
        return await self._refs.swap_both(names.branch(branch), pin_of(branch), new=new, old=old)

    async def standing(self, branch: str) -> Standing:
        """Compare a branch with its pin, and put it back where it lost something.

        Commits on top of it are for `accept`. Raise `BranchRewritten` if the user has to repair it.
        """
        name, beside = names.branch(branch), pin_of(branch)
        for _ in range(_LOOKS):
            # The pin first: what lands in between is then seen as ours that was added, and never as missing.
            pin = await self._refs.tip(beside)
            tip = await self._refs.tip(name)
            if pin is None:
                # A missing note says nothing about the branch, least of all that it is unchanged.
                return Standing(tip=tip or "", change="unnoted")
            if tip == pin:
                return Standing(tip=tip)
            if tip is None:
                if await self._refs.create(name, pin):
                    return Standing(tip=pin, change="restored")
            else:
                found = await self._moved(branch, tip=tip, pin=pin)
                if found is not None:
                    return found
        raise GitFailed(f"{branch} does not stay the same: another process moves it again and again")

    async def accept(self, branch: str, *, tip: str, was: str) -> None:
        """Note what others put on a branch; where it was noted in the meantime, that stands."""
        await self._refs.swap(pin_of(branch), new=tip, old=was)

    async def put_back(self, branch: str, *, to: str, found: str, keep: str) -> bool:
        """Take a branch back to where we left it, and pin what it was at; False when it is in use, or elsewhere."""
        name = names.branch(branch)
        if await self._refs.checked_out(name):
            return False
        return await self._refs.swap_both(name, pin_of(branch), new=to, old=found, keep=names.pin(keep))

    async def note(self, branch: str, among: Sequence[str]) -> None:
        """Note where we left a branch: at the newest of these commits of its line, whose first one stands first."""
        first, *later = among
        await self._refs.create(pin_of(branch), await self._history.newest(later, since=first))

    async def _moved(self, branch: str, *, tip: str, pin: str) -> Standing | None:
        """Deal with a branch that is not where we left it; None when it moved once more in the meantime."""
        name = names.branch(branch)
        if await self._merging.is_ancestor(pin, tip):
            steps = await self._history.steps(tip, since=pin)
            return Standing(tip=tip, change="moved", was=pin, commits=steps)
        where = await self._refs.checked_out(name)
        if not where and await self._merging.is_ancestor(tip, pin):
            return (
                Standing(tip=pin, change="restored", was=tip)
                if await self._refs.swap(name, new=pin, old=tip)
                else None
            )
        raise BranchRewritten(
            f"the branch {branch} was rewritten by hand: it is at {tip[:10]}, what landed is at {pin[:10]}. "
            f"`git branch -f {branch} {pin[:10]}` takes what landed back"
            + (f" (it is checked out in {where}: `git reset --keep {pin[:10]}` there)" if where else "")
            + f"; to keep your commits as well, merge {pin[:10]} into them. Then resume. "
            "`loopwright rollback TASK` takes landed work out of it in order.",
            found=tip,
            left=pin,
        )
