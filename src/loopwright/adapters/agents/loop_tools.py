"""The tools with which a manager or an orchestrator changes loops: the MCP server of the daemon, with its token."""

import json
import sys
from pathlib import Path
from typing import Final

from loopwright.adapters.machine.files import write_atomically
from loopwright.core.values.permissions import LOOP_TOOLS
from loopwright.ports import LoopTools, ToolServer

FOLDER: Final = "roles"
_FILE: Final = "loops.token"


def keep_token(home: Path, name: str, *, url: str, token: str) -> None:
    """Keep a token, and the address of the daemon, for one round; only you can read it."""
    folder = home / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    write_atomically(folder / name, json.dumps({"url": url, "token": token}))


def forget_token(home: Path, name: str) -> None:
    """Remove a token."""
    (home / FOLDER / name).unlink(missing_ok=True)


def loop_tools(home: Path, name: str, directory: Path) -> LoopTools | None:
    """Return the tools of a run; None if the token was removed."""
    try:
        kept = json.loads((home / FOLDER / name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    flags = ("--url", kept["url"], "--token-file", str(directory / _FILE))
    # Not from its working folder, which is the project's: modules there may have the names of Loopwright's.
    words = ("-P", "-m", "loopwright.cli", "mcp", *flags)
    return LoopTools(
        name=LOOP_TOOLS.removeprefix("mcp__"),
        server=ToolServer(command=sys.executable, args=words),
        file=_FILE,
        token=kept["token"],
    )
