"""Where things are on this machine: the home, and the user's own configuration file.

The environment comes in as a mapping, so nothing here depends on the process that asks.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from loopwright.core.values.errors import BadConfig, UserError

USER_FILE: Final = "config.toml"


def check_platform(platform: str) -> None:
    """Raise unless Loopwright can run here; `platform` is `sys.platform`."""
    if platform.startswith(("win", "cygwin", "msys")):
        raise UserError(
            "Loopwright does not run on Windows itself.",
            code="platform_unsupported",
            hint="Install it inside WSL (https://learn.microsoft.com/windows/wsl) and run it there.",
        )


def default_home(env: Mapping[str, str], platform: str) -> Path:
    """Return the home that is used when nothing else is said: `loopwright` in the user's data folder."""
    check_platform(platform)
    # A relative XDG path is to be ignored, says its specification.
    if env.get("XDG_DATA_HOME", "").startswith("/"):
        return Path(env["XDG_DATA_HOME"]) / "loopwright"
    if platform == "darwin":
        return _user_folder(env) / "Library" / "Application Support" / "loopwright"
    return _user_folder(env) / ".local" / "share" / "loopwright"


def user_file(env: Mapping[str, str]) -> Path | None:
    """Return where the user's own configuration file would be, or None without a home folder."""
    if env.get("XDG_CONFIG_HOME", "").startswith("/"):
        return Path(env["XDG_CONFIG_HOME"]) / "loopwright" / USER_FILE
    if not env.get("HOME", "").startswith("/"):
        return None
    return _user_folder(env) / ".config" / "loopwright" / USER_FILE


def expand(path: Path, env: Mapping[str, str]) -> Path:
    """Return `path` with a leading `~` replaced by the user's folder."""
    if path.parts[:1] == ("~",):
        return _user_folder(env).joinpath(*path.parts[1:])
    return path


def shorten(path: Path, env: Mapping[str, str]) -> str:
    """Return `path` as it may be shown: with `~` for the user's folder."""
    folder = env.get("HOME", "")
    if folder.startswith("/") and path.is_relative_to(folder):
        return f"~/{path.relative_to(folder).as_posix()}"
    return path.as_posix()


def _user_folder(env: Mapping[str, str]) -> Path:
    folder = env.get("HOME", "")
    if not folder.startswith("/"):
        raise BadConfig(
            "The home folder is unknown: the environment variable HOME is not set to an absolute path.",
            code="no_home_folder",
            hint="Set LOOPWRIGHT_HOME to the folder where Loopwright may keep its data.",
        )
    return Path(folder)
