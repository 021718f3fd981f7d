"""Turning whatever a workspace holds into a tree, with a git dir and an index that no agent can reach.

The workspace is only a work tree here: its own `.git` is never read by these commands, so planted hooks, filters,
aliases and monitors have no effect. Rules:
- what the base tracks stays tracked, even if it is ignored; new files that are ignored stay out;
- protected paths (see `protection`) keep what the base has;
- a repository that was made inside the workspace is taken as plain files, without its `.git`;
- links are stored as links; sockets and pipes are left out;
- what git cannot take in as it is (an encoding that the file does not have, a path that is too long) is `Unrecordable`:
  a tree without it would not be the work.
"""

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from loopwright.adapters.git.plumbing.names import display, printable
from loopwright.adapters.git.plumbing.private_git import Depot
from loopwright.adapters.git.plumbing.runner import Done, Git
from loopwright.adapters.git.workspaces.archives import UNOPENED, Protection
from loopwright.adapters.git.workspaces.modules import gitlinks
from loopwright.adapters.machine.files import folders_below, is_folder, joined, make_readable, too_long
from loopwright.core.values.errors import GitFailed, Unrecordable

_ROUNDS: Final = 10
_NAMED: Final = 3
_NO_COMMIT: Final = "does not have a commit checked out"
_INVALID = re.compile(r"invalid path '(.+)'")
_SPECIAL = re.compile(r"^error: (.+): can only add regular files", re.MULTILINE)
_LEFT_OUT = (re.compile(r"^(?:error|fatal): ", re.MULTILINE), re.compile(f"{UNOPENED}|Permission denied"))
_SEED_NAME: Final = b".loopwright-seed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One path that differs between two trees."""

    path: bytes
    old_mode: str
    old_sha: str
    new_mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What differs between two trees."""

    changes: tuple[Change, ...] = ()
    insertions: int = 0
    deletions: int = 0

    @property
    def paths(self) -> tuple[str, ...]:
        """The changed paths as text."""
        return tuple(display(change.path) for change in self.changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A written tree and how it differs from its base."""

    id: str
    difference: Difference


@dataclass(slots=True)
class _Obstacles:
    """What the rounds so far ran into."""

    seeds: set[bytes] = field(default_factory=set)
    """Repositories inside the work tree: an entry below each makes git walk in instead of linking."""
    nested: bool = False
    """There is a repository inside the work tree in which nothing is committed."""
    invalid: set[bytes] = field(default_factory=set)
    """Paths that git refuses to have in a tree, such as another spelling of `.git`: left as in the base."""
    special: set[bytes] = field(default_factory=set)
    """Tracked files that became a socket or a pipe: gone."""
    unreadable: bool = False

    def learned(self, done: Done) -> bool:
        """Take in what git complained about; return whether there was anything new."""
        before = self._size()
        self.nested = self.nested or _NO_COMMIT in done.err
        self.invalid |= set(map(os.fsencode, _INVALID.findall(done.err)))
        self.special |= set(map(os.fsencode, _SPECIAL.findall(done.err)))
        self.unreadable = self.unreadable or "Permission denied" in done.err
        return before != self._size()

    def _size(self) -> tuple[int, ...]:
        return len(self.invalid), len(self.special), int(self.unreadable), int(self.nested)


async def write_tree(
    git: Git,
    depot: Depot,
    work: Path,
    *,
    base_sha: str,
    fresh_index: Path | None,
    copied: frozenset[bytes] = frozenset(),
    pointers: Mapping[bytes, str | None],
) -> Tree:
    """Write the tree of a work tree; `pointers` moves (or with None removes) submodules.

    `fresh_index` is our index from when the work tree was made: only files touched since are read again.
    """
    folder = depot.path / "indexes"
    folder.mkdir(parents=True, exist_ok=True)
    obstacles = _Obstacles()
    with tempfile.TemporaryDirectory(dir=folder, prefix="snapshot-") as scratch:
        index = Path(scratch) / "index"
        env = depot.env(work_tree=work, index=index)
        for _ in range(_ROUNDS):
            index.unlink(missing_ok=True)
            if fresh_index is not None and fresh_index.is_file():
                shutil.copy2(fresh_index, index)
            else:
                await git.run("read-tree", base_sha, env=env, cwd=work)
            links = {link.path for link in await gitlinks(git, depot.path, index)}
            folders = frozenset(path for path in links if is_folder(work, path))
            protection = Protection(copied=copied, gitlinks=folders)
            # A submodule whose folder is gone, or became a file, is no longer a submodule.
            moves = {**pointers, **dict.fromkeys(links - folders)}
            await _prepare(git, env, work, depot.null, obstacles, moves)
            done = await git.run(
                "add",
                "--all",
                "--ignore-errors",
                "--pathspec-from-file=-",
                "--pathspec-file-nul",
                env=env,
                cwd=work,
                stdin=protection.pathspecs(obstacles.invalid | obstacles.special),
                ok=range(256),
            )
            if obstacles.learned(done):
                if obstacles.unreadable:
                    await _opened(work)
                if obstacles.nested:
                    obstacles.seeds |= await asyncio.to_thread(_repositories, work, folders)
                continue
            # Exit code 1 without an error only says that a path we exclude is ignored as well.
            if done.code not in (0, 1) or any(sign.search(done.err) for sign in _LEFT_OUT):
                # git cuts its own words short where they have a long path in them.
                if long := await asyncio.to_thread(too_long, work):
                    raise Unrecordable(f"git cannot record paths that are this long: {_in_short(long)}.")
                raise Unrecordable(f"git cannot record the work: {_reasons(done.err)}.")
            tree = await _written(git, env, work, base_sha)
            nested = {
                change.path
                for change in tree.difference.changes
                if change.new_mode == "160000" and change.path not in folders
            }
            if nested - obstacles.seeds:
                obstacles.seeds |= nested | await asyncio.to_thread(_repositories, work, folders)
                continue
            return await _restored(git, env, work, base_sha, tree, protection, moves)
    raise GitFailed(f"the work in {work} cannot be recorded: it keeps changing; is something running there?")


