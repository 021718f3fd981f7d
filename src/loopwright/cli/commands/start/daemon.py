"""`serve`, `up`, `down`, `restart`: the daemon, in this terminal or in the background."""

import asyncio
import json as jsonlib
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.markup import escape

from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console
from loopwright.core.values.errors import UserError
from loopwright.services.access.tokens import FILE as TOKEN_FILE
from loopwright.services.daemon import background, unit
from loopwright.services.daemon.note import PORT, DaemonNote, running
from loopwright.services.homes.context import settings_for


def serve(
    *,
    port: int = PORT,
    address: str = "127.0.0.1",
    host_name: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    certificate: Path | None = None,
    key: Path | None = None,
    behind_proxy: bool = False,
    slots: int | None = None,
    json: bool = False,
) -> int:
    """Run plans of every project and answer HTTP requests until you stop it.

    Parameters
    ----------
    port
        The port to listen on; 0 for any free one.
    address
        The address to listen on. Anything but this machine needs TLS or a proxy.
    host_name
        A host name that clients use for it; repeat it for several.
    certificate
        The certificate for TLS.
    key
        The private key for TLS.
    behind_proxy
        A proxy that you run terminates TLS.
    slots
        How many tasks run at once (default: the setting `parallel`).
    json
        Print one JSON document per line.
    """
    # Only looked for: the worker schedules while they are imported.
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise UserError(
            "the server is not installed",
            code="server_not_installed",
            hint="pip install 'loopwright[server]'",
        )
    # The server is an extra, and `up` and `down` do without it.
    from loopwright.server.daemon import Listening, Started

    # The same.
    from loopwright.server.daemon import serve as serve_home

    listening = Listening(
        address=address,
        port=port,
        names=host_name,
        certificate=certificate,
        key=key,
        proxy=behind_proxy,
    )

    def tell(text: str) -> None:
        if json:
            sys.stdout.write(jsonlib.dumps({"type": "note", "text": text}) + "\n")
            sys.stdout.flush()
        else:
            console().print(escape(text))

    def started(at: Started) -> None:
        if json:
            facts = {"url": at.url, "home": str(at.home), "token_file": str(at.token_file), "pid": at.pid}
            sys.stdout.write(jsonlib.dumps({"type": "listening", **facts}) + "\n")
            sys.stdout.flush()
        else:
            console().print(escape(f"listening on {at.url}; the token is in {at.token_file}"))

    asyncio.run(
        serve_home(
            settings_for(),
            listening,
            slots=slots,
            arguments=tuple(sys.argv[2:]),
            started=started,
            tell=tell,
        )
    )
    return ExitCode.VERIFIED


def up(
    *,
    port: int = PORT,
    address: str = "127.0.0.1",
    slots: int | None = None,
    json: bool = False,
) -> int:
    """Start the daemon in the background.

    Parameters
    ----------
    port
        The port to listen on; 0 for any free one.
    address
        The address to listen on.
    slots
        How many tasks run at once (default: the setting `parallel`).
    json
        Print JSON.
    """
    arguments = ["--port", str(port), "--address", address]
    if slots is not None:
        arguments += ["--slots", str(slots)]
    return _started(arguments, as_json=json)


def down(*, json: bool = False) -> int:
    """End the daemon. Agents that run continue, and the next worker adopts them.

    Parameters
    ----------
    json
        Print JSON.
    """
    note = background.end(settings_for().home)
    if json:
        sys.stdout.write(jsonlib.dumps({"ended": note.pid if note else None}) + "\n")
    else:
        console().print(f"the daemon (process {note.pid}) ended" if note else "no daemon runs here")
    return ExitCode.VERIFIED


def restart(*, json: bool = False) -> int:
    """End the daemon and start it again with the same options.

    Parameters
    ----------
    json
        Print JSON.
    """
    home = settings_for().home
    before = running(home)
    background.end(home)
    return _started(before.arguments if before else (), as_json=json)


def _started(arguments: Sequence[str], *, as_json: bool) -> int:
    home = settings_for().home
    note: DaemonNote = background.start(home, arguments)
    token = home / TOKEN_FILE
    if as_json:
        facts = {"pid": note.pid, "url": note.url, "home": str(home), "token_file": str(token)}
        sys.stdout.write(jsonlib.dumps(facts) + "\n")
        return ExitCode.VERIFIED
    out = console()
    out.print(escape(f"the daemon runs (process {note.pid}) and listens on {note.url}"))
    out.print(
        escape(f'try: curl -H "Authorization: Bearer $(cat {token})" {note.url}/api/loops'), soft_wrap=True
    )
    return ExitCode.VERIFIED


service = App(name="service", help="Let the system start the daemon at every login.", help_format="plaintext")


@service.command
def install(*, port: int = PORT, slots: int | None = None) -> int:
    """Write a systemd user unit (Linux) or a launchd agent (macOS), and say how to start it.

    Parameters
    ----------
    port
        The port to listen on.
    slots
        How many tasks run at once (default: the setting `parallel`).
    """
    arguments = ["--port", str(port), *(["--slots", str(slots)] if slots is not None else [])]
    made = unit.unit_for(sys.platform, os.environ, settings_for().home, arguments)
    unit.install(made)
    console().print(escape(f"wrote {made.path}"), soft_wrap=True)
    console().print(escape(f"start it with: {made.start}"), soft_wrap=True)
    return ExitCode.VERIFIED
