"""What people change in a source is taken in, what we told it ourselves is not, and what is broken is told of once."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.control.sources.test_every_source import EVERY
from tests.cases import each_case
from tests.doubles import FAILED, PASSED, Home, planned
from tests.fakes import fake_bd
from tests.refusals import raises_code
from tests.wording_plugin import Wording

from loopwright.adapters import registry
from loopwright.adapters.sources.beads.beads import BeadsSource
from loopwright.adapters.sources.feature_list.feature_list import FeatureListSource
from loopwright.adapters.sources.spec.spec import SpecSource
from loopwright.adapters.sources.task_master.task_master import TaskMasterSource
from loopwright.adapters.sources.text.writing import put_files
from loopwright.core.replies.discoveries import Discovery, Noticed
from loopwright.core.rows.model import Command, CommandState, Leg, Loop, Plan, Project, Run, Task
from loopwright.core.values.errors import StoreUnavailable
from loopwright.core.values.failures import Failure
from loopwright.core.values.findings import Verdict
from loopwright.core.values.ids import Kind, is_id
from loopwright.core.values.states import LoopState, PlanState, TaskState
from loopwright.engine.memory.interrupts import Interrupts
from loopwright.engine.people.discoveries import note
from loopwright.engine.plans.verify import VerifyLeg
from loopwright.engine.processes.held_files import missing
from loopwright.engine.rows.source_marks import SETTLED
from loopwright.engine.rows.world import HomePaths, World
from loopwright.engine.rows.writeback_debts import SourceNews
from loopwright.engine.sources.later_edits import ended_plan, source_news
from loopwright.engine.sources.source_edits import Edits
from loopwright.engine.sources.status_writeback import tell
from loopwright.engine.sources.writeback_files import written
from loopwright.engine.worker.advance import advance
from loopwright.ports import Files, ItemProgress, Mark, PlannedWork, Progress

GOOD = '{"features": [{"id": "a", "name": "A", "description": "Do a."}]}'


def lies_at(home: Home, place: Path) -> None:
    (project,), (loop,) = home.all(Project), home.all(Loop)
    home.store.transact_sync("here", lambda tx: tx.update(Project, project.id, path=str(place.parent)))
    home.store.transact_sync("file", lambda tx: tx.update(Loop, loop.id, source_path=place.name))


async def test_what_cannot_be_read_is_said_once_for_each_reason(tmp_path: Path) -> None:
    home = Home()
    home.submit(planned("a"))
    file = tmp_path / "feature_list.json"
    lies_at(home, file)
    edits = Edits(replace(home.world, source=lambda _kind: FeatureListSource()))
    for _ in range(3):
        await edits.take_in()
    assert len(home.events("source_unreadable")) == 1, "it is gone"
    file.write_text("{")
    for _ in range(3):
        await edits.take_in()
    assert len(home.events("source_unreadable")) == 2, "it is broken"
    file.write_text(GOOD)
    await edits.take_in()
    file.unlink()
    await edits.take_in()
    assert len(home.events("source_unreadable")) == 3, "it was whole in between"


class OddSource(FeatureListSource):
    """A format whose reader has a defect."""

    def parse(self, files: Files, name: str) -> PlannedWork:
        return super().parse({}.fromkeys(files), name)  # type: ignore[arg-type]


async def test_a_reader_with_a_defect_takes_no_worker_down(tmp_path: Path) -> None:
    home = Home()
    home.submit(planned("a"))
    lies_at(home, tmp_path / "feature_list.json")
    (tmp_path / "feature_list.json").write_text(GOOD)
    edits = Edits(replace(home.world, source=lambda _kind: OddSource()))
    for _ in range(2):
        assert not await edits.take_in()
    [told] = home.events("source_unreadable")
    assert told.payload["reason"].startswith("internal error: ")


@pytest.mark.trap("lost resume")
@each_case("said", [{"mark": Mark.RUNNING}, {"first": True}], ids=["running", "next"])
async def test_what_the_source_says_was_under_way_or_next_goes_on_first(
    tmp_path: Path, said: dict[str, Any]
) -> None:
    home = await Home(slots=1).launch()
    under_way = planned("b", title="B", description="Do b.", priority=199, **said)
    home.submit(planned("a", title="A", description="Do a.", priority=99), under_way)
    lies_at(home, tmp_path / "feature_list.json")
    (tmp_path / "feature_list.json").write_text(
        GOOD.replace("]", ', {"id": "b", "name": "B", "description": "Do b."}]')
    )
    assert await Edits(replace(home.world, source=lambda _kind: FeatureListSource())).take_in()
    assert home.events("source_edited") == []
    first, *_ = await home.turn()
    assert first.subject == home.attempt("b").id


async def test_what_a_tracker_was_told_is_not_taken_for_a_person_s_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was told that an issue is blocked, and nobody looked since: that does not undo a retry."""
    monkeypatch.setenv("PATH", str(fake_bd.install(tmp_path / "bin").parent), prepend=":")
    home = await Home().launch()
    plan = home.submit(planned("bd-1", max_attempts=1), planned("bd-2", "bd-1"))
    tracker = tmp_path / ".beads"
    tracker.mkdir()
    issues = [{"id": key, "title": f"Do {key}", "status": "open"} for key in ("bd-1", "bd-2")]
    (tracker / "tracker.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in issues))
    lies_at(home, tracker)
    world = replace(home.world, source=lambda _kind: BeadsSource())
    (leg,) = await home.turn()
    home.hand.fail(leg, Failure.GATE)
    assert await tell(world, plan.id) is None
    assert BeadsSource().parse(BeadsSource().files(tracker), "x").tasks[0].mark is Mark.BLOCKED
    await home.command("retry", home.task("bd-1").id)
    assert await Edits(world).take_in()
    assert home.task("bd-1").status is TaskState.QUEUED


@each_case("sandbox", ["none", "bubblewrap", None])
async def test_checks_are_taken_over_only_where_no_agent_could_have_written_them(
    sandbox: str | None, tmp_path: Path
) -> None:
    home = await Home().launch()
    home.submit(planned("a"))
    file = tmp_path / "feature_list.json"
    lies_at(home, file)
    await home.turn()
    home.store.transact_sync("ran", lambda tx: tx.update(Run, home.all(Run)[0].id, sandbox=sandbox))
    before = home.task("a").acceptance
    feature = {"id": "a", "name": "Do a", "description": "Other.", "tests": ["`test -f a`"]}
    file.write_text(json.dumps({"features": [feature]}))
    edits = Edits(replace(home.world, source=lambda _kind: FeatureListSource()))
    await edits.take_in()
    file.write_text(json.dumps({"features": [feature]}, indent=1))
    await edits.take_in()
    assert home.task("a").description == "Other."
    assert [bool(one.payload["doubt"]) for one in home.events("source_edited")] == [sandbox == "none"]
    if sandbox == "none":
        assert home.task("a").acceptance == before
        [kept] = home.events("checks_kept")
        assert kept.payload["reason"].startswith("acceptance of a changed in feature_list.json")
    else:
        assert [one.command for one in home.task("a").acceptance] == ["test -f a"]
        assert home.events("checks_kept") == []


def feature(key: str, *after: str, **more: Any) -> dict[str, Any]:
    return {
        "id": key,
        "name": f"Do {key}",
        "description": f"All of {key}.",
        "dependencies": list(after),
        **more,
    }


class Desk:
    """A feature list at which a person works while its plan runs."""

    def __init__(self, home: Home, place: Path) -> None:
        self.home = home
        self.file = place / "feature_list.json"
        self.world = replace(home.world, source=lambda _kind: FeatureListSource(), put_files=put_files)
        self._edits = Edits(self.world)

    @classmethod
    async def opened(cls, place: Path, *features: dict[str, Any], slots: int = 4) -> "Desk":
        desk = cls(await Home(slots=slots).launch(), place)
        desk._write(*features)
        work = FeatureListSource().parse(FeatureListSource().files(desk.file), "feature_list.json")
        desk.home.submit(work=work)
        lies_at(desk.home, desk.file)
        await desk._edits.take_in()
        return desk

    def _write(self, *features: dict[str, Any]) -> None:
        self.file.write_text(json.dumps({"features": features}))

    async def saves(self, *features: dict[str, Any]) -> list[str]:
        """Save the file like this, and return what of it is taken in."""
        before = len(self.home.events("source_edited"))
        self._write(*features)
        await self._edits.take_in()
        return [
            change for one in self.home.events("source_edited")[before:] for change in one.payload["changes"]
        ]

    async def told(self) -> dict[str, dict[str, Any]]:
        """Tell the file how the plan stands, look at that, and return its features."""
        assert await tell(self.world, self.home.plan().id) is None
        await self._edits.take_in()
        return {one["id"]: one for one in json.loads(self.file.read_text())["features"]}


async def test_what_is_added_is_judged_like_a_plan_and_held_if_its_check_cannot_fail(
    tmp_path: Path, wording: Wording
) -> None:
    desk = await Desk.opened(tmp_path, feature("a"))
    vain = feature("vain", tests=["`true`"])
    wording(await desk.saves(feature("a"), feature("good", tests=["`test -f x`"]), vain))
    assert desk.home.task("good").status is not TaskState.ERROR
    assert desk.home.task("vain").status is TaskState.ERROR
    wording(desk.home.task("vain").reason)
    [finding] = [one for one in desk.home.plan().evaluation["findings"] if one["check"] == "can_fail"]
    assert finding["weight"] == "pointless"
    features = await desk.told()
    wording(features["vain"]["blocked_reason"])
    opened = {**features["vain"], "blocked": False}
    assert await desk.saves(features["a"], features["good"], opened) == []
    [told] = desk.home.events("source_not_followed")
    wording(told.payload["reason"])
    mended = {**opened, "tests": ["`test -f y`"], "blocked": True}
    assert await desk.saves(features["a"], features["good"], mended) == ["vain: acceptance, criteria"]
    wording(await desk.saves(features["a"], features["good"], {**mended, "blocked": False}))


async def test_a_check_that_can_fail_is_not_given_up_for_one_that_cannot(
    tmp_path: Path, wording: Wording
) -> None:
    desk = await Desk.opened(tmp_path, feature("a", tests=["`test -f x`"]))
    assert await desk.saves(feature("a", tests=["`true`"])) == ["a: criteria"]
    assert [one.command for one in desk.home.task("a").acceptance] == ["test -f x"]
    [kept] = desk.home.events("checks_kept")
    wording(kept.payload["reason"])


async def test_an_edit_that_lets_tasks_wait_for_each_other_is_refused_as_a_whole(tmp_path: Path) -> None:
    desk = await Desk.opened(tmp_path, feature("a"), feature("b"))
    assert await desk.saves(feature("a", "b"), feature("b", "a")) == []
    assert len(desk.home.events("source_unreadable")) == 1
    assert desk.home.task("a").depends_on == ()


async def test_what_was_only_ticked_can_be_unticked_and_landed_work_stays(
    tmp_path: Path, wording: Wording
) -> None:
    desk = await Desk.opened(tmp_path, feature("landed"), feature("ticked"), feature("old", passes=True))
    leg = next(one for one in await desk.home.turn() if one.subject == desk.home.attempt("landed").id)
    desk.home.hand.land(leg)
    features = await desk.told()
    assert features["landed"]["passes"] is True
    ticked = {**features["ticked"], "passes": True}
    wording(await desk.saves(features["landed"], ticked, features["old"]))
    opened = [{**one, "passes": False} for one in (features["landed"], ticked, features["old"])]
    wording(await desk.saves(*opened))
    assert [(one.verb, one.target) for one in desk.home.all(Command)] == [
        ("rollback", desk.home.task("ticked").id)
    ]
    [stays] = desk.home.events("source_not_followed")
    wording(stays.payload["reason"])
    assert "rollback landed" in stays.payload["hint"]
    assert desk.home.task("old").status is TaskState.QUEUED
    assert (await desk.told())["landed"]["passes"] is True


async def test_how_complex_a_task_is_and_what_kind_it_is_are_taken_in(tmp_path: Path) -> None:
    desk = await Desk.opened(tmp_path, feature("a"))
    assert desk.home.task("a").complexity == "low"
    assert await desk.saves(feature("a", complexity="high", category="docs")) == ["a: complexity, type"]
    assert (desk.home.task("a").complexity, desk.home.task("a").type) == ("high", "docs")
    assert await desk.saves(feature("a")) == ["a: type"]
    assert desk.home.task("a").complexity == "low"


async def test_what_a_person_puts_first_is_done_first(tmp_path: Path) -> None:
    desk = await Desk.opened(tmp_path, feature("a"), feature("b"), feature("c"), slots=1)
    assert await desk.saves(feature("c"), feature("a"), feature("b")) == []
    assert [task.key for task in sorted(desk.home.all(Task), key=lambda one: one.position)] == ["c", "a", "b"]
    first, *_ = await desk.home.turn()
    assert first.subject == desk.home.attempt("c").id


async def test_other_held_out_checks_come_with_their_files_and_a_second_try_keeps_its_attempts(
    tmp_path: Path,
) -> None:
    """The agent's own attempts are counted: the file's number never takes back what a retry gave."""
    trouble: list[str] = []

    def failpoint(name: str) -> None:
        if any(part in name for part in trouble):
            trouble.clear()
            raise StoreUnavailable("away for a moment")

    home = await Home(failpoint=failpoint).launch()
    world = replace(home.world, source=lambda _kind: SpecSource(), paths=HomePaths(root=tmp_path / "home"))
    file = tmp_path / "plan.yaml"

    def plan(held: str, attempts: int) -> str:
        task = f"{{id: a, title: A, acceptance: test -f a, max_attempts: {attempts}, held_out: [{held}]}}"
        return f"title: It\nwrite_status: true\ntasks:\n  - {task}\n"

    file.write_text(plan("{run: test -f b}", 2))
    home.submit(work=SpecSource().parse(SpecSource().files(file), "plan.yaml"))
    lies_at(home, file)
    edits = Edits(world)
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / "check.py").write_text("raise SystemExit(1)\n")
    with_file = "{run: python check.py, files: [held/check.py]}"
    file.write_text(plan(with_file, 3))
    (tmp_path / "home").write_text("in the way")
    assert not await edits.take_in(), "there is no room for them: that ends no worker"
    assert len(home.events("source_unreadable")) == 1
    (tmp_path / "home").unlink()
    trouble.append("source.edited")
    with pytest.raises(StoreUnavailable):
        await edits.take_in()
    assert await edits.take_in(), "nothing was written, so it is new still"
    [edited] = home.events("source_edited")
    assert edited.payload["changes"] == ["a: held_out, max_attempts"]
    [check] = home.task("a").held_out
    assert missing(world.paths, check.files) == []
    file.write_text(plan(with_file, 1))
    assert await edits.take_in()
    assert home.task("a").max_attempts == 1
    [leg] = await home.turn()
    home.hand.fail(leg, Failure.GATE)
    await home.command("retry", home.task("a").id)
    given = home.task("a").max_attempts
    assert given > 1
    file.write_text(plan(with_file, 1) + "# looked at\n")
    assert await edits.take_in()
    assert home.task("a").max_attempts == given


