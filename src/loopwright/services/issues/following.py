"""Follow an issue that became work: claim it, turn feedback on its pull request into attempts, and close it.

Every step can be repeated: rows and the forge tell what was done before.
"""

from enum import StrEnum
from typing import Any, Final

from loopwright.core.gates.gates import plan_commands
from loopwright.core.integrations.issues import (
    TASK,
    Words,
    counting,
    note,
    own,
    receipt_comment,
    working_label,
)
from loopwright.core.policy.finishing import PULL_REQUEST
from loopwright.core.policy.rejections import FEEDBACK
from loopwright.core.rows.events import happened
from loopwright.core.rows.model import Command, CommandState, Finish, Loop, Plan, Task
from loopwright.core.values.errors import Refused
from loopwright.core.values.states import FinishState, PlanState
from loopwright.engine.rows.moves import need
from loopwright.engine.views.loop_views import plan_of
from loopwright.ports import Tx
from loopwright.services.control import decisions
from loopwright.services.homes.context import actor
from loopwright.services.homes.session import Session
from loopwright.services.issues.taking import Tracker, words, writers

_ENDED: Final = ("issue_closed", "issue_dropped")
_ALL: Final = ("issue_claimed", "issue_held", *_ENDED)


class Stage(StrEnum):
    """The stage of an issue."""

    WORKING = "working"
    """Its plan is not verified yet, or its pull request is not open yet."""
    WAITING = "waiting"
    """Its pull request waits for people or checks."""
    SENT_BACK = "sent back"
    """New feedback leads to another attempt."""
    HELD = "held"
    """There is feedback that you have to handle."""
    DROPPED = "dropped"
    """Its pull request was closed without a merge."""
    CLOSED = "closed"
    """It is done, and closed with the receipt."""


async def follow(at: Session, tracker: Tracker, loop: Loop) -> Stage:
    """Take the next step for an issue, and return its new stage."""
    return await _Follow(at, tracker, loop).step()


