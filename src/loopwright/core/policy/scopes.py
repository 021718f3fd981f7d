"""Where a task writes: what it declared, what its attempts were seen to change, and what of that was not declared."""

from collections.abc import Iterable, Sequence
from typing import Final

from loopwright.core.rows.model import Task
from loopwright.core.values.globs import any_covers

_MOST: Final = 200
"""So many paths are kept by name; of more, the folders at the top."""


def claims(task: Task) -> tuple[str, ...]:
    """Return the paths that nobody else should work on while this task is under way."""
    return (*task.scope, *task.touched)


def kept(paths: Iterable[str]) -> tuple[str, ...]:
    """Return paths in order, none twice, and few enough to be kept with a row."""
    each = tuple(dict.fromkeys(paths))
    if len(each) <= _MOST:
        return each
    folders = tuple(dict.fromkeys(f"{path.split('/')[0]}/**" if "/" in path else path for path in each))
    return folders if len(folders) <= _MOST else ("**",)


def strayed(touched: Sequence[str], scope: Sequence[str]) -> tuple[str, ...]:
    """Return what lies outside of a declared scope; a task that declared none strays nowhere."""
    return tuple(path for path in touched if scope and not any_covers(scope, path))
