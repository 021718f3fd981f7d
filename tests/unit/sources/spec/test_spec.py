"""A plan file of our own that is told how its tasks stand: `status` beside each, and every other byte as it was."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import each_case
from tests.unit.sources.laws import after, items, marks, refused, told

from loopwright.adapters import registry
from loopwright.adapters.sources.spec.spec import SpecSource, standing
from loopwright.adapters.sources.text.reading import recognise
from loopwright.core.values.errors import BadPlan
from loopwright.ports import ItemProgress, Mark

SPEC = SpecSource()
DONE = ItemProgress(mark=Mark.DONE, commit="a91c2e4")
STUCK = ItemProgress(mark=Mark.BLOCKED, reason="no key: *ask* #them\nnow")


def spec(text: str) -> dict[str, bytes]:
    return {"work.yaml": text.encode()}


GIVEN = """# Mine.
title: Both
write_status: true
tasks:
  # the first
  - id: one  # it has a comment
    title: "One"
    acceptance: |
      test -e a

  - title: Two
    id: 'two'
    status: open # soon
  - {id: three, title: Three}
  -   "id": "four"
      "title": "Four"
"""


@pytest.mark.capability("C057")
def test_status_is_put_beside_the_id_or_where_it_stands_and_nothing_else_changes() -> None:
    progress = told({"one": DONE, "two": STUCK, "three": ItemProgress(mark=Mark.RUNNING), "four": DONE})
    made = after(SPEC, spec(GIVEN), progress)["work.yaml"].decode()
    expected = (
        GIVEN.replace("  # it has a comment\n", "  # it has a comment\n    status: done in a91c2e4\n")
        .replace("status: open # soon", 'status: "blocked: no key: *ask* #them now" # soon')
        .replace("{id: three, title", "{id: three, status: running, title")
        .replace('"id": "four"\n', '"id": "four"\n      "status": "done in a91c2e4"\n')
    )
    assert made == expected
    tasks = {task.key: task for task in SPEC.parse(spec(made), "work.yaml").tasks}
    assert (tasks["one"].mark, tasks["one"].commit) == (Mark.DONE, "a91c2e4")
    assert (tasks["two"].mark, tasks["two"].reason) == (Mark.BLOCKED, "no key: *ask* #them now")
    again = after(SPEC, spec(made), told({key: ItemProgress(mark=Mark.OPEN) for key in tasks}))
    assert set(marks(SPEC.parse(again, "work.yaml")).values()) == {Mark.OPEN}


def test_what_has_not_begun_gets_no_status_and_what_is_gone_is_left_out() -> None:
    progress = told({"one": ItemProgress(mark=Mark.OPEN), "gone": DONE})
    assert SPEC.written(spec(GIVEN), progress) == {}


@each_case("newline", ["\n", "\r\n"])
@each_case("bom", ["", "\ufeff"])
def test_line_ends_and_a_byte_order_mark_stay(newline: str, bom: str) -> None:
    text = bom + GIVEN.replace("\n", newline).rstrip()
    made = after(SPEC, spec(text), told({"one": DONE, "four": DONE}))["work.yaml"].decode()
    assert made.startswith(bom)
    assert made.count("\n") == made.count(newline)
    assert not made.endswith("\n")


def test_ids_that_are_written_in_odd_ways_get_their_status_too_or_nothing_is_written() -> None:
    folded = "write_status: true\ntitle: T\ntasks:\n- id: >-\n    one\n  title: One\n"
    made = after(SPEC, spec(folded), told({"one": DONE}))
    assert marks(SPEC.parse(made, "work.yaml")) == {"one": Mark.DONE}
    explicit = "write_status: true\ntitle: T\ntasks:\n- ? id\n  : one\n  title: One\n"
    with pytest.raises(BadPlan, match="cannot be put beside"):
        SPEC.written(spec(explicit), told({"one": DONE}))


def test_a_plan_is_told_only_if_it_asks_for_it_and_its_hash_is_that_of_what_is_asked(tmp_path: Path) -> None:
    place = tmp_path / "work.yaml"
    for text, kind in ((GIVEN, "spec"), (GIVEN.replace("write_status: true", ""), "yaml")):
        place.write_text(text)
        assert recognise(place, registry.sources()).kind == kind
    for text in (
        '{"write_status": true, "title": "T", "tasks": []}',
        '{"title": "T", "tasks": [], "write_status": true}',
    ):
        (tmp_path / "work.json").write_text(text)
        assert recognise(tmp_path / "work.json", registry.sources()).kind == "spec"
    (tmp_path / "work.json").write_text(json.dumps({"title": 'say {"write_status": true}', "tasks": []}))
    assert recognise(tmp_path / "work.json", registry.sources()).kind == "yaml"
    before = SPEC.parse(spec(GIVEN), "work.yaml").sha256
    made = after(SPEC, spec(GIVEN), told({"one": DONE, "two": STUCK}))
    assert SPEC.parse(made, "work.yaml").sha256 == before
    assert SPEC.parse(spec(GIVEN.replace("Three", "Other")), "work.yaml").sha256 != before


def test_a_status_that_does_not_exist_is_an_error_with_its_line() -> None:
    (problem,) = refused(SPEC, spec(GIVEN.replace("status: open", "status: finished")), "work.yaml")
    assert problem.startswith("work.yaml:13: tasks[1].status: expected open, running")
    (problem,) = refused(SPEC, spec(GIVEN.replace("write_status: true", "write_status: maybe")), "work.yaml")
    assert problem.startswith("work.yaml:3: write_status: expected")


# --- whatever it is told -----------------------------------------------------------------------------------

words = st.text("aé:#'\"-{}[]*&!%@| ", min_size=1, max_size=8).filter(str.strip)
keys = st.sampled_from(["a", "b", "c d", "12", "é"])
statuses = st.sampled_from(["open", "done", "done in a91c2e4", "blocked: why", "skipped"])
rows = st.fixed_dictionaries(
    {"id": keys, "title": words},
    optional={"status": statuses, "priority": st.integers(0, 9), "criteria": st.just(["x: y"])},
)


def shown(row: dict[str, Any], *, flow: bool, comment: bool) -> str:
    pairs = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in row.items()]
    if flow:
        return "- {" + ", ".join(pairs) + "}" + "  # why" * comment + "\n"
    first, *more = (pair + "   # why" * comment for pair in pairs)
    return "\n  ".join([f"- {first}", *more]) + "\n" + "\n  # below\n" * comment


texts = st.lists(
    st.tuples(rows, st.booleans(), st.booleans()),
    min_size=1,
    max_size=4,
    unique_by=lambda each: each[0]["id"],
)


@settings(max_examples=80, deadline=None)
@given(tasks=texts, progress=st.dictionaries(keys, items, max_size=4), yaml=st.booleans())
@pytest.mark.capability("C057")
def test_reading_writing_and_reading_again_agree(
    tasks: list[tuple[dict[str, Any], bool, bool]], progress: dict[str, ItemProgress], yaml: bool
) -> None:
    """Marks are as told, everything else is as it was, and a second telling changes nothing."""
    if yaml:
        text = "write_status: true\ntitle: T\ntasks:\n"
        text += "".join(shown(row, flow=flow, comment=comment) for row, flow, comment in tasks)
        files = {"work.yaml": text.encode()}
    else:
        plan = {"write_status": True, "title": "T", "tasks": [row for row, _, _ in tasks]}
        files = {"work.json": json.dumps(plan, indent=1).encode()}
    before = SPEC.parse(files, "work")
    made = after(SPEC, files, told(progress))
    now = SPEC.parse(made, "work")
    assert now.sha256 == before.sha256
    expected = {**marks(before), **{key: item.mark for key, item in progress.items() if key in marks(before)}}
    assert marks(now) == expected
    for comment in ("# why", "# below"):
        assert made[next(iter(made))].count(comment.encode()) == files[next(iter(files))].count(
            comment.encode()
        )


@settings(max_examples=60, deadline=None)
@given(tasks=texts, first=st.dictionaries(keys, items), then=st.dictionaries(keys, items), data=st.data())
def test_what_a_person_changes_between_two_tellings_stays(
    tasks: list[tuple[dict[str, Any], bool, bool]],
    first: dict[str, ItemProgress],
    then: dict[str, ItemProgress],
    data: st.DataObject,
) -> None:
    """Between the two somebody removes a task, adds one, and turns the order round."""
    head = "write_status: true\ntitle: T\ntasks:\n"
    parts = [shown(row, flow=flow, comment=comment) for row, flow, comment in tasks]
    made = after(SPEC, spec(head + "".join(parts)), told(first))["work.yaml"].decode()
    entries = ["- " + part for part in made.removeprefix(head).split("\n- ")]
    entries = [entry.removeprefix("- - ").removeprefix("- ") for entry in entries]
    entries = ["- " + entry.rstrip("\n") + "\n" for entry in entries]
    if len(entries) > 1 and data.draw(st.booleans()):
        entries.pop(data.draw(st.integers(0, len(entries) - 1)))
    entries = [*reversed(entries), "- id: new  # mine\n  title: New\n"]
    edited = spec(head + "".join(entries))
    before = SPEC.parse(edited, "work")
    now = SPEC.parse(after(SPEC, edited, told(then)), "work")
    assert [task.key for task in now.tasks] == [task.key for task in before.tasks]
    assert [task.title for task in now.tasks] == [task.title for task in before.tasks]
    assert marks(now) == {
        **marks(before),
        **{key: one.mark for key, one in then.items() if key in marks(before)},
    }


def test_every_standing_can_be_read_again() -> None:
    for mark in Mark:
        text = standing(ItemProgress(mark=mark, commit="a91c2e4", reason="a\nb: \0 c"))
        files = spec(
            f"write_status: true\ntitle: T\ntasks: [{{id: a, title: A, status: {json.dumps(text)}}}]\n"
        )
        assert marks(SPEC.parse(files, "work")) == {"a": mark}
