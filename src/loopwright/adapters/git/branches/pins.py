"""Putting back what keeps the work of attempts, where others took it away or moved it."""

import asyncio
from collections.abc import Mapping
from time import monotonic
from typing import Final

from loopwright.adapters.git.plumbing.private_git import Depot
from loopwright.adapters.git.plumbing.refs import FOLDER, PinList, RefFiles, Refs
from loopwright.adapters.git.plumbing.runner import Git

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
