"""`ports.Repository` on real git."""

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from loopwright.adapters.git.branches.branches import Branches, Pins
from loopwright.adapters.git.branches.ends import GitEnds
from loopwright.adapters.git.branches.history import History, patch
from loopwright.adapters.git.branches.leftovers import Leftover, Leftovers
from loopwright.adapters.git.branches.merging import Merging, TakingOut
from loopwright.adapters.git.branches.quarantine import FOLDER, Quarantine, Quarantined
from loopwright.adapters.git.branches.writeback_commits import Bookkeeping
from loopwright.adapters.git.checkout import tripwires
from loopwright.adapters.git.checkout.handover import ByHand
from loopwright.adapters.git.plumbing import names
from loopwright.adapters.git.plumbing.commits import damaged
from loopwright.adapters.git.plumbing.place import Place, check_writable, find
from loopwright.adapters.git.plumbing.private_git import Depot
from loopwright.adapters.git.plumbing.records import Records
from loopwright.adapters.git.plumbing.refs import PinList, Ref, Refs
from loopwright.adapters.git.plumbing.runner import Git, own_env, user_env
from loopwright.adapters.git.plumbing.started import Started
from loopwright.adapters.git.workspaces.capture import Capture, Label
from loopwright.adapters.git.workspaces.overlays import Overlays
from loopwright.adapters.git.workspaces.workspaces import Workspaces, borrowed
from loopwright.adapters.machine.files import delete
from loopwright.core.integrity.gate_reach import Line
from loopwright.core.values.errors import GitFailed, NotARepository, NotFound
from loopwright.core.values.patches import Patch
from loopwright.ports import (
    Base,
    Candidate,
    Entry,
    Failpoint,
    FileChange,
    MergedFile,
    Snapshot,
    Standing,
    Step,
    Tracked,
    Trailers,
    Tripwire,
    no_failpoint,
)

_UNUSED_FOR: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """Everything that depends on where the user's repository is."""

    place: Place
    depot: Depot
    refs: Refs
    pins: Pins
    workspaces: Workspaces
    capture: Capture
    merging: Merging
    taking_out: TakingOut
    branches: Branches
    overlays: Overlays
    history: History
    quarantine: Quarantine
    bookkeeping: Bookkeeping


