"""`loopwright demo`: the main job for real, with an agent that follows a script."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from tests.acceptance.cli.program import Program, git
from tests.keeping import living_keepers
from tests.waiting import eventually

import loopwright

PACKAGE = Path(loopwright.__file__).parent


@pytest.fixture
def program(tmp_path: Path) -> Program:
    program = Program(tmp_path)
    program.env["TMPDIR"] = str(tmp_path / "tmp")
    (tmp_path / "tmp").mkdir()
    return program


@pytest.mark.timeout(240)
@pytest.mark.capability("C010", "C025", "C037", "C071", "C078")
@pytest.mark.trap("everything mocked")
def test_the_demonstration_does_the_whole_job_and_proves_it(program: Program, tmp_path: Path) -> None:
    said = program("demo", "--json", "--directory", str(tmp_path / "kept"), cwd=tmp_path, timeout=200)
    seen = said.document
    assert said.code == seen["exit_code"] == 0, said.out
    assert seen["verified"] is True
    assert seen["seconds"] > 0
    assert seen["plan"]["status"] == "VERIFIED"
    assert {task["outcome"] for task in seen["plan"]["tasks"]} == {"verified"}
    tries = {task["key"]: task["attempt"] for task in seen["plan"]["tasks"]}
    assert tries == {**dict.fromkeys(tries, 1), "discounts": 2, "totals": 2}, "as the script has it"
    assert seen["empty_claim"] == {
        "task": "discounts",
        "attempt": 1,
        "claim": "discounts work and all tests pass",
        "landed_in": 2,
    }
    assert (seen["fixed"]["task"], seen["fixed"]["check"]) == ("totals", "adds up")
    assert seen["fixed"]["evidence"] == "a basket of 3000 with 10 % off should cost 2700, but costs 3000"
    assert len(set(seen["side_by_side"]["tasks"])) == 2
    assert seen["side_by_side"]["seconds"] > 0
    assert seen["receipt"]["outcome"] == "verified"
    assert seen["receipt_agrees"] is True
    assert seen["checkout_untouched"] is True
    shop = tmp_path / "kept" / "shop"
    assert git(shop, "rev-list", "--count", "main") == "1\n", "the branch is not merged for the user"
    git(shop, "merge", "-q", "--ff-only", seen["plan"]["branch"])
    assert "receipts" in (shop / "README.md").read_text()
    assert not program.home.exists(), "the user's own home is not touched"


@pytest.mark.more
@pytest.mark.timeout(240)
def test_it_needs_nothing_but_the_package_and_tells_its_story_in_plain_words(
    program: Program, tmp_path: Path
) -> None:
    shutil.copytree(PACKAGE, tmp_path / "copy" / "loopwright")
    # Settings of the user's own would break a run: they have no say here.
    env = {"PYTHONPATH": str(tmp_path / "copy"), "LOOPWRIGHT_MAX_ATTEMPTS": "1", "LOOPWRIGHT_PARALLEL": "1"}
    said = program("demo", cwd=tmp_path, env=env, timeout=200, fresh=True)
    assert said.code == 0, said.out + said.err
    assert "an agent that follows a script" in said.out
    assert "VERIFIED  7/7 tasks  gate:all 8/8" in said.out
    assert "git log --oneline --graph loopwright/plan_" in said.out
    assert "feat(readme): Describe the shop" in said.out
    assert 'discounts, attempt 1: the agent said "discounts work and all tests pass"' in said.out
    assert "had changed nothing. It was not believed; attempt 2 did the work." in said.out
    assert 'totals, attempt 1: the check "adds up" failed' in said.out
    assert "were worked on at the same time" in said.out
    assert "The agent was scripted: no model was asked." in said.out
    assert "loopwright run plan.yaml --agent claude" in said.out
    assert list((tmp_path / "tmp").iterdir()) == [], "the temporary folder is gone"


def test_a_folder_that_holds_something_is_refused(program: Program, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("ten years of work")
    said = program("demo", "--directory", str(tmp_path / "mine"), cwd=tmp_path)
    assert said.code == 2
    assert "is not an empty folder" in said.err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


@pytest.mark.more
@pytest.mark.timeout(120)
def test_ctrl_c_stops_it_in_order_and_leaves_nothing_behind(program: Program, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "loopwright.cli", "demo"],
        cwd=tmp_path,
        env=program.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        while "working" not in (line := process.stdout.readline()):
            assert line, "it ended before an agent worked"
        # As a terminal does it: the signal goes to everyone in the foreground.
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert process.returncode == 3, out + err
    assert "Traceback" not in err
    assert "Stopped before its end, as you asked." in out
    eventually(lambda: list((tmp_path / "tmp").iterdir()) == [])


@pytest.mark.timeout(240)
def test_the_first_page_starts_the_demonstration_and_ctrl_c_ends_everything(
    program: Program, tmp_path: Path
) -> None:
    place = tmp_path / "web"
    shown = subprocess.Popen(
        [sys.executable, "-m", "loopwright.cli", "demo", "--web", "--directory", str(place)],
        cwd=tmp_path,
        env={**program.env, "BROWSER": "true"},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert shown.stdout is not None
        link = next(word for line in shown.stdout for word in line.split() if word.startswith("http"))
        with httpx.Client(headers={"Accept": "text/html"}, timeout=60) as browser:
            first = browser.get(link, follow_redirects=True)
            assert "Start the demonstration" in first.text
            url = link.partition("/login")[0]
            begun = browser.post(f"{url}/demo", headers={"Origin": url})
            assert begun.status_code == 303
            assert begun.headers["location"].startswith("/plans/")
            again = browser.post(f"{url}/demo", headers={"Origin": url})
            assert again.headers["location"] == begun.headers["location"], "there is one demonstration"
            plan = browser.get(url + begun.headers["location"]).text
            assert "Print a receipt" in plan
            eventually(lambda: living_keepers(place / "home"), timeout=60)
        shown.send_signal(signal.SIGINT)
        assert shown.wait(timeout=120) == 0
        assert living_keepers(place / "home") == []
    finally:
        shown.kill()
        shown.communicate()
    assert not program.home.exists(), "the user's own home is not touched"
