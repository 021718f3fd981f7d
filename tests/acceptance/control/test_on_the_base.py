"""`plan check` runs a plan's gates and acceptance once on its base, and `run` takes over what was found there."""

from pathlib import Path

import pytest
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task

from loopwright.core.rows.model import Role, Run

TESTS = """\
import unittest


class Greeting(unittest.TestCase):
    def test_there(self):
        open("greet.txt").close()

    def test_loud(self):
        self.assertIn("HELLO", open("greet.txt").read())
"""
UNITTEST = {"name": "tests", "run": "python3 -B -m unittest -q test_greet.py"}


def _commit(shop: Workshop, name: str, text: str) -> None:
    (shop.repository / name).write_text(text)
    shop.git("add", name)
    shop.git("commit", "-qm", name)


@pytest.mark.capability("C020")
def test_gates_are_run_on_the_base_and_what_is_green_there_is_not_run_again(shop: Workshop) -> None:
    _commit(shop, "test_greet.py", TESTS)
    shop.play({"made": [[{"write": "made", "text": "made\n"}]]})
    tasks = [task("made", "test -s made"), task("idle", "grep -q . greet.txt", depends_on=["made"])]
    plan = shop.plan("plan", tasks[:1], gates=[UNITTEST])
    both = shop.plan("both", tasks, gates=[UNITTEST])
    red = shop("plan", "check", str(both))
    assert red.code == 0, "a base that is red refuses nothing"
    assert "running on the base (" in red.out
    told = " ".join(red.out.split())
    assert "the gate tests is red on the base, 1 test fails there: test_greet.Greeting.test_loud;" in told
    assert "idle: its acceptance passes on the base already (grep -q . greet.txt)" in told
    assert "made: its acceptance passes" not in told

    _commit(shop, "greet.txt", "HELLO\n")
    green = shop("plan", "check", str(plan), "--json").document["plan"]
    assert (green["base"]["reused"], green["notes"]) == (False, [])
    assert [one["condition"] for one in green["base"]["gates"]] == ["green"]
    again = shop("plan", "check", str(plan), "--json").document["plan"]
    assert again["base"] == {**green["base"], "reused": True}

    assert shop.run(plan).code == 0
    baselines = [run for run in shop.rows(Run) if run.role is Role.BASELINE and run.label]
    (taken,) = [run for run in baselines if run.attempt_id is None]
    assert taken.verdict is not None
    assert [one.tests for one in taken.verdict.commands] == [2]
    asked = [run for run in baselines if run.verdict and run.verdict.commands[0].name == "tests"]
    assert asked == [taken], "the first attempt found its baseline"
    assert (shop.home / "runs" / taken.id / "gate" / "results.json").exists()
    (receipt,) = (shop.repository / ".loopwright" / "receipts").glob("*.json")
    assert "AGREES" in shop("receipt", "verify", str(receipt)).out
    assert shop("plan", "check", str(plan), "--no-run", "--json").document["plan"]["base"] is None


@pytest.mark.capability("C020")
def test_a_gate_that_cannot_run_is_an_error_until_it_can(shop: Workshop, tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    shop.play({"made": [[{"write": "made", "text": "made\n"}]]})
    gates = [
        {"name": "gone", "run": f"sh -c 'exec {tool}'"},
        {"name": "crash", "run": f"test -x {tool} || kill -9 $$"},
        {"name": "late", "run": f"test -x {tool} || sleep 30", "timeout": "1s"},
    ]
    plan = shop.plan("plan", [task("made", "test -s made", scope=["made.txt", "made"])], gates=gates)
    said = shop("plan", "check", str(plan))
    told = " ".join(said.out.split())
    assert said.code == 2
    assert "error: the gate gone cannot run on the base: command not found (exit code 127)" in told
    assert "error: the gate crash cannot run on the base: it was ended by signal 9" in told
    assert "error: the gate late cannot run on the base: it did not end within its limit of 1 s" in told
    assert "to do: fix that, or say why the plan is to run all the same" in told

    refused = shop.run(plan)
    assert refused.code == 2, "what is known to be broken is tried again before anything is spent"
    assert "the gate gone cannot run on the base" in refused.err
    assert shop.journal() == []
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    assert shop.run(plan).code == 0


@pytest.mark.capability("C020")
def test_a_plan_that_nobody_checked_has_its_gates_run_on_the_base_before_anything_is_spent(
    shop: Workshop,
) -> None:
    """Green or red, the first attempt need not run them there again; what cannot run is refused."""
    shop.program.env["LOOPWRIGHT_CHECK_BASE"] = "true"
    _commit(shop, "test_greet.py", TESTS)
    shop.play({key: [[{"write": key, "text": "made\n"}]] for key in ("red", "green", "blind", "idle")})
    broken = shop.plan(
        "broken", [task("red", "test -s red")], gates=[{"name": "gone", "run": "sh -c 'exec /gone'"}]
    )
    refused = shop.run(broken)
    assert refused.code == 2
    assert "the gate gone cannot run on the base" in refused.err
    assert shop.journal() == [], "nothing was spent"

    said = shop.run(shop.plan("red", [task("red", "test -s red")], gates=[UNITTEST]))
    assert said.code == 4, said.out + said.err
    assert "the gate tests is red on the base, 1 test fails there" in " ".join(said.out.split())
    assert _on_base(shop) == [True]
    (receipt,) = (shop.repository / ".loopwright" / "receipts").glob("*.json")
    assert "AGREES" in shop("receipt", "verify", str(receipt)).out

    _commit(shop, "greet.txt", "HELLO\n")
    tasks = [task("green", "test -s green"), task("idle", "grep -q . greet.txt")]
    said = shop.run(shop.plan("green", tasks, gates=[UNITTEST]))
    assert said.code == 0, "acceptance that passes without the work is a note"
    told, _, rest = said.out.partition("idle: its acceptance passes on the base already")
    assert rest, said.out
    assert "scripted" not in told, "it was told before an agent was called"
    assert _on_base(shop) == [True, True]
    _commit(shop, "other.txt", "other\n")
    blind = shop.plan("blind", [task("blind", "test -s blind")], gates=[UNITTEST])
    assert shop.run(blind, "--no-check-base").code == 0
    assert _on_base(shop) == [True, True, False], "the first attempt had to"


def _on_base(shop: Workshop) -> list[bool]:
    """Return for each run of the gates on a base, in order, whether it was before its plan."""
    runs = [run for run in shop.rows(Run) if run.role is Role.BASELINE and run.verdict]
    return [
        run.attempt_id is None
        for run in sorted(runs, key=lambda one: one.created_at)
        if run.verdict and run.verdict.commands[0].name == "tests"
    ]
