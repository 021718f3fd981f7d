"""Lists of tracks with boxes in their headings, and boxes with words in them, are read and written like others."""

from pathlib import Path

from tests.cases import each_case
from tests.unit.sources.golden import progress

from loopwright.adapters import registry
from loopwright.adapters.sources.plan_md.plan_md import PlanMdSource
from loopwright.adapters.sources.text.reading import recognise
from loopwright.ports import Mark, PlannedWork

SOURCE = PlanMdSource()
TRACKS = """# Tracks

---

## [{}] Track: Parser
*Link: [./tracks/parser_1/](./tracks/parser_1/)*

---

## [ ] Track: Printer

Prints on paper.
"""
WORDED = (
    "## Steps\n\n- [completed] Read\n  - [pending] Test\n- [{}] Write\n  - [{}] Draft\n- [in_progress] Ship\n"
)


def work(text: str) -> PlannedWork:
    return SOURCE.parse({"tracks.md": text.encode()}, "tracks.md")


def written(text: str, key: str, mark: str, **more: object) -> str:
    files = {"tracks.md": text.encode()}
    told = progress({"items": {key: {"mark": mark, **more}}, "phases": True})
    once = {**files, **SOURCE.written(files, told)}
    assert not SOURCE.written(once, told)
    return once["tracks.md"].decode()


def test_headings_with_a_box_are_the_tasks_of_a_list_of_tracks(tmp_path: Path) -> None:
    found = work(TRACKS.replace("{}", "x"))
    one, two = found.tasks
    assert (one.key, one.title, one.mark) == ("track-parser", "Track: Parser", Mark.DONE)
    assert one.description == "*Link: [./tracks/parser_1/](./tracks/parser_1/)*"
    assert (two.mark, two.description, two.after) == (Mark.OPEN, "Prints on paper.", (one.key,))
    assert "Track" not in found.context
    assert found.sha256 == work(TRACKS.replace("{}", "~")).sha256
    place = tmp_path / "tracks.md"
    place.write_text(TRACKS)
    assert recognise(place, registry.sources()).kind == "plan_md"


@each_case(("mark", "sign"), [("running", "~"), ("done", "x"), ("blocked", "!"), ("open", " ")])
def test_status_goes_into_the_box_of_a_heading(mark: str, sign: str) -> None:
    assert written(TRACKS.replace("{}", "-"), "track-parser", mark) == TRACKS.replace("{}", sign)


def test_what_is_told_of_a_track_is_below_its_text() -> None:
    said = written(TRACKS.replace("{}", " "), "track-parser", "blocked", reason="no paper")
    assert "parser_1/)*\n- Blocked: no paper <!-- loopwright -->\n\n---\n" in said
    assert work(said).tasks[0].reason == "no paper"
    assert written(said, "track-parser", "open") == TRACKS.replace("{}", " ")


def test_a_heading_with_boxes_below_it_is_no_task() -> None:
    assert [task.key for task in work("## [ ] Track: Parser\n\n### Parts\n\n- [ ] Read\n").tasks] == ["read"]


def test_words_in_boxes_are_status() -> None:
    found = work(WORDED.replace("{}", "pending"))
    marks = {task.key: task.mark for task in found.tasks}
    assert marks == {"read": Mark.DONE, "write": Mark.OPEN, "ship": Mark.RUNNING}
    assert found.sha256 == work(WORDED.replace("{}", "completed")).sha256
    assert [task.key for task in work("- [new] Look\n- [ ] Write\n- [Done](a) b\n").tasks] == ["write"]


@each_case(
    ("text", "mark", "after"),
    [
        (WORDED, "done", "completed"),
        ("- [{}] Write\n", "done", "completed"),
        ("- [{}] Write\n", "running", "in_progress"),
        ("- [{}] Write\n", "skipped", "cancelled"),
        ("- [{}] Write\n- [done] Read\n", "done", "done"),
        ("- [{}] Write\n- [in-progress] Read\n", "running", "in-progress"),
    ],
)
def test_a_word_is_written_back_as_a_word(text: str, mark: str, after: str) -> None:
    assert written(text.replace("{}", "pending"), "write", mark) == text.replace("{}", after)


@each_case(("mark", "after"), [("done", "DONE"), ("running", "IN_PROGRESS"), ("blocked", "BLOCKED")])
def test_words_in_capitals_stay_in_capitals(mark: str, after: str) -> None:
    assert written("- [TODO] Write\n", "write", mark) == f"- [{after}] Write\n"
