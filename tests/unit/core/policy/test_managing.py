"""When a manager looks: on events, on a schedule, and only so often."""

from datetime import timedelta

from tests.cases import each_case
from tests.contracts.store import rows

from loopwright.core.policy.managing import Looks, due

NOW = rows.AT


@each_case(
    ("looks", "ago", "happened", "why"),
    [
        (Looks(), (), (), ""),
        (Looks(), (), ("task_failed", "plan_held", "task_failed"), "plan_held, task_failed"),
        (Looks(), (), ("task_complete",), ""),
        (Looks(on_events=False), (), ("task_failed",), ""),
        (Looks(every=60), (), (), "schedule"),
        (Looks(every=60), (30,), (), ""),
        (Looks(every=60), (60,), (), "schedule"),
        (Looks(per_day=2), (60, 120), ("task_failed",), ""),
        (Looks(per_day=2), (60, 25 * 3600), ("task_failed",), "task_failed"),
    ],
)
def test_a_manager_looks_when_something_happened_or_it_is_time(
    looks: Looks, ago: tuple[int, ...], happened: tuple[str, ...], why: str
) -> None:
    before = [NOW - timedelta(seconds=one) for one in ago]
    assert due(looks, before, happened, NOW) == why
