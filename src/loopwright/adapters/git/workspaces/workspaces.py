"""Making and deleting private clones: workspaces for agents, trees for gates."""

import os
import shutil
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from loopwright.adapters.git.plumbing import marks
from loopwright.adapters.git.plumbing.environment import config_flags, own_env
from loopwright.adapters.git.plumbing.place import Place, Source
from loopwright.adapters.git.plumbing.private_git import Depot, write_private
from loopwright.adapters.git.plumbing.records import Module, Record, Records
from loopwright.adapters.git.plumbing.runner import Git
from loopwright.adapters.git.workspaces import modules
from loopwright.adapters.git.workspaces.copies import copy_untracked
from loopwright.adapters.machine.files import delete, held, is_real_dir
from loopwright.adapters.machine.threads import to_the_end
from loopwright.core.values.errors import GitFailed
from loopwright.ports import Tracked

_NESTING_LIMIT = 5


class Workspaces:
    """Private clones below the home, each with a record that says what was put into it."""

    def __init__(self, git: Git, place: Place, depot: Depot, records: Records) -> None:
        self._git = git
        self._place = place
        self._depot = depot
        self._records = records

    async def make(
        self,
        path: Path,
        sha: str,
        *,
        copy_files: Sequence[str],
        marker: str = "",
        keep: Callable[[Path], Awaitable[object]] | None = None,
    ) -> bool:
        """Make a clone at `sha` unless a finished one is there; say whether there was something to do.

        Whoever comes second waits and finds it. A finished one for another commit is brought there if nothing stands
        in the way. Otherwise, and if it has another marker, it is replaced after `keep` has seen to what is in it.
        """
        self._records.check(path)
        async with held(self._records.lock(path)):
            record = self._records.load(path)
            unknown = record is None and path.exists() and (not path.is_dir() or any(path.iterdir()))
            if unknown and not self._records.is_tree(path):
                raise GitFailed(
                    f"{path} holds files that Loopwright has no record of: move them away, then retry"
                )
            if record is not None and record.state == "made" and is_real_dir(path):
                if (record.sha, record.marker) == (sha, marker):
                    return False
                if marker and record.marker == marker and await self._moved(path, record, sha):
                    return True
                if keep is not None:
                    await keep(path)
            unfinished = Record(state="unfinished", sha=sha, marker=marker)
            await to_the_end(partial(self._clear, path, unfinished))
            await self._save(path, await self._build(path, unfinished, copy_files))
            return True

    async def _moved(self, path: Path, record: Record, sha: str) -> bool:
        """Bring a clone that nobody has worked in to another commit; False when it has to be made anew.

        With a git dir and an index of our own: a setup command may have written into those of the clone.
        """
        git_dir, index = path / ".git", self._records.index(path)
        if record.modules or not marks.stands_at(git_dir, record.sha) or not index.is_file():
            return False
        await self._save(path, replace(record, state="unfinished"))
        try:
            env = self._depot.env(work_tree=path, index=index)
            locks = (index.with_name(f"{index.name}.lock"),)
            await self._git.run("read-tree", "-m", "-u", record.sha, sha, env=env, cwd=path, locks=locks)
        except GitFailed:
            # The setup changed a file that landed work changes too: git looks at all of them before it begins.
            await self._save(path, record)
            return False
        marks.put(git_dir, sha, index)
        await self._save(path, replace(record, sha=sha))
        return not await modules.gitlinks(self._git, self._depot.path, index)

    def tracked(self, path: Path) -> Tracked:
        """Say how to ask what git has in a clone that is made, by our own git dir and index."""
        env = self._depot.env(work_tree=path, index=self._records.index(path))
        return Tracked(top=path, git=("git", *config_flags()), env=env)

    async def remove(self, path: Path) -> None:
        """Delete a clone with everything in it."""
        self._records.check(path)
        async with held(self._records.lock(path)):
            record = self._records.load(path)
            unfinished = None if record is None else replace(record, state="unfinished")
            try:
                await to_the_end(partial(self._clear, path, unfinished))
            except OSError as error:
                raise GitFailed(
                    f"{path} could not be deleted: {error.strerror or error} ({error.filename})"
                ) from error
            self._records.forget(path)

    def _clear(self, path: Path, unfinished: Record | None) -> None:
        """Delete a clone, in a thread. First it counts as nobody's work: half of it may be gone after a crash."""
        if unfinished is not None:
            self._records.save(path, unfinished)
        delete(path)

    async def _save(self, path: Path, record: Record) -> None:
        """Keep a record, beside everything else: to be durable it waits for the disk."""
        await to_the_end(partial(self._records.save, path, record))

    async def _build(self, path: Path, record: Record, copy_files: Sequence[str]) -> Record:
        alternates = (self._depot.objects, self._place.source.objects)
        await self._populate(path, record.sha, self._place.source, alternates)
        index = path / ".git" / "index"
        shutil.copy2(index, self._records.index(path))
        links = await modules.gitlinks(self._git, path / ".git", index)
        made: list[Module] = []
        if links:
            await self._set_up(path, b"", links, self._place.toplevel, self._place.source, made)
        copied = await copy_untracked(self._git, self._place, copy_files, path)
        borrows = tuple(map(str, alternates))
        return replace(record, state="made", copied=copied, modules=tuple(made), borrows=borrows)

    async def _populate(self, work: Path, sha: str, source: Source, alternates: Sequence[Path]) -> None:
        """Write a git dir by hand and let git fill the work tree: one process."""
        settings = self._place.settings
        git_dir = work / ".git"
        git_dir.mkdir(parents=True)
        write_private(git_dir, sha, source=source, settings=settings, alternates=alternates)
        env = own_env(git_dir, work_tree=work)
        if settings.lfs:
            # A large file that is not on this machine stays a pointer; it is never fetched behind the user's back.
            env |= {
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "lfs.url",
                "GIT_CONFIG_VALUE_0": "file:///dev/null",
            }
        await self._git.run("read-tree", "--reset", "-u", sha, env=env, cwd=work)

    async def _set_up(
        self,
        top: Path,
        prefix: bytes,
        links: Sequence[modules.Gitlink],
        checkout: Path | None,
        owner: Source,
        made: list[Module],
    ) -> None:
        """Fill the submodules whose commit the user's clones hold; the others stay empty, as after a clone."""
        if prefix.count(b"/") >= _NESTING_LIMIT:
            return
        work = top / os.fsdecode(prefix)
        names = await modules.names(self._git, work)
        for link in links:
            source = modules.clone_of(checkout, owner, link, names.get(link.path))
            inside = work / os.fsdecode(link.path)
            if source is None or not inside.is_dir() or inside.is_symlink():
                continue
            full = prefix + link.path
            key = modules.key_of(full)
            depot = self._depot.module(key, source)
            alternates = (depot.objects, source.objects)
            try:
                await self._populate(inside, link.sha, source, alternates)
            except GitFailed:
                # The clone lacks that commit; only the network has it.
                await to_the_end(partial(_emptied, inside))
                continue
            depot.ensure()
            shutil.copy2(inside / ".git" / "index", self._records.index(top, key))
            made.append(
                Module(
                    path=os.fsdecode(full),
                    git_dir=str(source.git_dir),
                    sha=link.sha,
                    key=key,
                    borrows=tuple(map(str, alternates)),
                )
            )
            nested = await modules.gitlinks(self._git, inside / ".git", inside / ".git" / "index")
            if nested:
                below = None if checkout is None else checkout / os.fsdecode(link.path)
                await self._set_up(top, full + b"/", nested, below, source, made)


def _emptied(folder: Path) -> None:
    delete(folder)
    folder.mkdir()
