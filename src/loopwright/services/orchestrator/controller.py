"""The controller: read the state and the roadmap, take one action that follows from them, and repeat."""

from dataclasses import dataclass

from loopwright.core.orchestrator import manifest
from loopwright.core.orchestrator.decide import Action, Do, RoundSeen, next_actions
from loopwright.core.orchestrator.records import ControlState, LiveRound
from loopwright.core.orchestrator.self_check import Ending, Facts, failed_clauses
from loopwright.core.values.errors import BadPlan, GitFailed, IllegalTransition, Refused
from loopwright.core.values.round_states import ControllerStage, RoundStage
from loopwright.services.orchestrator import state_edits as edits
from loopwright.services.orchestrator.control_plane import ControlError, view_of
from loopwright.services.orchestrator.controller_files import ControllerFiles
from loopwright.services.orchestrator.delegation import Assignment, Begun, Desk
from loopwright.services.orchestrator.finalization import finalize, passes
from loopwright.services.orchestrator.observing import Observed
from loopwright.services.orchestrator.round_events import record_changes
from loopwright.services.orchestrator.round_work import Interrupted, Now, RoundWork, live_round


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the controller ended."""

    ending: Ending
    reason: str = ""
    plan_id: str = ""
    """The plan of an unfinished stage."""
    merged: tuple[str, ...] = ()
    """The rounds that it merged."""


class Controller:
    """Drives one orchestrator folder until it is terminal, blocked or interrupted."""

    def __init__(self, desk: Desk) -> None:
        """Use this desk; all state is in the files."""
        self.desk = desk
        self.work = RoundWork(desk, self._not_observable)
        self._merged: list[str] = []
        self._silent: set[str] = set()
        """The rounds whose live stage shows no activity."""

    async def run(self) -> Ended:
        """Act until nothing is left that the controller may do."""
        while True:
            ended, state = await self._next()
            if state is not None:
                await record_changes(self.desk, state)
            if ended is not None:
                return ended

    async def _next(self) -> tuple[Ended | None, ControlState | None]:
        """Take one action; return how that ended the controller, and the state after it unless that is invalid."""
        try:
            try:
                ended = await self._pass()
            except Interrupted as paused:
                ended = self._interrupted(str(paused))
            return ended, self.desk.plane.state()
        except BadPlan as corrupt:
            return blocked_by(self.desk.writer, corrupt, tuple(self._merged)), self._valid_state()
        except (ControlError, IllegalTransition, Refused, GitFailed) as wrong:
            return self._blocked(str(wrong)), self.desk.plane.state()

    def _valid_state(self) -> ControlState | None:
        try:
            return self.desk.plane.state()
        except BadPlan:
            return None  # which is what the controller just recorded

    async def _pass(self) -> Ended | None:
        now = await self._read()
        waiting = _waiting(now)
        found = next_actions(now.state, now.view, now.seen)
        actions = [one for one in found if one.round_id not in waiting]
        delegated = [one for one in actions if one.do is Do.DELEGATE]
        if delegated:
            await self._delegate(now, delegated)
        for action in actions:
            ended = await self._act(now, action)
            if ended is not None:
                return ended
            if action.do is not Do.DELEGATE:
                return None  # the state has changed
        return None

    async def _act(self, now: Now, action: Action) -> Ended | None:
        desk, state = self.desk, now.state
        match action.do:
            case Do.BEGIN:
                await self._begin(now)
            case Do.ADVANCE:
                self._advance(now, action)
            case Do.FINALIZE:
                if await finalize(desk, state, live_round(state, action.round_id)):
                    self._merged.append(action.round_id)
            case Do.REOPEN:
                desk.writer.edit_state(edits.controller_to(ControllerStage.DISPATCH))
            case Do.FINISH:
                return await self._finish()
            case Do.RECOVER:
                # The serial path does not import recovery.
                from loopwright.services.orchestrator.recovery import recover

                await recover(self.work, now.state, now.view, action.round_id)
            case Do.UPDATE | Do.REQUEST:
                # Nor roadmap changes.
                from loopwright.services.orchestrator.roadmap_updates import advance

                await advance(self.work, now.state, action.round_id)
            case Do.FAN_OUT:
                # Nor a fan-out.
                from loopwright.services.orchestrator.fan_out import assignment

                await self._carry_out(await assignment(self.work, now, action.round_id))
            case Do.DELEGATE:
                pass
        return None

    # --- reading ---------------------------------------------------------------------------------------

    async def _read(self) -> Now:
        desk, plane = self.desk, self.desk.plane
        state = plane.state()
        if (branch := await desk.branches.checked_out()) != state.base_branch:
            raise ControlError(
                f"base_branch is {state.base_branch}, and {branch or 'no branch'} is checked out; check it out"
            )
        plane.check_contract(state)
        if not await desk.branches.is_ignored(manifest.worktree("round")):
            raise ControlError(f"git does not ignore {manifest.WORKTREES}/; add that line to .gitignore")
        view = view_of(plane.bundle())
        observed: dict[str, Observed] = {}
        seen: dict[str, RoundSeen] = {}
        for live in state.active_rounds:
            observed[live.round_id], seen[live.round_id] = await self.work.look(state, view, live)
        return Now(state=state, view=view, observed=observed, seen=seen)

    # --- acting ----------------------------------------------------------------------------------------

    async def _begin(self, now: Now) -> None:
        desk, state = self.desk, now.state
        base = await desk.branches.tip(state.base_branch)
        await self._check_committed(state, base)
        round_id = f"round-{await self._number(state):03d}"
        taken = {one.selection.milestone_id for one in now.observed.values() if one.selection}
        slug = next((one for one in now.view.ready if one not in taken), now.view.ready[0])
        live = LiveRound(
            round_id=round_id,
            stage=RoundStage.PLAN,
            branch=f"{manifest.FOLDER}/{round_id}-{slug}",
            worktree_path=manifest.worktree(round_id),
        )
        desk.tell(f"{round_id} begins")
        # A killed controller may have made the branch when the base was another.
        began = await desk.branches.open(live.branch, live.worktree_path, at=base)
        await desk.branches.note_begin(round_id, began)
        changes = [edits.add_round(live)]
        if state.controller_stage is not ControllerStage.DISPATCH:
            changes.insert(0, edits.controller_to(ControllerStage.DISPATCH))
        desk.writer.edit_state(edits.both(*changes))

    async def _check_committed(self, state: ControlState, base: str) -> None:
        """Refuse to begin a round on a commit without the folder, where no role could read it."""
        needed = [*manifest.SERIAL, f"{state.roadmap_dir.rstrip('/')}/roadmap-view.json"]
        there = await self.desk.repository.files_at(base, needed)
        if missing := [path for path in needed if path not in there]:
            raise ControlError(
                f"{', '.join(missing)}: not committed on {state.base_branch}; rounds start from its commits, so commit "
                f"{manifest.FOLDER}/"
            )

    async def _number(self, state: ControlState) -> int:
        """Return the number after the last round."""
        folder = self.desk.plane.folder / "rounds"
        names = [one.name for one in folder.glob("round-*")] + [one.round_id for one in state.active_rounds]
        numbers = (name.split("-")[1] for name in names if name.startswith("round-"))
        return max((int(one) for one in numbers if one.isdecimal()), default=0) + 1

    def _advance(self, now: Now, action: Action) -> None:
        desk, state, target = self.desk, now.state, action.to
        assert target is not None, "an action that advances a round says where to"
        live = live_round(state, action.round_id)
        desk.tell(f"{live.round_id}: {live.stage} is done, next is {target}")
        changes = [edits.round_to(live.round_id, target)]
        if target is RoundStage.BLOCKED:
            found = now.observed[live.round_id]
            why = "; ".join(found.problems or (found.review.required_changes if found.review else ()))
            changes.append(edits.round_error(live.round_id, why or "the review found no stage to return to"))
        review = now.seen[live.round_id].review
        if live.stage is RoundStage.REVIEW and target in (RoundStage.IMPLEMENT, RoundStage.PLAN):
            assert review is not None, "only a review sends a round back"
            changes.append(self.work.retried(state, live.round_id, target.value, review.evidence_summary))
        desk.writer.edit_state(edits.both(*changes))

    async def _delegate(self, now: Now, actions: list[Action]) -> None:
        """Delegate the stages of several rounds: all of them are submitted before the first is driven."""
        await self._carry_out(*[await self.work.assignment(now, one.round_id) for one in actions])

    async def _carry_out(self, *asked: Assignment) -> None:
        await self.work.carry_out(*asked)
        for round_id in self._silent:
            # The serial path does not import recovery.
            from loopwright.services.orchestrator.recovery import settle

            await settle(self.work, round_id)
        self._silent.clear()

    async def _not_observable(self, begun: Begun, why: str) -> None:
        # The serial path does not import recovery.
        from loopwright.services.orchestrator.recovery import not_observable

        self._silent.add(begun.assignment.subject_id)
        await not_observable(self.work, begun.assignment, why)

    # --- ending ----------------------------------------------------------------------------------------

    async def _finish(self) -> Ended:
        desk = self.desk
        base = await desk.branches.tip(desk.base_branch)
        problem = await passes(desk, base)
        state = desk.plane.state()
        facts = Facts(state=state, view=view_of(desk.plane.bundle()), is_gated=not problem)
        if failed := failed_clauses(Ending.TERMINAL, facts):
            raise ControlError(f"{'; '.join(failed)} does not hold{f': {problem}' if problem else ''}")
        desk.writer.edit_state(edits.controller_to(ControllerStage.DONE))
        await desk.branches.commit_only([manifest.STATE], f"Mark roadmap {state.roadmap_id} done")
        return Ended(ending=Ending.TERMINAL, merged=tuple(self._merged))

    def _blocked(self, why: str) -> Ended:
        """Record what blocks the controller, and end; it may end only after that is in `state.json`."""
        desk = self.desk
        desk.writer.edit_state(edits.controller_error(" ".join(why.split())))
        state = desk.plane.state()
        failed = failed_clauses(Ending.BLOCKED, Facts(state=state, view=None))
        assert not failed, f"the blockage was not recorded: {failed}"
        return Ended(ending=Ending.BLOCKED, reason=state.errors["controller"], merged=tuple(self._merged))

    def _interrupted(self, plan_id: str) -> Ended:
        failed = failed_clauses(Ending.INTERRUPTED, Facts(state=self.desk.plane.state(), view=None))
        if failed:
            return self._blocked("; ".join(failed))
        return Ended(ending=Ending.INTERRUPTED, plan_id=plan_id, merged=tuple(self._merged))


def blocked_by(writer: ControllerFiles, corrupt: BadPlan, merged: tuple[str, ...] = ()) -> Ended:
    """Record a state that is not valid in that state, and end; raise if it is not even a JSON object."""
    why = "; ".join(corrupt.problems)
    if not writer.record_error(why):
        raise corrupt
    return Ended(ending=Ending.BLOCKED, reason=why, merged=merged)


def _waiting(now: Now) -> set[str]:
    """Return the rounds that selected a milestone of another live round: they plan again once that is merged."""
    taken: set[str] = set()
    waiting = set()
    for live in now.state.active_rounds:
        chosen = now.observed[live.round_id].selection
        if chosen is None:
            continue
        if live.stage is RoundStage.PLAN and chosen.milestone_id in taken:
            waiting.add(live.round_id)
        taken.add(chosen.milestone_id)
    return waiting
