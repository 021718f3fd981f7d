"""Parameters and groups of flags that several commands take."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Group, Parameter, Token

from loopwright.config.groups import ROUND_FLAGS
from loopwright.services.preflight.run_inputs import named

# The flags of `run` for a loop over a prompt.

_ROUNDS: Final = Group(
    "Rounds of a PROMPT.md", help="When the loop continues, and what stops it.", sort_key=8
)


def _round_flag(text: str) -> Any:
    return Parameter(help=text, group=_ROUNDS)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RoundFlags:
    """When a loop over a prompt continues; each flag is a setting of the group `rounds`."""

    max_rounds: Annotated[int | None, _round_flag("How many rounds to run at most (default 10).")] = None
    sleep: Annotated[
        str | None, _round_flag("How long to sleep after a round, such as 30s (default 10s).")
    ] = None
    until: Annotated[
        str | None,
        _round_flag(
            "green: stop when the gate passes; quiet: stop when nothing changes any more; auto (default)."
        ),
    ] = None
    max_unchanged: Annotated[
        int | None, _round_flag("Stop after this many rounds in a row without a change (default 2).")
    ] = None
    stop_after: Annotated[
        str | None, _round_flag("Begin no round later than this after the first one began, such as 2h.")
    ] = None

    def given(self) -> dict[str, Any]:
        """Return the flags that were given, by the keys of their settings."""
        found = {key: getattr(self, flag[2:].replace("-", "_")) for key, flag in ROUND_FLAGS.items()}
        return {key: value for key, value in found.items() if value is not None}


NO_ROUND_FLAGS: Final = RoundFlags()


# The flags that limit what may be spent: the same ones for `run` and `resume`.

_COST: Final = Group("Limits on cost", help='In dollars, such as 12.50, or "off" for no limit.', sort_key=9)


def _cost_flag(text: str) -> Any:
    return Parameter(help=text, group=_COST)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CostFlags:
    """What may be spent; each flag is a setting of the same name."""

    max_cost: Annotated[
        str | None,
        _cost_flag("The most that the plan may cost. At that, its agents stop, and it pauses and asks you."),
    ] = None
    max_cost_per_run: Annotated[str | None, _cost_flag("The same for each run of an agent.")] = None
    max_cost_per_task: Annotated[str | None, _cost_flag("The same for all runs of a task.")] = None
    max_cost_per_loop: Annotated[
        str | None, _cost_flag("The same for all plans that this plan file ever had.")
    ] = None
    max_cost_per_project: Annotated[str | None, _cost_flag("The same for all plans of this repository.")] = (
        None
    )
    max_cost_per_day: Annotated[
        str | None,
        _cost_flag(
            "The same for all plans of this repository on one day, by UTC; it continues by itself the next day."
        ),
    ] = None

    def given(self) -> dict[str, str]:
        """Return the flags that were given, by the names of their settings."""
        return {name: value for name, value in asdict(self).items() if value is not None}


NO_COST_FLAGS: Final = CostFlags()


SettingsFile = Annotated[Path | None, Parameter(name="--settings")]
"""A file to read the project's settings from."""


def _named(_: type, tokens: Sequence[Token]) -> Path:
    return named(tokens[0].value)


FoundPlan = Annotated[Path | None, Parameter(converter=_named)]
"""Where work is; None where the user names none."""
PlanPath = Annotated[Path, Parameter(converter=_named)]
"""Where work is, as it is typed: empty is not the current folder."""
