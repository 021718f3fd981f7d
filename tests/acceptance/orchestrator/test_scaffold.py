"""`scaffold orchestrator`: a folder that is valid at once, and that is run as it is."""

import json

import pytest
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.orchestrator.bundle import ROLES, play, state, statuses

from loopwright.core.orchestrator.manifest import ADVANCED, SERIAL


def test_a_scaffold_is_a_valid_folder_for_a_goal(shop: Workshop) -> None:
    flags = ("--milestone", "Say hello", "--milestone", "Say goodbye", "--check", "grep -q hello greet.txt")
    asked = shop("scaffold", "orchestrator", "Greet everybody", *flags)
    assert asked.code == 2
    assert "no terminal to ask them on" in asked.err
    made = shop(
        "scaffold", "orchestrator", "Greet everybody", *flags, "--out-of-scope", "a server", "--yes", "--json"
    )
    assert made.code == 0, made.out + made.err
    for path in (*SERIAL, *ADVANCED, "orchestrator/project-contract.md", "orchestrator/state-schema.md"):
        assert path in made.document["files"]
    assert state(shop)["base_branch"] == made.document["base_branch"] == "trunk"
    assert statuses(shop) == ["pending", "pending"]
    assert "orchestrator/worktrees/" in (shop.repository / ".gitignore").read_text().splitlines()
    checked = shop("plan", "check", "orchestrator")
    assert "Say goodbye" in checked.out
    assert "grep -q hello greet.txt" in checked.out
    again = shop("scaffold", "orchestrator", "Another goal", "--yes")
    assert again.code == 2
    assert "orchestrator/ is not finished: milestone-1, milestone-2" in again.err


def test_a_scaffold_is_written_after_its_questions_and_only_if_you_agree(shop: Workshop) -> None:
    def asked(answers: str) -> str:
        return shop.on_terminal("scaffold", "orchestrator", "Greet", typing=("Which milestones", answers))

    lines = "Say hello\nSay goodbye\n\na server\n\ngrep -q hello greet.txt\n\n"
    assert "nothing was written" in asked(f"{lines}n\n")
    assert not (shop.repository / "orchestrator").exists()
    said = asked(f"{lines}y\n")
    for words in ("milestones: Say hello; Say goodbye", "out of scope: a server", "run its rounds:"):
        assert words in said
    assert statuses(shop) == ["pending", "pending"]
    (roadmap,) = (shop.repository / "orchestrator").glob("roadmaps/*/rev-001/roadmap.md")
    assert "Not in scope: a server" in roadmap.read_text()
    assert "grep -q hello greet.txt" in (roadmap.parent / "verification.md").read_text()


def test_a_folder_that_is_not_committed_begins_no_round(shop: Workshop) -> None:
    assert shop("scaffold", "orchestrator", "Greet", "--check", "grep -q hello greet.txt", "--yes").code == 0
    said = shop("run", "orchestrator", timeout=60)
    assert said.code == 3, said.out + said.err
    assert "not committed on trunk" in state(shop)["resume_errors"]["controller"]
    assert (state(shop)["active_rounds"], shop.started()) == ([], [])


@pytest.mark.more
def test_a_scaffold_runs_as_it_is_and_gets_another_roadmap_when_it_is_done(shop: Workshop) -> None:
    shop("scaffold", "orchestrator", "Greet", "--check", "grep -q hello greet.txt", "--yes")
    for path, text in {"tools/roles.py": ROLES.read_text(), "tools/scenario.json": "{}"}.items():
        (shop.repository / path).parent.mkdir(exist_ok=True)
        (shop.repository / path).write_text(text)
    shop.git("add", "-A")
    shop.git("commit", "-qm", "the work")
    play(shop)
    said = shop("run", "orchestrator", timeout=200)
    assert said.code == 0, said.out + said.err
    before = state(shop)
    (shop.repository / "orchestrator/state.json").write_text(json.dumps(before | {"theirs": 1}, indent=2))
    assert shop("scaffold", "orchestrator", "Part", "--yes").code == 0
    after = state(shop)
    assert (after["theirs"], after["controller_stage"]) == (1, "dispatch-rounds")
    assert after["roadmap_id"] != before["roadmap_id"]


def test_a_scaffold_needs_a_branch(shop: Workshop) -> None:
    shop.git("checkout", "-q", "--detach")
    said = shop("scaffold", "orchestrator", "Greet", "--yes")
    assert said.code == 2
    assert "no branch is checked out" in said.err