@pytest.mark.capability("C040")
async def test_discovered_work_is_taken_in_by_who_takes_its_review_back(tmp_path: Path) -> None:
    """What a person accepts by command is another task: the feature says when that is done, and nothing is added."""
    desk = await Desk.opened(tmp_path, feature("a"))
    await desk.home.turn()
    plan, run = desk.home.plan(), desk.home.all(Run)[0]
    noticed = (Noticed(title="Mend the clock", reason="It is late."), Noticed(title="Paint it"))
    desk.home.store.transact_sync("found", lambda tx: note(tx, plan, run, noticed))
    features = await desk.told()
    assert {task.key for task in desk.home.all(Task)} == {"a"}
    clock, paint = (one for one in features.values() if one.get("category") == "discovered")
    assert await desk.saves(features["a"], {**clock, "needs_review": False}, paint) == [
        f"{clock['id']} was added"
    ]
    assert desk.home.task(clock["id"]).title == "Mend the clock"
    grey = next(one for one in desk.home.all(Discovery) if one.title == "Paint it")
    await desk.home.command("accept_discovered", grey.id, **{"as": "current"})
    assert (await desk.told())[paint["id"]]["passes"] is False
    assert {task.key for task in desk.home.all(Task)} == {"a", clock["id"], "paint-it"}


