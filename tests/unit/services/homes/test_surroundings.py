"""Which checkouts belong to one repository, as git made them."""

import subprocess
from pathlib import Path

from loopwright.services.homes.repository import checkouts, repository_around


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def test_linked_worktrees_are_checkouts_of_one_repository_and_a_submodule_is_not(tmp_path: Path) -> None:
    main, linked, third, bare = (tmp_path / name for name in ("main", "linked", "third", "bare.git"))
    main.mkdir()
    git(main, "init", "-q", "-b", "main")
    git(main, "commit", "-q", "--allow-empty", "-m", "first")
    git(main, "worktree", "add", "-q", str(linked))
    git(main, "worktree", "add", "-q", str(third))
    (linked / "below").mkdir()
    assert repository_around(linked / "below") == linked
    assert checkouts(main) == (main, linked, third)
    assert checkouts(linked) == (linked, main, third)

    git(tmp_path, "clone", "-q", "--bare", str(main), str(bare))
    git(bare, "worktree", "add", "-q", str(tmp_path / "one"), "main")
    git(bare, "worktree", "add", "-q", "-b", "more", str(tmp_path / "two"))
    assert checkouts(tmp_path / "two") == (tmp_path / "two", tmp_path / "one")

    git(main, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(bare), "part")
    assert checkouts(main / "part") == (main / "part",)

    (third / ".git").write_text("no such thing")
    assert checkouts(third) == (third,)
