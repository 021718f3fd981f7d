"""Commits that an agent made itself, brought to safety without running git under the agent's configuration.

Only regular files that lie in the agent's git dir itself are read. A sandbox hides other repositories of the user from
the agent, but not from us: a link in there, or objects borrowed from elsewhere, would make us import what the agent
cannot read. Where there is such a thing, nothing is read at all and the reason is returned.

Its refs are read as plain files. Its objects are only borrowed by one of our throw-away git dirs, from which they are
brought into the user's repository (`Refs.bring`): that recomputes every object id and checks that nothing is missing,
so a forged or broken object store brings in nothing.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopwright.adapters.git.plumbing.names import display, is_sha
from loopwright.adapters.git.plumbing.private_git import Depot, alternates_text
from loopwright.adapters.git.plumbing.refs import Ref, Refs
from loopwright.adapters.machine.files import delete, is_real_dir, read_regular, regular_text
from loopwright.core.values.errors import GitFailed

_FILE_LIMIT: Final = 1 << 20
_TIP_LIMIT: Final = 50
_NAMED: Final = 200
"""So many letters of a path are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tips:
    """Where an agent's own commits end."""

    head: str | None = None
    others: tuple[str, ...] = ()
    """Other branches, the stash, and what the last reset left behind."""
    refused: str = ""
    """What in the git dir leads out of it, in words: then nothing of it was read."""


def read_tips(work: Path, *, top: Path, base_sha: str, borrows: Sequence[str]) -> Tips:
    """Read the tips of a work tree's git dir that differ from the base; anything unreadable counts as absent.

    `top` is the workspace that it is in, `borrows` the folders of objects that the git dir was made with.
    """
    git_dir = work / ".git"
    try:
        refused = _way_out(work, top, alternates_text(borrows))
    except OSError:
        return Tips()  # it cannot be read
    if refused or not is_real_dir(git_dir / "objects"):
        return Tips(refused=refused)
    packed = _packed(git_dir)
    head_text = _text(git_dir / "HEAD")
    head: str | None = head_text
    if head_text.startswith("ref: "):
        name = head_text.removeprefix("ref: ").strip()
        head = _loose(git_dir, name) or packed.get(name)
    tips = [sha for name, sha in packed.items() if name.startswith(("refs/heads/", "refs/stash"))]
    tips += [_loose(git_dir, name) for name in (*_branches(git_dir), "refs/stash")]
    tips.append(_text(git_dir / "ORIG_HEAD"))
    found = head if head is not None and is_sha(head) and head != base_sha else None
    others = dict.fromkeys(sha for sha in tips if is_sha(sha) and sha not in (base_sha, found))
    return Tips(head=found, others=tuple(others)[:_TIP_LIMIT])


async def adopt(
    depot: Depot,
    refs: Refs,
    work: Path,
    *,
    top: Path,
    base_sha: str,
    borrows: Sequence[str],
    ref: str,
    known: Mapping[str, Ref] | None = None,
) -> Tips:
    """Pin the agent's own commits at `<ref>-agent` and return them; without a head when that could not be taken in."""
    tips = await asyncio.to_thread(read_tips, work, top=top, base_sha=base_sha, borrows=borrows)
    if tips.head is None and not tips.others:
        return tips
    updates = {f"{ref}-agent-{sha[:12]}": sha for sha in tips.others}
    if tips.head is not None:
        updates[f"{ref}-agent"] = tips.head
    if known is None:
        known = await refs.read(f"{ref}-agent*")
    scratch = depot.scratch(work / ".git" / "objects", depot.objects, depot.source.objects)
    try:
        await refs.pin(updates, origin=scratch, near=base_sha, known=known)
    except GitFailed:
        if tips.head is None or not tips.others:
            return Tips()
        try:
            await refs.pin({f"{ref}-agent": tips.head}, origin=scratch, near=base_sha, known=known)
        except GitFailed:
            return Tips()
    finally:
        await asyncio.to_thread(delete, scratch)
    return tips


def _way_out(work: Path, top: Path, alternates: str) -> str:
    """Return what in a git dir leads to files outside of it, in words; empty when nothing does."""
    git_dir = work / ".git"
    if git_dir.is_symlink():
        return ".git is a symbolic link"
    if not is_real_dir(git_dir):
        target = regular_text(git_dir, limit=_FILE_LIMIT).removeprefix("gitdir: ")
        # One inside of the workspace is where git itself moves it (`git submodule absorbgitdirs`): it is not followed.
        inside = os.path.normpath(work / target).startswith(f"{os.path.normpath(top)}{os.sep}")
        outside = bool(target) and not inside
        return f".git is a file that leads to {target[:_NAMED]}" if outside else ""
    objects, folders = git_dir / "objects", [git_dir]
    while folders:
        folder = folders.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                path = folder / entry.name
                if path == git_dir / "hooks":
                    continue  # tools put links there, and Loopwright neither reads nor runs a hook
                if entry.is_symlink():
                    return f"{_named(path, work)} is a symbolic link"
                if entry.is_dir(follow_symlinks=False):
                    folders.append(path)
                elif path.is_relative_to(objects) and not entry.is_file(follow_symlinks=False):
                    return f"{_named(path, work)} is not a regular file"
    file = objects / "info" / "alternates"
    listed = (read_regular(file, limit=_FILE_LIMIT) or b"").strip()
    if listed not in (b"", alternates.encode("utf-8", "surrogateescape").strip()):
        return f"{_named(file, work)} names other folders than the workspace was made with"
    return ""


def _named(path: Path, work: Path) -> str:
    return display(os.fsencode(path.relative_to(work)))[:_NAMED]


def _branches(git_dir: Path) -> list[str]:
    heads = git_dir / "refs" / "heads"
    found = []
    for folder, folders, files in os.walk(heads):
        folders.sort()
        found += [Path(folder, name).relative_to(git_dir).as_posix() for name in sorted(files)]
        if len(found) > _TIP_LIMIT:
            break
    return found


def _packed(git_dir: Path) -> dict[str, str]:
    found = {}
    for line in _text(git_dir / "packed-refs").splitlines():
        sha, _, name = line.partition(" ")
        if is_sha(sha):
            found[name] = sha
    return found


def _loose(git_dir: Path, name: str) -> str:
    if ".." in name or not name.startswith("refs/"):
        return ""
    return _text(git_dir / name)


def _text(path: Path) -> str:
    return regular_text(path, limit=_FILE_LIMIT)
