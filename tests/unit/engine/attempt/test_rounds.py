"""A loop over one prompt in its rows: what follows a round, after a sleep, and what is too late."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.doubles import Home, planned
from tests.wording_plugin import Wording

from loopwright.adapters.sources.prompt_md.prompt_md import PromptSource
from loopwright.core.rows.model import Attempt, Leg, Loop, Project, Run
from loopwright.core.values.errors import CommitGone, GitFailed
from loopwright.core.values.failures import Failure
from loopwright.core.values.policy import Policy, RoundsPolicy
from loopwright.core.values.states import AttemptState, LoopState, PlanState, TaskState
from loopwright.engine.attempt import rounds
from loopwright.engine.rows.added_tasks import add_task
from loopwright.engine.rows.legs import Rows
from loopwright.engine.views.round_views import sleeps_until
from loopwright.ports import PlannedWork


async def loop(**settings: Any) -> Home:
    home = await Home().launch()
    work = PlannedWork(title="A loop", tasks=(planned("prompt"),), sha256="a" * 64, rounds=True)
    home.submit(work=work, policy=Policy(rounds=RoundsPolicy(**settings)))
    return home


def begun(home: Home, key: str) -> Rows:
    return Rows(
        project=home.project(),
        loop=home.loop(),
        plan=home.plan(),
        task=home.task(key),
        attempt=home.attempt(key),
    )


async def is_over(home: Home, leg: Leg, key: str = "prompt") -> bool:
    return await rounds.is_over(home.world, begun(home, key), fence=leg.fence)


async def test_a_round_that_landed_is_followed_by_another_after_the_sleep_and_no_task_is_left_over() -> None:
    home = await loop(sleep=30, max=2)
    [leg] = await home.turn()
    home.hand.land(leg)
    await home.ended(leg)
    assert await home.turn() == []
    assert home.plan().completed_at is None
    sleeps = home.store.read_sync(lambda tx: sleeps_until(tx, home.plan()))
    assert sleeps == home.clock.now() + timedelta(seconds=30)
    home.clock.advance(30)
    [leg] = await home.turn()
    second = home.task("prompt-2")
    assert (second.origin, second.max_attempts, second.position) == ("round", 1, 1)
    home.hand.land(leg)
    await home.ended(leg)
    [verify] = await home.turn()
    assert verify.subject == home.plan().id
    [ended] = home.events("rounds_ended")
    assert (ended.payload["stopped"], len(home.all(type(second)))) == ("rounds", 2)
    assert len(home.events("plan_completed")) == 1
    await home.verify(verify)
    assert home.plan().status is PlanState.VERIFIED


async def test_a_round_that_would_begin_too_late_does_not_and_a_person_can_have_one_more() -> None:
    home = await loop(sleep=30, stop_after=60)
    [leg] = await home.turn()
    home.hand.fail(leg, Failure.GATE)
    await home.ended(leg)
    home.clock.advance(30)
    [leg] = await home.turn()
    assert not await is_over(home, leg)
    home.clock.advance(31)  # it was killed before the agent began, and goes on much later
    assert await is_over(home, leg)
    assert home.attempt("prompt").state is AttemptState.CANCELLED
    assert (home.task("prompt").status, home.plan().open_tasks) == (TaskState.ERROR, 0)
    assert home.events("task_failed")[-1].payload["stopped"] == "time"
    await home.ended(leg)
    await home.turn()
    assert home.loop().state is LoopState.FAILED
    await home.command("retry", home.task("prompt").id)
    [leg] = await home.turn()
    assert not await is_over(home, leg)


async def test_what_a_round_left_is_carried_on_unless_it_is_gone_and_trouble_is_not_taken_for_that() -> None:
    home = await loop()
    [leg] = await home.turn()
    home.hand.fail(leg, Failure.GATE)
    await home.ended(leg)
    [before] = [one for one in home.all(Attempt) if one.n == 1]
    home.store.transact_sync("left", lambda tx: tx.update(Attempt, before.id, tip_sha="1" * 40))
    await home.turn()
    repository, rows = home.world.repository(home.project()), begun(home, "prompt")
    assert await rounds.start_of(home.world, repository, rows) == "1" * 40

    def answers(trouble: GitFailed) -> None:
        async def tree_of(_sha: str) -> str:
            raise trouble

        repository.tree_of = tree_of  # type: ignore[method-assign]

    answers(CommitGone("it is not in there"))
    assert await rounds.start_of(home.world, repository, rows) == home.plan().base_sha
    answers(GitFailed("no space left on device"))
    with pytest.raises(GitFailed, match="no space"):
        await rounds.start_of(home.world, repository, rows)


async def test_the_prompt_is_read_anew_and_one_that_cannot_be_read_stays_as_it_was(tmp_path: Path) -> None:
    home = await loop()
    file = tmp_path / "PROMPT.md"
    home.store.transact_sync("here", lambda tx: tx.update(Project, home.project().id, path=str(tmp_path)))
    home.store.transact_sync("file", lambda tx: tx.update(Loop, home.loop().id, source_path=file.name))
    world = replace(home.world, source=lambda _kind: PromptSource())
    [leg] = await home.turn()
    for text in ("---\nacceptance: make test\n---\n# Another\n", "---\nodd: 1\n---\nNo.\n"):
        file.write_text(text)
        assert not await rounds.is_over(world, begun(home, "prompt"), fence=leg.fence)
    task = home.task("prompt")
    assert (task.title, task.description) == ("Another", "# Another")
    assert [one.command for one in task.acceptance] == ["make test"]
    [edited] = home.events("source_edited")
    assert edited.payload["changes"] == ["prompt: acceptance, description, title"]
    [unread] = home.events("source_unreadable")
    assert "odd" in unread.payload["reason"]


async def test_checks_in_a_prompt_that_an_agent_could_have_written_are_not_taken_over(
    tmp_path: Path, wording: Wording
) -> None:
    home = await loop()
    file = tmp_path / "PROMPT.md"
    home.store.transact_sync("here", lambda tx: tx.update(Project, home.project().id, path=str(tmp_path)))
    home.store.transact_sync("file", lambda tx: tx.update(Loop, home.loop().id, source_path=file.name))
    world = replace(home.world, source=lambda _kind: PromptSource())
    [leg] = await home.turn()
    before = home.task("prompt").acceptance
    home.store.transact_sync("ran", lambda tx: tx.update(Run, home.all(Run)[0].id, sandbox="none"))
    for check in ("test -e y", "test -e y", "test -e x"):
        file.write_text(f"---\nacceptance: {check}\n---\n# Another\n")
        assert not await rounds.is_over(world, begun(home, "prompt"), fence=leg.fence)
    assert (home.task("prompt").title, home.task("prompt").acceptance) == ("Another", before)
    first, second = home.events("checks_kept")
    wording(str(first.payload))
    assert "cancel" in second.payload["hint"]


async def test_what_the_machine_adds_to_a_loop_has_no_more_attempts_than_any_task() -> None:
    home = await loop(max=50)
    assert home.task("prompt").max_attempts == 50
    assert home.plan().policy.max_attempts == Policy().max_attempts
    plan = home.plan()
    home.store.transact_sync(
        "fix", lambda tx: add_task(tx, home.ids, plan, planned("fix-1"), position=1, origin="fix")
    )
    assert home.task("fix-1").max_attempts == Policy().max_attempts


async def test_a_task_that_is_added_to_a_plan_permits_nothing() -> None:
    home = await loop(max=50)
    plan, added = home.plan(), planned("fix-1", may_change=("tests/",))
    home.store.transact_sync("fix", lambda tx: add_task(tx, home.ids, plan, added, position=1, origin="fix"))
    assert home.task("fix-1").approved == ()
