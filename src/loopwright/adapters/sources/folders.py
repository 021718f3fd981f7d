"""Which source is meant by a folder: the one that is in it; of several, none is taken by chance."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from loopwright.adapters.sources.text.reading import called, most_specific
from loopwright.core.values.errors import UserError
from loopwright.ports import Source

_USUAL: Final = frozenset(
    {
        ".beads", "orchestrator", "feature_list.json", "issues.json", "prompt.md", "plan.yaml", "plan.yml",
        "tasks.md", "todo.md", "thoughts",
    }
)  # fmt: skip
"""What the sources are usually called that are not known by their folder alone."""
_TRACKS: Final = ("conductor", "tracks")
"""Where each folder is a separate source."""
_OWN: Final = {"plan_md": "plan.md", "test_state": "test-state.json"}
"""What a source that is known by its folder is called in it."""
_MOST: Final = 20
"""Of more than these only the first are named."""


def meant(place: Path, sources: Sequence[Source], kind: str | None = None) -> Path:
    """Return where the source of a folder lies, or raise with all that it could be; a file means itself."""
    if not place.is_dir():
        return place
    found = [(one, path) for one, path in sources_in(place, sources) if kind in (None, one)]
    if len({path for _, path in found}) < 2:
        return found[0][1] if found else place
    names = [
        f"{_own(place, one) if path == place else path.relative_to(place).as_posix()} ({one})"
        for one, path in found
    ]
    more = f", and {len(names) - _MOST} more" if len(names) > _MOST else ""
    several = ", ".join(names[:_MOST]) + more
    first = next(path for _, path in found if path != place)
    raise UserError(
        f"{called(place)} has several sources: {several}",
        code="source_ambiguous",
        hint=f"name the one that you mean, such as {first}, or its kind with --source KIND",
    )


def _own(folder: Path, kind: str) -> str:
    """Return what a person sees in a folder that is itself a source."""
    names = (one.name for one in sorted(folder.iterdir()) if one.name.casefold() == _OWN.get(kind))
    return next(names, "the folder itself")


def sources_in(folder: Path, sources: Sequence[Source]) -> list[tuple[str, Path]]:
    """Return the kind and the place of everything in a folder that is usually work, the folder itself first."""
    own = kinds_of(folder, sources)
    inside = ((one, path) for path in _usual(folder) for one in kinds_of(path, sources))
    # The `tasks.md` that makes the folder a source is not another one; beside a `plan.md` it is.
    more = [(one, path) for one, path in inside if one not in own or one in _OWN]
    return [*((one, folder) for one in own), *more]


def _usual(folder: Path) -> list[Path]:
    tracks = _tracks(folder)
    try:
        usual = sorted(one for one in folder.iterdir() if one.name.casefold() in _USUAL)
        return [*usual, *(sorted(one for one in tracks.iterdir() if one.is_dir()) if tracks.is_dir() else ())]
    except OSError:
        return []


def _tracks(folder: Path) -> Path:
    """Return the folder of the tracks, from the one that it is in, from the one around that, or from itself."""
    outer, inner = _TRACKS
    *_, above, name = ("", *folder.absolute().parts)
    if (above, name) == _TRACKS:
        return folder
    return folder / inner if name == outer else folder / outer / inner


def kinds_of(path: Path, sources: Sequence[Source]) -> list[str]:
    """Return the most specific forms that a path could be in."""
    return [one.kind for one in most_specific([one for one in sources if one.recognises(path)])]
