"""Building and finding landings, and proving that work has arrived. Everything happens in our own git dir."""

import hashlib
import tempfile
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any, Final, TypeVar

from loopwright.adapters.git.branches.history import read_line
from loopwright.adapters.git.plumbing.commits import message_of, write_commit
from loopwright.adapters.git.plumbing.loose import Loose, Packed
from loopwright.adapters.git.plumbing.names import display
from loopwright.adapters.git.plumbing.private_git import Depot
from loopwright.adapters.git.plumbing.runner import Git
from loopwright.core.values.errors import CommitGone, GitFailed, MergeConflict
from loopwright.ports import Candidate, Trailers

# Prove that work has arrived in a branch: for many commits at once, with a few git commands for all of them.

Change = Mapping[bytes, bytes]
"""The paths that a change touches, each with the mode and object id it has afterwards."""


@dataclass(frozen=True, slots=True)
class _Commit:
    tree: str
    parents: tuple[str, ...]
    in_target: bool


async def arrived(git: Git, depot: Depot, shas: Collection[str], target: str) -> set[str]:
    """Return the commits whose work is in `target`: as ancestors, as one squashed commit, or change by change."""
    graph = await _graph(git, depot, shas, target)
    found = {sha for sha in shas if sha not in graph or graph[sha].in_target}
    groups: dict[frozenset[str], list[str]] = {}
    bases = _bases(graph)
    for sha in dict.fromkeys(shas):
        if sha not in found and bases[sha]:
            groups.setdefault(bases[sha], []).append(sha)
    for several, group in groups.items():
        [base, *more] = several
        if more:
            base = (await git.run("merge-base", target, group[0], env=depot.env())).text
        found |= await _arrived_since(git, depot, graph, group, target, base, only=not more)
    return found


async def _arrived_since(
    git: Git,
    depot: Depot,
    graph: Mapping[str, _Commit],
    group: Sequence[str],
    target: str,
    base: str,
    *,
    only: bool,
) -> set[str]:
    """Return which of these commits have arrived in `target`.

    All of them left it at `base`. If that is their `only` merge base, comparing paths replaces most merges.
    """
    asked = await git.run("rev-parse", f"{base}^{{tree}}", f"{target}^{{tree}}", env=depot.env())
    before, after = asked.text.split()
    pairs = [(before, after), *((before, graph[sha].tree) for sha in group)]
    theirs, *ours = await _changes(git, depot, pairs)
    found = {
        sha
        for sha, change in zip(group, ours, strict=True)
        if only and all(theirs.get(path) == entry for path, entry in change.items())
    }
    rest = [sha for sha in group if sha not in found]
    if theirs and rest:
        found |= await _same_patches(git, depot, graph, rest, target, base)
    for sha, change in zip(group, ours, strict=True):
        # A merge would change a path that only the work has touched, so only the others need to be tried.
        if sha not in found and (not only or all(path in theirs for path in change)):
            merged = await git.run("merge-tree", "--write-tree", target, sha, env=depot.env(), ok=(0, 1, 128))
            if merged.code == 0 and merged.text.split("\n")[0] == after:
                found.add(sha)
    return found


async def _graph(git: Git, depot: Depot, shas: Collection[str], target: str) -> dict[str, _Commit]:
    """Return the commits that `target` lacks, children first, then the commits of `target` that they build on."""
    asked = "".join(f"{line}\n" for line in (*shas, f"^{target}"))
    form = ("--no-commit-header", "--format=%m %H %T %P")
    done = await git.run(
        "rev-list", "--topo-order", "--boundary", *form, "--stdin", env=depot.env(), stdin=asked.encode()
    )
    graph = {}
    for line in done.text.splitlines():
        mark, sha, tree, *parents = line.split()
        graph[sha] = _Commit(tree=tree, parents=tuple(parents), in_target=mark == "-")
    return graph


def _bases(graph: Mapping[str, _Commit]) -> dict[str, frozenset[str]]:
    """Return for each commit the commits of the target that it builds on."""
    bases = {sha: frozenset((sha,)) for sha, commit in graph.items() if commit.in_target}
    for sha, commit in reversed(list(graph.items())):
        if not commit.in_target:
            bases[sha] = frozenset().union(*(bases.get(parent, ()) for parent in commit.parents))
    return bases


