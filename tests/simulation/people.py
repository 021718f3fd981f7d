"""A person at the keyboard: presses everything, at any time; then puts things in order."""

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.promises import discovered
from tests.simulation.promises.by_hand import Hands
from tests.simulation.services import AGENT, OTHER

from loopwright.core.gates.contradictions import ACCEPT
from loopwright.core.gates.contradictions import KIND as CONTRADICTION
from loopwright.core.policy.budget import CAPS
from loopwright.core.policy.escalations import is_given_up
from loopwright.core.policy.quotas import needs_person
from loopwright.core.replies.qa import TYPE as LOOK
from loopwright.core.rows.model import Command, CommandState, Loop, Plan, Task
from loopwright.core.rows.waiting_rows import Envelope, Question
from loopwright.core.values.errors import Refused
from loopwright.core.values.states import (
    ENDED_PLAN,
    EnvelopeState,
    LoopState,
    PlanState,
    QuestionState,
    TaskState,
)
from loopwright.engine.intake.submit import submit
from loopwright.engine.people import commands
from loopwright.engine.worker.worker import apply_command
from loopwright.ports import Tx

if TYPE_CHECKING:
    from tests.simulation.universe import Universe

_PATIENCE = 4
"""How often a person resumes or retries the same thing in the end, before leaving it."""


_ENOUGH: Final = {**dict.fromkeys(CAPS, 10**12), "max_cost_per_run": 10**6}
"""Caps that nothing reaches any more."""


