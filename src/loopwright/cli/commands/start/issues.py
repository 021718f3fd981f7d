"""`run --issue`: the work on one issue of a forge on this terminal."""

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from loopwright.cli.shell.exits import ExitCode
from loopwright.cli.shell.output import console, print_json
from loopwright.core.values.wording import to_type
from loopwright.services.homes.session import Session
from loopwright.services.issues.running import Stage, claim, due
from loopwright.services.runs.preparation import RunRequest

_SAID: Final = {
    Stage.WAITING: "its pull request is open: nothing has come back yet",
    Stage.HELD: "something came back about its pull request, and you have to look at it",
    Stage.DROPPED: "its pull request was closed without a merge",
    Stage.CLOSED: "its pull request was merged, and it is closed",
}


class Run(Protocol):
    """Runs a plan; `after` is called with its id as soon as it was submitted."""

    def __call__(
        self, request: RunRequest, after: Callable[[Session, str], Awaitable[None]]
    ) -> Awaitable[int]:
        """Return the exit code."""


async def carry_out(n: int, asked: RunRequest, run: Run, *, as_json: bool) -> int:
    """Do what is due for an issue."""
    found = await due(n, asked)
    if found.is_work:
        return await run(found.request, lambda at, plan_id: claim(at, plan_id, found.tracker))
    code = ExitCode.VERIFIED if found.stage in (Stage.WAITING, Stage.CLOSED) else ExitCode.UNFINISHED
    if as_json:
        print_json({"issue": n, "stage": found.stage, "exit_code": int(code)})
        return code
    console().print(f"issue {n}: {_SAID[found.stage]}")
    if found.stage is Stage.WAITING:
        console().print(f"look again:  {to_type('run', issue=str(n))}")
    return code
