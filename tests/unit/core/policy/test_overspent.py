"""What is asked when a cap is reached, and what the answers mean."""

from datetime import UTC, datetime

from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright.core.policy.budget import GRANT, Cap, Over, meaning, nobody_knows

PLAN: Over = Cap(setting="max_cost", limit=1_000_000, spent=1_200_000).over
RUN: Over = Cap(setting="max_cost_per_run", limit=1_000_000, spent=1_200_000).over
UNKNOWN: Over = nobody_knows("max_cost")
OF_TOKEN: Over = Cap(setting=GRANT, limit=1_000_000, spent=1_200_000).over


def test_each_has_its_ways_on(wording: Wording) -> None:
    assert PLAN.options == ("raise it to $2.20", "stop")
    wording(RUN.options)
    assert UNKNOWN.options == ("continue all the same", "stop")


@each_case(
    ("over", "answer", "meant"),
    [
        (PLAN, "1", ("resume", (2_200_000,))),
        (PLAN, " Raise it  to $2.20 ", ("resume", (2_200_000,))),
        (PLAN, "raise it to 20", ("resume", (20_000_000,))),
        (PLAN, "2", ("stop", ())),
        (PLAN, "stop", ("stop", ())),
        (RUN, "1", ("resume", ())),
        (OF_TOKEN, "1", ("resume", ())),
        (OF_TOKEN, "2", ("stop", ())),
        (OF_TOKEN, "raise it to 20", None),
        (RUN, "raise it to 0.5", ("resume", (500_000,))),
        (UNKNOWN, "continue all the same", ("resume", (7,))),
    ],
)
def test_an_answer_is_a_command(over: Over, answer: str, meant: object) -> None:
    assert meaning(answer, over.options, limit=7) == meant


@each_case(
    "answer",
    ["", "yes", "3", "20", "raise it to 0", "raise it to -1", "raise it to much", "continue all the same"],
)
def test_what_is_no_answer_is_none(answer: str) -> None:
    assert meaning(answer, PLAN.options, limit=7) is None


def test_no_plan_raises_the_limit_of_its_token(wording: Wording) -> None:
    wording(OF_TOKEN.reason("plan_1"), OF_TOKEN.options)


def test_a_limit_that_nobody_can_keep_says_how_to_go_on(wording: Wording) -> None:
    until = datetime(2026, 3, 2, tzinfo=UTC)
    wording(nobody_knows("max_cost_per_day", until).reason("plan_1"))
