"""What becomes of tasks, plan and loop when a person takes landed work back."""

import pytest
from tests.cases import each_case
from tests.doubles import FAILED, Home, planned, recount
from tests.wording_plugin import Wording

from loopwright.core.policy.finishing import PULL_REQUEST, SQUASH
from loopwright.core.rows.model import Attempt, Command, CommandState, Leg, Task
from loopwright.core.values.errors import GitFailed, MergeConflict
from loopwright.core.values.failures import Failure
from loopwright.core.values.states import AttemptState, FinishState, LoopState, PlanState, TaskState
from loopwright.engine.attempt.landing_line import LandingLines
from loopwright.engine.branch.branch import foreign, own_commits
from loopwright.engine.people.commands import refusal
from loopwright.engine.plans.rollback import carry_out
from loopwright.engine.rows.finishes import begin, move_finish
from loopwright.ports import Step, Tx

CHAIN = (planned("a"), planned("b", "a"), planned("c", "b"), planned("free"))


async def begun(*keys: str) -> tuple[Home, dict[str, Leg]]:
    """Return a home in which these tasks have landed, in this order, and the legs of the last of each task."""
    home = await Home(slots=8).launch()
    plan = home.submit(*CHAIN)
    legs: dict[str, Leg] = {}

    async def turn() -> None:
        for leg in await home.turn():
            if leg.subject == plan.id:
                legs["plan"] = leg
            else:
                task = home.get(Task, home.get(Attempt, leg.subject).task_id)
                legs[task.key] = leg

    await turn()
    for key in keys:
        home.hand.land(legs[key])
        await home.ended(legs[key])
        await turn()
    return home, legs


async def landed(*keys: str) -> Home:
    """Return a home in which these tasks have landed, and the others have begun if they may."""
    return (await begun(*keys))[0]


async def verified() -> Home:
    """Return a home whose plan is VERIFIED."""
    home, legs = await begun("a", "free", "b", "c")
    await home.verify(legs["plan"])
    assert home.plan().status is PlanState.VERIFIED
    return home


def statuses(home: Home) -> dict[str, TaskState]:
    return {task.key: home.task(task.key).status for task in CHAIN}


def balanced(home: Home) -> bool:
    return all(counted == kept for counted, kept in recount(home).values())


async def test_a_task_goes_with_everything_that_builds_on_it_in_one_commit(wording: Wording) -> None:
    home, legs = await begun("a", "free", "b")
    shas = {key: home.task(key).landed_sha for key in ("a", "b")}
    done = await home.command("rollback", home.task("a").id)
    assert done.state is CommandState.APPLIED
    wording(done.result)
    home.hand.go_on(legs["c"])
    await home.reconcile()
    assert home.repository.line[0].takes_out == (shas["b"], shas["a"])
    assert home.repository.line[0].command == done.id
    assert statuses(home) == {"a": "QUEUED", "b": "QUEUED", "c": "QUEUED", "free": "COMPLETE"}
    assert [home.task(key).unmet for key in ("a", "b", "c")] == [0, 1, 1]
    assert home.task("a").landed_sha is None
    assert home.attempt("a").n == 2
    assert balanced(home)
    [told] = home.events("plan_rolled_back")
    assert [one["sha"] for one in told.payload["took_out"]] == [shas["a"], shas["b"]]


async def test_whoever_works_on_what_went_is_stopped_and_its_end_decides_nothing_more() -> None:
    home, legs = await begun("a")
    old = home.attempt("b")
    home.hand.work(legs["b"])
    await home.command("rollback", home.task("a").id)
    assert home.get(Attempt, old.id).interrupt == "cancel"
    assert (home.task("b").status, home.task("b").unmet, home.attempt("b").n) == ("RUNNING", 1, 1)
    # Its agent fails by itself before anybody could stop it.
    home.hand.fail(legs["b"], Failure.GATE)
    assert home.get(Attempt, old.id).state is AttemptState.CANCELLED
    await home.reconcile()
    assert (home.task("b").status, home.attempt("b").n, home.task("b").attempts) == ("QUEUED", 2, 0)
    assert balanced(home)