async def _changes(git: Git, depot: Depot, pairs: Sequence[tuple[str, str]]) -> list[Change]:
    """Return what differs between the trees of each pair."""
    asked = "".join(f"{old} {new}\n" for old, new in pairs)
    flags = ("-r", "-z", "--raw", "--full-index", "--no-renames")
    done = await git.run("diff-tree", "--stdin", *flags, env=depot.env(), stdin=asked.encode())
    found: list[Change] = []
    at = 0
    for _ in pairs:
        at = done.out.index(b"\n", at) + 1
        change: dict[bytes, bytes] = {}
        while done.out.startswith(b":", at):
            end = done.out.index(b"\0", at)
            meta, start, at = done.out[at:end], end + 1, done.out.index(b"\0", end + 1) + 1
            change[done.out[start : at - 1]] = b" ".join(meta.split()[1:4:2])
        found.append(change)
    return found


async def _same_patches(
    git: Git, depot: Depot, graph: Mapping[str, _Commit], shas: Sequence[str], target: str, base: str
) -> set[str]:
    """Return the commits whose changes are in `target` commit by commit, or all of them as one commit."""
    squashed = {
        sha: write_commit(
            depot,
            graph[sha].tree,
            parents=(base,),
            message="squashed",
            at=datetime.fromtimestamp(0, UTC),
        )
        for sha in shas
    }
    asked = "".join(f"{target}...{tip}\n" for tip in (*shas, *squashed.values()))
    flags = ("--cherry-mark", "--right-only", "--no-merges", "--no-commit-header", "--format=%m %H")
    done = await git.run("rev-list", *flags, "--stdin", env=depot.env(), stdin=asked.encode())
    same = {line[2:] for line in done.text.splitlines() if line.startswith("=")}
    # Picked one by one: its own change is there, and those of everything that it builds on. What a merge adds by
    # itself has no patch to find again, so no merge counts as picked.
    taken: dict[str, bool] = {}
    for sha, commit in reversed(list(graph.items())):
        taken[sha] = commit.in_target or (
            sha in same and all(taken.get(parent, False) for parent in commit.parents)
        )
    return {sha for sha in shas if squashed[sha] in same or taken[sha]}


DIFF_COMMAND: Final = "git diff-tree -r -p --binary --full-index --no-renames --no-color OLD NEW | sha256sum"
"""How anyone can compute the hash of a change again."""

_DIFF_FLAGS: Final = ("-r", "-p", "--binary", "--full-index", "--no-renames", "--no-color")
_DETAIL_LIMIT: Final = 8000
_CONFLICT_FILES: Final = 5
_FILE_LIMIT: Final = 4000
_REMEMBERED: Final = 1000

T = TypeVar("T")


