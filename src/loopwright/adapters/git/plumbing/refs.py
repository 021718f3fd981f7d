"""Refs of Loopwright in the user's repository: read, pinned with all that they need, moved by compare-and-swap."""

import os
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from loopwright.adapters.git.plumbing.names import is_sha
from loopwright.adapters.git.plumbing.place import Source
from loopwright.adapters.git.plumbing.runner import Git, own_env
from loopwright.core.values.errors import GitFailed, Refused
from loopwright.ports import Failpoint

FOLDER: Final = "refs/loopwright/attempts/"
_GONE: Final = "-"


class PinList:
    """The pins of attempts that we made and did not let go of; several processes may write it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self._known: dict[str, str] = {}

    def note(self, pins: Mapping[str, str]) -> None:
        """Add pins, each with the commit that it is at."""
        self._write({name: sha for name, sha in pins.items() if name.startswith(FOLDER)})

    def forget(self, names: Collection[str]) -> None:
        """Take pins off the list that are to go."""
        self._write({name: _GONE for name in names if name.startswith(FOLDER)})

    def below(self, folder: str) -> dict[str, str]:
        """Return the pins in a folder, each with the commit that it has to be at."""
        self._catch_up()
        return {name: sha for name, sha in self._known.items() if name.startswith(folder)}

    def _write(self, changes: Mapping[str, str]) -> None:
        if changes:
            with self._path.open("a", encoding="utf-8") as file:
                file.write("".join(f"{sha} {name}\n" for name, sha in changes.items()))

    def _catch_up(self) -> None:
        if not self._path.is_file():
            return
        with self._path.open("rb") as file:
            file.seek(self._read)
            # One that is being written, or was cut short by a kill, has no end yet.
            whole, end, _ = file.read().rpartition(b"\n")
        self._read += len(whole + end)
        for line in whole.decode("utf-8", "replace").splitlines():
            sha, _, name = line.partition(" ")
            if sha == _GONE:
                self._known.pop(name, None)
            elif " " not in name:
                # Otherwise a full disk cut a line short, and the next one continued where it ended: a reader of the
                # pins that are there notes them again.
                self._known[name] = sha


_FIELDS: Final = ("refname", "objectname", "tree", "parent", "committerdate:unix", "worktreepath", "contents")
_AT_ONCE: Final = 1000
"""So many names go into one command: who takes away the pins of a large plan takes away thousands."""
_COUNT_AT: Final = 8
"""Where a pack says how many objects it has."""
_LOOSE_LIMIT: Final = 100
"""From so many objects on they stay a pack, as with git's own `fetch.unpackLimit`."""
_MOVED: Final = ("but expected", "reference already exists", "unable to resolve reference")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """A ref and the commit that it names."""

    name: str
    sha: str
    tree: str
    parents: tuple[str, ...]
    committed_at: int
    worktree: str
    """The checkout that has this branch checked out, if any."""
    message: str


