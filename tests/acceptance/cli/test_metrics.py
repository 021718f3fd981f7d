"""`metrics`: how well plans went, from what is recorded."""

import json

import pytest
from tests.acceptance.sandbox import COST, Sandbox, task


@pytest.mark.capability("C033")
@pytest.mark.capability("C107")
def test_attempts_retries_cost_and_tasks_that_needed_many_are_told(sandbox: Sandbox) -> None:
    wrong, right = [{"write": "two", "text": "no\n"}, COST], [{"write": "two", "text": "yes\n"}, COST]
    sandbox.play({"one": [[{"write": "one", "text": "yes\n"}, COST]], "two": [wrong, wrong, right]})
    plan = sandbox.plan("sums", [task("one", "grep -q yes one"), task("two", "grep -q yes two")])
    assert sandbox("stats").code == 2, "there is no home yet, and it says so"
    assert sandbox.run(plan).code == 0
    none = sandbox("stats", "--last", "0")
    assert (none.code, "--last needs a number from 1 on, not 0" in none.err) == (2, True)
    found = json.loads(sandbox("stats", "--json").out)
    figures = found["together"]
    assert (figures["tasks"], figures["completed"], figures["failed"]) == (2, 2, 0)
    assert (figures["attempts"], figures["retries"], figures["first_pass"]) == (4, 2, 1)
    assert (figures["begun"], figures["broken_off"]) == (4, 0)
    assert figures["first_pass_rate"] == 0.5
    assert (figures["cost_micros"], figures["unknown_costs"], figures["agent_runs"]) == (36000, 0, 4)
    assert [(one["key"], one["attempts"]) for one in figures["flaky"]] == [("two", 3)]
    (one,) = found["plans"]
    assert one["wall_seconds"] > 0
    assert one["figures"] == figures
    (line,) = sandbox("stats", one["plan_id"], "--jsonl").out.splitlines()
    assert json.loads(line) == one
    (loop,) = json.loads(sandbox("stats", "--per", "loop", "--json").out)["loops"]
    assert (loop["loop_id"], loop["plans"], loop["verified"]) == (one["loop_id"], 1, 1)
    assert (loop["figures"], loop["wall_seconds"]) == (figures, one["wall_seconds"])
    runs = [json.loads(line) for line in sandbox("stats", "--per", "run", "--jsonl").out.splitlines()]
    agents = [run for run in runs if run["agent"]]
    assert sorted((run["task"], run["attempt"]) for run in agents) == [
        ("one", 1),
        ("two", 1),
        ("two", 2),
        ("two", 3),
    ]
    assert sum(run["cost_micros"] for run in agents) == figures["cost_micros"]
    assert sum(run["wall_seconds"] for run in agents) == pytest.approx(figures["agent_seconds"])
    assert agents[0]["usage"]["output_tokens"] == 300
    assert {run["role"] for run in runs if not run["agent"]} == {"gate", "verify"}
    assert len(runs) == figures["agent_runs"] + figures["gate_runs"]
    assert "two   3        implementer" in sandbox("stats", "--per", "run").out
    said = sandbox("stats").out
    assert "VERIFIED " in said
    assert "; $0.04" in said
    assert "1 plan: 2 tasks of 2 done, 4 attempts with 2 retries, 50% of what ended landed" in said
    assert "more than two attempts: two (3)" in said
    _reported_once(sandbox)


def _reported_once(sandbox: Sandbox) -> None:
    """A report tells what happened since the one before; one since a time tells it again."""
    first = json.loads(sandbox("report", "--json").out)
    assert [(one["title"], one["passed"], one["total"]) for one in first["verified"]] == [("sums", 2, 2)]
    assert (first["spent"]["cost_micros"], first["failed"], first["next"]) == (36000, [], [])
    second = json.loads(sandbox("report", "--format", "json").out)
    assert (second["verified"], second["spent"]["runs"]) == ([], 0)
    again = sandbox("report", "--since", "2020-01-01")
    assert again.code == 0
    assert "sums (2 of 2 tasks passed)" in again.out
    page = sandbox.place / "night.html"
    assert sandbox("report", "--since", "2020-01-01", "--format", "html", "--out", str(page)).code == 0
    assert "<li>" in page.read_text()
    assert "http" not in page.read_text().replace("http-equiv", "")
    page.unlink()
    assert sandbox("report", "--since", "soon").code == 2
