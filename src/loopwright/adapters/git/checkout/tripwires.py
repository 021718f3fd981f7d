"""The watch over the user's own checkout: a cheap fingerprint, and plain words for what changed."""

import asyncio
import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from loopwright.adapters.git.plumbing.names import display
from loopwright.adapters.git.plumbing.place import Place
from loopwright.adapters.git.plumbing.refs import RefFiles
from loopwright.adapters.git.plumbing.runner import Git, user_env
from loopwright.core.values.errors import RepositoryGone
from loopwright.core.values.state_folders import is_state_path
from loopwright.ports import Tripwire

_FILE_LIMIT: Final = 8 << 20
_TOTAL_LIMIT: Final = 128 << 20
_COUNT_LIMIT: Final = 2000
_AT_ONCE: Final = 500
_NO_TEXT: Final = "\ufffd"
_OURS: Final = "refs/heads/loopwright/"
_THEIRS: Final = ("refs/heads", "refs/tags", "refs/stash", "refs/notes", "refs/replace")
_WATCHED: Final = ("config", "config.worktree", "info/exclude", "info/attributes", "info/grafts", "shallow")


async def status(git: Git, place: Place, home: Path) -> tuple[str, str, Mapping[bytes, str]]:
    """Return branch, commit and changed paths of the user's checkout; writes nothing, not even its index."""
    assert place.toplevel is not None
    done = await git.run(
        "status",
        "--porcelain=v2",
        "-z",
        "--branch",
        "--no-ahead-behind",
        "--no-renames",
        "--untracked-files=all",
        env=user_env(),
        cwd=place.toplevel,
    )
    branch, sha = "", ""
    changed: dict[bytes, str] = {}
    for entry in done.out.split(b"\0"):
        if entry.startswith(b"# branch.oid "):
            sha = entry[13:].decode("ascii")
        elif entry.startswith(b"# branch.head "):
            branch = display(entry[14:])
        elif entry.startswith((b"1 ", b"u ")):
            fields = entry.split(b" ", 8 if entry.startswith(b"1 ") else 10)
            changed[fields[-1]] = b" ".join(fields[1:-1]).decode("ascii")
        elif entry.startswith(b"? "):
            changed[entry[2:]] = "?"
    return branch, sha, {path: mark for path, mark in changed.items() if not _is_ours(place, home, path)}


def _is_ours(place: Place, home: Path, path: bytes) -> bool:
    name = os.fsdecode(path)
    assert place.toplevel is not None
    return is_state_path(name) or (place.toplevel / name).is_relative_to(home)


async def take(git: Git, place: Place, home: Path) -> Tripwire:
    """Take a fingerprint of the user's checkout and repository; raise if all is gone."""
    if not (place.source.common_dir / "HEAD").is_file():
        # Asked by itself, because git would look for another repository further up.
        raise RepositoryGone(
            f"the git repository of your project is gone: {place.source.common_dir}. What landed was in there. Put it "
            "back from a copy that has its branches and refs, then `loopwright resume`."
        )
    if place.toplevel is None:
        refs, config = await asyncio.gather(_refs(git, place), asyncio.to_thread(_config, place))
        head = (place.source.git_dir / "HEAD").read_text(encoding="utf-8").strip()
        return Tripwire(head=head, refs=refs, status={}, config=config)
    # Side by side: it is taken twice per attempt, while a slot waits for it.
    refs, (branch, sha, marks), config = await asyncio.gather(
        _refs(git, place), status(git, place, home), asyncio.to_thread(_config, place)
    )
    changed = await asyncio.to_thread(_hashed, place.toplevel, marks) if marks else {}
    return Tripwire(head=f"{branch} {sha}", refs=refs, status=changed, config=config)


async def _refs(git: Git, place: Place) -> Mapping[str, str]:
    files = RefFiles(place.source.common_dir)
    if files.usable:
        return await asyncio.to_thread(files.listing, _THEIRS, without=_OURS)
    listed = await git.run(
        "for-each-ref",
        "--format=%(refname) %(objectname)",
        *_THEIRS,
        env=place.source.env(),
    )
    lines = (line.rpartition(" ") for line in listed.out.decode("utf-8", "replace").splitlines())
    return {name: sha for name, _, sha in lines if not name.startswith(_OURS)}


