"""What landed on a branch and what it changed, told to people and agents: in plain diffs, cut short."""

from collections.abc import Sequence

from loopwright.adapters.git.depot import Depot
from loopwright.adapters.git.names import display
from loopwright.adapters.git.runner import Git
from loopwright.ports import Landed

_FORM = "%H%x1f%P%x1f%(trailers:key=Loopwright-Task,valueonly,unfold,separator=%x1e)%x00"


class History:
    """Reads a branch's own line."""

    def __init__(self, git: Git, depot: Depot) -> None:
        self._git = git
        self._depot = depot

    async def landings(self, branch_tip: str, *, since: str, most: int) -> tuple[Landed, ...]:
        """Return the newest commits on the first-parent line since `since`, the oldest of them first."""
        done = await self._git.run(
            "log",
            "--first-parent",
            f"--max-count={most}",
            f"--format=tformat:{_FORM}",
            branch_tip,
            f"^{since}",
            env=self._depot.env(),
        )
        found = []
        for entry in done.out.decode("utf-8", "replace").split("\0"):
            sha, _, rest = entry.strip("\n").partition("\x1f")
            parents, _, values = rest.partition("\x1f")
            if not sha or not parents:
                continue
            parent, named = parents.split(" ")[0], [value.strip() for value in values.split("\x1e")]
            paths = await self._paths(parent, sha)
            found.append(Landed(sha=sha, parent=parent, task_id=named[0] or None, paths=paths))
        return tuple(reversed(found))

    async def _paths(self, old: str, new: str) -> tuple[str, ...]:
        done = await self._git.run(
            "diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new, env=self._depot.env()
        )
        return tuple(display(path) for path in done.out.split(b"\0")[:-1])

    async def difference(self, old: str, new: str, *, paths: Sequence[str] = (), limit: int) -> str:
        """Return what changed between two commits as a diff, at these paths or at all; cut short at `limit`."""
        kept = bytearray()

        def keep(piece: bytes) -> None:
            # A character has four bytes at most: what is beyond is not looked at.
            kept.extend(piece[: max(0, 4 * limit + 4 - len(kept))])

        await self._git.run(
            "--literal-pathspecs",
            "diff-tree",
            *("-r", "-p", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv"),
            *(old, new, "--", *paths),
            env=self._depot.env(),
            sink=keep,
        )
        text = kept.decode("utf-8", "replace")
        return text if len(text) <= limit else text[:limit].rpartition("\n")[0] + "\n[cut short]\n"
