"""Git as the engine sees it: commits, refs and workspaces, without a disk."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.simulation.trouble import Trouble, effect

from loopwright.core.values.errors import GitFailed, MergeConflict
from loopwright.core.values.patches import Patch, read_patch
from loopwright.ports import Candidate, Entry, FileChange, Snapshot, Standing, Step, Trailers, Tripwire

Files = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A tree and where it came from."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    trailers: Trailers | None
    command: str = ""
    """The person's command that it carries out."""
    takes_out: tuple[str, ...] = ()
    """The landings that it takes back."""


@dataclass(slots=True, kw_only=True)
class Workspace:
    """A private clone on one machine's disk."""

    base_sha: str
    marker: str
    files: dict[str, str]
    ready: bool = False
    touched: bool = False
    """An agent wrote here."""


@dataclass(slots=True, kw_only=True)
class Target:
    """The user's repository, and the disks of all machines."""

    commits: dict[str, Commit] = field(default_factory=dict)
    trees: dict[str, Files] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    workspaces: dict[tuple[str, Path], Workspace] = field(default_factory=dict)
    checkouts: dict[tuple[str, Path], str] = field(default_factory=dict)
    """Trees that gates run in, by machine and place."""
    stubborn: set[tuple[str, str]] = field(default_factory=set)
    """What fails on a good tree however often it is run, while the storm lasts: a tree and a command."""

    def tree(self, files: Files) -> str:
        """Return the id of a tree, which is the same for the same files."""
        text = repr(sorted(files.items()))
        tree = hashlib.sha1(text.encode()).hexdigest()
        self.trees.setdefault(tree, dict(files))
        return tree

    def commit(
        self, tree: str, parents: tuple[str, ...], trailers: Trailers | None = None, about: str = ""
    ) -> Commit:
        """Return a commit; the same one has the same id, as in git."""
        sha = hashlib.sha1(repr((tree, parents, trailers, about)).encode()).hexdigest()
        made = Commit(sha=sha, tree=tree, parents=parents, trailers=trailers)
        return self.commits.setdefault(sha, made)

    def files(self, sha: str) -> Files:
        """Return the files of a commit."""
        return self.trees[self.commits[sha].tree]

    def line(self, tip: str, since: str | None = None) -> Iterator[Commit]:
        """Walk the first-parent line from the tip back, up to and without `since`."""
        sha: str | None = tip
        while sha is not None and sha != since:
            commit = self.commits[sha]
            yield commit
            sha = commit.parents[0] if commit.parents else None

    def reaches(self, tips: Iterable[str], wanted: str) -> bool:
        """Say whether a commit is contained in any of these."""
        todo, seen = list(tips), set()
        while todo:
            sha = todo.pop()
            if sha == wanted:
                return True
            if sha not in seen:
                seen.add(sha)
                todo.extend(self.commits[sha].parents)
        return False


def merged(base: Files, ours: Files, theirs: Files) -> tuple[dict[str, str], list[str]]:
    """Merge three trees; say which paths both sides changed."""
    files: dict[str, str] = {}
    conflicts = []
    for path in sorted({*base, *ours, *theirs}):
        was, our, their = base.get(path), ours.get(path), theirs.get(path)
        if our != their and was not in (our, their):
            conflicts.append(path)
        chosen = their if our == was else our
        if chosen is not None:
            files[path] = chosen
    return files, conflicts


def _entry(files: Files, path: str) -> Entry | None:
    return Entry(mode="100644", id=files[path]) if path in files else None


def patch_between(old: Files, new: Files) -> Patch:
    """Return what differs between two trees, read from what git would print of it."""
    lines: list[str] = []
    for path in sorted({*old, *new}):
        was, now = old.get(path), new.get(path)
        if was != now:
            sides = f"-{1 if was is not None else 0},{1 if was is not None else 0}"
            sides += f" +{1 if now is not None else 0},{1 if now is not None else 0}"
            lines += [f"diff --git a/{path} b/{path}", f"@@ {sides} @@"]
            lines += [f"-{was}"] * (was is not None) + [f"+{now}"] * (now is not None)
    return read_patch(f"{line}\n".encode() for line in lines)


