"""Objects that are files: reading them, comparing trees and making a tree of another, without a process.

What a plan makes is such a file until git packs it. `Packed` is raised where an object is not one: then git is asked.
"""

import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from hashlib import new as new_hash
from typing import Final

from loopwright.adapters.git.plumbing.commits import write_tree
from loopwright.adapters.git.plumbing.private_git import Depot
from loopwright.ports import Entry, FileChange

_HEAD: Final = 100
"""The line before the content is shorter."""
_TREE: Final = "40000"
_LINKED: Final = "160000"
_MODES: Final = frozenset({_TREE, "100644", "100755", "120000", _LINKED})
_Tree = Mapping[tuple[bytes, bool], Entry]
"""The entries of a tree by their name and whether they are trees."""


class Packed(Exception):
    """Only git can answer: an object is in a pack or elsewhere, or what is asked has cases that git decides."""


class Loose:
    """The objects of a depot, and those that it borrows from the user's repository."""

    def __init__(self, depot: Depot) -> None:
        self._depot = depot
        self._folders = (depot.objects, depot.source.objects)
        self._width = 32 if depot.source.object_format == "sha256" else 20

    def blob(self, name: str, *, most: int = 0) -> bytes:
        """Return the content of a file, which may be limited to so many bytes."""
        return self._read(name, b"blob", most + _HEAD if most else 0)

    def tree_of(self, commit: str) -> str:
        """Return the tree of a commit."""
        first = self._read(commit, b"commit").partition(b"\n")[0]
        return first.removeprefix(b"tree ").decode("ascii")

    def files(self, commit: str, paths: Sequence[str]) -> dict[str, bytes]:
        """Return what is at these paths of a commit; what is not a file there is left out."""
        top = self.tree_of(commit)
        found = {path: self._at(top, os.fsencode(path).split(b"/")) for path in paths}
        return {path: self.blob(entry.id) for path, entry in found.items() if entry is not None}

    def changes(self, old: str, new: str) -> tuple[FileChange, ...]:
        """Return every path that differs between two trees, as `git diff-tree -r --no-renames` does."""
        return tuple(self._changes(b"", old, new))

    def replaced(self, tree: str, entries: Mapping[str, Entry | None]) -> str:
        """Return a tree with some files replaced, added, or taken out (None)."""
        parted = {tuple(os.fsencode(path).split(b"/")): entry for path, entry in entries.items()}
        made = self._replaced(tree, parted)
        return made if made is not None else write_tree(self._depot, b"")

    def _read(self, name: str, kind: bytes, most: int = 0) -> bytes:
        for folder in self._folders:
            reader = zlib.decompressobj()
            try:
                data = reader.decompress((folder / name[:2] / name[2:]).read_bytes(), most)
            except (OSError, zlib.error):
                continue
            head, _, content = data.partition(b"\0")
            named = new_hash(self._depot.source.object_format, data, usedforsecurity=False).hexdigest()
            if named == name and head.startswith(kind + b" "):
                return content
        raise Packed

    def _tree(self, name: str | None) -> _Tree:
        content = self._read(name, b"tree") if name else b""
        found: dict[tuple[bytes, bool], Entry] = {}
        at = 0
        while at < len(content):
            end = content.index(b"\0", at)
            mode, _, path = content[at:end].partition(b" ")
            at = end + 1 + self._width
            kept = mode.decode("ascii")
            if kept not in _MODES:
                raise Packed  # of an early git, which writes it otherwise today
            found[path, kept == _TREE] = Entry(mode=kept, id=content[end + 1 : at].hex())
        return found

    def _at(self, tree: str, parts: list[bytes]) -> Entry | None:
        if not all(parts) or b"." in parts or b".." in parts:
            raise Packed
        here: str | None = tree
        for part in parts[:-1]:
            below = self._tree(here).get((part, True))
            if below is None:
                return None
            here = below.id
        found = self._tree(here).get((parts[-1], False))
        return None if found is None or found.mode == _LINKED else found

    def _changes(self, prefix: bytes, old: str | None, new: str | None) -> Iterator[FileChange]:
        before, after = self._tree(old), self._tree(new)
        for name, is_tree in sorted(before.keys() | after.keys(), key=_place):
            then, now = before.get((name, is_tree)), after.get((name, is_tree))
            if then == now:
                continue
            path = prefix + name
            if is_tree:
                yield from self._changes(path + b"/", _id(then), _id(now))
            else:
                yield FileChange(path=os.fsdecode(path), before=then, after=now)

    def _replaced(self, tree: str | None, wanted: Mapping[tuple[bytes, ...], Entry | None]) -> str | None:
        """Return the tree, or None when nothing is left in it."""
        kept = dict(self._tree(tree))
        below: dict[bytes, dict[tuple[bytes, ...], Entry | None]] = {}
        for (name, *rest), entry in wanted.items():
            # A file that takes the place of a folder, or the other way round, is left to git.
            if (name, not rest) in kept or name in (b"", b".", b".."):
                raise Packed
            if rest:
                below.setdefault(name, {})[tuple(rest)] = entry
            elif entry is None:
                kept.pop((name, False), None)
            else:
                kept[name, False] = entry
        for name, deeper in below.items():
            if (name, False) in kept:
                raise Packed
            there = kept.pop((name, True), None)
            made = self._replaced(_id(there), deeper)
            if made is not None:
                kept[name, True] = Entry(mode=_TREE, id=made)
        lines = (
            kept[key].mode.encode("ascii") + b" " + key[0] + b"\0" + bytes.fromhex(kept[key].id)
            for key in sorted(kept, key=_place)
        )
        return write_tree(self._depot, b"".join(lines)) if kept else None


def _id(entry: Entry | None) -> str | None:
    return None if entry is None else entry.id


def _place(key: tuple[bytes, bool]) -> bytes:
    """Return what git sorts an entry by."""
    name, is_tree = key
    return name + b"/" if is_tree else name
