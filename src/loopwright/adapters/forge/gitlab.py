"""Merge requests on GitLab, wherever it is."""

from typing import Any, Final
from urllib.parse import quote

from loopwright.adapters.forge.api import Api, Remote, find_or_create
from loopwright.core.values.environments import GITLAB_TOKENS
from loopwright.ports import Request, Wanted

NAME: Final = "GitLab"
HOST: Final = "gitlab.com"
TOKENS: Final = GITLAB_TOKENS


def api_url(host: str) -> str:
    """Return where a host's interface is."""
    return f"https://{host}/api/v4"


def api(url: str, token: str, token_from: str) -> Api:
    """Return the interface at an address."""
    return Api(
        url=url.rstrip("/"),
        forge=NAME,
        token=token,
        token_from=token_from,
        headers={"PRIVATE-TOKEN": token},
    )


class GitLab:
    """One project on GitLab."""

    def __init__(self, remote: Remote, url: str, token: str, token_from: str) -> None:
        self._path = f"/projects/{quote(remote.path, safe='')}/merge_requests"
        self._api = api(url, token, token_from)

    async def request(self, wanted: Wanted) -> Request:
        """Find the open request of this branch into its base, or create it; called again it finds its own."""
        told = "GitLab would not open a merge request"
        return await find_or_create(wanted, find=self._find, create=self._create, refusal=told)

    async def _find(self, wanted: Wanted) -> Request | None:
        branches = {"source_branch": wanted.branch, "target_branch": wanted.base}
        found = await self._api.get(self._path, state="opened", **branches)
        mine = [one for one in found if all(one[key] == value for key, value in branches.items())]
        return _request(mine[0], created=False) if mine else None

    async def _create(self, wanted: Wanted) -> Request:
        body = {
            "title": wanted.title,
            "description": wanted.body,
            "source_branch": wanted.branch,
            "target_branch": wanted.base,
        }
        return _request(await self._api.post(self._path, body), created=True)


def _request(found: Any, *, created: bool) -> Request:
    return Request(n=int(found["iid"]), url=str(found["web_url"]), created=created)
