"""A workspace goes only when everything in it is kept elsewhere."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.doubles import Home, OneBranch, planned

from loopwright.adapters.agents import asking
from loopwright.adapters.agents.asked import forget_noted
from loopwright.core.policy.retry import Failed
from loopwright.core.rows.model import Attempt, Leg, Run
from loopwright.core.values.errors import GitFailed
from loopwright.core.values.failures import Failure
from loopwright.core.values.states import AttemptState
from loopwright.engine.rows.failing import fail_attempt
from loopwright.engine.worker.reconcile import tidy_leftovers
from loopwright.ports import Snapshot


class Saving(OneBranch):
    """A repository that remembers what was saved and what was removed."""

    def __init__(self) -> None:
        super().__init__()
        self.saved: list[Path] = []
        self.removed: list[Path] = []
        self.full = False

    def has_workspace(self, path: Path) -> bool:
        return path.exists()

    async def snapshot(self, path: Path, **_facts: Any) -> Snapshot:
        if self.full:
            raise GitFailed("no space left on device")
        self.saved.append(path)
        return Snapshot(sha="5" * 40, tree="6" * 40, changed=("later.txt",))

    async def remove_workspace(self, path: Path) -> None:
        self.removed.append(path)


async def _broken(tmp_path: Path, *, state: AttemptState = AttemptState.WORKING) -> tuple[Home, Leg, Saving]:
    """Return a home with an attempt that had been saved once, worked on, and then broke."""
    repository = Saving()
    home = await Home(repository=repository).launch()
    home.submit(planned("a"))
    [leg] = await home.turn()
    home.hand.until(leg, state)
    if state is AttemptState.WORKING:
        home.hand.go_on(leg)

    def over(tx: Any) -> None:
        tx.update(Attempt, leg.subject, workspace=str(tmp_path), base_sha="2" * 40, host_id="host-a")
        attempt = tx.get(Attempt, leg.subject)
        if state is AttemptState.WORKING:
            attempt = tx.update(Attempt, leg.subject, tip_sha="1" * 40)
        failed = Failed(failure=Failure.CRASH, detail="internal error")
        fail_attempt(tx, home.ids, attempt, failed, fence=leg.fence, counts=False, chance=0.5)

    home.store.transact_sync("over", over)
    return home, leg, repository


async def test_what_was_done_after_an_earlier_snapshot_is_saved_before_the_workspace_goes(
    tmp_path: Path,
) -> None:
    home, leg, repository = await _broken(tmp_path)
    await tidy_leftovers(home.world, lambda _: False)
    assert repository.saved == [tmp_path]
    assert repository.removed == [tmp_path]
    assert home.get(Attempt, leg.subject).tip_sha == "5" * 40


async def test_a_workspace_that_cannot_be_saved_stays(tmp_path: Path) -> None:
    home, leg, repository = await _broken(tmp_path)
    repository.full = True
    await tidy_leftovers(home.world, lambda _: False)
    assert repository.removed == []
    assert home.told("attempt_quarantined") == ["attempt_quarantined"]
    assert home.get(Attempt, leg.subject).tip_sha == "1" * 40
    assert home.get(Attempt, leg.subject).quarantined


async def test_where_no_agent_ever_ran_there_is_nothing_to_save(tmp_path: Path) -> None:
    home, _, repository = await _broken(tmp_path, state=AttemptState.PREPARING)
    await tidy_leftovers(home.world, lambda _: False)
    assert (repository.saved, repository.removed) == ([], [tmp_path])


async def test_an_attempt_whose_leg_is_still_busy_is_left_to_it(tmp_path: Path) -> None:
    home, leg, repository = await _broken(tmp_path)
    await tidy_leftovers(home.world, lambda subject: subject == leg.subject)
    assert (repository.saved, repository.removed) == ([], [])
    assert home.get(Attempt, leg.subject).cleaned_at is None


async def test_what_an_agent_noted_goes_where_no_leg_came_to_read_it(tmp_path: Path) -> None:
    home, leg, _ = await _broken(tmp_path / "workspace")
    home.world = replace(
        home.world, forget_noted=forget_noted, paths=replace(home.world.paths, root=tmp_path)
    )
    (run,) = home.all(Run, attempt_id=leg.subject)
    folder = home.world.paths.run(run.id)
    folder.mkdir(parents=True)
    for name in (asking.FILE, asking.DISCOVERED_FILE, "exit.json"):
        (folder / name).write_text("my key is key-0123456789")
    await tidy_leftovers(home.world, lambda subject: subject == leg.subject)
    assert (folder / asking.FILE).exists(), "its leg may still read it"
    await tidy_leftovers(home.world, lambda _: False)
    assert [one.name for one in folder.iterdir()] == ["exit.json"]
