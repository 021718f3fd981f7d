"""The script beside a receipt: what it looks at, and that nothing in a receipt can steer it."""

import hashlib
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.unit.core.gates.test_held_out import HELD
from tests.unit.core.receipts.as_json import check_script, named, render
from tests.unit.core.receipts.test_receipts import (
    BASE,
    GATE,
    JUDGED,
    LAND1,
    NOW,
    PLAN,
    RESULT,
    TREE1,
    TREE2,
    WHOLE,
    attempt,
    build,
    rows,
    sha,
    task,
    uid,
    verdict_record,
)

from loopwright.core.gates.held_out import held_commands
from loopwright.core.receipts.build import GitFacts
from loopwright.core.receipts.events import Override, RemovedLanding
from loopwright.core.receipts.evidence import gate_evidence
from loopwright.core.receipts.model import read_receipt
from loopwright.core.rows.model import Finish
from loopwright.core.values.findings import Rerun
from loopwright.core.values.states import FinishState, PlanState, TaskState

OUTPUT = sha("0a") + sha("0a")[:24]
SQUASHED = Finish(
    id=uid("finish", 1),
    plan_id=uid("plan", 1),
    how="squash",
    state=FinishState.FINISHED,
    actor="user:eva",
    source_sha=RESULT,
    target_sha=BASE,
    commit_sha=sha("5c"),
    tree=TREE2,
    verdict_id=uid("verdict", 6),
    receipt_sha256="f" * 64,
    created_at=NOW,
    updated_at=NOW,
)


def script(**changes: Any) -> str:
    receipt = build(**changes)
    return check_script(receipt, render(receipt), name="receipt.sh")


def lines_with(word: str, text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(f"{word} ")]


def test_each_statement_of_a_receipt_is_looked_at() -> None:
    text = script()
    own = hashlib.sha256(render(build()).encode()).hexdigest()
    assert f"same 'the receipt itself' {own} " in text
    assert f"commit 'the result' {RESULT} {TREE2}" in text
    assert f"change 'the whole plan' {BASE} {RESULT} {'d' * 64}" in text
    assert lines_with("landed", text) == [
        f"landed 'task t1' {LAND1} {BASE} {TREE1} {'1' * 64}",
        f"landed 'task t2' {RESULT} {LAND1} {TREE2} {'2' * 64}",
    ]
    assert f"<<'END'\n{uid('ptask', 1)} {LAND1}\n{uid('ptask', 2)} {RESULT}\nEND\n" in text
    assert lines_with("stated", text) == [
        f"stated 'task t1' {LAND1} <<'END'",
        f"stated 'task t2' {RESULT} <<'END'",
    ]
    assert lines_with("evidence", text)[0] == f"evidence {uid('run', 4)} 1.out {OUTPUT}"


def test_a_plan_without_a_result_is_looked_at_as_far_as_it_got() -> None:
    text = script(
        plan=replace(PLAN, result_sha=None, status=PlanState.RUNNING),
        tasks=[task(1, status=TaskState.QUEUED)],
        attempts=[attempt(1, candidate_sha=LAND1, candidate_tree=TREE1)],
        git=GitFacts(result_tree=None),
    )
    assert "the whole plan" not in text
    assert lines_with("landed", text) == lines_with("stated", text) == []


def test_what_a_person_took_back_was_landed_once_and_is_told() -> None:
    gone = Override(
        type="plan_rolled_back",
        actor="user:eva",
        at=NOW.isoformat(),
        task=None,
        commit=sha("bac"),
        took_out=(RemovedLanding(task=uid("ptask", 1), sha=sha("60")),),
        why="",
        note="too slow",
    )
    text = script(overrides=[gone])
    assert f"<<'END'\n{uid('ptask', 1)} {LAND1}\n{uid('ptask', 1)} {sha('60')}\n" in text
    assert f"<<'END'\n{sha('bac')} {sha('60')}\nEND\n" in text
    assert "   - 2026-01-02 03:04 user:eva: took landed work back: too slow\n" in text


def test_the_end_of_a_plan_is_looked_at_where_it_has_come_to_one() -> None:
    text = script(finishes=[SQUASHED])
    assert lines_with("frozen", text) == [f"frozen {SQUASHED.id} {'f' * 64}"]
    what = f"'the end {SQUASHED.id}' {sha('5c')}"
    assert lines_with("ended", text) == [f"ended {what} {TREE2} {BASE}"]
    assert lines_with("names", text) == [f"names {what} {SQUASHED.id} {'f' * 64}"]
    assert f"  taken over as {sha('5c')}\n" in text
    forward = script(finishes=[replace(SQUASHED, how="fast-forward", commit_sha=RESULT)])
    assert lines_with("ended", forward)
    assert not lines_with("names", forward), "the result itself was made before its receipt"
    going = replace(SQUASHED, state=FinishState.REFUSED, commit_sha=None, receipt_sha256=None)
    text = script(finishes=[going])
    assert not any(lines_with(word, text) for word in ("frozen", "ended", "names"))


