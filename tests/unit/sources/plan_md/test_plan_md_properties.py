"""Whatever a checkbox plan contains and whatever people do to it, telling its progress loses nothing of theirs."""

from datetime import UTC, datetime

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from loopwright.adapters.sources.plan_md.plan_md import PlanMdSource
from loopwright.adapters.sources.text.titles import OURS
from loopwright.core.policy.graph import find_cycle
from loopwright.core.values.errors import BadPlan
from loopwright.ports import Discovered, FixTask, ItemProgress, Mark, Progress

SOURCE = PlanMdSource()
AT = datetime(2026, 11, 16, 12, tzinfo=UTC)
quick = settings(max_examples=60, deadline=None, phases=(Phase.explicit, Phase.generate))

words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
lines = st.sampled_from(
    [
        "",
        "words",
        "# Title",
        "## Phase",
        "## Discovered Work",
        "## Execution Summary",
        "## Success Criteria",
        "- [ ] Task 1: one",
        "- [x] Task 2: two <!-- abc1234 -->",
        "* [~] three <!-- deps: none -->",
        "1. [!] four",
        "  - [ ] part",
        "  - Type: code",
        "  - Reason: none",
        "  - Acceptance: `make test`",
        "  Files: a.py",
        "\t- deeper",
        "```",
        "```sh",
        "<!--",
        "-->",
        "> - [ ] quoted",
        "- plain",
        "Under\n=====",
        "grün 🎉  ",
    ]
)
plans = st.tuples(
    st.booleans(),
    st.lists(lines, max_size=25),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
).map(
    lambda drawn: (
        ("\ufeff" if drawn[0] else "") + drawn[2].join(drawn[1]) + (drawn[2] if drawn[3] else "")
    ).encode()
)
items = st.builds(
    ItemProgress,
    mark=st.sampled_from(Mark),
    commit=st.sampled_from([None, "abc1234def56789", "fff1234def56789"]),
    summary=words,
    checks=st.lists(st.sampled_from(["tests: passed", "lint: failed"]), max_size=2).map(tuple),
    reason=words,
)
keys = st.sampled_from(["1", "2", "three", "four", "nobody", "fix-1"])
progresses = st.builds(
    Progress,
    plan_id=st.just("plan_1"),
    at=st.just(AT),
    items=st.dictionaries(keys, items, max_size=4),
    fixes=st.lists(
        st.builds(FixTask, key=st.sampled_from(["fix-1", "a b/c", "#4 -->"]), title=words, issue=words),
        max_size=2,
    ).map(tuple),
    discovered=st.lists(
        st.builds(
            Discovered,
            title=words,
            reason=words,
            recommendation=st.sampled_from(["new", "current", ""]),
            mark=st.sampled_from(list(Mark)),
        ),
        max_size=2,
    ).map(tuple),
    completed_at=st.sampled_from([None, AT]),
    failed=st.booleans(),
)


def readable(content: bytes) -> bool:
    try:
        SOURCE.parse({"plan.md": content}, "plan.md")
    except BadPlan as refused:
        found = refused.problems
    else:
        return True
    assert found
    assert all(one.startswith(("plan.md", "and ")) and "\n" not in one for one in found)
    return False


def told(content: bytes, progress: Progress) -> bytes:
    return SOURCE.written({"plan.md": content}, progress).get("plan.md", content)


def theirs(content: bytes) -> list[str]:
    """Return the lines that are not ours, without marks and commits, endings and the blanks between sections."""
    found: list[str] = []
    for line in content.decode().replace("\r\n", "\n").split("\n"):
        bare = line.replace("<!-- abc1234def56 -->", "").replace("<!-- fff1234def56 -->", "")
        bare = bare.replace("<!-- abc1234 -->", "").rstrip()
        if bare and OURS not in bare:
            found.append(
                bare.replace("[x]", "[ ]").replace("[~]", "[ ]").replace("[!]", "[ ]").replace("[-]", "[ ]")
            )
    return found


@quick
@given(st.one_of(st.binary(max_size=300), plans))
def test_reading_anything_gives_work_or_located_problems(content: bytes) -> None:
    if readable(content):
        work = SOURCE.parse({"plan.md": content}, "plan.md")
        edges = {task.key: task.depends_on for task in work.tasks}
        assert len(edges) == len(work.tasks) > 0
        assert all(edges.keys() >= set(needs) for needs in edges.values())
        assert find_cycle(edges) is None


