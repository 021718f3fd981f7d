"""`doctor`: look at this machine and say what is missing, line by line, each with what to do."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rich.text import Text

from loopwright.cli.screens.layout import Wrapped
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.lines import columns
from loopwright.cli.shell.output import console, print_json
from loopwright.config.resolve import Settings
from loopwright.core.values.errors import BadConfig
from loopwright.services.doctor import (
    checkup_accounts,
    checkup_forge,
    checkup_home,
    checkup_machine,
    checkup_project,
    checkup_sandbox,
)
from loopwright.services.doctor.checkup_machine import Finding, Status
from loopwright.services.homes.context import SettingsFile, changed_settings, look_settings, settings_here
from loopwright.services.homes.loop_sources import unused_here

_STYLES: Final = {Status.OK: "green", Status.ABSENT: "dim", Status.WARN: "yellow", Status.FAIL: "bold red"}

_OF_MACHINE: Final[tuple[Callable[[], list[Finding]], ...]] = (
    checkup_machine.python,
    checkup_machine.git,
    checkup_machine.platform_,
)
_OF_HOME: Final[tuple[Callable[[Settings], list[Finding]], ...]] = (
    checkup_project.installed,
    checkup_sandbox.containment,
    checkup_machine.agents,
    checkup_accounts.accounts,
    checkup_home.home,
    checkup_home.disk,
    checkup_home.database,
    checkup_forge.forge,
)


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
        Let the agent make one short turn with your own login, as a run would: it costs what one answer costs.
    restore
        Put this backup in the place of a damaged database, and compare it with what happened since.
    settings_file
        Read the project's settings from this file instead of the commit's loopwright.toml.
    json
        Print one JSON document.
    """
    if restore is not None:
        from loopwright.cli.commands.maintain.restoring import restore as put_back

        return put_back(restore, as_json=json)
    probed = {"--agent": agent, "--account": account, "--model": model}
    given = [flag for flag, value in probed.items() if value is not None]
    if given and not probe:
        raise BadConfig(f"{given[0]} is only for --probe", hint="every agent and account is looked at anyway")
    findings = _findings(settings_file)
    if probe:
        from loopwright.services.doctor.agent_probe import probe as one_turn

        settings = look_settings(settings_file)
        findings.append(one_turn(agent or settings.values.agent, settings, account, model))
    counts = Counter(finding.status for finding in findings)
    code = ExitCode.ENVIRONMENT if counts[Status.FAIL] else ExitCode.VERIFIED
    if json:
        print_json({"findings": findings, "exit_code": int(code)})
        return code
    out = console()
    lines = columns([(one.status.value, one.name, one.text) for one in findings], indent="")
    for finding, line in zip(findings, lines, strict=True):
        word = finding.status.value
        told = Text(word, style=_STYLES[finding.status]).append(line.removeprefix(word))
        out.print(Wrapped(told, indent="    "))
        if finding.fix:
            out.print(Wrapped(Text(f"      to do: {finding.fix}"), indent="        "))
    absent = f", {counts[Status.ABSENT]} optional and not here" if counts[Status.ABSENT] else ""
    out.print(f"\n{counts[Status.OK]} ok, {counts[Status.WARN]} warn, {counts[Status.FAIL]} fail{absent}")
    return code


def _findings(settings_file: Path | None) -> list[Finding]:
    findings = [finding for look in _OF_MACHINE for finding in look()]
    try:
        found = settings_here(settings_file)
        settings = look_settings(settings_file)
    except BadConfig as bad:
        text = "; ".join(str(bad).splitlines())
        fix = bad.hint or "mend the named setting"
        findings.append(Finding(name="settings", status=Status.FAIL, text=text, fix=fix))
        return findings
    named = sorted({origin for key, origin in settings.origins.items()}, key=str)
    text = f"good; set by {', '.join(named)}" if named else "good; all are defaults"
    findings.append(Finding(name="settings", status=Status.OK, text=text))
    findings += [
        Finding(name="settings", status=Status.WARN, text=changed, fix=f"git commit {found.file}")
        for changed in changed_settings(found)
    ]
    findings += [
        Finding(name="loops", status=Status.WARN, text=unused, fix="give the table the name of its source")
        for unused in unused_here(found)
    ]
    return [*findings, *(finding for look in _OF_HOME for finding in look(settings))]
