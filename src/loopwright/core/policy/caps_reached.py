"""What is said and asked when a cap is reached: why, the ways on, and what a person's answer means."""

import re
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final, Literal

from loopwright.core.values.ids import short_id
from loopwright.core.values.shell_hints import to_type

ASKED: Final = "budget"
"""The kind of the question that is asked then. Its key is the setting of the cap."""

STOP: Final = "stop"
_ANOTHER_RUN: Final = "go on with another run"
_ALL_THE_SAME: Final = "go on all the same"
_RAISE: Final = re.compile(r"raise it to \$?(\d{1,9}(?:\.\d{1,6})?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """Why nothing more may be spent, and the ways on."""

    setting: str
    why: str
    raise_to: int | None = None
    """What the limit could be raised to; None when nobody knows what was spent."""
    until: datetime | None = None
    """When it goes on by itself."""

    @property
    def options(self) -> tuple[str, ...]:
        """Return what a person can choose from."""
        if self.raise_to is None:
            return (_ALL_THE_SAME, STOP)
        raised = f"raise it to {dollars(self.raise_to)}"
        return (_ANOTHER_RUN, raised, STOP) if self.setting == "max_cost_per_run" else (raised, STOP)

    def reason(self, plan_id: str) -> str:
        """Say why, and what to type to go on."""
        plan = short_id(plan_id)
        ways = [self.why]
        if self.until is not None:
            ways.append(f"it goes on by itself at {self.until:%Y-%m-%d %H:%M} UTC")
        if self.setting == "max_cost_per_run" and self.raise_to is not None:
            ways.append(f"`{to_type('resume', plan)}` goes on with another run")
        if self.raise_to is None:
            ways.append(
                f"`{to_type('resume', plan, **{self.setting: 'AMOUNT'})}` names a limit all the same, or `off`"
            )
        else:
            raised = to_type("resume", plan, **{self.setting: _typed(self.raise_to)})
            ways.append(f"`{raised}` raises it and goes on")
        return "; ".join(ways)


def nobody_knows(setting: str, until: datetime | None = None) -> Over:
    """Say that a limit cannot be kept."""
    why = (
        "a cost limit is set, but nobody knows what a run has cost; "
        "the setting `prices` can tell what its model costs"
    )
    return Over(setting=setting, why=why, until=until)


def meaning(
    answer: str, options: tuple[str, ...], *, limit: int | None
) -> tuple[Literal["resume", "stop"], tuple[int | None, ...]] | None:
    """Return the command that an answer stands for, and the limit that it sets, if any; None when it is no answer.

    A number is that of an option, as with every question, and never an amount. Whoever goes on all the same takes the
    `limit` that there is once more, knowing what it is worth.
    """
    text = " ".join(answer.lower().split())
    if text.isdigit() and 1 <= int(text) <= len(options):
        text = options[int(text) - 1]
    if text == STOP:
        return "stop", ()
    if text in options and text == _ANOTHER_RUN:
        return "resume", ()
    if text in options and text == _ALL_THE_SAME:
        return "resume", (limit,)
    found = _RAISE.fullmatch(text)
    micros = int(Decimal(found[1]) * 1_000_000) if found else 0
    return ("resume", (micros,)) if micros else None


def dollars(micros: int) -> str:
    """Return a sum in dollars, to the cent unless that would hide a small one."""
    return f"${micros / 1e6:.2f}" if micros % 10_000 == 0 else f"${micros / 1e6:.6f}".rstrip("0")


def _typed(micros: int) -> str:
    """Return a sum as it is typed behind a flag."""
    return dollars(micros).removeprefix("$").removesuffix(".00")
