"""The end of a plan in git: commits built on the user's branch, and that branch moved with its checkout."""

from collections.abc import Collection, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from loopwright.adapters.git.branches.merging import Merging
from loopwright.adapters.git.plumbing import names
from loopwright.adapters.git.plumbing.commits import write_commit
from loopwright.adapters.git.plumbing.network import KEYS, LOGIN, network_env, present
from loopwright.adapters.git.plumbing.place import Place
from loopwright.adapters.git.plumbing.private_git import Depot
from loopwright.adapters.git.plumbing.refs import Refs
from loopwright.adapters.git.plumbing.runner import Git, user_env
from loopwright.core.policy.finishing import FINISH_TRAILER
from loopwright.core.values.errors import GitFailed, Refused
from loopwright.ports import Failpoint
from loopwright.ports.ends import Built, Pick

_NAMED: Final = 5
_REACHABLE: Final = tuple(
    part
    for word in ("file", "ssh", "https", "http", "git")
    for part in ("-c", f"protocol.{word}.allow=always")
)
"""A push goes where the user's remote says; everything else stays local."""
_FAST_FORWARD: Final = (
    "merge",
    "--ff-only",
    "--no-squash",
    "--no-autostash",
    # Files that git ignores are the user's too: without this they would be overwritten in silence.
    "--no-overwrite-ignore",
    "--quiet",
)


