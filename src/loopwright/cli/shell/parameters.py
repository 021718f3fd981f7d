"""Parameters that several commands take."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, Token

from loopwright.services.preflight.run_inputs import named

SettingsFile = Annotated[Path | None, Parameter(name="--settings")]
"""A file to read the project's settings from."""


def _named(_: type, tokens: Sequence[Token]) -> Path:
    return named(tokens[0].value)


FoundPlan = Annotated[Path | None, Parameter(converter=_named)]
"""Where work is; None where the user names none."""
PlanPath = Annotated[Path, Parameter(converter=_named)]
"""Where work is, as it is typed: empty is not the current folder."""
