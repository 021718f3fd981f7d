"""Worlds for the tests of git work."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.git.world import World, sh, start_repository

from loopwright.adapters.git import GitRepository


@pytest.fixture(autouse=True)
def own_git_configuration(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the machine's git configuration out of the tests."""
    file = tmp_path_factory.mktemp("configuration") / "gitconfig"
    file.write_text(
        "[user]\n\tname = Ada\n\temail = ada@example.org\n"
        '[init]\n\tdefaultBranch = trunk\n[protocol "file"]\n\tallow = always\n'
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(file))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(file.parent))
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    return file


@pytest.fixture
def make_world(tmp_path: Path) -> Callable[..., World]:
    """Make worlds."""

    def make(user: Path | None = None, **options: Any) -> World:
        if user is None:
            files = {
                "app.py": "print('one')\n",
                "docs/readme.md": "hello\n",
                ".gitignore": "*.log\n.env\nbuild/\n",
            }
            user = start_repository(tmp_path / "user", files)
        home = tmp_path / "home"
        home.mkdir(exist_ok=True)
        repository = GitRepository(user, project_id="proj_1", home=home, **options)
        return World(
            user=user, home=home, repository=repository, base_sha=sh(user, "git", "rev-parse", "HEAD")
        )

    return make


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    """Return a user with a small repository."""
    return make_world()
