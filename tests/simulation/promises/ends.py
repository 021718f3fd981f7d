"""The end of plans in the simulation: a base branch that people move too, and the promises about it."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from tests.simulation.promises.invariants import Problems, Watch, at_end, on_effect
from tests.simulation.target import SimRepository, Target, merged
from tests.simulation.trouble import Trouble

from loopwright.core.rows.model import Finish, Plan, VerdictRecord
from loopwright.core.values.errors import MergeConflict
from loopwright.core.values.findings import VerdictStatus
from loopwright.core.values.states import OPEN_FINISH, FinishState, PlanState
from loopwright.ports import Built, Pick

BASE = "main"
WAYS = ("leave", "leave", "fast-forward", "squash")


class SimEnds:
    """The Ends port of one worker."""

    def __init__(
        self,
        repository: SimRepository,
        target: Target,
        trouble: Trouble,
        watch: Callable[[str, Mapping[str, Any]], None],
    ) -> None:
        self._repository = repository
        self._target = target
        self._trouble = trouble
        self._watch = watch

    async def base_tip(self, ref: str) -> str | None:
        await self._repository.before("base_tip")
        return self._target.refs.get(ref)

    async def joined(self, target: str, source: str) -> str:
        await self._repository.before("joined")
        if self._target.reaches([source], target):
            return self._target.commits[source].tree
        common = next(one for one in self._target.line(source) if self._target.reaches([target], one.sha))
        return self._merged(common.sha, target, source)

    def _merged(self, base: str, ours: str, theirs: str) -> str:
        files, conflicts = merged(*map(self._target.files, (base, ours, theirs)))
        if conflicts:
            raise MergeConflict(tuple(conflicts), "both changed it")
        return self._target.tree(files)

    async def commit(
        self, tree: str, *, parents: Sequence[str], message: str, at: datetime, sign: bool = False
    ) -> str:
        await self._repository.before("commit")
        return self._target.commit(tree, tuple(parents), None, f"{message} {at}").sha

    async def picked(self, target: str, picks: Sequence[Pick], *, at: datetime, sign: bool = False) -> Built:
        await self._repository.before("picked")
        for pick in picks:
            tree = self._merged(pick.parent, target, pick.sha)
            target = self._target.commit(tree, (target,), None, pick.message).sha
        return Built(sha=target, tree=self._target.commits[target].tree)

    async def arrived(self, sha: str, ref: str, *, since: str, key: str) -> str | None:
        await self._repository.before("arrived")
        return sha if self._target.reaches([self._target.refs[ref]], sha) else None

    async def move(self, ref: str, *, new: str, old: str) -> bool:
        await self._repository.before("move")
        target = self._target
        if self._trouble.strikes("foreign_commit", 0.3, "to the base"):
            tip = target.refs[ref]
            n = len(target.commits)
            files = {**target.files(tip), f"mine{n}": "mine"}
            target.refs[ref] = target.commit(target.tree(files), (tip,), None, f"person {n}").sha
        if target.refs[ref] != old:
            return target.refs[ref] == new
        target.refs[ref] = new
        self._trouble.history.note(f"moves {ref} to {new[:8]}")
        self._watch("base_moved", {"new": new, "old": old})
        await self._repository.after("move")
        return True


@on_effect("base_moved")
def the_base_is_moved_only_to_what_passed(watch: Watch, about: Mapping[str, Any]) -> Problems:
    """The user's branch is moved by an end alone, forward, and to a tree that the complete gate passed."""
    target = watch.universe.target
    tree = target.commits[about["new"]].tree
    ends = [one for one in watch.all(Finish).values() if one.commit_sha == about["new"]]
    if not ends:
        yield f"{about['new'][:8]} is no end's commit"
    if not target.reaches([about["new"]], about["old"]):
        yield f"{about['old'][:8]} is lost"
    judged = [one for one in watch.all(VerdictRecord).values() if one.tree == tree]
    if not any(one.verdict.status is VerdictStatus.PASSED for one in judged):
        yield f"nothing has passed on {tree[:8]}"


@at_end
def every_end_is_reached_once(watch: Watch) -> Problems:
    """An end is reached or refused in time; what it reports as merged is in the base, once."""
    target = watch.universe.target
    tip = target.refs.get(BASE)
    begun: dict[str, int] = {}
    for one in watch.all(Finish).values():
        if one.state in OPEN_FINISH:
            yield f"{one.id} is still {one.state.value}"
        if one.state is FinishState.FINISHED and (tip is None or not target.reaches([tip], one.commit_sha)):
            yield f"{one.id} says {one.commit_sha[:8]}, which is not in the base"
        begun[one.plan_id] = begun.get(one.plan_id, 0) + 1
    for plan in watch.all(Plan).values():
        wanted = plan.status is PlanState.VERIFIED and plan.policy.finish != "leave"
        if wanted and not begun.get(plan.id):
            yield f"{plan.id} was verified and never ended"
