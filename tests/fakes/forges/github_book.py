"""GitHub's interface for issues, reviews and checks, over what a fake knows."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.fakes.forges.book import Check, FakeIssue, Noted, Said

if TYPE_CHECKING:
    from tests.fakes.forges.server import Asked, FakeForge

Handler = Callable[["FakeForge", "Asked", str], Any]


def github_answer(fake: "FakeForge", asked: "Asked") -> tuple[int, Any]:
    """Answer whatever is not about the list of pull requests."""
    if (asked.method, asked.path) == ("POST", "/graphql"):
        return 200, _graphql(fake, asked)
    below = asked.path.removeprefix(f"/repos/{fake.repository}")
    for (method, pattern), handler in _ROUTES.items():
        found = re.fullmatch(pattern, below)
        if below != asked.path and asked.method == method and found:
            told = handler(fake, asked, found[1] if found.groups() else "")
            if told is not None:
                return (201 if method == "POST" else 200), paged(asked, told)
    return 404, {"message": "Not Found"}


def paged(asked: "Asked", told: Any) -> Any:
    """Return one page of a list, or of the list in a document."""
    size, page = int(asked.query.get("per_page", 30)), int(asked.query.get("page", 1))
    if isinstance(told, list):
        return told[size * (page - 1) : size * page]
    if isinstance(told, dict):
        return {key: paged(asked, one) if key in _LISTS else one for key, one in told.items()}
    return told


_LISTS = ("check_runs", "statuses")


def _graphql(fake: "FakeForge", asked: "Asked") -> Any:
    given = asked.body["variables"]
    issue = fake.book.issues.get(given["n"])
    if f"{given['owner']}/{given['name']}" != fake.repository or issue is None:
        return {"data": {"repository": {"issue": None}}, "errors": [{"type": "NOT_FOUND"}]}
    edited = [one.at for one in issue.history if one.what == "edited"]
    return {
        "data": {
            "repository": {
                "issue": {
                    "title": issue.title,
                    "body": issue.body,
                    "url": f"https://github.com/{fake.repository}/issues/{issue.n}",
                    "state": "OPEN" if issue.is_open else "CLOSED",
                    "lastEditedAt": edited[-1] if edited else None,
                    "author": {"login": issue.author},
                    "labels": {"nodes": [{"name": one} for one in issue.labels]},
                }
            }
        }
    }


def _listed(fake: "FakeForge", asked: "Asked", _: str) -> Any:
    label, is_open = asked.query.get("labels"), asked.query.get("state") != "closed"
    issues = [
        {"number": one.n, "title": one.title, "labels": [{"name": name} for name in one.labels]}
        for one in fake.book.issues.values()
        if one.is_open == is_open and label in (None, *one.labels)
    ]
    # A pull request is listed as an issue too.
    requests = [{"number": one.n, "title": one.title, "pull_request": {}} for one in fake.opened]
    return issues + requests


def _events(fake: "FakeForge", _: "Asked", n: str) -> Any:
    return [_event(one) for one in fake.book.issues[int(n)].history if one.what != "edited"]


def _event(one: Noted) -> dict[str, Any]:
    actor = {"login": one.by, "type": "User" if one.is_person else "Bot"}
    return {"event": one.what, "actor": actor, "created_at": one.at, "label": {"name": one.label}}


def _comments(fake: "FakeForge", _: "Asked", n: str) -> Any:
    return [_shown(one) for one in fake.book.said.get(int(n), []) if not one.review and not one.place]


def _shown(one: Said) -> dict[str, Any]:
    path, _, line = one.place.partition(":")
    place = {"path": path, "line": int(line)} if line else {}
    return {"id": one.id, "user": {"login": one.by}, "body": one.text, **place}


def _comment(fake: "FakeForge", asked: "Asked", n: str) -> Any:
    return _shown(fake.book.say(int(n), asked.body["body"]))


def _change(fake: "FakeForge", asked: "Asked", n: str) -> Any:
    issue: FakeIssue = fake.book.issues[int(n)]
    issue.labels = list(asked.body.get("labels", issue.labels))
    issue.is_open = asked.body.get("state") != "closed"
    return {"number": issue.n}


def _permission(fake: "FakeForge", _: "Asked", account: str) -> Any:
    return {"permission": "write" if account in fake.book.writers else "read"}


def _request(fake: "FakeForge", _: "Asked", n: str) -> Any:
    one = fake.request(n)
    merged = one.n in fake.book.merged
    return {
        "number": one.n,
        "state": "open" if one.is_open and not merged else "closed",
        "merged": merged,
        "head": {"ref": one.branch, "sha": fake.book.head(one.branch)},
    }


def _reviews(fake: "FakeForge", _: "Asked", n: str) -> Any:
    found = [one for one in fake.book.said.get(int(n), []) if one.review]
    return [{**_shown(one), "state": "CHANGES_REQUESTED"} for one in found]


def _lines(fake: "FakeForge", _: "Asked", n: str) -> Any:
    return [_shown(one) for one in fake.book.said.get(int(n), []) if one.place]


def _runs(fake: "FakeForge", _: "Asked", sha: str) -> Any:
    return {"check_runs": [_run(one) for one in fake.book.checks.get(sha, [])]}


def _run(one: Check) -> dict[str, Any]:
    return {
        "id": one.id,
        "name": one.name,
        "status": "in_progress" if one.running else "completed",
        "conclusion": None if one.running else "failure" if one.failed else "success",
        "output": {"title": None, "summary": None},
    }


def _statuses(_: "FakeForge", __: "Asked", ___: str) -> Any:
    return {"state": "success", "statuses": []}


def _annotations(fake: "FakeForge", _: "Asked", n: str) -> Any:
    checks = [one for each in fake.book.checks.values() for one in each if one.id == int(n)]
    return [{"path": ".github", "start_line": 1, "message": one.text} for one in checks]


_ROUTES: dict[tuple[str, str], Handler] = {
    ("GET", "/issues"): _listed,
    ("GET", r"/issues/(\d+)/events"): _events,
    ("GET", r"/issues/(\d+)/comments"): _comments,
    ("POST", r"/issues/(\d+)/comments"): _comment,
    ("PATCH", r"/issues/(\d+)"): _change,
    ("GET", r"/collaborators/([^/]+)/permission"): _permission,
    ("GET", r"/pulls/(\d+)"): _request,
    ("GET", r"/pulls/(\d+)/reviews"): _reviews,
    ("GET", r"/pulls/(\d+)/comments"): _lines,
    ("GET", r"/commits/([0-9a-f]+)/check-runs"): _runs,
    ("GET", r"/commits/([0-9a-f]+)/status"): _statuses,
    ("GET", r"/check-runs/(\d+)/annotations"): _annotations,
}
