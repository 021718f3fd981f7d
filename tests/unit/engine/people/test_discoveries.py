"""Discovered work: written down once, and what follows from a person's decision about it."""

from dataclasses import replace

import pytest
from tests.doubles import PASSED, Home, planned, recount
from tests.refusals import raises_code
from tests.wording_plugin import Wording

from loopwright.core.replies.discoveries import Discovery, Noticed
from loopwright.core.rows.model import CommandState, Plan, Run
from loopwright.core.values.states import DiscoveryState, LoopState, PlanState, TaskState
from loopwright.engine.intake.progress import progress_of
from loopwright.engine.people import commands, discoveries
from loopwright.engine.views.views import count_open
from loopwright.ports import Discovered, Mark

CLOCK = Noticed(title="Mend the clock", reason="It is late.", recommendation="current")
NOISE = Noticed(title="Less noise", recommendation="new")


async def at_work(*noticed: Noticed) -> Home:
    """Return a home in which the agent of task `a` came upon this, and said it twice."""
    home = await Home().launch()
    home.submit(planned("a"), planned("b"))
    await home.turn()
    run = home.get(Run, home.attempt("a").run_id)
    for _ in range(2):
        home.store.transact_sync("end", lambda tx: discoveries.note(tx, home.plan(), run, noticed))
    return home


def found(home: Home, title: str) -> Discovery:
    [one] = home.all(Discovery, title=title)
    return one


def discovered(home: Home) -> tuple[Discovered, ...]:
    return home.store.read_sync(lambda tx: progress_of(tx, home.plan())).discovered


@pytest.mark.capability("C040")
async def test_what_a_task_comes_upon_is_written_down_once_and_told_to_the_source() -> None:
    home = await at_work(CLOCK, NOISE, replace(CLOCK, title="mend THE clock", reason="again"))
    assert len(home.all(Discovery)) == 2
    assert [event.payload["title"] for event in home.events("work_discovered")] == [CLOCK.title, NOISE.title]
    one = found(home, CLOCK.title)
    assert (one.task_id, one.attempt_id) == (home.task("a").id, home.attempt("a").id)
    assert (one.reason, one.recommendation, one.state) == ("It is late.", "current", DiscoveryState.OPEN)
    assert set(discovered(home)) == {
        Discovered(title=CLOCK.title, reason="It is late.", recommendation="current", by="a"),
        Discovered(title=NOISE.title, recommendation="new", by="a"),
    }


@pytest.mark.capability("C040")
async def test_accepted_work_becomes_a_task_of_the_plan_which_is_not_done_without_it(
    wording: Wording,
) -> None:
    home = await at_work(CLOCK)
    one = found(home, CLOCK.title)
    answer = await home.command("accept_discovered", one.id)
    wording(answer.result)
    task = home.task("mend-the-clock")
    assert (task.title, task.origin, task.status) == (CLOCK.title, "discovered", TaskState.QUEUED)
    assert task.description == "It is late.\n\nThe agent of task a found it and left it to others."
    assert home.plan().open_tasks == 3
    one = found(home, CLOCK.title)
    assert (one.state, one.became, one.decided_by) == (DiscoveryState.ACCEPTED, "mend-the-clock", "me")
    assert one.decided_at is not None
    [told] = discovered(home)
    assert (told.task, told.mark) == ("mend-the-clock", Mark.OPEN)
    [event] = home.events("discovery_accepted")
    assert (event.task, event.actor) == (task.id, "me")
    again = await home.command("accept_discovered", one.id)
    assert again.state is CommandState.REFUSED
    told = commands.refusal(again)
    assert (told.code, told.hint) == (
        "discovery_decided",
        "`loopwright status mend-the-clock` shows its status",
    )
    for name, (counted, kept) in recount(home).items():
        assert counted == kept, name


async def test_work_for_a_plan_of_its_own_leaves_the_plan_as_it_is(wording: Wording) -> None:
    home = await at_work(NOISE)
    one = found(home, NOISE.title)
    refused = await home.command("accept_discovered", one.id)
    assert (refused.state, home.plan().open_tasks) == (CommandState.REFUSED, 2), "nobody wrote a file yet"
    answer = await home.command("accept_discovered", one.id, file="plans/less-noise.yaml")
    wording(answer.result)
    assert home.plan().open_tasks == 2
    assert [(told.task, told.mark) for told in discovered(home)] == [("", Mark.OPEN)]


async def test_dismissed_work_is_told_as_not_wanted_and_can_still_be_accepted() -> None:
    home = await at_work(CLOCK)
    one = found(home, CLOCK.title)
    assert (await home.command("dismiss_discovered", one.id)).result == "dismissed"
    assert [told.mark for told in discovered(home)] == [Mark.SKIPPED]
    assert (await home.command("dismiss_discovered", one.id)).state is CommandState.REFUSED
    assert (await home.command("accept_discovered", one.id)).state is CommandState.APPLIED
    assert home.told("discovery_dismissed", "discovery_accepted") == [
        "discovery_dismissed",
        "discovery_accepted",
    ]


