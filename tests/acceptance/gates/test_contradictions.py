"""Work that contradicts an existing check is a decision: a named permission, a reviewer or a person makes it.

Work that no existing check contradicts lands as verified, whatever it did to the tests.
"""

from typing import Any

import pytest
from tests.acceptance.cli.program import git
from tests.acceptance.gates.calculator import PYTEST, RIGHT, Calculator, write
from tests.acceptance.sandbox import task
from tests.unit.core.receipts.as_json import named

from loopwright.core.rows.model import Plan, Role, Run
from loopwright.core.rows.waiting_rows import Question

GATES = [{"name": "tests", "run": PYTEST}]
REASON = "The task asks for whole euros."
KEPT = "A person wants these checks kept as they are"
PRICE = "def price():\n    return {}\n\n\ndef name():\n    return 'tea'\n"
PRICE_TEST = """from {key} import name, price


def test_price():
    assert price() == {price}


def test_name():
    assert name() == 'tea'
"""


def commit(calculator: Calculator, files: dict[str, str]) -> None:
    for name, text in files.items():
        file = calculator.repository / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    git(calculator.repository, "add", "-A")
    git(calculator.repository, "commit", "-q", "-m", "the project")


def priced(*keys: str) -> dict[str, str]:
    """Return one module with a test for each key."""
    return {
        name: text
        for key in keys
        for name, text in (
            (f"{key}.py", PRICE.format(3)),
            (f"tests/test_{key}.py", PRICE_TEST.format(key=key, price=3)),
        )
    }


def changes_price(key: str) -> list[dict[str, Any]]:
    """Return the steps of an agent that changes what its module does, and the test with it."""
    return [
        dict(write(f"{key}.py", PRICE.format(4))),
        dict(write(f"tests/test_{key}.py", PRICE_TEST.format(key=key, price=4))),
        {"claim": REASON},
    ]


def costs_four(key: str, **more: Any) -> dict[str, Any]:
    return task(key, f"python -B -c 'from {key} import price; assert price() == 4'", **more)


def landed_as(calculator: Calculator) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return each task's outcome and facts about judging files, from the receipt."""
    return {
        one["key"]: (one["outcome"], one["attempts"][-1]["gate_files"] or {})
        for one in calculator.receipt()["tasks"]
    }


@pytest.mark.timeout(300)
def test_contradictions_wait_as_questions_and_named_permissions_need_none(calculator: Calculator) -> None:
    keys = ("by_id", "by_nobody", "scoped", "refused")
    commit(calculator, priced(*keys))
    keeps = [
        dict(write("refused.py", PRICE.format(3) + "\n\ndef whole():\n    return 4\n")),
        {"claim": "kept"},
    ]
    told = {"expect_prompt": KEPT, "otherwise": changes_price("refused")}
    calculator.play(
        {key: [changes_price(key)] for key in keys[:3]}
        | {"refused": [changes_price("refused"), [told, *keeps]]}
    )
    works = "python -B -c 'import refused; assert 4 in (refused.price(), getattr(refused, \"whole\", int)())'"
    tasks = [
        costs_four("by_id", may_change=["tests/test_by_id.py::test_price"]),
        costs_four("by_nobody"),
        costs_four("scoped", scope=["scoped.py", "tests/test_scoped.py"]),
        task("refused", works, max_attempts=2),
    ]
    said = calculator.run(calculator.plan("prices", tasks, gates=GATES))
    assert said.code == 3, said.out + said.err
    assert calculator.landed() == ["by_id"]
    asked = {one.task_id: one for one in calculator.rows(Question)}
    waiting = {key: asked[calculator.task(key).id] for key in ("by_nobody", "scoped", "refused")}
    assert len(asked) == 3, "one question each, and a scope permits nothing"
    text = waiting["by_nobody"].text
    for words in (
        "tests/test_by_nobody.py::test_price",
        REASON,
        "-    assert price() == 3",
        "+    assert price() == 4",
    ):
        assert words in text, text
    assert waiting["by_nobody"].options == ("accept", "reject")
    (attempt,) = calculator.attempts("by_nobody")
    turns = calculator.rows(Run, role=Role.IMPLEMENTER, attempt_id=attempt.id)
    assert len(turns) == 2, "the agent had one more turn in the same attempt"
    prompt = (calculator.home / "runs" / turns[1].id / "prompt.md").read_text()
    assert "Your work contradicts or removes existing checks" in prompt
    assert "test_by_nobody.py::test_price" in prompt
    assert "test_name" not in prompt

    for key, answer in (("by_nobody", "accept"), ("scoped", "accept"), ("refused", "reject")):
        answered = calculator("answer", waiting[key].id, answer, timeout=100)
        assert answered.code == 0, answered.out + answered.err
    said = calculator("resume", timeout=200)
    assert said.code == 0, said.out + said.err
    first, second = calculator.attempts("refused")
    assert (first.failure, second.state) == ("contradiction", "LANDED")
    assert first.detail == "a person wants these checks kept: tests/test_refused.py::test_price"
    found = landed_as(calculator)
    assert {outcome for outcome, _ in found.values()} == {"verified"}
    assert found["by_id"][1]["contradicted"] == ["tests/test_by_id.py::test_price"]
    assert found["by_id"][1]["allowed_by"] == ["the task's may_change: tests/test_by_id.py::test_price"]
    for key in ("by_nobody", "scoped"):
        assert found[key][1]["contradicted"] == [f"tests/test_{key}.py::test_price"]
        (by,) = found[key][1]["allowed_by"]
        assert by.endswith(f"(question {waiting[key].id})")
        assert found[key][1]["reason"] == REASON
    assert found["refused"][1]["contradicted"] == []
    assert calculator.receipt()["outcome"] == "verified"


