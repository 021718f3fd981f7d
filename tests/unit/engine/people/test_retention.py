"""What agents of ended plans said goes when recordings take too much room: the oldest first, and not unsaid."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.doubles import Home, planned
from tests.wording_plugin import Wording

from loopwright.adapters.home.receipts import read_evidence
from loopwright.adapters.machine.disk import HomeDisk, forgotten_since
from loopwright.core.receipts.evidence import Recorded
from loopwright.core.rows.model import Attempt, Plan, Role, Run
from loopwright.core.values.states import RunState
from loopwright.engine.memory.worker_facts import Room
from loopwright.engine.people.clean import Retention
from loopwright.engine.rows.world import HomePaths
from loopwright.ports import Tx

PIECE = 64 * 1024


class Shelf:
    """A home with runs of two plans, one of them over, and their recordings on a real disk."""

    def __init__(self, home: Home, root: Path, keep: int | None) -> None:
        self.home, self.root = home, root
        room = Room(disk=HomeDisk(root), keep_recordings=keep)
        self.retention = Retention(replace(home.world, room=room, paths=HomePaths(root=root)))

    def record(self, plan: Plan, role: Role = Role.IMPLEMENTER, **more: Any) -> Path:
        """Write a run that ended, with what it said; each one ends later than those before."""
        self.home.clock.advance(60)
        now = self.home.clock.now()
        facts: dict[str, Any] = {
            "host_id": self.home.world.me.host_id,
            "created_at": now,
            "started_at": now,
            "ended_at": now,
        }
        row = Run(
            id=self.home.ids("run"), plan_id=plan.id, role=role, state=RunState.COMPLETE, **{**facts, **more}
        )
        self.home.store.transact_sync("run", lambda tx: tx.insert(row))
        folder = self.root / "runs" / row.id
        (folder / "output").mkdir(parents=True)
        (folder / "output" / f"{0:020}").write_bytes(b"x" * PIECE)
        (folder / "prompt.md").write_text("do it")
        return folder

    async def end(self) -> None:
        """Let the plan be over for good, with nothing of it left to tidy."""
        plan = self.home.plan()
        await self.home.command("cancel", plan.id)

        def tidied(tx: Tx) -> None:
            for attempt in tx.find(Attempt, plan_id=plan.id):
                tx.update(Attempt, attempt.id, cleaned_at=tx.now())

        self.home.store.transact_sync("tidied", tidied)


async def _shelf(root: Path, keep: int | None) -> Shelf:
    home = await Home().launch()
    home.submit(planned("a"))
    return Shelf(home, root, keep)


def _kept(*folders: Path) -> list[bool]:
    return [(folder / "output").exists() for folder in folders]


async def test_the_oldest_recordings_of_ended_plans_go_until_the_rest_fits(
    tmp_path: Path, wording: Wording
) -> None:
    shelf = await _shelf(tmp_path, 4 * PIECE)
    plan = shelf.home.plan()
    elsewhere = shelf.record(plan, host_id="another")
    gate = shelf.record(plan, Role.GATE)
    first, second, third = (shelf.record(plan) for _ in range(3))
    await shelf.retention.look()
    assert all(_kept(first, second, third, gate, elsewhere)), "the plan is not over"

    await shelf.end()
    shelf.home.clock.advance(3000)
    await shelf.retention.look()
    assert _kept(first) == [True], "it is not measured all the time"
    shelf.home.clock.advance(1000)
    await shelf.retention.look()
    assert _kept(first, second, third, gate, elsewhere) == [False, False, True, True, True]
    assert (first / "prompt.md").exists()
    (event,) = [one for one in shelf.home.events() if one.type == "recordings_removed"]
    assert event.payload["runs"] == [first.name, second.name]
    assert event.plan is None, "the plan's own chain of events stays as its receipt has it"

    wanted = Recorded(key=f"{first.name}/output", what="what the implementer said", sha256="0" * 64)
    day = forgotten_since(first)
    assert day == shelf.home.clock.now().date().isoformat()
    wording(read_evidence(tmp_path / "runs", wanted))
    (third / "output" / f"{0:020}").unlink()
    (third / "output").rmdir()
    wording(read_evidence(tmp_path / "runs", replace(wanted, key=f"{third.name}/output")))


async def test_nothing_goes_while_it_fits_or_when_it_is_switched_off(tmp_path: Path) -> None:
    for n, keep in enumerate((None, 100 * PIECE)):
        shelf = await _shelf(tmp_path / str(n), keep)
        folder = shelf.record(shelf.home.plan())
        await shelf.end()
        await shelf.retention.look()
        assert _kept(folder) == [True]
