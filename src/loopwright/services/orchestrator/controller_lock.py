"""One controller for a repository: two would begin the same rounds twice."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from loopwright.adapters.git.branches.round_branches import RoundBranches
from loopwright.core.orchestrator.manifest import FOLDER
from loopwright.core.values.errors import Held
from loopwright.services.homes.context import called_as


@asynccontextmanager
async def controlling(branches: RoundBranches) -> AsyncIterator[None]:
    """Be the controller of a repository, or refuse while another process is; a killed process does not count."""
    lock = await branches.lock()
    if not lock.acquire({"pid": os.getpid(), "command": called_as()}):
        other = lock.holder() or {}
        pid = other.get("pid", "unknown")
        raise Held(
            f"process {pid} is the controller of {FOLDER}/ already: {other.get('command', 'it just began')}",
            code="orchestrator_held",
            hint=f"let it finish, or end it first: `kill -INT {pid}`",
        )
    try:
        yield
    finally:
        lock.release()
