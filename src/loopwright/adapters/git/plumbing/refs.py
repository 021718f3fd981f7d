"""Refs of ours in the user's repository: read, pinned with all that they need, moved by compare-and-swap."""

import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from loopwright.adapters.git.plumbing.environment import own_env
from loopwright.adapters.git.plumbing.pin_list import PinList
from loopwright.adapters.git.plumbing.place import Source
from loopwright.adapters.git.plumbing.ref_files import RefFiles
from loopwright.adapters.git.plumbing.runner import Git
from loopwright.core.values.errors import GitFailed, Refused
from loopwright.ports import Failpoint

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
        """Import commits from a git dir of ours and name them; what a name stood for before stays pinned too.

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
                # Someone may have done the same at the same time. If nobody has, it is a real failure.
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
        """Copy commits, with all that they need beyond `near`, from a git dir of ours into the user's repository.

        Every object id is computed anew on arrival, and what arrived is checked to be complete, so that a forged or
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
                    hint="A branch of yours stands in the way of the names that Loopwright uses: rename it.",
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
