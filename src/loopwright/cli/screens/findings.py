"""The report of `doctor`: what needs you first, and one line for the optional things that are not here."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from loopwright.cli.shell.lines import Wrapped
from loopwright.cli.shell.times import in_local_time
from loopwright.services.doctor.checkup import Finding, Status

_STYLES: Final = {Status.FAIL: "bold red", Status.WARN: "yellow", Status.OK: "green"}
"""In the order in which they are shown."""


def report(findings: Sequence[Finding]) -> Group:
    """Return the report: failures, warnings, what is fine, and what is optional."""
    order = list(_STYLES)
    shown = sorted((one for one in findings if one.status in order), key=lambda one: order.index(one.status))
    named = max((len(one.name) for one in shown), default=0)
    parts: list[RenderableType] = []
    for one in shown:
        head = Text().append(f"{one.status.value:4}", style=_STYLES[one.status])
        head.append(f"  {one.name:{named}}  ")
        parts.append(Wrapped(Text(in_local_time(one.text)), head=head))
        if one.fix:
            parts.append(Wrapped(Text(f"to do: {one.fix}"), head=Text(" " * head.cell_len)))
    counts = Counter(one.status for one in findings)
    parts += [Text(), Text(f"{counts[Status.OK]} ok, {counts[Status.WARN]} warn, {counts[Status.FAIL]} fail")]
    absent = [one.name.removeprefix("agent ") for one in findings if one.status is Status.ABSENT]
    if absent:
        parts.append(
            Wrapped(Text(f"optional agents, not set up here: {', '.join(absent)}", style="dim"), indent="  ")
        )
    return Group(*parts)
