"""The end of a plan as rows and legs: begun once, fenced, gated before anything moves, and given up in time."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import pytest
from tests.cases import each_case
from tests.doubles import BROKEN, FAILED, PASSED, Home, OneBranch, planned
from tests.wording_plugin import Wording

from loopwright.core.rows.model import Attempt, CommandState, Finish, Leg, Role, Run
from loopwright.core.values.errors import Busy, GitFailed, MergeConflict, Refused
from loopwright.core.values.policy import Policy
from loopwright.core.values.states import FinishState, LoopState, RunState
from loopwright.engine.memory.interrupts import Interrupts
from loopwright.engine.people import commands
from loopwright.engine.plans.finish import FinishLeg
from loopwright.ports import Built, Pick, Request, Tx, Wanted

BASE = "1" * 40
"""Where `Home` says that every plan starts."""
NEWER = "2" * 40
RESULT = "3" * 40


class Branch:
    """The user's base branch, with everything that may happen to it meanwhile."""

    def __init__(self) -> None:
        self.tip = BASE
        self.moves: list[tuple[str, str]] = []
        self.meanwhile: Callable[[], None] = lambda: None
        """Called just before it would be moved."""
        self.trouble: Exception | None = None
        self.pushed: list[tuple[str, str]] = []

    async def base_tip(self, ref: str) -> str | None:
        return self.tip if ref == "main" else None

    async def joined(self, target: str, source: str) -> str:
        if self.trouble is not None:
            raise self.trouble
        return f"tree of {source}" if target == BASE else f"tree of {source} on {target}"

    async def commit(
        self, tree: str, *, parents: Sequence[str], message: str, at: datetime, sign: bool = False
    ) -> str:
        return f"commit of {tree} after {' '.join(parents)}"

    async def picked(self, target: str, picks: Sequence[Pick], *, at: datetime, sign: bool = False) -> Built:
        names = " ".join(pick.sha for pick in picks)
        return Built(sha=f"{names} on {target}", tree=f"tree of {names} on {target}")

    async def arrived(self, sha: str, ref: str, *, since: str, key: str) -> str | None:
        return sha if any(new == sha for new, _ in self.moves) else None

    async def move(self, ref: str, *, new: str, old: str) -> bool:
        self.meanwhile()
        if self.tip != old:
            return False
        self.tip = new
        self.moves.append((new, old))
        return True

    async def remote(self, name: str) -> str | None:
        return "git@github.com:acme/app.git" if name == "origin" else None

    async def push(self, remote: str, sha: str, branch: str) -> None:
        self.pushed.append((sha, branch))

    async def keep(self, branch: str, sha: str) -> None:
        pass


class Ending(OneBranch):
    """A repository whose plans can end."""

    def __init__(self) -> None:
        super().__init__()
        self.base = Branch()

    async def ends(self) -> Branch:
        return self.base

    async def is_ancestor(self, sha: str, of: str) -> bool:
        return sha == BASE


def _landed(tx: Tx, *, attempt: str, changes: dict[str, Any]) -> None:
    """Write down what a real landing does, besides what the hand writes."""
    tx.update(Attempt, attempt, **changes)


async def verified(how: str = "squash", **policy: Any) -> tuple[Home, Branch]:
    """Return a home with a plan that was verified just now."""
    repository = Ending()
    home = await Home(repository=repository).launch()
    home.submit(planned("a"), planned("b", "a"), policy=Policy(finish=how, **policy))
    for _ in range(2):
        [leg] = await home.turn()
        landed = home.hand.land(leg).landed_sha
        await home.ended(leg)
        changes = {"candidate_sha": landed, "candidate_parent": BASE}
        home.store.transact_sync("leg", partial(_landed, attempt=leg.subject, changes=changes))
    repository.branches[home.plan().branch] = RESULT
    [leg] = await home.turn()
    await home.verify(leg)
    assert home.loop().state is LoopState.COMPLETED
    return home, repository.base