def _found(*marks: Mark, title: str = "0") -> Progress:
    found = tuple(Discovered(title=title, recommendation="new", mark=mark) for mark in marks)
    return Progress(plan_id="plan_1", at=AT, items={}, discovered=found)


@quick
@given(plans, progresses)
@example(b"- [ ] Task 1: one", _found(Mark.OPEN, Mark.RUNNING))
@example(b"## Discovered Work\nUnder\n=====\n- [ ] Task 1: one", _found(Mark.OPEN))
@example(b"- [ ] Task 1: one", _found(Mark.OPEN, title="\x1b\r\x1b"))
@example(b"- [ ] Task 1: one", _found(Mark.OPEN, title="<\x1b!-- id: 1 --\x1b>"))
def test_what_is_written_is_what_is_read_and_twice_is_once(content: bytes, progress: Progress) -> None:
    if not readable(content):
        return
    before = SOURCE.parse({"plan.md": content}, "plan.md")
    after = told(content, progress)
    assert told(after, progress) == after
    work = SOURCE.parse({"plan.md": after}, "plan.md")
    assert work.sha256 == before.sha256
    found = {task.key: task for task in work.tasks}
    assert set(found) == {task.key for task in before.tasks} | {fix.key for fix in progress.fixes}
    for task in before.tasks:
        wanted = progress.items.get(task.key)
        assert found[task.key].mark is (wanted.mark if wanted is not None else task.mark)
        if wanted is not None and wanted.mark is Mark.DONE and wanted.commit:
            assert wanted.commit.startswith(found[task.key].commit or "?")


@quick
@given(plans, progresses, progresses)
def test_no_line_of_others_is_lost_or_moved(content: bytes, first: Progress, second: Progress) -> None:
    if not readable(content):
        return
    once = told(content, first)
    left = iter(theirs(once))
    assert all(line in left for line in theirs(content))
    assert once.startswith(b"\xef\xbb\xbf") == content.startswith(b"\xef\xbb\xbf")
    twice = told(once, second)
    left = iter(theirs(twice))
    assert all(line in left for line in theirs(content))


@quick
@given(plans, progresses)
def test_taking_it_all_back_leaves_the_very_bytes(content: bytes, progress: Progress) -> None:
    """Only marks, commits and lines of ours below tasks: what is added for good, also by what was done, is left out."""
    if not readable(content):
        return
    marks = {task.key: task for task in SOURCE.parse({"plan.md": content}, "plan.md").tasks}
    only = Progress(
        plan_id="p", at=AT, items=progress.items, completed_at=progress.completed_at, phases=False
    )
    back = {
        key: ItemProgress(mark=marks[key].mark, commit=marks[key].commit)
        for key in progress.items
        if key in marks
    }
    again = told(told(content, only), Progress(plan_id="p", at=AT, items=back, phases=False))
    # Another commit was written over the one that stood there, and the box's own letter may have been another.
    assert again.replace(b"abc1234def56", b"abc1234") == content


@pytest.mark.trap("lost edit")
@quick
@given(plans, progresses, progresses, st.data())
def test_a_persons_edits_between_two_writes_survive(
    content: bytes, first: Progress, second: Progress, data: st.DataObject
) -> None:
    if not readable(content):
        return
    once = told(content, first).decode()
    newline = "\r\n" if "\r\n" in once else "\n"
    present = once.split(newline)
    place = data.draw(st.integers(0, len(present)))
    added = data.draw(
        st.sampled_from(["- [ ] Task 9: added", "A remark.", "## Phase 9", "  - nested by hand"])
    )
    edited = newline.join([*present[:place], added, *present[place:]]).encode()
    if not readable(edited):
        return
    after = told(edited, second)
    assert added in after.decode().replace("\r\n", "\n").split("\n")
    marks = {task.key: task.mark for task in SOURCE.parse({"plan.md": after}, "plan.md").tasks}
    for task in SOURCE.parse({"plan.md": edited}, "plan.md").tasks:
        wanted = second.items.get(task.key)
        assert marks[task.key] is (wanted.mark if wanted is not None else task.mark)
