"""Submodules: set up in a workspace from the user's own clones, without the network."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from loopwright.adapters.git.plumbing.place import Source
from loopwright.adapters.git.plumbing.runner import Git, own_env

_GITLINK_MODE = (0o160000).to_bytes(4, "big")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gitlink:
    """A place in a tree that names a commit of another repository."""

    path: bytes
    sha: str


async def gitlinks(git: Git, git_dir: Path, index: Path) -> tuple[Gitlink, ...]:
    """Return the submodules of an index; costs no process when there cannot be any."""
    if _GITLINK_MODE not in index.read_bytes():
        return ()
    done = await git.run("ls-files", "-s", "-z", env=own_env(git_dir, index=index))
    found = []
    for entry in done.out.split(b"\0"):
        if entry.startswith(b"160000 "):
            head, _, path = entry.partition(b"\t")
            found.append(Gitlink(path=path, sha=head.split()[1].decode("ascii")))
    return tuple(found)


async def names(git: Git, work_tree: Path) -> Mapping[bytes, str]:
    """Return the names that `.gitmodules` gives to the paths of a fresh checkout."""
    file = work_tree / ".gitmodules"
    if not file.is_file() or file.is_symlink():
        return {}
    done = await git.run(
        "config",
        "-z",
        "-f",
        str(file),
        "--get-regexp",
        r"^submodule\..*\.path$",
        env=own_env(work_tree / ".git"),
        ok=(0, 1),
    )
    found = {}
    for entry in done.out.split(b"\0"):
        key, separator, path = entry.partition(b"\n")
        if separator:
            found[path] = os.fsdecode(key)[len("submodule.") : -len(".path")]
    return found


def clone_of(checkout: Path | None, owner: Source, gitlink: Gitlink, name: str | None) -> Source | None:
    """Find the user's clone of a submodule: in their checkout, or put away in their git dir."""
    candidates = []
    if checkout is not None:
        candidates.append(_git_dir_of(checkout / os.fsdecode(gitlink.path)))
    if name is not None and ".." not in Path(name).parts:
        candidates += [owner.git_dir / "modules" / name, owner.common_dir / "modules" / name]
    for found in candidates:
        if found is not None and (source := source_of(found, owner.object_format)) is not None:
            return source
    return None


def source_of(git_dir: Path, object_format: str) -> Source | None:
    """Describe a git dir of the user's by its files; None when it is none."""
    common = git_dir
    pointer = git_dir / "commondir"
    if pointer.is_file():
        common = (git_dir / pointer.read_text(encoding="utf-8").strip()).resolve()
    if not (common / "objects").is_dir() or not (git_dir / "HEAD").exists():
        return None
    return Source(git_dir=git_dir, common_dir=common, objects=common / "objects", object_format=object_format)


def key_of(path: bytes) -> str:
    """Return a short name for a submodule, safe in a path."""
    return hashlib.sha256(path).hexdigest()[:16]


def _git_dir_of(folder: Path) -> Path | None:
    pointer = folder / ".git"
    if pointer.is_dir():
        return pointer.resolve()
    if not pointer.is_file():
        return None
    text = pointer.read_text(encoding="utf-8", errors="surrogateescape")
    if not text.startswith("gitdir: "):
        return None
    return (folder / text.removeprefix("gitdir: ").rstrip("\n")).resolve()
