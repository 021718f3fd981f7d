"""Which commands judge a task, a plan, and a tree as bare as a new clone."""

from typing import Any

from tests.contracts.store import rows

from loopwright.core.gates.gates import plan_commands, task_commands, with_setup
from loopwright.core.rows.model import Plan
from loopwright.core.values.policy import GateCommand, Policy

LINT = GateCommand(name="lint", command="ruff check .")
TESTS = GateCommand(name="tests", command="pytest")
OWN = GateCommand(name="own", command="pytest tests/test_own.py")
TESTS_AGAIN = GateCommand(name="everything", command="pytest", timeout_s=5)


def plan(**changes: Any) -> Plan:
    return rows.plan(rows.loop(rows.project()), **changes)


def test_a_task_is_judged_by_its_own_acceptance_first_and_by_the_projects_gates_too() -> None:
    owner = plan(gates=(LINT, TESTS))
    assert task_commands(owner, rows.task(owner, acceptance=(OWN,))) == (OWN, LINT, TESTS)
    assert task_commands(owner, rows.task(owner)) == (LINT, TESTS)


def test_a_plan_is_judged_by_its_gates_and_then_by_every_acceptance_again() -> None:
    assert plan_commands(plan(gates=(LINT,)), (OWN, TESTS)) == (LINT, OWN, TESTS)


def test_the_same_command_runs_once_in_the_place_and_with_the_limits_it_had_first() -> None:
    owner = plan(gates=(TESTS, LINT))
    assert task_commands(owner, rows.task(owner, acceptance=(TESTS_AGAIN,))) == (TESTS_AGAIN, LINT)
    assert plan_commands(owner, (TESTS_AGAIN, OWN, OWN)) == (TESTS, LINT, OWN)


def test_setup_comes_before_the_first_check_with_its_own_time_limit() -> None:
    owner = plan(policy=Policy(setup="make deps", setup_timeout=42))
    assert with_setup(owner, (LINT,)) == (GateCommand(name="setup", command="make deps", timeout_s=42), LINT)


def test_nothing_is_set_up_when_there_is_nothing_to_check_or_to_set_up() -> None:
    assert with_setup(plan(policy=Policy(setup="make deps")), ()) == ()
    assert with_setup(plan(), (LINT,)) == (LINT,)
