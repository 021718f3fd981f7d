"""The flags that limit what may be spent: the same ones for `run` and `resume`."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final

from cyclopts import Group, Parameter

_GROUP: Final = Group("Limits on cost", help='In dollars, such as 12.50, or "off" for no limit.', sort_key=9)


def _flag(text: str) -> Any:
    return Parameter(help=text, group=_GROUP)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CostFlags:
    """What may be spent; each flag is a setting of the same name."""

    max_cost: Annotated[
        str | None,
        _flag("The most that the plan may cost. At that, its agents stop, and it pauses and asks you."),
    ] = None
    max_cost_per_run: Annotated[str | None, _flag("The same for each run of an agent.")] = None
    max_cost_per_task: Annotated[str | None, _flag("The same for all runs of a task.")] = None
    max_cost_per_loop: Annotated[
        str | None, _flag("The same for all plans that this plan file ever had.")
    ] = None
    max_cost_per_project: Annotated[str | None, _flag("The same for all plans of this repository.")] = None
    max_cost_per_day: Annotated[
        str | None,
        _flag(
            "The same for all plans of this repository on one day, by UTC; it continues by itself the next day."
        ),
    ] = None

    def given(self) -> dict[str, str]:
        """Return the flags that were given, by the names of their settings."""
        return {name: value for name, value in asdict(self).items() if value is not None}


NO_COST_FLAGS: Final = CostFlags()
