"""How to reach a running daemon: its address with a token, and links that sign a browser in."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx

from loopwright.core.values.errors import MachineTrouble, NotFound, Refused, UserError
from loopwright.services.access.tokens import FILE
from loopwright.services.daemon.note import running
from loopwright.services.homes.caller import current_folder

_PATIENCE_S: Final = 10.0
_LONG_S: Final = 60.0


def daemon_address(home: Path, *, url: str | None = None, token_file: Path | None = None) -> tuple[str, str]:
    """Return the address of the daemon and a token for it: the given ones, else those of the home."""
    if url is not None and token_file is None:
        raise UserError(
            "--url needs --token-file: the token of this home's daemon is for no other",
            code="flags_conflict",
            hint="put a token of that daemon into a file",
        )
    note = running(home) if url is None else None
    found = url or (note.url if note is not None else None)
    if found is None:
        raise NotFound("no daemon runs here", code="daemon_missing", hint="start it: `loopwright up`")
    file = token_file or home / FILE
    try:
        return found, file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"the token in {file} cannot be read: {error}",
            code="token_unreadable",
            hint="make one with `loopwright tokens create NAME` and put it into a file",
        ) from error


def ask_daemon(home: Path, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Ask the daemon of a home to do something, and return its document."""
    url, token = daemon_address(home)
    try:
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=url, headers=headers, timeout=_LONG_S) as client:
            reply = client.post(path, json=dict(body))
    except httpx.HTTPError as away:
        raise MachineTrouble(f"the daemon at {url} does not answer: {away}") from away
    said: dict[str, Any] = reply.json()
    if reply.is_error:
        raise Refused(str(said.get("detail")), code="daemon_refused", hint=said.get("hint"))
    return said


def login_link(home: Path, page: str | None = None) -> str:
    """Return a link that opens a page once; without one, the page of the project in this folder, else the first."""
    url, token = daemon_address(home)
    try:
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=url, headers=headers, timeout=_PATIENCE_S) as client:
            wanted = page or _page_here(client)
            made = client.post("/api/tokens/login-links")
            made.raise_for_status()
            return f"{url}/login?code={made.json()['code']}&next={quote(wanted)}"
    except httpx.HTTPStatusError as refused:
        raise Refused(
            f"the daemon answered {refused.response.status_code}",
            code="daemon_refused",
            hint="`loopwright restart` starts it again",
        ) from refused
    except httpx.HTTPError as away:
        raise MachineTrouble(f"the daemon at {url} does not answer: {away}") from away


def _page_here(client: httpx.Client) -> str:
    here = current_folder()
    after: str | None = ""
    while after is not None:
        known = client.get("/api/projects", params={"after": after})
        known.raise_for_status()
        for project in known.json()["projects"]:
            if here.is_relative_to(project["path"]):
                return f"/projects/{project['projectId']}"
        after = known.json()["next"]
    return "/"
