"""What `run` and `plan check` look at in the same way: the plan file, and the project's settings at its base."""

import os
from pathlib import Path

from loopwright.adapters import registry
from loopwright.adapters.git import GitRepository
from loopwright.adapters.sources.folders import meant
from loopwright.adapters.sources.text.reading import check_there, folder_of, most_specific, read, recognise
from loopwright.core.values.errors import BadPlan, UserError
from loopwright.ports import PlannedWork, Source
from loopwright.services.homes.context import (
    Place,
    ProjectSettings,
    given_settings,
    project_file,
    settings_in_checkout,
)


def named(text: str) -> Path:
    """Return the path that the user typed; refuse an empty one, such as a variable that is not set."""
    if not text.strip():
        raise UserError(
            "the name of the plan is empty",
            code="plan_name_empty",
            hint="name a file with tasks, such as plan.yaml",
        )
    return Path(text)


def meant_path(path: Path, kind: str | None = None) -> Path:
    """Return where the work is that a path means: a folder means the one source in it, at its canonical path."""
    place = meant(path, registry.sources(), kind)
    sources = [registry.source(kind)] if kind else registry.sources()
    found = most_specific([one for one in sources if one.recognises(place)])
    return found[0].canonical(place) if len(found) == 1 else place


def read_plan(path: Path, kind: str | None = None) -> tuple[Source, PlannedWork]:
    """Return what reads a source, and what the source asks for, or raise `BadPlan`."""
    check_there(path)
    source = registry.source(kind) if kind else recognise(path, registry.sources())
    try:
        return source, read(source, path)
    except BadPlan as wrong:
        wrong.kind = source.kind
        raise


async def tracked_files(
    repository: GitRepository, sha: str, source: Source, path: Path, root: Path
) -> tuple[str, ...]:
    """Return the files of a source that a commit has, relative to the repository; none if its format has no status."""
    if not source.has_status or source.has_program(path):
        return ()
    folder = os.path.relpath(folder_of(path.resolve()), root)
    files = source.files(path)
    told = source.status_files(files)
    names = {os.path.normpath(f"{folder}/{name}"): name for name in files}
    found = await repository.files_at(sha, [path for path in names if not path.startswith("..")])
    if not any(names[path] in told for path in found):
        return ()  # what git tracks of it has no place for status
    more = [os.path.normpath(f"{folder}/{name}") for name in source.creates]
    return tuple(dict.fromkeys((*found, *more)))


async def project_settings(
    repository: GitRepository, sha: str, place: Place, given: Path | None = None
) -> ProjectSettings:
    """Return the project's settings: of the file that the user names, else of the commit, else of the checkout."""
    if given is not None:
        return given_settings(given)
    file = project_file(place)
    text = await repository.file_at(sha, file)
    if text is not None:
        return ProjectSettings(text=text, file=file, committed=True)
    return settings_in_checkout(place)
