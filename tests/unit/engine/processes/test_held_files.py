"""Held-out files are kept by their hash, and win over whatever the work has in their place."""

import hashlib
from pathlib import Path

import pytest
from tests.refusals import raises_code

from loopwright.core.values.policy import HeldFile
from loopwright.engine.processes.held_files import keep, lay, missing
from loopwright.engine.rows.world import HomePaths

CONTENT = b"assert True\n"
SHA = hashlib.sha256(CONTENT).hexdigest()
FILE = HeldFile(path="unseen/deep/check.py", sha256=SHA)


@pytest.fixture
def paths(tmp_path: Path) -> HomePaths:
    found = HomePaths(root=tmp_path / "home")
    keep(found, {SHA: CONTENT})
    return found


@pytest.mark.parametrize("there", ["nothing", "link", "file", "folder"])
def test_a_file_is_laid_whatever_is_there(paths: HomePaths, tmp_path: Path, there: str) -> None:
    tree, elsewhere = tmp_path / "tree", tmp_path / "elsewhere"
    tree.mkdir()
    elsewhere.mkdir()
    if there == "link":
        (tree / "unseen").symlink_to(elsewhere)
    elif there == "file":
        (tree / "unseen").write_text("in the way")
    elif there == "folder":
        (tree / "unseen" / "deep" / "check.py").mkdir(parents=True)
    lay(paths, tree, (FILE,))
    assert (tree / FILE.path).read_bytes() == CONTENT
    assert not list(elsewhere.iterdir())
    assert missing(paths, (FILE,)) == []


@pytest.mark.parametrize("change", ["gone", "other"])
def test_a_file_that_is_not_as_it_was_submitted_is_not_used(
    paths: HomePaths, tmp_path: Path, change: str
) -> None:
    kept = paths.held_out() / SHA
    kept.unlink() if change == "gone" else kept.write_bytes(b"assert False\n")
    with raises_code("cannot_run"):
        lay(paths, tmp_path, (FILE,))
    assert missing(paths, (FILE,)) == [FILE.path]