@pytest.mark.trap("lost edit")
async def test_what_a_person_writes_just_before_the_source_is_told_is_taken_in_all_the_same(
    tmp_path: Path, wording: Wording
) -> None:
    desk = await Desk.opened(tmp_path, feature("a"), feature("b"), feature("c"), feature("old", passes=True))
    leg = next(one for one in await desk.home.turn() if one.subject == desk.home.attempt("a").id)
    desk.home.hand.land(leg)
    changed = (feature("b", passes=True), feature("c", description="Other."), feature("new"))
    desk._write(feature("a"), *changed, feature("old", passes=False))
    await desk.told()
    [edited] = desk.home.events("source_edited")
    wording(edited.payload["changes"])
    told = await desk.told()
    assert [told[key].get("passes", False) for key in ("a", "b", "c", "old")] == [True, True, False, False]


# --- at the end of a plan ----------------------------------------------------------------------------


async def verified(desk: Desk, leg: Leg, verdict: Verdict = PASSED, *, world: World | None = None) -> Plan:
    desk.home.gate.answer = verdict
    await VerifyLeg(world or desk.world, leg, interrupts=Interrupts()).run()
    await desk.home.ended(leg)
    return desk.home.plan()


async def at_verification(desk: Desk) -> Leg:
    """Land what can be landed; return the leg of the verification."""
    while True:
        legs = await desk.home.turn()
        for leg in legs:
            if is_id(leg.subject, Kind.PLAN):
                return leg
            desk.home.hand.land(leg)


