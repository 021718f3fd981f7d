"""A plan that requires a sandbox starts nothing where there is none."""

from dataclasses import replace

from tests.doubles import Home, planned
from tests.refusals import raises_code

from loopwright.core.rows.model import Role, Run
from loopwright.core.values.containment import Containment
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import RunState
from loopwright.engine.processes.sandboxing import needed_sandbox, sandbox_of


def test_nothing_of_a_plan_that_requires_a_sandbox_starts_without_one() -> None:
    home = Home()
    plan = home.submit(planned("a"))
    strict = replace(plan, policy=Policy(sandbox_required=True))
    run = Run(
        id="run",
        plan_id=plan.id,
        role=Role.IMPLEMENTER,
        state=RunState.QUEUED,
        created_at=home.clock.now(),
    )
    with raises_code("denied"):
        needed_sandbox(home.world, strict)
    with raises_code("denied"):
        sandbox_of(home.world, strict, run)
    assert sandbox_of(home.world, plan, run).level is Containment.NONE
