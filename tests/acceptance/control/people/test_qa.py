"""Looks at the whole: what they find is mended before they are taken again, and nobody passes them by chance."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.control.workshop import Workshop, kill
from tests.unit.core.receipts.as_json import named

from loopwright.core.rows.model import Plan

SETTINGS = '[[gates]]\nname = "greeting"\nrun = "grep -q hello greet.txt"\n'


def listed(shop: Workshop, *, tracked: bool, **more: Any) -> Path:
    features = [
        {"id": "shop", "name": "A shop", "description": "Sells things.", "tests": ["`test -s shop`"]},
        {"id": "qa-1", "name": "Buy something", "description": "Use it.", "category": "qa", **more},
    ]
    path = shop.repository / "feature_list.json"
    path.write_text(json.dumps({"features": features}, indent=2) + "\n")
    (shop.repository / "loopwright.toml").write_text(SETTINGS)
    with (shop.repository / ".gitignore").open("a") as ignored:
        ignored.write("" if tracked else "feature_list.json\n")
    shop.git("add", "-A")
    shop.git("commit", "-qm", "the work")
    return path


def issue(what: str, severity: str = "high") -> dict[str, str]:
    return {
        "what": what,
        "where": "till",
        "steps": "buy",
        "expected": "a",
        "actual": "b",
        "severity": severity,
    }


@pytest.mark.capability("C032")
def test_what_a_look_finds_is_mended_and_looked_at_again_through_a_kill(shop: Workshop) -> None:
    path = listed(shop, tracked=True)
    gate = shop.gate("gate")
    shop.play(
        {
            "shop": [[{"write": "shop", "text": "x\n"}]],
            "qa-1": [
                [{"write": "mess", "text": "x\n"}, {"qa": [issue("No change"), issue("Ugly", "low")]}],
                [
                    {"expect_prompt": "An earlier QA review found", "otherwise": [{"exit": 3}]},
                    {"qa": []},
                ],
            ],
            "fix-qa-1-001": [[{"run": gate.shell}, {"write": "change", "text": "x\n"}]],
            "fix-qa-1-002": [[{"write": "paint", "text": "x\n"}]],
        }
    )
    run = shop.start("run", str(path), "--qa-mode", "lite", "--parallel", "1")
    gate.until_reached()
    kill(run)
    gate.let_go()
    said = shop("run", str(path), timeout=100)
    assert said.code == 4, said.out + said.err
    plan = shop.row(Plan)
    assert (plan.status, plan.outcome) == ("VERIFIED", "verified_with_gaps"), "no test shows the fixes"
    assert [key for key, _ in shop.started()][:2] == ["shop", "qa-1"]
    worst, other = shop.task("fix-qa-1-001"), shop.task("fix-qa-1-002")
    assert (worst.priority, worst.position) < (other.priority, other.position), "the worst is mended first"
    first, second = shop.attempts("qa-1")
    assert first.qa is not None
    assert second.qa is not None
    assert [one.fix for one in first.qa.issues] == ["fix-qa-1-001", "fix-qa-1-002"]
    assert (second.qa.mode, second.qa.issues) == ("lite", ())
    assert "mess" not in shop.git("ls-tree", "--name-only", plan.branch), "what it changed is thrown away"
    look = shop.task("qa-1")
    assert (look.outcome, look.landed_sha, look.attempts) == ("no_change_proven", None, 0)

    shop.git("merge", "-q", "--ff-only", plan.branch)
    features = {one["id"]: one for one in json.loads(path.read_text())["features"]}
    assert all(one["passes"] for one in features.values())
    assert features["qa-1"]["dependencies"] == ["fix-qa-1-001", "fix-qa-1-002"]
    fix = features["fix-qa-1-002"]
    assert (fix["qa_origin"], fix["severity"], fix["priority"]) == ("qa-1", "low", 60)
    assert fix["name"] == "Fix: Ugly (till)"

    shown = shop("show", "qa-1").out
    assert "found 2 issues" in shown
    assert "found nothing: that is what its agent says" in shown
    receipt = json.loads(next((shop.repository / ".loopwright" / "receipts").glob("*.json")).read_text())
    assert [(one["mode"], one["issues"]) for one in receipt["looks"]] == [("lite", 2), ("lite", 0)]
    assert "qa_not_checked qa-1" in named(receipt)
    assert shop("receipt", "verify", plan.id).code == 0
    again = shop("run", str(path), timeout=100)
    assert (again.code, len(shop.rows(Plan))) == (4, 1), "the fixes are nothing new to do"


@pytest.mark.capability("C032")
def test_a_look_is_never_passed_by_a_green_gate_and_a_person_ends_it(shop: Workshop) -> None:
    path = listed(shop, tracked=False, dependencies=["shop"])
    shop.play(
        {
            "shop": [[{"write": "shop", "text": "x\n"}]],
            "qa-1": [[{"claim": "all is well"}], [{"qa": [issue("Still wrong")]}]],
            "fix-qa-1-001": [[{"write": "change", "text": "x\n"}]],
        }
    )
    shop.program.env["LOOPWRIGHT_FIX_CYCLES"] = "1"
    said = shop("run", str(path), timeout=100)
    assert said.code == 1, said.out + said.err
    states = [(one.state, one.failure) for one in shop.attempts("qa-1")]
    assert states == [("REJECTED", "look"), ("REJECTED", "issues"), ("REJECTED", "issues")]
    assert shop.started_keys() == ["shop", "qa-1", "fix-qa-1-001"], "one round of fixes, no more"
    assert "After 1 round of fixes" in shop.task("qa-1").reason
    told = {one["id"]: one for one in json.loads(path.read_text())["features"]}["qa-1"]
    assert told["blocked"]
    assert not told.get("passes")
    passed = shop("reviewed", "qa-1")
    assert (passed.code, "nothing was checked" in passed.out) == (0, True), passed.out + passed.err
    ended = shop("run", str(path), timeout=100)
    plan = shop.row(Plan)
    assert (plan.status, shop.task("qa-1").outcome) == ("VERIFIED", "unverified"), ended.out + ended.err
    assert {one["id"]: one for one in json.loads(path.read_text())["features"]}["qa-1"]["passes"]
    receipt = shop("receipt", "show", plan.id, "--json").document
    assert receipt["outcome"] == plan.outcome
    assert "passed_by_person qa-1" in named(receipt)
