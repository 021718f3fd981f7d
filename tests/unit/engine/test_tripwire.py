"""What keeps the work of other plans is watched too, as long as nobody may let go of it."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from tests.doubles import Home, OneBranch, planned

from loopwright.core.containment import Containment
from loopwright.core.model import Loop, Plan, Project, Run, Task
from loopwright.engine.agent_runs import Rows
from loopwright.engine.tripwire import look_again, watch
from loopwright.ports import RunSpec, Tripwire


class Pinned(OneBranch):
    """A repository with one pin for each plan, which an agent may take away."""

    def __init__(self) -> None:
        super().__init__()
        self.gone: set[str] = set()

    async def tripwire(self, *plan_ids: str) -> Tripwire:
        pins = {f"refs/pins/{one}": "1" * 40 for one in plan_ids if one not in self.gone}
        return Tripwire(head="", refs={}, status={}, config={}, pins=pins, plans=plan_ids)

    def stray(self, before: Tripwire, after: Tripwire) -> tuple[str, ...]:
        return ()

    async def repin(
        self, plan_ids: Collection[str], before: Tripwire, after: Tripwire, *, near: str
    ) -> Mapping[str, str]:
        back = [one for one in plan_ids if f"refs/pins/{one}" in before.pins.keys() - after.pins.keys()]
        self.gone -= set(back)
        return {f"refs/pins/{one}": "1" * 40 for one in back}

    async def stray_patch(self, dest: Path, before: Tripwire, after: Tripwire) -> bool:
        return False


async def test_what_keeps_the_work_of_another_plan_is_put_back_unless_that_is_over() -> None:
    repository = Pinned()
    home = await Home(repository=repository).launch()
    mine = home.submit(planned("a"))
    other, over = (
        home.submit(planned("b"), source_path=f"{name}.yaml", sha256=name * 64) for name in ("b", "c")
    )
    elsewhere = home.submit(planned("d"), root=Path("/somewhere/else"), sha256="d" * 64)
    await home.turn()
    task = home.all(Task, plan_id=mine.id)[0]
    run = replace(home.all(Run, task_id=task.id)[0], sandbox=Containment.BUBBLEWRAP.value)
    spec = RunSpec(run_id=run.id, directory=Path("/nowhere"), argv=("true",), cwd=Path("/nowhere"), env={})
    before, _ = await watch(home.world, repository, run, spec)  # type: ignore[arg-type]
    assert set(before.plans) == {mine.id, other.id, over.id}
    assert elsewhere.id not in before.plans

    # One of them ended meanwhile, and a person let go of it.
    await home.command("cancel", over.id)
    repository.gone = {mine.id, other.id, over.id}
    rows = Rows(
        project=home.get(Project, mine.project_id),
        loop=home.get(Loop, mine.loop_id),
        plan=home.get(Plan, mine.id),
        task=task,
        attempt=home.attempt("a"),
    )
    why = await look_again(home.world, repository, before, rows, run, again=False)  # type: ignore[arg-type]
    assert why == "", "its sandbox kept it out"
    (event,) = home.events("checkout_changed")
    told = [f"refs/pins/{one} was deleted; it is at {'1' * 40} again" for one in sorted([mine.id, other.id])]
    assert event.payload["changes"] == told
    assert repository.gone == {over.id}
