"""The real program with its runs in real containers of an image."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acceptance.contained.real_agents import CLAUDE, discovering, model
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task
from tests.containers import IMAGE, SIGN

from loopwright.core.replies.discoveries import Discovery
from loopwright.core.rows.model import Loop, Plan, Role, Run
from loopwright.core.values.failures import Failure
from loopwright.core.values.states import AttemptState, LoopState

pytestmark = pytest.mark.containers


@pytest.fixture
def shop(tmp_path: Path, podman: dict[str, str]) -> Iterator[Workshop]:
    """A project whose agents and gates run in containers; nothing of it is left running afterwards."""
    shop = Workshop(tmp_path)
    shop.program.env |= {**podman, "LOOPWRIGHT_SANDBOX__LEVEL": "auto", "LOOPWRIGHT_SANDBOX__IMAGE": IMAGE}
    yield shop
    shop.clean_up()


def test_a_plan_is_carried_out_in_containers_and_doctor_rows_and_receipt_say_so(shop: Workshop) -> None:
    outside = shop.place / "precious"
    outside.mkdir()
    (shop.program.user / "diary").write_text("dear diary")
    (found,) = (one for one in shop("doctor", "--json").document["findings"] if one["name"] == "sandbox")
    assert found["status"] == "ok"
    assert found["text"].startswith("container (podman version ")
    assert f", image {IMAGE} " in found["text"]
    assert not shop.home.exists(), "looking makes nothing"
    look = f"test -e {SIGN} && echo in > {{0}}; ls ~ {outside} {shop.program.user} >> {{0}} 2>&1;"
    shop.play({"one": [[{"run": look.format("agent") + f" echo x > {outside}/agent; true"}]]})
    check = look.format("gate") + " grep -q in gate && grep -q in agent && ! grep -rq diary . && git log"
    setup = f"test -e {SIGN} && echo in > setup"
    said = shop.run(shop.plan("look", [task("one", check)], settings={"setup": setup}))
    assert said.code == 0, said.out + said.err
    assert list(outside.iterdir()) == []
    assert shop.git("show", f"{shop.row(Plan).branch}:agent").startswith("in\n")
    assert {run.role: run.sandbox for run in shop.rows(Run)} == dict.fromkeys(
        (Role.SETUP, Role.IMPLEMENTER, Role.GATE, Role.VERIFY), "container"
    )
    (agent,) = shop.rows(Run, role=Role.IMPLEMENTER)
    assert agent.permission_mode == "sandboxed-all"
    receipt = shop("receipt", "show", shop.newest_plan()).out
    kept = shop("receipt", "show", shop.newest_plan(), "--json").document
    made = kept["runs"][0]["sandbox_made_with"]
    assert all(run["sandbox_made_with"] == made for run in kept["runs"])
    inspected = ["podman", "image", "inspect", "--format", "{{.Id}}", IMAGE]
    known = subprocess.run(inspected, capture_output=True, text=True, check=True).stdout.strip()
    assert (made["image"], made["image_id"]) == (IMAGE, known)
    assert made["program"].startswith("podman version ")
    assert f"{IMAGE} {known}" in found["text"]
    assert f"container: {made['program']}, image {IMAGE} {known} (4 runs)" in " ".join(receipt.split())
    assert shop("receipt", "verify").code == 0
    assert "no sandbox" not in receipt
    ours = ["podman", "ps", "--all", "--format", "{{.Labels}}"]
    left = subprocess.run(ours, capture_output=True, text=True, check=True).stdout
    assert [run.id for run in shop.rows(Run) if run.id in left] == []
    assert list((shop.home / "containers").iterdir()) == []


@pytest.mark.skipif(CLAUDE is None, reason="the claude-agent-sdk wheel is not installed")
def test_what_an_agent_in_a_container_notes_by_its_tool_is_kept(shop: Workshop) -> None:
    with model(shop, "claude", discovering("Mend the clock", "It stands still.")):
        said = shop.run(shop.plan("noting", [task("make", "grep -qx made made.txt")]))
    assert said.code == 0, said.out + said.err
    assert shop.row(Run, role=Role.IMPLEMENTER).sandbox == "container"
    found = shop.row(Discovery)
    assert (found.title, found.reason) == ("Mend the clock", "It stands still.")


def test_a_refusal_is_of_the_environment_names_path_and_setting_and_burns_no_attempt(shop: Workshop) -> None:
    shop.program.env["LOOPWRIGHT_SANDBOX__LEVEL"] = "container"
    data = shop.place / "data"
    data.mkdir()
    shop.program.env["LOOPWRIGHT_SANDBOX__READ"] = str(data)
    shop.play({"one": [[{"write": "one", "text": "1\n"}]]})
    said = shop.run(shop.plan("gate", [task("one", f"test -s one && touch {data}/made")]))
    assert said.code != 0
    told = f"the sandbox kept it from writing {data}/made: to allow it, add the folder to sandbox.write"
    assert told in " ".join((said.out + said.err).split())
    (gate,) = shop.rows(Run, role=Role.GATE)
    assert (gate.failure, gate.summary, gate.sandbox) == (Failure.ENVIRONMENT, told, "container")
    (attempt,) = shop.attempts("one")
    assert attempt.state is AttemptState.CHECKING, "the work is kept, and waits"
    assert (shop.task("one").attempts, shop.row(Loop).state) == (0, LoopState.PAUSED)
    shop.program.env["LOOPWRIGHT_SANDBOX__WRITE"] = str(data)
    again = shop("resume", timeout=100)
    assert again.code == 0, again.out + again.err
    assert len(shop.rows(Run, role=Role.IMPLEMENTER)) == 1, "nobody paid for the same work again"
    assert (data / "made").exists()


def test_an_image_that_is_not_there_is_told_before_anything_is_started(shop: Workshop) -> None:
    shop.program.env |= {"LOOPWRIGHT_SANDBOX__IMAGE": "nobody/made:this"}
    (passed_over,) = (
        one for one in shop("doctor", "--json").document["findings"] if one["name"] == "container"
    )
    assert passed_over["status"] == "warn"
    assert "podman pull nobody/made:this" in passed_over["fix"]
    shop.program.env |= {"LOOPWRIGHT_SANDBOX__LEVEL": "container"}
    shop.play({"one": [[{"write": "one", "text": "1\n"}]]})
    said = shop.run(shop.plan("none", [task("one", "test -d .")]))
    assert said.code == 2
    assert "sandbox.level is container, but that does not hold here" in said.err
    assert "podman pull nobody/made:this" in " ".join(said.err.split())
    assert shop.rows(Run) == []
