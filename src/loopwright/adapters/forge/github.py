"""Pull requests on GitHub and GitHub Enterprise Server."""

from typing import Any, Final

from loopwright.adapters.forge.api import Api, Remote, find_or_create
from loopwright.core.values.environments import GITHUB_TOKENS
from loopwright.ports import Request, Wanted

NAME: Final = "GitHub"
HOST: Final = "github.com"
TOKENS: Final = GITHUB_TOKENS


def api_url(host: str) -> str:
    """Return where a host's interface is."""
    return "https://api.github.com" if host == HOST else f"https://{host}/api/v3"


def api(url: str, token: str, token_from: str) -> Api:
    """Return the interface at an address."""
    return Api(
        url=url.rstrip("/"),
        forge=NAME,
        token=token,
        token_from=token_from,
        headers={
            "Authorization": f"Bearer {token}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        },
    )


class GitHub:
    """One repository on GitHub."""

    def __init__(self, remote: Remote, url: str, token: str, token_from: str) -> None:
        self._remote = remote
        self._api = api(url, token, token_from)

    async def request(self, wanted: Wanted) -> Request:
        """Find the open request of this branch into its base, or create it; called again it finds its own."""
        told = "GitHub would not open a pull request"
        return await find_or_create(wanted, find=self._find, create=self._create, refusal=told)

    async def _find(self, wanted: Wanted) -> Request | None:
        head = f"{self._remote.owner}:{wanted.branch}"
        found = await self._api.get(self._path, state="open", head=head, base=wanted.base)
        # A forge that does not know a filter answers with everything.
        mine = [
            one for one in found if one["head"]["ref"] == wanted.branch and one["base"]["ref"] == wanted.base
        ]
        return _request(mine[0], created=False) if mine else None

    async def _create(self, wanted: Wanted) -> Request:
        body = {"title": wanted.title, "body": wanted.body, "head": wanted.branch, "base": wanted.base}
        return _request(await self._api.post(self._path, body), created=True)

    @property
    def _path(self) -> str:
        return f"/repos/{self._remote.path}/pulls"


def _request(found: Any, *, created: bool) -> Request:
    return Request(n=int(found["number"]), url=str(found["html_url"]), created=created)
