"""A plan with a manual step: Loopwright asks for it, other tasks continue, and your answer settles it."""

import json
from pathlib import Path

from tests.acceptance.sandbox import Sandbox, task


def adds(name: str) -> list[list[dict[str, str]]]:
    return [[{"write": f"{name}.txt", "text": "made\n"}, {"say": "done"}]]


def prepared(place: Path) -> tuple[Sandbox, Path]:
    sandbox = Sandbox(place)
    sandbox.play({name: adds(name) for name in ("build", "docs", "ship")})
    plan = sandbox.plan(
        "release",
        [
            task("build", "test -f build.txt", after="ship"),
            {
                "id": "look",
                "title": "Ask the user to look at the page",
                "description": "Open index.html.",
                "criteria": ["The header is blue"],
                "manual": True,
                "after": "build",
            },
            task("docs", "test -f docs.txt", after="look"),
            task("ship", "test -f ship.txt", depends_on="look"),
        ],
        write_status=True,
    )
    return sandbox, plan


def states(sandbox: Sandbox) -> dict[str, str]:
    document = sandbox("status", "--json").document
    return {one["key"]: one["status"] for one in document["plan"]["tasks"]}


def test_a_manual_step_is_asked_and_only_what_depends_on_it_waits(tmp_path: Path) -> None:
    sandbox, plan = prepared(tmp_path)
    said = sandbox.run(plan)
    assert said.code == 3, said.err
    assert states(sandbox) == {
        "build": "COMPLETE",
        "look": "AWAITING_RESPONSE",
        "docs": "COMPLETE",
        "ship": "QUEUED",
    }
    assert "1 manual step waits for you (look)" in said.out + said.err
    [question] = sandbox("answer", "--json").document["questions"]
    assert (question["kind"], question["tasks"], question["options"]) == (
        "manual",
        ["look"],
        ["done", "skip", "failed"],
    )
    assert question["text"].startswith("Do this by hand: Ask the user to look at the page\nOpen index.html.")
    refused = sandbox("answer", question["id"], "perhaps")
    assert refused.code == 2
    assert "answer done, skip or failed" in refused.err

    assert sandbox("answer", question["id"], "done: it is blue").code == 0
    again = sandbox.run(plan)
    assert again.code == 0, again.out + again.err
    assert set(states(sandbox).values()) == {"COMPLETE"}
    written = {one["id"]: one.get("status") for one in json.loads(plan.read_text())["tasks"]}
    assert written["look"] == "done"
    detail = sandbox("status", "look", "--json").document["task"]
    assert detail["attempts"] == []
    receipt = sandbox("receipt", "show", "--json").document
    [note] = [one for one in receipt["notes"] if one["task"] == "look"]
    assert (note["code"], "it is blue" in note["text"]) == ("settled_by_hand", True)


def test_a_killed_run_asks_a_manual_step_only_once(tmp_path: Path) -> None:
    sandbox, plan = prepared(tmp_path)
    go = tmp_path / "go"
    docs = [[{"wait_for": str(go), "timeout": 240}, *adds("docs")[0]]]
    sandbox.play({"build": adds("build"), "docs": docs, "ship": adds("ship")})
    worker = sandbox.start("run", str(plan))
    worker.until("docs  scripted")
    worker.kill()
    go.touch()
    said = sandbox.run(plan, "--json")
    assert said.code == 3, said.out + said.err
    assert any("the order contradicts the dependencies" in one for one in said.document["notes"])
    [question] = sandbox("answer", "--json").document["questions"]
    assert sandbox("answer", question["id"], "skip").code == 0
    assert sandbox.run(plan).code == 0
    assert states(sandbox)["look"] == "CANCELLED"
    written = {one["id"]: one.get("status") for one in json.loads(plan.read_text())["tasks"]}
    assert written["look"] == "skipped"
