"""The real Claude Code program, driven by `loopwright run` against a model server on this machine."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task
from tests.waiting import eventually

from loopwright.core.model import Envelope, Plan, Question, Role, Run, Usage
from loopwright.testing import scenarios
from loopwright.testing.claude_binary import bundled_claude
from loopwright.testing.model_server import ModelServer, Reply, Scenario

PROGRAM = bundled_claude()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="the claude-agent-sdk wheel is not installed")

KEY = "sk-ant-no-real-key-0123456789"


@contextmanager
def _model(shop: Workshop, scenario: Scenario) -> Iterator[ModelServer]:
    """Let the program talk to a model that follows a script, and to nobody else."""
    with ModelServer(scenario) as server:
        shop.program.env |= {
            "LOOPWRIGHT_AGENT": "claude",
            "LOOPWRIGHT_AGENTS__CLAUDE__BINARY": str(PROGRAM),
            "LOOPWRIGHT_AGENTS__CLAUDE__MAX_RETRIES": "0",
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": KEY,
            "NO_PROXY": "127.0.0.1",
            # As if an agent had started us: its markers must not reach the agents that we start.
            "CLAUDECODE": "1",
            "CLAUDE_CODE_ENTRYPOINT": "cli",
        }
        yield server


def _wrapper(shop: Workshop) -> Path:
    """Put a program in front that notes the environment that the agent really gets."""
    noted = shop.place / "environment.txt"
    wrapper = shop.place / "claude"
    wrapper.write_text(f'#!/bin/sh\nenv > {noted}\nexec {PROGRAM} "$@"\n')
    wrapper.chmod(0o755)
    shop.program.env["LOOPWRIGHT_AGENTS__CLAUDE__BINARY"] = str(wrapper)
    return noted


@pytest.mark.capability("C025", "C034")
def test_the_real_program_does_a_plan_from_its_prompt_to_a_verified_branch(shop: Workshop) -> None:
    scenario = scenarios.edit_file("greet.txt", old="hello", new="hello, loop", summary="Greeted.")
    with _model(shop, scenario) as server:
        noted = _wrapper(shop)
        said = shop.run(shop.plan("greeting", [task("greet", "grep -qx 'hello, loop' greet.txt")]))
        asked = server.asked
    assert said.code == 0, said.out + said.err
    plan = shop.row(Plan)
    assert (plan.status, plan.outcome) == ("VERIFIED", "verified")
    assert shop.git("show", f"{plan.branch}:greet.txt") == "hello, loop\n"
    shop.untouched()

    (run,) = shop.rows(Run, role=Role.IMPLEMENTER)
    assert run.state == "COMPLETE"
    assert run.summary == "Greeted."
    assert run.cost_micros is not None
    assert run.cost_micros > 0
    assert plan.spent_micros == run.cost_micros
    assert run.usage is not None
    assert run.usage.output_tokens == 75, "three turns of the model"
    assert run.agent_version
    assert run.session_ref

    assert "Task: greet" in asked[0].prompt
    assert "grep -qx 'hello, loop' greet.txt" in asked[0].prompt, "it is told what will be checked"
    assert not any("Make greet" in word for word in run.argv), "the prompt is in no process list"
    assert run.permission_mode == "edit"
    assert run.argv[run.argv.index("--permission-mode") + 1] == "default", "never bypass by default"
    assert not any("dangerously" in word for word in run.argv)

    environment = noted.read_text()
    assert f"HOME={shop.home / 'users'}/" in environment
    user = shop.program.user
    assert list((user / ".claude" / "projects").rglob(f"{run.session_ref}.jsonl")), "a later leg finds it"
    assert json.loads((user / ".claude.json").read_text()), "what it writes down of itself outlives the run"
    # It keeps a log of the tools that it is given in the cache.
    assert sorted(path.name for path in user.iterdir()) == [".cache", ".claude", ".claude.json"]
    assert "CLAUDECODE=" not in environment
    assert "CLAUDE_CODE_ENTRYPOINT=cli" not in environment
    stored = "".join(
        path.read_text(errors="replace") for path in shop.home.rglob("output/*") if path.is_file()
    )
    assert stored, "what it printed is kept"
    assert KEY not in stored
    assert '"tool_use"' in stored
    receipt = shop("receipt", "verify", f".loopwright/receipts/{plan.id}.json")
    assert receipt.code == 0, receipt.out + receipt.err


def test_a_gate_that_the_real_program_does_not_pass_sends_it_back_with_what_failed(shop: Workshop) -> None:
    """The model gets it right only once the prompt says what went wrong."""
    wrong = scenarios.edit_file("greet.txt", old="hello", new="hello wrold").turns
    right = scenarios.edit_file("greet.txt", old="hello", new="hello world").turns
    scenario = Scenario(turns=wrong, by_prompt={"the greeting is misspelt": right})
    check = "grep -q world greet.txt || { printf 'the greeting is %s' misspelt; exit 1; }"
    with _model(shop, scenario):
        said = shop.run(shop.plan("spelling", [task("greet", check)]))
    assert said.code == 0, said.out + said.err
    assert [attempt.state for attempt in shop.attempts("greet")] == ["REJECTED", "LANDED"]
    assert shop.git("show", f"{shop.row(Plan).branch}:greet.txt") == "hello world\n"


def test_a_wrong_key_is_the_users_to_mend_and_fails_no_task(shop: Workshop) -> None:
    with _model(shop, scenarios.bad_key()) as server:
        said = shop.run(shop.plan("locked out", [task("greet", "true")]), "--no-wait")
        assert len(server.asked) >= 1
    assert said.code == 3, said.out + said.err
    assert "The agent is not logged in; log in. Then `loopwright quota open claude`" in said.out
    (attempt,) = shop.attempts("greet")
    assert (attempt.state, attempt.failure) == ("WAITING", None)
    assert shop.row(Envelope).failure == "auth"
    assert shop.task("greet").attempts == 0


def test_a_program_that_is_not_there_is_said_before_anything_starts(shop: Workshop) -> None:
    with _model(shop, scenarios.answer()):
        shop.program.env["LOOPWRIGHT_AGENTS__CLAUDE__BINARY"] = "/nowhere/claude"
        said = shop.run(shop.plan("missing", [task("greet", "true")]))
    assert said.code == 2
    assert "/nowhere/claude" in said.err
    assert "loopwright doctor" in said.err
    assert shop.rows(Run) == []


@pytest.mark.capability("C090", "C108")
def test_the_real_program_asks_for_leave_and_goes_on_with_the_answer(shop: Workshop) -> None:
    scenario = scenarios.run_command("touch made.txt && echo made > made.txt", summary="Made.")
    with _model(shop, scenario):
        going = shop.start("run", str(shop.plan("making", [task("make", "grep -qx made made.txt")])))
        eventually(lambda: shop.rows(Question), timeout=60)
        question = shop.row(Question)
        assert "touch made.txt" in question.text
        eventually(lambda: shop.task("make").status == "AWAITING_RESPONSE")
        assert shop("answer", question.id, "yes").code == 0
        assert going.end(60) == 0, going.out
    first, second = shop.rows(Run, role=Role.IMPLEMENTER)
    assert first.session_ref == second.session_ref, "its own conversation goes on"
    assert second.permissions is not None
    assert second.permissions.granted == (question.key,)
    assert shop.row(Plan).status == "VERIFIED"


def test_the_real_program_waits_for_the_reset_and_then_finishes(shop: Workshop) -> None:
    resets_at = int(time.time()) + 3
    done = scenarios.edit_file("greet.txt", old="hello", new="hello, loop").turns
    limited = scenarios.window_used_up(resets_at=resets_at).turns
    scenario = Scenario(turns=limited, by_prompt={"You were interrupted": done})
    with _model(shop, scenario):
        shop.program.env |= {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat-no-real-token"}
        del shop.program.env["ANTHROPIC_API_KEY"]
        said = shop.run(shop.plan("limited", [task("greet", "grep -qx 'hello, loop' greet.txt")]))
    assert said.code == 0, said.out + said.err
    (waited,) = shop.events("attempt_waiting")
    assert waited.payload["failure"] == "usage_limit"
    first, second = shop.rows(Run, role=Role.IMPLEMENTER)
    assert first.retry_at is not None
    assert second.started_at is not None
    assert second.started_at.timestamp() >= resets_at, "not a moment before the service said so"
    assert (shop.task("greet").attempts, len(shop.attempts("greet"))) == (0, 1), "waiting is no attempt"


@pytest.mark.capability("C075")
def test_the_real_program_is_stopped_at_a_budget_and_a_higher_one_finishes_its_work(shop: Workshop) -> None:
    """It becomes dear after its work is in a file, but before it says so."""
    read, edit, last = scenarios.edit_file("greet.txt", old="hello", new="hello, loop").turns
    assert isinstance(read, Reply)
    dear = replace(read, usage=Usage(input_tokens=100_000, output_tokens=50_000))
    done = scenarios.answer("Greeted.").turns
    scenario = Scenario(turns=(read, edit, dear, last), by_prompt={"You were interrupted": done})
    check = "grep -qx 'hello, loop' greet.txt"
    with _model(shop, scenario) as server:
        said = shop.run(shop.plan("dear", [task("greet", check)], settings={"max_cost": 0.05}))
        assert said.code == 3, said.out + said.err
        assert "the budget is used up" in said.out
        assert "`resume --max-cost` sets another" in " ".join(said.out.split())
        (run,) = shop.rows(Run, role=Role.IMPLEMENTER)
        assert (run.state, run.failure) == ("ERROR", "budget")
        assert run.max_cost_micros == 50_000
        assert run.cost_micros is not None
        assert run.cost_micros > 50_000
        assert run.argv[run.argv.index("--max-budget-usd") + 1] == "0.050000"
        assert len(server.asked) == 3, "the model was not asked again once the money was gone"
        (attempt,) = shop.attempts("greet")
        assert attempt.state == "WAITING"
        assert shop.pinned(attempt, "greet.txt") == "hello, loop\n", "its work is kept"
        said = shop("resume", "--max-cost", "20", timeout=60)
    assert said.code == 0, said.out + said.err
    assert shop.row(Plan).outcome == "verified"
    first, second = shop.rows(Run, role=Role.IMPLEMENTER)
    assert first.session_ref == second.session_ref, "its own conversation goes on"
    assert len(shop.attempts("greet")) == 1


@pytest.mark.capability("C104")
def test_many_tasks_of_the_real_program_wait_for_the_same_reset(shop: Workshop) -> None:
    resets_at = int(time.time()) + 3
    keys = ("one", "two", "three", "four")
    limited = scenarios.window_used_up(resets_at=resets_at).turns
    # Whoever was told to wait goes on, and whoever was made to wait before it began, begins.
    done = {f"Task: {key}": scenarios.write_file(f"{key}.txt", text="made\n").turns for key in keys[1:]}
    again = {"You were interrupted": scenarios.write_file("one.txt", text="made\n").turns}
    shop.program.env["LOOPWRIGHT_PARALLEL"] = "1"
    with _model(shop, Scenario(turns=limited, by_prompt={**done, **again})):
        shop.program.env |= {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat-no-real-token"}
        del shop.program.env["ANTHROPIC_API_KEY"]
        said = shop.run(shop.plan("limited", [task(key, f"test -s {key}.txt") for key in keys]))
    assert said.code == 0, said.out + said.err
    runs = shop.rows(Run, role=Role.IMPLEMENTER)
    (first,) = (run for run in runs if run.failure is not None)
    assert first.failure == "usage_limit"
    assert len(runs) == len(keys) + 1, "one run each, and none in vain"
    began = [run.started_at.timestamp() for run in runs if run.started_at]
    assert first.started_at is not None
    assert not [at for at in began if first.started_at.timestamp() < at < resets_at]
    assert [event.type for event in shop.events("envelope_closed", "envelope_opened")] == [
        "envelope_closed",
        "envelope_opened",
    ]
    envelope = shop.row(Envelope)
    assert (envelope.state, envelope.runs) == ("OPEN", len(keys) + 1)
    assert any(window.rejected for window in envelope.windows), "what the service said of its windows"


@pytest.mark.capability("C027")
def test_the_real_program_outlives_its_orchestrator_and_its_work_is_taken_up(shop: Workshop) -> None:
    slow = scenarios.edit_file("greet.txt", old="hello", new="hello, loop").turns
    first = replace(slow[0], delay_s=3.0)
    with _model(shop, Scenario(turns=(first, *slow[1:]))):
        going = shop.start(
            "run", str(shop.plan("killed", [task("greet", "grep -qx 'hello, loop' greet.txt")]))
        )
        eventually(lambda: shop.rows(Run, state="RUNNING", role=Role.IMPLEMENTER), timeout=60)
        going.kill()
        said = shop("resume", timeout=60)
    assert said.code == 0, said.out + said.err
    (run,) = shop.rows(Run, role=Role.IMPLEMENTER)
    assert run.state == "COMPLETE", "the very run that was going on"


@pytest.mark.capability("C007")
def test_doctor_lets_the_real_program_make_one_turn(shop: Workshop) -> None:
    with _model(shop, scenarios.answer("ready")) as server:
        said = shop("doctor", "--agent", "claude", "--probe", "--json", timeout=60)
        assert len(server.asked) == 1
    found = said.document["findings"][-1]
    assert (found["name"], found["status"]) == ("probe of claude", "ok")
    assert "it answered 'ready'" in found["text"]
    assert list((shop.home / "probes").iterdir()) == [], "nothing is left of it"
    with _model(shop, scenarios.bad_key()):
        refused = shop("doctor", "--agent", "claude", "--probe", timeout=60)
    assert refused.code == 6
    assert "auth" in refused.out
    assert "log in" in refused.out
