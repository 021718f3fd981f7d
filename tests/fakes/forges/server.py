"""What the fakes have in common: a server on the loopback interface, one repository, and trouble on demand."""

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, quote, urlsplit

from tests.fakes.forges.book import Book
from tests.fakes.forges.github_book import github_answer
from tests.fakes.forges.gitlab_book import gitlab_answer

Answer = tuple[int, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A request that somebody opened."""

    n: int
    title: str
    body: str
    branch: str
    base: str
    is_open: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """An answer that stands in for the right one; `then_do` does what was asked all the same, before it."""

    status: int
    message: str = "trouble"
    headers: Mapping[str, str] = field(default_factory=dict)
    then_do: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What somebody asked of the server."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """With names in lower case."""
    body: Mapping[str, Any]


class FakeForge(ABC):
    """A forge with one repository, while it is entered as a context."""

    def __init__(
        self, repository: str, *, token: str = "let-me-in", branches: Set[str] = frozenset()
    ) -> None:
        self.repository = repository
        self.token = token
        self.branches = set(branches)
        """The branches that it has; none means that it does not look."""
        self.opened: list[Opened] = []
        self.asked: list[Asked] = []
        self.troubles: list[Trouble | None] = []
        """Played one after the other, before it behaves; None stands for an answer without trouble."""
        self.book = Book()
        """Its issues, and what people and checks say."""
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        """Where its interface is."""
        assert self._server is not None, "enter it first"
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self, n: int) -> None:
        """Close a request, as a person would."""
        self.opened = [replace(one, is_open=False) if one.n == n else one for one in self.opened]

    def __enter__(self) -> Self:
        """Begin to answer."""
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                fake._handle(self)

            def do_POST(self) -> None:
                fake._handle(self)

            def do_PATCH(self) -> None:
                fake._handle(self)

            def do_PUT(self) -> None:
                fake._handle(self)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop answering."""
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    def _handle(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        size = int(handler.headers.get("content-length") or 0)
        asked = Asked(
            method=handler.command,
            path=parts.path,
            query=dict(parse_qsl(parts.query)),
            headers={name.lower(): value for name, value in handler.headers.items()},
            body=json.loads(handler.rfile.read(size)) if size else {},
        )
        self.asked.append(asked)
        headers: Mapping[str, str] = {}
        trouble = self.troubles.pop(0) if self.troubles else None
        if trouble is not None:
            if trouble.then_do:
                self.answer(asked)
            (status, told), headers = (trouble.status, {"message": trouble.message}), trouble.headers
        else:
            status, told = self.answer(asked)
        text = told.encode() if isinstance(told, str) else json.dumps(told).encode()
        handler.send_response(status)
        for name, value in {**headers, "Content-Type": "application/json"}.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    @abstractmethod
    def answer(self, asked: Asked) -> Answer:
        """Do what was asked, as the real one does."""

    def open(self, *, title: str, body: str, branch: str, base: str) -> Opened:
        """Take a new request in."""
        n = len(self.book.issues) + len(self.opened) + 1
        one = Opened(n=n, title=title, body=body, branch=branch, base=base)
        self.opened.append(one)
        return one

    def same(self, branch: str, base: str) -> Opened | None:
        """Return the open request of a branch into a base."""
        return next((o for o in self.opened if o.is_open and (o.branch, o.base) == (branch, base)), None)

    def request(self, n: str) -> Opened:
        """Return a request by its number."""
        return next(one for one in self.opened if one.n == int(n))

    def has(self, branch: str) -> bool:
        """Say whether it has a branch, as far as it was told."""
        return not self.branches or branch in self.branches


# A fake of GitHub.


class FakeGitHub(FakeForge):
    """Answers below `/repos/OWNER/NAME`."""

    def answer(self, asked: Asked) -> Answer:
        """Do what was asked, as GitHub does."""
        if asked.headers.get("authorization") != f"Bearer {self.token}":
            return 401, {"message": "Bad credentials"}
        if asked.path != f"/repos/{self.repository}/pulls":
            return github_answer(self, asked)
        if asked.method == "GET":
            return 200, self._listed(asked)
        branch, base = asked.body["head"], asked.body["base"]
        if not self.has(base):
            return _invalid({"resource": "PullRequest", "field": "base", "code": "invalid"})
        if not self.has(branch):
            return _invalid({"resource": "PullRequest", "field": "head", "code": "invalid"})
        if self.same(branch, base):
            owner = self.repository.partition("/")[0]
            told = f"A pull request already exists for {owner}:{branch}."
            return _invalid({"resource": "PullRequest", "code": "custom", "message": told})
        made = self.open(title=asked.body["title"], body=asked.body["body"], branch=branch, base=base)
        return 201, self._shown(made)

    def _listed(self, asked: Asked) -> list[Any]:
        owner = self.repository.partition("/")[0]
        state, head, base = (asked.query.get(name) for name in ("state", "head", "base"))
        return [
            self._shown(one)
            for one in self.opened
            if one.is_open == (state != "closed")
            and head in (None, f"{owner}:{one.branch}")
            and base in (None, one.base)
        ]

    def _shown(self, one: Opened) -> dict[str, Any]:
        return {
            "number": one.n,
            "html_url": f"https://github.com/{self.repository}/pull/{one.n}",
            "state": "open" if one.is_open else "closed",
            "title": one.title,
            "body": one.body,
            "head": {"ref": one.branch},
            "base": {"ref": one.base},
        }


def _invalid(error: dict[str, str]) -> Answer:
    return 422, {"message": "Validation Failed", "errors": [error]}


# A fake of GitLab.


class FakeGitLab(FakeForge):
    """Answers below `/projects/GROUP%2FNAME`."""

    def answer(self, asked: Asked) -> Answer:
        """Do what was asked, as GitLab does."""
        if asked.headers.get("private-token") != self.token:
            return 401, {"message": "401 Unauthorized"}
        if asked.path != f"/projects/{quote(self.repository, safe='')}/merge_requests":
            return gitlab_answer(self, asked)
        if asked.method == "GET":
            return 200, self._listed(asked)
        branch, base = asked.body["source_branch"], asked.body["target_branch"]
        if not self.has(base):
            return 422, {"message": ["Target branch does not exist"]}
        if not self.has(branch):
            return 422, {"message": ["Source branch does not exist"]}
        if same := self.same(branch, base):
            told = f"Another open merge request already exists for this source branch: !{same.n}"
            return 409, {"message": [told]}
        made = self.open(title=asked.body["title"], body=asked.body["description"], branch=branch, base=base)
        return 201, self._shown(made)

    def _listed(self, asked: Asked) -> list[Any]:
        query = asked.query
        return [
            self._shown(one)
            for one in self.opened
            if (one.is_open or query.get("state") != "opened")
            and query.get("source_branch") in (None, one.branch)
            and query.get("target_branch") in (None, one.base)
        ]

    def _shown(self, one: Opened) -> dict[str, Any]:
        return {
            "iid": one.n,
            "web_url": f"https://gitlab.com/{self.repository}/-/merge_requests/{one.n}",
            "state": "opened" if one.is_open else "closed",
            "title": one.title,
            "description": one.body,
            "source_branch": one.branch,
            "target_branch": one.base,
        }
