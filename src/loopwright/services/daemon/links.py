"""Links to the pages of a running daemon that sign a browser in."""

from pathlib import Path
from typing import Final
from urllib.parse import quote

import httpx

from loopwright.core.values.errors import MachineTrouble, NotFound, Refused
from loopwright.services.access.tokens import FILE
from loopwright.services.daemon.note import running
from loopwright.services.homes.caller import current_folder

_PATIENCE_S: Final = 10.0


def login_link(home: Path, page: str | None = None) -> str:
    """Return a link that opens a page once; without one, the page of the project in this folder, else the first."""
    note = running(home)
    if note is None:
        raise NotFound("no daemon runs here", code="daemon_missing", hint="start it: `loopwright up`")
    try:
        token = (home / FILE).read_text(encoding="utf-8").strip()
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=note.url, headers=headers, timeout=_PATIENCE_S) as client:
            wanted = page or _page_here(client)
            made = client.post("/api/tokens/login-links")
            made.raise_for_status()
            return f"{note.url}/login?code={made.json()['code']}&next={quote(wanted)}"
    except httpx.HTTPStatusError as refused:
        raise Refused(
            f"the daemon answered {refused.response.status_code}",
            code="daemon_refused",
            hint="`loopwright restart` starts it again",
        ) from refused
    except (httpx.HTTPError, OSError) as away:
        raise MachineTrouble(f"the daemon at {note.url} does not answer: {away}") from away


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
