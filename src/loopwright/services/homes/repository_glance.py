"""A glance at the repository around the current folder that leaves no trace in the home."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from loopwright.adapters.git import GitRepository
from loopwright.core.values.errors import NotARepository
from loopwright.services.homes.caller import current_folder
from loopwright.services.homes.context import Place, here, standing


def needed_place(plan: Path | None = None) -> Place:
    """Return the project around the current folder, or of a plan, or raise with what to do."""
    return _needed(here(plan))


def needed_folder() -> Place:
    """Return the current folder in its repository, or raise with what to do."""
    return _needed(standing())


def _needed(place: Place | None) -> Place:
    if place is None:
        raise NotARepository(
            f"{current_folder()} is not in a git repository",
            code="not_a_repository",
            hint="change into your project, or `git init` and commit something first",
        )
    return place


@contextmanager
def glance_at(root: Path) -> Iterator[GitRepository]:
    """Open a repository for a glance; what that needs on the side is thrown away."""
    with TemporaryDirectory(prefix="loopwright-glance-") as scratch:
        yield GitRepository(root, project_id="glance", home=Path(scratch))
