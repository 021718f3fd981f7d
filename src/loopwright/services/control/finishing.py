"""Accept a plan's work: move it into the base branch or open a pull request."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loopwright.adapters.git import GitRepository
from loopwright.app import forge, make_worker, make_world
from loopwright.config.resolve import Settings
from loopwright.core.policy.finishing import LEAVE, PULL_REQUEST
from loopwright.core.rows.model import Command, Finish, Task
from loopwright.core.values.errors import Refused, UserError
from loopwright.core.values.states import OPEN_FINISH, FinishState
from loopwright.engine.rows.finishes import FinishView, finish_views
from loopwright.engine.rows.moves import need
from loopwright.ports import Base, Tx
from loopwright.services.control.sending import has_worker, send
from loopwright.services.homes.caller import environment
from loopwright.services.homes.read_only_home import find_plan
from loopwright.services.homes.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The result of accepting a plan's work."""

    command: Command
    finish: FinishView
    is_done: bool
    """Whether the work was merged or pushed; otherwise `finish` says why not."""


async def accept(
    at: Session,
    plan: str | None = None,
    *,
    tasks: Sequence[str] = (),
    finish: str | None = None,
    told: Callable[[Command], None] = lambda _: None,
) -> Accepted:
    """Accept a plan, or some of its tasks; `told` is called when the command is accepted, before the work moves."""
    store = at.home.store
    row = await store.read(lambda tx: find_plan(tx, plan))
    command = await send(at, "accept", row.id, {"tasks": list(tasks), "finish": finish})
    told(command)
    begun = await store.read(lambda tx: tx.find(Finish, plan_id=row.id, order_by=("-created_at",)))
    ended = await _until_ended(at, begun[0].id)
    view = await store.read(lambda tx: _view(tx, ended))
    return Accepted(command=command, finish=view, is_done=ended.state is FinishState.FINISHED)


def _view(tx: Tx, finish: Finish) -> FinishView:
    keys = {task.id: task.key for task in tx.find(Task, plan_id=finish.plan_id)}
    (view,) = [one for one in finish_views(tx, finish.plan_id, keys) if one.id == finish.id]
    return view


async def _until_ended(at: Session, finish_id: str) -> Finish:
    """Carry a plan's finish out, or wait for the worker that does."""
    home = at.home

    async def row() -> Finish:
        found: Finish = need(await home.store.read(lambda tx: tx.get(Finish, finish_id)), "the finish")
        return found

    async def finished() -> bool:
        return (await row()).state not in OPEN_FINISH

    while not await finished():
        # A daemon that gets this request is the worker itself: its lock must not be released for it.
        if await has_worker(home) or not home.membership.acquire({"pid": os.getpid(), "command": "accept"}):
            await home.store.changed(1.0)
            continue
        world = make_world(home, at.settings, at.env, slots=1)
        try:
            await make_worker(world, only_finish=finish_id).run(finished)
        finally:
            home.membership.release()
    return await row()


async def check_finish(settings: Settings, repository: GitRepository, start: Base) -> None:
    """Refuse a finish that would be impossible, before any money is spent."""
    values = settings.values
    if values.finish == LEAVE:
        return
    ends = await repository.ends()
    branch = await ends.base_tip(start.ref)
    if values.finish == PULL_REQUEST:
        address = await ends.remote(values.forge.remote)
        if address is None:
            raise Refused(
                f"finish is pull-request, but there is no git remote {values.forge.remote!r}",
                code="no_remote",
                hint="add it with `git remote add`, or set forge.remote to the one that you mean",
            )
        forge(settings, environment(), address)
    on_remote = values.finish == PULL_REQUEST and start.ref.startswith(f"{values.forge.remote}/")
    if branch is None and not on_remote:
        raise Refused(
            f"finish is {values.finish}, but the plan would start from {start.ref}, which is not a branch",
            code="base_not_a_branch",
            hint="check a branch out, give one with --base, or set finish to leave",
        )
    if values.finish_sign and not await ends.can_sign():
        raise UserError(
            "finish_sign is true, but git has no key to sign with",
            code="no_signing_key",
            hint="git config --global user.signingkey KEY (and gpg.format ssh for an ssh key)",
        )
