"""How far a phase is by its author's own words and boxes, and what stays a question."""

from pathlib import Path

import pytest
from tests.cases import each_case
from tests.unit.sources.golden import progress

from loopwright.adapters.sources.text.markdown import read_markdown
from loopwright.adapters.sources.thoughts.thoughts import ThoughtsSource
from loopwright.adapters.sources.thoughts.thoughts_phases import MAX_PHASES, is_lone_plan, phases_in
from loopwright.adapters.sources.thoughts.thoughts_status import Said, said_in_title
from loopwright.core.values.errors import BadPlan
from loopwright.ports import Mark, PlannedTask, PlannedWork

SOURCE = ThoughtsSource()
OPEN, DONE = (Mark.OPEN, False), (Mark.DONE, False)
ASKED = (Mark.OPEN, True)


def work(text: str) -> PlannedWork:
    return SOURCE.parse({"plan.md": text.encode()}, "plans/plan.md")


def standing(task: PlannedTask) -> tuple[Mark, bool]:
    return task.mark, task.manual


@each_case(
    ("title", "said"),
    [
        ("Phase 1: Form (COMPLETED)", Said.DONE),
        ("Phase 1: Form [completed]", Said.DONE),
        ("Phase 1: Form ✅ Complete", Said.DONE),
        ("Phase 1: Form - DONE 2026-01-05", Said.DONE),
        ("**Phase 1: Form** — **Done**", Said.DONE),
        ("[x] Phase 1: Form", Said.DONE),
        ("Phase 1: Form ✅", Said.TICKED),
        ("✅ Phase 1: Form", Said.TICKED),
        ("Phase 1: Form (deferred)", Said.SKIPPED),
        ("Phase 1: Make the form complete", Said.NOTHING),
        ("Phase 1: Form (not done)", Said.NOTHING),
        ("Phase 1: Form (partially complete)", Said.NOTHING),
        ("Phase 1: Complete the form", Said.NOTHING),
        ("Phase 1: Form", Said.NOTHING),
    ],
)
def test_what_a_heading_says(title: str, said: Said) -> None:
    assert said_in_title(title) is said


CRITERIA = "**Success Criteria:**\n- [{}] Tests pass: `make test`\n\n**Manual Verification:**\n- [{}] It looks right\n"


@each_case(
    ("above", "title", "automated", "manual", "expected"),
    [
        ("", "", " ", " ", OPEN),
        ("", "", "x", "x", DONE),
        ("", "", "x", " ", ASKED),
        ("", "", " ", "x", OPEN),
        ("", " (COMPLETED)", " ", " ", DONE),
        ("", " ✅", "x", "x", DONE),
        ("", " ✅", " ", "x", ASKED),
        ("**Status**: ✅ Completed\n", "", "x", "x", DONE),
        ("**Status**: Completed\n", "", " ", " ", ASKED),
        ("Status: In progress\n", "", " ", " ", OPEN),
        ("Status: Completed phases 1 and 2\n", "", " ", " ", OPEN),
        ("| Phase | Status |\n|---|---|\n| Phase 1 | ✅ COMPLETE |\n", "", " ", " ", ASKED),
        ("| Phase | Status |\n|---|---|\n| Phase 2 | ✅ COMPLETE |\n", "", " ", " ", OPEN),
    ],
)
def test_boxes_and_words_together_say_how_far_a_phase_is(
    above: str, title: str, automated: str, manual: str, expected: tuple[Mark, bool]
) -> None:
    boxes = CRITERIA.format(automated, manual)
    found = work(f"# Plan\n\n{above}\n## Phase 1: Form{title}\n\nBuild it.\n\n{boxes}")
    (task,) = found.tasks
    assert standing(task) == expected
    assert bool(found.notes) is (expected != DONE or " " in automated)
    assert task.criteria == ("Tests pass: `make test`",)
    assert [gate.command for gate in task.acceptance] == ["make test"]


def test_front_matter_that_says_complete_finishes_a_plan_without_open_boxes() -> None:
    text = "---\nstatus: complete\n---\n# Plan\n\n## Phase 1: A\n\na\n\n## Phase 2: B\n\n- [ ] open\n"
    assert [standing(task) for task in work(text).tasks] == [DONE, ASKED]


def test_a_phase_behind_a_question_only_comes_after_it() -> None:
    found = work("## Phase 1 ✅\n\n- [ ] a\n\n## Phase 2\n\nb\n\n## Phase 3\n\nc\n")
    assert [(task.depends_on, task.after) for task in found.tasks] == [
        ((), ()), ((), ("phase-1",)), (("phase-2",), ()),
    ]  # fmt: skip