def test_an_output_that_several_verdicts_name_is_looked_at_once() -> None:
    first = JUDGED[0]
    again = Rerun(folder="again-alone", alone=True, commands=first.verdict.commands[:1])
    twice = replace(first, verdict=replace(first.verdict, reruns=(again,)))
    other = replace(first, id=uid("verdict", 9), gate_key="0" * 64)
    receipt = build(verdicts=[twice, other, JUDGED[1], verdict_record(6, TREE2, WHOLE)])
    found = [one for one in gate_evidence(read_receipt(receipt)) if one[0].startswith(first.run_id)]
    assert [(directory.removeprefix(first.run_id), file) for directory, file, _ in found] == [
        ("", "1.out"),
        ("", "2.out"),
        ("/again-alone", "1.out"),
    ]


def test_a_person_reads_what_was_run_and_what_nobody_checked() -> None:
    waits = task(3, status=TaskState.ERROR, attempt_id=uid("att", 3))
    tried = attempt(3, candidate_tree=sha("3e"))
    text = script(
        tasks=[*rows()["tasks"], waits],
        attempts=[*rows()["attempts"], tried],
        verdicts=[*JUDGED, verdict_record(6, TREE2, WHOLE), verdict_record(8, sha("3e"), GATE, exit_code=2)],
    )
    facts = text[text.index("The receipt says: ") :]
    for part in (
        "exit 0 on the tree of the result: make own\n",
        " task t1: verified\n   exit 0 on the tree that landed: make own\n",
        " task t3: not_verified\n",
        " Gaps: none\n",
    ):
        assert part in facts
    assert " Notes:\n   - " in facts
    cause = f"{'one place, ' * 30}and another"
    gap = {"code": "flaky", "task": None, "cause": cause, "remedy": "Have it reviewed."}
    told = check_script({**build(), "gaps": [gap]}, "", name="receipt.sh")
    assert f"   - {cause}\n     Have it reviewed.\n" in told, "all of it, what to do included"


def test_nothing_that_a_receipt_says_is_run_or_steers_a_terminal(tmp_path: Path) -> None:
    """Keys, titles and commands come from outside; the script is run for real, on a repository without the commits."""
    evil = "'; touch evil; echo '\nEND\ntouch evil\x1b[2J $(touch evil) `touch evil`"
    given = rows()
    given["tasks"][0] = replace(given["tasks"][0], key=evil, title=evil)
    receipt = build(plan=replace(PLAN, title=evil), tasks=given["tasks"], finishes=[SQUASHED])
    text = render(receipt)
    (tmp_path / "receipt.json").write_text(text, encoding="utf-8")
    (tmp_path / "receipt.sh").write_text(check_script(receipt, text, name="receipt.sh"), encoding="utf-8")
    repository = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", repository], check=True)
    done = subprocess.run(
        ["sh", "../receipt.sh"], cwd=repository, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "differs: the tree of the result\n" in done.stdout
    assert "the receipt itself" not in done.stdout, "that one agrees"
    assert f"not here: the receipt {SQUASHED.id}.json" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("DIFFERS: ")
    assert "\x1b" not in done.stdout.split("The receipt says")[1]
    assert not [*tmp_path.rglob("evil")]


def test_work_that_was_taken_over_unchecked_is_a_note() -> None:
    receipt = build(finishes=[replace(SQUASHED, verdict_id=None)])
    assert "finish_not_checked" in named(receipt)


def test_reports_of_a_command_are_evidence_too() -> None:
    first = JUDGED[0]
    command = replace(first.verdict.commands[0], seen_sha256="7" * 64, kept_sha256="8" * 64)
    kept = replace(first, verdict=replace(first.verdict, commands=(command,)))
    found = [one for one in gate_evidence(read_receipt(build(verdicts=[kept]))) if one[0] == first.run_id]
    assert found == [(first.run_id, "1.out", "8" * 64), (first.run_id, "1.seen", "7" * 64)]


def test_checks_that_were_held_out_are_read_on_the_result() -> None:
    tasks = rows()["tasks"]
    judged = verdict_record(9, TREE2, held_commands(HELD))
    text = script(
        tasks=[replace(tasks[0], held_out=HELD), *tasks[1:]], verdicts=[*rows()["verdicts"], judged]
    )
    assert "exit 0 on the tree of the result, held out from task t1: " in text
