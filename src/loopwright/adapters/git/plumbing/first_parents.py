"""A branch's own line: its first parents, one commit after the other, with what their trailers say."""

from typing import Final

from loopwright.adapters.git.plumbing.private_git import Depot
from loopwright.adapters.git.plumbing.runner import Git
from loopwright.core.policy.finishing import BOOKS_TRAILER, RECEIPT_TRAILER
from loopwright.ports import Step

_TRAILERS: Final = (
    *("Loopwright-Task", "Loopwright-Command", "Loopwright-Reverts"),
    *(RECEIPT_TRAILER, BOOKS_TRAILER, "Loopwright-Attempt", "Loopwright-Run"),
)
_FORM: Final = "%x1f".join(
    (
        *("%H", "%T", "%P", "%s"),
        *(f"%(trailers:key={key},valueonly,unfold,separator=%x1e)" for key in _TRAILERS),
    )
)


async def read_line(
    git: Git, depot: Depot, tip: str, *, since: str, most: int | None = None
) -> tuple[Step, ...]:
    """Return the commits of the first-parent line after `since`, the newest first, at most so many."""
    if tip == since:
        return ()
    limit = () if most is None else (f"--max-count={most}",)
    done = await git.run(
        "log", "--first-parent", *limit, f"--format=tformat:{_FORM}%x00", tip, f"^{since}", env=depot.env()
    )
    entries = done.out.decode("utf-8", "replace").split("\0")
    return tuple(_step(entry.strip("\n")) for entry in entries if entry.strip("\n"))


def _step(entry: str) -> Step:
    sha, tree, parents, subject, tasks, command, reverts, receipt, books, attempt, run = entry.split("\x1f")
    return Step(
        sha=sha,
        tree=tree,
        parent=parents.partition(" ")[0],
        subject=subject,
        tasks=_values(tasks),
        command=next(iter(_values(command)), ""),
        takes_out=_values(reverts),
        receipt=",".join(_values(receipt)),
        books=bool(_values(books)),
        attempt=next(iter(_values(attempt)), ""),
        run=next(iter(_values(run)), ""),
    )


def _values(text: str) -> tuple[str, ...]:
    return tuple(value.strip() for value in text.split("\x1e") if value.strip())
