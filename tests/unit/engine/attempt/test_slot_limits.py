"""Slots of agents, accounts and projects, counted in the rows when a run is about to start."""

from dataclasses import replace
from typing import Any

import pytest
from tests.doubles import Home, planned

from loopwright.core.policy.share import SlotLimits
from loopwright.core.rows.model import Plan, Run
from loopwright.core.values.states import RunState
from loopwright.engine.attempt.agent_runs import full_slots


@pytest.mark.capability("C074")
async def test_a_run_that_ended_in_any_way_leaves_its_slot_to_the_next() -> None:
    home = await Home().launch()
    plan = home.submit(planned("a"))
    await home.turn()
    (queued,) = home.all(Run)
    run = replace(queued, id=home.ids("run"), state=RunState.RUNNING, account="work")
    home.store.transact_sync("running", lambda tx: tx.insert(run))

    def full(plan: Plan, agent: str, account: str, **limits: Any) -> str:
        world = replace(home.world, slot_limits=SlotLimits(**limits))
        return home.store.read_sync(lambda tx: full_slots(tx, world, plan, agent, account))

    agent = run.agent or ""
    other = replace(plan, project_id="proj_other")
    assert full(plan, agent, "work") == ""
    assert full(plan, agent, "home", agents={agent: 1}) == f"all 1 slots of {agent} are in use"
    assert full(plan, "other", "work", agents={agent: 1}) == ""
    assert full(plan, agent, "work", agents={f"{agent}/work": 1}).startswith(f"all 1 slots of {agent}/work")
    assert full(plan, agent, "home", agents={f"{agent}/work": 1}) == ""
    assert full(plan, "other", "work", project=1) == "all 1 slots of the project are in use"
    assert full(other, agent, "work", project=1) == ""
    for state in (RunState.COMPLETE, RunState.ERROR, RunState.CANCELLED, RunState.AWAITING_RESPONSE):
        ended = replace(run, id=home.ids("run"), state=state)
        home.store.transact_sync("ended", lambda tx, one=ended: tx.insert(one))
    assert full(plan, agent, "work", agents={agent: 2}, project=2) == ""
