"""What a task proved unseen when it landed has to hold of the result: a later task may have broken it."""

import json
import subprocess
from pathlib import Path

from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task
from tests.unit.core.receipts.as_json import named

from loopwright.core.rows.model import Plan, Role, Run, VerdictRecord
from loopwright.core.values.states import PlanState

SECRET = "seventeen doubled is thirty-four"
HINT = "Every whole number has to be doubled."
DOUBLES, GUESSES = "double() { echo $(($1 * 2)); }\n", "double() { echo 4; }\n"
CHECK = f'. ./double.sh\ntest "$(double 17)" = 34 || {{ echo {SECRET}; exit 1; }}\n'
KNOWN = '. ./double.sh; test "$(double 2)" = 4'


def test_what_a_later_task_breaks_unseen_is_found_on_the_result_and_mended_without_being_shown(
    tmp_path: Path,
) -> None:
    shop = Workshop(tmp_path)
    (shop.place / "unseen").mkdir()
    (shop.place / "unseen" / "check.sh").write_text(CHECK)
    held_out = {"name": "numbers", "run": "sh unseen/check.sh", "files": "unseen/check.sh", "hint": HINT}
    tasks = [
        task("first", KNOWN, held_out=held_out),
        task("second", "test -e second.txt", depends_on=["first"]),
    ]
    breaks = [{"write": "double.sh", "text": GUESSES}, {"write": "second.txt", "text": "x\n"}]
    shop.play({"first": [[{"write": "double.sh", "text": DOUBLES}]], "second": [breaks]})
    plan = shop.plan("broken", tasks, settings={"fix_cycles": 0})
    said = shop.run(plan)
    assert said.code == 1, said.out + said.err
    row = shop.row(Plan)
    (name,) = [one.check.name for one in shop.task("first").held_out]
    assert row.status is PlanState.FAILED
    assert row.reason == f"held-out checks do not pass on the result: {name} of task 'first'"
    assert row.reason in " ".join(shop("status").out.split())
    receipt = shop("receipt", "show", "--json").document
    assert receipt["outcome"] == "not_verified"
    assert "held_out_failed first" in named(receipt)
    assert SECRET in shop("logs", row.id).out, "a person can look at it"

    # The same with a second try: an honest task mends it, and hears the name and the hint alone.
    in_vain = [{"write": "other.txt", "text": "x\n"}]
    mends = [{"expect_prompt": HINT, "otherwise": in_vain}, {"write": "double.sh", "text": DOUBLES}]
    shop.play(
        {"first": [[{"write": "double.sh", "text": DOUBLES}]], "second": [breaks], "fix-1": [in_vain, mends]}
    )
    again = shop.run(shop.plan("mended", tasks, settings={"fix_cycles": 1}))
    assert again.code == 0, again.out + again.err
    row = shop.rows(Plan)[-1]
    fix = shop.task("fix-1")
    assert (fix.origin, fix.held_out) == ("fix", shop.task("first").held_out)
    assert f"{name} of task 'first'\n{HINT}" in fix.description
    assert [one.failure and one.failure.value for one in shop.attempts("fix-1")] == ["gate", None]
    runs = shop.rows(Run, plan_id=row.id)
    prompts = [
        path.read_text(errors="replace")
        for run in runs
        if run.role is Role.IMPLEMENTER
        for path in (shop.home / "runs" / run.id).rglob("*")
        if path.is_file()
    ]
    assert prompts
    assert not any(SECRET in text or "unseen/check.sh" in text for text in (fix.description, *prompts))
    # It landed last, and what was held out was asked of that very tree.
    tree = shop.git("rev-parse", f"{row.result_sha}^{{tree}}").strip()
    judged = shop.rows(VerdictRecord, plan_id=row.id, tree=tree)
    assert sum(one.verdict.commands[-1].command == "sh unseen/check.sh" for one in judged) == 1

    file = tmp_path / "receipt.json"
    assert shop("receipt", "show", "--output", str(file)).code == 0
    kept = json.loads(file.read_text())
    assert kept["outcome"] == "verified"
    assert not any(one.startswith("held_out") for one in named(kept))
    assert shop("receipt", "verify", str(file)).code == 0
    assert shop("receipt", "export", str(tmp_path / "out")).code == 0
    script = ["sh", str(tmp_path / "out" / "receipt.sh"), str(shop.repository)]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "exit 0 on the tree of the result, held out from task first: sh unseen/check.sh" in done.stdout

    replayed = shop("receipt", "replay", str(file), "--yes", "--json").document
    assert replayed["agrees"], replayed
    ran = {one["what"]: one["now"] for one in replayed["replayed"]}
    assert ran == {
        "the result": "passed",
        "held out from task first": "passed",
        "held out from task fix-1": "passed",
    }
    for one in (shop.home / "held_out").iterdir():
        one.unlink()
    gone = shop("receipt", "replay", str(file), "--yes")
    assert gone.code == 0, gone.out
    assert "not run  held out from task first: not in this home as they were submitted" in gone.out