@pytest.mark.trap("lost edit")
async def test_what_is_added_before_a_plan_has_nothing_left_to_do_is_done_in_it(tmp_path: Path) -> None:
    """Before the verification begins, and before the plan is held or failed because of another task."""
    desk = await Desk.opened(tmp_path, feature("a"))
    (leg,) = await desk.home.turn()
    desk.home.hand.land(leg)
    desk._write(feature("a", passes=True), feature("late"))
    assert (await advance(desk.world, desk._edits.take_in)).dispatched
    (leg,) = (await advance(desk.world, desk._edits.take_in)).legs
    assert leg.subject == desk.home.attempt("late").id
    for _ in range(3):
        task = desk.home.hand.fail(leg, Failure.GATE)
        if task.status is not TaskState.ERROR:
            (leg,) = await desk.home.turn()
    desk._write(feature("a", passes=True), feature("late"), feature("later"))
    assert (await advance(desk.world, desk._edits.take_in)).dispatched
    (leg,) = (await advance(desk.world, desk._edits.take_in)).legs
    assert (leg.subject, desk.home.loop().state) == (desk.home.attempt("later").id, LoopState.RUNNING)


@pytest.mark.trap("lost edit")
async def test_what_is_changed_while_the_whole_is_verified_is_followed_before_the_plan_ends(
    tmp_path: Path, wording: Wording
) -> None:
    desk = await Desk.opened(tmp_path, feature("a"), feature("ticked"))
    legs = await desk.home.turn()
    wording(await desk.saves(feature("a"), feature("ticked", passes=True)))
    desk.home.hand.land(next(one for one in legs if one.subject == desk.home.attempt("a").id))
    leg = await at_verification(desk)
    desk._write(feature("a", passes=True), feature("ticked", passes=True), feature("late"))
    plan = await verified(desk, leg, FAILED)
    assert plan.status is PlanState.RUNNING, "an end without what was added would be none"
    leg = await at_verification(desk)
    assert desk.home.task("late").status is TaskState.COMPLETE
    desk._write(feature("a", passes=True), feature("ticked"), feature("late", passes=True))
    assert (await verified(desk, leg)).status is PlanState.RUNNING
    (asked,) = desk.home.all(Command, state=CommandState.PENDING)
    assert (asked.verb, asked.target) == ("rollback", desk.home.task("ticked").id)


