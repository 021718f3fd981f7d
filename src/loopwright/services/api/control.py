"""Decisions of a user: about plans and tasks, questions of agents, and work that agents found."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from loopwright.services import questions
from loopwright.services.api.caller import Noun
from loopwright.services.control import decisions, discoveries, finishing, handover
from loopwright.services.control.decisions import Decision
from loopwright.services.control.discoveries import DiscoveryDecision, DiscoveryView
from loopwright.services.control.finishing import Accepted
from loopwright.services.control.handover import Checkout, HandedBack, TakenOver
from loopwright.services.questions import Answered, QuestionView, Scope
from loopwright.services.views.events import Attempt


class Control(Noun):
    """Decisions about plans and tasks.

    Where a result says `needs_worker`, the plan can continue and no process works on it. Drive it then with
    `plans.drive`, or start a worker.
    """

    async def pause(self, plan: str | None = None, *, now: bool = False) -> Decision:
        """Start nothing more in a plan; running agents finish, or are interrupted with `now`."""
        return await self._caller.act(decisions.pause, plan, now=now)

    async def resume(
        self, plan: str | None = None, *, limits: Mapping[str, Any] | None = None, no_wait: bool = False
    ) -> Decision:
        """Let a paused or stopped plan continue.

        Args:
            plan: Which plan; None for the newest of this repository.
            limits: New values of cost settings, such as `{"max_cost": "20"}`.
            no_wait: Pause rather than wait for an account or for the next day.
        """
        return await self._caller.act(decisions.resume, plan, limits=limits, no_wait=no_wait)

    async def stop(self, plan: str | None = None) -> Decision:
        """Stop a plan: running agents are interrupted, and their work is kept."""
        return await self._caller.act(decisions.stop, plan)

    async def cancel(self, target: str) -> Decision:
        """Give a task or a plan up for good; what landed stays."""
        return await self._caller.act(decisions.cancel, target)

    async def retry(
        self,
        task: str,
        *,
        note: str | None = None,
        agent: str | None = None,
        model: str | None = None,
        allow: Sequence[str] = (),
    ) -> Decision:
        """Give a failed or cancelled task another attempt.

        Args:
            task: Which task.
            note: What to tell the agent.
            agent: Another agent.
            model: Another model.
            allow: Judging files, such as existing tests, that the work may change.
        """
        return await self._caller.act(decisions.retry, task, note=note, agent=agent, model=model, allow=allow)

    async def reverify(self, plan: str | None = None) -> Decision:
        """Run the complete gate of a failed plan again, or of one that only cancelled tasks hold up."""
        return await self._caller.act(decisions.reverify, plan)

    async def reject(
        self, task: str, *, note: str | None = None, comments: Sequence[tuple[str, str]] = ()
    ) -> Decision:
        """Send a task's work back with a note, or with comments of FILE:LINE and a text each."""
        return await self._caller.act(decisions.reject, task, note=note, comments=comments)

    async def rollback(self, target: str, *, to: str | None = None) -> Decision:
        """Take a landed task out of the plan's branch, with everything that builds on it."""
        return await self._caller.act(decisions.rollback, target, to=to)

    async def to_roll_back(self, target: str, *, to: str | None = None) -> tuple[str, ...]:
        """Return the tasks whose work `rollback` would take out."""
        return await self._caller.act(decisions.to_roll_back, target, to=to)

    async def reviewed(self, target: str) -> Decision:
        """Record that you have reviewed what a task, or every task of a plan, landed."""
        return await self._caller.act(decisions.reviewed, target)

    async def accept(
        self, plan: str | None = None, *, tasks: Sequence[str] = (), finish: str | None = None
    ) -> Accepted:
        """Move the work of a plan, or of some of its tasks, into the base branch, or open a pull request."""
        return await self._caller.act(finishing.accept, plan, tasks=tasks, finish=finish)

    async def take_over(self, task: str, directory: Path | str | None = None) -> TakenOver:
        """Take a task from its agent, and make a checkout with the last work on it."""
        where = None if directory is None else self._caller.path(directory)
        return await self._caller.act(handover.take_over, task, where)

    async def checkout(self, task: str) -> Checkout:
        """Return the checkout of a task that you took over."""
        return await self._caller.act(handover.checkout_of, task)

    async def hand_back(self, task: str, *, include_uncommitted: bool = False) -> HandedBack:
        """Send your work on a task through the same checks as an agent's."""
        return await self._caller.act(handover.hand_back, task, include_uncommitted=include_uncommitted)

    async def checked(self, handed: HandedBack) -> Attempt:
        """Wait until the checks of handed-back work have ended, or the plan rests, and return its attempt."""
        return await self._caller.act(handover.checked, handed)

    async def give_back(self, task: str) -> Decision:
        """Give a task that you took over back to the agents, without your work."""
        return await self._caller.act(decisions.give_back, task)


class Questions(Noun):
    """What agents and Loopwright ask you."""

    async def list(self, *, everything: bool = False) -> tuple[QuestionView, ...]:
        """Return the open questions of this repository; `everything` adds other repositories and settled ones."""
        return await self._caller.look(questions.list_questions, everything=everything)

    async def get(self, question: str) -> QuestionView:
        """Return one question; an id or the beginning of one names it."""
        return await self._caller.look(questions.show_question, question)

    async def answer(
        self, question: str, text: str, *, scope: Scope = "run", other: bool = False
    ) -> Answered:
        """Answer a question, so that every task that waits for it continues.

        Args:
            question: Its id or the beginning of it.
            text: The answer, or the number of an option.
            scope: How far the answer to a permission request goes.
            other: Take the answer as it is, though it is none of the options.
        """
        return await self._caller.act(questions.answer, question, text, scope=scope, other=other)


class Discovered(Noun):
    """Work that agents found outside their task and did not do."""

    async def list(self, plan: str | None = None, *, everything: bool = False) -> tuple[DiscoveryView, ...]:
        """Return what is undecided in this repository, or in one plan; `everything` adds the rest."""
        return await self._caller.look(discoveries.list_discovered, plan, everything=everything)

    async def accept(self, work: str, *, way: Literal["current", "new"] | None = None) -> DiscoveryDecision:
        """Have it done in the current plan or in a new one; None for the agent's recommendation."""
        return await self._caller.act(discoveries.accept, work, way=way)

    async def dismiss(self, work: str) -> DiscoveryDecision:
        """Decide that it is not wanted."""
        return await self._caller.act(discoveries.dismiss, work)
