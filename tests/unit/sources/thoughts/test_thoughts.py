"""Phase plans: which files they are, in which order, and where their status is kept."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.cases import each_case
from tests.unit.sources.golden import DATA, files_in, progress, told
from tests.wording_plugin import Wording

from loopwright.adapters import registry
from loopwright.adapters.sources.text.plan_file import MAX_BYTES
from loopwright.adapters.sources.text.reading import read, recognise
from loopwright.adapters.sources.thoughts.thoughts import ThoughtsSource
from loopwright.adapters.sources.thoughts.thoughts_files import phase_sets
from loopwright.core.values.errors import BadPlan
from loopwright.ports import ItemProgress, Mark, Progress

SOURCE = ThoughtsSource()


def sets(*names: str) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    found = phase_sets(names)
    return [(one.prefix, one.overviews, tuple(phase.name for phase in one.phases)) for one in found]


@pytest.mark.capability("C009")
@pytest.mark.trap("date in a name")
def test_dates_are_no_phase_numbers_and_nothing_is_found_twice() -> None:
    assert sets(
        "2026-02-01-b-01-x.md",
        "2026-02-01-b-00-overview.md",
        "2026-01-05-a-10-late.md",
        "2026-01-05-a-02-early.md",
        "2026-01-05-a-overview.md",
        "2026-01-05-a-00-overview.md",
        "2026-01-06-alone.md",
        "2026-01-07-01-alone.md",
        "notes.txt",
    ) == [
        (
            "2026-01-05-a",
            ("2026-01-05-a-00-overview.md", "2026-01-05-a-overview.md"),
            ("2026-01-05-a-02-early.md", "2026-01-05-a-10-late.md"),
        ),
        ("2026-02-01-b", ("2026-02-01-b-00-overview.md",), ("2026-02-01-b-01-x.md",)),
    ]


@pytest.mark.trap("prefix of an id")
def test_a_prefix_is_not_another_ones_beginning() -> None:
    assert sets(
        "f-overview.md", "f-01-a.md", "f-b-overview.md", "f-b-01-c.md", "f1-01-d.md", "f10-01-e.md"
    ) == [
        ("f", ("f-overview.md",), ("f-01-a.md",)),
        ("f-b", ("f-b-overview.md",), ("f-b-01-c.md",)),
    ]
    assert sets("00-overview.md", "01-a.md", "02-b.md") == [("", ("00-overview.md",), ("01-a.md", "02-b.md"))]
    twelve = ("2026-01-05-12-factor-00-overview.md", "2026-01-05-12-factor-01-config.md")
    assert sets(*twelve) == [("2026-01-05-12-factor", twelve[:1], twelve[1:])]


@pytest.mark.capability("C026")
def test_each_phase_is_a_task_that_gets_only_its_own_text() -> None:
    work = SOURCE.parse(files_in(DATA / "thoughts/status_lines/given"), "thoughts/plans")
    assert (work.title, work.context) == ("Twelve factors", "# Twelve factors\n\nWhy we do it.")
    one, two, ten = work.tasks
    assert (one.key, one.title) == ("2026-01-05-12-factor-01-config", "Phase 1: Config")
    assert two.description == "Logs go to stdout.\nNo heading here."
    assert "environment" not in two.description + work.context
    assert (one.depends_on, two.depends_on, ten.depends_on) == ((), (one.key,), (two.key,))


def test_a_tick_in_the_overview_is_the_status_where_it_names_the_file() -> None:
    files = files_in(DATA / "thoughts/checklist/given")
    marks = {task.key: (task.mark, task.commit) for task in SOURCE.parse(files, "plans").tasks}
    assert marks == {
        "auth-01-tokens": (Mark.OPEN, None),
        "auth-02-login": (Mark.DONE, "1234567"),
        "auth-03-logout": (Mark.OPEN, None),
    }


def test_why_a_phase_is_blocked_stands_below_its_box_and_is_read_again() -> None:
    overview = b"# Auth\n\n* [ ] auth-01-tokens\n  and words\n    * of mine\n* [ ] auth-02-login\n  - Blocked: no key\n"
    files = {"auth-overview.md": overview, "auth-01-tokens.md": b"a\n", "auth-02-login.md": b"b\n"}
    blocked = {
        "auth-01-tokens": {"mark": "blocked", "reason": "it is\nred"},
        "auth-02-login": {"mark": "blocked", "reason": "no key"},
    }
    there = told(SOURCE, files, progress({"items": blocked}))
    assert there["auth-overview.md"].decode().splitlines()[2:] == [
        "* [!] auth-01-tokens",
        "  and words",
        "    * of mine",
        "  - Blocked: it is red <!-- loopwright -->",
        "* [!] auth-02-login",
        "  - Blocked: no key",
    ]
    work = SOURCE.parse(there, "plans")
    assert [task.reason for task in work.tasks] == ["it is red", "no key"]
    assert work.sha256 == SOURCE.parse(files, "plans").sha256
    assert SOURCE.written(there, progress({"items": blocked})) == {}
    blocked["auth-01-tokens"]["reason"] = "it is still red"
    again = told(SOURCE, there, progress({"items": blocked}))
    assert [task.reason for task in SOURCE.parse(again, "plans").tasks] == ["it is still red", "no key"]
    free = progress({"items": {key: {"mark": "open"} for key in blocked}})
    assert told(SOURCE, again, free) == files


def test_taking_the_status_back_leaves_the_very_bytes() -> None:
    files = files_in(DATA / "thoughts/status_lines/given")
    keys = [task.key for task in SOURCE.parse(files, "plans").tasks]
    for mark in Mark:
        there = told(SOURCE, files, progress({"items": {key: {"mark": mark} for key in keys}}))
        assert {task.mark for task in SOURCE.parse(there, "plans").tasks} == {mark}
        assert told(SOURCE, there, progress({"items": {key: {"mark": "open"} for key in keys}})) == files


def test_a_folder_an_overview_and_one_phase_are_found(tmp_path: Path) -> None:
    sources = registry.sources()
    plans = tmp_path / "thoughts" / "shared" / "plans"
    plans.mkdir(parents=True)
    for name, content in files_in(DATA / "thoughts/checklist/given").items():
        (plans / name).write_bytes(content)
    copies = tmp_path / "thoughts" / "searchable" / "shared" / "plans"
    copies.mkdir(parents=True)
    linked = tmp_path / "thoughts" / "me" / "plans"
    linked.mkdir(parents=True)
    for path in plans.iterdir():
        os.link(path, copies / path.name)
        os.link(path, linked / path.name)
    for place in (plans, plans / "auth-overview.md", tmp_path / "thoughts"):
        assert recognise(place, sources).kind == "thoughts"
        assert len(read(SOURCE, place).tasks) == 3
    alone = plans / "auth-02-login.md"
    assert recognise(alone, sources).kind == "thoughts"
    (task,) = read(SOURCE, alone).tasks
    assert (task.key, task.depends_on) == ("auth-02-login", ())
    (plans / "auth-overview.md").unlink()
    assert [one.key for one in read(SOURCE, alone).tasks] == ["auth-02-login"]
    assert not SOURCE.recognises(tmp_path)


def test_what_is_wrong_is_told_with_its_file(tmp_path: Path, wording: Wording) -> None:
    def problems(**files: str) -> tuple[str, ...]:
        named = {f"p-{name[1:].replace('_', '-')}.md": text.encode() for name, text in files.items()}
        with pytest.raises(BadPlan) as caught:
            SOURCE.parse(named, "plans")
        return caught.value.problems

    assert problems(_01_a="x", _01_b="y") == ("plans/p-01-b.md:1: p-01-a.md is phase 01 too",)
    wording(problems(_01_a="x", _02_b=" \n"))
    wording(problems(_01_a="```\n# A\n", _02_b="x"))
    assert problems(_01_a="x" * 200_001, _02_b="x")[0].endswith("at most 200000 characters")
    with pytest.raises(BadPlan, match="there is no overview here"):
        SOURCE.files(tmp_path)


def filled(folder: Path, **files: str) -> Path:
    plans = folder / "thoughts" / "shared" / "plans"
    plans.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (plans / f"{name.lstrip('_').replace('_', '-')}.md").write_text(text)
    return plans


def refused(place: Path) -> tuple[str, ...]:
    with pytest.raises(BadPlan) as caught:
        read(SOURCE, place)
    return tuple(one.rpartition("plans/")[2] for one in caught.value.problems)


@pytest.mark.trap("date in a name")
def test_a_date_with_its_day_first_is_no_phase_either() -> None:
    names = (
        "05-01-2026-c-01-q.md",
        "05-01-2026-c-02-r.md",
        "04-02-2026-b-overview.md",
        "04-02-2026-b-01-a.md",
    )
    found = [(one.prefix, [phase.number for phase in one.phases]) for one in phase_sets(names)]
    assert found == [("05-01-2026-c", [1, 2]), ("04-02-2026-b", [1])]


def test_what_is_called_like_a_plan_and_is_left_out_is_said(tmp_path: Path) -> None:
    sign_up = {"_2026_01_05_a_overview": "# A\n", "_2026_01_05_a_01_x": "x\n", "_2026_01_05_a_2_y": "\0"}
    plans = filled(tmp_path, **sign_up, _2026_01_06_b="b\n", notes="n\n", _2026_01_05_ab="n\n")
    for place, left in (
        (plans, ["2026-01-05-a-2-y.md", "2026-01-05-ab.md", "2026-01-06-b.md"]),
        (plans / "2026-01-05-a-overview.md", ["2026-01-05-a-2-y.md"]),
        (plans / "2026-01-05-a-01-x.md", []),
    ):
        work = read(SOURCE, place)
        assert [task.key for task in work.tasks] == ["2026-01-05-a-01-x"]
        named = [note.rpartition("plans/")[2].partition(" ")[0] for note in work.notes]
        assert (named, all("is left out: no phase" in note for note in work.notes)) == (left, True)
        assert set(SOURCE.files(place)) == {"2026-01-05-a-overview.md", "2026-01-05-a-01-x.md"}


def test_a_phase_that_an_overview_lists_has_to_be_there_as_long_as_it_is_to_be_done(
    tmp_path: Path, wording: Wording
) -> None:
    listed = (
        "# A\n\n- [ ] a-01-x.md\n- [{}] [Z](./a-02-z.md)\n- [ ] a-2-y.md\n- [ ] see README.md, a-b-01-c.md\n"
    )
    files = {"a_overview": listed.format(" "), "a_01_x": "x\n", "a_2_y": "y\n"}
    plans = filled(tmp_path, **files)
    wording(refused(plans))
    assert len(read(SOURCE, plans / "a-01-x.md").tasks) == 1, "one phase by itself needs no other"
    filled(tmp_path, a_overview=listed.format("x").replace("- [ ] a-2-y.md", "-"))
    assert len(read(SOURCE, plans).tasks) == 1, "what is done may be gone"


@pytest.mark.capability("C010")
def test_one_file_that_is_named_is_a_plan_by_itself(tmp_path: Path) -> None:
    plans = filled(
        tmp_path, _2026_01_06_b_01_only="# Only\n\nDo it.\n", _2026_01_07_c="Do this.\n", words="W\n"
    )
    for name in ("2026-01-06-b-01-only", "2026-01-07-c"):
        place = plans / f"{name}.md"
        assert recognise(place, registry.sources()).kind == "thoughts"
        assert [(task.key, task.depends_on) for task in read(SOURCE, place).tasks] == [(name, ())]
    assert [task.key for task in read(SOURCE, plans / "words.md").tasks] == ["words"]
    (tmp_path / "words.md").write_text("W\n")
    with pytest.raises(BadPlan, match="nothing here is a known form of work"):
        recognise(tmp_path / "words.md", registry.sources())
    assert [task.key for task in read(SOURCE, tmp_path / "words.md").tasks] == ["words"], "--source says so"
    filled(tmp_path, _2026_01_08_d="- [ ] a box\n", _2026_01_09_e_overview="- [ ] 2026-01-09-e-01-f.md\n")
    assert recognise(plans / "2026-01-08-d.md", registry.sources()).kind == "plan_md"
    assert not SOURCE.recognises(plans / "2026-01-09-e-overview.md"), "what it lists is not there"
    with pytest.raises(BadPlan, match="there is no overview here with phases"):
        read(SOURCE, plans / "2026-01-09-e-overview.md")


ONE_FILE = """\
# Sign-up

