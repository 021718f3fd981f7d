"""`loopwright receipt`: made from the rows, and verified by someone who has only the repository."""

import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.acceptance.cli.program import Program, git
from tests.acceptance.sandbox import Sandbox, task

from loopwright.services.receipts.files import load_receipt
from loopwright.services.receipts.report import report


@pytest.fixture(scope="session")
def text(finished: Sandbox, good_plan: str) -> str:
    """The receipt of the verified plan."""
    path = finished.place / "receipt.json"
    said = finished("receipt", "show", good_plan, "--output", str(path))
    assert said.code == 0
    assert f"written: {path}" in said.out
    return path.read_text()


@pytest.fixture
def receipt(text: str, tmp_path: Path) -> Path:
    """The receipt as a file that a test may change."""
    path = tmp_path / "receipt.json"
    path.write_text(text)
    return path


def test_a_receipt_is_shown_in_words(finished: Sandbox, good_plan: str) -> None:
    out = finished("receipt", "show", good_plan).out
    assert out.startswith(f"good  {good_plan}")
    assert re.search(r"^outcome +verified \(VERIFIED\)$", out, re.MULTILINE)
    assert "2 attempts" in out


def test_the_receipt_as_json_is_the_one_in_the_projects_state_directory(
    finished: Sandbox, good_plan: str
) -> None:
    kept = finished.repository / ".loopwright" / "receipts" / f"{good_plan}.json"
    assert finished("receipt", "show", good_plan, "--json").document == json.loads(kept.read_text())


def test_an_untouched_receipt_agrees(finished: Sandbox, receipt: Path) -> None:
    said = finished("receipt", "verify", str(receipt), "--json")
    assert said.code == 0, said.out
    assert (said.document["agrees"], said.document["outcome"]) == (True, "verified")
    assert len(said.document["checked"]) == 4, "git, recordings, events and rows"
    assert said.document["unchecked"] == [], "its files are in this home"


def test_a_stranger_verifies_it_with_a_clone_and_nothing_else(
    finished: Sandbox, receipt: Path, tmp_path: Path
) -> None:
    (tmp_path / "stranger").mkdir()
    stranger = Program(tmp_path / "stranger")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(finished.repository), str(clone))
    found = stranger("receipt", "verify", str(receipt), "--repository", str(clone), "--json", cwd=tmp_path)
    assert found.code == 0, found.out
    assert found.document["agrees"] is True
    assert (len(found.document["checked"]), len(found.document["unchecked"])) == (1, 2)
    assert not stranger.home.exists()


def test_a_clone_without_the_branch_differs_and_says_what_to_fetch(
    finished: Sandbox, receipt: Path, tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--single-branch", f"file://{finished.repository}", str(clone))
    said = finished("receipt", "verify", str(receipt), "--repository", str(clone))
    assert said.code == 1
    assert "git fetch" in said.out


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"key": "one"', '"key": "uno"', "hash"),
        ('"status": "COMPLETE"', '"status": "CANCELLED"', "task_outcome"),
    ],
)
def test_a_changed_receipt_differs(finished: Sandbox, receipt: Path, old: str, new: str, told: str) -> None:
    text = receipt.read_text()
    assert old in text
    receipt.write_text(text.replace(old, new))
    said = finished("receipt", "verify", str(receipt), "--json")
    assert said.code == 1
    assert told in {one["code"] for one in said.document["differences"]}


