"""The current settings with their origins, whether all are valid, and the published JSON Schemas.

Not here: how settings are read (`config`), and which of them a plan starts with (`services.homes.context`).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopwright.adapters.sources.schemas import source_schemas
from loopwright.config.publish import configuration_schema, identified
from loopwright.config.resolve import ShownSetting
from loopwright.core.receipts.schemas import document_schemas
from loopwright.core.rows.loop_files import LOOP_FILES
from loopwright.core.values.policy import GateCommand
from loopwright.services.homes.context import changed_settings, look_settings, settings_here
from loopwright.services.homes.loop_sources import unused_here

# The published JSON Schemas, by name.


def published_schema(name: str) -> Any:
    """Return a schema by the name that `loopwright config schema` has for it."""
    if name in ("config", "user"):
        file = "user" if name == "user" else "project"
        return identified(file, configuration_schema(machine=name == "user"))
    return identified(name, {**source_schemas(), **document_schemas(), **LOOP_FILES}[name])


__all__ = [
    "CheckedSettings",
    "GateCommand",
    "ShownSetting",
    "ShownSettings",
    "check_settings",
    "show_settings",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSettings:
    """Every current setting."""

    settings: tuple[ShownSetting, ...]
    """Each with its value, its origin and what it means."""
    notes: tuple[str, ...]
    """Notes about the project file, such as uncommitted changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSettings:
    """Settings that are all valid."""

    set_by: tuple[str, ...]
    """The files, variables and flags that set a value."""
    notes: tuple[str, ...]
    """Notes about the project file, such as tables without effect."""


def show_settings(file: Path | None = None) -> ShownSettings:
    """Return every setting in force here; `file` is read instead of the project's committed file."""
    shown = look_settings(file).shown()
    return ShownSettings(settings=shown, notes=changed_settings(settings_here(file)))


def check_settings(file: Path | None = None) -> CheckedSettings:
    """Check every setting in force here and the options of agents; raise an error that names the first wrong one."""
    # The agents' options take long to load, and `show_settings` does not need them.
    from loopwright.services.preflight.checks import check_options

    settings, found = look_settings(file), settings_here(file)
    check_options(settings)
    return CheckedSettings(
        set_by=tuple(sorted(set(settings.origins.values()))),
        notes=(*changed_settings(found), *unused_here(found)),
    )
