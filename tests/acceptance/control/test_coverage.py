"""`loopwright plan coverage`: each criterion with its evidence, from the rows of what really ran."""

from typing import Any

import pytest
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task

from loopwright.core.rows.model import Plan, VerdictRecord


def standings(document: Any) -> dict[str, list[str]]:
    return {one["key"]: [each["standing"] for each in one["criteria"]] for one in document["tasks"]}


@pytest.mark.capability("C015", "C016")
def test_every_criterion_is_shown_with_the_checks_that_prove_it_or_with_none(shop: Workshop) -> None:
    words = ["it reads well", "`test -s good` passes"]
    tasks = [task("good", "test -s good", criteria=words), task("bad", "test -s bad", max_attempts=1)]
    path = shop.plan("covered", [*tasks, {"id": "bare", "title": "Make bare", "depends_on": ["good"]}])
    shop.play(
        {key: [[{"write": key, "text": text}]] for key, text in (("good", "x"), ("bad", ""), ("bare", "x"))}
    )
    before = shop("plan", "coverage", str(path), "--json")
    assert before.code == 1
    assert standings(before.document)["good"] == ["no evidence"] * 2
    assert not (shop.home / "loopwright.db").exists(), "looking leaves nothing in the home"

    assert shop.run(path).code == 1
    plan = shop.row(Plan)
    found = shop("plan", "coverage", str(path), "--json").document
    assert standings(found) == {
        "good": ["proven", "no evidence"],
        "bad": ["no evidence"],
        "bare": [],
    }
    proof = found["tasks"][0]["criteria"][0]["evidence"][0]
    assert (proof["by"], proof["passed"]) == ("gate", True)
    assert proof["commit"] == shop.task("good").landed_sha
    assert proof["verdict_id"] in {record.id for record in shop.rows(VerdictRecord)}
    assert found["tasks"][1]["criteria"][0]["reason"] == "nothing of it has landed, the task is ERROR"

    assert shop("reviewed", "good").code == 0
    said = shop("plan", "coverage", plan.id)
    assert said.code == 1
    assert "reviewed  it reads well: reviewed by user:" in said.out
    assert "no criterion: nothing but the gates checks it" in said.out
    assert "3 criteria of 3 tasks: 1 proven, 1 reviewed, 1 no evidence; 1 task has no criterion" in said.out

    path.write_text(path.read_text().replace('"run": "test -s good"', '"run": "test -r good"'))
    changed = shop("plan", "coverage", str(path), "--json").document
    assert standings(changed)["good"][0] == "no evidence", "what is asked for now was never run"
