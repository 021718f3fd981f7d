"""What headings, folders and files around a list of tasks say about it, in every form that has them."""

from pathlib import Path

import pytest
from tests.cases import each_case
from tests.unit.sources.checklists.forms import FORMS
from tests.unit.sources.laws import after, told

from loopwright.adapters import registry
from loopwright.adapters.sources.text.reading import read, recognise
from loopwright.adapters.sources.text.sections import is_manual_heading
from loopwright.ports import ItemProgress, Mark, PlannedWork

GSD = next(form.text for form in FORMS if form.path.endswith("01-01-PLAN.md"))
HEADED = (
    "# Plan\n\n## Tasks\n\n### Task 1: Say hello\n\nIn English.\n\n### Task 2: Say goodbye\n\nPolitely.\n"
)
PLANS = ["plan.md", "specs/001-a/tasks.md", "openspec/changes/a/tasks.md", ".kiro/specs/a/tasks.md"]


def at(place: Path, text: str) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return place


def work_at(place: Path) -> tuple[str, PlannedWork]:
    source = recognise(place, registry.sources())
    return source.kind, read(source, place)


@each_case(
    ("title", "manual"),
    [
        ("Manual Testing", True),
        ("Phase 4: Manual verification (owner)", True),
        ("7. User Acceptance Testing", True),
        ("Human review", True),
        ("Phase 0 — Approval", True),
        ("Final sign-off", True),
        ("Manual override of the heating", False),
        ("Human-readable output", False),
        ("Approval workflow", False),
        ("Write the manual", False),
        ("Testing and manual checks", False),
    ],
)
def test_a_heading_says_whether_a_person_does_what_is_below_it(title: str, manual: bool) -> None:
    assert is_manual_heading(title) is manual


@pytest.mark.parametrize("path", PLANS)
def test_what_is_below_a_heading_for_people_or_called_finished_is_a_question(
    path: str, tmp_path: Path
) -> None:
    text = (
        "# Plan\n\n## 1. Build\n\n- [ ] T001 Add the form\n\n## 2. Manual testing\n\n- [ ] T002 Log in\n\n"
        "## 3. Layout ✅\n\n- [ ] T003 Draw it\n\n## 4. Finished phases (done)\n\n### Text\n\n"
        "**Status:** pending\n\n- [ ] T004 Write it\n\n### Colours\n\n**Status:** ✅ COMPLETED\n\n- [ ] T005 Mix\n"
    )
    _, work = work_at(at(tmp_path / path, text))
    assert [task.manual for task in work.tasks] == [False, True, True, False, True]
    assert any("is called done or dropped" in note for note in work.notes)


@pytest.mark.parametrize("path", PLANS)
def test_a_box_without_a_space_before_wide_letters_is_a_box(path: str, tmp_path: Path) -> None:
    place = at(tmp_path / path, "# 计划\n\n- [x]（一）完成\n- [ ]实现登录\n")
    kind, work = work_at(place)
    assert [task.mark for task in work.tasks] == [Mark.DONE, Mark.OPEN]
    source = registry.source(kind)
    made = after(source, source.files(place), told({work.tasks[1].key: ItemProgress(mark=Mark.DONE)}))
    assert made[place.name].decode().startswith("# 计划\n\n- [x]（一）完成\n- [x]实现登录\n")


