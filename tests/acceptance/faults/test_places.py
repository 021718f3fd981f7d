"""Projects that are copied, moved and side by side in one home."""

import shutil
from pathlib import Path

import pytest
from tests.acceptance.cli.program import git, repository
from tests.acceptance.faults.record import Record
from tests.acceptance.sandbox import FILES, Sandbox, task

STEPS = [{"write": "a.txt", "text": "right\n"}]


def _write_plan(folder: Path, sandbox: Sandbox) -> None:
    plan = sandbox.plan("inside", [task("a", "grep -q right a.txt")], settings={"max_call_retries": 0})
    shutil.copy(plan, folder / "plan.yaml")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "plan")


@pytest.mark.capability("C001")
def test_a_project_that_was_copied_elsewhere_with_its_home_runs_unchanged(sandbox: Sandbox) -> None:
    sandbox.play({"a": [STEPS]})
    _write_plan(sandbox.repository, sandbox)
    assert sandbox("run", "plan.yaml").code == 0
    place = sandbox.place / "else where"
    shutil.copytree(sandbox.repository, place / "project", symlinks=True)
    shutil.copytree(sandbox.home, place / "home", symlinks=True)
    shutil.rmtree(sandbox.repository)
    shutil.rmtree(sandbox.home)
    said = sandbox("run", "plan.yaml", cwd=place / "project", env={"LOOPWRIGHT_HOME": str(place / "home")})
    assert said.code == 0, said.out + said.err
    record = Record(place / "project", home=place / "home")
    assert record.plan["status"] == "VERIFIED"
    assert record.on_branch("a.txt") == "right\n"
    assert not sandbox.repository.exists()
    assert not sandbox.home.exists()


@pytest.mark.capability("C118")
def test_a_repository_that_is_gone_holds_up_no_other_of_the_same_home_and_is_carried_on_once_it_is_back(
    sandbox: Sandbox,
) -> None:
    sandbox.play({"a": [STEPS]})
    other = repository(sandbox.place / "other", FILES)
    for folder in (sandbox.repository, other):
        _write_plan(folder, sandbox)
    killed = sandbox("run", "plan.yaml", env={"LOOPWRIGHT_FAILPOINT": "store.attempt.landed.after"})
    assert killed.code == -9, "killed just before it could tidy up and verify"
    away = sandbox.repository.rename(sandbox.place / "away")

    said = sandbox("run", "plan.yaml", cwd=other)
    assert said.code == 0, said.out + said.err
    assert "not continued here: inside" in " ".join(said.out.split()), said.out
    sandbox("worker", "--until-idle", cwd=other)
    mine, theirs = Record(sandbox.repository, home=sandbox.home), Record(other, home=sandbox.home)
    assert theirs.plan["status"] == "VERIFIED"
    assert not sandbox.repository.exists(), "nothing was made where it used to be"

    away.rename(sandbox.repository)
    said = sandbox("reverify")
    assert said.code == 0, said.out + said.err
    told = [event for event in mine.events() if event["plan"] == mine.plan["id"]]
    failed = next(event for event in told if event["type"] == "plan_failed")
    assert "greeter is not a folder" in failed["payload"]["reason"], (
        "what happened meanwhile was written later"
    )
    assert told[-1]["type"] == "plan_verified"
    assert mine.landings() == {"a": 1}
    for one, another in ((mine, theirs), (theirs, mine)):
        text = "".join(path.read_text() for path in one.folder.rglob("*") if path.is_file())
        assert one.plan["id"] in text
        for alien in (another.plan["id"], another.plan["project_id"], str(another.repository)):
            assert alien not in text
        assert another.plan["id"] not in one.git("for-each-ref")