class _Follow:
    """One step for one issue."""

    def __init__(self, at: Session, tracker: Tracker, loop: Loop) -> None:
        self._at = at
        self._issues = tracker.issues
        self._tracker = tracker
        self._loop = loop
        self._n = need(tracker.number(loop), "the number of the issue")

    async def step(self) -> Stage:
        noted, plan, finish = await self._at.home.store.read(self._load)
        if noted.intersection(_ENDED):
            return Stage.CLOSED if "issue_closed" in noted else Stage.DROPPED
        if plan is None:
            return Stage.WORKING
        if "issue_claimed" not in noted:
            await self._claim()
        if finish is None:
            return Stage.WORKING
        number = need(finish.request_n, "the number of the pull request")
        status = await self._issues.request_status(number)
        if status.state == "merged":
            return await self._close(plan, finish)
        if status.state == "closed":
            return await self._drop(finish)
        if status.head != finish.commit_sha:
            # The branch has a commit that is not ours: leave the work to its author until the merge.
            return Stage.WAITING
        return await self._bring_back(plan, finish, held="issue_held" in noted)

    def _load(self, tx: Tx) -> tuple[set[str], Plan | None, Finish | None]:
        noted = {one.type for one in tx.events(loop=self._loop.id, types=_ALL)}
        known = plan_of(tx, need(tx.get(Loop, self._loop.id), "the loop"))
        plan = tx.get(Plan, known) if known else None
        if plan is None or plan.status is not PlanState.VERIFIED:
            return noted, plan, None
        newest = tx.find(Finish, plan_id=plan.id, order_by=("-created_at",), limit=1)
        done = [one for one in newest if one.how == PULL_REQUEST and one.state is FinishState.FINISHED]
        return noted, plan, done[0] if done else None

    async def _claim(self) -> None:
        label = self._tracker.label
        found = await self._issues.issue(self._n, label)
        await self._issues.change(self._n, labels=[*dict.fromkeys((*found.labels, working_label(label)))])
        who = found.labelled_by or "an account with write access"
        told = f"Loopwright works on this, because {who} set the label `{label}`."
        ignored = "Changes of the text and comments from now on are ignored. It opens a pull request."
        await self._issues.comment(self._n, own(f"{told} {ignored}"))
        await self._record("issue_claimed", by=found.labelled_by)

    async def _close(self, plan: Plan, finish: Finish) -> Stage:
        tasks = await self._at.home.store.read(lambda tx: tx.find(Task, plan_id=plan.id))
        commands = plan_commands(plan, tuple(one for task in tasks for one in task.acceptance))
        text = receipt_comment(
            url=finish.request_url or "",
            plan_id=plan.id,
            commit=finish.commit_sha or "",
            gates=[one.command for one in commands],
            receipt_sha256=finish.receipt_sha256 or "",
        )
        found = await self._issues.issue(self._n, self._tracker.label)
        await self._issues.comment(self._n, text)
        await self._issues.change(self._n, labels=self._without_working(found.labels), close=True)
        await self._record("issue_closed", request=finish.request_url, receipt=finish.receipt_sha256)
        return Stage.CLOSED

    async def _drop(self, finish: Finish) -> Stage:
        found = await self._issues.issue(self._n, self._tracker.label)
        await self._issues.change(self._n, labels=self._without_working(found.labels))
        await self._record("issue_dropped", request=finish.request_url)
        return Stage.DROPPED

    def _without_working(self, labels: tuple[str, ...]) -> list[str]:
        return [one for one in labels if one != working_label(self._tracker.label)]

    async def _bring_back(self, plan: Plan, finish: Finish, *, held: bool) -> Stage:
        if held:
            return Stage.HELD
        task, sent = await self._at.home.store.read(lambda tx: _sent_back(tx, plan))
        known = {one for command in sent for one in command.arguments[FEEDBACK]}
        found = await self._feedback(finish, known)
        if not found:
            return Stage.WAITING
        most = plan.policy.max_attempts
        if len(sent) >= most:
            return await self._hold(finish, f"{most} further attempts were made already (`max_attempts`)")
        try:
            await decisions.reject(self._at, task.id, note=note(found), feedback=[one.id for one in found])
        except Refused as refused:
            return await self._hold(finish, str(refused))
        await self._record("issue_sent_back", request=finish.request_url, feedback=[one.id for one in found])
        return Stage.SENT_BACK

    async def _feedback(self, finish: Finish, known: set[str]) -> list[Words]:
        """Return new failed checks, and new comments of accounts with write access."""
        number = need(finish.request_n, "the number of the pull request")
        checks = await self._issues.checks(need(finish.commit_sha, "the commit"))
        failed = [
            Words(id=one.id, who=f"the check {one.name} failed", text=one.text) for one in checks.failed
        ]
        said = words(await self._issues.request_remarks(number))
        found = counting(said, await writers(self._tracker, said), known)
        # Running checks may fail too, and one attempt should get all failures.
        return ([] if checks.running else [one for one in failed if one.id not in known]) + found

    async def _hold(self, finish: Finish, why: str) -> Stage:
        number = need(finish.request_n, "the number of the pull request")
        told = f"Something came back about this, and a person has to look at it: {why}."
        await self._issues.request_comment(number, own(told))
        await self._record("issue_held", request=finish.request_url, why=why)
        return Stage.HELD

    async def _record(self, type: str, **about: Any) -> None:
        event = happened(type, actor(), loop=self._loop, issue=self._n, **about)
        await self._at.home.store.transact(type.replace("_", "."), lambda tx: tx.append(event))


def _sent_back(tx: Tx, plan: Plan) -> tuple[Task, list[Command]]:
    """Return the task of the issue, and the commands that brought feedback to it."""
    (task,) = tx.find(Task, plan_id=plan.id, key=TASK)
    rejects = tx.find(Command, verb="reject", target=task.id, order_by=("created_at",))
    return task, [
        one for one in rejects if one.arguments.get(FEEDBACK) and one.state is not CommandState.REFUSED
    ]
