"""Where agents are told that a source's specifications are."""

import json
from pathlib import Path

import pytest
from tests.acceptance.cli.program import git, repository

from loopwright.adapters.sources.test_state.test_state import LoopTestsSource
from loopwright.adapters.sources.text.reading import read
from loopwright.services.homes.context import Place, glance_at
from loopwright.services.preflight.spec_loader import with_specs

TESTS = {
    "loopName": "path",
    "lastUpdated": "2026-01-07T09:15:00Z",
    "summary": {"total": 1, "passed": 0, "failed": 0, "blocked": 0, "pending": 1},
    "tests": [{"id": "CP-A-001", "category": "a", "status": "pending", "passCriteria": ["`test -s made`"]}],
}


def config(specs: str) -> str:
    return json.dumps({"name": "path", "specs_dir": specs, "test_state_file": "test-state.json"})


async def told(
    root: Path, plan: Path, *, subfolder: str = "", copied: tuple[str, ...] = ()
) -> tuple[str, tuple[str, ...]]:
    """Return the path that agents are told, and the notes."""
    sha = git(root, "rev-parse", "HEAD").strip()
    with glance_at(root) as repository:
        place = Place(root=root, subfolder=subfolder)
        work, notes = await with_specs(repository, sha, place, plan, read(LoopTestsSource(), plan), copied)
    return work.context.removeprefix("The specifications are in ").partition(": read")[0], notes


@pytest.mark.parametrize("named", ["specs", "loops/path/specs", "app/loops/path/specs"])
@pytest.mark.parametrize(
    ("subfolder", "path"),
    [("", "app/loops/path/specs"), ("app", "loops/path/specs"), ("lib", "../app/loops/path/specs")],
)
async def test_the_path_is_valid_in_the_workspace_wherever_the_source_and_the_project_are(
    tmp_path: Path, named: str, subfolder: str, path: str
) -> None:
    loop = "app/loops/path"
    files = {f"{loop}/config.json": config(named), f"{loop}/specs/test-state.json": json.dumps(TESTS)}
    repository(tmp_path / "repo", {**files, f"{loop}/specs/spec.md": "# Spec\n", "lib/a.txt": "a\n"})
    root = tmp_path / "repo"
    git(root, "worktree", "add", "-q", str(tmp_path / "workspace"))
    for plan in (loop, f"{loop}/config.json", f"{loop}/specs", f"{loop}/specs/test-state.json"):
        assert await told(root, root / plan, subfolder=subfolder) == (path, ()), plan
    assert (tmp_path / "workspace" / subfolder / path / "spec.md").is_file()


async def test_agents_are_not_told_of_what_their_workspace_does_not_have(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    repository(root, {"config.json": config("specs"), "test-state.json": json.dumps(TESTS)})
    context, [note] = await told(root, root / "config.json")
    assert (context, note) == (
        "",
        "config.json: specs_dir: there is no folder specs, so agents get no specifications",
    )
    (root / "specs").mkdir()
    (root / "specs" / "spec.md").touch()
    context, [note] = await told(root, root / "config.json")
    assert not context
    assert note.endswith("so agents cannot read it: commit it, or name it in copy_files")
    assert await told(root, root / "config.json", copied=("specs",)) == ("specs", ())
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "specs" / "spec.md").unlink()
    (root / "specs").rmdir()
    (root / "specs").symlink_to(outside)
    context, [note] = await told(root, root / "config.json")
    assert not context
