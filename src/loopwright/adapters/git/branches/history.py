"""What landed on a branch and what it changed, told to people and agents: in plain diffs, cut short."""

import os
import tempfile
from asyncio import to_thread
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from loopwright.adapters.git.plumbing.loose import Loose, Packed
from loopwright.adapters.git.plumbing.names import display
from loopwright.adapters.git.plumbing.private_git import Depot
from loopwright.adapters.git.plumbing.runner import Git
from loopwright.core.integrity.gate_reach import Line
from loopwright.core.policy.finishing import BOOKS_TRAILER, RECEIPT_TRAILER
from loopwright.core.values.patches import Patch, read_patch
from loopwright.ports import Entry, Step

_LONGEST: Final = 2_000
"""So much of a line is read: no more of it was written by hand."""


class History:
    """Reads a branch's own line."""

    def __init__(self, git: Git, depot: Depot) -> None:
        self._git = git
        self._depot = depot
        self._loose = Loose(depot)

    async def steps(self, tip: str, *, since: str, most: int | None = None) -> tuple[Step, ...]:
        """Return the commits of the first-parent line after `since`, the newest first, at most so many."""
        return await read_line(self._git, self._depot, tip, since=since, most=most)

    async def newest(self, among: Sequence[str], *, since: str) -> str:
        """Return the last of these commits of one line after `since`, or `since` itself, however many they are."""
        asked = "".join(f"{each}\n" for each in (*among, f"^{since}")).encode("ascii")
        done = await self._git.run(
            *("rev-list", "--topo-order", "--max-count=1", "--stdin"), env=self._depot.env(), stdin=asked
        )
        return done.text or since

    async def changed(self, old: str, new: str) -> tuple[str, ...]:
        """Return the paths that differ between two commits, as people read them."""
        done = await self._git.run(
            "diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new, env=self._depot.env()
        )
        return tuple(display(path) for path in done.out.split(b"\0")[:-1])

    async def difference(self, old: str, new: str, *, paths: Sequence[str] = (), limit: int) -> str:
        """Return what changed between two commits as a diff, at these paths or at all; cut short at `limit`."""
        kept = bytearray()

        def keep(piece: bytes) -> None:
            # A character has four bytes at most: what is beyond is not looked at.
            kept.extend(piece[: max(0, 4 * limit + 4 - len(kept))])

        await self._git.run(
            "--literal-pathspecs",
            "diff-tree",
            *("-r", "-p", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv"),
            *(old, new, "--", *paths),
            env=self._depot.env(),
            sink=keep,
        )
        text = kept.decode("utf-8", "replace")
        return text if len(text) <= limit else text[:limit].rpartition("\n")[0] + "\n[cut short]\n"

    async def listed(self, sha: str) -> dict[str, Entry]:
        """Return everything in the tree of a commit, by its path."""
        done = await self._git.run("ls-tree", "-r", "-z", "--full-tree", sha, env=self._depot.env())
        found = {}
        for line in done.out.split(b"\0")[:-1]:
            facts, _, path = line.partition(b"\t")
            mode, _, name = facts.decode("ascii").split(" ")
            found[os.fsdecode(path)] = Entry(mode=mode, id=name)
        return found

    async def absent(self, shas: Sequence[str]) -> tuple[str, ...]:
        """Return the commits among these that are not there; one that is there and cannot be read is not among them."""
        if not shas:
            return ()
        asked = "".join(f"{each}\n" for each in shas).encode("ascii")
        done = await self._git.run("cat-file", "--batch-check", env=self._depot.env(), stdin=asked)
        kinds = [line.split()[-2:] for line in done.text.splitlines()]
        missing = [sha for sha, kind in zip(shas, kinds, strict=True) if kind[0] != "commit"]
        return tuple(sha for sha in missing if not (self._depot.source.objects / sha[:2] / sha[2:]).exists())

    async def mentions(self, sha: str, words: Sequence[str], *, limit: int) -> list[Line] | None:
        """Return the lines of a commit in which one of these words stands; None when they are more than the limit."""
        asked = b"".join(os.fsencode(word) + b"\n" for word in words if word and "\n" not in word)
        if not asked:
            return []
        kept = bytearray()
        await self._git.run(
            *("grep", "-z", "-I", "-F", "-w", "--no-color", "--full-name", "-f", "-", sha),
            env=self._depot.env(),
            stdin=asked,
            ok=(0, 1),
            sink=lambda piece: kept.extend(piece[: max(0, limit + 1 - len(kept))]),
        )
        if len(kept) > limit:
            return None
        found = []
        for line in bytes(kept).split(b"\n"):
            place, sign, text = line.partition(b"\0")
            if sign:
                path = os.fsdecode(place.partition(b":")[2])
                found.append(Line(path=path, text=text[:_LONGEST].decode("utf-8", "replace")))
        return found

    async def texts(self, ids: Sequence[str], *, limit: int) -> dict[str, str]:
        """Return the texts of blobs by their ids, the first of them: as many as go into so many bytes."""
        with suppress(Packed):
            return await to_thread(self._texts, ids, limit)
        kept = bytearray()
        await self._git.run(
            *("cat-file", "--batch"),
            env=self._depot.env(),
            stdin="".join(f"{each}\n" for each in ids).encode("ascii"),
            sink=lambda piece: kept.extend(piece[: max(0, limit - len(kept))]),
        )
        found, left = {}, bytes(kept)
        for each in ids:
            header, _, rest = left.partition(b"\n")
            words = header.split()
            if len(words) != 3 or not words[2].isdigit() or len(rest) < int(words[2]):
                break
            found[each] = rest[: int(words[2])].decode("utf-8", "replace")
            left = rest[int(words[2]) + 1 :]
        return found

    def _texts(self, ids: Sequence[str], limit: int) -> dict[str, str]:
        found, left = {}, limit
        for each in ids:
            content = self._loose.blob(each, most=limit)
            # Each comes with a line about it, as from git.
            left -= len(f"{each} blob {len(content)}\n") + len(content)
            if left < 0:
                break
            found[each] = content.decode("utf-8", "replace")
            left -= 1
        return found


# A branch's own line: its first parents, one commit after the other, with what their trailers say.

_TRAILERS: Final = (
    *("Loopwright-Task", "Loopwright-Command", "Loopwright-Reverts"),
    *(RECEIPT_TRAILER, BOOKS_TRAILER, "Loopwright-Attempt", "Loopwright-Run"),
)
_FORM: Final = "%x1f".join(
    (
        *("%H", "%T", "%P", "%s"),
        *(f"%(trailers:key={key},valueonly,unfold,separator=%x1e)" for key in _TRAILERS),
    )
)


async def read_line(
    git: Git, depot: Depot, tip: str, *, since: str, most: int | None = None
) -> tuple[Step, ...]:
    """Return the commits of the first-parent line after `since`, the newest first, at most so many."""
    if tip == since:
        return ()
    limit = () if most is None else (f"--max-count={most}",)
    done = await git.run(
        "log", "--first-parent", *limit, f"--format=tformat:{_FORM}%x00", tip, f"^{since}", env=depot.env()
    )
    entries = done.out.decode("utf-8", "replace").split("\0")
    return tuple(_step(entry.strip("\n")) for entry in entries if entry.strip("\n"))


def _step(entry: str) -> Step:
    sha, tree, parents, subject, tasks, command, reverts, receipt, books, attempt, run = entry.split("\x1f")
    return Step(
        sha=sha,
        tree=tree,
        parent=parents.partition(" ")[0],
        subject=subject,
        tasks=_values(tasks),
        command=next(iter(_values(command)), ""),
        takes_out=_values(reverts),
        receipt=",".join(_values(receipt)),
        books=bool(_values(books)),
        attempt=next(iter(_values(attempt)), ""),
        run=next(iter(_values(run)), ""),
    )


def _values(text: str) -> tuple[str, ...]:
    return tuple(value.strip() for value in text.split("\x1e") if value.strip())


# Reading a change as text, from git's objects alone: no configuration and no attribute decides how it looks.

_FLAGS: Final = (
    *("-r", "-p", "--full-index", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv"),
    *("-U3", "--inter-hunk-context=0", "--diff-algorithm=myers", "--src-prefix=a/", "--dst-prefix=b/"),
)
_IN_MEMORY: Final = 8 * 1024 * 1024


async def patch(git: Git, depot: Depot, old: str, new: str) -> Patch:
    """Return what differs between two commits."""
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as printed:
        await git.run("diff-tree", *_FLAGS, old, new, env=depot.env(), sink=printed.write)
        printed.seek(0)
        return read_patch(printed)