@pytest.mark.parametrize(
    "path",
    [
        "openspec/changes/archive/2026-01-05-greet/tasks.md",
        "conductor/archive/greet_20260105/plan.md",
        ".planning/milestones/v1-phases/01-greet/01-PLAN.md",
    ],
)
def test_nothing_is_run_that_its_tool_has_archived_wherever_it_is_named_from(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = at(
        tmp_path / path, HEADED if path.endswith("PLAN.md") else "# Plan\n\n- [x] Greet\n- [ ] Leave\n"
    )
    monkeypatch.chdir(place.parent)
    for named in (place, Path(place.name)):
        _, work = work_at(named)
        assert Mark.OPEN not in {task.mark for task in work.tasks}
        assert work.notes[-1].endswith("skipped")


def test_a_story_without_a_status_is_finished_if_the_sprint_says_so(tmp_path: Path) -> None:
    story = "# Story 1.1: Greet\n\n## Tasks / Subtasks\n\n- [ ] Say hello\n"
    place = at(tmp_path / "1-1-greet.md", story)
    at(tmp_path / "sprint-status.yaml", "development_status:\n  1-1-greet: done\n  1-2-leave: backlog\n")
    assert [task.mark for task in work_at(place)[1].tasks] == [Mark.SKIPPED]
    place.write_text(story.replace("## Tasks", "Status: in-progress\n\n## Tasks"))
    assert [task.mark for task in work_at(place)[1].tasks] == [Mark.OPEN]


def test_a_plan_of_tasks_may_be_in_another_language(tmp_path: Path) -> None:
    first = "## タスク 1: 作る\n\n- [x] **ステップ 1.1: 書く**\n\n"
    text = f"# 計画\n\n{first}## タスク 2: 試す\n\n- [ ] **ステップ 2.1: 動かす**\n"
    kind, work = work_at(at(tmp_path / "docs/ja/superpowers/plans/a.md", text))
    assert (kind, [task.mark for task in work.tasks]) == ("superpowers", [Mark.DONE, Mark.OPEN])


@each_case("text", [GSD, HEADED], ids=["elements", "headings"])
def test_a_plan_of_gsd_is_finished_by_a_summary(text: str, tmp_path: Path) -> None:
    place = at(tmp_path / ".planning/phases/01-greet/01-03a-PLAN.md", text)
    kind, work = work_at(place)
    source = registry.source(kind)
    assert (kind, work.tasks[0].key) == ("gsd", "1")
    files = source.files(place)
    (summary,) = source.created(files)
    first, *more = (task.key for task in work.tasks if task.mark is Mark.OPEN)
    done = ItemProgress(mark=Mark.DONE, commit="a91c2e4")
    assert summary not in after(source, files, told({first: done} if more else {}))
    made = after(source, files, told({first: done, **dict.fromkeys(more, done)}))
    assert summary == "01-03a-SUMMARY.md"
    assert b"**All tasks are done.**" in made[summary]
    assert b"- `a91c2e4`" in made[summary]
    assert source.parse(made, place.name).sha256 == work.sha256
    assert source.created(made) == ()
    # It is ours: a task that is opened again counts.
    again = after(source, made, told({first: ItemProgress(mark=Mark.OPEN)}))
    assert [task.key for task in source.parse(again, place.name).tasks if task.mark is Mark.OPEN] == [first]
    assert b"opened again" in again[summary]
    # Another author's says that all is done, and stays.
    theirs = {**files, summary: b"# Done\n"}
    assert {task.mark for task in source.parse(theirs, place.name).tasks} == {Mark.DONE}
    assert summary not in source.written(theirs, told({first: ItemProgress(mark=Mark.OPEN)}))


def test_every_plan_of_a_gsd_phase_is_read_whatever_it_is_called(tmp_path: Path) -> None:
    names = ("01-01-PLAN.md", "01-02a-PLAN.md", "01-gap-fixes-PLAN.md")
    for name in names:
        at(tmp_path / ".planning/phases/01-greet" / name, GSD)
    kind, work = work_at(tmp_path / ".planning/phases/01-greet")
    assert (kind, len(work.tasks)) == ("gsd", 9)


def test_two_files_of_a_backlog_with_one_id_are_two_tasks(tmp_path: Path) -> None:
    folder = tmp_path / "backlog/tasks"
    for name, title in (("task-1 - a.md", "A"), ("task-1 - b.md", "B")):
        at(folder / name, f"---\nid: task-1\ntitle: {title}\nstatus: To Do\n---\n")
    at(folder / "task-2 - c.md", "---\nid: task-2\ntitle: C\nstatus: To Do\ndependencies: [task-1]\n---\n")
    _, work = work_at(tmp_path / "backlog")
    first, second, third = work.tasks
    assert (first.key, second.key) == ("task-1", "task-1~task-1-b")
    assert third.depends_on == ("task-1", "task-1~task-1-b")
    source = registry.source("backlog_md")
    made = source.written(
        source.files(tmp_path / "backlog"), told({second.key: ItemProgress(mark=Mark.DONE)})
    )
    assert set(made) == {"tasks/task-1 - b.md"}


def test_a_list_of_what_is_completed_names_its_phases(tmp_path: Path) -> None:
    text = (
        "# Renderer\n\n## Progress\n\n**Completed here:**\n\n- Phase 1: Contract\n\n**Remaining:**\n\n"
        "- Phase 2: Text\n\n## Phases\n\n### Phase 1: Contract\n\nWords.\n\n### Phase 2: Text\n\nWords.\n\n"
        "### Phase 3: Manual testing\n\nWords.\n"
    )
    kind, work = work_at(at(tmp_path / "ROADMAP.md", text))
    marks = [(task.mark, task.manual) for task in work.tasks]
    assert (kind, marks) == ("thoughts", [(Mark.DONE, False), (Mark.OPEN, False), (Mark.OPEN, True)])


@each_case("fence", ["```", "```json\n{}\n```\n\n```python"], ids=["closed by the end", "behind another"])
def test_a_status_in_code_and_a_block_without_an_end_that_hides_no_work_say_nothing(
    fence: str, tmp_path: Path
) -> None:
    sample = "```yaml\nstatus: completed\n```\n\n"
    text = f"# A\n\n{sample}## Phase 1: Form\n\nWords.\n\n## Notes\n\n{fence}\n    # a comment\n"
    _, work = work_at(at(tmp_path / "plans/a.md", text))
    assert [task.mark for task in work.tasks] == [Mark.OPEN]


@pytest.mark.parametrize("path", PLANS)
def test_verification_beside_tasks_says_what_must_be_true(path: str, tmp_path: Path) -> None:
    text = "# Plan\n\n## 1. Form\n\n### Tasks\n\n- [ ] T001 Add it\n\n### Verification\n\n- [ ] It is there\n"
    _, work = work_at(at(tmp_path / path, text))
    assert [task.title for task in work.tasks] == [work.tasks[0].title]
    assert any('under "Verification" are read as text' in note for note in work.notes)


@each_case(
    ("headings", "is_task"),
    [
        (("Task 1: Add it", "Final Verification"), False),
        (("Tasks", "Final verification"), False),
        (("Task 1", "Verification"), False),
        (("Phase 1: Add it", "Final Verification"), True),
        (("Tasks for you", "Final Verification"), True),
        (("Task 1: Add it", "Task 2: Final Verification"), True),
    ],
)
def test_a_final_verification_beside_tasks_is_no_task(
    headings: tuple[str, str], tmp_path: Path, *, is_task: bool
) -> None:
    text = "# Plan\n\n## {}\n\n- [ ] Add it\n\n## {}\n\n- [ ] All tests pass\n".format(*headings)
    _, work = work_at(at(tmp_path / "plan.md", text))
    assert ([task.title for task in work.tasks][1:] == ["All tests pass"]) is is_task
    assert any("are read as text" in note for note in work.notes) is not is_task


def test_a_task_list_without_tasks_that_is_finished_has_nothing_to_do(tmp_path: Path) -> None:
    text = "# Tasks\n\nStatus: Implemented\n\n## Completed\n\n- Read the code\n"
    _, work = work_at(at(tmp_path / "specs/005-a/tasks.md", text))
    assert (work.tasks, len(work.notes)) == ((), 1)


def test_codes_with_a_point_are_whole_names(tmp_path: Path) -> None:
    text = "# Plan\n\n- [x] P0-1.1 Add it\n- [ ] P0-1.2 Show it\n"
    assert [task.key for task in work_at(at(tmp_path / "plan.md", text))[1].tasks] == ["P0-1.1", "P0-1.2"]


def test_records_of_a_tracker_for_many_agents_are_no_work(tmp_path: Path) -> None:
    rows = '{"id":"hq-mayor-role","title":"Mayor","status":"open","issue_type":"task","labels":["gt:role"]}\n'
    place = at(tmp_path / ".beads/issues.jsonl", rows + '{"id":"a","title":"A","status":"open"}\n').parent
    assert [task.key for task in work_at(place)[1].tasks] == ["a"]


def test_tasks_of_a_specification_may_be_headings_without_a_box(tmp_path: Path) -> None:
    text = "# Tasks\n\n## Task 1: Say hello\n\nIn English.\n\n## Task 2: Say goodbye\n\nPolitely.\n"
    kind, work = work_at(at(tmp_path / "specs/009-greet/tasks.md", text))
    assert (kind, len(work.tasks)) == ("speckit", 2)