@pytest.mark.trap("lost edit")
async def test_what_gives_a_plan_nothing_to_do_does_not_keep_it_from_its_end(
    tmp_path: Path, wording: Wording
) -> None:
    """Landed work that is unticked, words that change, a file that is broken: what is new after the end is told."""
    desk = await Desk.opened(tmp_path, feature("a"), feature("b"))
    for leg in await desk.home.turn():
        desk.home.hand.land(leg)
    done = (feature("a", passes=True), feature("b", passes=True))
    assert all(one["passes"] for one in (await desk.told()).values())
    leg = await at_verification(desk)
    desk._write(feature("a", description="Other words."), done[1])
    assert (await verified(desk, leg)).status is PlanState.VERIFIED
    [refused] = desk.home.events("source_not_followed")
    wording(refused.payload["reason"])

    def news() -> SourceNews | None:
        ended = desk.home.store.read_sync(lambda tx: ended_plan(tx, desk.home.plan().id))
        assert ended is not None
        return source_news(FeatureListSource(), ended)

    assert all(one["passes"] for one in (await desk.told()).values())
    assert news() is None
    desk._write(*done, feature("after"))
    assert news() == SourceNews(source="feature_list.json", changes=("after was added",))
    desk._write(feature("a"), done[1])
    assert news() == SourceNews(source="feature_list.json", changes=("a is marked as open",))
    desk.file.write_text("{")
    wording(str(news()))
    desk.file.unlink()
    assert news() is None, "one that is away troubles nobody"