async def finish(home: Home, *, answer: Any = PASSED, leg: Leg | None = None) -> Finish:
    """Run the leg that reconciling starts, or this one, and return what became of the end."""
    home.gate.answer = answer
    if leg is None:
        [leg] = await home.reconcile()
    await FinishLeg(home.world, leg, interrupts=Interrupts()).run()
    await home.ended(leg)
    return home.get(Finish, leg.subject)


async def test_a_plan_that_is_to_be_left_has_no_end() -> None:
    home, _ = await verified("leave")
    assert home.all(Finish) == []
    assert await home.reconcile() == []


async def test_a_verified_plan_ends_once_and_its_tree_is_not_gated_twice() -> None:
    home, base = await verified()
    before = len(home.gate.asked)
    done = await finish(home)
    assert done.state is FinishState.FINISHED
    assert base.moves == [(done.commit_sha, BASE)]
    assert len(home.gate.asked) == before
    assert await home.reconcile() == []
    assert home.told("finish_begun", "finish_landing", "finish_done") == [
        "finish_begun",
        "finish_landing",
        "finish_done",
    ]


async def test_a_base_that_moved_is_gated_before_it_is_moved() -> None:
    home, base = await verified()
    base.tip = NEWER
    done = await finish(home)
    assert done.target_sha == NEWER
    assert base.moves == [(done.commit_sha, NEWER)]
    [run] = home.all(Run, role=Role.FINISH)
    assert done.verdict_id is not None
    assert run.state is RunState.COMPLETE


@each_case(
    ("answer", "trouble", "words"),
    [
        (FAILED, None, "these checks fail: tests"),
        (PASSED, MergeConflict(("app.py",)), "same places as main does by now: app.py"),
        (PASSED, Refused("no key", code="commit_not_signed", hint="give one"), "no key\ngive one"),
    ],
)
async def test_what_fails_moves_nothing_and_says_what_to_do(
    answer: Any, trouble: Exception | None, words: str
) -> None:
    home, base = await verified()
    base.tip, base.trouble = NEWER, trouble
    done = await finish(home, answer=answer)
    assert (done.state, base.moves) == (FinishState.REFUSED, [])
    assert words in done.detail
    assert home.told("finish_refused") == ["finish_refused"]


async def test_a_base_that_moves_between_the_gate_and_the_move_is_gated_again() -> None:
    home, base = await verified("fast-forward")

    def somebody_commits() -> None:
        base.tip, base.meanwhile = NEWER, lambda: None

    base.meanwhile = somebody_commits
    done = await finish(home)
    assert done.state is FinishState.FINISHED
    assert base.moves == [(done.commit_sha, NEWER)]
    assert home.told("finish_checked_again") == ["finish_checked_again"]
    assert len(home.all(Run, role=Role.FINISH)) == 1


async def test_who_was_taken_over_moves_nothing() -> None:
    home, base = await verified()
    [old] = await home.reconcile()
    await home.ended(old)
    [new] = await home.reconcile()
    assert (old.subject, old.fence < new.fence) == (new.subject, True)
    assert (await finish(home, leg=old)).state is FinishState.CHECKING
    assert base.moves == []
    assert (await finish(home, leg=new)).state is FinishState.FINISHED
    assert len(base.moves) == 1


async def test_what_was_moved_before_a_kill_is_only_written_down() -> None:
    home, base = await verified()

    def die() -> None:
        base.tip = f"commit of tree of {RESULT} after {BASE}"
        base.moves.append((base.tip, BASE))
        raise KeyboardInterrupt

    base.meanwhile = die
    [leg] = await home.reconcile()
    with pytest.raises(KeyboardInterrupt):
        await FinishLeg(home.world, leg, interrupts=Interrupts()).run()
    await home.ended(leg)
    assert home.get(Finish, leg.subject).state is FinishState.LANDING
    done = await finish(home)
    assert (done.state, done.commit_sha, len(base.moves)) == (FinishState.FINISHED, base.tip, 1)


