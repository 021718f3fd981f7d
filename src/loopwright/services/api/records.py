"""Records of what was done: receipts, and evidence that finished work is finished."""

from collections.abc import Sequence
from pathlib import Path

from loopwright.services import inspection
from loopwright.services.api.caller import Noun
from loopwright.services.audit import coverage as evidence
from loopwright.services.audit import finished_items
from loopwright.services.audit.coverage import Coverage
from loopwright.services.inspection import KeptPacket
from loopwright.services.receipts import receipts
from loopwright.services.receipts.receipts import Exported, Replay, Replayed, Shown, Verified


class Receipts(Noun):
    """The records of plans."""

    async def show(self, plan: str | None = None) -> Shown:
        """Return the receipt of a plan as it is now; None for the newest of this repository."""
        return await self._caller.call(receipts.show, plan)

    async def export(self, folder: Path | str, plan: str | None = None) -> Exported:
        """Write a receipt into a new folder, with the script that checks it and the outputs of the gates."""
        return await self._caller.call(receipts.export_to, self._caller.path(folder), plan)

    async def verify(self, receipt: str | None = None, *, repository: Path | str | None = None) -> Verified:
        """Compute again what a receipt says, of a plan or from a file, and name every difference."""
        where = None if repository is None else self._caller.path(repository)
        return await self._caller.call(receipts.verify, receipt, repository=where)

    async def prepare_replay(
        self, receipt: str | None = None, *, tasks: Sequence[str] = (), repository: Path | str | None = None
    ) -> Replay:
        """Return which gates of a receipt can run again. Look at its `commands` before you run them."""
        where = None if repository is None else self._caller.path(repository)
        return await self._caller.look(receipts.prepare_replay, receipt, tasks=tasks, repository=where)

    async def replay(self, prepared: Replay) -> tuple[Replayed, ...]:
        """Run the gates again in a clean workspace, and return each verdict beside the recorded one."""
        return await self._caller.look(lambda: tuple(receipts.run_replay(prepared)))


class Audit(Noun):
    """Evidence for finished work."""

    async def check(
        self, path: Path | str, *, source: str | None = None, run_checks: bool = True
    ) -> finished_items.Audit:
        """Return for each finished item of a source whether its commit is there and its checks pass now."""
        where = self._caller.path(path)
        return await self._caller.call(finished_items.audit, where, source=source, run_checks=run_checks)

    async def coverage(self, target: str, *, source: str | None = None) -> Coverage:
        """Return the evidence for each criterion of the work in a file or folder, or of a plan by its name."""
        return await self._caller.look(evidence.coverage, target, source=source)

    async def inspect(self, target: str | None = None, *, goal: str = "") -> KeptPacket:
        """Collect a packet about a run, or about this project and a goal, and store it."""
        return await self._caller.call(inspection.inspect, target, goal=goal)
