"""Trees that a gate judges and that land nowhere: a candidate with some of its files as they were before."""

import os
from asyncio import to_thread
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from loopwright.adapters.git.plumbing.commits import write_blob, write_commit
from loopwright.adapters.git.plumbing.loose import Loose, Packed
from loopwright.adapters.git.plumbing.private_git import Depot
from loopwright.adapters.git.plumbing.runner import Git
from loopwright.adapters.machine.files import delete
from loopwright.core.values.errors import GitFailed
from loopwright.ports import Candidate, Entry, FileChange

_NOTHING = "0"
_FILE = "100644"


class Overlays:
    """Reads what differs between trees, and makes trees of both; everything stays in our own git dir."""

    def __init__(self, git: Git, depot: Depot) -> None:
        self._git = git
        self._depot = depot
        self._loose = Loose(depot)

    async def changes(self, old: str, new: str) -> tuple[FileChange, ...]:
        """Return every path that differs between two trees; a renamed file is two of them."""
        with suppress(Packed):
            return await to_thread(self._loose.changes, old, new)
        done = await self._git.run(
            "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new, env=self._depot.env()
        )
        fields = done.out.split(b"\0")[:-1]
        return tuple(_change(*pair) for pair in zip(fields[::2], fields[1::2], strict=True))

    async def contents(self, ids: Sequence[str]) -> list[str]:
        """Return the texts of blobs; what is not text comes back as it is when it is written again."""
        with suppress(Packed):
            blobs = await to_thread(lambda: [self._loose.blob(each) for each in ids])
            return [blob.decode("utf-8", "surrogateescape") for blob in blobs]
        asked = "".join(f"{each}\n" for each in ids).encode("ascii")
        done = await self._git.run("cat-file", "--batch", env=self._depot.env(), stdin=asked)
        texts, left = [], done.out
        for each in ids:
            header, _, left = left.partition(b"\n")
            words = header.split()
            if len(words) != 3 or words[1] != b"blob":
                raise GitFailed(f"the file {each} is not in {self._depot.source.git_dir}")
            size = int(words[2])
            texts.append(left[:size].decode("utf-8", "surrogateescape"))
            left = left[size + 1 :]
        return texts

    async def laid_over(
        self, candidate: Candidate, *, restore: Sequence[FileChange], texts: Mapping[str, str]
    ) -> Candidate:
        """Return the candidate with some changes taken back and some files replaced."""
        modes = {change.path: change.after or change.before for change in candidate.changes}
        entries = {change.path: change.before for change in restore}
        for path, text in texts.items():
            known = modes.get(path)
            blob = write_blob(self._depot, text.encode("utf-8", "surrogateescape"))
            entries[path] = Entry(mode=known.mode if known else _FILE, id=blob)
        tree = await self._replaced(candidate.tree, entries)
        sha = write_commit(
            self._depot,
            tree,
            parents=(candidate.sha,),
            message="The candidate with the gate's files as they were before: judged, never landed",
            at=datetime.fromtimestamp(0, UTC),
        )
        return Candidate(parent=candidate.parent, sha=sha, tree=tree, empty=False)

    async def _replaced(self, tree: str, entries: Mapping[str, Entry | None]) -> str:
        with suppress(Packed):
            return await to_thread(self._loose.replaced, tree, entries)
        lines = b"".join(_line(path, entry, self._depot.null) for path, entry in entries.items())
        scratch = self._depot.scratch(self._depot.objects, self._depot.source.objects)
        try:
            return await self._written(scratch / "index", tree, lines)
        finally:
            delete(scratch)

    async def _written(self, index: Path, tree: str, lines: bytes) -> str:
        env = self._depot.env(index=index)
        await self._git.run("read-tree", tree, env=env)
        await self._git.run("update-index", "-z", "--add", "--replace", "--index-info", env=env, stdin=lines)
        return (await self._git.run("write-tree", env=env)).text


def _line(path: str, entry: Entry | None, null: str) -> bytes:
    mode, name = (entry.mode, entry.id) if entry else (_NOTHING, null)
    return f"{mode} {name}\t".encode("ascii") + os.fsencode(path) + b"\0"


def _change(head: bytes, path: bytes) -> FileChange:
    old_mode, new_mode, old, new, _ = head.decode("ascii").removeprefix(":").split(" ")
    return FileChange(
        path=os.fsdecode(path),
        before=Entry(mode=old_mode, id=old) if old_mode != "000000" else None,
        after=Entry(mode=new_mode, id=new) if new_mode != "000000" else None,
    )
