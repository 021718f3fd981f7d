"""Real programs of the Agent Client Protocol, driven by `loopwright run` against a model server on this machine.

Run by `make test-agents`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task
from tests.agent_programs import installed
from tests.integration.agents.test_real_acp import CACHES, SETTINGS
from tests.waiting import eventually

from loopwright.core.rows.model import Plan, Role, Run
from loopwright.core.rows.waiting_rows import Envelope
from loopwright.testing import scenarios
from loopwright.testing.model_server import ModelServer, Rejection, Reply, Scenario, Trouble

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]
LONG = 500.0
"""Far above what they take: some need many seconds to start where the machine is busy."""


def _files(user: Path) -> set[str]:
    found = (str(path.relative_to(user)) for path in user.rglob("*") if path.is_file())
    return {path for path in found if not path.startswith(CACHES)}


@pytest.fixture(params=SETTINGS)
def name(request: pytest.FixtureRequest) -> str:
    if installed(request.param) is None:
        pytest.skip(f"{request.param} is not installed: `make test-agents` does it")
    return str(request.param)


@contextmanager
def _model(shop: Workshop, name: str, scenario: Scenario) -> Iterator[ModelServer]:
    """Let the program talk to a model that follows a script, and to nobody else."""
    with ModelServer(replace(scenario, aside=Reply(text="A title"))) as server:
        shop.program.env |= {
            "LOOPWRIGHT_AGENT": name,
            f"LOOPWRIGHT_AGENTS__{name.upper()}__BINARY": str(installed(name)),
            "NO_PROXY": "127.0.0.1",
            **SETTINGS[name](shop.program.user, server.url),
        }
        yield server


@pytest.mark.capability("C025", "C034")
def test_the_real_program_does_a_plan_from_its_prompt_to_a_verified_branch(name: str, shop: Workshop) -> None:
    write = scenarios.write_file("made.txt", text="made\n", summary="I made it.", program=name)
    with _model(shop, name, write) as server:
        before = _files(shop.program.user)
        plan_file = shop.plan("making", [task("make", "grep -qx made made.txt")])
        said = shop("run", str(plan_file), timeout=LONG)
        asked = server.asked
    assert said.code == 0, said.out + said.err
    plan = shop.row(Plan)
    assert (plan.status, plan.outcome) == ("VERIFIED", "verified")
    assert shop.git("show", f"{plan.branch}:made.txt") == "made\n"
    shop.untouched()
    (run,) = shop.rows(Run, role=Role.IMPLEMENTER)
    assert run.state == "COMPLETE"
    assert run.summary.strip() == "I made it."
    assert run.agent_version
    assert run.session_ref
    assert any("Task: make" in one.prompt for one in asked)
    assert not any("Make make" in word for word in run.argv), "the prompt is in no process list"
    stored = [path.read_text(errors="replace") for path in shop.home.rglob("output/*") if path.is_file()]
    assert '"stopReason":"end_turn"' in "".join(stored), "what it said is kept"
    assert "no-real-key" not in "".join(stored)
    assert _files(shop.program.user) == before, "what it wrote into its folders was its own copy"


def test_a_wrong_key_is_the_users_to_mend_and_uses_up_no_attempt(name: str, shop: Workshop) -> None:
    with _model(shop, name, scenarios.bad_key()):
        plan_file = shop.plan("locked out", [task("make", "test -d .")])
        said = shop("run", str(plan_file), "--no-wait", timeout=LONG)
    assert said.code == 3, said.out + said.err
    assert f"{name} is closed" in said.out
    (attempt,) = shop.attempts("make")
    assert (attempt.state, attempt.failure) == ("WAITING", None)
    assert shop.row(Envelope).failure == "auth"
    assert shop.task("make").attempts == 0


SOON: Mapping[str, Rejection | Trouble] = {
    # OpenCode's own subscription. The others are not told when the limit ends: the pause is ours, and a person ends it.
    "opencode": Rejection(
        status=429,
        kind="GoUsageLimitError",
        message="5-hour usage limit reached. Resets in 8sec",
        headers={"retry-after": "8"},
    ),
}


@pytest.mark.capability("C089")
def test_a_used_up_account_is_waited_for_and_the_work_goes_on(name: str, shop: Workshop) -> None:
    write = scenarios.write_file("made.txt", text="made\n", program=name)
    limit = SOON.get(name, Trouble(kind="usage_limit"))
    scenario = Scenario(turns=(limit,), by_prompt={"You were interrupted": write.turns})
    with _model(shop, name, scenario):
        going = shop.start("run", str(shop.plan("used up", [task("make", "grep -qx made made.txt")])))
        eventually(lambda: shop.rows(Envelope, state="CLOSED"), timeout=LONG)
        # Gemini CLI says that it is the limit of one model: then the account itself stays open.
        closed = shop.row(Envelope, state="CLOSED")
        assert closed.failure == "usage_limit"
        if name not in SOON:
            assert shop("stats", "quota", "open", closed.id).code == 0
        assert going.end(LONG) == 0, going.out
    assert shop.row(Plan).status == "VERIFIED"
    first, second = shop.rows(Run, role=Role.IMPLEMENTER)
    assert (first.failure, second.state) == ("usage_limit", "COMPLETE")
    assert (first.retry_at is not None) is (name in SOON)
    if first.retry_at is not None:
        assert second.started_at is not None
        assert second.started_at >= first.retry_at
    (attempt,) = shop.attempts("make")
    assert (attempt.n, shop.task("make").call_failures) == (1, 0), "that counts for nothing"


@pytest.mark.capability("C086")
def test_a_service_that_asks_to_slow_down_is_asked_again_after_a_pause(name: str, shop: Workshop) -> None:
    write = scenarios.write_file("made.txt", text="made\n", program=name)
    limit = Trouble(kind="rate_limit")
    with _model(shop, name, Scenario(turns=(limit,), by_prompt={"You were interrupted": write.turns})):
        plan_file = shop.plan("too fast", [task("make", "grep -qx made made.txt")])
        said = shop("run", str(plan_file), timeout=LONG)
    assert said.code == 0, said.out + said.err
    first, second = shop.rows(Run, role=Role.IMPLEMENTER)
    assert (first.failure, second.state) == ("rate_limit", "COMPLETE")
    assert len(shop.attempts("make")) == 1
    assert shop.rows(Envelope, state="CLOSED") == []
