"""Find the work that a project already has, in every known format, with how much of it is open."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final

from loopwright.adapters import registry
from loopwright.adapters.sources.folders import kinds_of, sources_in
from loopwright.adapters.sources.text.reading import called, folder_of, read
from loopwright.core.values.errors import UserError
from loopwright.engine.intake.evaluation import to_do
from loopwright.ports import Source

_MOST: Final = 100
"""The most files that are read for one pattern."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundWork:
    """One source in a project."""

    kind: str
    format_name: str
    path: Path
    open: int = 0
    total: int = 0
    is_prompt: bool = False
    """Whether it is one prompt for every round, which is never finished."""
    changed_at: datetime
    problem: str = ""
    """Why it cannot be read."""

    @property
    def summary(self) -> str:
        """Its kind, as `--source` takes it, and how much of it is open."""
        return self._with_state(self.kind)

    @property
    def summary_in_words(self) -> str:
        """What people call its format, and how much of it is open."""
        return self._with_state(self.format_name)

    def _with_state(self, name: str) -> str:
        if self.problem:
            return f"{name}, cannot be read"
        return name if self.is_prompt else f"{name}, {self.open} of {self.total} open"


def find_work(folder: Path) -> tuple[FoundWork, ...]:
    """Return the sources at their usual places in a folder: those with open work first, the newest first."""
    sources = {one.kind: one for one in registry.sources()}
    found = [_read(sources[kind], path) for kind, path in _places(folder, tuple(sources.values()))]
    return tuple(sorted(found, key=_rank))


def format_name(kind: str) -> str:
    """Return what people call a format; its kind if the package that reads it is gone."""
    return _called(registry.source(kind)) if kind in registry.known_sources() else kind


def _called(source: Source) -> str:
    return source.format_name or source.kind


def _rank(found: FoundWork) -> tuple[bool, bool, float, int, str]:
    is_done = not found.open or bool(found.problem)
    return (is_done, found.is_prompt, -found.changed_at.timestamp(), -found.open, str(found.path))


def _places(folder: Path, sources: Sequence[Source]) -> list[tuple[str, Path]]:
    found = dict.fromkeys(sources_in(folder, sources))
    for path in dict.fromkeys(_usual(folder, sources)):
        found |= dict.fromkeys((kind, path) for kind in kinds_of(path, sources))
    # The project's own folder is a source because of a file in it, which says more. Any other folder has its files.
    own = {kind for kind, path in found if path.parent == folder and path.is_file()}
    canonical = {source.kind: source.canonical for source in sources}
    kept = (
        (kind, canonical[kind](path))
        for kind, path in found
        if not (path == folder and kind in own)
        and not any((kind, above) in found for above in path.parents if above != folder)
    )
    return list(dict.fromkeys(kept))


def _usual(folder: Path, sources: Sequence[Source]) -> Iterator[Path]:
    for source in sources:
        for pattern in source.usual_places:
            yield from islice(sorted(folder.glob(pattern)), _MOST)


def _read(source: Source, path: Path) -> FoundWork:
    changed_at = datetime.fromtimestamp(0, UTC)
    try:
        files = source.files(path)
        beside = folder_of(path)
        times = [one.stat().st_mtime for name in files if (one := beside / name).is_file()]
        changed_at = datetime.fromtimestamp(max(times, default=path.stat().st_mtime), UTC)
        work = read(source, path)
    except (UserError, OSError) as broken:
        problem = str(broken) or called(path)
        return FoundWork(
            kind=source.kind,
            format_name=_called(source),
            path=path,
            changed_at=changed_at,
            problem=problem,
        )
    return FoundWork(
        kind=source.kind,
        format_name=_called(source),
        path=path,
        open=len(to_do(work)),
        total=len(work.tasks),
        is_prompt=work.rounds,
        changed_at=changed_at,
    )
