"""Recording what a workspace holds: its tree, its submodules, and the commits that the agent made itself."""

import asyncio
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from loopwright.adapters.git.plumbing.commits import message_of, write_commit
from loopwright.adapters.git.plumbing.names import display, is_sha
from loopwright.adapters.git.plumbing.private_git import Depot, alternates_text
from loopwright.adapters.git.plumbing.records import Module, Record, Records, check_present
from loopwright.adapters.git.plumbing.refs import Ref, Refs
from loopwright.adapters.git.plumbing.runner import Git
from loopwright.adapters.git.workspaces import modules, snapshots
from loopwright.adapters.git.workspaces.archives import Protection, WorkTree, archive
from loopwright.adapters.machine.files import delete, is_folder, is_real_dir, read_regular, regular_text
from loopwright.core.values.errors import GitFailed
from loopwright.ports import Failpoint, Snapshot, Trailers

# Commits that an agent made itself, brought to safety without running git under the agent's configuration.
#
# Only regular files that lie in the agent's git dir itself are read. A sandbox hides other repositories of
# the user from the agent, but not from us: a link in there, or objects borrowed from elsewhere, would make us
# import what the agent cannot read. Where there is such a thing, nothing is read at all and the reason is
# returned.
#
# Its refs are read as plain files. Its objects are only borrowed by one of our throw-away git dirs, from
# which they are brought into the user's repository (`Refs.bring`): that recomputes every object id and checks
# that nothing is missing, so a forged or broken object store brings in nothing.

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
