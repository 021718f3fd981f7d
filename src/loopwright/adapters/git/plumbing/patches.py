"""Reading a change as text, from git's objects alone: no configuration and no attribute decides how it looks."""

import tempfile
from typing import Final

from loopwright.adapters.git.plumbing.private_git import Depot
from loopwright.adapters.git.plumbing.runner import Git
from loopwright.core.values.patches import Patch, read_patch

_FLAGS: Final = (
    *("-r", "-p", "--full-index", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv"),
    *("-U3", "--inter-hunk-context=0", "--diff-algorithm=myers", "--src-prefix=a/", "--dst-prefix=b/"),
)
_IN_MEMORY: Final = 8 * 1024 * 1024


async def patch(git: Git, depot: Depot, old: str, new: str) -> Patch:
    """Return what differs between two commits."""
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as printed:
        await git.run("diff-tree", *_FLAGS, old, new, env=depot.env(), sink=printed.write)
        printed.seek(0)
        return read_patch(printed)
