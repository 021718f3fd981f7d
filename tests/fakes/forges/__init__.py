"""Fakes of GitHub and GitLab on the loopback interface, for tests of whatever opens pull requests.

They know one repository and one token, keep the requests that are opened in memory, check what the real ones check,
and play any trouble that they are told to.
"""

from tests.fakes.forges.server import Asked, FakeForge, FakeGitHub, FakeGitLab, Opened, Trouble

__all__ = ["Asked", "FakeForge", "FakeGitHub", "FakeGitLab", "Opened", "Trouble"]
