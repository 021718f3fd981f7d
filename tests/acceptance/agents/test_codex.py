"""The real Codex program, driven by `loopwright run` against a model server on this machine."""

import pytest
from tests.acceptance.agents.programs import CODEX
from tests.acceptance.control.workshop import Workshop, refused
from tests.acceptance.sandbox import task

from loopwright.core.rows.model import Plan, Role, Run
from loopwright.testing import scenarios

pytestmark = pytest.mark.skipif(CODEX.binary is None, reason="the openai-codex wheel is not installed")


@pytest.mark.capability("C025", "C034")
def test_the_real_program_does_a_plan_from_its_prompt_to_a_verified_branch(shop: Workshop) -> None:
    scenario = scenarios.write_file("made.txt", text="made\n", summary="Made.", program="codex")
    with CODEX.model(shop, scenario) as server:
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
    assert run.cost_micros
    assert run.cost_estimated, "it tells its tokens only"
    assert run.agent_version
    assert "Task: make" in asked[0].prompt
    assert not any("Task: make" in word for word in run.argv), "the prompt is in no process list"

    user = shop.program.user
    (said,) = (path for path in (user / ".codex").rglob("*") if path.is_file())
    assert said.name.endswith(f"{run.session_ref}.jsonl"), "what was said, and nothing else"
    assert sorted(path.name for path in user.iterdir()) == [".codex"]
    stored = "".join(
        path.read_text(errors="replace") for path in shop.home.rglob("output/*") if path.is_file()
    )
    assert '"turn/completed"' in stored
    assert CODEX.key not in stored
    shown = shop("logs", run.id)
    assert "apply_patch" in shown.out
    assert "Made." in shown.out


@pytest.mark.capability("C075")
def test_a_cap_is_refused_before_anything_starts_if_nobody_knows_what_the_model_costs(shop: Workshop) -> None:
    with CODEX.model(shop, scenarios.answer()) as server:
        shop.program.env["LOOPWRIGHT_MODEL"] = "gpt-0"
        said = shop.run(shop.plan("capped", [task("make", "test -d .")]), "--max-cost", "5")
        assert not server.asked
    told = (
        "max_cost cannot be kept: codex reports only its tokens, and the price of the model gpt-0 is unknown"
    )
    refused(said, 2, told, 'set prices = ["gpt-0 INPUT OUTPUT CACHE_READ"]')
    assert shop.rows(Plan) == []


@pytest.mark.capability("C007")
def test_doctor_lets_the_real_program_make_one_turn(shop: Workshop) -> None:
    with CODEX.model(shop, scenarios.answer("ready")) as server:
        said = shop("doctor", "--agent", "codex", "--probe", "--json", timeout=60)
        assert len(server.asked) == 1
    found = said.document["findings"][-1]
    assert (found["name"], found["status"]) == ("probe of codex", "ok"), found
    assert "it answered 'ready'" in found["text"]
    assert list((shop.home / "probes").iterdir()) == [], "nothing is left of it"
    with CODEX.model(shop, scenarios.bad_key()):
        refusal = shop("doctor", "--agent", "codex", "--probe", timeout=60)
    assert refusal.code == 6
    assert "to do: log in once by running `codex login`" in refusal.out
