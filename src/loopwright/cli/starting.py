"""What `run` and `plan check` look at in the same way: the plan file, and the project's settings at its base."""

from dataclasses import dataclass
from pathlib import Path

from loopwright.adapters import registry
from loopwright.adapters.git import GitRepository
from loopwright.adapters.sources.reading import read, recognise
from loopwright.cli.context import Place, project_text
from loopwright.config.layers import PROJECT_FILE
from loopwright.ports import PlannedWork


def read_plan(path: Path, kind: str | None = None) -> tuple[str, PlannedWork]:
    """Return the kind of a source and what it asks for, or raise `BadPlan`."""
    source = registry.source(kind) if kind else recognise(path, registry.sources())
    return source.kind, read(source, path)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSettings:
    """The project file that counts."""

    text: str | None = None
    file: str | None = None
    """Relative to the repository; None when there is no such file."""
    committed: bool = False
    """Whether it was read from the commit; only where that has none, the checkout's counts."""


async def project_settings(repository: GitRepository, sha: str, place: Place) -> ProjectSettings:
    """Return the project's settings: those of the commit that a plan starts from, else of the checkout."""
    for folder in dict.fromkeys((place.subfolder, "")):
        file = (Path(folder) / PROJECT_FILE).as_posix()
        text = await repository.file_at(sha, file)
        if text is not None:
            return ProjectSettings(text=text, file=file, committed=True)
    return settings_in_checkout(place)


def settings_in_checkout(place: Place) -> ProjectSettings:
    """Return the loopwright.toml that lies in the checkout, if there is one."""
    for folder in dict.fromkeys((place.subfolder, "")):
        text = project_text(place.root / folder)
        if text is not None:
            return ProjectSettings(text=text, file=(Path(folder) / PROJECT_FILE).as_posix())
    return ProjectSettings()