def test_a_changed_gate_output_differs(finished: Sandbox, receipt: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(
        finished.home / "runs", home / "runs", ignore=shutil.ignore_patterns("sock*", "keeper.sock")
    )
    outputs = [path for path in (home / "runs").glob("*/gate/*.out") if path.stat().st_size == 0]
    assert outputs
    for path in outputs:
        path.write_text("forged\n")
    said = finished("receipt", "verify", str(receipt), "--json", env={"LOOPWRIGHT_HOME": str(home)})
    assert said.code == 1
    assert {one["code"] for one in said.document["differences"]} == {"recorded_file"}


def test_another_history_differs(finished: Sandbox, receipt: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", str(other))
    git(other, "commit", "-q", "--allow-empty", "-m", "unrelated")
    assert finished("receipt", "verify", str(receipt), "--repository", str(other)).code == 1


@pytest.mark.parametrize("odd", ["", "[]", '{"schema": "other"}', "not json"])
def test_what_is_no_receipt_is_refused_with_a_hint(finished: Sandbox, tmp_path: Path, odd: str) -> None:
    path = tmp_path / "odd.json"
    path.write_text(odd)
    said = finished("receipt", "verify", str(path))
    assert said.code == 2
    assert "to do" in said.err


def test_a_missing_file_and_a_folder_that_is_no_repository_are_user_errors(
    finished: Sandbox, receipt: Path, tmp_path: Path
) -> None:
    assert finished("receipt", "verify", str(tmp_path / "none.json")).code == 2
    said = finished("receipt", "verify", str(receipt), "--repository", str(tmp_path), "--json")
    assert (said.code, said.document["error"]["code"]) == (2, "not_a_repository")
    assert "--repository PATH" in said.document["error"]["hint"]


def test_a_receipt_of_an_unfinished_plan_can_be_shown_and_verified(finished: Sandbox, tmp_path: Path) -> None:
    path = tmp_path / "unfinished.json"
    assert finished("receipt", "show", "--output", str(path)).code == 0
    said = finished("receipt", "verify", str(path))
    assert said.code == 0, said.out
    assert "outcome: not verified" in said.out


def test_a_plan_is_verified_by_its_name_from_anywhere(
    finished: Sandbox, good_plan: str, tmp_path: Path
) -> None:
    found = finished("receipt", "verify", good_plan[:13], "--json", cwd=tmp_path).document
    assert found["agrees"] is True
    assert found["repository"] == str(finished.repository)
    assert found["file"].endswith(f".loopwright/receipts/{good_plan}.json")
    assert len(found["checked"]) == 5


def test_without_a_name_the_newest_plan_is_verified(sandbox: Sandbox) -> None:
    sandbox.play({"one": [[{"write": "one", "text": "x"}]]})
    assert sandbox.run(sandbox.plan("newest", [task("one", "test -s one")])).code == 0
    found = sandbox("receipt", "verify", "--json").document
    assert found["agrees"] is True
    assert found["file"].endswith(f".loopwright/receipts/{sandbox.newest_plan()}.json")
    shown = next(line for line in sandbox("receipt", "show").out.splitlines() if line.split()[:1] == ["cost"])
    assert shown.split() == ["cost", "unknown"]


# --- handing it on ---------------------------------------------------------------------------------


def check(script: Path, *where: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the script as somebody who has never heard of Loopwright."""
    env = {"PATH": str(path) if path else os.environ["PATH"]}
    return subprocess.run(
        ["/bin/sh", str(script), *map(str, where)],
        cwd=script.parent,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def handed_on(finished: Sandbox, good_plan: str, tmp_path: Path) -> Path:
    """The receipt in a folder for somebody else."""
    folder = tmp_path / "handed on"
    said = finished("receipt", "export", str(folder), good_plan)
    assert said.code == 0, said.out + said.err
    assert f"sh {folder}/receipt.sh REPOSITORY" in said.out
    return folder


@pytest.fixture
def bare_path(tmp_path: Path) -> Path:
    """A PATH with git and the plainest tools, and no Loopwright and no Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ["git", "sha256sum", "dirname", "basename", "mktemp", "rm", "sort", "cat"]:
        (folder / name).symlink_to(shutil.which(name) or name)
    return folder


def test_a_stranger_checks_it_with_git_and_a_shell_alone(
    finished: Sandbox, handed_on: Path, bare_path: Path, tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--bare", str(finished.repository), str(clone))
    done = check(handed_on / "receipt.sh", clone, path=bare_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "grep -q right two.txt" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("AGREES: ")


def test_what_the_repository_is_configured_to_say_does_not_move_the_script(
    finished: Sandbox, handed_on: Path, tmp_path: Path
) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(finished.repository), str(clone))
    git(clone, "config", "diff.external", "false")
    git(clone, "config", "core.fsmonitor", "touch planted; false")
    (clone / ".git" / "info" / "attributes").write_text("* binary\n")
    done = check(handed_on / "receipt.sh", clone)
    assert done.returncode == 0, done.stdout
    assert not (clone / "planted").exists()


def test_the_script_finds_what_was_changed(finished: Sandbox, handed_on: Path, tmp_path: Path) -> None:
    script, receipt = handed_on / "receipt.sh", handed_on / "receipt.json"
    output = next(handed_on.glob("evidence/*/gate/1.out"))
    before = output.read_bytes()
    output.write_bytes(before + b"more\n")
    assert "differs: the recorded " in check(script, finished.repository).stdout
    output.write_bytes(before)
    receipt.write_text(receipt.read_text().replace('"title": "good"', '"title": "goof"'))
    done = check(script, finished.repository)
    assert done.returncode == 1
    assert "differs: the receipt itself" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("DIFFERS: 1 ")
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", str(other))
    assert check(script, other).returncode == 1
    assert check(script, tmp_path / "none").returncode == 2


def test_each_landing_names_its_part_of_the_receipt_and_the_events_before_it(
    finished: Sandbox, handed_on: Path
) -> None:
    receipt = json.loads((handed_on / "receipt.json").read_text())
    runs = {run["attempt_id"]: run for run in receipt["runs"] if run["role"] == "implementer"}
    for told in receipt["tasks"]:
        form = "--format=%(trailers:key=Loopwright-Receipt,valueonly)"
        carried = git(finished.repository, "log", "-1", form, told["landed_sha"]).strip()
        assert re.fullmatch(r"sha256:[0-9a-f]{64}", carried)
        landed = next(one for one in told["attempts"] if one["candidate_sha"] == told["landed_sha"])
        assert runs[landed["id"]]["ended_event"]
    script = handed_on / "receipt.sh"
    script.write_text(script.read_text().replace('"ended_event":"', '"ended_event":"0', 1))
    done = check(script, finished.repository)
    assert done.returncode == 1
    assert "differs: the part of the receipt that task one names" in done.stdout


def test_a_forged_script_is_found(finished: Sandbox, handed_on: Path) -> None:
    script = handed_on / "receipt.sh"
    script.write_text(script.read_text().replace("exit 1", "exit 0"))
    said = finished("receipt", "verify", str(handed_on / "receipt.json"), "--json")
    assert said.code == 1
    assert [one["code"] for one in said.document["differences"]] == ["script"]


def test_evidence_that_was_handed_on_is_verified_without_the_home(
    finished: Sandbox, handed_on: Path, tmp_path: Path
) -> None:
    (tmp_path / "stranger").mkdir()
    stranger = Program(tmp_path / "stranger")
    where = ("--repository", str(finished.repository))
    said = stranger("receipt", "verify", str(handed_on / "receipt.json"), *where, "--json", cwd=tmp_path)
    assert said.code == 0, said.out
    assert len(said.document["checked"]) == 3, "git, recordings and the script"
    next(handed_on.glob("evidence/*/gate/1.out")).write_text("forged\n")
    again = stranger("receipt", "verify", str(handed_on / "receipt.json"), *where, cwd=tmp_path)
    assert again.code == 1


def test_nothing_is_overwritten_by_an_export(finished: Sandbox, good_plan: str, handed_on: Path) -> None:
    before = sorted((path, path.stat().st_mtime_ns) for path in handed_on.rglob("*"))
    assert finished("receipt", "export", str(handed_on), good_plan).code == 2
    assert sorted((path, path.stat().st_mtime_ns) for path in handed_on.rglob("*")) == before


def test_the_project_has_the_script_beside_the_receipt(finished: Sandbox, good_plan: str) -> None:
    script = finished.repository / ".loopwright" / "receipts" / f"{good_plan}.sh"
    assert check(script, finished.repository).returncode == 0


# --- replay ----------------------------------------------------------------------------------------


def test_the_recorded_gates_are_run_again_on_the_recorded_tree(finished: Sandbox, receipt: Path) -> None:
    said = finished("receipt", "replay", str(receipt), "--yes", "--json")
    assert said.code == 0, said.out
    (whole,) = said.document["replayed"]
    assert (whole["then"], whole["now"], whole["differences"]) == ("passed", "passed", [])
    assert {one["command"] for one in whole["commands"]} >= {
        "grep -q right two.txt",
        "grep -q hello greet.txt",
    }
    assert finished("receipt", "replay", str(receipt), "--yes", "--task", "one").code == 0
    assert finished("receipt", "replay", "--yes") == finished("receipt", "verify"), (
        "the newest, which has none yet"
    )
    assert not (finished.home / "trials").exists(), "it leaves nothing behind"


def test_commands_that_were_never_judged_are_not_run(finished: Sandbox, receipt: Path) -> None:
    receipt.write_text(receipt.read_text().replace("grep -q right two.txt", "grep -q wrong two.txt"))
    said = finished("receipt", "replay", str(receipt), "--yes", "--json")
    assert (said.code, said.document["error"]["code"]) == (2, "receipt_without_verdict")


def test_a_verdict_that_does_not_come_again_differs(tmp_path: Path) -> None:
    """What the gate looked at outside of the tree is gone by now."""
    sandbox = Sandbox(tmp_path)
    outside = tmp_path / "outside"
    outside.write_text("here\n")
    sandbox.play({"one": [[{"write": "one.txt", "text": "right\n"}]]})
    plan = sandbox.plan("outside", [task("one", "grep -q right one.txt", f"grep -q here {outside}")])
    assert sandbox.run(plan).code == 0
    receipt = str(sandbox.repository / ".loopwright" / "receipts" / f"{sandbox.newest_plan()}.json")
    assert sandbox("receipt", "replay", receipt, "--yes").code == 0
    outside.unlink()
    told = "it was passed and is failed now"
    code = f"grep -q here {outside}: exit code 0 then, 2 now"
    for asked in ((), ("--task", "one")):
        said = sandbox("receipt", "replay", receipt, "--yes", "--json", *asked)
        assert said.code == said.document["exit_code"] == 1, said.out + said.err
        assert said.document["agrees"] is False
        (one,) = said.document["replayed"]
        assert (one["then"], one["now"]) == ("passed", "failed")
        assert one["differences"][0].startswith(told)
        assert one["differences"][1] == code
    shown = " ".join(sandbox("receipt", "replay", receipt, "--yes").out.split())
    assert told in shown


def test_foreign_commands_run_only_after_a_yes(finished: Sandbox, receipt: Path) -> None:
    said = finished("receipt", "replay", str(receipt))
    assert said.code == 2
    assert "grep -q right two.txt" in said.err
    assert "--yes" in said.err
    unknown = finished("receipt", "replay", str(receipt), "--yes", "--task", "none")
    assert unknown.code == 2
    assert "it has: one, two" in unknown.err


# --- the report for people ----------------------------------------------------------------------------


def test_a_plan_is_one_html_file_without_network_and_without_script(
    finished: Sandbox, good_plan: str, tmp_path: Path
) -> None:
    file = tmp_path / "report.html"
    said = finished("receipt", "export", str(file), good_plan, "--html")
    assert said.code == 0, said.out + said.err
    page = file.read_text()
    assert "verified</b> All checks passed on exactly this result" in page
    assert "grep -q right two.txt" in page
    assert "Attempt 2" in page
    assert "default-src &#x27;none&#x27;" in page or "default-src 'none'" in page
    assert not re.search(r"<(script|link|img|iframe)|https?:|url\(", page)
    assert finished("receipt", "export", str(file), good_plan, "--html", "--json").code == 2


def test_the_report_shows_hostile_text_as_it_is(receipt: Path) -> None:
    found = load_receipt(receipt)
    title = "<script>alert(1)</script> \u202eevil \x1b[31m"
    task = replace(found.tasks[0], title=title, reason="<b>\u200b")
    page = report(replace(found, plan=replace(found.plan, title=title), tasks=(task, *found.tasks[1:])))
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; \\u202eevil \\x1b[31m" in page
    assert "&lt;b&gt;\\u200b" in page