async def test_a_checkpoint_keeps_what_landed_until_then(wording: Wording) -> None:
    home, legs = await begun("a", "free", "b")
    plan = home.plan()
    done = await home.command("rollback", plan.id, to="free")
    home.hand.go_on(legs["c"])
    await home.reconcile()
    wording(done.result)
    assert statuses(home) == {"a": "COMPLETE", "b": "QUEUED", "c": "QUEUED", "free": "COMPLETE"}
    wording((await home.command("rollback", plan.id, to="free")).result)
    assert "checkpoint_not_found" in (await home.command("rollback", plan.id, to="nothing")).result
    wording((await home.command("rollback", plan.id, to="b")).result)
    base = await home.command("rollback", plan.id, to=plan.base_sha[:8])
    assert base.result == "taken back: a, free"


async def test_what_stays_has_to_pass_or_nothing_happens(wording: Wording) -> None:
    home = await landed("a", "free", "b")
    before = {
        key: row for key, row in home.everything().items() if key.startswith(("Task", "Plan", "Attempt"))
    }
    home.gate.answer = FAILED
    refused = await home.command("rollback", home.task("free").id)
    assert refused.state is CommandState.REFUSED
    wording(refused.result)
    assert {key: home.everything()[key] for key in before} == before
    assert home.repository.line[0].command == ""


async def test_later_work_in_the_same_places_is_named_and_nothing_happens(wording: Wording) -> None:
    home = await landed("a", "free")
    home.repository.conflict = MergeConflict(("app.py",))
    told = refusal(await home.command("rollback", home.task("a").id))
    wording(str(told))
    assert "--to" in (told.hint or "")
    assert home.task("a").status is TaskState.COMPLETE


async def test_a_plan_that_was_verified_is_not_any_more_and_its_loop_waits_for_a_person() -> None:
    home = await verified()
    done = await home.command("rollback", home.task("free").id)
    plan, loop = home.plan(), home.loop()
    assert (plan.status, plan.verdict, plan.result_sha, plan.outcome) == ("RUNNING", None, None, None)
    assert loop.state is LoopState.STOPPED
    assert f"`loopwright resume {plan.id[:13]}" in done.result
    assert balanced(home)


@each_case(
    ("how", "tasks", "told"),
    [
        (SQUASH, (), "; main has this work already and keeps it: revert it there yourself; "),
        (SQUASH, ("free",), "; main has this work already and keeps it: revert it there yourself; "),
        (
            PULL_REQUEST,
            (),
            "; the pull request has this work already and keeps it: revert it there yourself; ",
        ),
        (SQUASH, ("a",), "taken back: free; `loopwright resume"),
    ],
)
async def test_a_rollback_names_where_accepted_work_stays(
    how: str, tasks: tuple[str, ...], told: str
) -> None:
    home = await verified()
    plan, chosen = home.plan(), [home.task(key) for key in tasks]

    def accepted(tx: Tx) -> None:
        finish = begin(tx, home.world.ids, plan, how, "user:me", chosen)
        move_finish(tx, finish, FinishState.FINISHED, fence=None)

    await home.store.transact("accepted", accepted)
    assert told in (await home.command("rollback", home.task("free").id)).result


async def test_rejected_work_is_tried_again_with_the_lines_that_are_wrong(wording: Wording) -> None:
    home = await verified()
    comments = [{"file": "app.py", "line": 2, "text": "no, three"}]
    done = await home.command("reject", home.task("free").id, note="wrong", comments=comments)
    assert done.result == "taken back: free; attempt 2 of free is queued"
    evidence = home.attempt("free").evidence
    assert evidence.endswith("wrong\n\napp.py:2\n> two\nno, three")
    assert home.loop().state is LoopState.RUNNING
    [leg] = await home.turn()
    home.hand.land(leg)
    assert home.task("free").status is TaskState.COMPLETE
    missing = await home.command(
        "reject", home.task("free").id, comments=[{"file": "x", "line": 1, "text": "?"}]
    )
    wording(missing.result)


