"""Prove that work has arrived in a branch: for many commits at once, with a few git commands for all of them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from loopwright.adapters.git.plumbing.commits import write_commit
from loopwright.adapters.git.plumbing.private_git import Depot
from loopwright.adapters.git.plumbing.runner import Git

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
