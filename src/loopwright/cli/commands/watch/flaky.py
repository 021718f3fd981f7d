"""`stats flaky`: checks that both passed and failed on the same tree."""

from rich.text import Text

from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.lines import Wrapped
from loopwright.cli.shell.output import console, print_json
from loopwright.cli.shell.times import local_time
from loopwright.core.values.ids import short_id
from loopwright.core.values.wording import counted
from loopwright.services import metrics
from loopwright.services.metrics import FlakyView


def flaky(*, json: bool = False) -> int:
    """List the checks of this repository that failed and passed on the same tree (outside of one, of all).

    Parameters
    ----------
    json
        Print them as JSON.
    """
    found = metrics.flaky()
    if json:
        print_json({"flaky": found})
        return ExitCode.VERIFIED
    out = console()
    if not found:
        out.print("no check was seen to fail and pass on the same tree")
    for one in found:
        out.print(Wrapped(_line(one), indent="  "))
    return ExitCode.VERIFIED


def _line(one: FlakyView) -> Text:
    where = f"task {one.task}" if one.task else "the result"
    told = f"last {local_time(one.last_at, seconds=False)} on {where} of {short_id(one.plan_id)}"
    line = Text(one.name, style="bold").append(f"  {counted(one.times, 'time')}", style="yellow")
    named = "" if one.name == one.command else f"  in {one.command}"
    return line.append(f"{named}  {told}", style="dim")
