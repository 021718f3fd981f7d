"""The flags of `run` for a loop over a prompt."""

from dataclasses import dataclass
from typing import Annotated, Any, Final

from cyclopts import Group, Parameter

from loopwright.config.groups import ROUND_FLAGS

_GROUP: Final = Group("Rounds of a PROMPT.md", help="When the loop continues, and what stops it.", sort_key=8)


def _flag(text: str) -> Any:
    return Parameter(help=text, group=_GROUP)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RoundFlags:
    """When a loop over a prompt continues; each flag is a setting of the group `rounds`."""

    max_rounds: Annotated[int | None, _flag("How many rounds to run at most (default 10).")] = None
    sleep: Annotated[str | None, _flag("How long to sleep after a round, such as 30s (default 10s).")] = None
    until: Annotated[
        str | None,
        _flag("green: stop when the gate passes; quiet: stop when nothing changes any more; auto (default)."),
    ] = None
    max_unchanged: Annotated[
        int | None, _flag("Stop after this many rounds in a row without a change (default 2).")
    ] = None
    stop_after: Annotated[
        str | None, _flag("Begin no round later than this after the first one began, such as 2h.")
    ] = None

    def given(self) -> dict[str, Any]:
        """Return the flags that were given, by the keys of their settings."""
        found = {key: getattr(self, flag[2:].replace("-", "_")) for key, flag in ROUND_FLAGS.items()}
        return {key: value for key, value in found.items() if value is not None}


NO_ROUND_FLAGS: Final = RoundFlags()
