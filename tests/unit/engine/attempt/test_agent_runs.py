"""Admitting a run: one transaction that starts it, parks its attempt, or sends it back to be briefed again."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.doubles import Home, planned
from tests.refusals import raises_code

from loopwright.core.policy.retry import Failed
from loopwright.core.rows.model import Attempt, Leg, Run
from loopwright.core.rows.waiting_rows import Envelope
from loopwright.core.values.accounts import Account
from loopwright.core.values.failures import Failure
from loopwright.core.values.permissions import Permissions
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import AttemptState, RunState
from loopwright.engine.attempt.agent_brief import Facts
from loopwright.engine.attempt.agent_runs import PAUSED, Equipped, _TermsChanged, admit
from loopwright.engine.memory.interrupts import Interrupted
from loopwright.engine.money import quotas
from loopwright.engine.processes.sandboxing import Walls
from loopwright.engine.rows.legs import Rows
from loopwright.ports import AgentRequest, Invocation, NoSandbox, Reach, RunSpec, Tx
from loopwright.prompts import packaged

TWO = {"claude": (Account(name="work"), Account(name="private"))}
PLACE = Path("/nowhere")


class Ready:
    """A home with attempts whose workspaces are made and whose agents are to start."""

    def __init__(self, home: Home, legs: list[Leg]) -> None:
        self.home = home
        self.legs = {one.subject: one for one in legs}

    def run(self, key: str = "a") -> Run:
        return self.home.get(Run, self.home.attempt(key).run_id)

    def admit(self, key: str = "a", **facts: Any) -> Run | None:
        """Admit the run of a task, briefed with these facts."""
        home, attempt = self.home, self.home.attempt(key)
        rows = Rows(
            project=home.project(),
            loop=home.loop(),
            plan=home.plan(),
            task=home.task(key),
            attempt=attempt,
        )
        values: dict[str, Any] = {
            "rows": rows,
            "run": self.run(key),
            "template": packaged("implementer"),
            "agent": "claude",
            "can": frozenset(),
            "workspace": PLACE,
            "directory": PLACE,
            "contained": False,
            "permissions": Permissions(),
            "account": "work",
        }
        briefed = Facts(**{**values, **facts})
        request = AgentRequest(
            prompt="do it", workspace=PLACE, run_directory=PLACE, permissions=briefed.permissions
        )
        argv = ("claude", "--go")
        equipped = Equipped(
            request=request,
            invocation=Invocation(argv=argv, session_ref="session_1"),
            spec=RunSpec(run_id=briefed.run.id, directory=PLACE, argv=argv, cwd=PLACE, env={}),
            walls=Walls(sandbox=NoSandbox(), reach=Reach(directory=PLACE, cwd=PLACE, env={})),
        )
        fence = self.legs[attempt.id].fence

        def begin(tx: Tx) -> Run | None:
            return admit(tx, home.world, briefed, equipped, fence=fence)

        return home.store.transact_sync("run.start", begin)

    def close(self, account: str) -> None:
        """Let another run of the account find it closed."""
        other = replace(self.run(), id="run_other", attempt_id="attempt_other", account=account)
        report = quotas.AccountReport(refused=Failed(failure=Failure.AUTH, detail="log in"))
        self.home.store.transact_sync(
            "close", lambda tx: quotas.settle_account(tx, other, report, chance=0.0)
        )

    def change(self, key: str = "a", **changes: Any) -> None:
        attempt = self.home.attempt(key)
        self.home.store.transact_sync("change", lambda tx: tx.update(Attempt, attempt.id, **changes))


async def ready(tasks: str = "a", **policy: Any) -> Ready:
    home = await Home(accounts=TWO).launch()
    home.submit(*(planned(key) for key in tasks), policy=Policy(parallel=4, **policy))
    return Ready(home, await home.turn())


async def test_a_run_that_is_admitted_runs_with_what_it_was_briefed_with() -> None:
    scene = await ready()
    assert scene.home.attempt("a").state is AttemptState.PREPARING
    run = scene.admit()
    assert run is not None
    assert run == scene.run()
    assert (run.state, run.account, run.argv) == (RunState.RUNNING, "work", ("claude", "--go"))
    assert (run.session_ref, run.prompt_sha256) == ("session_1", hashlib.sha256(b"do it").hexdigest())
    assert (run.max_cost_micros, run.permissions) == (None, Permissions())
    attempt = scene.home.attempt("a")
    assert (attempt.state, attempt.account) == (AttemptState.WORKING, "work")
    assert scene.home.get(Envelope, "claude/work").runs == 1


async def test_a_run_starts_once() -> None:
    scene = await ready()
    queued = scene.run()
    scene.admit()
    with raises_code("fence_lost"):
        scene.admit(run=queued)
    scene.change(fence=99)
    with raises_code("fence_lost"):
        scene.admit(run=queued)


async def test_a_person_who_stops_the_attempt_is_quicker() -> None:
    scene = await ready()
    scene.change(interrupt="pause")
    with pytest.raises(Interrupted):
        scene.admit()
    assert scene.run().state is RunState.QUEUED


async def test_nothing_starts_in_a_paused_loop() -> None:
    scene = await ready()
    await scene.home.command("pause", scene.home.plan().id)
    scene.change(interrupt="")
    assert scene.admit() is None
    assert (scene.home.attempt("a").wait_reason, scene.run().state) == (PAUSED, RunState.QUEUED)


async def test_a_closed_account_sends_the_run_back_while_another_one_is_open() -> None:
    scene = await ready()
    scene.close("work")
    with pytest.raises(_TermsChanged):
        scene.admit()
    assert scene.home.attempt("a").state is AttemptState.PREPARING
    scene.close("private")
    assert scene.admit() is None
    attempt = scene.home.attempt("a")
    assert (attempt.state, attempt.envelope_id) == (AttemptState.WAITING, "claude/work")


async def test_a_budget_that_shrank_sends_the_run_back_and_one_that_others_may_use_makes_it_wait() -> None:
    scene = await ready("ab", max_cost=150, max_cost_per_run=100)
    with pytest.raises(_TermsChanged):
        scene.admit(max_cost_micros=None)
    with pytest.raises(_TermsChanged):
        scene.admit(max_cost_micros=150)
    run = scene.admit(max_cost_micros=100)
    assert run is not None
    assert run.max_cost_micros == 100
    assert scene.admit("b", max_cost_micros=100) is None, "50 are left, which is no whole run"
    assert scene.home.attempt("b").state is AttemptState.WAITING
