"""The folder and environment of a use case: the process's own, unless a library user gives others."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopwright.core.values.access import Bounds
from loopwright.core.values.environments import PlanEnvironment
from loopwright.core.values.errors import UserError

# Write a file for the user: completely or not at all.


def write_whole(path: Path, text: str, *, hint: str) -> None:
    """Write a file, or keep the old one; `hint` says what to do if it cannot be written."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise UserError(
            f"{path} cannot be written: {error.strerror}", code="file_not_written", hint=hint
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Caller:
    folder: Path
    env: Mapping[str, str]
    name: str | None = None
    recorded: PlanEnvironment | None = None
    bounds: Bounds | None = None


def unheard(_: object) -> None:
    """Ignore a notification."""


_CALLER: Final[ContextVar[_Caller | None]] = ContextVar("caller", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The version that a caller saw."""

    version: str
    loop_id: str | None = None
    """The loop with this version; None for the target of a decision."""


_EXPECTED: Final[ContextVar[Expected | None]] = ContextVar("expected", default=None)


def expect_version(expected: Expected | None) -> None:
    """Refuse every decision of this task if the caller saw another version."""
    _EXPECTED.set(expected)


def expected_version() -> Expected | None:
    """Return the version that the caller saw; None if it does not matter."""
    return _EXPECTED.get()


def current_folder() -> Path:
    """Return the folder for relative paths and "this repository"."""
    caller = _CALLER.get()
    return Path.cwd() if caller is None else caller.folder


def environment() -> Mapping[str, str]:
    """Return the variables for settings, agents and gates."""
    caller = _CALLER.get()
    return os.environ if caller is None else caller.env


def caller_name() -> str | None:
    """Return the caller's name in the record; None for the user of this process."""
    caller = _CALLER.get()
    return None if caller is None else caller.name


def recorded_environment() -> PlanEnvironment | None:
    """Return the recorded environment for plans of the caller; None if there is a terminal."""
    caller = _CALLER.get()
    return None if caller is None else caller.recorded


def caller_bounds() -> Bounds | None:
    """Return the limits of the work that the caller creates; None if there is a terminal."""
    caller = _CALLER.get()
    return None if caller is None else caller.bounds


@contextmanager
def called_from(
    folder: Path,
    env: Mapping[str, str],
    *,
    name: str | None = None,
    recorded: PlanEnvironment | None = None,
    bounds: Bounds | None = None,
) -> Iterator[None]:
    """Run everything inside with this folder and these variables, for the caller of this name."""
    before = _CALLER.set(_Caller(folder=folder, env=env, name=name, recorded=recorded, bounds=bounds))
    try:
        yield
    finally:
        _CALLER.reset(before)