@pytest.mark.trap("lost edit")
async def test_an_item_that_is_added_at_the_end_is_found_in_every_form_of_source() -> None:
    """Each sample has one item more than the plan that was made of it."""
    for sample in EVERY:
        source = registry.source(sample.kind)
        if not source.has_status or sample.tracker:
            continue
        place = sample.folder / "given" / sample.place
        work = source.parse(source.files(place), sample.place)
        needed = {key for task in work.tasks for key in task.depends_on}
        late = [task for task in work.tasks if task.mark not in SETTLED and task.key not in needed][-1]
        home = await Home(slots=4).launch()
        known = tuple(task for task in work.tasks if task.key != late.key)
        home.submit(work=replace(work, tasks=known))
        lies_at(home, place.parent / sample.place.rpartition("/")[2])
        desk = Desk(home, place.parent)
        desk.world = replace(desk.world, source=lambda _kind, source=source: source)
        plan = await verified(desk, await at_verification(desk))
        assert plan.status is PlanState.RUNNING, sample.kind
        assert home.task(late.key).status is TaskState.QUEUED, sample.kind


async def test_a_source_that_rests_with_a_change_of_a_persons_is_owed_its_status(
    tmp_path: Path, wording: Wording
) -> None:
    desk = await Desk.opened(tmp_path, feature("a"), feature("b"))
    legs = await desk.home.turn()
    await desk.home.command("pause", desk.home.plan().id)
    desk.home.hand.land(legs[0])
    desk._write(feature("a"), feature("b"), feature("c"))
    left = await tell(desk.world, desk.home.plan().id)
    assert left is not None
    assert left.items == ("a",)
    wording(left.reason)


async def test_a_new_order_and_a_step_that_became_manual_are_taken_in(tmp_path: Path) -> None:
    home = await Home(slots=1).launch()
    order = (planned("a"), planned("b", after=("a",)), planned("c", after=("b",)))
    home.submit(*order, source_kind="spec")
    file = tmp_path / "plan.yaml"
    lies_at(home, file)
    [leg] = await home.turn()
    assert home.task("c").early
    tasks = [{"id": "a", "title": "Do a"}, {"id": "b", "title": "Do b", "after": "a", "manual": True}]
    tasks.append({"id": "c", "title": "Do c"})
    file.write_text(json.dumps({"title": "A plan", "write_status": True, "tasks": tasks}))
    await Edits(replace(home.world, source=lambda _kind: SpecSource())).take_in()
    assert (home.task("b").early, home.task("c").early) == (True, False)
    assert (home.task("b").manual, home.task("b").attempt_id) == (True, None)
    home.hand.land(leg)
    await home.ended(leg)
    await home.turn()
    assert home.task("b").status is TaskState.AWAITING_RESPONSE


