"""Commits that an agent made itself, brought to safety without running git under the agent's configuration.

Its refs are read as plain files. Its objects are only borrowed by a throw-away git dir of ours, from which they are
brought into the user's repository (`Refs.bring`): that recomputes every object id and checks that nothing is missing,
so a forged or broken object store brings in nothing.
"""

import asyncio
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loopwright.adapters.git.depot import Depot, alternates_text
from loopwright.adapters.git.files import delete, is_real_dir
from loopwright.adapters.git.names import is_sha
from loopwright.adapters.git.refs import Ref, Refs
from loopwright.core.errors import GitFailed

_FILE_LIMIT: Final = 1 << 20
_TIP_LIMIT: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Tips:
    """Where an agent's own commits end."""

    head: str | None = None
    others: tuple[str, ...] = ()
    """Other branches, the stash, and what the last reset left behind."""


def read_tips(git_dir: Path, *, base_sha: str) -> Tips:
    """Read the tips that differ from the base; anything unreadable counts as absent."""
    if not is_real_dir(git_dir) or not is_real_dir(git_dir / "objects"):
        return Tips()
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
    git_dir: Path,
    *,
    base_sha: str,
    ref: str,
    known: Mapping[str, Ref] | None = None,
) -> str | None:
    """Pin the agent's own commits at `<ref>-agent` and return the tip of its HEAD, or None if there is none."""
    tips = read_tips(git_dir, base_sha=base_sha)
    if tips == Tips():
        return None
    borrowed = git_dir / "objects"
    if (
        _text(borrowed / "info" / "alternates")
        != alternates_text((depot.objects, depot.source.objects)).strip()
    ):
        # It was pointed somewhere else: what that place holds is not the agent's work.
        return None
    updates = {f"{ref}-agent-{sha[:12]}": sha for sha in tips.others}
    if tips.head is not None:
        updates[f"{ref}-agent"] = tips.head
    if known is None:
        known = await refs.read(f"{ref}-agent*")
    scratch = depot.scratch(borrowed, depot.objects, depot.source.objects)
    try:
        await refs.pin(updates, origin=scratch, near=base_sha, known=known)
    except GitFailed:
        if tips.head is None or not tips.others:
            return None
        try:
            await refs.pin({f"{ref}-agent": tips.head}, origin=scratch, near=base_sha, known=known)
        except GitFailed:
            return None
    finally:
        await asyncio.to_thread(delete, scratch)
    return tips.head


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
    """Return a small regular file's text; empty for anything else."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return ""
        with path.open("rb") as file:
            return file.read(_FILE_LIMIT).decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        return ""
