"""Issues on GitLab, and the jobs and comments of merge requests."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

from loopwright.adapters.forge.api import Remote
from loopwright.adapters.forge.gitlab import api
from loopwright.ports import Checks, FailedCheck, Issue, Remark, RequestStatus

_EDITED: Final = ("changed title", "changed the description", "marked the ")
"""How GitLab notes a change of the text; the last one is a ticked box."""
_BOT: Final = re.compile(r"(project|group)_\d+_bot\w*")
_DEVELOPER: Final = 30
"""The lowest access level that may push."""
_RUNNING: Final = frozenset(
    {"created", "waiting_for_resource", "preparing", "pending", "running", "scheduled"}
)
_TAIL: Final = 3_000
"""How many characters of a job's output are read, from its end."""
_STATES: Final = {"opened": "open", "locked": "open", "merged": "merged"}


class GitLabIssues:
    """The issues and merge requests of one project on GitLab."""

    def __init__(self, remote: Remote, url: str, token: str, token_from: str) -> None:
        self._remote = remote
        self._api = api(url, token, token_from)
        self._path = f"/projects/{quote(remote.path, safe='')}"

    @property
    def name(self) -> str:
        """The host and the path of the project."""
        return f"{self._remote.host}/{self._remote.path}"

    async def labelled(self, label: str) -> Sequence[int]:
        """Return the numbers of the open issues with a label."""
        found = await self._api.every(f"{self._path}/issues", state="opened", labels=label)
        return sorted(int(one["iid"]) for one in found)

    async def issue(self, n: int, label: str) -> Issue:
        """Return an issue; the text is read before its history, so an edit in between is seen as one."""
        path = f"{self._path}/issues/{n}"
        found = await self._api.get(path)
        events = await self._api.every(f"{path}/resource_label_events")
        notes = await self._api.every(f"{path}/notes", sort="asc")
        set_ = [one for one in events if one["action"] == "add" and (one["label"] or {}).get("name") == label]
        edits = [
            _time(one["created_at"]) for one in notes if one["system"] and one["body"].startswith(_EDITED)
        ]
        return Issue(
            n=n,
            url=found["web_url"],
            title=found["title"],
            body=found["description"] or "",
            author=(found["author"] or {}).get("username", ""),
            labels=tuple(found["labels"]),
            is_open=found["state"] == "opened",
            labelled_by=_person(set_[-1].get("user")) if set_ else "",
            labelled_at=_time(set_[-1]["created_at"]) if set_ else None,
            edited_at=max(edits, default=None),
        )

    async def may_write(self, account: str) -> bool:
        """Return whether an account may write to the project."""
        found = await self._api.every(f"{self._path}/members/all", query=account) if account else []
        return any(
            one["username"] == account and one["state"] == "active" and one["access_level"] >= _DEVELOPER
            for one in found
        )

    async def remarks(self, n: int) -> Sequence[Remark]:
        """Return the comments on an issue, the oldest first."""
        return await self._notes(f"{self._path}/issues/{n}/notes")

    async def comment(self, n: int, text: str) -> None:
        """Comment on an issue."""
        await self._api.post(f"{self._path}/issues/{n}/notes", {"body": text})

    async def change(self, n: int, *, labels: Sequence[str], close: bool = False) -> None:
        """Give an issue these labels and no others; with `close`, close it."""
        state = {"state_event": "close"} if close else {}
        await self._api.change("PUT", f"{self._path}/issues/{n}", {"labels": ",".join(labels), **state})

    async def request_status(self, n: int) -> RequestStatus:
        """Return the status of a merge request."""
        found = await self._api.get(f"{self._path}/merge_requests/{n}")
        match _STATES.get(found["state"]):
            case "open":
                return RequestStatus(state="open", head=found["sha"])
            case "merged":
                return RequestStatus(state="merged", head=found["sha"])
        return RequestStatus(state="closed", head=found["sha"])

    async def request_remarks(self, n: int) -> Sequence[Remark]:
        """Return the comments on a merge request and on its lines that are not resolved."""
        return await self._notes(f"{self._path}/merge_requests/{n}/notes")

    async def request_comment(self, n: int, text: str) -> None:
        """Comment on a merge request."""
        await self._api.post(f"{self._path}/merge_requests/{n}/notes", {"body": text})

    async def checks(self, sha: str) -> Checks:
        """Return the results of a commit's pipelines, with their failed jobs."""
        found = await self._api.every(f"{self._path}/pipelines", sha=sha)
        # Of several for the same reason only the last one counts.
        pipelines = {one["source"]: one for one in sorted(found, key=lambda one: int(one["id"]))}.values()
        failed = []
        for one in pipelines:
            if one["status"] == "failed":
                jobs = await self._api.every(f"{self._path}/pipelines/{one['id']}/jobs")
                failed += [job for job in jobs if job["status"] == "failed" and not job.get("allow_failure")]
        return Checks(
            running=any(one["status"] in _RUNNING for one in pipelines),
            failed=tuple([await self._failed(job) for job in failed]),
        )

    async def _failed(self, job: Mapping[str, Any]) -> FailedCheck:
        output = await self._api.text(f"{self._path}/jobs/{job['id']}/trace")
        return FailedCheck(id=f"job-{job['id']}", name=job["name"], text=output[-_TAIL:])

    async def _notes(self, path: str) -> list[Remark]:
        found = await self._api.every(path, sort="asc")
        return [_remark(one) for one in found if not one["system"] and not one.get("resolved")]


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _person(user: Mapping[str, Any] | None) -> str:
    """Return the name of a user's account; empty for a program or a deleted account."""
    name = str(user["username"]) if user else ""
    return "" if _BOT.fullmatch(name) else name


def _remark(found: Mapping[str, Any]) -> Remark:
    where = found.get("position") or {}
    path, line = where.get("new_path") or "", where.get("new_line")
    who = (found.get("author") or {}).get("username", "")
    return Remark(
        id=f"note-{found['id']}",
        author=who,
        text=found["body"] or "",
        place=f"{path}:{line}" if line else path,
    )
