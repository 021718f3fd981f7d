"""`mcp`: the tools for other agents."""

from pathlib import Path

from loopwright.cli.shell.exits import ExitCode
from loopwright.server.mcp import not_installed
from loopwright.services.access.nesting import own_run
from loopwright.services.daemon.links import daemon_address
from loopwright.services.homes.context import settings_for


def mcp(*, url: str | None = None, token_file: Path | None = None) -> int:
    """Let another agent drive loops with MCP tools, over standard input and output.

    The daemon must run: start it with `loopwright up`. Inside a run of Loopwright the tools can only look, unless you
    give the agent a token with a nesting depth.

    Parameters
    ----------
    url
        The address of the daemon; without it, the one of this home.
    token_file
        A file with the token to use; without it, the owner's.
    """
    try:
        # It is an extra, and takes long to load.
        from loopwright.server.mcp.client import Connection, Daemon

        # The same.
        from loopwright.server.mcp.tools import make_server
    except ImportError as missing:
        raise not_installed() from missing
    home = settings_for().home

    run_id = own_run()

    def find() -> Connection:
        found, token = daemon_address(home, url=url, token_file=token_file)
        return Connection(url=found, token=token, run_id=run_id)

    # The daemon decides what the token may do inside a run.
    can_change = run_id is None or token_file is not None
    make_server(Daemon(find), can_change=can_change).run("stdio")
    return ExitCode.VERIFIED
