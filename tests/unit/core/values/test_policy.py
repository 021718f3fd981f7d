"""What a plan is run with."""

from tests.cases import each_case

from loopwright.core.values.policy import Limits, done_grace


@each_case(("idle", "grace"), [(None, 60.0), (Limits().idle, 60.0), (3.0, 1.5)])
def test_an_agent_that_is_done_is_ended_before_one_that_hangs(idle: float | None, grace: float) -> None:
    assert done_grace(idle) == grace
