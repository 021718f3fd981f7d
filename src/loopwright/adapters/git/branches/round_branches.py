"""The branches and worktrees of an orchestrator's rounds: in the user's repository, moved by the controller alone.

Every method is idempotent: called again after a crash it finds its own work.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loopwright.adapters.git.plumbing.runner import Done, Git, user_env
from loopwright.adapters.machine.noted_lock import NotedLock
from loopwright.ports import Failpoint, no_failpoint

_BEGUN = "refs/orchestrator/begun"
_WRITES = frozenset({"update-ref", "branch", "worktree", "commit", "merge"})
"""What changes something that a later controller finds."""
_AS_CONTROLLER = ("-c", "user.name=Loopwright", "-c", "user.email=loopwright@localhost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """A branch together with another commit."""

    sha: str
    """The merge commit; where both changed the same lines, its files have git's conflict marks."""
    conflicts: tuple[str, ...] = ()


class RoundBranches:
    """The branches of rounds, of their workers and of roadmap updates."""

    def __init__(self, git: Git, root: Path, failpoint: Failpoint = no_failpoint) -> None:
        """Take the top of the user's checkout."""
        self._failpoint = failpoint
        self._git = git
        self._root = root

    async def lock(self) -> NotedLock:
        """Return the lock of the repository's controller: all its worktrees share the branches of rounds."""
        shared = await self._words("rev-parse", "--path-format=absolute", "--git-common-dir")
        return NotedLock(Path(shared) / "loopwright-controller.lock")

    async def checked_out(self) -> str:
        """Return the branch that is checked out; empty where there is none."""
        return await self._words("symbolic-ref", "-q", "--short", "HEAD", ok=(0, 1))

    async def tip(self, branch: str) -> str:
        """Return the tip of a branch; empty if it does not exist."""
        return await self._words("rev-parse", "-q", "--verify", f"refs/heads/{branch}^{{commit}}", ok=(0, 1))

    async def fork(self, branch: str, base: str) -> str:
        """Return the commit in which a branch left another; empty where they have nothing in common."""
        return await self._words("merge-base", branch, base, ok=(0, 1))

    async def note_begin(self, round_id: str, sha: str) -> None:
        """Note the commit that a round began with: its role files count for the whole round."""
        if await self.begin_of(round_id) != sha:
            await self._run("update-ref", f"{_BEGUN}/{round_id}", sha)

    async def begin_of(self, round_id: str) -> str:
        """Return the commit that a round began with; empty if that was not noted."""
        return await self._words("rev-parse", "-q", "--verify", f"{_BEGUN}/{round_id}", ok=(0, 1))

    async def committed_at(self, sha: str) -> int:
        """Return when a commit was made, in seconds."""
        return int(await self._words("show", "-s", "--format=%ct", sha))

    async def is_ignored(self, path: str) -> bool:
        """Return whether git ignores a path."""
        return (await self._run("check-ignore", "-q", path, ok=(0, 1))).code == 0

    async def open(self, branch: str, path: str, *, at: str) -> str:
        """Make a branch, if there is none, and its worktree, if that is gone; return the branch's tip."""
        if not await self.tip(branch):
            await self._run("branch", "--no-track", branch, at)
        if not self.is_open(path):
            await self._run("worktree", "prune")
            await self._run("worktree", "add", "--quiet", path, branch)
        return await self.tip(branch)

    def is_open(self, path: str) -> bool:
        """Return whether there is a worktree at a path."""
        return (self._root / path / ".git").exists()

    async def keep(self, path: str, message: str) -> str:
        """Commit what a worktree holds beyond its branch; return the tip."""
        where = self._root / path
        await self._run("add", "-A", cwd=where)
        if (await self._run("diff", "--cached", "--quiet", cwd=where, ok=(0, 1))).code:
            await self._run(*_AS_CONTROLLER, "commit", "--quiet", "--no-verify", "-m", message, cwd=where)
        return (await self._run("rev-parse", "HEAD", cwd=where)).text

    async def forward(self, path: str, sha: str) -> bool:
        """Move a worktree's branch on to a commit that builds on it; False when it does not."""
        where = self._root / path
        if (await self._run("merge-base", "--is-ancestor", sha, "HEAD", cwd=where, ok=(0, 1))).code == 0:
            return True
        done = await self._run("merge", "--ff-only", "--quiet", sha, cwd=where, ok=(0, 1, 128))
        return done.code == 0

    async def join(self, tip: str, base: str, message: str) -> Joined:
        """Return a commit that has both, for a branch that the base went away from."""
        done = await self._run("merge-tree", "--write-tree", "-z", "--name-only", tip, base, ok=(0, 1))
        tree, *names = done.out.split(b"\0\0", 1)[0].decode("utf-8", "surrogateescape").split("\0")
        sha = await self._words(*_AS_CONTROLLER, "commit-tree", tree, "-p", tip, "-p", base, "-m", message)
        return Joined(sha=sha, conflicts=tuple(filter(None, names)) if done.code else ())

    async def close(self, path: str) -> None:
        """Remove a worktree; its branch stays, so that every commit of the round can be reached."""
        if self.is_open(path):
            await self._run("worktree", "remove", "--force", path)
        await self._run("worktree", "prune")

    async def commit_only(self, paths: Sequence[str], message: str) -> None:
        """Commit some files of the user's checkout and nothing else of it."""
        changed = await self._run("status", "--porcelain", "--", *paths)
        if changed.text:
            await self._run("add", "--", *paths)
            await self._run(
                *_AS_CONTROLLER, "commit", "--quiet", "--no-verify", "--only", "-m", message, "--", *paths
            )

    async def _words(self, *args: str, ok: Sequence[int] = (0,)) -> str:
        return (await self._run(*args, ok=ok)).text

    async def _run(self, *args: str, cwd: Path | None = None, ok: Sequence[int] = (0,)) -> Done:
        writes = bool(_WRITES.intersection(args)) and "prune" not in args
        if writes:
            self._failpoint("round.write.before")
        done = await self._git.run(*args, env=user_env(), cwd=cwd or self._root, ok=ok)
        if writes:
            self._failpoint("round.write.after")
        return done