async def test_a_plan_that_has_come_to_its_end_takes_no_more_but_says_what_to_do() -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    [leg] = await home.turn()
    run = home.get(Run, home.attempt("a").run_id)
    home.store.transact_sync("end", lambda tx: discoveries.note(tx, home.plan(), run, (CLOCK,)))
    home.hand.land(leg)
    [leg] = await home.turn()
    one = found(home, CLOCK.title)
    assert "being verified" in (await home.command("accept_discovered", one.id)).result
    await home.verify(leg, PASSED)
    assert home.plan().status is PlanState.VERIFIED
    answer = await home.command("accept_discovered", one.id)
    assert answer.state is CommandState.REFUSED
    assert f"discovered accept {one.id[:14]} --as new" in answer.result
    assert found(home, CLOCK.title).state is DiscoveryState.OPEN


async def test_a_failed_plan_goes_on_with_accepted_work() -> None:
    home = await at_work(CLOCK)
    for key in ("a", "b"):
        await home.command("cancel", home.task(key).id)
    await home.turn()
    plan: Plan = home.plan()
    assert home.loop().state is LoopState.FAILED or plan.status is PlanState.FAILED
    await home.command("accept_discovered", found(home, CLOCK.title).id)
    assert (home.plan().status, home.loop().state) == (PlanState.RUNNING, LoopState.RUNNING)
    assert home.task("mend-the-clock").status is TaskState.QUEUED


async def test_it_is_found_by_the_beginning_of_its_id() -> None:
    home = await at_work(CLOCK, NOISE)
    one = found(home, CLOCK.title)
    for text in (one.id, one.id[:14], one.id.partition("_")[2][:8]):
        seen = home.store.read_sync(lambda tx, text=text: discoveries.find_discovered(tx, text))
        assert seen.id == one.id
    with raises_code("discovery_not_found"):
        home.store.read_sync(lambda tx: discoveries.find_discovered(tx, "nothing"))


async def test_what_several_tasks_of_a_plan_found_is_listed_counted_and_decided_once(
    wording: Wording,
) -> None:
    home = await at_work(CLOCK)
    run = home.get(Run, home.attempt("b").run_id)
    again = replace(CLOCK, title="mend  the CLOCK")
    home.store.transact_sync("end", lambda tx: discoveries.note(tx, home.plan(), run, (again, NOISE)))
    listed = home.store.read_sync(discoveries.list_discovered)
    assert [(one.title, set(one.tasks)) for one in listed] == [
        (CLOCK.title, {"a", "b"}),
        (NOISE.title, {"b"}),
    ]
    assert home.store.read_sync(lambda tx: count_open(tx, home.plan().id)) == 2
    answer = await home.command("accept_discovered", found(home, again.title).id)
    wording(answer.result)
    assert {(one.state, one.became) for one in home.all(Discovery) if one.title != NOISE.title} == {
        (DiscoveryState.ACCEPTED, "mend-the-clock")
    }
    assert home.store.read_sync(lambda tx: count_open(tx, home.plan().id)) == 1


async def test_only_a_plan_that_goes_on_is_said_to_take_it_in() -> None:
    home = await at_work(CLOCK)

    def fits() -> list[bool]:
        return [one.fits for one in home.store.read_sync(discoveries.list_discovered)]

    assert fits() == [True]
    await home.command("cancel", home.plan().id)
    assert fits() == [False]


@pytest.mark.capability("C040")
async def test_who_thinks_again_about_dismissed_work_decides_for_those_who_found_it_since() -> None:
    home = await at_work(CLOCK)
    first = found(home, CLOCK.title)
    await home.command("dismiss_discovered", first.id)
    other = home.get(Run, home.attempt("b").run_id)
    again = replace(CLOCK, title="mend the CLOCK")
    home.store.transact_sync("end", lambda tx: discoveries.note(tx, home.plan(), other, (again,)))
    await home.command("accept_discovered", first.id)
    assert {one.state for one in home.all(Discovery)} == {DiscoveryState.ACCEPTED}
    assert {one.became for one in home.all(Discovery)} == {"mend-the-clock"}


@pytest.mark.capability("C040", "C076")
async def test_work_that_one_loop_found_becomes_a_task_of_another_loop_of_the_project() -> None:
    home = await at_work(CLOCK)
    first = home.plan()
    home.submit(planned("other"), source_path="other.yaml")
    second = next(one for one in home.all(Plan) if one.id != first.id)
    done = await home.command(
        "accept_discovered", found(home, CLOCK.title).id, **{"as": "current", "plan": second.id}
    )
    assert done.state is CommandState.APPLIED, done.result
    task = home.task("mend-the-clock")
    assert (task.plan_id, task.origin) == (second.id, "discovered")
    assert (found(home, CLOCK.title).state, found(home, CLOCK.title).became) == (
        DiscoveryState.ACCEPTED,
        task.key,
    )


async def test_a_plan_of_another_project_gets_no_work_that_was_found_here() -> None:
    home = await at_work(CLOCK)
    done = await home.command(
        "accept_discovered", found(home, CLOCK.title).id, **{"as": "current", "plan": "plan_elsewhere"}
    )
    assert done.state is CommandState.REFUSED
    assert found(home, CLOCK.title).state is DiscoveryState.OPEN
