"""A receipt is held against the rows of the home in which its plan ran."""

from dataclasses import replace
from typing import Any

from tests.cases import each_case
from tests.unit.core.receipts.as_json import verify_receipt
from tests.unit.core.receipts.test_receipts import FACTS, NOW, PLAN, build, rows, run, uid

from loopwright.core.receipts.build import GitFacts
from loopwright.core.receipts.events import CheckoutChange, Override
from loopwright.core.receipts.model import ForeignCommit
from loopwright.core.rows.model import Project


def test_rows_that_give_the_same_receipt_are_no_difference_whatever_they_know_of_git() -> None:
    rows_alone = build(git=GitFacts(result_tree=None))
    assert verify_receipt(build(), FACTS, rows=rows_alone) == []


CHANGE = CheckoutChange(
    at=NOW.isoformat(), task=None, run=uid("run", 1), whose="agent", changes=("x",), patch_sha256=None
)


@each_case(
    ("changes", "told"),
    [
        (
            {"project": Project(id=uid("proj", 1), name="other", path="/", created_at=NOW)},
            ["rows project"],
        ),
        (
            {"plan": replace(PLAN, base_ref="trunk", title="Other")},
            ["rows plan"],
        ),
        ({"checkout_changes": [CHANGE]}, ["checkout_changes"]),
        (
            {"runs": [run(1, exit_code=3), run(2), *rows()["runs"][2:]]},
            [f"rows {uid('run', 1)}"],
        ),
    ],
    ids=["project", "plan", "checkout", "run"],
)
def test_rows_of_the_home_that_say_otherwise_are_named(changes: dict[str, Any], told: list[str]) -> None:
    assert verify_receipt(build(), FACTS, rows=build(**changes)) == told


def test_what_the_home_knows_and_the_receipt_does_not_say_is_a_difference() -> None:
    at = NOW.isoformat()
    said = [
        Override(type="task_retried", actor="a", at=at, task=None, commit=None, took_out=(), why="", note="")
    ]
    home = build(runs=[*rows()["runs"], run(9)], overrides=said)
    first, second = verify_receipt(build(), FACTS, rows=home)
    assert (first, second) == ("overrides", f"rows {uid('run', 9)}")
    fewer = build(runs=rows()["runs"][1:])
    assert verify_receipt(build(runs=rows()["runs"]), FACTS, rows=fewer)[-1] == f"rows {uid('run', 1)}"


def test_commits_of_others_on_the_branch_that_the_receipt_does_not_name_are_a_difference() -> None:
    other = ForeignCommit(sha="f0" * 20, subject="By hand", gate_files=())
    home = build(git=replace(rows()["git"], not_ours=(other,)))
    told = verify_receipt(build(), FACTS, rows=home)
    assert "foreign_commits" in told
