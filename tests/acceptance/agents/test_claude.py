"""The real Claude Code program, driven by `loopwright run` against a model server on this machine."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.acceptance.agents.programs import CLAUDE
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task
from tests.waiting import eventually

from loopwright.core.rows.model import Plan, Role, Run, Usage
from loopwright.core.rows.waiting_rows import Envelope
from loopwright.testing import scenarios
from loopwright.testing.model_server import Rejection, Reply, Scenario, Trouble
from loopwright.testing.model_server.anthropic import window_headers

pytestmark = pytest.mark.skipif(CLAUDE.binary is None, reason="the claude-agent-sdk wheel is not installed")


def _wrapper(shop: Workshop) -> Path:
    """Put a program in front that notes the environment that the agent really gets."""
    noted = shop.place / "environment.txt"
    wrapper = shop.place / "claude"
    wrapper.write_text(f'#!/bin/sh\nenv > {noted}\nexec {CLAUDE.binary} "$@"\n')
    wrapper.chmod(0o755)
    shop.program.env["LOOPWRIGHT_AGENTS__CLAUDE__BINARY"] = str(wrapper)
    return noted


@pytest.mark.capability("C025", "C034")
@pytest.mark.trap("everything mocked", "inherited marker")
def test_the_real_program_does_a_plan_from_its_prompt_to_a_verified_branch(shop: Workshop) -> None:
    scenario = scenarios.edit_file("greet.txt", old="hello", new="hello, loop", summary="Greeted.")
    with CLAUDE.model(shop, scenario) as server:
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
    (said,) = (path for path in (user / ".claude").rglob("*") if path.is_file())
    assert said.name == f"{run.session_ref}.jsonl", "what was said, and nothing else"
    # It keeps a log of the tools that it is given in the cache.
    assert sorted(path.name for path in user.iterdir()) == [".cache", ".claude"]
    assert "CLAUDECODE=" not in environment
    assert "CLAUDE_CODE_ENTRYPOINT=cli" not in environment
    stored = "".join(
        path.read_text(errors="replace") for path in shop.home.rglob("output/*") if path.is_file()
    )
    assert stored, "what it printed is kept"
    assert CLAUDE.key not in stored
    assert '"tool_use"' in stored
    receipt = shop("receipt", "verify", f".loopwright/receipts/{plan.id}.json")
    assert receipt.code == 0, receipt.out + receipt.err


@pytest.mark.agents
def test_a_gate_that_the_real_program_does_not_pass_sends_it_back_with_what_failed(shop: Workshop) -> None:
    """The model gets it right only once the prompt says what went wrong."""
    wrong = scenarios.edit_file("greet.txt", old="hello", new="hello wrold").turns
    right = scenarios.edit_file("greet.txt", old="hello", new="hello world").turns
    scenario = Scenario(turns=wrong, by_prompt={"the greeting is misspelt": right})
    check = "grep -q world greet.txt || { printf 'the greeting is %s' misspelt; exit 1; }"
    with CLAUDE.model(shop, scenario):
        said = shop.run(shop.plan("spelling", [task("greet", check)]))
    assert said.code == 0, said.out + said.err
    assert [attempt.state for attempt in shop.attempts("greet")] == ["REJECTED", "LANDED"]
    assert shop.git("show", f"{shop.row(Plan).branch}:greet.txt") == "hello world\n"


def test_a_program_that_is_not_there_is_said_before_anything_starts(shop: Workshop) -> None:
    with CLAUDE.model(shop, scenarios.answer()):
        shop.program.env["LOOPWRIGHT_AGENTS__CLAUDE__BINARY"] = "/nowhere/claude"
        said = shop.run(shop.plan("missing", [task("greet", "test -d .")]))
    assert said.code == 2
    assert "/nowhere/claude" in said.err
    assert "loopwright doctor" in said.err
    assert shop.rows(Run) == []


@pytest.mark.capability("C075")
@pytest.mark.agents
def test_the_real_program_keeps_to_a_budget_itself_and_a_higher_one_finishes_its_work(shop: Workshop) -> None:
    """It becomes dear after its work is in a file, but before it says so."""
    read, edit, last = scenarios.edit_file("greet.txt", old="hello", new="hello, loop").turns
    assert isinstance(read, Reply)
    dear = replace(read, usage=Usage(input_tokens=100_000, output_tokens=50_000))
    done = scenarios.answer("Greeted.").turns
    scenario = Scenario(turns=(read, edit, dear, last), by_prompt={"You were interrupted": done})
    check = "grep -qx 'hello, loop' greet.txt"
    with CLAUDE.model(shop, scenario) as server:
        said = shop.run(shop.plan("dear", [task("greet", check)], settings={"max_cost": 0.05}))
        assert said.code == 3, said.out + said.err
        assert "the budget is used up" in said.out
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


@pytest.mark.capability("C089")
@pytest.mark.agents
def test_many_tasks_of_the_real_program_wait_for_the_same_reset(shop: Workshop) -> None:
    keys = ("one", "two", "three", "four")
    limited = (Trouble(kind="usage_limit", resets_in_s=3),)
    # Whoever was told to wait goes on, and whoever was made to wait before it began, begins.
    done = {f"Task: {key}": scenarios.write_file(f"{key}.txt", text="made\n").turns for key in keys[1:]}
    again = {"You were interrupted": scenarios.write_file("one.txt", text="made\n").turns}
    shop.program.env["LOOPWRIGHT_PARALLEL"] = "1"
    with CLAUDE.model(shop, Scenario(turns=limited, by_prompt={**done, **again}), subscribed=True):
        said = shop.run(shop.plan("limited", [task(key, f"test -s {key}.txt") for key in keys]))
    assert said.code == 0, said.out + said.err
    runs = shop.rows(Run, role=Role.IMPLEMENTER)
    (first,) = (run for run in runs if run.failure is not None)
    assert first.failure == "usage_limit"
    assert len(runs) == len(keys) + 1, "one run each, and none in vain"
    began = [run.started_at for run in runs if run.started_at]
    assert first.started_at is not None
    assert first.retry_at is not None
    assert not [at for at in began if first.started_at < at < first.retry_at]
    assert [event.type for event in shop.events("envelope_closed", "envelope_opened")] == [
        "envelope_closed",
        "envelope_opened",
    ]
    envelope = shop.row(Envelope)
    assert (envelope.state, envelope.runs) == ("OPEN", len(keys) + 1)
    assert any(window.rejected for window in envelope.windows), "what the service said of its windows"
    assert "refused" not in shop("stats", "quota").out, "an account that is open refuses nobody"


@pytest.mark.capability("C089")
@pytest.mark.agents
def test_a_key_that_is_used_up_for_long_closes_its_account_and_no_task_fails_of_it(shop: Workshop) -> None:
    """As documented for offline trials: to a key, the program tells neither the window nor when it ends."""
    with CLAUDE.model(shop, scenarios.window_used_up(resets_at=1_900_000_000)) as server:
        del shop.program.env["LOOPWRIGHT_AGENTS__CLAUDE__MAX_RETRIES"]
        plan = shop.plan("limited", [task("one", "test -s one.txt"), task("two", "test -s two.txt")])
        said = shop.run(plan, "--no-wait", "-j", "1")
        assert len(server.asked) == 1, "whoever is told to come back later does not ask again"
    assert said.code == 3, said.out + said.err
    runs = shop.rows(Run, role=Role.IMPLEMENTER)
    assert [run.failure for run in runs if run.failure] == ["usage_limit"]
    assert "PAUSED" in said.out
    assert "closed" in shop("stats", "quota").out


@pytest.mark.capability("C089")
@pytest.mark.agents
def test_a_key_whose_own_limit_is_reached_waits_until_the_service_gives_access_again(shop: Workshop) -> None:
    said_so = (
        "You have reached your specified API usage limits. You will regain access on 2030-01-01 at 00:00 UTC."
    )
    refused = Rejection(status=400, kind="invalid_request_error", message=said_so)
    with CLAUDE.model(shop, Scenario(turns=(refused,))):
        said = shop.run(shop.plan("limited", [task("one", "test -s one.txt")]), "--no-wait")
    assert said.code == 3, said.out + said.err
    assert shop.row(Run, role=Role.IMPLEMENTER).failure == "usage_limit"
    assert "2030-01-01 00:00" in shop("stats", "quota").out


def test_how_much_is_used_of_a_window_is_known_while_the_agent_works(shop: Workshop) -> None:
    warned = window_headers("five_hour", 1_900_000_000, status="allowed_warning", used=0.93)
    first, last = scenarios.write_file("one.txt", text="made\n").turns
    assert isinstance(first, Reply)
    assert isinstance(last, Reply)
    turns = (replace(first, headers=warned), replace(last, headers=warned, delay_s=60.0))
    with CLAUDE.model(shop, Scenario(turns=turns), subscribed=True):
        going = shop.start("run", str(shop.plan("slow", [task("one", "test -s one.txt")])))
        eventually(lambda: "five_hour  (subscription)  93% used" in shop("stats", "quota").out, timeout=60)
        (run,) = shop.rows(Run, role=Role.IMPLEMENTER)
        assert run.state == "RUNNING"
        going.kill()


@pytest.mark.capability("C007")
def test_doctor_lets_the_real_program_make_one_turn(shop: Workshop) -> None:
    with CLAUDE.model(shop, scenarios.answer("ready")) as server:
        said = shop(
            "doctor", "--agent", "claude", "--probe", "--model", "claude-haiku-4-5", "--json", timeout=60
        )
        assert [one.model for one in server.asked] == ["claude-haiku-4-5"]
    found = said.document["findings"][-1]
    assert (found["name"], found["status"]) == ("probe of claude", "ok")
    assert "it answered 'ready'" in found["text"]
    assert found["text"].endswith("; its quota: api_key (each call is paid for)")
    assert list((shop.home / "probes").iterdir()) == [], "nothing is left of it"
    with CLAUDE.model(shop, scenarios.bad_key()):
        refused = shop("doctor", "--agent", "claude", "--probe", timeout=60)
    assert refused.code == 6
    assert "auth" in refused.out
    assert "to do: log in once by running `claude`, or set ANTHROPIC_API_KEY" in refused.out
