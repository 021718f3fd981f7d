"""`plan coverage`: every criterion of every task with the checks that prove it, or a note that there are none."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from rich.markup import escape
from rich.text import Text

from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.lines import Wrapped, local_time
from loopwright.cli.shell.output import console, print_json
from loopwright.core.values.ids import short_id
from loopwright.core.values.wording import counted, one_line
from loopwright.services.audit import coverage as service
from loopwright.services.audit.coverage import Evidence, Standing, TaskCoverage

_STYLES: Final = {Standing.PROVEN: "green", Standing.REVIEWED: "green", Standing.FAILED: "bold red"}
_BY: Final = {"gate": "before it landed", "verify": "on the whole plan"}


def coverage(target: str, /, *, source: str | None = None, json: bool = False) -> int:
    """Show every criterion of every task with the checks that prove it, or say that there is no evidence.

    Parameters
    ----------
    target
        The file or folder with the work, in any supported format; or a plan by its id, its beginning, or its name.
    source
        The kind of its format, if its name does not show it.
    json
        Print one JSON document.
    """
    found = service.coverage(target, source=source)
    code = ExitCode.VERIFIED if found.is_complete else ExitCode.NOT_VERIFIED
    if json:
        counts = Counter(one.standing.value for one in found.criteria)
        print_json({"tasks": found.tasks, "counts": dict(counts), "exit_code": int(code)})
    else:
        _print(found.tasks)
    return code


def _print(found: Sequence[TaskCoverage]) -> None:
    out = console()
    for task in found:
        of = f"  (plan {short_id(task.plan_id)})" if task.plan_id else ""
        out.print(f"[bold]{escape(task.key)}[/]  {escape(one_line(task.title, 60))}{escape(of)}")
        if not task.criteria:
            out.print("  [yellow]no criterion[/]: nothing but the gates checks it")
        for one in task.criteria:
            told = "; ".join(_in_words(each) for each in one.evidence) or one.reason
            text = Text.assemble(
                "  ",
                (one.standing.value, _STYLES.get(one.standing, "yellow")),
                f"  {one_line(one.text, 80)}: {told}",
            )
            out.print(Wrapped(text, indent="      "))
    counts = Counter(one.standing for task in found for one in task.criteria)
    told = ", ".join(f"{counts[standing]} {standing.value}" for standing in Standing if counts[standing])
    total = counted(counts.total(), "criterion", "criteria")
    bare = sum(not task.criteria for task in found)
    without = f"; {counted(bare, 'task has', 'tasks have')} no criterion" if bare else ""
    out.print(f"{total} of {counted(len(found), 'task')}{': ' if told else ''}{told}{without}")


def _in_words(one: Evidence) -> str:
    if one.review_id is not None:
        what = f"review {short_id(one.review_id)} by {one.by}"
    elif one.verdict_id is not None:
        what = f"{'passed' if one.passed else 'did not pass'} {_BY.get(one.by, one.by)}"
    else:
        what = f"reviewed by {one.by}"
    when = f", {local_time(one.at, seconds=False)}" if one.at else ""
    verdict = f", verdict {short_id(one.verdict_id)}" if one.verdict_id else ""
    gaps = ", with gaps" if one.gaps else ""
    return f"{what}{when}{f', commit {one.commit[:7]}' if one.commit else ''}{verdict}{gaps}"
