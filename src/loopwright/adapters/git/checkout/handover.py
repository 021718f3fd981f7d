"""A checkout for a user who does a task by hand: a worktree of the user's repository, on its own branch.

Nothing here runs in what an agent could have configured: it is the user's repository, with the user's own settings.
"""

import shutil
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from loopwright.adapters.git.branches.merging import Merging
from loopwright.adapters.git.plumbing import names
from loopwright.adapters.git.plumbing.commits import message_of, write_commit
from loopwright.adapters.git.plumbing.private_git import Depot
from loopwright.adapters.git.plumbing.refs import Refs
from loopwright.adapters.git.plumbing.runner import Git, user_env
from loopwright.core.values.errors import GitFailed, NotFound, Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """What a person's checkout holds."""

    head: str
    uncommitted: tuple[str, ...] = ()
    """Changed and new paths that are in no commit."""


class ByHand:
    """Makes and reads checkouts for people; none is ever deleted here."""

    def __init__(self, git: Git, depot: Depot, refs: Refs, merging: Merging) -> None:
        self._git = git
        self._depot = depot
        self._refs = refs
        self._merging = merging

    async def hand_out(self, directory: Path, branch: str, sha: str) -> None:
        """Make a worktree on a branch; one that is there is left as it is, and so is a branch with commits."""
        name = names.branch(branch)
        if (directory / ".git").exists():
            return
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise Refused(
                f"{directory} holds other files",
                code="folder_not_empty",
                hint="name a DIR that is not there yet",
            )
        env = self._depot.source.env()
        await self._git.run("worktree", "prune", env=env)
        directory.parent.mkdir(parents=True, exist_ok=True)
        there = await self._refs.tip(name) is not None
        words = (str(directory), branch) if there else ("-b", branch, str(directory), names.sha(sha))
        await self._git.run("worktree", "add", "-q", *words, env=env)

    async def start(self, work: str | None, *, base: str | None, tip: str, subject: str, at: datetime) -> str:
        """Return the commit that a person begins with: the last work there is, else the tip.

        What was landed and taken back is put into its own commit: git would merge nothing of what the branch has
        seen before.
        """
        if work is None:
            return tip
        if base is None or not await self._merging.is_ancestor(work, tip):
            return work
        tree = await self._merging.tree_of(work)
        return self._commit(tree, base, subject, at)

    async def look(self, directory: Path, branch: str) -> Hands:
        """Return what a person's checkout holds; when it is gone, what its branch has."""
        if not (directory / ".git").exists():
            head = await self._refs.tip(names.branch(branch))
            if head is None:
                raise NotFound(
                    f"{directory} is gone, and so is the branch {branch}",
                    code="checkout_gone",
                    hint="`loopwright take-over TASK --drop` gives the task to the machine again",
                )
            return Hands(head=head)
        head = (await self._git.run("rev-parse", "HEAD", env=user_env(), cwd=directory)).text
        status = await self._git.run(
            "status",
            "--porcelain",
            "-z",
            "--no-renames",
            "--untracked-files=all",
            env=user_env(),
            cwd=directory,
        )
        entries = status.out.decode("utf-8", "replace").split("\0")
        return Hands(head=head, uncommitted=tuple(entry[3:] for entry in entries if entry))

    async def take_in(self, directory: Path, hands: Hands, *, ref: str, subject: str, at: datetime) -> str:
        """Pin what a person did, uncommitted changes included, and return the commit; the checkout stays as it is."""
        sha = hands.head
        if hands.uncommitted:
            sha = await self._committed(directory, sha, subject, at)
        known = await self._refs.tip(names.pin(ref))
        if known not in (None, sha):
            # It may be what is being checked: what a pin meant stays pinned too.
            await self._refs.swap(f"{ref}-was-{known[:12]}", new=known, old=self._depot.null)
        if known != sha and not await self._refs.swap(ref, new=sha, old=known or self._depot.null):
            raise GitFailed(f"{ref} was moved by another process at this moment: hand it back again")
        return sha

    async def _committed(self, directory: Path, head: str, subject: str, at: datetime) -> str:
        """Commit everything with our own index, so that the person's own says what it said."""
        with tempfile.TemporaryDirectory() as scratch:
            index = Path(scratch) / "index"
            path = await self._git.run("rev-parse", "--git-path", "index", env=user_env(), cwd=directory)
            if (directory / path.text).is_file():
                shutil.copy2(directory / path.text, index)
            env = user_env() | {"GIT_INDEX_FILE": str(index)}
            await self._git.run("add", "-A", env=env, cwd=directory)
            tree = (await self._git.run("write-tree", env=env, cwd=directory)).text
        return self._commit(tree, head, subject, at)

    def _commit(self, tree: str, parent: str, subject: str, at: datetime) -> str:
        into = self._depot.source.objects
        message = message_of(subject, None)
        return write_commit(self._depot, tree, parents=(parent,), message=message, at=at, into=into)

    async def base_of(self, sha: str, tip: str) -> str:
        """Return where a person's work and the plan branch part."""
        done = await self._git.run(
            "merge-base", names.sha(sha), names.sha(tip), env=self._depot.env(), ok=(0, 1)
        )
        if done.code != 0:
            raise Refused(
                f"{sha[:10]} has nothing in common with the plan branch",
                code="no_common_history",
                hint="start from the commit that `take-over` gave you",
            )
        return done.text
