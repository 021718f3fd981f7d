"""Building the commit that takes landings back out of a plan branch."""

from collections.abc import Sequence
from datetime import datetime

from loopwright.adapters.git.branches.merging import Merging
from loopwright.adapters.git.plumbing.commits import message_of, write_commit
from loopwright.adapters.git.plumbing.private_git import Depot
from loopwright.ports import Candidate


class TakingOut:
    """Reverts in memory: no work tree, no index. History only grows, so what was taken out stays reachable."""

    def __init__(self, depot: Depot, merging: Merging) -> None:
        self._depot = depot
        self._merging = merging

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
