"""A fake of GitHub's interface for pull requests."""

from typing import Any

from loopwright.testing.forges.server import Answer, Asked, FakeForge, Opened


class FakeGitHub(FakeForge):
    """Answers below `/repos/OWNER/NAME/pulls`."""

    def answer(self, asked: Asked) -> Answer:
        """Do what was asked, as GitHub does."""
        if asked.headers.get("authorization") != f"Bearer {self.token}":
            return 401, {"message": "Bad credentials"}
        if asked.path != f"/repos/{self.repository}/pulls":
            return 404, {"message": "Not Found"}
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
