"""A fake of GitLab's interface for merge requests."""

from typing import Any
from urllib.parse import quote

from loopwright.testing.forges.server import Answer, Asked, FakeForge, Opened


class FakeGitLab(FakeForge):
    """Answers below `/projects/GROUP%2FNAME/merge_requests`."""

    def answer(self, asked: Asked) -> Answer:
        """Do what was asked, as GitLab does."""
        if asked.headers.get("private-token") != self.token:
            return 401, {"message": "401 Unauthorized"}
        if asked.path != f"/projects/{quote(self.repository, safe='')}/merge_requests":
            return 404, {"message": "404 Project Not Found"}
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