class GitRepository:
    """All git work on one project, in the user's repository and in our own git dir beside it."""

    def __init__(
        self, project_path: Path, *, project_id: str, home: Path, failpoint: Failpoint = no_failpoint
    ) -> None:
        self._project = project_path
        self._home = home.absolute()
        self._own = self._home / "git" / f"{project_id}.git"
        self._started = Started(self._own / "started")
        self.git = Git(self._started)
        self._failpoint = failpoint
        self._parts: _Parts | None = None
        self._finding = asyncio.Lock()

    # --- where a plan starts -----------------------------------------------------------------------

    async def base(self, ref: str | None = None) -> Base:
        """Resolve where a plan starts; raise `NotARepository` with what to do."""
        place = (await self._found()).place
        check_writable(place.source)
        if place.toplevel is None:
            branch, sha, dirty = await self._bare_head(place)
        else:
            branch, sha, marks = await tripwires.status(self.git, place, self._home)
            dirty = tuple(names.display(path) for path in sorted(marks))
        if ref is not None:
            return Base(ref=ref, sha=await self._resolved(ref), dirty=dirty)
        if not names.is_sha(sha):
            raise NotARepository(
                f"{self._project} has no commit yet",
                code="no_commit",
                hint="Commit what you have first: git add -A && git commit -m 'start'",
            )
        return Base(ref="HEAD" if branch == "(detached)" else branch, sha=sha, dirty=dirty)

    async def prefix(self) -> str:
        """Return the project's folder inside its repository: empty, or ending in a slash."""
        return (await self._ready()).place.prefix

    async def borrowed(self) -> tuple[Path, ...]:
        """Return the folders outside of a workspace that git reads objects from in there."""
        return await asyncio.to_thread(borrowed, (await self._ready()).depot)

    # --- branches ----------------------------------------------------------------------------------

    async def ensure_branch(self, branch: str, sha: str) -> str:
        """Create the plan branch at `sha` unless it exists; return its tip."""
        name, sha = names.branch(branch), names.sha(sha)
        parts = await self._ready()
        known = await parts.refs.read(name)
        if name in known:
            return known[name].sha
        if await parts.branches.create(branch, sha):
            return sha
        return await self.tip(branch)

    async def tip(self, branch: str) -> str:
        """Return the tip of one of our branches."""
        name = names.branch(branch)
        sha = await (await self._ready()).refs.tip(name)
        if sha is None:
            raise NotFound(
                f"the branch {branch} is gone from {self._project}",
                code="branch_gone",
                hint="If it was deleted by mistake, restore it from the last landed commit, then resume.",
            )
        return sha

    async def advance(self, branch: str, *, new: str, old: str) -> bool:
        """Compare-and-swap the branch; False when it had moved."""
        name, new, old = names.branch(branch), names.sha(new), names.sha(old)
        parts = await self._ready()
        tip = await parts.refs.tip(name)
        if tip != old:
            return tip == new
        worktree = await parts.refs.checked_out(name)
        if worktree:
            raise GitFailed(
                f"the branch {branch} is checked out in {worktree}: landing on it would make that checkout"
                " look changed. Switch it to another branch there (git switch --detach), then resume."
            )
        return await parts.branches.swap(branch, new=new, old=old)

    async def standing(self, branch: str) -> Standing:
        """Take note of what others did to one of our branches; raise `BranchRewritten` when a person has to decide."""
        return await (await self._ready()).branches.standing(branch)

    async def accept(self, branch: str, *, tip: str, was: str) -> None:
        """Continue from the commits that others put on one of our branches."""
        branches = (await self._ready()).branches
        await branches.accept(branch, tip=names.sha(tip), was=names.sha(was))

    async def put_back(self, branch: str, *, to: str, found: str, keep: str) -> bool:
        """Take one of our branches back to where we left it, and pin what it was found at."""
        branches = (await self._ready()).branches
        return await branches.put_back(branch, to=names.sha(to), found=names.sha(found), keep=keep)

    async def is_pinned(self, ref: str) -> bool:
        """Return whether there is a pin of this name; files tell where there is none."""
        return names.pin(ref) in await (await self._ready()).refs.pins(ref)

    async def pinned(self, plan_id: str) -> Mapping[str, str]:
        """Return the commits that keep the work of a plan's attempts, by the names of their pins."""
        return await (await self._ready()).pins.of_plan(plan_id)

    async def note(self, branch: str, *, among: Sequence[str]) -> None:
        """Note again where we left one of our branches: at the newest of these commits of its line."""
        await (await self._ready()).branches.note(branch, [names.sha(each) for each in among])

    # --- workspaces --------------------------------------------------------------------------------

    async def make_workspace(
        self, path: Path, sha: str, *, copy_files: Sequence[str] = (), marker: str = ""
    ) -> bool:
        """Make a private clone at `sha` with no hooks and no way back; return whether there was something to do.

        A finished one with the same commit and marker is left as it is. One with that marker is brought to the commit
        if nothing is in the way. One for anything else is replaced; what was in it is put in quarantine first.
        """
        parts = await self._ready()

        async def keep(path: Path) -> Quarantined | None:
            return await parts.quarantine.keep(
                path,
                ref=f"{FOLDER}replaced/{path.name}",
                reason=f"Left in {path.name} when it was made again",
                at=datetime.now(UTC),
            )

        return await parts.workspaces.make(
            path, names.sha(sha), copy_files=copy_files, marker=marker, keep=keep
        )

    async def checkout(self, path: Path, sha: str, *, copy_files: Sequence[str] = ()) -> Tracked:
        """Make a private tree of `sha` to run gates in; one for another commit is replaced."""
        parts = await self._ready()
        await parts.workspaces.make(path, names.sha(sha), copy_files=copy_files)
        return parts.workspaces.tracked(path)

    def has_workspace(self, path: Path) -> bool:
        """Return whether there is a workspace, or what is left of one."""
        return path.exists()

    async def remove_workspace(self, path: Path) -> None:
        """Delete one of our workspaces or gate trees; refuse any other path."""
        await (await self._ready()).workspaces.remove(path)

    async def snapshot(
        self, path: Path, *, base_sha: str, ref: str, subject: str, trailers: Trailers, at: datetime
    ) -> Snapshot:
        """Commit whatever the workspace holds with our own git dir and index, and pin it at `ref`."""
        parts = await self._ready()
        label = Label(ref=names.pin(ref), subject=subject, at=at, trailers=trailers)
        return await parts.capture.snapshot(path, base_sha=names.sha(base_sha), label=label)

    async def archive(self, path: Path, dest: Path) -> None:
        """Put what a workspace holds beyond its base into a tar file: git raised `Unrecordable` for it."""
        await (await self._ready()).capture.archive(path, dest)

    async def try_keeping(self, *, near: str) -> None:
        """Keep our own commit for a moment, as work is kept: raise what would hinder that for any work."""
        parts, near = await self._ready(), names.sha(near)
        await parts.capture.try_keeping(await parts.merging.tree_of(near), near=near, at=datetime.now(UTC))

    # --- landing -----------------------------------------------------------------------------------

    async def candidate(
        self,
        *,
        tip: str,
        attempt_sha: str,
        subject: str,
        trailers: Trailers,
        at: datetime,
        leave: Sequence[str] = (),
    ) -> Candidate:
        """Merge in memory, these files left as they are on the tip; raise `MergeConflict`."""
        parts = await self._ready()
        tip, attempt_sha = names.sha(tip), names.sha(attempt_sha)
        if leave:
            attempt_sha = await parts.bookkeeping.leaving(attempt_sha, tip, leave)
        merged = await parts.merging.candidate(
            tip=tip, attempt_sha=attempt_sha, subject=subject, trailers=trailers, at=at
        )
        if merged.empty:
            return merged
        before = await parts.merging.tree_of(merged.parent)
        return replace(merged, changes=await parts.overlays.changes(before, merged.tree))

    async def laid_over(
        self, candidate: Candidate, *, restore: Sequence[FileChange], texts: Mapping[str, str]
    ) -> Candidate:
        """Return the candidate with some changes taken back and some files replaced; it lands nowhere."""
        overlays = (await self._ready()).overlays
        return await overlays.laid_over(candidate, restore=restore, texts=texts)

    async def contents(self, ids: Sequence[str]) -> list[str]:
        """Return the texts of files by the ids of their entries."""
        return await (await self._ready()).overlays.contents([names.sha(each) for each in ids])

    async def listed(self, sha: str) -> dict[str, Entry]:
        """Return everything in the tree of a commit, by its path."""
        return await (await self._ready()).history.listed(names.sha(sha))

    async def mentions(self, sha: str, words: Sequence[str], *, limit: int) -> list[Line] | None:
        """Return the lines of a commit in which one of these words stands; None when they are more than the limit."""
        return await (await self._ready()).history.mentions(names.sha(sha), words, limit=limit)

    async def texts(self, ids: Sequence[str], *, limit: int) -> dict[str, str]:
        """Return the texts of files by the ids of their entries: as many as go into so many bytes."""
        return await (await self._ready()).history.texts([names.sha(each) for each in ids], limit=limit)

    async def landed(
        self, branch_tip: str, *, since: str, task_id: str, among: Collection[str], reverts: Collection[str]
    ) -> str | None:
        """Find the landing commit of a task, one of these, on the first-parent line since `since`."""
        merging = (await self._ready()).merging
        tip, since = names.sha(branch_tip), names.sha(since)
        return await merging.landed(tip, since=since, task_id=task_id, among=among, reverts=reverts)

    async def files_at(self, sha: str, paths: Sequence[str]) -> dict[str, bytes]:
        """Return what is at these paths of a commit; what is not a file there is left out."""
        return await (await self._ready()).bookkeeping.files(names.sha(sha), paths)

    async def booked(
        self,
        parent: str,
        files: Mapping[str, bytes],
        *,
        subject: str,
        plan_id: str,
        at: datetime,
        copies: Mapping[str, bytes],
    ) -> str:
        """Build a commit of the harness's own on top of another."""
        books = (await self._ready()).bookkeeping
        return await books.commit(
            names.sha(parent), files, subject=subject, plan_id=plan_id, at=at, copies=copies
        )

    async def copies(self, sha: str, *, since: str) -> dict[str, bytes]:
        """Return the files of a person's own copy as they were when they were last taken in."""
        return await (await self._ready()).bookkeeping.copies(names.sha(sha), names.sha(since))

    async def merged_file(self, base: bytes, ours: bytes, theirs: bytes) -> MergedFile:
        """Return a file with what two sides did to it, or where that cannot be had."""
        return await (await self._ready()).bookkeeping.merged(base, ours, theirs)

    async def judged(self, sha: str) -> str:
        """Return the commit below those of the bookkeeping: the one whose tree a gate has seen."""
        return await (await self._ready()).bookkeeping.judged(names.sha(sha))

    async def known_commit(self, text: str) -> str | None:
        """Return the commit that an id, or the beginning of one, means; None when there is no such one."""
        try:
            return await self._resolved(text)
        except NotFound:
            return None

    async def tracked(self, sha: str) -> list[str]:
        """Return the paths of a commit."""
        place = (await self._ready()).place
        done = await self.git.run(
            "ls-tree", "-r", "-z", "--name-only", names.sha(sha), env=place.source.env()
        )
        return [path for path in done.out.decode("utf-8", "surrogateescape").split("\0") if path]

    async def newest(self, sha: str, most: int) -> list[str]:
        """Return the newest commits below one, each on a line."""
        place = (await self._ready()).place
        form = "--format=tformat:%h %cs %s"
        done = await self.git.run("log", f"--max-count={most}", form, names.sha(sha), env=place.source.env())
        return done.text.splitlines()

    async def steps(self, tip: str, *, since: str, most: int | None = None) -> tuple[Step, ...]:
        """Return the commits of the first-parent line after `since`, the newest first, at most so many."""
        history = (await self._ready()).history
        return await history.steps(names.sha(tip), since=names.sha(since), most=most)

    async def changed(self, old: str, new: str) -> tuple[str, ...]:
        """Return the paths that differ between two commits, relative to the top of the repository."""
        return await (await self._ready()).history.changed(names.sha(old), names.sha(new))

    async def difference(self, old: str, new: str, *, paths: Sequence[str] = (), limit: int) -> str:
        """Return what changed between two commits as text that a person reads, at these paths or at all; cut short."""
        history = (await self._ready()).history
        return await history.difference(names.sha(old), names.sha(new), paths=paths, limit=limit)

    async def without(
        self, tip: str, *, landings: Sequence[str], subject: str, plan_id: str, command_id: str, at: datetime
    ) -> Candidate:
        """Build the commit that takes landings, the newest first, back out of the tip; raise `MergeConflict`."""
        return await (await self._ready()).taking_out.without(
            names.sha(tip),
            landings=[names.sha(landing) for landing in landings],
            subject=subject,
            plan_id=plan_id,
            command_id=command_id,
            at=at,
        )

    async def damaged(self, *, since: str, tips: Sequence[str]) -> str | None:
        """Return what is wrong with an object that came after `since` and is part of a tip; None when all are whole."""
        depot = (await self._ready()).depot
        return await damaged(self.git, depot, since=names.sha(since), tips=[names.sha(tip) for tip in tips])

    async def absent(self, shas: Sequence[str]) -> tuple[str, ...]:
        """Return the commits among these that are not in the repository."""
        return await (await self._ready()).history.absent([names.sha(each) for each in shas])

    async def is_ancestor(self, sha: str, of: str) -> bool:
        """Return whether `sha` is contained in `of`."""
        return await (await self._ready()).merging.is_ancestor(names.sha(sha), names.sha(of))

    async def proven(self, sha: str, target: str) -> bool:
        """Return whether the work of `sha` has arrived in `target`, a commit or any branch of the user's."""
        parts = await self._ready()
        goal = target if names.is_sha(target) else await self._resolved(target)
        return await parts.merging.proven(names.sha(sha), goal)

    async def ends(self) -> GitEnds:
        """Return what brings a plan's work into a branch of the user's."""
        parts = await self._ready()
        return GitEnds(self.git, parts.place, parts.depot, parts.merging, parts.refs, self._failpoint)

    # --- reading -----------------------------------------------------------------------------------

    async def diff_hashes(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        """Return the SHA-256 of the full binary diff between the two commits of each pair."""
        checked = [(names.sha(old), names.sha(new)) for old, new in pairs]
        return await (await self._ready()).merging.diff_hashes(checked)

    async def patch(self, old: str, new: str) -> Patch:
        """Return what differs between two commits, as text and line by line."""
        return await patch(self.git, (await self._ready()).depot, names.sha(old), names.sha(new))

    async def tree_of(self, sha: str) -> str:
        """Return the tree id of a commit."""
        return await (await self._ready()).merging.tree_of(names.sha(sha))

    async def file_at(self, sha: str, path: str) -> str | None:
        """Return a file's text at a commit; the path is relative to the project's folder."""
        parts = await self._ready()
        return await parts.merging.file_at(names.sha(sha), parts.place.prefix + path)

    # --- quarantine --------------------------------------------------------------------------------

    async def quarantine(
        self,
        path: Path,
        *,
        ref: str,
        reason: str,
        at: datetime,
        known: Sequence[str] = (),
        trailers: Trailers | None = None,
    ) -> Quarantined | None:
        """Pin what an ended attempt left in its workspace; None when its base or a `known` commit has it all."""
        quarantine = (await self._ready()).quarantine
        return await quarantine.keep(path, ref=ref, reason=reason, at=at, known=known, trailers=trailers)

    async def quarantined(self) -> list[Quarantined]:
        """Return everything in quarantine, the oldest first."""
        return await (await self._ready()).quarantine.kept()

    async def drop_quarantine(self, older_than: datetime) -> list[Quarantined]:
        """Let go of what was put in quarantine before a moment, and return it."""
        return await (await self._ready()).quarantine.drop(older_than)

    async def tidy(self) -> None:
        """Delete what nothing has used for a week in our own git dir; the user's repository is left alone."""
        own = (await self._ready()).depot.path
        self._started.tidy()
        for path in (own, *sorted((own / "modules").glob("*.git"))):
            await self.git.run("prune", f"--expire={_UNUSED_FOR.days}.days.ago", env=own_env(path))
            limit = time.time() - _UNUSED_FOR.total_seconds()
            for left in (*(path / "scratch").glob("*"), *(path / "indexes").glob("snapshot-*")):
                if left.lstat().st_mtime < limit:
                    await asyncio.to_thread(delete, left)

    # --- a person's own work -----------------------------------------------------------------------

    async def by_hand(self) -> ByHand:
        """Return what makes and reads checkouts for a person."""
        parts = await self._ready()
        return ByHand(self.git, parts.depot, parts.refs, parts.merging)

    # --- what ended plans leave --------------------------------------------------------------------

    async def leftovers(self, plan_id: str, branch: str, *, into: str | None = None) -> list[Leftover]:
        """Return every ref that a plan has in the user's repository, each with where else its work is."""
        return await (await self._leftovers()).of_plan(plan_id, branch, into=into)

    async def on_branch(self, branch: str, refs: list[Ref]) -> frozenset[str]:
        """Return the commits that a plan branch has, if it is among these refs or what we noted of it is."""
        return await (await self._leftovers()).on_branch(branch, refs)

    async def let_go(self, refs: list[Ref]) -> None:
        """Delete refs of a plan that are still what they were when they were looked at."""
        await (await self._leftovers()).let_go(refs)

    async def _leftovers(self) -> Leftovers:
        parts = await self._ready()
        return Leftovers(self.git, parts.place.source, parts.refs, parts.merging)

    # --- the user's checkout -----------------------------------------------------------------------

    async def tripwire(self) -> Tripwire:
        """Take a fingerprint of the user's checkout."""
        return await tripwires.take(self.git, (await self._ready()).place, self._home)

    async def repin(self, plan_id: str, *, near: str) -> tuple[str, ...]:
        """Put back the pins of a plan that were deleted or moved; return each in plain words."""
        return await (await self._ready()).pins.put_back(plan_id, near=names.sha(near))

    def stray(self, before: Tripwire, after: Tripwire) -> tuple[str, ...]:
        """Return in plain words what differs between two fingerprints."""
        return tripwires.stray(before, after)

    async def stray_patch(self, dest: Path, before: Tripwire, after: Tripwire) -> bool:
        """Save the files that changed between two fingerprints as a patch; False when there are none."""
        return await tripwires.save_patch(self.git, (await self._ready()).place, dest, before, after)

    # --- finding it --------------------------------------------------------------------------------

    async def _ready(self) -> _Parts:
        async with self._finding:  # those who ask first all ask at once
            return self._parts or await self._found()

    async def _found(self) -> _Parts:
        place = await find(self.git, self._project)
        depot = Depot(path=self._own, source=place.source, settings=place.settings)
        depot.ensure()
        records = Records(self._home, self._own)
        made = PinList(self._own / "loopwright-pins")
        refs = Refs(self.git, place.source, self._failpoint, made)
        capture = Capture(self.git, depot, records, refs, self._failpoint)
        merging = Merging(self.git, depot)
        history = History(self.git, depot)
        self._parts = _Parts(
            place=place,
            depot=depot,
            refs=refs,
            pins=Pins(self.git, refs, depot, made),
            workspaces=Workspaces(self.git, place, depot, records),
            capture=capture,
            merging=merging,
            taking_out=TakingOut(depot, merging),
            branches=Branches(refs, merging, history),
            overlays=Overlays(self.git, depot),
            history=history,
            quarantine=Quarantine(capture, merging, refs),
            bookkeeping=Bookkeeping(self.git, depot, merging),
        )
        return self._parts

    async def _bare_head(self, place: Place) -> tuple[str, str, tuple[str, ...]]:
        env = place.source.env()
        branch = await self.git.run("symbolic-ref", "-q", "--short", "HEAD", env=env, ok=(0, 1))
        sha = await self.git.run("rev-parse", "-q", "--verify", "HEAD^{commit}", env=env, ok=(0, 1, 128))
        return branch.text or "(detached)", sha.text, ()

    async def _resolved(self, ref: str) -> str:
        unknown = NotFound(
            f"{ref!r} names no commit in {self._project}",
            code="commit_not_found",
            hint="Give a branch, a tag or a commit id.",
        )
        if not ref or ref.startswith("-"):
            raise unknown
        done = await self.git.run(
            "rev-parse",
            "-q",
            "--verify",
            f"{ref}^{{commit}}",
            env=user_env(),
            cwd=self._project,
            ok=(0, 1, 128),
        )
        if done.code != 0:
            raise unknown
        return done.text
