"""Which projects a worker starts work for, with a lock and with leases."""

from dataclasses import replace
from pathlib import Path

from tests.doubles import Home, planned

from loopwright.adapters.home.membership import ALL, LockedMembership
from loopwright.core.rows.model import Attempt, Project, Worker
from loopwright.core.values.states import AttemptState


async def _two_projects(home: Home) -> tuple[str, str]:
    """Submit a plan of one task each in two projects; return their ids."""
    for name in ("mine", "theirs"):
        home.submit(planned(name), root=Path("/somewhere") / name)
    mine, theirs = (one.id for one in sorted(home.all(Project), key=lambda one: one.path))
    home.world = replace(home.world, me=replace(home.world.me, project_id=mine))
    return mine, theirs


def _begun(home: Home) -> list[str]:
    return [key for key in ("mine", "theirs") if home.all(Attempt, task_id=home.task(key).id)]


async def test_the_holder_of_a_home_starts_its_own_project_and_those_that_a_live_process_attends(
    tmp_path: Path,
) -> None:
    home = await Home().launch()
    holder, other = LockedMembership(tmp_path), LockedMembership(tmp_path)
    home.world = replace(home.world, membership=holder)
    mine, theirs = await _two_projects(home)
    assert holder.acquire({"serves": mine})
    assert len(await home.turn()) == 1
    assert _begun(home) == ["mine"]
    assert [other.serves(one) for one in (mine, theirs)] == [True, False]
    other.attend(theirs)
    assert holder.serves(theirs)
    assert len(await home.turn()) == 1
    assert _begun(home) == ["mine", "theirs"]
    other.release()
    assert not holder.attended(theirs)
    assert not list((tmp_path / "attended").iterdir()), "nothing is left of who is gone"
    other.attend(ALL)
    assert holder.attended(theirs), "a worker stands by: its work is done as well"
    other.release()
    holder.release()
    assert holder.acquire({"serves": ALL})
    assert other.serves(theirs)


async def test_what_a_dead_worker_left_unstarted_elsewhere_is_left_and_takes_no_slot() -> None:
    home = await Home(slots=1).launch()
    home.submit(planned("theirs"), root=Path("/somewhere/theirs"))
    [leg] = await home.turn()
    await home.ended(leg)
    assert home.attempt("theirs").state is AttemptState.PREPARING
    home.submit(planned("mine"), root=Path("/somewhere/mine"))
    [mine] = [one for one in home.all(Project) if one.path.endswith("mine")]
    home.world = replace(home.world, me=replace(home.world.me, project_id=mine.id))
    assert await home.reconcile() == []
    [started] = await home.turn()
    assert started.subject == home.attempt("mine").id
    home.world = replace(home.world, me=replace(home.world.me, project_id=None))
    [again] = await home.reconcile()
    assert again.subject == home.attempt("theirs").id


async def test_on_a_shared_home_the_controller_starts_projects_that_a_live_worker_serves() -> None:
    home = await Home(exclusive=False).launch()
    mine, theirs = await _two_projects(home)
    await home.lease().join()
    [me] = home.all(Worker)
    home.store.transact_sync("own", lambda tx: tx.update(Worker, me.id, project_id=mine))
    await home.turn()
    assert _begun(home) == ["mine"]
    lease = home.lease()
    await lease.join()
    home.store.transact_sync("own", lambda tx: tx.update(Worker, lease.worker.id, project_id=theirs))
    await home.turn()
    assert _begun(home) == ["mine", "theirs"]
