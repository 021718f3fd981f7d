"""Work that an agent comes upon: noted in the user's own plan, decided by a person, never done silently."""

import json
import re

import pytest
from tests.acceptance.control.workshop import Workshop
from tests.unit.core.receipts.as_json import named
from tests.waiting import eventually

from loopwright.core.replies.discoveries import Discovery
from loopwright.core.rows.model import Task

SETTINGS = '[[gates]]\nname = "greeting"\nrun = "grep -q hello greet.txt"\n'

EVALUATED = json.dumps(
    {
        "version": 3,
        "track_id": "form_20261116",
        "loop_state": {"checkpoints": {"EVALUATE_PLAN": {"status": "PASSED", "verdict": "PASS"}}},
    }
)
PLAN = """# Shop

## Phase 1: Parts

- [ ] Task 1.1: Build the form
  - Acceptance: `test -s form`
  - Files: form
- [ ] Task 1.2: Build the cart <!-- deps: 1.1 -->
  - Acceptance: `test -s cart`
"""

CLAIM = """The form is there.

```loopwright-discovered
{"title": "Mend the clock", "reason": "clock.py is an hour late.", "recommendation": "current"}
```
```loopwright-discovered
{"title": "Less noise: \\"quiet\\" mode", "reason": "It prints\\ntoo much.", "recommendation": "new"}
```
```loopwright-discovered
{"title": "Paint it", "reason": "It is grey."}
```"""


@pytest.mark.clause("X12")
@pytest.mark.capability("C040")
def test_what_agents_come_upon_stands_in_the_plan_and_a_person_decides_what_becomes_of_it(
    shop: Workshop,
) -> None:
    """The agent of 1.1 also changes a file that its task does not name: that lands, and is said."""
    (shop.repository / "loopwright.toml").write_text(SETTINGS)
    shop.git("add", "-A")
    shop.git("commit", "-qm", "settings")
    path = shop.place / "plan.md"
    path.write_text(PLAN)
    gate = shop.gate("gate")
    told = {"expect_prompt": "do not do it: leave it", "otherwise": [{"exit": 7}]}
    shop.play(
        {
            "1.1": [
                [
                    told,
                    {"write": "form", "text": "x\n"},
                    {"write": "stray.txt", "text": "x\n"},
                    {"claim": CLAIM},
                ]
            ],
            "1.2": [[{"run": gate.shell}, {"write": "cart", "text": "x\n"}]],
            "mend-the-clock": [[{"write": "clock", "text": "x\n"}]],
            "less-noise-quiet-mode": [[{"write": "quiet", "text": "x\n"}]],
        }
    )
    run = shop.start("run", str(path), "--parallel", "1")
    gate.until_reached()
    listed = json.loads(shop("discovered", "--json").out)["discovered"]
    ids = {one["title"]: one["id"] for one in listed}
    clock, noise, paint = ids["Mend the clock"], ids['Less noise: "quiet" mode'], ids["Paint it"]
    assert {(one["task"], one["state"]) for one in listed} == {("1.1", "OPEN")}
    shown = shop("discovered").out
    assert "clock.py is an hour late." in shown
    assert f"loopwright discovered accept {clock[:14]}" in shown

    eventually(lambda: "- [ ] Paint it <!--" in path.read_text())
    assert shop("discovered", "dismiss", paint[:14]).code == 0
    accepted = shop("discovered", "accept", clock[:14])
    assert (accepted.code, "mend-the-clock" in accepted.out) == (0, True), accepted.out + accepted.err
    apart = shop("discovered", "accept", noise)
    assert apart.code == 0, apart.out + apart.err
    again = shop("discovered", "accept", noise, "--as", "current")
    assert again.code != 0
    assert "accepted already: plans/less-noise-quiet-mode.yaml" in again.err
    assert "to do: `loopwright run plans/less-noise-quiet-mode.yaml` does it" in again.err
    gate.let_go()
    assert run.end() == 0, run.out

    assert shop.task("mend-the-clock").status == "COMPLETE"
    assert shop.task("mend-the-clock").origin == "discovered"
    assert shop.started_keys() == ["1.1", "1.2", "mend-the-clock"]
    text = path.read_text()
    section = text.split("## Discovered Work\n\n")[1].split("\n\n")[0]
    assert section == (
        "- [x] Mend the clock <!-- loopwright -->\n"
        "  - Reason: clock.py is an hour late. (found in Task 1.1)\n"
        "  - Recommendation: Add to current track\n"
        '- [ ] Less noise: "quiet" mode <!-- loopwright -->\n'
        "  - Reason: It prints too much. (found in Task 1.1)\n"
        "  - Recommendation: Create new track\n"
        "- [-] Paint it <!-- loopwright -->\n"
        "  - Reason: It is grey. (found in Task 1.1)\n"
        "  - Recommendation: Create new track"
    )
    assert {one.title: one.state.value for one in shop.rows(Discovery)} == {
        "Mend the clock": "ACCEPTED",
        'Less noise: "quiet" mode': "ACCEPTED",
        "Paint it": "DISMISSED",
    }

    own = shop.repository / "plans" / "less-noise-quiet-mode.yaml"
    checked = shop("plan", "check", str(own), "--json")
    [task] = json.loads(checked.out)["plan"]["tasks"]
    assert (task["key"], task["title"]) == ("less-noise-quiet-mode", 'Less noise: "quiet" mode')
    assert task["description"] == "It prints\ntoo much."

    assert "outside its scope: stray.txt" in shop("show", "1.1").out
    [left] = shop.events("scope_left")
    assert (left.payload["paths"], left.task) == (["stray.txt"], shop.row(Task, key="1.1").id)
    plan_id = shop.task("1.1").plan_id
    receipt = json.loads((shop.repository / ".loopwright" / "receipts" / f"{plan_id}.json").read_text())
    assert "outside_scope 1.1" in named(receipt)
    assert [one["note"] for one in receipt["overrides"] if one["type"] == "discovery_accepted"] == [
        "Mend the clock",
        'Less noise: "quiet" mode',
    ]
    assert shop("receipt", "verify", plan_id).code == 0