class Person:
    """One user of the home."""

    def __init__(self, universe: "Universe") -> None:
        self._universe = universe
        self._tried: Counter[str] = Counter()
        self._seen: set[str] = set()
        self._hands = Hands(universe)

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
                await self.asks(verb, plan.id, **({"now": chance.random() < 0.5} if verb == "pause" else {}))
            if trouble.strikes("cancel", 0.06):
                await self.asks("cancel", plan.id if chance.random() < 0.1 else task.id)
            if trouble.strikes("retry", 0.2):
                verb = chance.choice(("retry", "retry", "reverify"))
                wanted = chance.choice(failed).id if failed else task.id
                if verb == "reverify" or not await self._decide(wanted):
                    await self.asks(verb, wanted if verb == "retry" else plan.id)
            if trouble.strikes("answer", 0.6):
                await self._answer_something()
            if trouble.strikes("open", 0.2):
                await self._open_something()
            if trouble.strikes("raise", 0.1):
                await self.asks("resume", plan.id, **self._other_caps())
            if trouble.strikes("edit", 0.1):
                self._submit_again(plan)
            if trouble.strikes("take_back", 0.15):
                await self._take_back(plan, tasks)
            if trouble.strikes("foreign_commit", 0.05):
                self._commit_to(plan)
            if trouble.strikes("take_over", 0.4):
                verb, target, arguments = self._hands.wish(tasks)
                await self.asks(verb, target, **arguments)
            if trouble.strikes("look", 0.1) and (seen := [one for one in tasks if one.type == LOOK]):
                await self.asks("reviewed", seen[0].id)
            if trouble.strikes("discovery", 0.5) and (decided := discovered.decide(self._universe)):
                verb, target, arguments = decided
                await self.asks(verb, target, **arguments)

    async def _take_back(self, plan: Plan, tasks: list[Task]) -> None:
        """Reject a landed task, roll it back, or roll its plan back to it; sometimes one that has not landed."""
        chance = self._universe.trouble.chance("take back")
        landed = [one for one in tasks if one.status is TaskState.COMPLETE]
        task = chance.choice(landed if landed and chance.random() < 0.9 else tasks)
        match chance.choice(("reject", "rollback", "checkpoint")):
            case "checkpoint":
                await self.asks("rollback", plan.id, to=task.key)
            case verb:
                await self.asks(verb, task.id, **({"note": "not like this"} if verb == "reject" else {}))

    async def mend_accounts(self) -> None:
        """Log in and top up; say so mostly, else a probe finds out."""
        self._universe.services.mend()
        for envelope in list(self._universe.database.all(Envelope).values()):
            is_shut = needs_person(envelope) and envelope.state is EnvelopeState.CLOSED
            if is_shut and self._universe.trouble.chance("mend").random() < 0.7:
                await self.asks("open", envelope.agent)

    async def put_in_order(self) -> bool:
        """Do what waits for a person, a few times; say whether there was anything to do."""
        did = False
        for loop in self._universe.database.all(Loop).values():
            plan = self._universe.database.all(Plan).get(loop.plan_id or "")
            if plan is None or plan.status is PlanState.CANCELLED or plan.status is PlanState.VERIFIED:
                continue
            if loop.state in (LoopState.PAUSED, LoopState.STOPPED) and self._may(f"resume {plan.id}"):
                await self.asks("resume", plan.id, **_ENOUGH)
                did = True
            for task in self._universe.database.all(Task).values():
                if task.plan_id == plan.id and task.taken_by and self._may(f"hand back {task.id}"):
                    await self.asks("hand_back", task.id, **self._hands.work(task, "good"))
                    did = True
                if task.plan_id != plan.id or task.status not in (TaskState.ERROR, TaskState.CANCELLED):
                    continue
                if self._may(f"retry {task.id}"):
                    await self.asks("retry", task.id)
                    did = True
            if (
                plan.status is PlanState.FAILED
                and not plan.open_tasks
                and not plan.failed_tasks
                and self._may(f"reverify {plan.id}")
            ):
                await self.asks("reverify", plan.id)
                did = True
        return did

    async def _decide(self, task_id: str) -> bool:
        """Sometimes say what becomes of a task that was given up by answering the question about it."""
        chance = self._universe.trouble.chance("given up")
        asked = [
            one
            for one in self._universe.database.all(Question).values()
            if _about_a_task(one) and one.task_id == task_id
        ]
        if not asked or chance.random() < 0.5:
            return False
        answer = chance.choice(("retry", "retry: look again", "1", "2", "leave it", "cancel", "perhaps"))
        await self.asks("answer", chance.choice(asked).id, answer=answer)
        return True

    async def answer_meanwhile(self) -> None:
        """Answer, for more than the run that asked, while a worker is down: whoever takes its agents up hears of it."""
        chance = self._universe.trouble.chance("meanwhile")
        questions = self._universe.database.all(Question).values()
        asked = [one for one in questions if one.state is QuestionState.OPEN and one.kind == "permission"]
        if asked and chance.random() < 0.3:
            question = chance.choice(asked)
            told = {"answer": chance.choice(question.options), "for": chance.choice(("loop", "project"))}
            await self.asks("answer", question.id, **told)

    async def _answer_something(self) -> None:
        """Answer a question, mostly one that is open; sometimes with what is no answer, or for more than may be."""
        chance = self._universe.trouble.chance("answer")
        questions = [one for one in self._universe.database.all(Question).values() if not _about_a_task(one)]
        still_open = [one for one in questions if one.state is QuestionState.OPEN]
        if still_open and chance.random() < 0.8:
            questions = still_open
        if not questions:
            return
        question = chance.choice(questions)
        answer = chance.choice((*question.options, *question.options, "", "perhaps", "2"))
        scope = chance.choice(("run", "run", "loop", "project", "ever"))
        if question.kind != "permission":
            scope = chance.choice(("run", "run", "run", scope))
        told = {"answer": answer, "for": scope, "other": answer == "perhaps"}
        await self.asks("answer", question.id, **told)

    async def answer_all(self) -> None:
        """Answer what is open, but for some that this person never cares about."""
        chance = self._universe.trouble.chance("answer")
        for question in list(self._universe.database.all(Question).values()):
            if question.state is not QuestionState.OPEN or _about_a_task(question):
                continue
            if question.id not in self._seen:
                self._seen.add(question.id)
                # A decision about contradicted checks has no deadline, so its plan waits for it.
                if chance.random() < 0.9 or question.kind == CONTRADICTION:
                    answer = {"permission": "yes", CONTRADICTION: ACCEPT}.get(question.kind, "right")
                    await self.asks("answer", question.id, answer=answer)

    async def _open_something(self) -> None:
        """Open an account; it may be in order by then, or not."""
        chance = self._universe.trouble.chance("open")
        agent = chance.choice((AGENT, AGENT, OTHER))
        if chance.random() < 0.6:
            self._universe.services.mend()
        if chance.random() < 0.8:
            await self.asks("open", agent)

    def _other_caps(self) -> dict[str, int | None]:
        chance = self._universe.trouble.chance("raise")
        names = chance.sample(CAPS, chance.randint(1, len(CAPS)))
        return {name: chance.choice((None, chance.randint(50_000, 1_000_000))) for name in names}

    def _may(self, what: str) -> bool:
        self._tried[what] += 1
        return self._tried[what] <= _PATIENCE

    async def asks(self, verb: str, target: str, **arguments: Any) -> None:
        universe = self._universe
        universe.history.note(f"a person asks: {verb} {target[-4:]} {arguments or ''}")

        def ask(tx: Tx) -> Command:
            return commands.request(
                tx, universe.ids, actor="person", verb=verb, target=target, arguments=arguments
            )

        command = universe.database.transact_sync("request", ask)
        # What changes the branch waits for a worker.
        if universe.scenario.exclusive and not universe.is_held and verb not in commands.BY_GIT:
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


def _about_a_task(question: Question) -> bool:
    return is_given_up(question.kind, question.key)
