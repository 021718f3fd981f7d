"""What a source is told of its plan, made from rows."""

from functools import partial

from tests.cases import each_case
from tests.doubles import Home, planned
from tests.wording_plugin import Wording

from loopwright.core.rows.model import Outcome, Run
from loopwright.core.values.failures import Failure
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import AttemptState, TaskState
from loopwright.engine.intake.progress import first_line, progress_of
from loopwright.engine.rows.moves import complete_task, move_attempt
from loopwright.engine.rows.plan_states_text import source_reason
from loopwright.ports import Mark, Progress, Setback, Tx


def told(home: Home) -> Progress:
    return home.store.read_sync(lambda tx: progress_of(tx, home.plan()))


async def test_a_plan_rests_when_all_that_is_left_waits_for_a_person_or_for_what_does() -> None:
    home = await Home().launch()
    stuck = planned("stuck", mark=Mark.BLOCKED, reason="no key")
    home.submit(stuck, planned("after", "stuck"), planned("free"))
    (leg,) = await home.turn()
    assert (told(home).rests, home.task("after").status) == (False, TaskState.QUEUED), "one is at work"
    assert told(home).items["stuck"].reason == "no key", "its own words come back to it"
    home.hand.land(leg)
    now = told(home)
    assert (now.rests, now.items["free"].subject) == (True, "feat(free): Do free")
    await home.command("retry", home.task("stuck").id)
    assert not told(home).rests


@each_case(
    ("said", "line"),
    [
        ("", ""),
        ("Added the form.\nAnd more.", "Added the form."),
        ("## Summary\n\n- **Added** the form", "Added the form"),
        ("```sh\n", ""),
        ("All done!", ""),
        (f"It is {'a' * 300}", f"It is {'a' * 193}…"),
    ],
)
def test_the_first_line_of_an_agents_words_is_prose(said: str, line: str) -> None:
    assert first_line(said) == line


async def test_what_was_done_is_told_in_its_agents_words_and_as_such(wording: Wording) -> None:
    home = await Home().launch()
    home.submit(planned("a"), planned("b"))
    legs = await home.turn()
    for leg in legs:
        home.hand.land(leg)
    run_id = home.attempt("a").run_id
    assert run_id is not None
    home.store.transact_sync("said", lambda tx: tx.update(Run, run_id, summary="Added the form.\nMore."))
    home.store.transact_sync("silent", lambda tx: tx.update(Run, home.attempt("b").run_id or "", summary=""))
    items = told(home).items
    wording(items["a"].summary)
    assert items["b"].summary == "Do b"
    assert items["a"].subject == "feat(a): Do a", (
        "what a commit is called is decided before anybody has spoken"
    )


async def test_what_a_person_ticked_by_hand_is_not_told_as_if_it_had_been_done_here() -> None:
    home = await Home().launch()
    home.submit(planned("a"))

    def tick(tx: Tx) -> None:
        why = "ticked by hand: nothing was checked"
        complete_task(tx, home.task("a"), outcome=Outcome.UNVERIFIED, landed_sha=None, reason=why)

    await home.turn()
    home.store.transact_sync("tick", tick)
    item = told(home).items["a"]
    assert (item.summary, item.subject) == ("ticked by hand: nothing was checked", "")


async def test_attempts_of_the_source_count_on_and_the_next_setback_is_told() -> None:
    home = await Home().launch()
    home.submit(planned("a", attempts=1), planned("b", "a"))
    item = told(home).items["a"]
    assert (item.attempts, item.setback) == (1, None)
    [leg] = await home.turn()
    assert told(home).items["a"] == item, "its agent has not started"
    home.hand.work(leg)
    assert (told(home).items["a"].attempts, told(home).items["b"].attempts) == (2, 0)
    home.hand.fail(leg, Failure.OVERLOADED)
    assert told(home).items["a"].setback is Setback.BROKEN
    home.clock.advance(60)
    [leg] = await home.turn()
    home.hand.fail(leg, Failure.GATE)
    item = told(home).items["a"]
    assert (item.mark, item.attempts, item.setback) == (Mark.OPEN, 2, Setback.REJECTED)
    [leg] = await home.turn()
    assert (told(home).items["a"].attempts, told(home).items["a"].setback) == (2, Setback.REJECTED)
    home.hand.work(leg)
    assert (told(home).items["a"].attempts, told(home).items["a"].setback) == (3, None)
    task = home.hand.fail(leg, Failure.GATE)
    assert task.status is TaskState.ERROR, "one of its three attempts was made before"
    assert told(home).items["a"].attempts == 3


async def test_nothing_is_in_progress_before_its_agent_has_started() -> None:
    """Not while its workspace is made, nor while it waits for money or a service that it never drew from."""
    home = await Home(slots=4).launch()
    home.submit(planned("a"), planned("b"), planned("c"), policy=Policy(parallel=4))
    a, b, _ = await home.turn()
    assert {item.mark for item in told(home).items.values()} == {Mark.OPEN}
    home.hand.work(a)
    home.hand.park(a, None)
    move = partial(move_attempt, attempt=home.attempt("b"), target=AttemptState.WAITING, fence=b.fence)
    home.store.transact_sync("parked", move)
    now = told(home).items
    assert [now[key].mark for key in "abc"] == [Mark.RUNNING, Mark.OPEN, Mark.OPEN]
    assert (now["a"].attempts, now["b"].attempts, now["b"].started_at) == (1, 0, None)


async def test_what_its_source_says_was_tried_often_enough_is_tried_once_more_when_it_is_open() -> None:
    home = await Home().launch()
    home.submit(planned("a", attempts=10**30))
    assert (home.task("a").attempts, home.task("a").max_attempts) == (3, 4)
    [leg] = await home.turn()
    assert home.hand.fail(leg, Failure.GATE).status is TaskState.ERROR


@each_case(
    ("reason", "said"),
    [
        (
            "A check failed on the result; read its last lines. 3 of 3 attempts failed. check failed",
            "A check failed on the result. 3 of 3 attempts failed. check failed",
        ),
        (
            "It changed your checkout: src/a.py.\nTo undo it, once you have looked at it:\ngit -C /tmp/x apply /tmp/y",
            "It changed your checkout: src/a.py.",
        ),
        (
            "no file '/home/ada/shop/data/a.txt' (see /var/log/), GET /api/users and https://x.org/tmp/a: 404",
            "no file '…/a.txt' (see …), GET /api/users and https://x.org/tmp/a: 404",
        ),
        ("it is marked as blocked: mount /mnt/disk/a first", "mount /mnt/disk/a first"),
    ],
)
def test_a_source_is_told_a_reason_that_makes_sense_on_another_machine(reason: str, said: str) -> None:
    assert source_reason(reason) == said
