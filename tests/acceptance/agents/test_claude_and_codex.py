"""What the real Claude Code and the real Codex have in common, driven by `loopwright run` against a model server."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.acceptance.agents.programs import CLAUDE, CODEX, Program
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task
from tests.waiting import eventually

from loopwright.core.rows.model import Loop, Plan, Role, Run, Usage
from loopwright.core.rows.waiting_rows import Envelope, Question
from loopwright.core.values.ids import short_id
from loopwright.testing import scenarios
from loopwright.testing.model_server import Flaky, ModelServer, Reply, Scenario, ToolCall, Trouble

CHECK = "grep -qx made made.txt"


@pytest.fixture(
    params=[pytest.param(CLAUDE, id="claude"), pytest.param(CODEX, id="codex", marks=pytest.mark.agents)]
)
def program(request: pytest.FixtureRequest) -> Program:
    found: Program = request.param
    if found.binary is None:
        pytest.skip(f"the {found.package} wheel is not installed")
    return found


def made(program: Program, summary: str = "Made.") -> tuple[Reply, ...]:
    """Return the turns of a model that makes the file."""
    turns = scenarios.write_file("made.txt", text="made\n", summary=summary, program=program.name).turns
    return tuple(turn for turn in turns if isinstance(turn, Reply))


def agents(shop: Workshop) -> list[Run]:
    return shop.rows(Run, role=Role.IMPLEMENTER)


def test_a_wrong_key_is_the_users_to_mend_and_fails_no_task(program: Program, shop: Workshop) -> None:
    with program.model(shop, scenarios.bad_key()) as server:
        said = shop.run(shop.plan("locked out", [task("make", "test -d .")]), "--no-wait")
        assert len(server.asked) >= 1
    assert said.code == 3, said.out + said.err
    assert (
        f"The agent is not logged in; log in. Then `loopwright stats quota open {program.name}`" in said.out
    )
    (attempt,) = shop.attempts("make")
    assert (attempt.state, attempt.failure) == ("WAITING", None)
    assert shop.row(Envelope).failure == "auth"
    assert shop.task("make").attempts == 0


@pytest.mark.capability("C090")
def test_it_asks_for_leave_and_goes_on_with_the_answer(program: Program, shop: Workshop) -> None:
    command = "touch made.txt && echo made > made.txt"
    scenario = scenarios.run_command(command, summary="Made.", program=program.name)
    with program.model(shop, scenario):
        going = shop.start("run", str(shop.plan("making", [task("make", CHECK)])))
        eventually(lambda: shop.rows(Question), timeout=60)
        question = shop.row(Question)
        assert command in question.text
        eventually(lambda: shop.task("make").status == "AWAITING_RESPONSE")
        assert shop("answer", question.id, "yes").code == 0
        assert going.end(60) == 0, going.out
    first, second = agents(shop)
    assert first.session_ref == second.session_ref, "its own conversation goes on"
    assert second.permissions is not None
    assert second.permissions.granted == (question.key,)
    assert shop.row(Plan).status == "VERIFIED"


@pytest.mark.timeout(300)
def test_it_waits_for_the_reset_and_then_finishes(program: Program, shop: Workshop) -> None:
    first_turn, *rest = made(program)
    limited = Flaky(fails=Trouble(kind="usage_limit", resets_in_s=3), times=1, then=first_turn)
    scenario = Scenario(turns=(limited, *rest))
    with program.model(shop, scenario, subscribed=True):
        said = shop.run(shop.plan("limited", [task("make", CHECK)]))
    assert said.code == 0, said.out + said.err
    (waited,) = shop.events("attempt_waiting")
    assert waited.payload["failure"] == "usage_limit"
    first, second = agents(shop)
    assert first.retry_at is not None
    assert first.started_at is not None
    assert first.started_at < first.retry_at
    assert second.started_at is not None
    assert second.started_at >= first.retry_at, "not a moment before the service said so"
    assert (shop.task("make").attempts, len(shop.attempts("make"))) == (0, 1), "waiting is no attempt"


@pytest.mark.capability("C027")
def test_it_outlives_its_orchestrator_and_its_work_is_taken_up(program: Program, shop: Workshop) -> None:
    first, *rest = made(program)
    with program.model(shop, Scenario(turns=(replace(first, delay_s=3.0), *rest))):
        going = shop.start("run", str(shop.plan("killed", [task("make", CHECK)])))
        eventually(lambda: shop.rows(Run, state="RUNNING", role=Role.IMPLEMENTER), timeout=60)
        going.kill()
        said = shop("resume", timeout=60)
    assert said.code == 0, said.out + said.err
    (run,) = agents(shop)
    assert run.state == "COMPLETE", "the very run that was going on"


# --- what it may cost --------------------------------------------------------------------------------

PRICES = ["gpt-5.5 3 15 0.30"]
"""As those of the model that Claude Code uses here."""
LONG_S = 30.0

MUCH = Usage(input_tokens=100_000, output_tokens=50)
MIDDLE = {
    # It tells of each block of an answer when that is whole, and looks at its own budget when the answer is.
    "claude": (
        Reply(
            text="Now.",
            tools=(ToolCall(name="Read", input={"file_path": "greet.txt"}),) * 20,
            usage=MUCH,
            pace_s=LONG_S / 60,
        ),
    ),
    # It tells of an answer when that is whole and its tools have run, and has no budget of its own.
    "codex": (
        Reply(tools=(scenarios.RUNS["codex"]("true"),), usage=MUCH),
        Reply(text="It was never stopped.", delay_s=LONG_S),
    ),
}
"""Turns that become dear and then take their time, so that they are stopped by us, and only by us, in the middle."""


@contextmanager
def dear(program: Program, shop: Workshop) -> Iterator[ModelServer]:
    """Let a model make the file for 84 % of 5 cents, and then become dear. Told to go on, it says that it is done."""
    write, _ = made(program)
    cheap = replace(write, usage=Usage(input_tokens=14_000, output_tokens=1))
    done = (Reply(text="Made.", usage=Usage(input_tokens=100, output_tokens=10)),)
    turns = (cheap, *MIDDLE[program.name])
    with program.model(shop, Scenario(turns=turns, by_prompt={"You were interrupted": done})) as server:
        yield server


def dear_plan(shop: Workshop) -> str:
    settings = {"allowed_commands": ["true"], "prices": PRICES}
    return str(shop.plan("dear", [task("make", CHECK)], settings=settings))


@pytest.mark.capability("C075", "C030")
@pytest.mark.parametrize("cap", ["max_cost", pytest.param("max_cost_per_day", marks=pytest.mark.agents)])
def test_it_is_stopped_in_the_middle_at_a_cap_and_a_higher_one_finishes_in_the_same_conversation(
    program: Program, shop: Workshop, cap: str
) -> None:
    flag = "--" + cap.replace("_", "-")
    with dear(program, shop) as server:
        said = shop("run", dear_plan(shop), flag, "0.05", "--no-wait", timeout=60)
        assert said.code == 3, said.out + said.err
        asked = len(server.asked)
        assert asked == 1 + len(MIDDLE[program.name])
        (run,) = agents(shop)
        assert (run.state, run.failure, run.cost_estimated) == ("ERROR", "budget", program.estimated)
        assert run.max_cost_micros == 50_000
        assert run.cost_micros is not None
        assert run.started_at is not None
        assert run.ended_at is not None
        assert run.ended_at - run.started_at < timedelta(seconds=LONG_S), "nobody waited for the rest of it"
        written = (shop.home / "runs" / run.id / "writes.jsonl").read_text()
        assert "interrupt" in written, "it was asked in its own protocol"
        assert run.ended_by == "itself", "and so it ended"
        (warned,) = shop.events("budget_near")
        assert (warned.run, warned.payload["cap"], warned.payload["limit_micros"]) == (run.id, cap, 50_000)
        assert 40_000 <= warned.payload["spent_micros"] < 50_000
        (attempt,) = shop.attempts("make")
        assert attempt.state == "WAITING"
        assert shop.pinned(attempt, "made.txt") == "made\n", "its work is kept"
        loop = shop.row(Loop)
        assert loop.state == "PAUSED"
        plan = short_id(shop.row(Plan).id)
        assert f"`loopwright resume {plan} {flag} 0.40` raises it and continues" in loop.reason
        assert not shop.processes()
        said = shop("resume", flag, "20", timeout=60)
        assert len(server.asked) == asked + 1
    assert said.code == 0, said.out + said.err
    assert shop.row(Plan).outcome == "verified"
    first, second = agents(shop)
    assert first.session_ref == second.session_ref, "its own conversation goes on"
    assert second.cost_micros is not None
    assert second.cost_micros < 10_000, "what this run has added, and not what the conversation has cost"
    assert shop.row(Plan).spent_micros == (first.cost_micros or 0) + second.cost_micros
    assert len(shop.attempts("make")) == 1


@pytest.mark.capability("C075")
@pytest.mark.agents
def test_a_cap_that_is_reached_is_a_question_and_its_answer_goes_on(program: Program, shop: Workshop) -> None:
    with dear(program, shop):
        shop.start("worker").until("working in")
        going = shop.start("run", dear_plan(shop), "--max-cost", "0.05")
        assert going.end(50) == 3, going.out
        said = shop("answer", shop.row(Question).id, "raise it to $20")
        assert said.code == 0, said.out + said.err
        eventually(lambda: shop.row(Plan).outcome == "verified", timeout=60)
    assert shop.row(Plan).policy.max_cost == 20_000_000