@each_case(
    ("key", "words"),
    [("b", "is being worked on right now"), ("c", "c has no work yet")],
)
async def test_what_has_nothing_to_reject_is_refused(key: str, words: str, wording: Wording) -> None:
    home = await landed("a")
    assert words in (await home.command("reject", home.task(key).id, note="no")).result
    wording((await home.command("rollback", home.task(key).id)).result)


async def test_nothing_starts_in_a_plan_while_a_decision_is_on_its_way(wording: Wording) -> None:
    home = await landed("a", "free", "b")
    home.repository.broken = GitFailed("no space")
    with pytest.raises(GitFailed):
        await home.command("rollback", home.task("b").id)
    [command] = home.all(Command)
    assert command.state is CommandState.PENDING
    assert await home.turn() == []
    wording((await home.command("cancel", home.plan().id)).result)
    home.repository.broken = None
    done = await carry_out(home.world, LandingLines(), command)
    assert done.state is CommandState.APPLIED
    assert home.task("b").attempt_id in [leg.subject for leg in await home.turn()]


class Cut(Exception):
    """Everything was killed."""


async def test_what_somebody_else_s_commit_says_of_a_rollback_counts_for_nothing() -> None:
    home = await landed("a", "free")
    real, sha = home.repository.advance, home.task("free").landed_sha
    assert sha is not None

    async def advance(branch: str, *, new: str, old: str) -> bool:
        raise Cut

    home.repository.advance = advance  # type: ignore[method-assign]
    with pytest.raises(Cut):
        await home.command("rollback", home.task("free").id)
    home.repository.advance = real  # type: ignore[method-assign]
    [command] = home.all(Command)
    assert command.commit_sha is not None, "the row says what was about to be put there"
    forged = Step(sha="f" * 40, tree="tree forged", command=command.id, takes_out=(sha,))
    home.repository.line.insert(0, forged)
    plan = home.plan()
    own = home.store.read_sync(lambda tx: own_commits(tx, plan))
    assert await foreign(home.repository, plan, [forged], own) == (forged,)  # type: ignore[arg-type]
    done = await carry_out(home.world, LandingLines(), command)
    assert done.state is CommandState.APPLIED
    newest = home.repository.line[0]
    assert (newest.sha, newest.takes_out) == (home.get(Command, command.id).commit_sha, (sha,))
    assert (
        await foreign(home.repository, plan, [newest], home.store.read_sync(lambda tx: own_commits(tx, plan)))
        == ()
    )  # type: ignore[arg-type]
    [told] = home.events("plan_rolled_back")
    assert told.payload["commit"] == newest.sha


async def test_a_rollback_that_was_cut_short_after_the_branch_moved_only_writes_its_rows() -> None:
    home = await landed("a", "free")
    real = home.repository.advance

    async def advance(branch: str, *, new: str, old: str) -> bool:
        await real(branch, new=new, old=old)
        raise Cut

    home.repository.advance = advance  # type: ignore[method-assign]
    with pytest.raises(Cut):
        await home.command("rollback", home.task("free").id)
    home.repository.advance = real  # type: ignore[method-assign]
    lines = len(home.repository.line)
    [command] = home.all(Command)
    done = await carry_out(home.world, LandingLines(), command)
    assert done.state is CommandState.APPLIED
    assert len(home.repository.line) == lines
    assert home.task("free").status is TaskState.QUEUED
    again = await carry_out(home.world, LandingLines(), command)
    assert again == command
    assert len(home.events("plan_rolled_back")) == 1