class SimRepository:
    """The Repository port of one worker, on one machine."""

    def __init__(
        self, target: Target, trouble: Trouble, host: str, watch: Callable[[str, Mapping[str, Any]], None]
    ) -> None:
        self._target = target
        self._trouble = trouble
        self._host = host
        self._watch = watch

    async def _do(self, name: str, *, times: float = 1.0) -> None:
        await self._trouble.delay("git")
        await effect(self._trouble, f"git.{name}.before")
        if self._trouble.strikes("git_trouble", times * self._trouble.rarely, name):
            raise GitFailed(f"git {name} failed: no space left on device")

    async def _done(self, name: str) -> None:
        await effect(self._trouble, f"git.{name}.after")

    async def before(self, name: str) -> None:
        """Be the moment right before something is done."""
        await self._do(name)

    async def after(self, name: str) -> None:
        """Be the moment right after something was done."""
        await self._done(name)

    async def ends(self) -> Any:
        from tests.simulation.promises.ends import SimEnds

        return SimEnds(self, self._target, self._trouble, self._watch)

    async def files_at(self, sha: str, paths: Sequence[str]) -> dict[str, bytes]:
        files = self._target.files(sha)
        return {path: files[path].encode() for path in paths if path in files}

    async def ensure_branch(self, branch: str, sha: str) -> str:
        await self._do("ensure_branch")
        tip = self._target.refs.setdefault(branch, sha)
        await self._done("ensure_branch")
        return tip

    async def tip(self, branch: str) -> str:
        await self._do("tip")
        return self._target.refs[branch]

    async def standing(self, branch: str) -> Standing:
        return Standing(tip=await self.tip(branch))

    async def make_workspace(self, path: Path, sha: str, *, copy_files: Any = (), marker: str = "") -> bool:
        await self._do("make_workspace")
        place = (self._host, path)
        found = self._target.workspaces.get(place)
        wanted = found is None or not found.ready or (found.base_sha, found.marker) != (sha, marker)
        if wanted:
            self._watch("workspace_gone", {"place": place, "workspace": found})
            made = Workspace(base_sha=sha, marker=marker, files={})
            self._target.workspaces[place] = made
            await effect(self._trouble, "git.make_workspace.half")
            made.files.update(self._target.files(sha))
            made.ready = True
        await self._done("make_workspace")
        return wanted

    async def pinned(self, plan_id: str) -> dict[str, str]:
        folder = f"refs/loopwright/attempts/{plan_id}/"
        return {name: sha for name, sha in self._target.refs.items() if name.startswith(folder)}

    def has_workspace(self, path: Path) -> bool:
        return (self._host, path) in self._target.workspaces or (self._host, path) in self._target.checkouts

    async def snapshot(
        self, path: Path, *, base_sha: str, ref: str, subject: str, trailers: Trailers, at: datetime
    ) -> Snapshot:
        await self._do("snapshot")
        target = self._target
        workspace = target.workspaces.get((self._host, path))
        if workspace is None:
            raise GitFailed(f"{path} is gone")
        tree = target.tree(workspace.files)
        pinned = target.commits.get(target.refs.get(ref, ""))
        if pinned is not None and (pinned.tree, pinned.trailers) == (tree, trailers):
            commit = pinned
        else:
            commit = target.commit(tree, (base_sha,), trailers, f"{subject} {at}")
        base = target.files(base_sha)
        changed = sorted(
            one for one in {*base, *workspace.files} if base.get(one) != workspace.files.get(one)
        )
        await effect(self._trouble, "git.snapshot.half")
        if pinned is not None and pinned.sha != commit.sha:
            target.refs[f"{ref}-was-{pinned.sha[:12]}"] = pinned.sha
        target.refs[ref] = commit.sha
        await self._done("snapshot")
        return Snapshot(sha=commit.sha, tree=tree, changed=tuple(changed))

    async def archive(self, path: Path, dest: Path) -> None:
        raise GitFailed(f"{path} can be recorded: there is no reason for {dest}")

    async def try_keeping(self, *, near: str) -> None:
        # Only asked where git has failed three times in a row, so that it often goes on failing.
        await self._do("try_keeping", times=30.0)

    async def candidate(
        self,
        *,
        tip: str,
        attempt_sha: str,
        subject: str,
        trailers: Trailers,
        at: datetime,
        leave: Sequence[str] = (),
    ) -> Candidate:
        assert not leave, "no simulated plan has a source that is told on its branch"
        await self._do("candidate")
        target = self._target
        attempt = target.commits[attempt_sha]
        # A round of a loop begins with what the one before left, which never landed.
        common = next(one for one in target.line(attempt.parents[0]) if target.reaches([tip], one.sha))
        base, ours = target.trees[common.tree], target.files(tip)
        files, conflicts = merged(base, ours, target.trees[attempt.tree])
        if conflicts:
            raise MergeConflict(tuple(conflicts), "both changed it")
        tree = target.tree(files)
        commit = target.commit(tree, (tip, attempt_sha), trailers, f"{subject} {at}")
        return Candidate(
            parent=tip,
            sha=commit.sha,
            tree=tree,
            empty=tree == target.commits[tip].tree,
            changes=self._changes(ours, files) if self._trouble.has("contradiction") else (),
        )

    def _changes(self, before: Files, after: Files) -> tuple[FileChange, ...]:
        """Return the tests that differ: of other files nothing is asked."""
        return tuple(
            FileChange(path=path, before=_entry(before, path), after=_entry(after, path))
            for path in sorted({*before, *after})
            if path.startswith("tests/") and before.get(path) != after.get(path)
        )

    async def laid_over(
        self, candidate: Candidate, *, restore: Sequence[FileChange], texts: Mapping[str, str]
    ) -> Candidate:
        assert not texts, "no simulated file judges in part"
        await self._do("laid_over")
        before, files = self._target.files(candidate.parent), dict(self._target.trees[candidate.tree])
        for change in restore:
            files.pop(change.path, None)
            if change.path in before:
                files[change.path] = before[change.path]
        tree = self._target.tree(files)
        sha = self._target.commit(tree, (candidate.parent,), None, f"old checks of {candidate.sha}").sha
        return replace(candidate, sha=sha, tree=tree)

    async def texts(self, ids: Sequence[str], *, limit: int) -> dict[str, str]:
        return {}

    async def listed(self, sha: str) -> dict[str, Entry]:
        files = self._target.files(sha)
        return {path: Entry(mode="100644", id=text) for path, text in files.items()}

    async def checkout(self, path: Path, sha: str, *, copy_files: Any = ()) -> None:
        await self._do("checkout")
        self._target.checkouts[self._host, path] = self._target.commits[sha].tree
        await self._done("checkout")

    async def landed(
        self, branch_tip: str, *, since: str, task_id: str, among: Any, reverts: Any
    ) -> str | None:
        await self._do("landed")
        gone: set[str] = set()
        for commit in self._target.line(branch_tip, since):
            gone.update(commit.takes_out if commit.sha in reverts else ())
            mine = commit.trailers is not None and commit.trailers.task == task_id
            if mine and commit.sha in among and commit.sha not in gone:
                return commit.sha
        return None

    async def changed(self, old: str, new: str) -> tuple[str, ...]:
        await self._do("changed")
        before, after = self._target.files(old), self._target.files(new)
        return tuple(sorted(one for one in {*before, *after} if before.get(one) != after.get(one)))

    async def difference(self, old: str, new: str, *, paths: Any = (), limit: int) -> str:
        changed = await self.changed(old, new)
        return "\n".join(one for one in changed if not paths or one in paths)[:limit]

    async def steps(self, tip: str, *, since: str, most: int | None = None) -> tuple[Step, ...]:
        await self._do("steps")
        return tuple(
            Step(
                sha=one.sha,
                tree=one.tree,
                parent=one.parents[0] if one.parents else "",
                tasks=(one.trailers.task,) if one.trailers else (),
                command=one.command,
                takes_out=one.takes_out,
            )
            for one in list(self._target.line(tip, since))[:most]
        )

    async def without(
        self, tip: str, *, landings: Sequence[str], subject: str, plan_id: str, command_id: str, at: datetime
    ) -> Candidate:
        await self._do("without")
        target = self._target
        files: Files = target.files(tip)
        for landing in landings:
            before = target.files(target.commits[landing].parents[0])
            files, conflicts = merged(target.files(landing), files, before)
            if conflicts:
                raise MergeConflict(tuple(conflicts), "later work changed it")
        tree = target.tree(files)
        sha = hashlib.sha1(repr((tree, tip, command_id)).encode()).hexdigest()
        target.commits[sha] = Commit(
            sha=sha,
            tree=tree,
            parents=(tip,),
            trailers=None,
            command=command_id,
            takes_out=tuple(landings),
        )
        return Candidate(parent=tip, sha=sha, tree=tree, empty=tree == target.commits[tip].tree)

    async def advance(self, branch: str, *, new: str, old: str) -> bool:
        await self._do("advance")
        target = self._target
        if target.refs[branch] != old:
            return False
        target.refs[branch] = new
        self._trouble.history.note(f"lands {new[:8]} on {old[:8]}")
        self._watch("landed", {"branch": branch, "new": new, "old": old})
        await self._done("advance")
        return True

    async def is_ancestor(self, sha: str, of: str) -> bool:
        await self._do("is_ancestor")
        return self._target.reaches([of], sha)

    async def proven(self, sha: str, target: str) -> bool:
        await self._do("proven")
        return self._target.reaches([target], sha)

    async def drop_quarantine(self, older_than: datetime) -> tuple[Any, ...]:
        await self._do("drop_quarantine")
        return ()

    async def tree_of(self, sha: str) -> str:
        # Seldom asked, and then a lot hangs on whether git has failed or has no such commit.
        await self._do("tree_of", times=8.0)
        return self._target.commits[sha].tree

    async def patch(self, old: str, new: str) -> Patch:
        await self._do("patch")
        return patch_between(self._target.files(old), self._target.files(new))

    async def tripwire(self) -> Tripwire:
        await self._do("tripwire")
        return Tripwire(head="main", refs={}, status={}, config={})

    async def is_pinned(self, ref: str) -> bool:
        return ref in self._target.refs

    async def repin(self, plan_id: str, *, near: str) -> tuple[str, ...]:
        return ()  # no simulated agent reaches for a ref

    def stray(self, before: Tripwire, after: Tripwire) -> tuple[str, ...]:
        return ()

    async def remove_workspace(self, path: Path) -> None:
        await self._do("remove_workspace")
        place = (self._host, path)
        if (found := self._target.workspaces.pop(place, None)) is not None:
            self._watch("workspace_gone", {"place": place, "workspace": found})
        self._target.checkouts.pop(place, None)
        await self._done("remove_workspace")
