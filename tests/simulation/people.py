"""A person at the keyboard: presses everything, at any time; then puts things in order."""

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

from loopwright.core.errors import Refused
from loopwright.core.model import Command, CommandState, Loop, Plan, Task
from loopwright.core.states import ENDED_PLAN, LoopState, PlanState, TaskState
from loopwright.engine import commands
from loopwright.engine.submit import submit
from loopwright.engine.worker import apply_command
from loopwright.ports import Tx

if TYPE_CHECKING:
    from tests.simulation.universe import Universe

_PATIENCE = 4
"""How often a person resumes or retries the same thing in the end, before leaving it."""


class Person:
    """One user of the home."""

    def __init__(self, universe: "Universe") -> None:
        self._universe = universe
        self._tried: Counter[str] = Counter()

    async def meddle(self) -> None:
        """Press things until the storm is over."""
        trouble = self._universe.trouble
        chance = trouble.chance("person")
        while not trouble.calm:
            await asyncio.sleep(chance.expovariate(1 / 40))
            if trouble.calm:
                return
            plan = chance.choice(list(self._universe.database.all(Plan).values()))
            tasks = [one for one in self._universe.database.all(Task).values() if one.plan_id == plan.id]
            task = chance.choice(tasks)
            failed = [one for one in tasks if one.status in (TaskState.ERROR, TaskState.CANCELLED)]
            if trouble.strikes("pause", 0.3):
                verb = chance.choice(("pause", "pause", "stop", "resume", "resume"))
                await self._ask(verb, plan.id, **({"now": chance.random() < 0.5} if verb == "pause" else {}))
            if trouble.strikes("cancel", 0.06):
                await self._ask("cancel", plan.id if chance.random() < 0.1 else task.id)
            if trouble.strikes("retry", 0.2):
                verb = chance.choice(("retry", "retry", "reverify"))
                wanted = chance.choice(failed).id if failed else task.id
                await self._ask(verb, wanted if verb == "retry" else plan.id)
            if trouble.strikes("edit", 0.1):
                self._submit_again(plan)
            if trouble.strikes("foreign_commit", 0.05):
                self._commit_to(plan)

    async def put_in_order(self) -> bool:
        """Resume and retry what waits for a person, a few times; say whether there was anything to do."""
        did = False
        for loop in self._universe.database.all(Loop).values():
            plan = self._universe.database.all(Plan).get(loop.plan_id or "")
            if plan is None or plan.status is PlanState.CANCELLED or plan.status is PlanState.VERIFIED:
                continue
            if loop.state in (LoopState.PAUSED, LoopState.STOPPED) and self._may(f"resume {plan.id}"):
                await self._ask("resume", plan.id, max_cost_micros=10**12)
                did = True
            for task in self._universe.database.all(Task).values():
                if task.plan_id != plan.id or task.status not in (TaskState.ERROR, TaskState.CANCELLED):
                    continue
                if self._may(f"retry {task.id}"):
                    await self._ask("retry", task.id)
                    did = True
            if (
                plan.status is PlanState.FAILED
                and not plan.open_tasks
                and not plan.failed_tasks
                and self._may(f"reverify {plan.id}")
            ):
                await self._ask("reverify", plan.id)
                did = True
        return did

    def _may(self, what: str) -> bool:
        self._tried[what] += 1
        return self._tried[what] <= _PATIENCE

    async def _ask(self, verb: str, target: str, **arguments: Any) -> None:
        universe = self._universe
        universe.history.note(f"a person asks: {verb} {target[-4:]} {arguments or ''}")

        def ask(tx: Tx) -> Command:
            return commands.request(
                tx, universe.ids, actor="person", verb=verb, target=target, arguments=arguments
            )

        command = universe.database.transact_sync("request", ask)
        if universe.scenario.exclusive and not universe.is_held:
            # With nobody at work, the command line carries it out itself, under the lock.
            await apply_command(universe.database, universe.ids, command)

    def _submit_again(self, plan: Plan) -> None:
        """Submit the source of a plan, changed: an unfinished plan stays, an ended one gets a successor."""
        universe = self._universe
        asked = universe.edited(plan)
        open_before = [one for one in universe.database.all(Plan).values() if one.status not in ENDED_PLAN]
        try:
            universe.database.transact_sync("submit", lambda tx: submit(tx, universe.ids, asked))
        except Refused as no:
            universe.history.note(f"edited plan refused: {no}")
        else:
            universe.history.note(f"edited plan taken ({len(open_before)} were open)")

    def _commit_to(self, plan: Plan) -> None:
        """Commit something harmless to the plan branch, as a person might."""
        target = self._universe.target
        tip = target.refs.get(plan.branch)
        if tip is None:
            return
        files = {**target.files(tip), f"note{len(target.commits)}.txt": "hello"}
        target.refs[plan.branch] = target.commit(target.tree(files), (tip,)).sha

    @property
    def unanswered(self) -> list[Command]:
        """What was asked and not answered yet."""
        found = self._universe.database.all(Command).values()
        return [one for one in found if one.state is CommandState.PENDING]
