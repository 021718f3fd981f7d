"""Recording what a workspace holds: its tree, its submodules, and the commits that the agent made itself."""

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from loopwright.adapters.git.plumbing.commits import message_of, write_commit
from loopwright.adapters.git.plumbing.private_git import Depot
from loopwright.adapters.git.plumbing.records import Module, Record, Records, check_present
from loopwright.adapters.git.plumbing.refs import Ref, Refs
from loopwright.adapters.git.plumbing.runner import Git
from loopwright.adapters.git.workspaces import modules, snapshots
from loopwright.adapters.git.workspaces.agent_commits import Tips, adopt, read_tips
from loopwright.adapters.git.workspaces.archives import WorkTree, archive
from loopwright.adapters.git.workspaces.protection import Protection
from loopwright.adapters.machine.files import is_folder
from loopwright.core.values.errors import GitFailed
from loopwright.ports import Failpoint, Snapshot, Trailers

_PROBES: Final = "refs/loopwright/probes/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What a snapshot is called and whom it belongs to."""

    ref: str
    subject: str
    at: datetime
    trailers: Trailers | None = None

    @property
    def message(self) -> str:
        """The commit message."""
        return message_of(self.subject, self.trailers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The tree of a workspace, with the submodules of it that could not be looked into."""

    tree: snapshots.Tree
    refused: tuple[str, ...] = ()
    """What in the git dirs of submodules leads out of them, in words."""


class Capture:
    """Takes snapshots of workspaces and pins them in the user's repository."""

    def __init__(self, git: Git, depot: Depot, records: Records, refs: Refs, failpoint: Failpoint) -> None:
        self._git = git
        self._depot = depot
        self._records = records
        self._refs = refs
        self._failpoint = failpoint

    def record_of(self, path: Path) -> Record:
        """Return the record of a finished workspace that is really there, or raise."""
        record = self._records.load(self._records.check(path))
        if record is None or record.state != "made":
            raise GitFailed(f"{path} is not a finished workspace")
        check_present(path)
        return record

    async def tree(self, path: Path, *, base_sha: str, label: Label) -> Taken:
        """Write the tree of a workspace; submodules that moved are pinned in the user's clones of them."""
        record = self.record_of(path)
        pointers, refused = await self._pointers(path, record, label)
        tree = await snapshots.write_tree(
            self._git,
            self._depot,
            path,
            base_sha=base_sha,
            fresh_index=self._records.index(path) if base_sha == record.sha else None,
            copied=frozenset(map(os.fsencode, record.copied)),
            pointers=pointers.get(b"", {}),
        )
        return Taken(tree=tree, refused=refused)

    def tips(self, path: Path, *, base_sha: str) -> Tips:
        """Return where the agent's own commits in a workspace end."""
        borrows = _borrows(self.record_of(path), self._depot)
        return read_tips(path, top=path, base_sha=base_sha, borrows=borrows)

    async def snapshot(self, path: Path, *, base_sha: str, label: Label) -> Snapshot:
        """Commit what a workspace holds on top of `base_sha`, and pin it."""
        return await self.pinned(
            path, await self.tree(path, base_sha=base_sha, label=label), base_sha=base_sha, label=label
        )

    async def pinned(self, path: Path, taken: Taken, *, base_sha: str, label: Label) -> Snapshot:
        """Commit a tree of a workspace on top of `base_sha`, and pin it with the agent's own commits."""
        tree = taken.tree
        known = await self._refs.pins(label.ref)
        sha = _unchanged(known.get(label.ref), tree.id, base_sha, label.message)
        if sha is None:
            sha = write_commit(self._depot, tree.id, parents=(base_sha,), message=label.message, at=label.at)
            await self._refs.pin({label.ref: sha}, origin=self._depot.path, near=base_sha, known=known)
        agent = await adopt(
            self._depot,
            self._refs,
            path,
            top=path,
            base_sha=base_sha,
            borrows=_borrows(self.record_of(path), self._depot),
            ref=label.ref,
            known=known,
        )
        return Snapshot(
            sha=sha,
            tree=tree.id,
            changed=tree.difference.paths,
            insertions=tree.difference.insertions,
            deletions=tree.difference.deletions,
            agent_sha=agent.head,
            refused="; ".join(filter(None, (agent.refused, *taken.refused))),
        )

    async def archive(self, path: Path, dest: Path) -> None:
        """Keep what a workspace holds beyond its base as an archive: git cannot."""
        record = self.record_of(path)
        inner = frozenset(os.fsencode(module.path) for module in record.modules)
        copied = frozenset(map(os.fsencode, record.copied))
        trees = [
            WorkTree(
                top=path,
                prefix=b"",
                depot=self._depot,
                index=self._records.index(path),
                protection=Protection(copied=copied, gitlinks=inner),
            )
        ]
        for module in record.modules:
            full = os.fsencode(module.path)
            source = modules.source_of(Path(module.git_dir), self._depot.source.object_format)
            if source is None or not is_folder(path, full):
                continue
            below = frozenset(one[len(full) + 1 :] for one in inner if one.startswith(full + b"/"))
            trees.append(
                WorkTree(
                    top=path / module.path,
                    prefix=full + b"/",
                    depot=self._depot.module(module.key, source),
                    index=self._records.index(path, module.key),
                    protection=Protection(gitlinks=below),
                )
            )
        await archive(self._git, trees, dest)

    async def try_keeping(self, tree: str, *, near: str, at: datetime) -> None:
        """Bring a new commit of a tree on top of `near` to where work is kept, and all but name it there."""
        token = secrets.token_hex(8)
        self._depot.ensure()
        sha = write_commit(self._depot, tree, parents=(near,), message=f"Probe {token}", at=at)
        await self._refs.try_pinning(f"{_PROBES}{token}", sha, origin=self._depot.path, near=near)

    async def _pointers(
        self, path: Path, record: Record, label: Label
    ) -> tuple[Mapping[bytes, dict[bytes, str | None]], tuple[str, ...]]:
        """Record each submodule, the innermost first; return the moved ones by the module they stand in.

        Beside them stands what leads out of a submodule's git dir.
        """
        moved: dict[bytes, dict[bytes, str | None]] = {}
        refused: list[str] = []
        for module in reversed(record.modules):
            full = os.fsencode(module.path)
            if not is_folder(path, full):
                continue
            sha, led_out = await self._module(path, module, moved.get(full, {}), label)
            refused += [f"{module.path}/{led_out}"] if led_out else []
            if sha != module.sha:
                owner = _owner(full, record.modules)
                moved.setdefault(owner, {})[full[len(owner) :].lstrip(b"/")] = sha
        return moved, tuple(refused)

    async def _module(
        self, top: Path, module: Module, pointers: Mapping[bytes, str | None], label: Label
    ) -> tuple[str, str]:
        """Return the commit that a submodule stands at now, pinned in the user's clone, and what leads out of it."""
        source = modules.source_of(Path(module.git_dir), self._depot.source.object_format)
        if source is None:
            raise GitFailed(f"the clone of the submodule {module.path} is gone: {module.git_dir}")
        depot = self._depot.module(module.key, source)
        depot.ensure()
        refs = Refs(self._git, source, self._failpoint)
        work = top / module.path
        agent = await adopt(
            depot, refs, work, top=top, base_sha=module.sha, borrows=_borrows(module, depot), ref=label.ref
        )
        parent = agent.head or module.sha
        tree = await snapshots.write_tree(
            self._git,
            depot,
            work,
            base_sha=parent,
            fresh_index=self._records.index(top, module.key) if agent.head is None else None,
            pointers=pointers,
        )
        if not tree.difference.changes:
            return parent, agent.refused
        sha = write_commit(depot, tree.id, parents=(parent,), message=label.message, at=label.at)
        known = await refs.read(label.ref)
        await refs.pin({label.ref: sha}, origin=depot.path, near=module.sha, known=known)
        return sha, agent.refused


def _borrows(made: Record | Module, depot: Depot) -> tuple[str, ...]:
    """Return what a git dir was made to borrow from; a record of an earlier version does not say."""
    return made.borrows or (str(depot.objects), str(depot.source.objects))


def _unchanged(ref: Ref | None, tree: str, base_sha: str, message: str) -> str | None:
    """Return the commit of an earlier snapshot that says the same, so that asking twice makes one."""
    if ref is not None and (ref.tree, ref.parents, ref.message) == (tree, (base_sha,), message):
        return ref.sha
    return None


def _owner(path: bytes, made: tuple[Module, ...]) -> bytes:
    """Return the innermost submodule around another one; empty for the project itself."""
    others = (os.fsencode(module.path) for module in made)
    return max((other for other in others if path.startswith(other + b"/")), key=len, default=b"")
