"""Work that is not proven to be anywhere else: pinned, named, and dropped only when its time has ended."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from loopwright.adapters.git.branches.merging import Merging
from loopwright.adapters.git.plumbing.names import pin
from loopwright.adapters.git.plumbing.refs import Ref, Refs
from loopwright.adapters.git.workspaces.capture import Capture, Label
from loopwright.core.values.errors import GitFailed
from loopwright.ports import Trailers

FOLDER: Final = "refs/loopwright/quarantine/"
_SIDE = re.compile(r"(-agent(-[0-9a-f]{12})?)?(-was-[0-9a-f]{12})?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """Something that was left in a workspace."""

    ref: str
    sha: str
    reason: str
    at: datetime


class Quarantine:
    """Keeps what ended attempts left behind under its own refs."""

    def __init__(self, capture: Capture, merging: Merging, refs: Refs) -> None:
        self._capture = capture
        self._merging = merging
        self._refs = refs

    async def keep(
        self,
        path: Path,
        *,
        ref: str,
        reason: str,
        at: datetime,
        known: Sequence[str] = (),
        trailers: Trailers | None = None,
    ) -> Quarantined | None:
        """Pin what a workspace holds, unless its base or one of the pinned commits `known` has all of it."""
        if not pin(ref).startswith(FOLDER):
            raise GitFailed(f"{ref!r} is not a ref under {FOLDER}")
        base_sha = self._capture.record_of(path).sha
        label = Label(ref=ref, subject=reason, at=at, trailers=trailers)
        taken = await self._capture.tree(path, base_sha=base_sha, label=label)
        for sha in known:
            if taken.tree.id == await self._merging.tree_of(sha):
                return None
        tips = self._capture.tips(path, base_sha=base_sha)
        if not (taken.tree.difference.changes or tips.head or tips.others):
            return None
        snapshot = await self._capture.pinned(path, taken, base_sha=base_sha, label=label)
        return Quarantined(ref=ref, sha=snapshot.sha, reason=reason, at=at)

    async def kept(self) -> list[Quarantined]:
        """Return everything in quarantine, the oldest first."""
        return [_quarantined(ref) for ref in _mains(await self._refs.read(FOLDER.rstrip("/")))]

    async def drop(self, older_than: datetime) -> list[Quarantined]:
        """Let go of what was put there before a moment, and return it."""
        found = await self._refs.read(FOLDER.rstrip("/"))
        dropped = [thing for thing in map(_quarantined, _mains(found)) if thing.at < older_than]
        names = {thing.ref for thing in dropped}
        await self._refs.delete([ref for name, ref in found.items() if _main(name, found) in names])
        return dropped


def _main(name: str, found: Mapping[str, Ref]) -> str:
    """Return the ref that a side pin belongs to: its own date is the agent's word."""
    main = _SIDE.sub("", name)
    return main if main in found else name


def _mains(found: Mapping[str, Ref]) -> list[Ref]:
    mains = [ref for name, ref in found.items() if _main(name, found) == name]
    return sorted(mains, key=lambda ref: (ref.committed_at, ref.name))


def _quarantined(ref: Ref) -> Quarantined:
    return Quarantined(
        ref=ref.name,
        sha=ref.sha,
        reason=ref.message.partition("\n")[0],
        at=datetime.fromtimestamp(ref.committed_at, UTC),
    )