class Merging:
    """Merges in memory: no work tree, no index, nothing to clean up."""

    def __init__(self, git: Git, depot: Depot) -> None:
        self._git = git
        self._depot = depot
        self._loose = Loose(depot)
        # What a commit id names never changes, so results are kept.
        self._trees: OrderedDict[str, str] = OrderedDict()
        self._parents: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self._tasks: OrderedDict[str, str] = OrderedDict()

    async def candidate(
        self, *, tip: str, attempt_sha: str, subject: str, trailers: Trailers, at: datetime
    ) -> Candidate:
        """Merge an attempt into the tip; raise `MergeConflict` with what collides."""
        merged = await self.merged(tip, attempt_sha)
        tip_tree = await self.tree_of(tip)
        sha = write_commit(
            self._depot,
            merged,
            parents=(tip, attempt_sha),
            message=message_of(subject, trailers),
            at=at,
            into=self._depot.source.objects,
        )
        _remember(self._trees, sha, merged)
        _remember(self._tasks, sha, trailers.task)
        _remember(self._parents, sha, (tip, attempt_sha))
        return Candidate(parent=tip, sha=sha, tree=merged, empty=merged == tip_tree)

    async def merged_trees(self, *, base: str, ours: str, theirs: str) -> str:
        """Merge two trees that both came from a third; raise `MergeConflict`."""
        # Git is told the third by commits that stand for them: naming it outright is younger than git 2.38.
        start = self._stands_for(base)
        return await self.merged(self._stands_for(ours, start), self._stands_for(theirs, start))

    def _stands_for(self, tree: str, *parents: str) -> str:
        return write_commit(
            self._depot,
            tree,
            parents=parents,
            message="One side of a merge: nothing names it",
            at=datetime.fromtimestamp(0, UTC),
            into=self._depot.source.objects,
        )

    async def merged(self, ours: str, theirs: str) -> str:
        """Return the tree of two commits together; raise `MergeConflict` with what collides."""
        done = await self._git.run(
            "merge-tree",
            "--write-tree",
            "-z",
            "--name-only",
            "--messages",
            ours,
            theirs,
            # Right into the user's repository, where the attempt is kept already: so landing only moves a ref.
            env=self._depot.env_into_source(),
            ok=(0, 1),
        )
        tree, *rest = done.out.split(b"\0")
        if done.code == 1:
            raise await self._conflict(tree.decode("ascii"), rest)
        return tree.decode("ascii")

    async def landed(
        self, branch_tip: str, *, since: str, task_id: str, among: Collection[str], reverts: Collection[str]
    ) -> str | None:
        """Find the newest first-parent commit since `since` that is one of these and whose trailer names this task.

        One that was taken out again, by one of `reverts`, does not count: what takes it out comes later, so it is met
        first.
        """
        while branch_tip != since and branch_tip in self._tasks and branch_tip in self._parents:
            # What was written here need not be asked.
            if self._tasks[branch_tip] == task_id and branch_tip in among:
                return branch_tip
            branch_tip = self._parents[branch_tip][0]
        taken_out: set[str] = set()
        for step in await read_line(self._git, self._depot, branch_tip, since=since):
            taken_out.update(step.takes_out if step.sha in reverts else ())
            if task_id in step.tasks and step.sha in among and step.sha not in taken_out:
                return step.sha
        return None

    async def is_ancestor(self, sha: str, of: str) -> bool:
        """Return whether `sha` is contained in `of`."""
        if sha in self._parents.get(of, ()):
            return True
        done = await self._git.run("merge-base", "--is-ancestor", sha, of, env=self._depot.env(), ok=(0, 1))
        return done.code == 0

    async def tree_of(self, sha: str) -> str:
        """Return the tree id of a commit."""
        if sha in self._trees:
            return self._trees[sha]
        with suppress(Packed):
            _remember(self._trees, sha, self._loose.tree_of(sha))
            return self._trees[sha]
        done = await self._git.run(
            "rev-parse", "--verify", "--quiet", f"{sha}^{{tree}}", env=self._depot.env(), ok=(0, 1)
        )
        if done.code != 0:
            raise CommitGone(f"the commit {sha} is not in {self._depot.source.git_dir}")
        _remember(self._trees, sha, done.text)
        return done.text

    async def diff_hashes(self, pairs: Sequence[tuple[str, str]]) -> list[str]:
        """Return the SHA-256 of each full binary diff, as `DIFF_COMMAND` computes it; one process for all."""
        heads = [f"{await self.tree_of(old)} {await self.tree_of(new)}\n".encode() for old, new in pairs]
        hashes = _Hashes(heads)
        if pairs:
            text = b"".join(heads)
            with tempfile.TemporaryFile() as asked:
                asked.write(text)
                asked.seek(0)
                await self._git.run(
                    "diff-tree", "--stdin", *_DIFF_FLAGS, env=self._depot.env(), stdin=asked, sink=hashes.feed
                )
        return hashes.finish()

    async def file_at(self, sha: str, path: str) -> str | None:
        """Return a file's text at a commit; None when there is no such file."""
        parts = PurePosixPath(path).parts
        if not parts or parts[0] == "/" or ".." in parts:
            return None
        inside = "/".join(parts)
        with suppress(Packed):
            content = self._loose.files(sha, (inside,)).get(inside)
            return None if content is None else content.decode("utf-8", "replace")
        name = f"{sha}:{inside}".encode("utf-8", "surrogateescape")
        done = await self._git.run("cat-file", "--batch", "-z", env=self._depot.env(), stdin=name + b"\0")
        header, _, content = done.out.partition(b"\n")
        words = header.split()
        if len(words) != 3 or words[1] != b"blob":
            return None
        return content[: int(words[2])].decode("utf-8", "replace")

    async def proven(self, sha: str, target: str) -> bool:
        """Return whether the work of `sha` is in `target`: as an ancestor, as a squash, or change by change."""
        return await self.is_ancestor(sha, target) or bool(await self.arrived((sha,), target))

    async def arrived(self, shas: Collection[str], target: str) -> set[str]:
        """Return those of many commits whose work is in `target`."""
        return await arrived(self._git, self._depot, shas, target)

    async def _conflict(self, tree: str, rest: Sequence[bytes]) -> MergeConflict:
        end = rest.index(b"") if b"" in rest else len(rest)
        paths = tuple(dict.fromkeys(rest[:end]))
        messages = [
            field.decode("utf-8", "replace").strip() for field in rest[end:] if field.startswith(b"CONFLICT")
        ]
        pieces = list(dict.fromkeys(messages))
        names = b"".join(f"{tree}:".encode() + path + b"\0" for path in paths[:_CONFLICT_FILES])
        done = await self._git.run("cat-file", "--batch", "-z", env=self._depot.env(), stdin=names)
        content = done.out
        for path in paths[:_CONFLICT_FILES]:
            header, _, content = content.partition(b"\n")
            words = header.rsplit(b" ", 2)
            if len(words) == 3 and words[1] == b"blob":
                size = int(words[2])
                text, content = content[:size], content[size + 1 :]
                pieces += [f"--- {display(path)}", *_hunks(text)]
        return MergeConflict(tuple(display(path) for path in paths), detail="\n".join(pieces)[:_DETAIL_LIMIT])


