"""`doctor`: look at this machine and say what is missing, or restore a backup of the database."""

import asyncio
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.text import Text

from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.lines import Wrapped, in_local_time
from loopwright.cli.shell.output import console, print_json
from loopwright.cli.shell.parameters import SettingsFile
from loopwright.core.values.errors import UserError
from loopwright.services.doctor import checkup
from loopwright.services.doctor.checkup import Finding, Status
from loopwright.services.projects import projects

# The report of `doctor`: what needs you first, and one line for the optional things that are not here.

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


# `doctor --restore`: put a backup in the place of a damaged database, and compare it with what happened
# since.


def _restore(backup: Path, *, as_json: bool) -> int:
    """Put a backup in the place of the home's database; return the exit code."""
    done = asyncio.run(projects.restore(backup))
    if as_json:
        facts = {"restored": str(backup), "kept": str(done.kept), "since": done.since}
        print_json({**facts, "exit_code": int(ExitCode.VERIFIED)})
        return ExitCode.VERIFIED
    out = console()
    out.print(f"restored {escape(str(backup))}")
    if done.kept.exists():
        out.print(f"the database from before is {escape(shlex.quote(str(done.kept)))}")
    out.print(escape(f"compared with the repositories: {done.since.in_words()}"))
    out.print("`loopwright status` shows the plans; `loopwright resume PLAN` continues a plan")
    return ExitCode.VERIFIED


def doctor(
    *,
    agent: str | None = None,
    account: str | None = None,
    model: str | None = None,
    probe: bool = False,
    restore: Path | None = None,
    settings_file: SettingsFile = None,
    json: bool = False,
) -> int:
    """Check this machine: git, Python, agents, disk, database, and what keeps agents contained.

    Parameters
    ----------
    agent
        Which agent to probe (default: the one that the settings name).
    account
        Which of the agent's accounts to probe (default: its first).
    model
        With which model to probe it (default: the one that the settings name, else the agent's own).
    probe
        Let the agent make one short turn with your login. It costs what one answer costs.
    restore
        Replace a damaged database with this backup, and compare it with what happened since.
    settings_file
        Read the project's settings from this file instead of the commit's loopwright.toml.
    json
        Print one JSON document.
    """
    if restore is not None:
        return _restore(restore, as_json=json)
    probed = {"--agent": agent, "--account": account, "--model": model}
    given = [flag for flag, value in probed.items() if value is not None]
    if given and not probe:
        raise UserError(
            f"{given[0]} is only for --probe",
            code="flags_conflict",
            hint="every agent and account is looked at anyway",
        )
    findings = list(checkup.checkup(settings_file))
    if probe:
        findings.append(checkup.probe(agent, account=account, model=model, settings_file=settings_file))
    failed = any(finding.status is Status.FAIL for finding in findings)
    code = ExitCode.ENVIRONMENT if failed else ExitCode.VERIFIED
    if json:
        print_json({"findings": findings, "exit_code": int(code)})
        return code
    console().print(report(findings))
    return code