def stray(before: Tripwire, after: Tripwire) -> tuple[str, ...]:
    """Return in plain words what changed between two fingerprints."""
    found = []
    if before.head != after.head:
        found.append(f"HEAD moved from {before.head} to {after.head}")
    for name in sorted(before.refs.keys() | after.refs.keys()):
        old, new = before.refs.get(name), after.refs.get(name)
        if old == new:
            continue
        if old is None:
            found.append(f"{name} was created at {new}")
        elif new is None:
            found.append(f"{name} was deleted (it was at {old})")
        else:
            found.append(f"{name} moved from {old} to {new}")
    for path in sorted(before.status.keys() | after.status.keys()):
        was, now = before.status.get(path), after.status.get(path)
        if was == now:
            continue
        if now is None:
            found.append(f"{path} is no longer changed or untracked")
        elif was is None:
            found.append(f"{path} was {'added' if now.startswith('?') else 'changed'}")
        else:
            found.append(f"{path} was changed again")
    files = sorted(
        name
        for name in before.config.keys() | after.config.keys()
        if before.config.get(name) != after.config.get(name)
    )
    if files:
        found.append(f"the repository's configuration or hooks were changed: {', '.join(files)}")
    return tuple(found)


async def save_patch(git: Git, place: Place, dest: Path, before: Tripwire, after: Tripwire) -> bool:
    """Write what changed between two fingerprints and is not committed as a patch; False when there is nothing.

    Works on a copy of their index and writes no object, so their repository stays as it is. Of a file that had changes
    before, these are in it too.
    """
    moved = sorted(path for path, now in after.status.items() if before.status.get(path) != now)
    # A name that is not text cannot be given to git again; that it changed is said all the same.
    changed = [f":(top,literal){path}" for path in moved if _NO_TEXT not in path]
    if place.toplevel is None or not changed:
        return False
    with tempfile.TemporaryDirectory() as scratch:
        index, objects = Path(scratch) / "index", Path(scratch) / "objects"
        objects.mkdir()
        env = user_env() | {
            "GIT_INDEX_FILE": str(index),
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(place.source.common_dir / "objects"),
        }
        theirs = place.source.git_dir / "index"
        if theirs.is_file():
            await asyncio.to_thread(shutil.copy2, theirs, index)
        else:
            await git.run("read-tree", "HEAD", env=env, cwd=place.toplevel)
        new = ("add", "--intent-to-add", "--ignore-errors", "--")
        diff = (
            "diff",
            "--binary",
            "--full-index",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
        )
        dest.parent.mkdir(parents=True, exist_ok=True)
        with dest.open("wb") as file:
            for start in range(0, len(changed), _AT_ONCE):
                paths = changed[start : start + _AT_ONCE]
                await git.run(*new, *paths, env=env, cwd=place.toplevel, ok=range(256))
                shown = (*diff, "HEAD", "--", *paths)
                await git.run(*shown, env=env, cwd=place.toplevel, sink=file.write)
    if dest.stat().st_size:
        return True
    dest.unlink()
    return False


def _hashed(top: Path, marks: Mapping[bytes, str]) -> dict[str, str]:
    """Add a content hash to each changed path; beyond the limits, size and time stand in for the content."""
    budget = _TOTAL_LIMIT
    found = {}
    for count, path in enumerate(sorted(marks)):
        file = top / os.fsdecode(path)
        content = "absent"
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            info = file.lstat()
            if stat.S_ISLNK(info.st_mode):
                content = f"link {display(os.fsencode(file.readlink()))}"
            elif not stat.S_ISREG(info.st_mode):
                content = "special"
            elif info.st_size > min(_FILE_LIMIT, budget) or count >= _COUNT_LIMIT:
                content = f"size {info.st_size} at {info.st_mtime_ns}"
            else:
                budget -= info.st_size
                content = _file_hash(file)
        found[display(path)] = f"{marks[path]} {content}"
    return found


def _file_hash(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except PermissionError:
        return "unreadable"


def _config(place: Place) -> dict[str, str]:
    return {name: f"{file.lstat().st_mode} {_file_hash(file)}" for name, file in _watched(place)}


def _watched(place: Place) -> Iterator[tuple[str, Path]]:
    common = place.source.common_dir
    folders = dict.fromkeys((common, place.source.git_dir))
    for folder in folders:
        for name in _WATCHED:
            if (folder / name).is_file():
                yield (name if folder == common else f"{folder.name}/{name}"), folder / name
    hooks = common / "hooks"
    if hooks.is_dir():
        for hook in sorted(hooks.iterdir()):
            if hook.is_file() and hook.suffix != ".sample":
                yield f"hooks/{display(os.fsencode(hook.name))}", hook
