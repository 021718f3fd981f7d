"""The real Codex program, driven by `loopwright run` against a model server on this machine."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task
from tests.waiting import eventually

from loopwright.core.model import Envelope, Plan, Question, Role, Run
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


def test_a_wrong_key_is_the_users_to_mend_and_fails_no_task(shop: Workshop) -> None:
    with _model(shop, Scenario(turns=(Trouble(kind="auth"),))):
        said = shop.run(shop.plan("locked out", [task("make", "true")]), "--no-wait")
    assert said.code == 3, said.out + said.err
    assert "The agent is not logged in; log in. Then `loopwright quota open codex`" in said.out
    (attempt,) = shop.attempts("make")
    assert (attempt.state, attempt.failure) == ("WAITING", None)
    assert shop.row(Envelope).failure == "auth"
    assert shop.task("make").attempts == 0


@pytest.mark.capability("C090", "C108")
def test_the_real_program_asks_for_leave_and_goes_on_with_the_answer(shop: Workshop) -> None:
    scenario = scenarios.run_command("echo made > made.txt", summary="Made.", program="codex")
    with _model(shop, scenario):
        going = shop.start("run", str(shop.plan("making", [task("make", "grep -qx made made.txt")])))
        eventually(lambda: shop.rows(Question), timeout=60)
        question = shop.row(Question)
        assert "echo made > made.txt" in question.text
        eventually(lambda: shop.task("make").status == "AWAITING_RESPONSE")
        assert shop("answer", question.id, "yes").code == 0
        assert going.end(60) == 0, going.out
    first, second = shop.rows(Run, role=Role.IMPLEMENTER)
    assert first.session_ref == second.session_ref, "its own conversation goes on"
    assert shop.row(Plan).status == "VERIFIED"


def test_the_real_program_waits_for_the_reset_and_then_finishes(shop: Workshop) -> None:
    resets_at = int(time.time()) + 3
    done = scenarios.write_file("made.txt", text="made\n", program="codex").turns
    limited = (Trouble(kind="usage_limit", resets_at=resets_at),)
    with _model(shop, Scenario(turns=limited, by_prompt={"You were interrupted": done})):
        said = shop.run(shop.plan("limited", [task("make", "grep -qx made made.txt")]))
    assert said.code == 0, said.out + said.err
    (waited,) = shop.events("attempt_waiting")
    assert waited.payload["failure"] == "usage_limit"
    _, second = shop.rows(Run, role=Role.IMPLEMENTER)
    assert second.started_at is not None
    assert second.started_at.timestamp() >= resets_at, "not a moment before the service said so"
    assert (shop.task("make").attempts, len(shop.attempts("make"))) == (0, 1), "waiting is no attempt"


@pytest.mark.capability("C027")
def test_the_real_program_outlives_its_orchestrator_and_its_work_is_taken_up(shop: Workshop) -> None:
    turns = scenarios.write_file("made.txt", text="made\n", program="codex").turns
    with _model(shop, Scenario(turns=(replace(turns[0], delay_s=3.0), *turns[1:]))):
        going = shop.start("run", str(shop.plan("killed", [task("make", "grep -qx made made.txt")])))
        eventually(lambda: shop.rows(Run, state="RUNNING", role=Role.IMPLEMENTER), timeout=60)
        going.kill()
        said = shop("resume", timeout=60)
    assert said.code == 0, said.out + said.err
    (run,) = shop.rows(Run, role=Role.IMPLEMENTER)
    assert run.state == "COMPLETE", "the very run that was going on"