class GitEnds:
    """`ports.ends.Ends` on real git."""

    def __init__(
        self, git: Git, place: Place, depot: Depot, merging: Merging, refs: Refs, failpoint: Failpoint
    ) -> None:
        self._git = git
        self._place = place
        self._depot = depot
        self._merging = merging
        self._refs = refs
        self._failpoint = failpoint

    async def base_tip(self, ref: str) -> str | None:
        """Return where a branch of the user's stands; None when `ref` names no branch."""
        name = _full(ref)
        if name is None:
            return None
        known = await self._refs.read(name)
        return known[name].sha if name in known else None

    async def joined(self, target: str, source: str) -> str:
        """Return the tree of both together; raise `MergeConflict`."""
        if await self._merging.is_ancestor(target, source):
            return await self._merging.tree_of(source)
        return await self._merging.merged(target, source)

    async def commit(
        self, tree: str, *, parents: Sequence[str], message: str, at: datetime, sign: bool = False
    ) -> str:
        """Write a commit into the user's repository, signed with the user's own key if asked; no ref moves."""
        if not sign:
            into = self._depot.source.objects
            return write_commit(self._depot, tree, parents=parents, message=message, at=at, into=into)
        settings, moment = self._depot.settings, f"{int(at.timestamp())} +0000"
        env = self._place.source.env() | present(KEYS)
        for who in ("AUTHOR", "COMMITTER"):
            env |= {f"GIT_{who}_NAME": settings.name, f"GIT_{who}_EMAIL": settings.email}
            env[f"GIT_{who}_DATE"] = moment
        named = [part for parent in parents for part in ("-p", names.sha(parent))]
        try:
            done = await self._git.run(
                "commit-tree",
                "-S",
                names.sha(tree),
                *named,
                "-F",
                "-",
                env=env,
                stdin=f"{message}\n".encode(),
            )
        except GitFailed as failed:
            raise Refused(
                f"the commit could not be signed with your key: {failed}",
                code="commit_not_signed",
                hint="set user.signingkey (and gpg.format ssh for an ssh key) in git, or finish_sign to false",
            ) from failed
        return done.text

    async def can_sign(self) -> bool:
        """Return whether git knows a key of the user's to sign with."""
        env = self._place.source.env()
        return bool((await self._git.run("config", "user.signingkey", env=env, ok=(0, 1))).text)

    async def picked(self, target: str, picks: Sequence[Pick], *, at: datetime, sign: bool = False) -> Built:
        """Build the changes of some commits on another base, one after the other; raise `MergeConflict`."""
        tip, tree = names.sha(target), await self._merging.tree_of(target)
        into = self._depot.source.objects

        def bare(tree: str, *parents: str) -> str:
            return write_commit(self._depot, tree, parents=parents, message="picked", at=at, into=into)

        for pick in picks:
            # Three commits in a triangle make git merge the three trees, with the picked one's parent as their base.
            before = bare(await self._merging.tree_of(pick.parent))
            after = bare(await self._merging.tree_of(pick.sha), before)
            tree = await self._merging.merged(bare(tree, before), after)
            if tree != await self._merging.tree_of(tip):
                tip = await self.commit(tree, parents=(tip,), message=pick.message, at=at, sign=sign)
        return Built(sha=tip, tree=tree)

    async def text(self, sha: str) -> str:
        """Return a commit as git has it: its headers and its message."""
        done = await self._git.run("cat-file", "commit", names.sha(sha), env=self._depot.env())
        return done.out.decode("utf-8", "replace")

    async def arrived(self, sha: str, ref: str, *, since: str, key: str) -> str | None:
        """Return the commit on a branch that is `sha` or carries the trailer with this key; None when there is none."""
        tip = await self.base_tip(ref)
        if tip is None:
            return None
        if await self._merging.is_ancestor(names.sha(sha), tip):
            return sha
        # Another process may have amended or rebased it in the meantime: the trailer stays.
        form = f"%H %(trailers:key={FINISH_TRAILER},valueonly,separator=%x2C)"
        done = await self._git.run(
            "log", "--first-parent", f"--format={form}", tip, f"^{names.sha(since)}", env=self._depot.env()
        )
        found = (line.partition(" ") for line in done.text.splitlines())
        named = next((commit for commit, _, value in found if value.strip() == key), None)
        # Any commit can say that: only one that has the work in it counts.
        return named if named is not None and await self._merging.proven(sha, named) else None

    async def move(self, ref: str, *, new: str, old: str, leave: Collection[str] = ()) -> bool:
        """Move a branch of the user's, with the checkout that has it; False when it was not at `old`."""
        name = _full(ref)
        known = await self._refs.read(name) if name else {}
        if name is None or name not in known:
            return False
        if known[name].sha != old:
            return known[name].sha == new
        where = Path(known[name].worktree) if known[name].worktree else None
        if where is None or not where.is_dir():
            return await self._refs.swap(name, new=names.sha(new), old=names.sha(old))
        await self._check_clean(where, name, ref, leave)
        self._failpoint("git.base.before")
        try:
            await self._git.run(*_FAST_FORWARD, names.sha(new), env=user_env(), cwd=where)
        except GitFailed as failed:
            if await self.base_tip(ref) != old:
                return False
            # git names the files that are in its way one to a line, after a tab.
            if in_the_way := [line.strip() for line in str(failed).splitlines() if line.startswith("\t")]:
                shown = ", ".join(in_the_way[:_NAMED]) + (" …" if len(in_the_way) > _NAMED else "")
                raise Refused(
                    f"{ref} is checked out in {where}, with files in it that git does not know and that the result "
                    f"has as well: {shown}",
                    code="untracked_files_in_the_way",
                    hint=f"move them away from {where}",
                ) from failed
            raise Refused(
                f"{ref} is checked out in {where}, and git would not move it: {' '.join(str(failed).split())}",
                code="checkout_not_moved",
                hint=f"see to it in {where}",
            ) from failed
        self._failpoint("git.base.after")
        return await self.base_tip(ref) == new

    async def _check_clean(self, where: Path, name: str, ref: str, leave: Collection[str]) -> None:
        """Refuse a checkout with changes of the user's: their work is never mixed with ours."""
        head = await self._git.run("symbolic-ref", "-q", "HEAD", env=user_env(), cwd=where, ok=(0, 1))
        status = await self._git.run(
            "status", "--porcelain", "-z", "--untracked-files=no", env=user_env(), cwd=where
        )
        dirty = [names.display(one[3:]) for one in status.out.split(b"\0") if len(one) > 3]
        dirty = [path for path in dirty if path not in leave]
        if head.text != name:
            raise Refused(
                f"{where} is just being switched to another branch",
                code="checkout_switching",
                hint="try again in a moment",
            )
        if dirty:
            shown = ", ".join(dirty[:_NAMED]) + (" …" if len(dirty) > _NAMED else "")
            raise Refused(
                f"{ref} is checked out in {where} with changes that are not committed: {shown}",
                code="checkout_has_changes",
                hint="commit or stash them there",
            )

    async def keep(self, branch: str, sha: str) -> None:
        """Name a commit by one of our branches, so that it is not lost."""
        name = names.branch(branch)
        if not await self._refs.create(name, names.sha(sha)) and await self._refs.tip(name) != sha:
            raise GitFailed(f"the branch {branch} exists already at another commit")

    async def remote(self, name: str) -> str | None:
        """Return the address that a git remote pushes to; None when there is no such remote."""
        if name.startswith("-"):
            return None
        env = self._place.source.env()
        done = await self._git.run("remote", "get-url", "--push", name, env=env, ok=(0, 1, 2, 128))
        if done.code != 0 or not done.text:
            return None
        if not done.text.startswith(("/", ".", "file:")):
            return done.text
        # A rule of the user's (`url.….insteadOf`) may lead to a folder: then what is written there tells the forge.
        written = await self._git.run("config", "--get", f"remote.{name}.url", env=env, ok=(0, 1))
        return written.text or done.text

    async def push(self, remote: str, sha: str, branch: str) -> None:
        """Bring a commit to a branch of a remote; raise `Refused` with what to do when that is not possible."""
        target = names.branch(branch)
        env = {**self._place.source.env(), **network_env()}
        self._failpoint("git.push.before")
        try:
            await self._git.run(*_REACHABLE, "push", "--quiet", remote, f"{names.sha(sha)}:{target}", env=env)
        except GitFailed as failed:
            words = LOGIN.sub("", str(failed)).partition(": ")[2]
            raise Refused(
                f"the branch could not be pushed to {remote}: {words}",
                code="push_failed",
                hint=f"see that `git push {remote} {sha[:10]}:{target}` works in a terminal without asking anything",
            ) from failed
        self._failpoint("git.push.after")


def _full(ref: str) -> str | None:
    """Return the full name of a user's branch; None for a branch of Loopwright, and for what cannot be a branch."""
    name = ref.removeprefix("refs/heads/")
    odd = not name or name == "HEAD" or name.startswith(("-", "loopwright/")) or set(name) & set("*?[ ~^:\\")
    return None if odd else f"refs/heads/{name}"