## Overview

People cannot sign up.

## Phase 1: The form

Build it.

### Success Criteria:

#### Automated Verification:
- [ ] Tests pass: `npm test -- form`

#### Manual Verification:
- [ ] It looks right

Phase 2: The client
-------------------

Call it.

## References

- the ticket"""


@pytest.mark.capability("C010")
def test_the_phases_of_one_file_are_tasks_with_their_own_text(tmp_path: Path, wording: Wording) -> None:
    plans = filled(tmp_path, sign_up=ONE_FILE)
    place = plans / "sign-up.md"
    assert recognise(place, registry.sources()).kind == "thoughts"
    work = read(SOURCE, place)
    one, two = work.tasks
    assert (work.title, one.key, two.key, two.depends_on) == ("Sign-up", "phase-1", "phase-2", ("phase-1",))
    assert (one.title, one.line, [run.command for run in one.acceptance]) == (
        "Phase 1: The form",
        7,
        ["npm test -- form"],
    )
    assert one.criteria == ("Tests pass: `npm test -- form`",), "a person checks how it looks"
    wording(work.notes)
    assert two.description == "Phase 2: The client\n-------------------\n\nCall it."
    assert (
        work.context == "# Sign-up\n\n## Overview\n\nPeople cannot sign up.\n\n## References\n\n- the ticket"
    )
    files = SOURCE.files(place)
    for mark in Mark:
        items = {"phase-1": {"mark": mark, "commit": "a" * 40}, "phase-2": {"mark": mark, "reason": "no key"}}
        there = told(SOURCE, files, progress({"items": items}))
        assert SOURCE.written(there, progress({"items": items})) == {}
        again = SOURCE.parse(there, "sign-up.md")
        assert {task.mark for task in again.tasks} == {mark}
        assert again.sha256 == work.sha256
        back = {key: {"mark": "open"} for key in items}
        assert told(SOURCE, there, progress({"items": back})) == files
    done = told(SOURCE, files, progress({"items": {"phase-2": {"mark": "done", "commit": "a" * 40}}}))
    assert "client\n-------------------\n\n**Status**: done in aaaaaaaaaaaa <!-- loopwright -->\n\nCall" in (
        done["sign-up.md"].decode()
    )
    assert SOURCE.parse(done, "sign-up.md").tasks[1].commit == "a" * 12


def test_a_file_that_is_itself_a_phase_is_not_taken_apart(tmp_path: Path) -> None:
    plans = filled(tmp_path, part="# Phase 3: X\n\n## Phase 1\n\na\n")
    assert [task.key for task in read(SOURCE, plans / "part.md").tasks] == ["part"]


@each_case(
    ("first", "second", "keys"),
    [
        ("Module 8: A", "Module 9: B", ("module-8", "module-9")),
        ("Behaviour 1: A", "Behavior 2: B", ("behavior-1", "behavior-2")),
        ("M0 — A", "M1 — B", ("milestone-0", "milestone-1")),
        ("Wave 1：A", "Wave 2：B", ("wave-1", "wave-2")),
        ("第一阶段：A", "第二阶段：B", ("phase-一", "phase-二")),
        ("フェーズ1: A", "フェーズ2: B", ("phase-1", "phase-2")),
    ],
)
def test_phases_have_many_names(tmp_path: Path, first: str, second: str, keys: tuple[str, ...]) -> None:
    plans = filled(tmp_path, once=f"# T\n\n## {first}\n\na\n\n## {second}\n\nb\n\n## Notes\n\nc\n")
    place = plans / "once.md"
    assert recognise(place, registry.sources()).kind == "thoughts"
    assert tuple(task.key for task in read(SOURCE, place).tasks) == keys


def test_any_file_among_the_plans_of_thoughts_is_a_plan(tmp_path: Path) -> None:
    folder = tmp_path / "thoughts" / "shared" / "plans"
    folder.mkdir(parents=True)
    for name in ("login.md", "README.md"):
        (folder / name).write_text("# Log in\n\nBuild the form.\n")
    assert [task.title for task in read(SOURCE, folder / "login.md").tasks] == ["Log in"]
    assert (SOURCE.recognises(folder / "login.md"), SOURCE.recognises(folder / "README.md")) == (True, False)


def test_what_is_left_out_is_named_without_being_read(tmp_path: Path, wording: Wording) -> None:
    plans = filled(tmp_path, _2026_01_05_a_overview="# A\n", _2026_01_05_a_01_x="x\n")
    large = plans / "2026-01-04-transcript.md"
    with large.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    (plans / "2026-01-05-a-2-y.md").symlink_to(large)
    work = read(SOURCE, plans)
    assert [task.key for task in work.tasks] == ["2026-01-05-a-01-x"]
    assert [note.partition(" is left out")[0] for note in work.notes] == ["plans/2026-01-04-transcript.md"]
    (note,) = read(SOURCE, plans / "2026-01-05-a-overview.md").notes
    wording(note)


@each_case("level", ["##", "###"])
@each_case("more", ["Phase 1 rollback", "Phase 1 risks and notes", "**Phase 1** in production"])
def test_a_heading_that_goes_on_about_a_phase_is_its_text(tmp_path: Path, level: str, more: str) -> None:
    text = f"# T\n\n{level} Phase 1: A\n\na\n\n{level} {more}\n\nback\n\n{level} Phase 2 - B\n\nb\n"
    plans = filled(tmp_path, once=text)
    one, two = read(SOURCE, plans / "once.md").tasks
    assert (one.key, one.description) == ("phase-1", f"{level} Phase 1: A\n\na\n\n{level} {more}\n\nback")
    assert (two.key, two.description) == ("phase-2", f"{level} Phase 2 - B\n\nb")
    files = SOURCE.files(plans / "once.md")
    done = {key: {"mark": "done", "commit": "a" * 40} for key in ("phase-1", "phase-2")}
    there = told(SOURCE, files, progress({"items": done}))
    assert there["once.md"].count(b"**Status**") == 2
    again = SOURCE.parse(there, "once.md")
    assert ([task.mark for task in again.tasks], again.sha256) == (
        [Mark.DONE, Mark.DONE],
        read(SOURCE, plans / "once.md").sha256,
    )


def test_what_is_said_about_a_phase_elsewhere_is_told_to_all(tmp_path: Path) -> None:
    plans = filled(tmp_path, once="## Phase 1: A\n\na\n\n## Phase 2: B\n\nb\n\n## Phase 1 rollback\n\nback\n")
    work = read(SOURCE, plans / "once.md")
    assert [task.description for task in work.tasks] == ["## Phase 1: A\n\na", "## Phase 2: B\n\nb"]
    assert work.context == "## Phase 1 rollback\n\nback"


@each_case("again", ["Phase 1", "Phase 1:", "Phase 1: B", "Phase 1 - B", "Phase 1 — B"])
def test_a_phase_whose_number_is_used_again_gets_a_name_of_its_own(tmp_path: Path, again: str) -> None:
    plans = filled(tmp_path, twice=f"## Phase 1: A\n\na\n\n## {again}\n\nb\n")
    work = read(SOURCE, plans / "twice.md")
    assert [task.key for task in work.tasks] == ["phase-1", "phase-1~2"]
    assert work.notes == ("twice.md:5: there is a phase-1 already, so this phase is called phase-1~2",)


NAMES = ("p-overview.md", "p-01-a.md", "p-02-b.md")
lines = st.sampled_from(
    [
        "",
        "# Title",
        "words",
        "---",
        "Under\n=====",
        "- [ ] p-01-a",
        "  - Blocked: mine",
        "  - [ ] p-02-b",
        "- [x] see p-02-b.md <!-- 1234567 -->",
        "- [~] p-1",
    ]
)
contents = st.tuples(st.lists(lines, max_size=6), st.sampled_from(["\n", "\r\n"]), st.booleans()).map(
    lambda drawn: (drawn[1].join(["first", *drawn[0]]) + (drawn[1] if drawn[2] else "")).encode()
)
standings = st.builds(
    ItemProgress,
    mark=st.sampled_from(Mark),
    commit=st.sampled_from([None, "abc1234def56789", "fff1234def56789"]),
    reason=st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
)


@settings(max_examples=60, deadline=None)
@example(
    (b"first\n  - [ ] p-02-b", b"first", b"first"),
    (ItemProgress(mark=Mark.OPEN), ItemProgress(mark=Mark.BLOCKED, reason="!")),
    False,
)
@example(
    (b"first\n- [x] see p-02-b.md <!-- 1234567 -->", b"first", b"first"),
    (ItemProgress(mark=Mark.OPEN), ItemProgress(mark=Mark.BLOCKED, reason="1")),
    False,
)
@given(st.tuples(contents, contents, contents), st.tuples(standings, standings), st.booleans())
def test_what_is_written_is_what_is_read_and_can_be_taken_back(
    texts: tuple[bytes, ...], items: tuple[ItemProgress, ...], remark: bool
) -> None:
    given_files = dict(zip(NAMES, texts, strict=True))
    before = SOURCE.parse(given_files, "plans")
    step = replace(progress({}), items=dict(zip(("p-01-a", "p-02-b"), items, strict=True)))
    there = told(SOURCE, given_files, step)
    assert SOURCE.written(there, step) == {}
    after = SOURCE.parse(there, "plans")
    assert [task.mark for task in after.tasks] == [item.mark for item in items]
    assert (after.sha256, after.context) == (before.sha256, before.context)
    assert [task.description for task in after.tasks] == [task.description for task in before.tasks]
    if remark:
        there["p-02-b.md"] += b"\nA person's remark."
    back = {task.key: ItemProgress(mark=task.mark, commit=task.commit) for task in before.tasks}
    restored = told(SOURCE, there, replace(step, items=back))
    if remark:
        assert restored["p-02-b.md"].endswith(b"\nA person's remark.")
    elif not any(task.commit for task in before.tasks):
        assert restored == given_files


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(contents, contents, contents),
    st.tuples(standings, standings),
    st.tuples(standings, standings),
    st.lists(st.sampled_from(NAMES), max_size=3),
)
def test_a_persons_edits_between_two_writes_survive(
    texts: tuple[bytes, ...],
    first: tuple[ItemProgress, ...],
    then: tuple[ItemProgress, ...],
    edited: list[str],
) -> None:
    """Between two writes somebody writes below and above what is there, and adds a phase."""

    def step(items: tuple[ItemProgress, ...]) -> Progress:
        return replace(progress({}), items=dict(zip(("p-01-a", "p-02-b"), items, strict=True)))

    there = told(SOURCE, dict(zip(NAMES, texts, strict=True)), step(first))
    for n, name in enumerate(edited):
        there[name] = f"Above {n}.\n\n".encode() + there[name] + f"\nBelow {n}.".encode()
    there["p-03-new.md"] = b"A new phase.\n"
    before = SOURCE.parse(there, "plans")
    last = told(SOURCE, there, step(then))
    after = SOURCE.parse(last, "plans")
    assert [task.description for task in after.tasks] == [task.description for task in before.tasks]
    assert [task.mark for task in after.tasks] == [*(item.mark for item in then), before.tasks[-1].mark]
    for n, name in enumerate(edited):
        assert f"Above {n}.".encode() in last[name]
        assert f"Below {n}.".encode() in last[name]
    assert last["p-03-new.md"] == there["p-03-new.md"]