class Refs:
    """The refs of one of the user's repositories. Outside our own namespace only `swap` writes: see `ends`."""

    def __init__(self, git: Git, source: Source, failpoint: Failpoint, made: PinList | None = None) -> None:
        self._git = git
        self._source = source
        self._failpoint = failpoint
        self._files = RefFiles(source.common_dir)
        self._made = made

    async def read(self, *patterns: str) -> Mapping[str, Ref]:
        """Return the refs that match, by name."""
        found: dict[str, Ref] = {}
        for first in range(0, max(len(patterns), 1), _AT_ONCE):
            found |= await self._read(*patterns[first : first + _AT_ONCE])
        return found

    async def _read(self, *patterns: str) -> Mapping[str, Ref]:
        form = "%00".join(f"%({field})" for field in _FIELDS) + "%00%00"
        done = await self._git.run("for-each-ref", f"--format={form}", *patterns, env=self._source.env())
        found = {}
        for entry in done.out.decode("utf-8", "replace").split("\0\0\n"):
            if not entry:
                continue
            name, sha, tree, parents, committed_at, worktree, message = entry.split("\0", 6)
            found[name] = Ref(
                name=name,
                sha=sha,
                tree=tree,
                parents=tuple(parents.split()),
                committed_at=int(committed_at or 0),
                worktree=worktree,
                message=message.rstrip("\n"),
            )
        return found

    async def tip(self, name: str) -> str | None:
        """Return the commit that a ref names; None when there is no such ref.

        A ref that was moved since the last packing is a file with the id in it, which is read without asking git.
        """
        found = self._files.tip(name)
        if found is not None:
            return found
        known = await self.read(name)
        return known[name].sha if name in known else None

    async def pins(self, name: str) -> Mapping[str, Ref]:
        """Return a pin with the agent's own commits beside it; most often there is none yet, which files tell."""
        if self._files.usable and not self._files.may_have(name):
            return {}
        return await self.read(name, f"{name}-agent*")

    async def checked_out(self, name: str) -> str:
        """Return where a branch is checked out; empty when nowhere."""
        if self._files.usable:
            return self._files.checked_out(name)
        known = await self.read(name)
        return known[name].worktree if name in known else ""

    async def pin(
        self, updates: Mapping[str, str], *, origin: Path, near: str, known: Mapping[str, Ref]
    ) -> None:
        """Import commits from one of our git dirs and name them; what a name meant before stays pinned too.

        `near` is a commit that both sides have: only what is newer is copied.
        """
        while wanted := {name: sha for name, sha in updates.items() if _sha(known, name) != sha}:
            kept = {f"{name}-was-{known[name].sha[:12]}": known[name].sha for name in wanted if name in known}
            try:
                self._failpoint("git.ref.before")
                await self._name(origin, wanted | kept, near=near)
                self._failpoint("git.ref.after")
                return
            except GitFailed:
                # Another process may have done the same at the same time. If none has, it is a real failure.
                now = await self.read(*updates)
                if all(_sha(now, name) == _sha(known, name) for name in updates):
                    raise
                known = now

    async def try_pinning(self, name: str, sha: str, *, origin: Path, near: str) -> None:
        """Do everything of a new pin up to the last step, so that no kill leaves one behind."""
        await self.bring(origin, (sha,), near=near)
        await self._write(f"start\ncreate {name} {sha}\nprepare\nabort\n")

    async def _name(self, origin: Path, wanted: Mapping[str, str], *, near: str) -> None:
        await self.bring(origin, sorted(set(wanted.values())), near=near)
        await self._write("".join(f"update {name} {sha}\n" for name, sha in wanted.items()))
        self._note(wanted)

    async def bring(self, origin: Path, shas: Collection[str], *, near: str) -> None:
        """Copy commits, with all that they need beyond `near`, from one of our git dirs into the user's repository.

        Every object id is computed again on arrival, and what arrived is checked to be complete, so that a forged or
        broken object store brings in nothing. `git fetch` does the same, but it goes through all refs of the
        repository to do it, and each attempt adds one.
        """
        tips = "".join(f"{sha}\n" for sha in shas)
        with tempfile.TemporaryFile(dir=origin) as pack:
            await self._git.run(
                "pack-objects",
                "--quiet",
                "--revs",
                "--thin",
                "--stdout",
                env=own_env(origin),
                stdin=f"{tips}^{near}\n".encode(),
                sink=pack.write,
            )
            pack.seek(_COUNT_AT)
            count = int.from_bytes(pack.read(4), "big")
            pack.seek(0)
            if 0 < count < _LOOSE_LIMIT and await self._unpacked(pack):
                return
            take = (
                ("unpack-objects", "-q") if count < _LOOSE_LIMIT else ("index-pack", "--stdin", "--fix-thin")
            )
            if count:
                await self._git.run(*take, env=self._source.env(), stdin=pack)
        await self._git.run(
            "rev-list", "--objects", "--quiet", *shas, f"^{near}", env=self._source.env(), stdin=b""
        )

    async def _unpacked(self, pack: IO[bytes]) -> bool:
        """Unpack with all that is linked to checked at once; False when git finds something to object to.

        It also objects to things that are odd but whole, such as a commit without a name: those are taken otherwise.
        """
        try:
            await self._git.run("unpack-objects", "-q", "--strict", env=self._source.env(), stdin=pack)
        except GitFailed:
            pack.seek(0)
            return False
        return True

    async def create(self, name: str, sha: str) -> bool:
        """Create a ref; False when it exists."""
        return await self._swap(name, new=sha, old="0" * len(sha))

    async def create_both(self, name: str, beside: str, sha: str) -> bool:
        """Create a ref, and let another one say the same; False when the first exists."""
        return await self._update(f"create {name} {sha}\nupdate {beside} {sha}\n", name)

    async def swap_both(self, name: str, beside: str, *, new: str, old: str, keep: str = "") -> bool:
        """Move a ref from `old` to `new`, and another one with it; False when the first was not at `old`.

        What it leaves may be pinned at `keep`.
        """
        kept = f"update {keep} {old}\n" if keep else ""
        moved = await self._update(f"update {name} {new} {old}\nupdate {beside} {new}\n{kept}", name)
        if moved and keep:
            self._note({keep: old})
        return moved

    async def swap(self, name: str, *, new: str, old: str) -> bool:
        """Move a ref from `old` to `new`; False when it was not at `old`."""
        return await self._swap(name, new=new, old=old)

    async def delete(self, refs: Sequence[Ref]) -> None:
        """Delete refs that are still what they were."""
        if not refs:
            return
        if self._made is not None:
            # First: what is on the list and not there was taken away by others.
            self._made.forget([ref.name for ref in refs])
        self._failpoint("git.ref.before")
        await self._write("".join(f"delete {ref.name} {ref.sha}\n" for ref in refs))
        self._failpoint("git.ref.after")

    def _note(self, pins: Mapping[str, str]) -> None:
        if self._made is not None:
            self._made.note(pins)

    async def _swap(self, name: str, *, new: str, old: str) -> bool:
        return await self._update(f"update {name} {new} {old}\n", name)

    async def _update(self, script: str, name: str) -> bool:
        self._failpoint("git.ref.before")
        try:
            await self._write(script, "-m", "loopwright")
        except GitFailed as error:
            words = str(error)
            if any(sign in words for sign in _MOVED):
                return False
            if "exists; cannot create" in words:
                raise Refused(
                    f"the branch {name.removeprefix('refs/heads/')} cannot be made: {words}",
                    code="branch_not_created",
                    hint="One of your branches blocks the names that Loopwright uses: rename it.",
                ) from error
            raise
        self._failpoint("git.ref.after")
        return True

    async def _write(self, script: str, *words: str) -> None:
        """Have git write refs, with every lock named that it may take for them."""
        common = self._source.common_dir
        lines = [line.split() for line in script.splitlines() if " " in line]
        locks = [common / f"{ref}.lock" for _, ref, *_ in lines]
        locks.append(self._source.git_dir / "HEAD.lock")
        if any(verb == "delete" for verb, *_ in lines):
            locks.append(common / "packed-refs.lock")
        await self._git.run(
            "update-ref", *words, "--stdin", env=self._source.env(), stdin=script.encode(), locks=locks
        )


