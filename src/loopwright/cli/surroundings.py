"""The repository around a folder, found without asking git: for commands that only look."""

from pathlib import Path


def repository_around(folder: Path) -> Path | None:
    """Return the top of the repository that a folder is in.

    An empty folder called `.git` makes none: sandboxes leave such ones behind, in /tmp for example.
    """
    return next((root for root in (folder, *folder.parents) if _is_top(root / ".git")), None)


def _is_top(path: Path) -> bool:
    return (path / "HEAD").exists() if path.is_dir() else path.exists()
