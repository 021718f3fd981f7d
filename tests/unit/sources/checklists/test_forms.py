"""What each Markdown form says about order, optional and manual tasks, documents and dependencies."""

from pathlib import Path

import pytest
from tests.cases import each_case
from tests.unit.sources.checklists.forms import FORMS, ROADMAP
from tests.unit.sources.laws import after, refused, told
from tests.wording_plugin import Wording

from loopwright.adapters import registry
from loopwright.adapters.sources.folders import meant
from loopwright.adapters.sources.text.reading import read, recognise
from loopwright.adapters.sources.text.titles import is_manual
from loopwright.ports import ItemProgress, Mark, PlannedTask, PlannedWork

TEXTS = {form.kind: form.text for form in reversed(FORMS)}


def parsed(kind: str, text: str | None = None, name: str = "work/tasks.md") -> PlannedWork:
    content = (TEXTS[kind] if text is None else text).encode()
    return registry.source(kind).parse({name.rpartition("/")[2]: content}, name)


def tasks(work: PlannedWork) -> dict[str, PlannedTask]:
    return {task.key: task for task in work.tasks}


def laid(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        path = folder / name.replace("__", "/").replace("_md", ".md")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_spec_kit_runs_in_file_order_and_marked_neighbours_together() -> None:
    found = tasks(parsed("speckit"))
    assert found["T002"].after == found["T003"].after == ("T001",)
    assert found["T004"].after == ("T002", "T003")
    assert found["T005"].depends_on == ("T002", "T003")
    assert (found["T003"].title, found["T005"].title) == (
        "Configure the types in mypy.ini",
        "Create the model in src/model.py (depends on T002, T003)",
    )
    assert found["T006"].manual
    assert not found["T005"].manual


def test_a_task_gets_the_text_of_the_phases_around_it() -> None:
    found = tasks(parsed("speckit"))
    assert found["T005"].section == (
        "## Phase 2: User Story 1 - Say hello (Priority: P1)\n\n**Goal**: A user is greeted\n\n### Implementation"
    )
    assert "- [ ] with a name" in found["T005"].description
    assert found["T005"].phase == "Phase 2: User Story 1 - Say hello (Priority: P1)"


def test_a_section_without_codes_is_named_and_not_run(wording: Wording) -> None:
    wording([note for note in parsed("speckit").notes if "Dependencies" in note])


def test_headings_with_codes_are_tasks_and_their_boxes_criteria() -> None:
    text = (
        "# Tasks\n\n### T001: Add it [P]\n\n**Acceptance**:\n- [x] `make test` passes\n- [ ] It is fast\n\n"
        "### T002: Ship it\n\n- [x] Shipped\n"
    )
    found = tasks(parsed("speckit", text))
    assert (found["T001"].title, found["T001"].mark, found["T002"].mark) == ("Add it", Mark.OPEN, Mark.DONE)
    assert found["T001"].criteria == ("`make test` passes", "It is fast")
    assert [gate.command for gate in found["T001"].acceptance] == ["make test"]


def test_the_documents_beside_a_file_are_named(tmp_path: Path) -> None:
    laid(
        tmp_path,
        specs__001__tasks_md=TEXTS["speckit"],
        specs__001__spec_md="x",
        specs__001__plan_md="- [ ] x\n",
    )
    place = meant(tmp_path / "specs/001", registry.sources())
    source = recognise(place, registry.sources())
    assert (source.kind, read(source, place).documents) == ("speckit", ("spec.md", "plan.md"))


def test_a_number_that_occurs_twice_gets_the_name_of_its_section(wording: Wording) -> None:
    work = parsed("openspec")
    wording(" ".join(work.notes))
    assert work.title == "work"


def test_kiro_skips_optional_tasks_and_hides_optional_parts(wording: Wording) -> None:
    work = parsed("kiro")
    found = tasks(work)
    assert found["4"].mark is Mark.SKIPPED
    assert "property" not in found["2"].description
    assert "2.1 Create the model" in found["2"].description
    lines = TEXTS["kiro"].splitlines()
    places = [note.split(":")[1] for note in work.notes]
    assert ["*" in lines[int(place) - 1] for place in places] == [True, True]
    wording([note.split(": ", 1)[1].partition(";")[0].partition(":")[0] for note in work.notes])
    required = tasks(parsed("kiro", TEXTS["kiro"].replace("[ ]* 4", "[ ] 4")))
    assert required["4"].mark is Mark.OPEN


def test_in_kiro_a_parent_beside_its_parts_comes_after_them(wording: Wording) -> None:
    found = tasks(parsed("kiro"))
    assert found["5"].after == ("5.1", "5.2")
    assert found["5.1"].after == found["5.2"].after == ("4",)
    wording(found["5"].description)
    assert not found["3"].manual


def test_kiro_is_told_that_a_task_is_in_progress() -> None:
    source = registry.source("kiro")
    made = after(source, {"tasks.md": TEXTS["kiro"].encode()}, told({"5": ItemProgress(mark=Mark.RUNNING)}))
    assert "- [-] 5. Wire everything" in made["tasks.md"].decode()


@each_case(
    "said",
    ["Dependencies: 1, 2", "**Depends on**: Task 1 and Task 2", "_Depends: 1-2_", "- Blockers: #1, #2"],
)
def test_dependencies_are_read_in_many_words(said: str) -> None:
    work = parsed("kiro", f"- [ ] 1. a\n- [ ] 2. b\n- [ ] 3. c\n  {said}\n")
    assert tasks(work)["3"].depends_on == ("1", "2")


def test_what_only_looks_like_a_dependency_is_text() -> None:
    work = parsed("kiro", "- [ ] 1. a\n- [ ] 2. b\n  - Dependencies: zod 1, react 18\n  - requires 1 retry\n")
    assert (tasks(work)["2"].depends_on, work.notes) == ((), ())


def test_tasks_that_wait_for_each_other_run_in_file_order_with_a_note(wording: Wording) -> None:
    work = parsed("speckit", "- [ ] T001 a (depends on T002)\n- [ ] T002 b (depends on T001, T009)\n")
    assert [task.depends_on for task in work.tasks] == [(), ()]
    wording(" ".join(work.notes))
    wording(" ".join(work.notes))


def test_an_exec_plan_gives_its_text_to_every_task() -> None:
    work = parsed("execplan")
    assert [task.title for task in work.tasks][:2] == [
        "Added the model.",
        "Add the view (completed: layout; remaining: text)",
    ]
    assert "A user sees a greeting." in work.context
    assert "Write the tests." not in work.context


def test_a_manual_of_exec_plans_is_not_one(tmp_path: Path) -> None:
    text = (
        "# ExecPlans\n\n## Progress\n\nUse boxes.\n\n## Decision Log\n\n## Surprises\n\n```md\n- [ ] x\n```\n"
    )
    path = laid(tmp_path, PLANS_md=text) / "PLANS.md"
    assert not registry.source("execplan").recognises(path)


def test_a_plan_of_headings_gives_its_goal_to_every_task() -> None:
    work = parsed("superpowers", name="plans/greeting.md")
    assert "**Goal:** Greet every user" in work.context
    assert [task.after for task in work.tasks] == [(), ("1",), ("2",)]
    assert tasks(work)["3"].manual


def test_a_plan_whose_boxes_are_tasks_is_a_checkbox_plan(tmp_path: Path) -> None:
    laid(
        tmp_path,
        work_md="### Task 1: Part\n\n- [ ] Do this\n- [ ] Do that\n",
        other_md="### Task 1: Part\n\nWords.\n",
        thoughts__plans__a_md="### Task 1: Part\n\nWords.\n",
    )
    kinds = [recognise(tmp_path / name, registry.sources()).kind for name in ("work.md", "other.md")]
    assert kinds == ["plan_md", "superpowers"]
    assert not registry.source("superpowers").recognises(tmp_path / "thoughts/plans/a.md")


def test_gsd_reads_checks_and_checkpoints() -> None:
    found = tasks(parsed("gsd", name="01-01-PLAN.md"))
    assert [gate.command for gate in found["2"].acceptance] == ["test -s view.txt"]
    assert (found["3"].manual, found["3"].title, found["3"].acceptance) == (True, "The page", ())


def test_a_phase_of_a_roadmap_has_its_details_and_its_plans() -> None:
    source = registry.source("gsd")
    files = {"ROADMAP.md": ROADMAP.encode()}
    work = source.parse(files, ".planning/ROADMAP.md")
    _, view, _ = work.tasks
    assert view.title == "Phase 2: View - How it looks"
    assert view.criteria == ("The page says hello", "`grep -q hello page.txt`")
    assert "A user sees the words" in view.section
    assert [note.partition(": ")[2] for note in work.notes] == [
        'the boxes under "Phase 999.1: Sounds (BACKLOG)" are read as text, not as tasks'
    ]
    written = after(source, files, told({"phase-2": ItemProgress(mark=Mark.DONE)}))["ROADMAP.md"].decode()
    assert "- [x] **Phase 2" in written
    assert "- [x] 02-02-PLAN.md" in written
    assert "- [ ] 01-01-PLAN.md" in written
    assert "- [ ] TBD" in written


def test_a_phase_whose_plans_are_all_ticked_is_a_question() -> None:
    text = ROADMAP.replace("- [ ] 02-02", "- [x] 02-02")
    work = registry.source("gsd").parse({"ROADMAP.md": text.encode()}, ".planning/ROADMAP.md")
    assert [task.manual for task in work.tasks] == [False, True, False]


def test_a_task_of_gsd_without_a_name_is_called_by_its_first_words() -> None:
    text = (
        '<task type="auto">\n**Task 1: read the key** — from the file\n</task>\n<task>\nShow it.\n</task>\n'
    )
    work = parsed("gsd", text, "01-01-PLAN.md")
    assert [(task.key, task.title) for task in work.tasks] == [("1", "read the key"), ("2", "Show it.")]
    (problem,) = refused(registry.source("gsd"), {"01-01-PLAN.md": b"<task>\n<action>a</action>\n</task>\n"})
    assert 'task "1" has no <name>' in problem


def test_a_phase_of_gsd_is_all_of_its_plans(tmp_path: Path) -> None:
    second = TEXTS["gsd"].replace("plan: 01", "plan: 02").replace("depends_on: []", 'depends_on: ["01-01"]')
    files = {"01-01-PLAN.md": TEXTS["gsd"], "01-02-PLAN.md": second, "01-01-SUMMARY.md": "done"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    source = recognise(tmp_path, registry.sources())
    work = read(source, tmp_path)
    found = tasks(work)
    assert source.kind == "gsd"
    assert {task.key for task in work.tasks if task.mark is Mark.OPEN} == {"01-02.2", "01-02.3"}
    assert found["01-02.1"].depends_on == ("01-01.1", "01-01.2", "01-01.3")


@each_case(
    ("status", "mark"),
    [
        ("To Do", Mark.OPEN),
        ("○ To Do", Mark.OPEN),
        ("In Progress", Mark.RUNNING),
        ("✔ Done", Mark.DONE),
        ("Shipped to all", Mark.DONE),
        ("Cancelled", Mark.SKIPPED),
        ("In Review", Mark.BLOCKED),
    ],
)
def test_a_status_of_backlog_md_is_understood_or_blocks(status: str, mark: Mark) -> None:
    text = TEXTS["backlog_md"].replace("To Do", status)
    files = {"tasks/a.md": text.encode(), "config.yml": b'statuses: ["To Do", "Shipped to all"]\n'}
    (task,) = registry.source("backlog_md").parse(files, "backlog").tasks
    assert task.mark is mark
    assert (task.reason == f'its status is "{status}"') is (mark is Mark.BLOCKED)


def test_a_backlog_is_read_in_the_order_of_its_ids_and_keeps_its_words(wording: Wording) -> None:
    def file(n: int, needs: str) -> bytes:
        return f"---\nid: task-{n}\ntitle: t\nstatus: 'To Do' # soon\ndependencies: [{needs}]\n---\n".encode()

    source = registry.source("backlog_md")
    files = {"task-10.md": file(10, "task-2"), "task-2.md": file(2, "task-1"), "readme.md": b"# Tasks\n"}
    work = source.parse(files, "backlog/tasks")
    assert [(task.key, task.depends_on) for task in work.tasks] == [("task-2", ()), ("task-10", ("task-2",))]
    wording(work.notes[0])
    made = source.written(files, told({"task-2": ItemProgress(mark=Mark.DONE)}))
    assert made == {"task-2.md": files["task-2.md"].replace(b"'To Do'", b"'Done'")}


def test_another_document_with_a_status_is_not_a_task_of_backlog_md(tmp_path: Path) -> None:
    text = "---\nid: plan-1\nstatus: planned\n---\n\n" + TEXTS["execplan"]
    laid(tmp_path, plan_md=text, other_md="---\nid: a\nstatus: To Do\ncreated_date: '2026-01-05'\n---\n")
    kinds = [recognise(tmp_path / name, registry.sources()).kind for name in ("plan.md", "other.md")]
    assert kinds == ["execplan", "backlog_md"]


def test_criteria_of_backlog_md_are_read_without_their_numbers() -> None:
    (task,) = parsed("backlog_md", name="backlog/tasks/a.md").tasks
    assert task.criteria == ("`grep -q hello greet.txt` passes", "It is polite")
    assert [gate.command for gate in task.acceptance] == ["grep -q hello greet.txt"]
    assert (task.priority, task.depends_on) == (25, ())


def test_bullets_are_tasks_only_where_there_is_no_checkbox(tmp_path: Path, wording: Wording) -> None:
    laid(
        tmp_path,
        TODO_md=TEXTS["todo_md"],
        sub__TODO_md=TEXTS["todo_md"] + "- [ ] one box\n",
        README_md="- a bullet\n",
    )
    assert recognise(tmp_path / "TODO.md", registry.sources()).kind == "todo_md"
    assert recognise(tmp_path / "sub/TODO.md", registry.sources()).kind == "plan_md"
    assert not registry.source("todo_md").recognises(tmp_path / "README.md")
    notes = parsed("todo_md", name="TODO.md").notes
    wording(notes)


def test_headings_with_text_are_the_tasks_of_a_list() -> None:
    text = "# TODO\n\n## Soon\n\n" + "".join(f"### Part {n}\n\nWords.\n\n- a detail\n\n" for n in "abc")
    work = parsed("todo_md", text, "TODO.md")
    assert [task.title for task in work.tasks] == ["Part a", "Part b", "Part c"]


def test_what_is_completed_and_rules_above_a_list_are_no_work() -> None:
    parts = "".join(f"### Part {n}\n\nWords.\n\n" for n in "bcd")
    headings = parsed(
        "todo_md", f"# TODO\n\n## Soon\n\n### Part a\n\nWords.\n\n## Completed\n\n{parts}", "TODO.md"
    )
    assert [task.mark for task in headings.tasks] == [Mark.OPEN, Mark.DONE, Mark.DONE, Mark.DONE]
    bullets = parsed(
        "todo_md", "# fix_plan\n\nRules:\n\n1. Be short.\n2. Test it.\n\n## Queue\n\n1. Add it\n", "TODO.md"
    )
    assert [task.title for task in bullets.tasks] == ["Add it"]


def test_a_list_may_have_a_heading_that_is_called_a_phase(tmp_path: Path) -> None:
    text = "# TODO\n\n## Phase 5 features\n\n- a\n- b (deferred)\n- ✅ c\n- none\n\n## Bugs\n\n- d (fixed)\n"
    laid(tmp_path, TODO_md=text)
    assert recognise(tmp_path / "TODO.md", registry.sources()).kind == "todo_md"
    marks = {task.key: task.mark for task in parsed("todo_md", text, "TODO.md").tasks}
    assert marks == {"a": Mark.OPEN, "b-deferred": Mark.SKIPPED, "c": Mark.DONE, "d-fixed": Mark.DONE}


HEADED = """\
# Tasks

## Phase 1

### Task 1.1: Add the form
- [ ] Write the markup
- [ ] Style it

### Task 1.2: Send the form
- **Work**: call the server

## Success Criteria
- [ ] It works
"""


@each_case("kind", ("kiro", "openspec"))
def test_headings_called_tasks_are_the_tasks_if_the_boxes_are_below_them(kind: str, tmp_path: Path) -> None:
    work = parsed(kind, HEADED)
    assert [(task.key, task.title) for task in work.tasks] == [
        ("1.1", "Add the form"),
        ("1.2", "Send the form"),
    ]
    boxes = parsed(kind, "# Tasks\n\n- [ ] 1. a\n- [ ] 2. b\n\n### Task 3: c\n\n### Task 4: d\n")
    assert [task.key for task in boxes.tasks] == ["1", "2"]
    folder = {"kiro": ".kiro/specs/a", "openspec": "openspec/changes/a"}[kind]
    laid(tmp_path, **{f"{folder}/tasks_md": HEADED})
    assert recognise(tmp_path / folder / "tasks.md", registry.sources()).kind == kind


def test_an_open_box_that_is_called_settled_is_a_question_in_every_checklist() -> None:
    work = parsed("openspec", "# Tasks\n\n- [ ] 1.1 Add it ✅\n- [ ] 1.2 Show it\n- [ ] 1.3 Say it (done)\n")
    assert [task.manual for task in work.tasks] == [True, False, True]
    (note,) = work.notes
    assert note.startswith(
        'work/tasks.md:3: "1.1 Add it ✅" (and 1 more) is called done or dropped, but its box'
    )
    partly = parsed("execplan", "# P\n\n## Progress\n\n- [ ] Add it (completed: half; remaining: half)\n")
    assert [task.manual for task in partly.tasks] == [False]


@pytest.mark.parametrize("kind", sorted({form.kind for form in FORMS} - {"backlog_md"}))
def test_a_file_without_a_task_is_refused_with_what_to_write(kind: str) -> None:
    problems = refused(registry.source(kind), {"tasks.md": b"# Nothing\n"}, "tasks.md")
    assert problems[0].startswith("tasks.md:1: found no ")
    assert "write each" in problems[0]


@each_case(
    ("title", "manual"),
    [
        ("Manual verification of the page", True),
        ("User Manual Verification 'Phase 1' (Protocol in workflow.md)", True),
        ("Manually run the setup", True),
        ("Verify that completions work manually", True),
        ("Ask the user to confirm the colours", True),
        ("Deploy to production (manual)", True),
        ("手動動作確認", True),
        ("Checkpoint - Ensure all tests pass, ask the user if questions arise.", False),
        ("Update the user manual", False),
        ("Document the manual tests", False),
        ("Check links with a link checker or manual testing", False),
        ("Handle human-readable dates", False),
    ],
)
def test_a_title_says_whether_a_person_has_to_do_it(title: str, manual: bool) -> None:
    assert is_manual(title) is manual


WITH_MANUAL = """\
# Implementation Plan

- [ ] 1. Add the form
  - [ ] 1.1 Write the markup
  - [ ] 1.2 Manual verification: open the form in a browser
    - [ ] look at the colours
  - [ ]* 1.3 Write property tests
- [ ] 2. Send the form
"""


@each_case("kind", ("kiro", "openspec"))
def test_a_step_for_a_person_below_a_task_is_ticked_by_its_own_answer_alone(kind: str) -> None:
    work = parsed(kind, WITH_MANUAL)
    found = tasks(work)
    assert list(found) == ["1", "1.2", "2"]
    assert (found["1"].manual, found["1.2"].manual, found["2"].manual) == (False, True, False)
    assert found["1.2"].depends_on == ("1",)
    assert found["2"].after == ("1.2",)
    assert "browser" not in found["1"].description
    assert "separate tasks" not in found["1"].description
    source, files = registry.source(kind), {"tasks.md": WITH_MANUAL.encode()}
    landed = after(source, files, told({"1": ItemProgress(mark=Mark.DONE)}))
    lines = landed["tasks.md"].decode().splitlines()
    assert [line.strip()[:9] for line in lines[2:]] == [
        "- [x] 1. ", "- [x] 1.1", "- [ ] 1.2", "- [ ] loo", "- [ ]* 1.", "- [ ] 2. ",
    ]  # fmt: skip
    again = source.parse(landed, "work/tasks.md")
    assert [task.key for task in again.tasks] == ["1", "1.2", "2"]
    assert again.sha256 == work.sha256
    both = after(source, landed, told({key: ItemProgress(mark=Mark.DONE) for key in ("1", "1.2")}))
    assert both["tasks.md"].decode().count("[x]") == 4


def test_a_manual_step_below_a_heading_is_a_task_behind_it() -> None:
    text = (
        "# Plan\n\n### Task 1: Add it\n\n- [ ] **Step 1: Write it**\n- [ ] **Step 2: Manual verification**\n"
    )
    work = parsed("superpowers", text, "docs/plans/p.md")
    assert [(task.title, task.manual) for task in work.tasks] == [
        ("Add it", False),
        ("Manual verification", True),
    ]
    source = registry.source("superpowers")
    landed = after(source, {"p.md": text.encode()}, told({"1": ItemProgress(mark=Mark.DONE)}))
    assert landed["p.md"].decode() == text.replace("- [ ] **Step 1", "- [x] **Step 1")
    assert [task.mark for task in source.parse(landed, "docs/plans/p.md").tasks] == [Mark.DONE, Mark.OPEN]


DAMAGED = (
    ("speckit", "- [x] T001 Begin", "- [ ]T006 Add it"),
    ("speckit", "- [x] T001 Begin", "- [] T006 Add it"),
    ("speckit", "- [x] T001 Begin", "- T005 Add it"),
    ("speckit", "- [x] T001 Begin", "- [?] T005 Add it"),
    ("openspec", "- [x] 1.1 Begin", "- 1.2 Add it"),
    ("openspec", "- [x] 1.1 Begin", "* [ x] 1.2 Add it"),
    ("kiro", "- [x] 1. Begin", "-[ ] 5. Add it"),
    ("kiro", "- [x] 1. Begin", "- [ 3. Add it"),
    ("kiro", "- [x] 1. Begin\n  - [x] 1.1 First", "  - []1.2 Add it"),
    ("kiro", "- [x] 1. Begin\n  - a detail", "-[ ] 2. Add it"),
    ("openspec", "- [x] 1.1 Begin\n  - [x] a part", "-[ ] 1.2 Add it"),
    ("kiro", "- [x] 1. Begin", "- [!] 2. Add it"),
    ("execplan", "- [x] Begin", "- [ ]Add it"),
    ("superpowers", "### Task 1: Begin\n\n- [x] Step 1: write", "- []Step 2: add it"),
)


@each_case("kind, good, bad", DAMAGED)
def test_a_damaged_box_is_an_error_on_its_line_also_when_all_else_is_done(
    kind: str, good: str, bad: str
) -> None:
    text = f"# Plan\n\n## Progress\n\n{good}\n{bad}\n"
    name = "tasks.md"
    problems = refused(registry.source(kind), {name: text.encode()})
    assert [one.partition(": ")[0].rpartition(":")[2] for one in problems] == [str(text.count("\n"))]


@each_case(
    "line",
    (
        "- [docs](docs.md) say why",
        "- T001 is the first one",
        "- Python 3.11 is needed",
        "- 3.11 is needed",
        "- [P] marks what may run in parallel",
    ),
)
def test_a_plain_line_beside_tasks_is_no_error(line: str) -> None:
    work = parsed("speckit", f"# Plan\n\n## Work\n\n- [ ] T001 Begin\n{line}\n- [ ] T002 End\n")
    assert [task.key for task in work.tasks] == ["T001", "T002"]


@each_case(
    "kind, end",
    [(kind, end) for kind in ("speckit", "kiro", "openspec") for end in ("", "\n---\n\n- [ ] 2. End\n")],
)
def test_front_matter_without_an_end_is_an_error(kind: str, end: str, wording: Wording) -> None:
    text = f"---\ndescription: a list\n\n## Work\n\n- [ ] 1. Begin\n{end}"
    (problem,) = refused(registry.source(kind), {"tasks.md": text.encode()})
    wording(problem)