async def test_trouble_that_may_pass_is_tried_again_later_and_not_for_ever() -> None:
    home, base = await verified(max_call_retries=2)
    base.trouble = GitFailed("no space left")
    for _ in range(2):
        tried = await finish(home)
        assert tried.state is FinishState.CHECKING
        assert await home.reconcile() == [], "not before its time"
        home.clock.advance(3600)
    given_up = await finish(home)
    assert given_up.state is FinishState.REFUSED
    assert "no space left" in given_up.detail


async def test_a_gate_that_cannot_run_says_nothing_about_the_work() -> None:
    home, base = await verified()
    base.tip = NEWER
    assert (await finish(home, answer=BROKEN)).state is FinishState.CHECKING
    home.clock.advance(3600)
    assert (await finish(home)).state is FinishState.FINISHED


class Counter:
    """A forge that is busy once."""

    def __init__(self) -> None:
        self.wanted: list[Wanted] = []

    async def request(self, wanted: Wanted) -> Request:
        self.wanted.append(wanted)
        if len(self.wanted) == 1:
            raise Busy("later", after_s=1000)
        return Request(n=7, url="https://forge/7", created=True)


async def test_a_busy_forge_is_left_alone_for_as_long_as_it_says() -> None:
    home, base = await verified("pull-request")
    forge = Counter()
    home.world = replace(home.world, forge=lambda _plan, _address: forge)
    waiting = await finish(home)
    assert waiting.state is FinishState.LANDING
    home.clock.advance(999)
    assert await home.reconcile() == []
    home.clock.advance(2)
    done = await finish(home)
    assert (done.request_n, done.request_url) == (7, "https://forge/7")
    assert [one.branch for one in forge.wanted] == [home.plan().branch] * 2
    assert base.moves == []


async def test_a_person_stops_an_end_that_has_moved_nothing_and_takes_it_up_again() -> None:
    home, base = await verified()
    [leg] = await home.reconcile()
    assert (await home.command("stop", home.plan().id)).state is CommandState.APPLIED
    assert (await finish(home, leg=leg)).state is FinishState.REFUSED
    assert base.moves == []
    assert (await home.command("accept", home.plan().id)).state is CommandState.APPLIED
    assert (await home.command("accept", home.plan().id)).state is CommandState.REFUSED, "one at a time"
    assert (await home.command("resume", home.plan().id)).state is CommandState.APPLIED
    assert (await finish(home)).state is FinishState.FINISHED


async def test_tasks_are_accepted_one_after_the_other(wording: Wording) -> None:
    home, _ = await verified("leave")
    plan = home.plan().id

    async def accept(**arguments: Any) -> str:
        return (await home.command("accept", plan, finish="squash", **arguments)).result

    assert "b builds on a" in await accept(tasks=["b"])
    unknown = commands.refusal(await home.command("accept", plan, tasks=["nope"]))
    assert unknown.code == "task_not_found"
    wording(unknown.hint)
    assert await accept(tasks=["a"]) == "accepted 1 of 2 tasks: squash"
    first = await finish(home)
    assert (first.state, first.tasks) == (FinishState.FINISHED, (home.task("a").id,))
    assert await accept(tasks=["b"]) == "accepted 1 of 2 tasks: squash"
    second = await finish(home)
    assert second.target_sha == first.commit_sha
    assert await accept(tasks=["a", "b"]) == "accepted the plan: squash", (
        "all of it is the plan as it was verified"
    )
    assert home.told("command_applied", "command_refused") == [
        "command_refused",
        "command_refused",
        "command_applied",
        "command_applied",
        "command_applied",
    ]


async def test_a_plan_that_is_not_verified_is_accepted_only_by_naming_what_landed() -> None:
    home = await Home(repository=Ending()).launch()
    home.submit(planned("a"), planned("b"))
    legs = await home.turn()
    home.hand.land(legs[0])
    refused = await home.command("accept", home.plan().id, finish="squash")
    assert refused.state is CommandState.REFUSED
    assert "--tasks a" in refused.result
    assert (await home.command("accept", home.plan().id)).state is CommandState.REFUSED, (
        "its setting is leave"
    )
    assert (await home.command("accept", home.plan().id, finish="x")).state is CommandState.REFUSED
