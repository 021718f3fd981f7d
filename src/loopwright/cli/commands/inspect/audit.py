"""`audit`: check whether the finished items of a source really are finished."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Final

from rich.markup import escape
from rich.text import Text

from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.lines import Wrapped, columns
from loopwright.cli.shell.output import console, print_json
from loopwright.cli.shell.parameters import PlanPath
from loopwright.core.values.wording import counted, one_line
from loopwright.services.audit import finished_items
from loopwright.services.audit.finished_items import Audited, Proof

_STYLES: Final = {
    Proof.PROVEN: "green",
    Proof.PASSES: "green",
    Proof.UNMERGED: "bold red",
    Proof.LOST: "bold red",
    Proof.FAILING: "bold red",
}


def audit(path: PlanPath, /, *, source: str | None = None, no_run: bool = False, json: bool = False) -> int:
    """Check for every finished item of a source whether its commit is there and its checks pass now.

    Parameters
    ----------
    path
        The file or folder with the work, in any supported format.
    source
        The kind of its format, if its name does not show it.
    no_run
        Check only commits. Otherwise the items' own checks run in a clean clone of the checkout.
    json
        Print one JSON document.
    """
    found = asyncio.run(finished_items.audit(path, source=source, run_checks=not no_run))
    code = ExitCode.VERIFIED if found.holds else ExitCode.NOT_VERIFIED
    if json:
        counts = Counter(one.proof.value for one in found.items)
        print_json({"items": found.items, "counts": dict(counts), "exit_code": int(code)})
        return code
    _print(found.items)
    if found.newer_branch is not None:
        console().print(
            f"the newest status is on a branch that is not merged yet:  git merge {found.newer_branch}"
        )
    return code


def _print(found: Sequence[Audited]) -> None:
    out = console()
    if not found:
        out.print("nothing in it is marked as finished")
        return
    rows = [(one.proof.value, one.key, one_line(one.title, 60), one.reason) for one in found]
    for line, one in zip(columns(rows), found, strict=True):
        text = Text(line)
        text.stylize(_STYLES.get(one.proof, "yellow"), 0, len(one.proof.value))
        out.print(Wrapped(text, indent="    "))
    counts = Counter(one.proof for one in found)
    told = ", ".join(f"{counts[proof]} {proof.value}" for proof in Proof if counts[proof])
    out.print(f"{counted(len(found), 'finished item')}: {escape(told)}")
