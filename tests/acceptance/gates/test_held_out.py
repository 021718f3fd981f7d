"""What is held out must not lie where every agent finds it."""

import json
from pathlib import Path

import pytest
from tests.acceptance.cli.program import git
from tests.acceptance.control.workshop import Workshop
from tests.acceptance.sandbox import task

HELD_OUT = {"run": "sh unseen/check.sh", "files": "unseen/check.sh"}


@pytest.mark.parametrize(
    ("tracked", "settings", "words"),
    [
        (("unseen/check.sh",), {}, "unseen/check.sh is in git"),
        (("plan.json",), {}, "plan.json is in git"),
        ((), {"copy_files": ["unseen"]}, "unseen/check.sh is copied into workspaces (copy_files)"),
    ],
)
def test_held_out_checks_that_agents_would_see_are_refused(
    tmp_path: Path, tracked: tuple[str, ...], settings: dict[str, object], words: str
) -> None:
    shop = Workshop(tmp_path)
    (shop.repository / "unseen").mkdir()
    (shop.repository / "unseen" / "check.sh").write_text("true\n")
    plan = shop.repository / "plan.json"
    tasks = [task("it", "test -d .", held_out=HELD_OUT)]
    plan.write_text(json.dumps({"title": "it", "tasks": tasks, "settings": settings}))
    if tracked:
        git(shop.repository, "add", *tracked)
        git(shop.repository, "commit", "-q", "-m", "shown")
    for command in (("run",), ("plan", "check")):
        said = shop(*command, str(plan))
        assert said.code == 2, said.out + said.err
        assert f"{words}, so agents would see what is held out" in said.err
        assert "outside of the repository, or ignored by git" in said.err
