"""Issues on GitHub, and the checks and comments of pull requests."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

from loopwright.adapters.forge.api import Remote
from loopwright.adapters.forge.github import api
from loopwright.core.values.errors import NotFound
from loopwright.ports import Checks, FailedCheck, Issue, Remark, RequestStatus

_ISSUE: Final = """query($owner: String!, $name: String!, $n: Int!) {
  repository(owner: $owner, name: $name) {
    issue(number: $n) {
      title body url state lastEditedAt author { login } labels(first: 100) { nodes { name } }
    }
  }
}"""
"""Only GraphQL tells when a text was edited."""
_WRITERS: Final = frozenset({"admin", "maintain", "write"})
_FAILED: Final = frozenset({"failure", "timed_out", "startup_failure"})
_OBJECTING: Final = frozenset({"CHANGES_REQUESTED", "COMMENTED"})


class GitHubIssues:
    """The issues and pull requests of one repository on GitHub."""

    def __init__(self, remote: Remote, url: str, token: str, token_from: str) -> None:
        self._remote = remote
        self._api = api(url, token, token_from)
        self._graphql = api(url.rstrip("/").removesuffix("/v3"), token, token_from)
        self._path = f"/repos/{remote.path}"

    @property
    def name(self) -> str:
        """The host and the path of the repository."""
        return f"{self._remote.host}/{self._remote.path}"

    async def labelled(self, label: str) -> Sequence[int]:
        """Return the numbers of the open issues with a label; pull requests are left out."""
        found = await self._api.every(f"{self._path}/issues", state="open", labels=label)
        return sorted(int(one["number"]) for one in found if "pull_request" not in one)

    async def issue(self, n: int, label: str) -> Issue:
        """Return an issue; the text is read before its history, so an edit in between is seen as one."""
        variables = {"owner": self._remote.owner, "name": self._remote.path.rpartition("/")[2], "n": n}
        told = await self._graphql.post("/graphql", {"query": _ISSUE, "variables": variables})
        found = ((told.get("data") or {}).get("repository") or {}).get("issue")
        if found is None:
            raise NotFound(
                f"{self.name} has no issue {n}, or does not show it to the token",
                code="issue_not_found",
                hint="look at its number, and at what the token may read",
            )
        events = await self._api.every(f"{self._path}/issues/{n}/events")
        set_ = [one for one in events if one["event"] == "labeled" and one["label"]["name"] == label]
        edits = [_time(one["created_at"]) for one in events if one["event"] == "renamed"]
        edits += [_time(found["lastEditedAt"])] if found["lastEditedAt"] else []
        return Issue(
            n=n,
            url=found["url"],
            title=found["title"],
            body=found["body"] or "",
            author=(found["author"] or {}).get("login", ""),
            labels=tuple(one["name"] for one in found["labels"]["nodes"]),
            is_open=found["state"] == "OPEN",
            labelled_by=_person(set_[-1].get("actor")) if set_ else "",
            labelled_at=_time(set_[-1]["created_at"]) if set_ else None,
            edited_at=max(edits, default=None),
        )

    async def may_write(self, account: str) -> bool:
        """Return whether an account may write to the repository."""
        if not account:
            return False
        found = await self._api.find(f"{self._path}/collaborators/{quote(account, safe='')}/permission")
        return found is not None and found.get("permission") in _WRITERS

    async def remarks(self, n: int) -> Sequence[Remark]:
        """Return the comments on an issue, the oldest first."""
        found = await self._api.every(f"{self._path}/issues/{n}/comments")
        return [_remark("comment", one) for one in found]

    async def comment(self, n: int, text: str) -> None:
        """Comment on an issue."""
        await self._api.post(f"{self._path}/issues/{n}/comments", {"body": text})

    async def change(self, n: int, *, labels: Sequence[str], close: bool = False) -> None:
        """Give an issue these labels and no others; with `close`, close it."""
        state = {"state": "closed", "state_reason": "completed"} if close else {}
        await self._api.change("PATCH", f"{self._path}/issues/{n}", {"labels": list(labels), **state})

    async def request_status(self, n: int) -> RequestStatus:
        """Return the status of a pull request."""
        found = await self._api.get(f"{self._path}/pulls/{n}")
        is_open = found["state"] == "open"
        return RequestStatus(
            state="merged" if found["merged"] else "open" if is_open else "closed", head=found["head"]["sha"]
        )

    async def request_remarks(self, n: int) -> Sequence[Remark]:
        """Return the comments on a pull request and on its lines, and the reviews that do not approve."""
        reviews = await self._api.every(f"{self._path}/pulls/{n}/reviews")
        lines = await self._api.every(f"{self._path}/pulls/{n}/comments")
        return [
            *(await self.remarks(n)),
            *(_remark("review", one) for one in reviews if one["state"] in _OBJECTING and one["body"]),
            *(_remark("line", one, place=_place(one["path"], one.get("line"))) for one in lines),
        ]

    async def request_comment(self, n: int, text: str) -> None:
        """Comment on a pull request, which is an issue too."""
        await self.comment(n, text)

    async def checks(self, sha: str) -> Checks:
        """Return the results of a commit's check runs and statuses."""
        runs = await self._api.every(f"{self._path}/commits/{sha}/check-runs", inside="check_runs")
        statuses = await self._api.every(f"{self._path}/commits/{sha}/status", inside="statuses")
        failed = [
            FailedCheck(id=f"run-{one['id']}", name=one["name"], text=await self._said(one))
            for one in runs
            if one["conclusion"] in _FAILED
        ]
        failed += [
            FailedCheck(id=f"status-{one['id']}", name=one["context"], text=one["description"] or "")
            for one in statuses
            if one["state"] in ("failure", "error")
        ]
        return Checks(
            running=any(one["status"] != "completed" for one in runs)
            or any(one["state"] == "pending" for one in statuses),
            failed=tuple(failed),
        )

    async def _said(self, run: Mapping[str, Any]) -> str:
        output = run.get("output") or {}
        notes = await self._api.every(f"{self._path}/check-runs/{run['id']}/annotations")
        found = [f"{_place(one['path'], one.get('start_line'))}: {one['message']}" for one in notes]
        return "\n".join(filter(None, (output.get("title"), output.get("summary"), *found)))


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _person(actor: Mapping[str, Any] | None) -> str:
    """Return the name of a user's account; empty for a program or a deleted account."""
    return str(actor["login"]) if actor and actor.get("type") == "User" else ""


def _place(path: str, line: int | None) -> str:
    return f"{path}:{line}" if line else path


def _remark(kind: str, found: Mapping[str, Any], place: str = "") -> Remark:
    who = (found.get("user") or {}).get("login", "")
    return Remark(id=f"{kind}-{found['id']}", author=who, text=found["body"] or "", place=place)