# --- keys and titles ----------------------------------------------------------------------------


def titled(key: str, title: str, **more: Any) -> dict[str, Any]:
    return feature(key, **{"name": title, "description": title, **more})


async def landed(desk: Desk, *keys: str) -> None:
    for leg in await desk.home.turn():
        if leg.subject in {desk.home.attempt(key).id for key in keys}:
            desk.home.hand.land(leg)


async def test_an_item_that_takes_the_number_of_a_landed_one_is_new_work(tmp_path: Path) -> None:
    desk = await Desk.opened(tmp_path, titled("1", "Make a.txt"), titled("2", "Make b.txt"))
    running = {leg.subject: leg for leg in await desk.home.turn()}
    desk.home.hand.land(running[desk.home.attempt("1").id])
    second = desk.home.task("2").id
    now = (titled("1", "Make x.txt"), titled("2", "Make a.txt"), titled("3", "Make b.txt"))
    desk._write(*now)
    assert await tell(desk.world, desk.home.plan().id) is None
    written = {one["id"]: one.get("passes", False) for one in json.loads(desk.file.read_text())["features"]}
    assert written["1"] is False, "before the edit is taken in, too"
    assert await desk.saves(*now) == ["1 is 2 now", "2 is 3 now", "1 was added"]
    assert (desk.home.task("2").status, desk.home.task("3").id) == (TaskState.COMPLETE, second)
    desk.home.hand.land(running[desk.home.attempt("3").id])
    told = await desk.told()
    assert [told[key].get("passes", False) for key in "123"] == [False, True, True]
    assert await desk.saves(*told.values()) == []
    leg = await at_verification(desk)
    assert desk.home.task("1").landed_sha
    assert (await verified(desk, leg)).status is PlanState.VERIFIED


@each_case("ticked", [False, True])
async def test_a_landed_item_with_another_title_is_new_work_or_waits(
    tmp_path: Path, ticked: bool, wording: Wording
) -> None:
    """Where the tick of the old text is still there, a person decides whether it is true of the new one."""
    desk = await Desk.opened(tmp_path, titled("US-1", "Add the login form"), titled("US-2", "Add a search"))
    await landed(desk, "US-1")
    told = await desk.told()
    assert told["US-1"]["passes"] is True
    other = {**told["US-1"], **titled("US-1", "Pay with a card"), "passes": ticked}
    changes = await desk.saves(other, told["US-2"])
    wording(changes)
    assert desk.home.task("US-1-before").status is TaskState.COMPLETE
    task = desk.home.task("US-1")
    assert task.title == "Pay with a card"
    assert (task.status, "its text changed" in task.reason) == (
        (TaskState.ERROR, True) if ticked else (TaskState.QUEUED, False)
    )
    assert (await desk.told())["US-1"]["passes"] is False
    assert desk.home.task("US-1").status is task.status


async def test_a_landed_item_that_is_replaced_while_the_whole_is_verified_keeps_the_plan_open(
    tmp_path: Path,
) -> None:
    desk = await Desk.opened(tmp_path, titled("a", "Add the login form"))
    await landed(desk, "a")
    await desk.told()
    leg = await at_verification(desk)
    desk._write(titled("a", "Pay with a card", passes=True))
    assert (await verified(desk, leg)).status is PlanState.RUNNING
    assert desk.home.task("a").status is TaskState.ERROR


async def test_a_typing_error_in_a_landed_title_is_noted_once(tmp_path: Path, wording: Wording) -> None:
    desk = await Desk.opened(tmp_path, titled("a", "Implemnt the login form"), titled("b", "Add a search"))
    await landed(desk, "a")
    told = await desk.told()
    mended = {**told["a"], "name": "Implement the login form"}
    wording(await desk.saves(mended, told["b"]))
    assert await desk.saves(mended, {**told["b"], "description": "Other."}) == ["b: description"]
    assert (await desk.told())["a"]["passes"] is True


