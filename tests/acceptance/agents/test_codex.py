"""The real Codex program, driven by `loopwright run` against a model server on this machine."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task

from loopwright.core.model import Plan, Role, Run
from loopwright.testing import scenarios
from loopwright.testing.codex_binary import bundled_codex
from loopwright.testing.model_server import ModelServer, Scenario, Trouble

PROGRAM = bundled_codex()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="the openai-codex wheel is not installed")

KEY = "sk-no-real-key-0123456789"


@contextmanager
def _model(shop: Workshop, scenario: Scenario) -> Iterator[ModelServer]:
    """Let the program talk to a model that follows a script, and to nobody else."""
    with ModelServer(scenario) as server:
        provider = (
            f'model_providers.local={{name="local",base_url="{server.url}/v1",env_key="OPENAI_API_KEY",'
            'wire_api="responses",request_max_retries=0,stream_max_retries=0}'
        )
        shop.program.env |= {
            "LOOPWRIGHT_AGENT": "codex",
            "LOOPWRIGHT_MODEL": "gpt-5.5",
            "LOOPWRIGHT_AGENTS__CODEX__BINARY": str(PROGRAM),
            "LOOPWRIGHT_AGENTS__CODEX__CONFIG": json.dumps(["model_provider=local", provider]),
            "OPENAI_API_KEY": KEY,
            "NO_PROXY": "127.0.0.1",
        }
        yield server


@pytest.mark.capability("C025", "C034")
def test_the_real_program_does_a_plan_from_its_prompt_to_a_verified_branch(shop: Workshop) -> None:
    scenario = scenarios.write_file("made.txt", text="made\n", summary="Made.", program="codex")
    with _model(shop, scenario) as server:
        said = shop.run(shop.plan("making", [task("make", "grep -qx made made.txt")]))
        asked = server.asked
    assert said.code == 0, said.out + said.err
    plan = shop.row(Plan)
    assert (plan.status, plan.outcome) == ("VERIFIED", "verified")
    assert shop.git("show", f"{plan.branch}:made.txt") == "made\n"
    shop.untouched()

    (run,) = shop.rows(Run, role=Role.IMPLEMENTER)
    assert (run.state, run.summary) == ("COMPLETE", "Made.")
    assert run.usage is not None
    assert run.usage.output_tokens == 50, "two turns of the model"
    assert run.cost_micros is None, "it tells none"
    assert run.agent_version
    assert "Task: make" in asked[0].prompt
    assert not any("Task: make" in word for word in run.argv), "the prompt is in no process list"

    user = shop.program.user
    assert list((user / ".codex" / "sessions").rglob(f"*{run.session_ref}.jsonl")), "a later leg finds it"
    assert sorted(path.name for path in user.iterdir()) == [".codex"]
    assert not (user / ".codex" / "config.toml").exists(), "the workspace is not noted as trusted"
    stored = "".join(
        path.read_text(errors="replace") for path in shop.home.rglob("output/*") if path.is_file()
    )
    assert '"turn/completed"' in stored
    assert KEY not in stored
    shown = shop("logs", run.id)
    assert "apply_patch" in shown.out
    assert "Made." in shown.out


def test_a_wrong_key_is_the_users_to_mend_and_uses_up_no_attempt(shop: Workshop) -> None:
    with _model(shop, Scenario(turns=(Trouble(kind="auth"),))):
        said = shop.run(shop.plan("locked out", [task("make", "true")]))
    assert said.code == 1, said.out + said.err
    (attempt,) = shop.attempts("make")
    assert (attempt.state, attempt.failure) == ("BROKEN", "auth")
    assert shop.task("make").attempts == 0
