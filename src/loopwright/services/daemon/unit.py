"""Write the file that lets the system start the daemon: a systemd user unit, or a launchd agent."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from xml.sax.saxutils import escape

from loopwright.core.values.errors import UserError

NAME = "loopwright"
_LABEL = "dev.loopwright.daemon"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A file for the system's service manager."""

    path: Path
    text: str
    start: str
    """The command that starts it now and at every login."""


def unit_for(platform: str, env: Mapping[str, str], home: Path, arguments: Sequence[str] = ()) -> Unit:
    """Return the unit for this platform."""
    if env.get("LOOPWRIGHT_DATABASE"):
        raise UserError(
            "a service does not see the variable LOOPWRIGHT_DATABASE of this terminal",
            code="database_not_in_settings",
            hint="put `database` into your config.toml, and unset the variable",
        )
    folder = Path(env.get("HOME") or "~").expanduser()
    command = [sys.executable, "-m", "loopwright.cli", "serve", *arguments]
    if platform == "darwin":
        path = folder / "Library" / "LaunchAgents" / f"{_LABEL}.plist"
        return Unit(path=path, text=_plist(command, home), start=f"launchctl load -w {quote(str(path))}")
    if platform == "linux":
        config = Path(env.get("XDG_CONFIG_HOME") or folder / ".config")
        path = config / "systemd" / "user" / f"{NAME}.service"
        return Unit(path=path, text=_systemd(command, home), start=f"systemctl --user enable --now {NAME}")
    raise UserError(
        f"there is no service manager for {platform}", code="platform_unsupported", hint="use `loopwright up`"
    )


def install(unit: Unit) -> None:
    """Write the unit."""
    unit.path.parent.mkdir(parents=True, exist_ok=True)
    unit.path.write_text(unit.text)


def _systemd(command: Sequence[str], home: Path) -> str:
    # Agents outlive the daemon: only the daemon's own process is ended with the unit.
    return f"""[Unit]
Description=Loopwright daemon
After=network-online.target

[Service]
ExecStart={" ".join(map(_word, command))}
Environment={_word(f"LOOPWRIGHT_HOME={home}")}
KillMode=process
Restart=on-failure
RestartSec=5

[Install]
WantedBy=default.target
"""


def _word(text: str) -> str:
    """Return a word as systemd reads it: `%` begins a specifier, also inside quotes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _plist(command: Sequence[str], home: Path) -> str:
    words = "\n".join(f"    <string>{escape(word)}</string>" for word in command)
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>{_LABEL}</string>
  <key>ProgramArguments</key>
  <array>
{words}
  </array>
  <key>EnvironmentVariables</key>
  <dict><key>LOOPWRIGHT_HOME</key><string>{escape(str(home))}</string></dict>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><true/>
  <key>AbandonProcessGroup</key><true/>
</dict>
</plist>
"""
