"""What `run` and `plan check` look at in the same way: the plan file, and the project's settings at its base."""

from pathlib import Path

from loopwright.adapters import registry
from loopwright.adapters.git import GitRepository
from loopwright.cli.context import Place, project_text
from loopwright.config.layers import PROJECT_FILE
from loopwright.core.errors import BadPlan
from loopwright.ports import PlannedWork

_KINDS = {".yaml": "yaml", ".yml": "yaml", ".json": "yaml"}


def read_plan(path: Path) -> tuple[str, PlannedWork]:
    """Return the kind of a plan file and what it holds, or raise `BadPlan`."""
    if not path.exists():
        raise BadPlan(str(path), ("there is no such file",))
    kind = _KINDS.get(path.suffix.lower())
    if kind is None:
        ending = path.suffix or "a file without an ending"
        raise BadPlan(str(path), (f"{ending} is not a plan: use .yaml or .json",))
    return kind, registry.source(kind).read(path)


async def settings_text(repository: GitRepository, sha: str, place: Place) -> tuple[str | None, bool]:
    """Return the project's settings and whether they are committed: those of the base, else of the checkout."""
    for folder in dict.fromkeys((place.subfolder, "")):
        text = await repository.file_at(sha, str(Path(folder) / PROJECT_FILE))
        if text is not None:
            return text, True
    return settings_in_checkout(place), False


def settings_in_checkout(place: Place) -> str | None:
    """Return the text of the loopwright.toml that lies in the checkout, if there is one."""
    return project_text(place.root / place.subfolder) or project_text(place.root)