class _Hashes:
    """Hashes a stream of diffs one by one; each follows a line that names its two trees.

    No line of a diff can be taken for such a line: all that comes from a file has a mark or a space in front.
    """

    def __init__(self, heads: Sequence[bytes]) -> None:
        self._heads = list(heads)
        self._found: list[Any] = []
        self._rest = b"\n"

    def feed(self, piece: bytes) -> None:
        """Take in a piece of the stream."""
        self._rest += piece
        while len(self._found) < len(self._heads):
            mark = b"\n" + self._heads[len(self._found)]
            at = self._rest.find(mark)
            if at < 0:
                self._hash(len(self._rest) - len(mark))
                return
            self._hash(at + 1)
            self._rest = self._rest[len(mark) - 1 :]
            self._found.append(hashlib.sha256())
        self._hash(len(self._rest) - 1)

    def _hash(self, end: int) -> None:
        """Let go of what is surely not part of the next mark; the byte before it stays, to see a line begin."""
        if end > 1:
            if self._found:
                self._found[-1].update(self._rest[1:end])
            self._rest = self._rest[end - 1 :]

    def finish(self) -> list[str]:
        """Return the hashes."""
        if self._found:
            self._found[-1].update(self._rest[1:])
        if len(self._found) != len(self._heads):
            raise GitFailed("git diff-tree did not answer for every pair of trees")
        return [digest.hexdigest() for digest in self._found]


def _remember(known: OrderedDict[str, T], sha: str, fact: T) -> None:
    known[sha] = fact
    if len(known) > _REMEMBERED:
        known.popitem(last=False)


def _hunks(text: bytes) -> list[str]:
    """Return the parts of a file between conflict markers."""
    kept: list[str] = []
    inside = False
    size = 0
    for line in text.decode("utf-8", "replace").splitlines():
        inside = inside or line.startswith("<<<<<<<")
        if inside and size < _FILE_LIMIT:
            kept.append(line)
            size += len(line)
        if line.startswith(">>>>>>>"):
            inside = False
    return kept


# Building the commit that takes landings back out of a plan branch.


class TakingOut:
    """Reverts in memory: no work tree, no index. History only grows, so what was taken out stays reachable."""

    def __init__(self, depot: Depot, merging: Merging) -> None:
        self._depot = depot
        self._merging = merging

    async def without(
        self, tip: str, *, landings: Sequence[str], subject: str, plan_id: str, command_id: str, at: datetime
    ) -> Candidate:
        """Build one commit on the tip that takes landings back, the newest first; raise `MergeConflict`."""
        before = tree = await self._merging.tree_of(tip)
        for landing in landings:
            tree = await self._merging.merged_trees(
                base=await self._merging.tree_of(landing),
                ours=tree,
                theirs=await self._merging.tree_of(f"{landing}^1"),
            )
        lines = [f"Loopwright-Plan: {plan_id}", f"Loopwright-Command: {command_id}"]
        lines += [f"Loopwright-Reverts: {landing}" for landing in landings]
        sha = write_commit(
            self._depot,
            tree,
            parents=(tip,),
            message="\n".join((message_of(subject, None), "", *lines)),
            at=at,
            into=self._depot.source.objects,
        )
        return Candidate(parent=tip, sha=sha, tree=tree, empty=tree == before)
