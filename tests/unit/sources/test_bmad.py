"""BMAD: the tasks of one story, and the stories of a sprint."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import each_case
from tests.unit.sources import laws
from tests.unit.sources.laws import after, marks, refused, told

from loopwright.adapters import registry
from loopwright.adapters.sources.bmad.bmad import BmadSource
from loopwright.adapters.sources.text.reading import read, recognise
from loopwright.ports import ItemProgress, Mark

SOURCE = BmadSource()
STORY = """# Story 1.2: Sign in

Status: ready-for-dev

## Story

As a user, I want to sign in.

## Acceptance Criteria

1. `make test` passes
2. A wrong password is refused

## Tasks / Subtasks

- [x] Task 1: Form (AC: 2)
  - [x] Field
- [ ] **Task 2: Check the password** (AC: #1, 2)
  - [ ] Hash it

## Dev Notes

- Mind the salt.

## QA Results

### Improvements Checklist

- [ ] Review everything by hand
"""
SPRINT = """# generated: today
project: Shop   # ours
story_location: "docs/stories"

development_status:
  epic-1: in-progress
  1-1-cart: done
  1-2-sign-in: ready-for-dev   # next
  1-3-pay: backlog
  1-4-ship: review
  epic-1-retrospective: optional
action_items:
  - action: "Talk"
    status: open
"""


@pytest.mark.capability("C015")
def test_only_the_tasks_of_a_story_are_tasks() -> None:
    work = SOURCE.parse({"1-2-sign-in.md": STORY.encode()}, "1-2-sign-in.md")
    assert (work.title, marks(work)) == ("Story 1.2: Sign in", {"1": Mark.DONE, "2": Mark.OPEN})
    task = work.tasks[1]
    assert (task.title, task.after) == ("Check the password", ("1",))
    assert task.criteria == ("`make test` passes", "A wrong password is refused")
    assert [gate.command for gate in task.acceptance] == ["make test"]
    assert "As a user" in work.context
    assert "Mind the salt" in work.context
    assert "by hand" not in work.context


def test_a_finished_task_is_ticked_with_its_subtasks() -> None:
    before = {"s.story.md": STORY.replace("\n", "\r\n").encode()}
    made = after(SOURCE, before, told({"2": ItemProgress(mark=Mark.DONE)}))
    wanted = STORY.replace("- [ ] **Task 2", "- [x] **Task 2").replace("- [ ] Hash", "- [x] Hash")
    assert made["s.story.md"].decode() == wanted.replace("\n", "\r\n")


@each_case(
    ("status", "mark"),
    [
        ("Status: Done", Mark.BLOCKED),
        ("## Status\n\nDone (2026-01-01)", Mark.BLOCKED),
        ("**Status:** `done`", Mark.BLOCKED),
        ("Status: in-progress", Mark.OPEN),
        ("## Status\n\nApproved", Mark.OPEN),
        ("", Mark.OPEN),
    ],
)
def test_an_open_task_of_a_finished_story_is_asked_about(status: str, mark: Mark) -> None:
    work = SOURCE.parse({"s.md": STORY.replace("Status: ready-for-dev", status).encode()}, "s.md")
    assert marks(work) == {"1": Mark.DONE, "2": mark}
    assert ("correct one of them" in work.tasks[1].reason) is (mark is Mark.BLOCKED)


def test_stories_and_sprints_are_recognised(tmp_path: Path) -> None:
    plans = {
        "1-2-sign-in.md": STORY,
        "sprint-status.yaml": SPRINT,
        "plan.md": "# Plan\n\n## Tasks\n\n- [ ] Do it\n",
    }
    for name, text in plans.items():
        (tmp_path / name).write_text(text)
    kinds = {name: recognise(tmp_path / name, registry.sources()).kind for name in plans}
    assert kinds == {"1-2-sign-in.md": "bmad", "sprint-status.yaml": "bmad", "plan.md": "plan_md"}
    work = read(SOURCE, tmp_path / "sprint-status.yaml")
    assert marks(work) == {
        "1-1-cart": Mark.DONE,
        "1-2-sign-in": Mark.OPEN,
        "1-3-pay": Mark.OPEN,
        "1-4-ship": Mark.BLOCKED,
    }
    assert [(task.title, task.phase) for task in work.tasks[1:3]] == [
        ("Story 1.2: Sign in", "Epic 1"),
        ("Story 1.3: Pay", "Epic 1"),
    ]
    assert "A wrong password is refused" in work.tasks[1].description
    assert any("have no file yet" in note and "1-3-pay" in note for note in work.notes)


def test_the_status_of_a_story_is_written_and_nothing_else() -> None:
    made = after(
        SOURCE,
        {"sprint-status.yaml": SPRINT.encode()},
        told({"1-2-sign-in": ItemProgress(mark=Mark.DONE), "1-3-pay": ItemProgress(mark=Mark.RUNNING)}),
    )
    wanted = SPRINT.replace("1-2-sign-in: ready-for-dev ", "1-2-sign-in: done ")
    assert made["sprint-status.yaml"].decode() == wanted.replace("1-3-pay: backlog", "1-3-pay: in-progress")


def test_a_step_below_a_task_that_only_a_person_can_do_is_a_question_behind_it() -> None:
    text = "# Story 1: S\n\n## Tasks / Subtasks\n\n- [ ] Task 1: Code\n  - [ ] Write it\n  - [ ] Manual test: look\n"
    task, step = SOURCE.parse({"s.md": text.encode()}, "s.md").tasks
    assert "Manual test" not in task.description
    assert (task.manual, step.manual, step.depends_on) == (False, True, (task.key,))
    done = told({task.key: ItemProgress(mark=Mark.DONE)})
    made = after(SOURCE, {"s.md": text.encode()}, done)["s.md"].decode()
    assert made == text.replace("[ ]", "[x]").replace("[x] Manual", "[ ] Manual")


def test_work_that_mentions_a_manual_review_behind_its_number_is_for_an_agent() -> None:
    step = "7B.4: Log a warning when both differ (manual review needed)"
    text = f"# Story 1: S\n\n## Tasks / Subtasks\n\n- [ ] Task 7: Merge\n  - [ ] {step}\n"
    (task,) = SOURCE.parse({"s.md": text.encode()}, "s.md").tasks
    assert step in task.description


WHOLE = """\
# Story 3: Pay

**Status:** Todo

## Acceptance Criteria

- [ ] A card works
- [ ] A wrong card is refused

## Dependencies

- [x] Story 1
"""


@each_case(
    ("text", "mark", "wanted"),
    [
        (WHOLE, Mark.OPEN, WHOLE.replace("Todo", "Done")),
        (WHOLE.replace("**Status:** Todo", "## Status\n\nDraft"), Mark.OPEN, None),
        (WHOLE.replace("Todo", "Complete"), Mark.DONE, WHOLE.replace("Todo", "Complete")),
        (WHOLE.replace("Todo", "In Review"), Mark.BLOCKED, None),
        (WHOLE.replace("[ ]", "[x]"), Mark.BLOCKED, None),
        (WHOLE.replace("\n**Status:** Todo\n", "").replace("[ ]", "[x]"), Mark.DONE, None),
        (
            "---\nstory:\n  status: 'Done'\n---\n\n" + WHOLE.replace("\n**Status:** Todo\n", ""),
            Mark.DONE,
            None,
        ),
        (WHOLE.replace("**Status:** Todo", "## Story Info\n\n- **Status:** done"), Mark.DONE, None),
        (
            WHOLE.replace("\n**Status:** Todo\n", "").replace("\n", "\r\n"),
            Mark.OPEN,
            WHOLE.replace("**Status:** Todo", "Status: done").replace("\n", "\r\n"),
        ),
    ],
)
def test_a_story_without_tasks_is_one_task(text: str, mark: Mark, wanted: str | None) -> None:
    held = {"s.story.md": text.encode()}
    work = SOURCE.parse(held, "s.story.md")
    assert marks(work) == {"story": mark}
    assert work.tasks[0].title == "Story 3: Pay"
    assert work.tasks[0].criteria == ("A card works", "A wrong card is refused")
    made = after(SOURCE, held, told({"story": ItemProgress(mark=Mark.DONE)}))
    done = SOURCE.parse(made, "s.story.md")
    assert marks(done) == {"story": Mark.DONE}
    assert done.sha256 == work.sha256
    if wanted is not None:
        assert made["s.story.md"].decode() == wanted


def test_a_heading_in_another_language_has_the_tasks() -> None:
    text = "# Story 1: S\n\n## Acceptance Criteria\n\n1. a\n\n## 任务 / 子任务\n\n- [x] a\n\n## Review\n\n- [ ] b\n"
    assert list(marks(SOURCE.parse({"s.md": text.encode()}, "s.md")).values()) == [Mark.DONE]


LISTED = """\
project: Shop
story_location: {project-root}/stories
sprints:
  - name: First
    stories:
      - id: STORY-1
        title: Cart
        status: 'DONE'
      - {id: STORY-2, title: Pay, status: TODO, depends_on: [STORY-1]} # next
  - name: Second
    stories:
      - id: STORY-3
        status: IN_REVIEW
"""


def test_a_sprint_that_lists_its_stories_is_read_and_written() -> None:
    held = {"sprint-status.yaml": LISTED.encode()}
    work = SOURCE.parse(held, "sprint-status.yaml")
    assert marks(work) == {"STORY-1": Mark.DONE, "STORY-2": Mark.OPEN, "STORY-3": Mark.BLOCKED}
    assert [(task.title, task.phase, task.depends_on) for task in work.tasks[1:]] == [
        ("Pay", "First", ("STORY-1",)),
        ("STORY 3", "Second", ()),
    ]
    done = ItemProgress(mark=Mark.DONE)
    [made] = after(SOURCE, held, told({"STORY-2": done, "STORY-3": done})).values()
    assert made.decode() == LISTED.replace("TODO", '"DONE"').replace("IN_REVIEW", '"DONE"')


def test_a_sprint_with_a_key_twice_is_read_and_written() -> None:
    text = "phase: 1\ndevelopment_status:\n  1-1-a: backlog\nphase: {x} y\n"
    held = {"sprint-status.yaml": text.encode()}
    assert marks(SOURCE.parse(held, "sprint-status.yaml")) == {"1-1-a": Mark.OPEN}
    [made] = after(SOURCE, held, told({"1-1-a": ItemProgress(mark=Mark.DONE)})).values()
    assert made.decode() == text.replace("backlog", "done")


def test_epics_are_containers_whatever_they_are_called() -> None:
    keys = [
        "epic-1",
        "supp-epic-2",
        "epic-3-shop",
        "epic-1-retrospective",
        "1-1-close-epic-view",
        "epic-1-2-pay",
    ]
    text = (
        "development_status:\n" + "".join(f"  {key}: backlog\n" for key in keys) + "  2-1-a: {status: done}\n"
    )
    work = SOURCE.parse({"sprint-status.yaml": text.encode()}, "sprint-status.yaml")
    assert marks(work) == {"1-1-close-epic-view": Mark.OPEN, "epic-1-2-pay": Mark.OPEN, "2-1-a": Mark.DONE}


def test_a_sprint_without_stories_has_nothing_to_do() -> None:
    for text in ("development_status:\n", "development_status: {}\n", "stories: []\n"):
        work = SOURCE.parse({"sprint-status.yaml": text.encode()}, "sprint-status.yaml")
        assert (work.tasks, len(work.notes)) == ((), 1)


@each_case(
    ("name", "content", "words"),
    [
        (
            "sprint-status.yaml",
            "stories:\n- id: a\n",
            "sprint-status.yaml:2: stories[0]: this story has no status",
        ),
        ("sprint-status.yaml", "a: [", "sprint-status.yaml:1: this is not YAML"),
        ("sprint-status.yaml", "- a", "sprint-status.yaml:1: expected a mapping with development_status"),
        ("sprint-status.yaml", "a: b", "sprint-status.yaml:1: development_status: missing"),
        ("s.story.md", "# Story 1\n\n## Tasks / Subtasks\n", "s.story.md:1: found no task here"),
    ],
)
@pytest.mark.capability("C004")
def test_what_is_wrong_is_located(name: str, content: str, words: str) -> None:
    assert refused(SOURCE, {name: content.encode()}, name)[0].startswith(words)


stories = st.dictionaries(
    st.sampled_from(["1-1-a", "1-2-b", "2-1-c"]),
    st.sampled_from(["backlog", "ready-for-dev", "in-progress", "review", "done", '"done"', "odd"]),
    min_size=1,
)


@settings(max_examples=50, deadline=None)
@given(
    first=stories,
    edited=stories,
    progress=st.dictionaries(st.sampled_from(["1-1-a", "1-2-b", "gone"]), laws.items),
    crlf=st.booleans(),
)
def test_what_was_written_is_read_again_and_edits_survive(
    first: dict[str, str], edited: dict[str, str], progress: dict[str, ItemProgress], crlf: bool
) -> None:
    for now in (first, edited):
        lines = [
            "project: P # c",
            "development_status:",
            *(f"    {key}:  {word} # x" for key, word in now.items()),
            "",
        ]
        before = {"sprint-status.yaml": ("\r\n" if crlf else "\n").join(lines).encode()}
        made = after(SOURCE, before, told(progress))
        work, was = SOURCE.parse(made, "here"), SOURCE.parse(before, "here")
        assert work.sha256 == was.sha256
        for task in work.tasks:
            assert task.mark is (progress[task.key].mark if task.key in progress else marks(was)[task.key])
        assert made["sprint-status.yaml"].count(b" # x") == len(now)


def test_a_story_inside_of_a_code_block_is_a_sample(tmp_path: Path) -> None:
    plan = tmp_path / "plans" / "plan.md"
    plan.parent.mkdir()
    sample = "```markdown\n# Story 1.2: Sign in\n\n## Acceptance Criteria\n\n1. It works\n```\n"
    plan.write_text(f"# Plan\n\n## Phase 1: Template\n\n{sample}\n## Phase 2: Use\n\nUse it.\n")
    assert recognise(plan, registry.sources()).kind == "thoughts"
