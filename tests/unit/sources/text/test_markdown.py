"""The structure of a Markdown file: what is hidden, which heading and which item a line belongs to."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import each_case

from loopwright.adapters.sources.text.markdown import Kind, Markdown, read_markdown
from loopwright.adapters.sources.text.markdown_edits import MarkdownEdits
from loopwright.adapters.sources.text.problems import Unreadable
from loopwright.adapters.sources.text.titles import plain_title, without_checkpoint, without_sha
from loopwright.ports import Mark


def read(*lines: str) -> Markdown:
    return read_markdown("\n".join((*lines, "")).encode())


def boxes(markdown: Markdown) -> list[tuple[str, int | None]]:
    """Return the words of each checkbox, and how deep it is."""
    return [(item.words, item.parent) for item in markdown.items if item.box is not None]


def titles(markdown: Markdown) -> list[str]:
    return [section.title for section in markdown.sections[1:]]


def test_a_fence_inside_a_list_hides_only_its_own_lines() -> None:
    found = read(
        "1. Run",
        "   ```sh",
        "   # not a heading",
        "   - [ ] not a task",
        "   ```",
        "## Phase 2",
        "- [ ] Task",
    )
    assert titles(found) == ["Phase 2"]
    assert [item.words for item in found.items if item.box] == ["Task"]


def test_a_fence_that_is_closed_at_the_margin_hides_no_more_than_was_meant() -> None:
    found = read("- Run", "  ```sh", "  make", "```", "## Phase 2", "- [ ] Task", "", "```", "code", "```")
    assert titles(found) == ["Phase 2"]
    found = read("- Run", "  ```sh", "cd folder", "# note", "make", "  ```", "## Phase 2", "- [ ] Task")
    assert titles(found) == ["Phase 2"]


def test_a_fence_that_a_list_ends_hides_nothing_below_it() -> None:
    found = read("- a", "  ```sh", "  make", "- [ ] b", "## Next", "- [ ] c")
    assert boxes(found) == [("b", None), ("c", None)]


def test_a_fence_that_is_indented_too_far_is_a_fence() -> None:
    found = read("text", "    ```sh", "    # no heading", "    ```", "# A heading")
    assert titles(found) == ["A heading"]


def test_a_markdown_block_holds_fences_with_a_language() -> None:
    found = read("```markdown", "```sh", "make", "```", "## Inside", "```", "## Outside", "```", "x", "```")
    assert titles(found) == ["Outside"]


def test_a_markdown_block_holds_fences_that_are_indented_deeper() -> None:
    found = read("```markdown", "1. Run", "   ```", "   make", "   ```", "## Inside", "```", "## Outside")
    assert titles(found) == ["Outside"]


def test_fences_that_only_commonmark_can_close_are_read_by_its_rules() -> None:
    found = read("```markdown", "```sh", "```", "## Outside", "```", "x", "```", "- [ ] Task")
    assert titles(found) == ["Outside"]
    assert boxes(found) == [("Task", None)]


@each_case(
    "lines",
    [
        ("# A", "```sh", "- [ ] Task"),
        ("# A", "<!-- begun", "- [ ] Task"),
    ],
)
def test_a_block_without_an_end_that_hides_a_task_is_refused_with_its_line(lines: tuple[str, ...]) -> None:
    with pytest.raises(Unreadable, match="never closed") as refused:
        read(*lines)
    assert refused.value.line == 2


def test_a_fence_without_an_end_that_hides_no_work_is_read() -> None:
    for end in ((), ("",), ("", " ")):
        found = read("# A", "```sh", "make", *end)
        assert (titles(found), found.opened) == (["A"], 1)


def test_tags_hide_no_task_but_comments_do() -> None:
    found = read(
        "<details>", "<summary>More</summary>", "- [ ] Task", "</details>", "", "<!--", "- [ ] Not", "-->"
    )
    assert boxes(found) == [("Task", None)]


def test_two_columns_are_enough_to_belong_to_a_numbered_item() -> None:
    found = read("1. [ ] Outer", "  - [ ] Inner", "", "  Text of the outer one", "2. [x] Next")
    assert boxes(found) == [("Outer", None), ("Inner", 0), ("Next", None)]
    assert [item.end for item in found.items] == [4, 2, 5]


@each_case(
    "line, box, mark",
    [
        ("- [ ] A", " ", Mark.OPEN),
        ("* [x] A", "x", Mark.DONE),
        ("+ [X] A", "X", Mark.DONE),
        ("3. [~] A", "~", Mark.RUNNING),
        ("3) [!] A", "!", Mark.BLOCKED),
        ("- [-] A", "-", Mark.SKIPPED),
        ("- [/] A", "/", Mark.RUNNING),
        ("- [ ]* A", " ", Mark.OPEN),
        (r"- [ ]\* A", " ", Mark.OPEN),
        ("3. [ ] A", " ", Mark.OPEN),
        ("- [?] A", "?", None),
        ("- A", None, None),
    ],
)
def test_boxes_and_their_marks(line: str, box: str | None, mark: Mark | None) -> None:
    (item,) = read("Text", line).items
    assert (item.words, item.box, item.mark, item.optional) == (
        "A",
        box,
        mark,
        "]*" in line or "]\\*" in line,
    )


def test_sections_know_what_is_around_and_below_them() -> None:
    found = read("intro", "# A", "## B", "- [ ] Task", "### C", "# D")
    assert [(one.title, one.line, one.end, one.last, one.parent) for one in found.sections] == [
        ("", -1, 1, 1, None),
        ("A", 1, 2, 5, None),
        ("B", 2, 4, 5, 1),
        ("C", 4, 5, 5, 2),
        ("D", 5, 6, 6, None),
    ]
    assert [found.sections[at].title for at in found.around(found.items[0].section)] == ["B", "A"]
    assert found.title == "A"


def test_a_line_across_the_page_is_not_a_heading() -> None:
    found = read("Title", "=====", "", "One", "two", "---", "", "**Bold**", "---", "", "Below", "---")
    assert titles(found) == ["Title", "Below"]


def test_labels_in_bold_are_headings_for_what_is_below_them() -> None:
    found = read(
        "## A",
        "**Success Criteria:**",
        "- [ ] one",
        "",
        "**Notes**: text",
        "**Tasks**",
        "- [ ] two",
        "## B",
        "x",
    )
    assert [(one.title, one.line, one.end) for one in found.labels] == [
        ("Success Criteria:", 1, 5),
        ("Tasks", 5, 7),
    ]
    label = found.label_at(2)
    assert label is not None
    assert label.title == "Success Criteria:"
    assert found.label_at(8) is None


def test_front_matter_is_not_a_heading_and_its_values_can_be_written() -> None:
    found = read("---", "title: 'A'", "status: open # now", "---", "# B")
    assert titles(found) == ["B"]
    assert [line.kind for line in found.lines[:4]] == [Kind.FRONT] * 4
    edits = MarkdownEdits(found)
    assert (edits.front_value("status"), edits.front_value("title"), edits.front_value("x")) == (
        "open",
        "A",
        None,
    )
    edits.set_front("status", "done")
    edits.set_front("title", "it's: B")
    edits.set_front("by", "me: you")
    assert edits.content.decode().splitlines() == [
        "---", "title: 'it''s: B'", "status: done # now", 'by: "me: you"', "---", "# B",
    ]  # fmt: skip


def test_a_line_at_the_top_is_not_front_matter() -> None:
    assert read("---", "", "Some words", "---").front == 0


def test_tables_are_read_with_their_lines() -> None:
    (table,) = read("", "| Phase | Status |", "|---|---|", r"| a \| b | done |", "| c |", "", "x").tables
    assert [(row.line, row.cells) for row in table] == [
        (1, ("Phase", "Status")), (3, (r"a \| b", "done")), (4, ("c",)),
    ]  # fmt: skip


@each_case(
    "words, title",
    [
        ("**Add** the __form__", "Add the form"),
        ("Task: Add the form", "Add the form"),
        ("**Task:** Add the form", "Add the form"),
        ("Task 1: Add the form", "Task 1: Add the form"),
        ("Add the form <!-- id: 3 -->", "Add the form"),
        ("Use `__init__` and `**kwargs`", "Use `__init__` and `**kwargs`"),
        ("Rename my_own_name to other_name", "Rename my_own_name to other_name"),
        ("**Use `a`**", "Use `a`"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("~~Old~~ new", "Old new"),
    ],
)
def test_titles_are_plain(words: str, title: str) -> None:
    assert plain_title(words) == title


@each_case(
    "words, done, title, sha",
    [
        ("Add it 1a2b3c4", False, "Add it", "1a2b3c4"),
        ("Add it [1a2b3c4]", False, "Add it", "1a2b3c4"),
        ("Add it (`1a2b3c4`)", False, "Add it", "1a2b3c4"),
        ("Fix issue 1234567", False, "Fix issue 1234567", None),
        ("Fix it 1234567", True, "Fix it", "1234567"),
        ("Show the facade", True, "Show the facade", None),
        ("Draw the defaced", True, "Draw the defaced", None),
        ("Add it", True, "Add it", None),
        ("1a2b3c4", True, "1a2b3c4", None),
    ],
)
def test_the_commit_at_the_end_is_not_part_of_the_title(
    words: str, done: bool, title: str, sha: str | None
) -> None:
    assert without_sha(words, done=done) == (title, sha)


def test_the_checkpoint_of_a_heading_is_not_part_of_its_title() -> None:
    assert without_checkpoint("Phase 1: UI [checkpoint: dddb7a3]") == ("Phase 1: UI", "dddb7a3")
    assert without_checkpoint("Phase 1: UI") == ("Phase 1: UI", None)


_TEXTS = st.lists(
    st.sampled_from(
        [
            "", "# A", "## B", "text", "- [ ] a", "  - [x] b", "1. [~] c", "    - [ ] d", "```", "  ```sh",
            "<!-- x -->", "---", "===", "> - [ ] q", "| a | b |", "|---|---|", "**L**", "\t- [ ] t", "- ```",
            "~~~", "\\", "*",
        ]
    ),
    max_size=30,
)  # fmt: skip
_ENDING = st.sampled_from(["\n", "\r\n"])


@given(_TEXTS, _ENDING, st.booleans(), st.booleans())
def test_a_file_that_is_not_changed_keeps_every_byte(
    texts: list[str], ending: str, bom: bool, ended: bool
) -> None:
    content = (("\ufeff" if bom else "") + ending.join(texts) + (ending if ended else "")).encode()
    try:
        found = read_markdown(content)
    except Unreadable:
        return
    assert MarkdownEdits(found).content == content
    for item in found.items:
        assert item.line < item.end <= len(found.lines)
        assert item.parent is None or found.items[item.parent].end >= item.end
        section = found.sections[item.section]
        assert section.line < item.line < section.end


@given(_TEXTS, _ENDING, st.data())
def test_marks_change_their_own_line_alone_and_are_read_back(
    texts: list[str], ending: str, data: st.DataObject
) -> None:
    content = ending.join(texts).encode()
    try:
        found = read_markdown(content)
    except Unreadable:
        return
    marked = {
        item.line: data.draw(st.sampled_from(list(Mark))) for item in found.items if item.mark is not None
    }
    edits = MarkdownEdits(found)
    for line, mark in marked.items():
        edits.set_mark(line, mark)
    again = read_markdown(edits.content)
    assert {item.line: item.mark for item in again.items if item.mark is not None} == marked
    for at, (before, after) in enumerate(zip(found.lines, again.lines, strict=True)):
        assert at in marked or before.text == after.text
    twice = MarkdownEdits(again)
    for line, mark in marked.items():
        twice.set_mark(line, mark)
    assert twice.content == edits.content


def test_a_note_at_the_end_of_a_line_is_replaced_and_removed() -> None:
    pattern = re.compile(r"\(done in [0-9a-f]+\)")
    found = read_markdown(b"- [ ] A  \r\n- [ ] B (done in abc)")
    edits = MarkdownEdits(found)
    edits.annotate(0, "(done in 12)", pattern)
    edits.annotate(0, "(done in 12)", pattern)
    edits.annotate(1, "(done in 34)", pattern)
    assert edits.content == b"- [ ] A (done in 12)  \r\n- [ ] B (done in 34)"
    edits.annotate(0, "", pattern)
    edits.annotate(1, "", pattern)
    assert edits.content == b"- [ ] A  \r\n- [ ] B"


@each_case(
    "before, after",
    [
        ("Status: open", "Status: done"),
        ("**Status**: open  ", "**Status**: done  "),
        ("**Status:** open", "**Status:** done"),
        ("- **Status**: open", "- **Status**: done"),
        ("Status:", "Status: done"),
        ("No colon here", "No colon here"),
    ],
)
def test_the_value_of_a_line_is_written_behind_its_label(before: str, after: str) -> None:
    edits = MarkdownEdits(read(before))
    edits.set_value(0, "done")
    edits.set_value(0, "done")
    assert edits.content.decode() == f"{after}\n"


def test_lines_are_added_and_removed_with_the_endings_of_the_file() -> None:
    edits = MarkdownEdits(read_markdown(b"a\r\nb"))
    edits.insert(1, "new")
    edits.insert(2, "last")
    edits.remove(0)
    assert edits.content == b"new\r\nb\r\nlast"


@each_case(
    "text",
    [
        "- [ ] Task\n" * 100_000,
        "".join("  " * (at % 2000) + "- [ ] a\n" for at in range(2400)),
        ">" * 100_000 + "\n- [ ] a",
        "1. " * 100_000 + "a",
    ],
)
def test_a_hostile_file_is_refused_with_its_line_in_little_time(text: str) -> None:
    start = time.process_time()
    with pytest.raises(Unreadable) as refused:
        read_markdown(text.encode())
    assert refused.value.line is not None
    assert time.process_time() - start < 2


@each_case(
    "text",
    [
        "- [ ] " + "x" * 5_000_000,
        ("- [ ] " + "[" * 250 + "\n") * 19_000,
        "- ```\nx\n" * 9_900 + "```\n",
        "- ```\n" + "x\n" * 19_000 + "  ```\n",
        "- [ ] Task\n  - [ ] sub\n" * 9_900,
        "|a|b\n|-|-\n" * 9_900,
        "a\n" * 19_000 + "===\n",
        "* " * 1_000_000,
        "- [ ] " + "**a " * 20_000,
        "- [ ] " + "<!-- " * 100_000,
    ],
)
def test_a_strange_file_is_read_in_little_time(text: str) -> None:
    start = time.process_time()
    found = read_markdown(text.encode())
    for item in found.items:
        plain_title(item.words[:20_000])
    assert time.process_time() - start < 2
