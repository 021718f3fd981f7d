"""What is said of checks that an agent was not shown."""

from dataclasses import replace

from tests.cases import each_case
from tests.unit.core.receipts.as_json import named, shape_problems, verify_receipt
from tests.unit.core.receipts.test_receipts import (
    FACTS,
    FIRST,
    LAND1,
    OWN,
    TREE1,
    TREE2,
    attempt,
    build,
    rows,
    task,
    verdict_record,
)
from tests.wording_plugin import Wording

from loopwright.core.gates.held_out import (
    Unseen,
    broken_in,
    held_commands,
    joined,
    marked,
    not_passed,
    proposed,
    unseen_of,
    veiled,
)
from loopwright.core.integrity.gate_files import GateFiles
from loopwright.core.receipts.model import read_receipt
from loopwright.core.receipts.verdicts import held_out_tasks
from loopwright.core.values.findings import Check, CheckStatus, CommandResult, Verdict, VerdictStatus
from loopwright.core.values.policy import GateCommand, HeldFile, HeldOut
from loopwright.core.values.states import TaskState

SECRET = "double(17) is 34"
HELD = tuple(
    HeldOut(check=GateCommand(name=name, command=f"python {name}.py"), hint=hint)
    for name, hint in (("numbers", "All numbers."), ("words", ""))
)


def verdict(*codes: int, named: str = "") -> Verdict:
    checks = [
        Check(
            id=f"{n}:{one.check.name}{named}",
            name=f"{one.check.name}: {SECRET}",
            status=CheckStatus.FAILED if named or code else CheckStatus.PASSED,
            message=SECRET,
        )
        for n, (one, code) in enumerate(zip(HELD, codes, strict=True), 1)
    ]
    commands = tuple(
        CommandResult(
            name=one.check.name,
            command=one.check.command,
            exit_code=code,
            duration_s=1.0,
            output_sha256="",
            output_bytes=0,
            tail=SECRET,
        )
        for one, code in zip(HELD, codes, strict=True)
    )
    return Verdict(status=VerdictStatus.FAILED, checks=tuple(checks), commands=commands)


@each_case(
    ("found", "names"),
    [
        (verdict(1, 0), "numbers"),
        (verdict(1, 1), "numbers, words"),
        (verdict(0, 0, named="/test"), "numbers, words"),
    ],
)
def test_names_and_hints_are_told_and_nothing_that_was_found(
    found: Verdict, names: str, wording: Wording
) -> None:
    told, evidence = not_passed(HELD, found)
    wording(told)
    assert evidence.splitlines()[:2] == [told, "All numbers."]
    assert SECRET not in told + evidence


def test_what_is_recorded_says_how_each_check_ended_and_nothing_of_what_it_found() -> None:
    found = verdict(1, 0, named="/test")
    recorded = veiled(found)
    assert SECRET not in str(recorded)
    assert [(check.name, check.status) for check in recorded.checks] == [
        ("numbers", CheckStatus.FAILED),
        ("words", CheckStatus.FAILED),
    ]
    assert not_passed(HELD, recorded) == not_passed(HELD, found)
    assert recorded.commands[0].output_sha256 == found.commands[0].output_sha256


def test_files_are_part_of_the_question() -> None:
    check = GateCommand(name="numbers", command="make numbers")
    files = [HeldFile(path="a", sha256="0"), HeldFile(path="a", sha256="1")]
    assert marked(check, []) == check
    assert len({marked(check, [file]).name for file in files}) == 2
    assert held_commands(HELD) == tuple(one.check for one in HELD)


def test_a_receipt_says_verified_only_with_the_verdicts_of_what_was_held_out():
    unseen = held_commands(HELD)
    tasks = [task(1, landed_sha=LAND1, acceptance=OWN, held_out=HELD), rows()["tasks"][1]]
    seen = rows()["verdicts"]
    without = build(tasks=tasks)
    assert [one["outcome"] for one in without["tasks"]] == ["not_verified", "verified"]
    landed = [*seen, verdict_record(7, TREE1, unseen)]
    failed = [*landed, verdict_record(9, TREE2, unseen, status=VerdictStatus.FAILED, exit_code=1)]
    for judged, gap in (
        (landed, "held_out_not_run t1"),
        (failed, "held_out_failed t1"),
        ([*landed, verdict_record(9, TREE2, unseen)], None),
    ):
        receipt = build(tasks=tasks, verdicts=judged)
        assert [one["outcome"] for one in receipt["tasks"]] == ["verified", "verified"]
        assert receipt["outcome"] == ("not_verified" if gap else "verified")
        assert [one for one in named(receipt) if one.startswith("held_out")] == ([gap] if gap else [])
        assert shape_problems(receipt) == []
        assert verify_receipt(receipt, FACTS) == []
    # The claim alone is not believed.
    forged = build(tasks=tasks, verdicts=landed)
    forged["outcome"] = "verified"
    assert verify_receipt(forged, FACTS)
    cancelled = [replace(tasks[0], status=TaskState.CANCELLED), tasks[1]]
    asked = [one.key for one, _ in held_out_tasks(read_receipt(build(tasks=cancelled, verdicts=landed)))]
    assert (asked, [one.key for one, _ in held_out_tasks(read_receipt(forged))]) == ([], ["t1"])