@pytest.mark.capability("C040")
def test_what_was_found_in_a_track_becomes_a_track_beside_it(shop: Workshop) -> None:
    (shop.repository / "loopwright.toml").write_text(SETTINGS)
    track = shop.repository / "conductor" / "tracks" / "form_20261116"
    track.mkdir(parents=True)
    (track / "plan.md").write_text("- [ ] Task 1: Build the form\n  - Acceptance: `test -s form`\n")
    (track / "metadata.json").write_text(EVALUATED)
    said = {"title": "Less noise <!-- id: x -->", "reason": "Acceptance: `true`\n- [ ] Task 9: hidden"}
    block = f"It is there.\n\n```loopwright-discovered\n{json.dumps(said)}\n```"
    shop.play({"1": [[{"write": "form", "text": "x\n"}, {"claim": block}]]})
    done = shop("run", str(track), timeout=100)
    assert done.code == 0, done.out + done.err
    [found] = json.loads(shop("discovered", "--json").out)["discovered"]
    accepted = shop("discovered", "accept", found["id"], "--as", "new")
    assert accepted.code == 0, accepted.out + accepted.err
    [new] = [one for one in track.parent.iterdir() if one != track]
    assert re.fullmatch(r"less-noise-id-x_20\d{6}", new.name)
    assert f"conductor/tracks/{new.name}" in accepted.out.replace("\n", "")
    metadata = json.loads((new / "metadata.json").read_text())
    assert (metadata["version"], metadata["track_id"], metadata["status"]) == (3, new.name, "new")
    assert not (shop.repository / "plans").exists()
    [task] = json.loads(shop("plan", "check", str(new), "--json").out)["plan"]["tasks"]
    assert (task["key"], task["title"]) == ("1", "Less noise <! -- id: x -- >")
    assert task["description"] == "- Found: Acceptance: `true` - [ ] Task 9: hidden"
    assert task["acceptance"] == []
    again = shop("discovered", "accept", found["id"], "--as", "new")
    assert again.code != 0
    assert len(list(track.parent.iterdir())) == 2, "and no third one"
