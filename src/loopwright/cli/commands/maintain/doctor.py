"""`doctor`: look at this machine and say what is missing, line by line, each with what to do."""

from pathlib import Path

from loopwright.cli.commands.maintain.restoring import restore as put_back
from loopwright.cli.screens.findings import report
from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json
from loopwright.cli.shell.parameters import SettingsFile
from loopwright.core.values.errors import UserError
from loopwright.services.doctor import checkup
from loopwright.services.doctor.checkup import Status


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
        return put_back(restore, as_json=json)
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