async def _prepare(
    git: Git,
    env: Mapping[str, str],
    work: Path,
    null: str,
    obstacles: _Obstacles,
    pointers: Mapping[bytes, str | None],
) -> None:
    lines = [f"0 {null}\t".encode() + path for path in sorted(obstacles.special)]
    if obstacles.seeds:
        blob = await git.run("hash-object", "-w", "--stdin", env=env, cwd=work)
        lines += [
            f"100644 {blob.text}\t".encode() + path + b"/" + _SEED_NAME for path in sorted(obstacles.seeds)
        ]
    for path, sha in pointers.items():
        entry = f"0 {null}\t" if sha is None else f"160000 {sha}\t"
        lines.append(entry.encode() + path)
    await _update_index(git, env, work, lines)


def _repositories(work: Path, modules: frozenset[bytes]) -> set[bytes]:
    """Return every folder below a work tree that is its own repository, but for its submodules."""
    found = set()
    for here, folders, others in folders_below(work):
        if here and b".git" in (*folders, *others):
            found.add(here)
        folders[:] = [one for one in folders if one != b".git" and joined(here, one) not in modules]
    return found


def _reasons(said: str) -> str:
    """Return what git complained about, without its hints."""
    lines = printable(said)[-1500:].splitlines()
    told = [line for line in lines if any(sign.search(line) for sign in _LEFT_OUT)] or lines
    return "; ".join(line.partition(": ")[2] or line for line in told[:_NAMED]).rstrip(".")


def _in_short(paths: Sequence[bytes]) -> str:
    shown = [f"{display(path)[:40]}… ({len(path)} bytes)" for path in paths[:_NAMED]]
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(shown) + more


async def _opened(work: Path) -> None:
    try:
        await asyncio.to_thread(make_readable, work)
    except OSError as error:
        raise Unrecordable(
            f"git cannot record the work: {error.filename} cannot be read ({error.strerror})."
        ) from error


async def _restored(
    git: Git,
    env: Mapping[str, str],
    work: Path,
    base_sha: str,
    tree: Tree,
    protection: Protection,
    pointers: Mapping[bytes, str | None],
) -> Tree:
    """Give protected paths back what the base has there, and look again."""
    lines = []
    for change in tree.difference.changes:
        if protection.covers(change.path) and change.path not in pointers:
            mode = "0" if change.old_mode == "000000" else change.old_mode
            lines.append(f"{mode} {change.old_sha}\t".encode() + change.path)
    if not lines:
        return tree
    # Removals first: a file cannot come back while a folder has its place.
    await _update_index(git, env, work, sorted(lines, key=lambda line: not line.startswith(b"0 ")))
    restored = await _written(git, env, work, base_sha)
    left = [
        display(change.path)
        for change in restored.difference.changes
        if protection.covers(change.path) and change.path not in pointers
    ]
    if left:
        raise GitFailed(f"protected paths could not be kept out of the snapshot: {', '.join(left[:5])}")
    return restored


async def _update_index(git: Git, env: Mapping[str, str], work: Path, lines: list[bytes]) -> None:
    if lines:
        text = b"".join(line + b"\0" for line in lines)
        await git.run("update-index", "--replace", "-z", "--index-info", env=env, cwd=work, stdin=text)


async def _written(git: Git, env: Mapping[str, str], work: Path, base_sha: str) -> Tree:
    tree = (await git.run("write-tree", env=env, cwd=work)).text
    return Tree(id=tree, difference=await difference(git, env, base_sha, tree))


async def difference(git: Git, env: Mapping[str, str], old: str, new: str) -> Difference:
    """Compare two trees."""
    if old == new:
        return Difference()
    done = await git.run("diff-tree", "-r", "-z", "--raw", "--numstat", "--no-renames", old, new, env=env)
    fields = done.out.split(b"\0")
    changes: list[Change] = []
    insertions = deletions = position = 0
    while position < len(fields) and fields[position].startswith(b":"):
        old_mode, new_mode, old_sha, _, _ = fields[position][1:].decode("ascii").split()
        changes.append(
            Change(path=fields[position + 1], old_mode=old_mode, old_sha=old_sha, new_mode=new_mode)
        )
        position += 2
    for line in fields[position:]:
        counts = line.split(b"\t", 2)
        if len(counts) == 3 and counts[0] != b"-":
            insertions += int(counts[0])
            deletions += int(counts[1])
    return Difference(changes=tuple(changes), insertions=insertions, deletions=deletions)