def test_phases_win_over_boxes_and_may_be_called_steps() -> None:
    text = (
        "## Steps\n\n### Step 1: A\n\n- [x] a\n\n### Step 2: B\n\n- [ ] b\n- [ ] c\n\n## Notes\n\n- [ ] d\n"
    )
    assert [(task.key, task.mark) for task in work(text).tasks] == [
        ("step-1", Mark.DONE),
        ("step-2", Mark.OPEN),
    ]


def test_the_same_number_in_another_section_gets_a_key_of_its_own() -> None:
    found = phases_in(read_markdown(b"## Server\n\n### Phase 1\n\na\n\n## Client\n\n### Phase 1\n\nb\n"))
    assert [phase.key for phase in found] == ["phase-1", "client/phase-1"]


def test_open_is_written_where_the_authors_words_say_done_and_taken_back() -> None:
    files = {"plan.md": b"## Phase 1 (DONE)\n\na\n"}
    opened = SOURCE.written(files, progress({"items": {"phase-1": {"mark": "open"}}}))
    assert [task.mark for task in SOURCE.parse(opened, "plan.md").tasks] == [Mark.OPEN]
    assert SOURCE.written(opened, progress({"items": {"phase-1": {"mark": "done"}}})) == files


def test_too_many_phases_are_refused_at_the_first_that_is_too_much() -> None:
    text = "".join(f"## Phase {number}\n- [ ] a\n" for number in range(MAX_PHASES + 1))
    with pytest.raises(
        BadPlan, match=f"plan.md:{2 * MAX_PHASES + 1}: a file has at most {MAX_PHASES} phases"
    ):
        work(text)


def test_a_phase_is_told_the_overview_of_its_own_set() -> None:
    files = {
        "a-00-overview.md": b"# A\n", "a-01-x.md": b"x\n", "b-00-overview.md": b"# B\n", "b-01-y.md": b"y\n",
    }  # fmt: skip
    found = SOURCE.parse(files, "plans")
    assert (found.context, [task.section for task in found.tasks]) == ("", ["# A", "# B"])


@each_case(
    ("box", "inside", "expected"),
    [
        ("[x]", "", DONE),
        ("[ ]", "", OPEN),
        ("[x]", "- [ ] `make test`\n", ASKED),
    ],
)
def test_a_list_of_progress_says_which_phases_are_done(
    box: str, inside: str, expected: tuple[Mark, bool]
) -> None:
    phases = f"### Milestone 1: Form\n\nDo it.\n\n{inside}\n### Milestone 2: View\n\nDo it.\n"
    found = work(f"# Plan\n\n## Milestones\n\n{phases}\n## Progress\n\n- {box} Milestone 1: the form\n")
    assert [standing(task) for task in found.tasks] == [expected, OPEN]


@each_case(
    ("head", "inside", "expected"),
    [
        ("## Work\n\n### Phase 1: Form", "**Status**: Complete. All issues of phase 1 are closed.\n", DONE),
        ("## Work\n\n### Phase 1: Form", "**Status**: Complete except for the view\n", OPEN),
        ("## Work\n\n### Phase 1: Form", "Status: done\n\n- [ ] `make test`\n", ASKED),
        ("## Work\n\n### Phase 1: Form (In Progress)", "**Status**: Complete\n", ASKED),
        ("## Completed Development\n\n### Phase 1: Form", "", DONE),
        ("## Work\n\n### Phase 1: Form", "Do it.\n\n#### Phase 1 Acceptance Criteria\n\n- [ ] ok\n", OPEN),
    ],
)
def test_a_phase_says_below_its_heading_how_far_it_is(
    head: str, inside: str, expected: tuple[Mark, bool]
) -> None:
    found = work(f"# Plan\n\n{head}\n\n{inside}\n## Rest\n\n### Phase 2: View\n\nDo it.\n")
    assert [standing(task) for task in found.tasks] == [expected, OPEN]


@each_case(
    ("texts", "is_plan"),
    [
        (("Do it.", "Do it.", "- [ ] the form"), True),
        (("Do it.", "- [ ] the form"), False),
        (("Do it.", "Do it.", "Do it.", "## More\n\n- [ ] the form"), False),
    ],
)
def test_boxes_in_a_few_phases_are_parts_of_those(
    texts: tuple[str, ...], is_plan: bool, tmp_path: Path
) -> None:
    place = tmp_path / "IMPLEMENTATION_PLAN.md"
    place.write_text("\n\n".join(f"## Phase {n}: Work\n\n{text}" for n, text in enumerate(texts, 1)))
    assert is_lone_plan(place) is is_plan