def _sha(known: Mapping[str, Ref], name: str) -> str | None:
    return known[name].sha if name in known else None


# Refs of the user's repository, read as the files that they are: asking git for one takes a process.


class RefFiles:
    """Reads refs where they are kept as files; `usable` says whether they are."""

    def __init__(self, common_dir: Path) -> None:
        self._folder = common_dir
        self._packed: tuple[tuple[int, int, int], Mapping[str, str]] = ((0, 0, 0), {})

    @property
    def usable(self) -> bool:
        """Whether refs are files: newer repositories may keep them in tables that only git reads."""
        return not (self._folder / "reftable").exists()

    def tip(self, name: str) -> str | None:
        """Return the commit that a ref names, if its own file tells."""
        try:
            found = (self._folder / name).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            return None
        return found if is_sha(found) else None

    def listing(self, folders: Sequence[str], *, without: str) -> dict[str, str]:
        """Return what each ref below `folders` says, but for those whose name begins with `without`."""
        # Like git, the files first: one that is packed in the meantime is found among the packed ones.
        loose = {name: sha for folder in folders for name, sha in self._loose(folder, without)}
        packed = {
            name: sha
            for name, sha in self._packed_refs().items()
            if name.startswith(tuple(folders)) and not name.startswith(without)
        }
        return {**packed, **loose}

    def may_have(self, name: str) -> bool:
        """Return whether there may be a ref with this name, or one that begins with it."""
        path = self._folder / name
        try:
            if any(one.name.startswith(path.name) for one in path.parent.iterdir()):
                return True
        except FileNotFoundError:
            pass  # then it can only be among the packed ones
        return any(known.startswith(name) for known in self._packed_refs())

    def checked_out(self, name: str) -> str:
        """Return where a branch is checked out; empty when nowhere."""
        for folder in (self._folder, *_folders(self._folder / "worktrees")):
            try:
                head = (folder / "HEAD").read_text(encoding="utf-8").strip()
                if head != f"ref: {name}":
                    continue
                if folder == self._folder:
                    return str(folder.parent)
                return str(Path((folder / "gitdir").read_text(encoding="utf-8").strip()).parent)
            except OSError:
                continue  # a worktree that is being removed
        return ""

    def _packed_refs(self) -> Mapping[str, str]:
        path = self._folder / "packed-refs"
        try:
            info = path.stat()
        except FileNotFoundError:
            return {}
        stamp = (info.st_ino, info.st_size, info.st_mtime_ns)
        if self._packed[0] != stamp:
            text = path.read_text(encoding="utf-8", errors="replace")
            pairs = (line.partition(" ") for line in text.splitlines() if line[:1] not in ("#", "^"))
            self._packed = (stamp, {name: sha for sha, _, name in pairs})
        return self._packed[1]

    def _loose(self, folder: str, without: str) -> Iterator[tuple[str, str]]:
        top = self._folder / folder
        if top.is_file():
            yield folder, top.read_text(encoding="utf-8", errors="replace").strip()
        for here, folders, files in os.walk(top):
            base = Path(here).relative_to(self._folder).as_posix()
            folders[:] = [one for one in folders if not f"{base}/{one}/".startswith(without)]
            for file in files:
                name = f"{base}/{file}"
                if file.endswith(".lock") or name.startswith(without):
                    continue
                try:
                    yield name, Path(here, file).read_text(encoding="utf-8", errors="replace").strip()
                except FileNotFoundError:
                    continue  # packed, or deleted, in this moment


def _folders(path: Path) -> list[Path]:
    try:
        return [one for one in path.iterdir() if one.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
