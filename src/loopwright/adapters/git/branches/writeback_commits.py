"""Commits of the harness's own on a plan branch: the source's files tell there how the plan stands."""

import os
import re
from asyncio import to_thread
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, unquote

from loopwright.adapters.git.branches.merging import Merging
from loopwright.adapters.git.plumbing.commits import message_of, write_blob, write_commit
from loopwright.adapters.git.plumbing.loose import Loose, Packed
from loopwright.adapters.git.plumbing.private_git import Depot
from loopwright.adapters.git.plumbing.runner import Git
from loopwright.adapters.machine.files import delete
from loopwright.core.policy.finishing import BOOKS_TRAILER, COPY_TRAILER
from loopwright.ports import MergedFile

_FILE: Final = "100644"
_PROGRAM: Final = "100755"
_NOTHING: Final = "0"
_OBJECT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MARKER: Final = 61
"""So long that no line of a file is taken for the mark of a conflict."""


class Bookkeeping:
    """Reads and replaces single files of commits, without a work tree, right in the user's repository."""

    def __init__(self, git: Git, depot: Depot, merging: Merging) -> None:
        self._git = git
        self._depot = depot
        self._loose = Loose(depot)
        self._merging = merging
        self._judged: dict[str, str] = {}

    async def files(self, sha: str, paths: Sequence[str]) -> dict[str, bytes]:
        """Return what is at these paths of a commit; what is not a file there is left out."""
        if not paths:
            return {}
        with suppress(Packed):
            return await to_thread(self._loose.files, sha, paths)
        asked = b"".join(f"{sha}:".encode() + os.fsencode(path) + b"\0" for path in paths)
        done = await self._git.run("cat-file", "--batch", "-z", env=self._depot.env(), stdin=asked)
        found, left = {}, done.out
        for path in paths:
            header, _, left = left.partition(b"\n")
            words = header.rsplit(b" ", 2)
            if len(words) != 3 or not words[2].isdigit():
                continue
            size = int(words[2])
            if words[1] == b"blob":
                found[path] = left[:size]
            left = left[size + 1 :]
        return found

    async def commit(
        self,
        parent: str,
        files: Mapping[str, bytes],
        *,
        subject: str,
        plan_id: str,
        at: datetime,
        copies: Mapping[str, bytes],
    ) -> str:
        """Write a commit with some files replaced; none at all makes one that only says something."""
        tree = await self._merging.tree_of(parent)
        if files:
            tree = await self._with(parent, await self._modes(parent, tuple(files)), files)
        message = f"{message_of(subject, None)}\n\nLoopwright-Plan: {plan_id}\n{BOOKS_TRAILER}: {plan_id}"
        for path, content in copies.items():
            # Nothing but this line holds it: when git has thrown it away, nothing worse happens than without it.
            name = write_blob(self._depot, content, into=self._depot.source.objects)
            message += f"\n{COPY_TRAILER}: {name} {quote(path)}"
        sha = write_commit(
            self._depot, tree, parents=(parent,), message=message, at=at, into=self._depot.source.objects
        )
        self._judged[sha] = await self.judged(parent)
        return sha

    async def copies(self, sha: str, since: str) -> dict[str, bytes]:
        """Return the files of a person's own copy, as they were when a commit's line last took something in of them."""
        form = f"--format=%(trailers:key={COPY_TRAILER},valueonly)"
        grep = f"--grep=^{COPY_TRAILER}: "
        words = ("log", "-1", "--first-parent", grep, form, f"{since}..{sha}")
        done = await self._git.run(*words, env=self._depot.env())
        found = {}
        for line in done.text.splitlines():
            name, _, path = line.strip().partition(" ")
            if _OBJECT.fullmatch(name) and path:
                kept = await self._git.run("cat-file", "blob", name, env=self._depot.env(), ok=(0, 128))
                if kept.code == 0:
                    found[unquote(path)] = kept.out
        return found

    async def judged(self, sha: str) -> str:
        """Return the commit below those of the bookkeeping: the one whose tree a gate has seen."""
        if sha not in self._judged:
            form = f"%P%x1f%(trailers:key={BOOKS_TRAILER},valueonly)"
            done = await self._git.run("log", "-1", f"--format={form}", sha, env=self._depot.env())
            parents, _, mark = done.text.partition("\x1f")
            below = parents.split(" ")[0]
            self._judged[sha] = await self.judged(below) if mark.strip() and below else sha
        return self._judged[sha]

    async def leaving(self, attempt_sha: str, tip: str, paths: Sequence[str]) -> str:
        """Return the attempt's work with these files as they are on the tip: they are not its to change."""
        theirs = await self.files(tip, paths)
        modes = await self._modes(tip, tuple(theirs))
        tree = await self._with(attempt_sha, {path: modes.get(path, _NOTHING) for path in paths}, theirs)
        return write_commit(
            self._depot,
            tree,
            parents=(attempt_sha,),
            message="The work without its changes of the plan's own files",
            at=datetime.fromtimestamp(0, UTC),
            into=self._depot.source.objects,
        )

    async def merged(self, base: bytes, ours: bytes, theirs: bytes) -> MergedFile:
        """Return a file with what two sides did to it, or where that cannot be had."""
        scratch = self._depot.scratch()
        try:
            sides = {"ours": ours, "base": base, "theirs": theirs}
            for name, content in sides.items():
                (scratch / name).write_bytes(content)
            paths = [str(scratch / name) for name in sides]
            size = f"--marker-size={_MARKER}"
            done = await self._git.run(
                "merge-file", "-p", "-q", size, *paths, env=self._depot.env(), ok=tuple(range(129))
            )
            if done.code == 0:
                return MergedFile(content=done.out)
            return MergedFile(content=None, line=_conflict(done.out, theirs))
        finally:
            delete(scratch)

    async def _modes(self, sha: str, paths: Sequence[str]) -> dict[str, str]:
        """Return the mode of each path: a program stays one."""
        if not paths:
            return {}
        done = await self._git.run("ls-tree", "-z", "--full-tree", sha, "--", *paths, env=self._depot.env())
        entries = (line.partition(b"\t") for line in done.out.split(b"\0") if line)
        programs = {os.fsdecode(path) for about, _, path in entries if about.startswith(_PROGRAM.encode())}
        return {path: _PROGRAM if path in programs else _FILE for path in paths}

    async def _with(self, sha: str, modes: Mapping[str, str], files: Mapping[str, bytes]) -> str:
        lines = []
        for path, mode in modes.items():
            name = (
                write_blob(self._depot, files[path], into=self._depot.source.objects)
                if mode != _NOTHING
                else self._depot.null
            )
            lines.append(f"{mode} {name}\t".encode("ascii") + os.fsencode(path) + b"\0")
        scratch = self._depot.scratch(self._depot.source.objects)
        try:
            env = self._depot.env_into_source() | {"GIT_INDEX_FILE": str(scratch / "index")}
            await self._git.run("read-tree", await self._merging.tree_of(sha), env=env)
            await self._git.run(
                "update-index", "-z", "--add", "--replace", "--index-info", env=env, stdin=b"".join(lines)
            )
            return (await self._git.run("write-tree", env=env)).text
        finally:
            delete(scratch)


def _conflict(merged: bytes, theirs: bytes) -> int:
    """Return the line at which the first conflict of a merge begins, as their file numbers it."""
    lines, own = merged.splitlines(), theirs.splitlines()
    start, middle, end = (
        next((at for at, line in enumerate(lines) if line.startswith(sign * _MARKER)), len(lines))
        for sign in (b"<", b"=", b">")
    )
    said = lines[middle + 1 : end]
    # What we added above it moves the place, so that it is looked for; the nearest one is meant.
    starts = [at for at, line in enumerate(own) if line == said[0]] if said else []
    places = [at for at in starts if own[at : at + len(said)] == said]
    return min(places, key=lambda at: abs(at - start), default=min(start, len(own) - 1)) + 1