def test_the_setting_test_changes_allows_every_contradiction_and_the_receipt_says_so(
    calculator: Calculator,
) -> None:
    commit(calculator, priced("tea"))
    calculator.play({"tea": [changes_price("tea")]})
    plan = calculator.plan("tea", [costs_four("tea")], gates=GATES, settings={"test_changes": "allow"})
    said = calculator.run(plan)
    assert said.code == 0, said.out + said.err
    outcome, facts = landed_as(calculator)["tea"]
    assert (outcome, facts["contradicted"]) == ("verified", ["tests/test_tea.py::test_price"])
    assert facts["allowed_by"] == ['the setting test_changes = "allow"']
    assert calculator.rows(Question) == []


HIDES = """import calc
import pytest


@pytest.fixture(autouse=True)
def adds(monkeypatch):
    monkeypatch.setattr("test_calc.add", lambda a, b: a + b, raising=False)
"""


def hidden(calculator: Calculator, *more: dict[str, Any], **breaks: Any) -> str:
    """Return a plan of two tasks: one hides a check, and the next one breaks what it demands."""
    broken = RIGHT.replace("return a + b", "return 0")
    calculator.play({"hides": [[write("tests/conftest.py", HIDES)]], "breaks": [[write("calc.py", broken)]]})
    works = "python -B -c 'from calc import mul; assert mul(2, 3) == 6'"
    tasks = [
        task("hides", "test -e tests/conftest.py"),
        task("breaks", works, depends_on=["hides"], **breaks),
        *more,
    ]
    return calculator.plan("two", tasks, gates=GATES, settings={"fix_cycles": 0})


ADDS = "tests/test_calc.py::test_add"


@pytest.mark.timeout(300)
def test_what_one_task_hides_for_the_next_is_found_when_the_plan_is_verified_and_a_person_decides(
    calculator: Calculator,
) -> None:
    said = calculator.run(hidden(calculator))
    assert said.code == 3, said.out + said.err
    assert calculator.landed() == ["hides", "breaks"], "each of them alone contradicts nothing"
    assert calculator.row(Plan).outcome == "needs_human"
    (asked,) = calculator.rows(Question)
    assert (asked.kind, asked.task_id, asked.options) == ("contradiction", "", ("accept", "reject"))
    for words in ("contradicts checks of the plan's base commit", f"- {ADDS}", "changed by: hides"):
        assert words in asked.text
        assert words in said.out
    assert said.out.count("Old check (-)") == 1, "the whole question is printed once"
    paid = len(calculator.rows(Run, role=Role.IMPLEMENTER))

    def decide(question: str, answer: str, code: int) -> None:
        answered = calculator("answer", question, answer, timeout=100)
        assert answered.code == 0, answered.out + answered.err
        assert "the verification of the plan continues" in answered.out
        said = calculator("resume", timeout=200)
        assert said.code == code, said.out + said.err

    decide(asked.id, "reject: keep it", 1)
    receipt = calculator.receipt()
    assert (receipt["outcome"], receipt["plan"]["contradicted"]) == ("not_verified", [ADDS])
    assert receipt["plan"]["allowed_by"] == [""]
    assert "wants these checks kept: reject: keep it" in calculator.row(Plan).reason
    more = calculator.run(hidden(calculator, task("more", "test -d .")))
    assert more.code == 2, more.out + more.err
    assert "which FAILED its verification (the result contradicts checks" in " ".join(more.err.split())
    hidden(calculator)
    again = calculator("reverify", timeout=200)
    assert again.code == 3, "another verification asks again"
    answered, asked = calculator.rows(Question)
    assert (answered.state, asked.state) == ("ANSWERED", "OPEN")

    decide(asked.id, "accept", 0)
    assert len(calculator.rows(Run, role=Role.IMPLEMENTER)) == paid, "no task runs again"
    receipt = calculator.receipt()
    assert (receipt["outcome"], receipt["plan"]["contradicted"]) == ("verified", [ADDS])
    (by,) = receipt["plan"]["allowed_by"]
    assert by.endswith(f"(question {asked.id})")


@pytest.mark.more
def test_what_the_tasks_contradict_together_with_permission_is_in_the_receipt(calculator: Calculator) -> None:
    said = calculator.run(hidden(calculator, may_change=["tests/test_calc.py"]))
    assert said.code == 0, said.out + said.err
    receipt = calculator.receipt()
    assert (receipt["plan"]["contradicted"], receipt["plan"]["allowed_by"]) == (
        [ADDS],
        ["the task's may_change: tests/test_calc.py"],
    )
    assert "plan_contradicts_check" in named(receipt)
