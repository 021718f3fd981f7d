"""Asking a forge over HTTP: where a remote is, its refusals in plain words, its wishes to be left alone honoured."""

import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Literal
from urllib.parse import unquote, urlsplit

import httpx

from loopwright.core.values.errors import Busy, Refused
from loopwright.ports import Request, Wanted

# What the address of a git remote says: which host, and which repository there.

_SCP: Final = re.compile(r"(?:[^@/\s]+@)?(?P<host>\[[^\]]+\]|[^:/\s]+):(?P<path>[^/\s].*)")
_SCHEMES: Final = frozenset({"https", "http", "ssh", "git", "git+ssh"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A repository on a host. Logins and ports of the address are left out: the interface has its own."""

    host: str
    path: str
    """Owner and name, or a longer path of groups; without `.git`."""

    @property
    def owner(self) -> str:
        """Everything before the name."""
        return self.path.rpartition("/")[0]


def parse_remote(address: str) -> Remote | None:
    """Read the address of a remote, of any form that git takes; None for a folder or a file."""
    if "://" in address:
        parts = urlsplit(address)
        if parts.scheme not in _SCHEMES or not parts.hostname:
            return None
        return _remote(parts.hostname, unquote(parts.path))
    found = _SCP.fullmatch(address)
    return _remote(found["host"], found["path"]) if found else None


def _remote(host: str, path: str) -> Remote | None:
    whole = path.strip("/").removesuffix(".git").strip("/")
    odd = "/" not in whole or any(part in ("", ".", "..") for part in whole.split("/"))
    return None if odd else Remote(host=host.strip("[]").lower(), path=whole)


_TIME_LIMIT_S: Final = 30.0
_LONGEST_S: Final = 3600.0
_UNTOLD_S: Final = 60.0
"""How long to leave a forge alone that asks for it without saying how long: at least a minute, says GitHub."""
_WORDS: Final = 500
_PAGE: Final = 100
_MOST_PAGES: Final = 50


class Conflict(Exception):
    """What should be created is there already, or cannot be; carries the forge's own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One repository's interface on a forge."""

    url: str
    """Without a slash at the end."""
    forge: str
    """How people call it."""
    token: str = field(repr=False)
    token_from: str
    """Where the token came from, for messages."""
    headers: Mapping[str, str] = field(repr=False)

    async def get(self, path: str, **query: str) -> Any:
        """Ask for something."""
        return self._read(await self._ask("GET", path, params=query))

    async def find(self, path: str, **query: str) -> Any:
        """Ask for something that may not be there; None if it is not."""
        answer = await self._ask("GET", path, missing=True, params=query)
        return None if answer.status_code == HTTPStatus.NOT_FOUND else self._read(answer)

    async def text(self, path: str) -> str:
        """Ask for a text that may not be there; empty if it is not."""
        answer = await self._ask("GET", path, missing=True)
        return "" if answer.status_code == HTTPStatus.NOT_FOUND else answer.text

    async def every(self, path: str, *, inside: str = "", **query: str) -> list[Any]:
        """Return every entry of a list that comes in pages; `inside` names it in each answer."""
        found: list[Any] = []
        for page in range(1, _MOST_PAGES + 1):
            told = await self.get(path, **query, per_page=str(_PAGE), page=str(page))
            entries = told[inside] if inside else told
            found += entries
            if len(entries) < _PAGE:
                return found
        raise Refused(
            f"{self.forge} has more than {len(found)} entries at {path}",
            code="forge_refused",
            hint="close or delete what is not needed there",
        )

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Create something; raise `Conflict` when the forge says that it cannot be, or is there already."""
        return self._read(await self._ask("POST", path, json=dict(body)))

    async def change(self, method: Literal["PATCH", "PUT"], path: str, body: Mapping[str, Any]) -> None:
        """Change something that is there."""
        await self._ask(method, path, json=dict(body))

    async def _ask(self, method: str, path: str, *, missing: bool = False, **more: Any) -> httpx.Response:
        try:
            # A redirect is not followed: only the named host gets the token.
            async with httpx.AsyncClient(timeout=_TIME_LIMIT_S, follow_redirects=False) as client:
                answer = await client.request(method, f"{self.url}{path}", headers=dict(self.headers), **more)
        except httpx.HTTPError as error:
            raise Busy(f"{self.forge} cannot be reached at {self.url}: {self._clean(str(error))}") from error
        if answer.is_success or (missing and answer.status_code == HTTPStatus.NOT_FOUND):
            return answer
        raise self._refusal(answer)

    def _read(self, answer: httpx.Response) -> Any:
        try:
            return answer.json()
        except ValueError as error:
            raise Refused(
                f"{self.url} does not answer like {self.forge}",
                code="forge_answer_unreadable",
                hint="look at the setting forge.hosts",
            ) from error

    def _refusal(self, answer: httpx.Response) -> Exception:
        words = self._clean(_message(answer))
        status, wait = answer.status_code, _wait(answer)
        if status == 429 or (status == 403 and wait is not None) or status >= 500:
            told = "asks to be left alone for a while" if status < 500 else f"is in trouble ({status})"
            after = wait if wait is not None else (_UNTOLD_S if status == 429 else None)
            return Busy(f"{self.forge} {told}: {words}", after_s=after)
        match status:
            case 401:
                told, hint = "does not know the token", f"put a valid one into {self.token_from}"
            case 403:
                told, hint = (
                    "does not let the token do that",
                    f"give the one in {self.token_from} the right to it",
                )
            case 404:
                told = "has no such repository, or does not show it to the token"
                hint = f"look at the remote's address, and at what the token in {self.token_from} may see"
            case 409 | 422:
                return Conflict(words)
            case 301 | 302 | 307 | 308:
                told, hint = "says that the repository has moved", "put its new address into the git remote"
            case _:
                told, hint = f"answered with {status}", "look at its words"
        return Refused(f"{self.forge} {told}: {words}", code="forge_refused", hint=hint)

    def _clean(self, text: str) -> str:
        return "".join(one if one.isprintable() else " " for one in text.replace(self.token, "***"))[:_WORDS]


def _message(answer: httpx.Response) -> str:
    """Return the forge's own words: GitHub and GitLab put them into `message`, with more in `errors`."""
    try:
        told = answer.json()
    except ValueError:
        return answer.reason_phrase
    if not isinstance(told, dict):
        return answer.reason_phrase
    pieces = [told.get("message") or told.get("error") or answer.reason_phrase]
    pieces += [_detail(one) for one in told.get("errors") or ()]
    return "; ".join(", ".join(map(str, one)) if isinstance(one, list) else str(one) for one in pieces)


def _detail(one: Any) -> Any:
    """Return one of GitHub's details: in words, or which field is at fault and how."""
    return one.get("message") or f"{one.get('field')} {one.get('code')}" if isinstance(one, dict) else one


def _wait(answer: httpx.Response) -> float | None:
    """Return how many seconds the forge wants to be left alone; None when it does not say so."""
    given = answer.headers.get("retry-after")
    if given is None and answer.headers.get("x-ratelimit-remaining") == "0":
        given = answer.headers.get("x-ratelimit-reset", "")
        if given.isdigit():
            return min(max(float(given) - time.time(), 1.0), _LONGEST_S)
    return min(float(given), _LONGEST_S) if given is not None and given.isdigit() else None


# Opening a request once, whatever the forge calls it and however often it is asked for.


async def find_or_create(
    wanted: Wanted,
    *,
    find: Callable[[Wanted], Awaitable[Request | None]],
    create: Callable[[Wanted], Awaitable[Request]],
    refusal: str,
) -> Request:
    """Return the open request of this branch into its base, or a new one; raise `Refused`, beginning with `refusal`."""
    known = await find(wanted)
    if known is not None:
        return known
    try:
        return await create(wanted)
    except Conflict as conflict:
        # Another process may have opened it in this moment.
        known = await find(wanted)
        if known is not None:
            return known
        raise Refused(
            f"{refusal} of {wanted.branch} into {wanted.base}: {conflict}",
            code="pull_request_refused",
            hint=f"see that the branch {wanted.base} is there, and that it lacks what the other one has",
        ) from conflict
