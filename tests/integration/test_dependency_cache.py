"""Dependencies that were installed once and are copied into other trees."""

import subprocess
import sys
from pathlib import Path

import pytest

from loopwright.adapters.home.dependency_cache import DependencyCache


async def test_a_virtual_environment_works_where_it_was_copied_to(tmp_path: Path) -> None:
    """A real one: its scripts name the place where it was made, which is gone by then."""
    first, second = tmp_path / "first", tmp_path / "second"
    for tree in (first, second):
        (tree / "src").mkdir(parents=True)
        (tree / "src" / "own.py").write_text("")
        (tree / ".env").write_text("mine")
    cache = DependencyCache(tmp_path / "kept")
    tracked = ["src/own.py"]
    before = await cache.untracked(first, tracked)
    assert before == {".env"}
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", first / ".venv"], check=True)
    script = first / ".venv" / "bin" / "where"
    script.write_text(f"#!{first}/.venv/bin/python\nimport sys\nprint(sys.prefix)\n")
    script.chmod(0o555)
    (first / ".venv" / "link").symlink_to(script)
    (first / "src" / "built.txt").write_text("built")
    made = await cache.untracked(first, tracked) - before
    assert made == {".venv", "src/built.txt"}, (
        "a folder as one path; what was there before is not the command's"
    )
    await cache.keep("proj", "key", first, made)
    first.rename(tmp_path / "gone")
    (second / ".venv").mkdir()
    (second / ".venv" / "half").write_text("what a killed copy left")
    assert cache.has("proj", "key")
    assert not cache.has("other", "key")
    await cache.lay("proj", "key", second, tracked)
    for name in ("bin/where", "link"):
        said = subprocess.run([second / ".venv" / name], capture_output=True, text=True, check=True)
        assert said.stdout.strip() == str(second / ".venv")
    assert not (second / ".venv" / "half").exists()
    assert (second / "src" / "built.txt").read_text() == "built"
    assert (second / ".env").read_text() == "mine"


async def test_only_the_environments_used_last_are_kept(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "made").write_text("")
    cache = DependencyCache(tmp_path / "kept")
    for number in range(7):
        await cache.keep("proj", f"key{number}", tmp_path / "tree", ["made"])
        await cache.lay("proj", "key0", tmp_path / "tree", ())
    assert cache.has("proj", "key0"), "it was used all the time"
    assert cache.has("proj", "key6")
    assert sum(cache.has("proj", f"key{number}") for number in range(7)) == 5


async def test_what_is_tracked_is_never_replaced_and_half_a_copy_is_taken_back(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for name in ("lib/a", "other/b"):
        (first / name).parent.mkdir(parents=True)
        (first / name).write_text("made")
    cache = DependencyCache(tmp_path / "kept")
    await cache.keep("proj", "key", first, ["lib", "other/b"])
    (second / "lib").mkdir(parents=True)
    (second / "lib" / "ours").write_text("tracked")
    (tmp_path / "users").mkdir()
    (second / "other").symlink_to(tmp_path / "users")
    for tracked in (["lib/ours"], ["lib"], ["other"]):
        with pytest.raises(OSError, match="tracked"):
            await cache.lay("proj", "key", second, tracked)
    assert (second / "lib" / "ours").read_text() == "tracked"
    assert list((tmp_path / "users").iterdir()) == []

    (second / "other").unlink()
    (tmp_path / "kept" / "proj" / "key" / "files" / "other" / "b").unlink()
    with pytest.raises(OSError, match="could not be copied"):
        await cache.lay("proj", "key", second, ())
    assert not (second / "lib").exists(), "half of the dependencies would pass for all of them"
    (tmp_path / "kept" / "proj" / "key" / "moved.json").write_text("")
    with pytest.raises(OSError, match="damaged"):
        await cache.lay("proj", "key", second, ())
