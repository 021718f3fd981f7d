"""The file that lets the system start the daemon."""

import plistlib
import shlex
import sys
from pathlib import Path

import pytest

from loopwright.core.values.errors import UserError
from loopwright.services.daemon.unit import unit_for

HOME = Path('/place of "mine"/50% & <more>')
COMMAND = [sys.executable, "-m", "loopwright.cli", "serve", "--port", "8377"]


def test_a_systemd_unit_ends_the_daemon_alone_and_names_the_home() -> None:
    unit = unit_for("linux", {"HOME": "/users/me"}, HOME, ["--port", "8377"])
    assert unit.path == Path("/users/me/.config/systemd/user/loopwright.service")
    assert unit.start == "systemctl --user enable --now loopwright"
    lines = dict(line.split("=", 1) for line in unit.text.splitlines() if "=" in line)
    # systemd reads quotes and backslashes in double quotes as a shell does, and `%` begins a specifier.
    assert shlex.split(lines["ExecStart"].replace("%%", "%")) == COMMAND
    assert shlex.split(lines["Environment"].replace("%%", "%")) == [f"LOOPWRIGHT_HOME={HOME}"]
    assert "%" not in lines["Environment"].replace("%%", "")
    assert lines["KillMode"] == "process", "agents outlive the daemon"


def test_a_launchd_agent_ends_the_daemon_alone_and_names_the_home() -> None:
    unit = unit_for("darwin", {"HOME": "/users/me"}, HOME, ["--port", "8377"])
    assert unit.path == Path("/users/me/Library/LaunchAgents/dev.loopwright.daemon.plist")
    found = plistlib.loads(unit.text.encode())
    assert found["ProgramArguments"] == COMMAND
    assert found["EnvironmentVariables"] == {"LOOPWRIGHT_HOME": str(HOME)}
    assert (found["RunAtLoad"], found["KeepAlive"], found["AbandonProcessGroup"]) == (True, True, True)


@pytest.mark.parametrize(
    ("platform", "env", "code"),
    [
        ("win32", {}, "platform_unsupported"),
        ("linux", {"LOOPWRIGHT_DATABASE": "postgresql://user@host/db"}, "database_not_in_settings"),
    ],
)
def test_a_service_that_would_not_work_is_not_written(platform: str, env: dict[str, str], code: str) -> None:
    with pytest.raises(UserError) as refused:
        unit_for(platform, env, HOME)
    assert refused.value.code == code
