"""A glance at the repository around the current folder that leaves no trace in the home."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from loopwright.adapters.git import GitRepository
from loopwright.cli.context import Place, here
from loopwright.core.errors import NotARepository


def needed_place() -> Place:
    """Return the repository around the current folder, or raise with what to do."""
    place = here()
    if place is None:
        raise NotARepository(
            f"{Path.cwd()} is not in a git repository",
            hint="change into your project, or `git init` and commit something first",
        )
    return place


@contextmanager
def glance_at(root: Path) -> Iterator[GitRepository]:
    """Open a repository for a glance; what that needs on the side is thrown away."""
    with TemporaryDirectory(prefix="loopwright-glance-") as scratch:
        yield GitRepository(root, project_id="glance", home=Path(scratch))
