"""GitLab's interface for issues, notes and pipelines, over what a fake knows."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tests.fakes.forges.book import FakeIssue, Noted, Said
from tests.fakes.forges.github_book import paged

if TYPE_CHECKING:
    from tests.fakes.forges.server import Asked, FakeForge

Handler = Callable[["FakeForge", "Asked", str], Any]
_NOTES = {"edited": "changed the description", "renamed": "changed title from **a** to **b**"}


def gitlab_answer(fake: "FakeForge", asked: "Asked") -> tuple[int, Any]:
    """Answer whatever is not about the list of merge requests."""
    below = asked.path.removeprefix(f"/projects/{quote(fake.repository, safe='')}")
    for (method, pattern), handler in _ROUTES.items():
        found = re.fullmatch(pattern, below)
        if below != asked.path and asked.method == method and found:
            told = handler(fake, asked, found[1] if found.groups() else "")
            if told is None:
                break
            return (201 if method == "POST" else 200), paged(asked, told)
    return 404, {"message": "404 Project Not Found"}


def _listed(fake: "FakeForge", asked: "Asked", _: str) -> Any:
    label = asked.query.get("labels")
    found = [one for one in fake.book.issues.values() if one.is_open and label in (None, *one.labels)]
    return [{"iid": one.n, "title": one.title} for one in found]


def _issue(fake: "FakeForge", _: "Asked", n: str) -> Any:
    if int(n) not in fake.book.issues:
        return None
    issue = fake.book.issues[int(n)]
    return {
        "iid": issue.n,
        "title": issue.title,
        "description": issue.body,
        "web_url": f"https://gitlab.com/{fake.repository}/-/issues/{issue.n}",
        "state": "opened" if issue.is_open else "closed",
        "author": {"username": issue.author},
        "labels": issue.labels,
    }


def _label_events(fake: "FakeForge", _: "Asked", n: str) -> Any:
    return [
        {
            "user": {"username": _account(one)},
            "created_at": one.at,
            "action": "add",
            "label": {"name": one.label},
        }
        for one in fake.book.issues[int(n)].history
        if one.what == "labeled"
    ]


def _account(one: Noted) -> str:
    return one.by if one.is_person else "project_7_bot_0a1b2c"


def _issue_notes(fake: "FakeForge", asked: "Asked", n: str) -> Any:
    system = [
        {
            "id": 0,
            "system": True,
            "body": _NOTES[one.what],
            "author": {"username": one.by},
            "created_at": one.at,
        }
        for one in fake.book.issues[int(n)].history
        if one.what in _NOTES
    ]
    return system + _notes(fake, asked, n)


def _notes(fake: "FakeForge", _: "Asked", n: str) -> list[Any]:
    return [_shown(one) for one in fake.book.said.get(int(n), [])]


def _shown(one: Said) -> dict[str, Any]:
    path, _, line = one.place.partition(":")
    place = {"position": {"new_path": path, "new_line": int(line)}} if line else {}
    return {"id": one.id, "system": False, "author": {"username": one.by}, "body": one.text, **place}


def _comment(fake: "FakeForge", asked: "Asked", n: str) -> Any:
    return _shown(fake.book.say(int(n), asked.body["body"]))


def _change(fake: "FakeForge", asked: "Asked", n: str) -> Any:
    issue: FakeIssue = fake.book.issues[int(n)]
    issue.labels = [one for one in asked.body["labels"].split(",") if one]
    issue.is_open = asked.body.get("state_event") != "close"
    return {"iid": issue.n}


def _members(fake: "FakeForge", asked: "Asked", _: str) -> Any:
    wanted = asked.query.get("query", "")
    return [
        {"username": one, "state": "active", "access_level": 40}
        for one in sorted(fake.book.writers)
        if wanted in one
    ]


def _request(fake: "FakeForge", _: "Asked", n: str) -> Any:
    one = fake.request(n)
    state = "merged" if one.n in fake.book.merged else "opened" if one.is_open else "closed"
    return {"iid": one.n, "state": state, "sha": fake.book.head(one.branch)}


def _pipelines(fake: "FakeForge", asked: "Asked", _: str) -> Any:
    checks = fake.book.checks.get(asked.query["sha"], [])
    if not checks:
        return []
    running, failed = any(one.running for one in checks), any(one.failed for one in checks)
    status = "running" if running else "failed" if failed else "success"
    return [{"id": _pipeline(asked.query["sha"]), "source": "push", "status": status}]


def _pipeline(sha: str) -> int:
    return int(sha[:8], 16)


def _jobs(fake: "FakeForge", _: "Asked", n: str) -> Any:
    return [
        {
            "id": one.id,
            "name": one.name,
            "status": "failed" if one.failed else "success",
            "allow_failure": False,
        }
        for sha, each in fake.book.checks.items()
        if _pipeline(sha) == int(n)
        for one in each
    ]


def _trace(fake: "FakeForge", _: "Asked", n: str) -> Any:
    return "".join(one.text for each in fake.book.checks.values() for one in each if one.id == int(n))


_ROUTES: dict[tuple[str, str], Handler] = {
    ("GET", "/issues"): _listed,
    ("GET", r"/issues/(\d+)"): _issue,
    ("GET", r"/issues/(\d+)/resource_label_events"): _label_events,
    ("GET", r"/issues/(\d+)/notes"): _issue_notes,
    ("POST", r"/issues/(\d+)/notes"): _comment,
    ("PUT", r"/issues/(\d+)"): _change,
    ("GET", "/members/all"): _members,
    ("GET", r"/merge_requests/(\d+)"): _request,
    ("GET", r"/merge_requests/(\d+)/notes"): _notes,
    ("POST", r"/merge_requests/(\d+)/notes"): _comment,
    ("GET", "/pipelines"): _pipelines,
    ("GET", r"/pipelines/(\d+)/jobs"): _jobs,
    ("GET", r"/jobs/(\d+)/trace"): _trace,
}
