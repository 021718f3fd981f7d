"""Installed dependencies, kept in the home by key and copied into the workspaces that need the same ones."""

import asyncio
import contextlib
import json
import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from loopwright.adapters.machine.files import copy_tree, delete

_KEPT: Final = 5
"""How many environments are kept per project; the least recently used ones go first."""
_TEXT_LIMIT: Final = 1 << 20
_MOVED: Final = "moved.json"
_FILES: Final = "files"


class DependencyCache:
    """`ports.DependencyCache` on the disk of the home."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def has(self, project_id: str, key: str) -> bool:
        """Return whether the dependencies of this key are here."""
        return (self._root / project_id / key).is_dir()

    def filling(self, key: str) -> contextlib.AbstractAsyncContextManager[None]:
        """Return a lock: one workspace installs, and the others with the same key wait for the result."""
        return self._locks[key]

    async def lay(self, project_id: str, key: str, tree: Path, tracked: Collection[str]) -> None:
        """Copy the dependencies of this key into a tree, in place of what is untracked at their paths.

        All of them or none: raise `OSError` where that fails, or where a tracked file is in their way.
        """
        await asyncio.to_thread(_lay, self._root / project_id / key, tree, frozenset(tracked))

    async def untracked(self, tree: Path, tracked: Collection[str]) -> frozenset[str]:
        """Return what a tree has beside its tracked files, folders as one path where that is possible."""
        return await asyncio.to_thread(lambda: frozenset(_untracked(tree, tracked)))

    async def keep(self, project_id: str, key: str, tree: Path, paths: Collection[str]) -> None:
        """Keep these paths of a tree under this key."""
        await asyncio.to_thread(_keep, self._root / project_id, key, tree, sorted(paths))


def _lay(kept: Path, tree: Path, tracked: frozenset[str]) -> None:
    moved = _moved(kept)
    folders = {str(parent) for name in tracked for parent in Path(name).parents}
    for name in moved["paths"]:
        # A link among them could lead out of the tree.
        above = {str(parent) for parent in Path(name).parents}
        if name in tracked or name in folders or not above.isdisjoint(tracked):
            raise OSError(f"{name} is tracked now, or in the place of a tracked file")
    try:
        for name in moved["paths"]:
            _put(kept / _FILES / name, tree, name)
        _turn_to(tree, moved)
    except OSError:
        # Half of an environment, or one that names another tree, is worse than none.
        for name in moved["paths"]:
            delete(tree / name)
        raise
    os.utime(kept)


def _moved(kept: Path) -> dict[str, Any]:
    try:
        moved: dict[str, Any] = json.loads((kept / _MOVED).read_text("utf-8"))
    except ValueError as damaged:
        raise OSError(f"{kept / _MOVED} is damaged: {damaged}") from damaged
    return moved


def _put(source: Path, tree: Path, name: str) -> None:
    target = tree / name
    target.parent.mkdir(parents=True, exist_ok=True)
    # Beside its place first: a kill in the middle leaves no half of an environment.
    draft = Path(tempfile.mkdtemp(dir=tree, prefix=".loopwright-"))
    try:
        copy_tree(source, draft / "copy")
        delete(target)
        (draft / "copy").rename(target)
    finally:
        delete(draft)


def _turn_to(tree: Path, moved: Mapping[str, Any]) -> None:
    """Have what was copied name the tree that it is in now."""
    old, new = os.fsencode(moved["tree"]), os.fsencode(tree)
    for name in moved["texts"]:
        path = tree / name
        mode = path.stat().st_mode
        content = path.read_bytes().replace(old, new)
        path.chmod(mode | 0o200)
        path.write_bytes(content)
        path.chmod(mode)
    for name in moved["links"]:
        path = tree / name
        target = os.fsencode(path.readlink()).replace(old, new)
        path.unlink()
        path.symlink_to(os.fsdecode(target))


def _keep(folder: Path, key: str, tree: Path, paths: Collection[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=folder, prefix=".draft-"))
    try:
        for name in paths:
            copy = draft / _FILES / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy_tree(tree / name, copy)
        # An environment names the place where it was made: in the first lines of its scripts, for example.
        texts, links = _naming(tree, paths)
        facts = {"tree": str(tree), "paths": list(paths), "texts": texts, "links": links}
        (draft / _MOVED).write_text(json.dumps(facts), "utf-8")
        if not (folder / key).exists():
            draft.rename(folder / key)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    whole = sorted((one for one in folder.iterdir() if not one.name.startswith(".")), key=_used_at)
    for one in whole[:-_KEPT]:
        shutil.rmtree(one, ignore_errors=True)


def _used_at(kept: Path) -> float:
    try:
        return kept.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _naming(tree: Path, paths: Collection[str]) -> tuple[list[str], list[str]]:
    """Return the text files, and the links, that hold the path of the tree."""
    here = os.fsencode(tree)
    texts, links = [], []
    for path in _files(tree, paths):
        name = str(path.relative_to(tree))
        if path.is_symlink():
            if here in os.fsencode(path.readlink()):
                links.append(name)
        elif path.is_file() and path.stat().st_size <= _TEXT_LIMIT:
            content = path.read_bytes()
            if here in content and b"\0" not in content:
                texts.append(name)
    return texts, links


def _files(tree: Path, paths: Collection[str]) -> Iterator[Path]:
    for name in paths:
        path = tree / name
        if path.is_symlink() or not path.is_dir():
            yield path
            continue
        for folder, folders, files in os.walk(path):
            yield from (Path(folder, each) for each in files)
            yield from (one for one in (Path(folder, each) for each in folders) if one.is_symlink())


def _untracked(tree: Path, tracked: Collection[str]) -> Iterator[str]:
    known = set(tracked)
    parents = {str(parent) for name in known for parent in Path(name).parents}
    waiting = [tree]
    while waiting:
        for entry in os.scandir(waiting.pop()):
            name = str(Path(entry.path).relative_to(tree))
            if name == ".git" or name in known:
                continue
            if name in parents and entry.is_dir(follow_symlinks=False):
                waiting.append(Path(entry.path))
            else:
                yield name
