"""The repository around a folder and its checkouts, found without asking git: for commands that only read."""

from pathlib import Path


def repository_around(folder: Path) -> Path | None:
    """Return the top of the repository that a folder is in.

    An empty folder called `.git` does not count: sandboxes leave such folders behind, in /tmp for example.
    """
    return next((root for root in (folder, *folder.parents) if _is_top(root / ".git")), None)


def checkouts(root: Path) -> tuple[Path, ...]:
    """Return every checkout of a repository, the given one first: linked worktrees share git's data."""
    try:
        common = _common_dir(root / ".git")
    except (OSError, ValueError):
        return (root,)  # incomplete, or not readable: then it has no others
    main = [common.parent] if common.name == ".git" else []
    linked = []
    for pointer in sorted(common.glob("worktrees/*/gitdir")):
        try:
            linked.append(_joined(pointer.parent, pointer.read_text("utf-8")).parent)
        except (OSError, ValueError):
            continue  # git prunes it
    return tuple(dict.fromkeys([root, *main, *linked]))


def has_branch(root: Path, branch: str) -> bool:
    """Return whether a repository has a branch; if only git can read its refs, assume that it has."""
    name = f"refs/heads/{branch}"
    try:
        common = _common_dir(root / ".git")
        if (common / name).exists() or (common / "reftable").exists():
            return True
        packed = (common / "packed-refs").read_text("utf-8", errors="replace")
    except (OSError, ValueError):
        return False
    return any(line.partition(" ")[2] == name for line in packed.splitlines())


def _common_dir(dot_git: Path) -> Path:
    if dot_git.is_dir():
        return dot_git.resolve()
    said = dot_git.read_text("utf-8")
    own = _joined(dot_git.parent, said.removeprefix("gitdir:"))
    shared = own / "commondir"
    return _joined(own, shared.read_text("utf-8")) if shared.is_file() else own


def _joined(folder: Path, text: str) -> Path:
    return (folder / text.strip()).resolve()


def _is_top(path: Path) -> bool:
    return (path / "HEAD").exists() if path.is_dir() else path.exists()
