"""Real programs of the Agent Client Protocol, driven by `loopwright run` against a model server on this machine.

Run by `make test-agents`.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task
from tests.agent_programs import installed
from tests.integration.agents.test_real_acp import SETTINGS

from loopwright.core.awaited import Envelope
from loopwright.core.model import Plan, Role, Run
from loopwright.testing import scenarios
from loopwright.testing.model_server import ModelServer, Reply, Scenario

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]
LONG = 500.0
"""Far above what they take: some need many seconds to start where the machine is busy."""

KEPT: Mapping[str, Callable[[Path], bool]] = {
    "goose": lambda home: any((home / ".local/share/goose/sessions").iterdir()),
    "gemini": lambda home: (home / ".gemini").is_dir(),
    "opencode": lambda home: any((home / ".local/share/opencode").iterdir()),
}
"""What a later leg finds in the user's own HOME."""


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
    assert KEPT[name](shop.program.user), json.dumps(sorted(map(str, shop.program.user.rglob("*")))[:50])


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
