"""Check this machine: git, Python, agents, disk, database, settings, and the sandbox."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from loopwright.config.resolve import Settings
from loopwright.core.values.errors import BadConfig
from loopwright.services.doctor import checkup_home, checkup_machine, checkup_project
from loopwright.services.doctor.checkup_machine import Finding, Status
from loopwright.services.homes.context import changed_settings, look_settings, settings_here
from loopwright.services.homes.loop_sources import unused_here

__all__ = ["Finding", "Status", "checkup", "probe"]

_OF_MACHINE: Final[tuple[Callable[[], list[Finding]], ...]] = (
    checkup_machine.python,
    checkup_machine.git,
    checkup_machine.platform_,
)
_OF_HOME: Final[tuple[Callable[[Settings], list[Finding]], ...]] = (
    checkup_project.installed,
    checkup_machine.containment,
    checkup_machine.agents,
    checkup_project.accounts,
    checkup_home.home,
    checkup_home.disk,
    checkup_home.database,
    checkup_project.forge,
    checkup_project.notices,
    checkup_project.traces,
)


def checkup(settings_file: Path | None = None) -> tuple[Finding, ...]:
    """Return the findings, in the order of the checks; wrong settings end it, as the other checks depend on them."""
    findings = [finding for look in _OF_MACHINE for finding in look()]
    try:
        found = settings_here(settings_file)
        settings = look_settings(settings_file)
    except BadConfig as bad:
        text = "; ".join(str(bad).splitlines())
        fix = bad.hint or "fix the named setting"
        return (*findings, Finding(name="settings", status=Status.FAIL, text=text, fix=fix))
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
    return (*findings, *(finding for look in _OF_HOME for finding in look(settings)))


def probe(
    agent: str | None = None,
    *,
    account: str | None = None,
    model: str | None = None,
    settings_file: Path | None = None,
) -> Finding:
    """Let an agent make one short turn with the user's login, as in a run; it costs as much as one answer."""
    # Only a probe starts an agent, which takes long to load.
    from loopwright.services.doctor.agent_probe import probe as one_turn

    settings = look_settings(settings_file)
    return one_turn(agent or settings.values.agent, settings, account, model)