@each_case("sandbox", ["none", "bubblewrap"])
async def test_a_running_task_whose_item_became_another_is_cancelled(tmp_path: Path, sandbox: str) -> None:
    """What the agent itself could have written does not run before a person looked at it."""
    desk = await Desk.opened(tmp_path, titled("1", "Make a.txt"), titled("2", "Draw the map"))
    await desk.home.turn()
    run = desk.home.all(Run)[0].id
    desk.home.store.transact_sync("ran", lambda tx: tx.update(Run, run, sandbox=sandbox))
    changes = await desk.saves(titled("1", "Make a.txt"), titled("2", "Sing a song"))
    assert changes == ["2-before was removed", "2 was added"]
    (asked,) = desk.home.all(Command)
    assert (asked.verb, asked.target) == ("cancel", desk.home.task("2-before").id)
    assert desk.home.task("2").status is (TaskState.ERROR if sandbox == "none" else TaskState.QUEUED)


async def test_a_title_is_the_same_after_status_was_written_in_every_form_of_source() -> None:
    """Else the item would pass for another one."""
    for sample in EVERY:
        source = registry.source(sample.kind)
        if not source.has_status or sample.tracker:
            continue
        place = sample.folder / "given" / sample.place
        files = source.files(place)
        titles = {task.key: task.title for task in source.parse(files, sample.place).tasks}
        for mark in Mark:
            items = {key: ItemProgress(mark=mark, commit="a" * 40) for key in titles}
            progress = Progress(plan_id="plan_1", at=datetime(2026, 1, 5, tzinfo=UTC), items=items)
            told = {**files, **source.written(files, progress)}
            now = {task.key: task.title for task in source.parse(told, sample.place).tasks}
            assert now == titles, (sample.kind, mark)


async def test_a_plan_of_one_tag_never_takes_in_the_tasks_of_another(tmp_path: Path) -> None:
    source = TaskMasterSource()
    place = tmp_path / ".taskmaster" / "tasks" / "tasks.json"
    place.parent.mkdir(parents=True)
    state = tmp_path / ".taskmaster" / "state.json"
    tags = {
        tag: {"tasks": [{"id": 1, "title": title, "status": "pending"}]}
        for tag, title in (("master", "Add the login form"), ("other", "Pay with a card"))
    }
    place.write_text(json.dumps(tags))
    home = await Home().launch()
    home.submit(work=source.parse(source.files(place), "tasks.json"), source_kind="task_master")
    state.write_text('{"currentTag": "other"}')
    other = source.parse(source.files(place), "tasks.json")
    with raises_code("source_part_changed"):
        home.submit(work=other, source_kind="task_master", follows=True)
    state.unlink()
    lies_at(home, place)
    world = replace(home.world, source=lambda _kind: source, put_files=put_files)
    edits = Edits(world)
    [leg] = await home.turn()
    home.hand.land(leg)
    state.write_text('{"currentTag": "other"}')
    assert not await edits.take_in()
    [refused] = home.events("source_unreadable")
    assert "tasks.json is at 'other' now, and plan" in refused.payload["reason"]
    assert [task.key for task in home.all(Task)] == ["1"]
    await tell(world, home.plan().id)
    assert "done" not in place.read_text(), "no write while the file is at another tag"
    state.write_text('{"currentTag": "master"}')
    await edits.take_in()
    assert await tell(world, home.plan().id) is None
    now = json.loads(place.read_text())
    assert (now["master"]["tasks"][0]["status"], now["other"]) == ("done", tags["other"])


def test_status_is_never_written_to_an_item_with_another_title() -> None:
    source = FeatureListSource()
    features = [titled("1", "Make x.txt"), titled("2", "Make a.txt", passes=True), titled("3", "Make b.txt")]
    files = {"feature_list.json": json.dumps({"features": features}).encode()}
    items = {
        "1": ItemProgress(mark=Mark.DONE, title="Make a.txt"),
        "2": ItemProgress(mark=Mark.OPEN, title="Make b.txt"),
        "3": ItemProgress(mark=Mark.DONE, title="Make b.txt."),
    }
    progress = Progress(plan_id="plan_1", at=datetime(2026, 1, 5, tzinfo=UTC), items=items)
    told = {**files, **written(source, files, progress)}
    now = [task.mark for task in source.parse(told, "feature_list.json").tasks]
    assert now == [Mark.OPEN, Mark.DONE, Mark.DONE]
