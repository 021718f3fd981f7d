"""The work that a project has is found in every form, what is open and newest first."""

import os
from pathlib import Path

from tests.wording_plugin import Wording

from loopwright.services.projects.found_work import find_work

TRACK = "# Track\n\n## Phase 1\n\n- [x] Begin\n- [ ] Go on\n"


def write(path: Path, text: str, at: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (at, at))


def test_open_work_comes_first_and_of_that_the_newest(tmp_path: Path, wording: Wording) -> None:
    write(tmp_path / "conductor/tracks/old/plan.md", TRACK, 1_000)
    write(tmp_path / "conductor/tracks/new/plan.md", TRACK, 9_000)
    write(tmp_path / "PROMPT.md", "Tidy up.\n", 20_000)
    write(tmp_path / "plans/done.yaml", "title: x\ntasks: [{id: a, title: A, status: done}]\n", 30_000)
    write(tmp_path / "feature_list.json", "{", 40_000)
    found = {os.path.relpath(one.path, tmp_path): one for one in find_work(tmp_path)}
    assert list(found)[:3] == ["conductor/tracks/new", "conductor/tracks/old", "PROMPT.md"]
    assert found["conductor/tracks/new"].summary == "plan_md, 1 of 2 open"
    assert found["plans/done.yaml"].open == 0
    assert found["feature_list.json"].problem
    wording(found["feature_list.json"].summary)


def test_an_empty_folder_has_no_work(tmp_path: Path) -> None:
    assert find_work(tmp_path) == ()
