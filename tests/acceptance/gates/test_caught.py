"""What the checks of an agent's work caught is on its record."""

import pytest
from tests.acceptance.gates.calculator import BROKEN, PYTEST, RIGHT, Calculator, write

PASSES_ALL = """import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    found = yield
    found.get_result().outcome = "passed"
"""


@pytest.mark.more
@pytest.mark.capability("C094")
def test_a_manipulated_test_run_is_on_the_record_of_the_agent(calculator: Calculator) -> None:
    cheats = [
        write("calc.py", BROKEN),
        write("calc_test_helper.py", PASSES_ALL),
        write("conftest.py", PASSES_ALL),
    ]
    said = calculator.carry_out(cheats, [write("calc.py", RIGHT)], gate=PYTEST)
    assert said.code == 0, said.out + said.err
    (record,) = calculator("stats", "agents", "--json").document["agents"]
    assert (record["tasks"], record["first_pass"], record["attempts"]) == (1, 0, 2)
    assert record["caught_by_witness"] + record["caught_by_old_checks"] == 1
    shown = calculator("stats", "agents").out.splitlines()
    assert shown[0].split() == [
        "agent",
        "task",
        "type",
        "tasks",
        "at",
        "once",
        "attempts",
        "refused",
        "caught",
        "runs",
        "cost",
    ]
    assert shown[1].split()[:7] == ["scripted", "all", "1", "0", "0%", "2", "0"]
