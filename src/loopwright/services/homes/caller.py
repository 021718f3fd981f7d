"""Whose folder and environment a use case works with: the process's own, unless a library user gives others."""

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

# Writing a file for a person: whole or not at all.


def write_whole(path: Path, text: str, *, hint: str) -> None:
    """Write a file, or leave what was there; `hint` says what to do when it cannot be written."""
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
    """Ignore what is told."""


_CALLER: Final[ContextVar[_Caller | None]] = ContextVar("caller", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The version that a caller saw."""

    version: str
    loop_id: str | None = None
    """The loop that it is the version of; None for what a decision is about."""


_EXPECTED: Final[ContextVar[Expected | None]] = ContextVar("expected", default=None)


def expect_version(expected: Expected | None) -> None:
    """Let every decision of this task be refused if the caller saw another version."""
    _EXPECTED.set(expected)


def expected_version() -> Expected | None:
    """Return the version that the caller saw; None if it does not matter."""
    return _EXPECTED.get()


def current_folder() -> Path:
    """Return the folder that relative paths and "this repository" mean."""
    caller = _CALLER.get()
    return Path.cwd() if caller is None else caller.folder


def environment() -> Mapping[str, str]:
    """Return the variables that settings, agents and gates are taken from."""
    caller = _CALLER.get()
    return os.environ if caller is None else caller.env


def caller_name() -> str | None:
    """Return what the record calls the caller; None for the user of this process."""
    caller = _CALLER.get()
    return None if caller is None else caller.name


def recorded_environment() -> PlanEnvironment | None:
    """Return the recorded environment that plans of the caller take; None where a terminal is."""
    caller = _CALLER.get()
    return None if caller is None else caller.recorded


def caller_bounds() -> Bounds | None:
    """Return what limits the work that the caller creates; None where a terminal is."""
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
    """Let everything that is called inside work with this folder and these variables, for the caller of this name."""
    before = _CALLER.set(_Caller(folder=folder, env=env, name=name, recorded=recorded, bounds=bounds))
    try:
        yield
    finally:
        _CALLER.reset(before)
