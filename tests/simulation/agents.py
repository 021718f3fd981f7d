"""Simulated agents: what each process is going to do, and the codec that understands it.

The codec is the one of the scripted agent, with one word more: an agent may ask leave for a command while it runs.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from tests.simulation.sayings import draw_noticed, draw_round, draw_words
from tests.simulation.services import Services
from tests.simulation.trouble import Trouble

from loopwright.adapters.agents.output import json_object
from loopwright.core.replies.discoveries import Noticed
from loopwright.core.replies.questions import Asking, asking_leave
from loopwright.core.rows.model import Task
from loopwright.core.values.permissions import Permissions, Settled, Wish, settle
from loopwright.ports import (
    AgentEvent,
    AgentRequest,
    AgentResult,
    Exit,
    Folded,
    Invocation,
    OutputLine,
    Spent,
)
from loopwright.testing.scripted import ScriptedAgent, ScriptedState

COMMANDS: Final = ("make dist", "make docs", "make dist && make docs")
"""What agents want to run beside their checks: few, so that many ask for the same."""
MODEL: Final = "sim-1"
PRICES: Final = (f"{MODEL} 1 1",)
"""One token costs a millionth of a dollar, so that a sum is told in tokens as well."""
_SHORT_S: Final = 3.0


@dataclass(slots=True, kw_only=True)
class Act:
    """What one agent is going to do."""

    seconds: float
    """How long it works, once it has what it asked leave for."""
    last_words: dict[str, Any]
    costs: tuple[int, ...] = ()
    """What it has cost, as it tells from time to time; empty when it never does."""
    in_tokens: bool = False
    """It tells only its tokens."""
    wish: Wish | None = None
    """What it asks leave for in the middle."""
    question: Asking | None = None
    """What it asks with its tool in the middle."""
    noticed: tuple[Noticed, ...] = ()
    """The work that it comes upon in the middle, and notes with its tool."""
    words: str = ""
    """What it says in the end beside the quality of its work."""

    def usage(self, sum_micros: int) -> str:
        """Return the line by which it tells what it has cost so far."""
        told: dict[str, Any] = {"event": "usage", "input_tokens": sum_micros, "output_tokens": 0}
        return json.dumps(told if self.in_tokens else {**told, "cost_micros": sum_micros})


def draw_act(
    trouble: Trouble, services: Services, *, run_id: str, agent: str, task: Task, now: Callable[[], datetime]
) -> Act:
    """Decide what an agent will do."""
    chance = trouble.chance("agent")
    act = Act(seconds=min(150.0, chance.lognormvariate(2.5, 1.0)), last_words=_said(True, summary="good"))
    refused = services.knock(agent, run_id, now)
    if refused is not None:
        act.seconds, act.last_words = min(act.seconds, _SHORT_S), refused
        return act
    _price(act, trouble, run_id)
    _doubts(act, trouble, run_id, task)
    act.noticed, noted = draw_noticed(trouble, run_id)
    act.words = "\n".join(filter(None, (noted, draw_words(trouble, run_id, task))))
    act.last_words["summary"] = draw_round(trouble, task, act.last_words["summary"])
    if trouble.strikes("overload", 0.1, run_id):
        act.last_words = _said(False, failure="overloaded", message="too busy")
    elif trouble.strikes("agent_errs", 0.1, run_id):
        act.last_words = _said(False, failure="agent_error", message="I cannot")
    elif trouble.strikes("agent_lies", 0.15, run_id):
        act.last_words["summary"] = chance.choice(("nothing", "bad"))
    elif trouble.strikes("agent_hangs", 0.05, run_id):
        act.seconds = 1e9
    return act


def _said(ok: bool, **more: str) -> dict[str, Any]:
    return {"event": "result", "ok": ok, **more}


def _price(act: Act, trouble: Trouble, run_id: str) -> None:
    chance = trouble.chance("cost")
    micros, steps = chance.randint(1_000, 100_000), chance.randint(1, 4)
    act.in_tokens = chance.random() < 0.3
    if not trouble.strikes("no_cost", 0.05, run_id):
        # Nobody looks at it before the end where nothing limits it.
        steps = steps if trouble.has("budget") else 1
        act.costs = tuple(micros * step // steps for step in range(1, steps + 1))


def _doubts(act: Act, trouble: Trouble, run_id: str, task: Task) -> None:
    """Let it need a person: for leave that its task always needs, or for a word in between."""
    if trouble.has("permission"):
        needs = (task.position * 7 + trouble.scenario.seed) % (2 * len(COMMANDS))
        if needs < len(COMMANDS):
            act.wish = Wish(kind="command", what=COMMANDS[needs])
    if trouble.strikes("question", 0.2, run_id):
        default = trouble.chance("question").choice(("left", None))
        act.question = Asking(
            kind="question", text=f"Which way for {task.key}?", options=("left", "right"), default=default
        )


# --- the codec -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    said: ScriptedState
    permissions: Permissions
    asked: tuple[Asking, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SimAgent:
    """The codec of a simulated agent."""

    name: str
    codec: ScriptedAgent = field(default_factory=ScriptedAgent)
    capabilities: frozenset[str] = field(
        default=frozenset({"resume", "interrupt", "permissions"}), init=False
    )

    def invocation(self, request: AgentRequest) -> Invocation:
        return Invocation(argv=(self.name,), session_ref=request.session_ref)

    def initial(self, request: AgentRequest | None = None, *, before: Spent | None = None) -> _State:
        allowed = request.permissions if request is not None else Permissions()
        return _State(said=self.codec.initial(request, before=before), permissions=allowed)

    def fold(self, state: _State, line: OutputLine) -> Folded:
        event = json_object(line.text) or {}
        if event.get("event") != "wish":
            folded = self.codec.fold(state.said, line)
            return replace(folded, state=replace(state, said=folded.state))
        wish = Wish(kind="command", what=event["what"])
        settled = settle(state.permissions, wish)
        if settled is Settled.ASK:
            state = replace(state, asked=(*state.asked, asking_leave(wish)))
        told = AgentEvent(kind="Ask", data={"what": wish.what})
        return Folded(state=state, events=(told,), writes=(settled.value,))

    def interrupt(self, state: _State) -> tuple[str, ...]:
        return self.codec.interrupt(state.said)

    def result(self, state: _State, exit: Exit) -> AgentResult:
        result = self.codec.result(state.said, exit)
        if state.asked and exit.ended_by == "itself":
            return replace(result, claimed=False, failure=None, asked=state.asked)
        return result

    def probe(self) -> tuple[str, ...]:
        return self.codec.probe()
