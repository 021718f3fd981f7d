"""Making and deleting private clones: workspaces for agents, trees for gates."""

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final

from loopwright.adapters.git.plumbing.place import Place, Source
from loopwright.adapters.git.plumbing.private_git import WORK_BRANCH, Depot, write_private
from loopwright.adapters.git.plumbing.records import Module, Record, Records
from loopwright.adapters.git.plumbing.runner import Git, config_flags, own_env, user_env
from loopwright.adapters.git.workspaces import modules
from loopwright.adapters.machine.files import delete, held, is_real_dir, regular_text
from loopwright.adapters.machine.threads import to_the_end
from loopwright.core.values.errors import BadConfig, GitFailed
from loopwright.core.values.state_folders import is_state_path
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
        """Make a clone at `sha` unless a finished one is there; return whether there was something to do.

        A second caller waits and finds it. A finished one for another commit is brought there if nothing is
        in the way. Otherwise, and if it has another marker, it is replaced after `keep` has saved what is in it.
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
        """Bring an unused clone to another commit; False when it has to be made again.

        With a git dir and our own index: a setup command may have written into those of the clone.
        """
        git_dir, index = path / ".git", self._records.index(path)
        if record.modules or not stands_at(git_dir, record.sha) or not index.is_file():
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
        put(git_dir, sha, index)
        await self._save(path, replace(record, sha=sha))
        return not await modules.gitlinks(self._git, self._depot.path, index)

    def tracked(self, path: Path) -> Tracked:
        """Return how to ask what git has in a clone that is made, by our own git dir and index."""
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
        """Delete a clone, in a thread. First mark it as unfinished: half of it may be gone after a crash."""
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


# Where a workspace's own git dir says it is. Read and written as files: an agent may have changed them.

_LIMIT: Final = 1000


def stands_at(git_dir: Path, sha: str) -> bool:
    """Return whether a clone is on the branch and at the commit that it was made with."""
    folders = (git_dir, *(git_dir / part for part in ("refs", "refs/heads")))
    if not all(is_real_dir(folder) for folder in folders):
        return False
    return _text(git_dir / "HEAD") == f"ref: {WORK_BRANCH}" and _text(git_dir / WORK_BRANCH) == sha


def put(git_dir: Path, sha: str, index: Path) -> None:
    """Record that it is at another commit now, with this index."""
    _replace(git_dir / "index", index.read_bytes())
    _replace(git_dir / WORK_BRANCH, f"{sha}\n".encode())


def _replace(path: Path, content: bytes) -> None:
    """Put a plain file in the place of whatever is there; a link is not followed."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    with os.fdopen(handle, "wb") as file:
        file.write(content)


def _text(path: Path) -> str:
    return regular_text(path, limit=_LIMIT)


# Files that git does not track but a workspace needs, such as `.env`, copied from the user's checkout.


async def copy_untracked(git: Git, place: Place, patterns: Sequence[str], dest: Path) -> tuple[str, ...]:
    """Copy the untracked files that match and return their paths inside the repository.

    Patterns are relative to the project's folder; `*` stops at a slash, `**/` does not, and a folder means all
    that is in it. A link is copied as the file it leads to, and only if that file is in the checkout.
    """
    if not patterns or place.toplevel is None:
        return ()
    for pattern in patterns:
        parts = PurePosixPath(pattern).parts
        if not parts or pattern.startswith("/") or ".." in parts:
            raise BadConfig(
                f"copy_files: {pattern!r} leaves the project",
                code="copy_files_outside",
                hint="Use patterns relative to the project's folder, such as .env or config/*.local.",
            )
    done = await git.run(
        "ls-files",
        "-z",
        "--others",
        "--full-name",
        "--",
        *(f":(glob){pattern}" for pattern in patterns),
        env=user_env(),
        cwd=place.toplevel / place.prefix,
    )
    names = [os.fsdecode(name) for name in done.out.split(b"\0") if name and not name.endswith(b"/")]
    return await asyncio.to_thread(_copy, place.toplevel, names, dest)


def _copy(top: Path, names: Sequence[str], dest: Path) -> tuple[str, ...]:
    copied = []
    for name in sorted(names):
        if is_state_path(name):
            continue
        found = Path(os.path.realpath(top / name))
        if not found.is_relative_to(top) or not found.is_file() or not _is_free(dest, name):
            continue
        target = dest / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(found, target)
        copied.append(name)
    return tuple(copied)


def _is_free(root: Path, name: str) -> bool:
    """Return whether a new file at `name` would lie inside `root`, replacing nothing and passing no link."""
    here = root
    *folders, last = PurePosixPath(name).parts
    for part in folders:
        here /= part
        if here.is_symlink() or (here.exists() and not here.is_dir()):
            return False
    return not os.path.lexists(here / last)


# Where the objects lie that workspaces borrow: what a contained process has to be able to read.

_DEEPEST = 5
"""Git itself follows no longer chains."""


def borrowed(depot: Depot) -> tuple[Path, ...]:
    """Return the folders of objects of a project, of its submodules, and of those that they borrow from in turn.

    Read from the user's repository and ours alone: what a workspace says of it may be an agent's word.
    """
    found = [depot.objects, depot.source.objects]
    found += _of_modules(depot.path / "modules")
    found += _of_modules(depot.source.common_dir / "modules")
    for _ in range(_DEEPEST):
        found += [path for folder in found for path in _alternates(folder) if path not in found]
    return tuple(dict.fromkeys(found))


def _of_modules(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("objects") if folder.is_dir() else ():
        if (path.parent / "HEAD").is_file():
            yield path


def _alternates(objects: Path) -> Iterator[Path]:
    try:
        text = (objects / "info" / "alternates").read_text(encoding="utf-8", errors="surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return
    for line in text.splitlines():
        if line and not line.startswith("#"):
            yield (objects / line).resolve()
