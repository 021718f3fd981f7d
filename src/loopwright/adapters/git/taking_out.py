"""Reading a plan branch commit by commit, and building the commit that takes landings back out of it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from loopwright.adapters.git.commits import message_of, write_commit
from loopwright.adapters.git.depot import Depot
from loopwright.adapters.git.merging import Merging
from loopwright.adapters.git.runner import Git
from loopwright.core.finishing import RECEIPT_TRAILER
from loopwright.ports import Candidate, Step

_TRAILERS: Final = ("Loopwright-Task", "Loopwright-Command", "Loopwright-Reverts", RECEIPT_TRAILER)
_FORM: Final = "%x1f".join(
    ("%H", "%T", "%s", *(f"%(trailers:key={key},valueonly,unfold,separator=%x1e)" for key in _TRAILERS))
)


class TakingOut:
    """Reverts in memory: no work tree, no index. History only grows, so what was taken out stays reachable."""

    def __init__(self, git: Git, depot: Depot, merging: Merging) -> None:
        self._git = git
        self._depot = depot
        self._merging = merging

    async def steps(self, tip: str, *, since: str) -> tuple[Step, ...]:
        """Return the commits of the first-parent line after `since`, the newest first."""
        if tip == since:
            return ()
        done = await self._git.run(
            "log",
            "--first-parent",
            f"--format=tformat:{_FORM}%x00",
            tip,
            f"^{since}",
            env=self._depot.env(),
        )
        entries = done.out.decode("utf-8", "replace").split("\0")
        return tuple(_step(entry.strip("\n")) for entry in entries if entry.strip("\n"))

    async def without(
        self, tip: str, *, landings: Sequence[str], subject: str, plan_id: str, command_id: str, at: datetime
    ) -> Candidate:
        """Build one commit on the tip that takes landings back, the newest first; raise `MergeConflict`."""
        before = tree = await self._merging.tree_of(tip)
        for landing in landings:
            tree = await self._merging.merged_trees(
                base=await self._merging.tree_of(landing),
                ours=tree,
                theirs=await self._merging.tree_of(f"{landing}^1"),
            )
        lines = [f"Loopwright-Plan: {plan_id}", f"Loopwright-Command: {command_id}"]
        lines += [f"Loopwright-Reverts: {landing}" for landing in landings]
        sha = write_commit(
            self._depot,
            tree,
            parents=(tip,),
            message="\n".join((message_of(subject, None), "", *lines)),
            at=at,
            into=self._depot.source.objects,
        )
        return Candidate(parent=tip, sha=sha, tree=tree, empty=tree == before)


def _step(entry: str) -> Step:
    sha, tree, subject, tasks, command, reverts, receipt = entry.split("\x1f")
    return Step(
        sha=sha,
        tree=tree,
        subject=subject,
        tasks=_values(tasks),
        command=next(iter(_values(command)), ""),
        takes_out=_values(reverts),
        receipt=",".join(_values(receipt)),
    )


def _values(text: str) -> tuple[str, ...]:
    return tuple(value.strip() for value in text.split("\x1e") if value.strip())