def test_where_the_work_changed_the_gates_files_these_checks_were_judged_with_them_as_they_were():
    unseen = held_commands(HELD)
    tasks = [task(1, landed_sha=LAND1, acceptance=OWN, held_out=HELD), rows()["tasks"][1]]
    seen = rows()["verdicts"]
    facts = GateFiles(pinned=("a",), pinned_tree=TREE2)
    first = attempt(1, candidate_sha=LAND1, candidate_tree=TREE1, gate_files=facts)
    for tree, outcome in ((TREE1, "not_verified"), (TREE2, "verified")):
        judged = [*seen, verdict_record(8, TREE2, FIRST), verdict_record(7, tree, unseen)]
        given = build(tasks=tasks, attempts=[first, rows()["attempts"][1]], verdicts=judged)
        assert given["tasks"][0]["outcome"] == outcome


@each_case("path", ["../out.sh", "/out.sh", "", "a/../../out.sh"])
def test_a_receipt_from_outside_names_no_file_that_would_be_laid_elsewhere(path):
    held = [replace(HELD[0], files=(HeldFile(path=path, sha256="0" * 64),))]
    receipt = build(tasks=[task(1, landed_sha=LAND1, acceptance=OWN, held_out=held), rows()["tasks"][1]])
    assert shape_problems(receipt)
    held = [replace(HELD[0], files=(HeldFile(path="a/in.sh", sha256="0" * 64),))]
    receipt = build(tasks=[task(1, landed_sha=LAND1, acceptance=OWN, held_out=held), rows()["tasks"][1]])
    assert not shape_problems(receipt)


def test_the_result_is_asked_once_for_the_same_and_not_for_what_was_cancelled():
    first, same = task(1, held_out=HELD), task(2, held_out=HELD)
    assert unseen_of([first, same]) == (Unseen(key=first.key, held=HELD),)
    assert unseen_of([replace(first, status=TaskState.CANCELLED), task(2)]) == ()


def test_a_task_that_mends_has_everything_held_out_that_can_lie_in_one_tree():
    def held(name, *files):
        check = GateCommand(name=name, command="make it")
        return Unseen(key=name, held=(HeldOut(check=check, files=files),))

    one, other = HeldFile(path="a", sha256="0"), HeldFile(path="a", sha256="1")
    first, alike, clash, third = held("1", one), held("2", one), held("3", other), held("4")
    assert joined([first, alike, first, clash, third]) == (*first.held, *alike.held, *third.held)


def test_what_the_result_breaks_is_told_by_check_and_task_with_the_hints(wording):
    told, evidence = broken_in(
        [(Unseen(key="a", held=HELD), verdict(1, 1)), (Unseen(key="b", held=HELD), verdict(0, 1))]
    )
    assert told == "numbers, words of task 'a'; words of task 'b'"
    wording(evidence.splitlines()[:2])
    assert SECRET not in evidence


def test_when_all_work_passed_unseen_checks_that_limit_is_not_named():
    unseen = held_commands(HELD)
    tasks = [replace(one, held_out=HELD) for one in rows()["tasks"]]
    judged = [*rows()["verdicts"], verdict_record(7, TREE1, unseen), verdict_record(8, TREE2, unseen)]
    assert "limit_seen_by_author" in named(build())
    assert "limit_seen_by_author" not in named(build(tasks=tasks, verdicts=judged))


@each_case(
    ("command", "line"),
    [
        (
            "pytest -q tests/test_double.py",
            'held_out: {run: "pytest -q held_out/test_double.py", files: "held_out/test_double.py"}',
        ),
        ("python -c 'assert f(2) == 4'", """held_out: ["python -c 'assert f(2) == 4'"]"""),
        ('make "x y"', r'held_out: ["make \"x y\""]'),
    ],
)
def test_a_proposal_is_a_line_that_can_be_pasted_into_the_plan(command: str, line: str) -> None:
    assert proposed([GateCommand(name="x", command=command)]) == line
