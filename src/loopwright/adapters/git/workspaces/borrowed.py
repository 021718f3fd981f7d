"""Where the objects lie that workspaces borrow: what a contained process has to be able to read."""

from collections.abc import Iterator
from pathlib import Path

from loopwright.adapters.git.plumbing.private_git import Depot

_DEEPEST = 5
"""Git itself follows no longer chains."""


def borrowed(depot: Depot) -> tuple[Path, ...]:
    """Return the folders of objects of a project, of its submodules, and of those that they borrow from in turn.

    Read from the user's repository and ours alone: what a workspace says of it may be an agent's word.
    """
    found = [depot.objects, depot.source.objects]
    found += _of_modules(depot.path / "modules")
    found += _of_modules(depot.source.common_dir / "modules")
    for _ in range(_DEEPEST):
        found += [path for folder in found for path in _alternates(folder) if path not in found]
    return tuple(dict.fromkeys(found))


def _of_modules(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("objects") if folder.is_dir() else ():
        if (path.parent / "HEAD").is_file():
            yield path


def _alternates(objects: Path) -> Iterator[Path]:
    try:
        text = (objects / "info" / "alternates").read_text(encoding="utf-8", errors="surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return
    for line in text.splitlines():
        if line and not line.startswith("#"):
            yield (objects / line).resolve()
