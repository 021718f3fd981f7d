"""A prompt is one task; exported issues are one task each."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import each_case
from tests.unit.sources import laws
from tests.unit.sources.laws import after, marks, told
from tests.wording_plugin import Wording

from loopwright.adapters import registry
from loopwright.adapters.sources.issues_json.issues_json import IssuesSource
from loopwright.adapters.sources.prompt_md.prompt_md import PromptSource
from loopwright.adapters.sources.text.reading import read, recognise
from loopwright.core.values.errors import BadPlan
from loopwright.ports import Files, ItemProgress, Mark, PlannedTask, PlannedWork

ISSUES = IssuesSource()
DOCS = Path(__file__).parents[3] / "docs/reference/sources"


def sample(page: str, language: str) -> str:
    text = (DOCS / page).read_text(encoding="utf-8")
    return text.split(f"```{language}\n")[1].split("```")[0]


def issues(*entries: Any) -> dict[str, PlannedTask]:
    return {task.key: task for task in ISSUES.parse({"i.json": json.dumps(entries).encode()}, "i.json").tasks}


def problems(content: str) -> tuple[str, ...]:
    with pytest.raises(BadPlan) as caught:
        ISSUES.parse({"i.json": content.encode()}, "i.json")
    return caught.value.problems


def issue(number: int = 1, **more: Any) -> dict[str, Any]:
    return {"number": number, "title": f"Issue {number}", "body": "", **more}


@pytest.mark.capability("C013")
def test_a_prompt_is_one_task_with_all_of_its_text(tmp_path: Path) -> None:
    place = tmp_path / "PROMPT.md"
    place.write_bytes(b"\xef\xbb\xbf# Port it\r\n\r\n- [ ] to Go\r\n")
    assert recognise(place, registry.sources()).kind == "prompt_md"
    work = read(PromptSource(), place)
    (task,) = work.tasks
    assert (work.title, task.key, task.title) == ("Port it", "prompt", "Port it")
    assert task.description == "# Port it\n\n- [ ] to Go"
    for content, words in (
        (b" \n", "empty"),
        (b"\xff", "not UTF-8"),
        (b"a\0", "NUL"),
        (b"a" * 200_001, "at most"),
    ):
        with pytest.raises(BadPlan, match=rf"PROMPT\.md:1: .*{words}"):
            PromptSource().parse({"PROMPT.md": content}, "PROMPT.md")


FRONT = """---
acceptance: go test ./...
criteria: the README names the client
scope: [client/]
rounds:
  max: 20
  stop_after: 2h
settings:
  model: small
---
# Port it
"""


def prompt(content: str) -> PlannedWork:
    return PromptSource().parse({"PROMPT.md": content.encode()}, "PROMPT.md")


def test_front_matter_says_when_a_prompt_is_done_and_is_no_part_of_it() -> None:
    work = prompt(FRONT)
    (task,) = work.tasks
    assert (work.rounds, task.title, task.description, task.line) == (True, "Port it", "# Port it", 11)
    assert [one.command for one in task.acceptance] == ["go test ./..."]
    assert (task.criteria, task.scope) == (("the README names the client",), ("client/",))
    assert work.settings == {"model": "small", "rounds": {"max": 20, "stop_after": "2h"}}
    assert (work.lines["rounds.stop_after"], work.lines["model"]) == (7, 9)
    for text in (
        "---\nnot front matter",
        "---\n\nDo it.\nrounds: no",
        "---\n# Do it\n\nscope: all",
        "---\nNote: x",
    ):
        assert prompt(f"{text}\n").tasks[0].description == text
    assert prompt(sample("prompt-loop.md", "markdown")).tasks[0].acceptance


def test_what_is_wrong_in_the_front_matter_of_a_prompt_is_said_with_its_line() -> None:
    for content, words in (
        ("---\nrounds:\n  mx: 3\n---\nDo it.\n", r"PROMPT\.md:3: settings\.rounds\.mx.*max"),
        ("---\n\nacceptence: x\n---\nDo it.\n", r"PROMPT\.md:3: acceptence: unknown key.*acceptance"),
        ("---\nrounds: {max: 0}\n---\nDo it.\n", r"PROMPT\.md:2: .*max"),
        ("---\nrounds: many\n---\nDo it.\n", r"PROMPT\.md:2: .*rounds"),
        ("---\nsettings: {max_attempts: 3}\n---\nDo it.\n", r"PROMPT\.md:2: .*say rounds\.max"),
        (
            "---\nrounds:\n  max: 2\n\n# Do it.\n",
            r"PROMPT\.md:1: the settings above the prompt are never closed",
        ),
        ("---\nacceptence: x\n\nrounds: {max: 2}\nDo it.\n", r"PROMPT\.md:1: the settings .* never closed"),
        ("---\na: [\n---\nDo it.\n", r"PROMPT\.md:\d: this is not YAML"),
        ("---\njust words\n---\nDo it.\n", r"PROMPT\.md:2: between the lines"),
        ("---\nrounds: {max: 3}\n---\n\n", r"PROMPT\.md:1: the prompt is empty"),
        ("---\nacceptanc: x\n---\n", r"PROMPT\.md:1: the prompt is empty.*PROMPT\.md:2: acceptanc: unknown"),
    ):
        with pytest.raises(BadPlan) as caught:
            prompt(content)
        assert re.search(words, str(caught.value.problems)), caught.value.problems


def test_the_sample_export_of_the_documentation_is_read(tmp_path: Path) -> None:
    place = tmp_path / "export.json"
    place.write_text(sample("github-issues.md", "json"), encoding="utf-8")
    assert recognise(place, registry.sources()).kind == "issues_json"
    work = read(ISSUES, place)
    assert work.title == "Issues of example/shop"
    four, twelve = work.tasks
    assert (four.key, four.mark) == ("#4", Mark.DONE)
    assert (twelve.key, twelve.depends_on, twelve.priority, twelve.type) == ("#12", ("#4",), 25, "bug")
    assert twelve.criteria == ("the total is right", "a test shows it")


@each_case(
    ("body", "needs"),
    [
        ("Depends on #2", ("#2",)),
        ("blocked by: #2, #3 and #20", ("#2", "#3", "#20")),
        ("- [ ] requires #2", ("#2",)),
        ("Closes #2", ()),
        ("depends on other/repo#2", ()),
        ("> depends on #2", ()),
        ("```\ndepends on #2\n```", ()),
        ("depends on #1", ()),
    ],
)
def test_who_an_issue_waits_for_stands_in_its_body(body: str, needs: tuple[str, ...]) -> None:
    assert issues(issue(1, body=body), issue(2), issue(3), issue(20))["#1"].depends_on == needs


@each_case(
    ("labels", "priority"),
    [(["P0"], 10), (["Priority: High"], 25), (["priority/low"], 75), (["high"], 50), (["bug"], 50), ([], 50)],
)
def test_labels_that_mean_a_priority_count(labels: list[str], priority: int) -> None:
    assert issues(issue(labels=[{"name": name} for name in labels]))["#1"].priority == priority
    assert issues(issue(labels=labels))["#1"].priority == priority


def test_the_state_is_the_mark_and_not_a_part_of_the_meaning() -> None:
    found = issues(issue(1, state="CLOSED", stateReason="NOT_PLANNED"), issue(2, state="CLOSED"), issue(3))
    assert [task.mark for task in found.values()] == [Mark.SKIPPED, Mark.DONE, Mark.OPEN]
    hashes = {
        ISSUES.parse({"i.json": json.dumps([issue(state=state)]).encode()}, "i.json").sha256
        for state in ("OPEN", "CLOSED")
    }
    assert len(hashes) == 1


@each_case(
    ("content", "problem"),
    [
        ("{}", "i.json:1: expected a list of issues, as `gh issue list --state all"),
        ("[\n1]", "i.json:2: [0]: expected an object with number and title"),
        (
            '[{"number": 1, "title": "b"}, {"title": "a"}]',
            "i.json:1: number: expected the number of an issue",
        ),
        ('[{"number": true}]', "i.json:1: number: expected the number of an issue"),
        ('[{"number": 1}]', "i.json:1: #1.title: expected a text"),
        ('[{"number": 1, "title": "a", "body": 1}]', "i.json:1: #1.body: expected a text"),
        (
            '[{"number": 1, "title": "a"},\n{"number": 1, "title": "a"}]',
            "i.json:2: #1: this issue is already on line 1",
        ),
        (
            '[{"number": 1, "title": "a", "body": "depends on #2"},{"number": 2, "title": "a", "body": "requires #1"}]',
            "i.json:1: #1: these issues wait for each other: #1 -> #2 -> #1",
        ),
        ('[{"number": 1,', "i.json:1: this is not JSON"),
        ("[" * 100_000, "i.json:1: nested too deeply"),
    ],
)
def test_what_is_wrong_with_an_export_is_located(content: str, problem: str) -> None:
    assert problems(content)[0].startswith(problem)


def test_an_empty_export_has_nothing_to_do() -> None:
    work = ISSUES.parse({"i.json": b"[]"}, "i.json")
    assert work.tasks == ()
    assert "the list is empty" in work.notes[0]


def test_a_list_that_somebody_keeps_by_hand_is_read(tmp_path: Path) -> None:
    kept = [
        {"id": "BUG-1", "title": "Crash", "body": "It crashes", "status": "In progress"},
        {"id": "BUG-2", "title": "Typo", "body": "", "status": "resolved"},
        {"title": "Slow", "url": "https://forge.example/o/r/issues/7", "body": None},
    ]
    (tmp_path / "backlog.json").write_text(json.dumps(kept))
    assert recognise(tmp_path / "backlog.json", registry.sources()).kind == "issues_json"
    held = {"i.json": json.dumps(kept).encode()}
    assert marks(ISSUES.parse(held, "i.json")) == {"#BUG-1": Mark.OPEN, "#BUG-2": Mark.DONE, "#7": Mark.OPEN}
    done = {key: ItemProgress(mark=Mark.DONE) for key in ("#BUG-1", "#BUG-2", "#7")}
    made = json.loads(ISSUES.written(held, told(done))["i.json"])
    assert [one.get("status") or one["state"] for one in made] == ["closed", "resolved", "CLOSED"]


def test_issues_that_have_no_number_yet_are_called_by_their_titles() -> None:
    held = {"i.json": b'{"issues": [{"title": "Fix it", "body": ""}, {"title": "Do it", "body": ""}]}'}
    assert [task.key for task in ISSUES.parse(held, "i.json").tasks] == ["fix-it", "do-it"]
    made = after(ISSUES, held, told({"do-it": ItemProgress(mark=Mark.DONE)}))
    assert marks(ISSUES.parse(made, "i.json")) == {"fix-it": Mark.OPEN, "do-it": Mark.DONE}


def test_an_unknown_state_waits_for_the_user(wording: Wording) -> None:
    found = issues(issue(1, state="TRIAGE"), issue(2, state="on hold"), issue(3, state=7))
    assert {task.mark for task in found.values()} == {Mark.BLOCKED}
    wording(found["#1"].reason)


def test_an_issue_that_is_not_in_the_export_is_noted_once_and_holds_nothing_up(wording: Wording) -> None:
    entries = [issue(1, body="depends on #10"), issue(2, body="requires #10 and #11")]
    found = ISSUES.parse({"i.json": json.dumps(entries).encode()}, "i.json")
    assert [task.depends_on for task in found.tasks] == [(), ()]
    wording(found.notes[0])
    assert len(found.notes) == 2


@pytest.mark.capability("C013")
def test_an_export_of_the_rest_api_is_read_and_closed_in_its_own_words() -> None:
    url = "https://github.com/example/shop/issues/1"
    given = [
        issue(1, state="open", state_reason=None, html_url=url, labels=[{"name": "P1", "color": "red"}]),
        issue(2, state="open", pull_request={"url": "x"}),
        issue(3, state="closed", state_reason="not_planned"),
    ]
    before = {"i.json": json.dumps(given).encode()}
    work = ISSUES.parse(before, "i.json")
    assert (work.title, marks(work)) == ("Issues of example/shop", {"#1": Mark.OPEN, "#3": Mark.SKIPPED})
    assert work.tasks[0].priority == 25
    made = after(
        ISSUES, before, told({"#1": ItemProgress(mark=Mark.DONE), "#2": ItemProgress(mark=Mark.DONE)})
    )
    one, two, three = json.loads(made["i.json"])
    assert (one["state"], one["state_reason"]) == ("closed", "completed")
    assert [two, three] == given[1:]


def test_issues_are_found_where_an_export_has_them(tmp_path: Path) -> None:
    own = {"metadata": {"project": "P"}, "issues": [{"id": 4, "title": "A", "body": "b", "priority": "high"}]}
    answer = {"data": {"repository": {"issues": {"nodes": [issue(4)]}}}}
    for n, document in enumerate((own, answer)):
        place = tmp_path / f"{n}.json"
        place.write_text(json.dumps(document))
        assert recognise(place, registry.sources()).kind == "issues_json"
        work = read(ISSUES, place)
        assert [task.key for task in work.tasks] == ["#4"]
        made = after(ISSUES, ISSUES.files(place), told({"#4": ItemProgress(mark=Mark.DONE)}))
        assert marks(ISSUES.parse(made, "i")) == {"#4": Mark.DONE}


def test_numbers_of_several_repositories_are_told_apart() -> None:
    found = issues(issue(1, repo="a/b"), issue(1, repo="c/d"), issue(2, repo="c/d"))
    assert list(found) == ["a/b#1", "c/d#1", "#2"]


@each_case("codec", ["utf-16", "utf-16-le", "utf-16-be"])
def test_an_export_of_powershell_is_read_and_keeps_its_encoding(codec: str) -> None:
    mark = "" if codec == "utf-16" else "\ufeff"
    text = json.dumps([issue(1, title="Größe")], ensure_ascii=False, indent=1).replace("\n", "\r\n")
    before = {"i.json": (mark + text).encode(codec)}
    made = after(ISSUES, before, told({"#1": ItemProgress(mark=Mark.DONE)}))
    assert made["i.json"][:2] == before["i.json"][:2]
    (one,) = json.loads(made["i.json"].decode("utf-16"))
    assert (one["title"], one["state"]) == ("Größe", "CLOSED")
    with pytest.raises(BadPlan, match="not UTF-16"):
        ISSUES.parse({"i.json": before["i.json"][:-1] + b""}, "i.json")


def test_an_export_without_bodies_is_noted(wording: Wording) -> None:
    found = ISSUES.parse({"i.json": b'[{"number": 1, "title": "a"}]'}, "i.json")
    wording(found.notes[0])


OWNED = {"state", "stateReason", "loopwright"}
numbers = st.integers(1, 5)
exports = st.dictionaries(
    numbers,
    st.fixed_dictionaries(
        {"title": st.text("ab", min_size=1, max_size=3), "body": st.text(laws.letters, max_size=5)},
        optional={
            "state": st.sampled_from(["OPEN", "CLOSED", "open", "closed"]),
            "stateReason": st.sampled_from(["", "COMPLETED", "NOT_PLANNED", "REOPENED"]),
            "labels": st.lists(
                st.builds(lambda name: {"name": name}, st.sampled_from(["bug", "P1"])), max_size=2
            ),
            "author": st.just({"login": "é"}),
            "comments": st.integers(0, 9),
        },
    ),
    min_size=1,
)


def exported(document: dict[int, dict[str, Any]], layout: dict[str, Any], mark: bool = False) -> Files:
    text = json.dumps([{"number": number, **one} for number, one in document.items()], **layout)
    return {"i.json": (b"\xef\xbb\xbf" if mark else b"") + text.encode()}


def foreign(files: Files) -> list[dict[str, Any]]:
    entries = json.loads(files["i.json"].decode("utf-8-sig"))
    return [{key: value for key, value in one.items() if key not in OWNED} for one in entries]


@settings(max_examples=60, deadline=None)
@given(
    document=exports,
    progress=st.dictionaries(numbers.map(lambda n: f"#{n}"), laws.items),
    layout=st.sampled_from([{}, {"indent": 2}, {"indent": 1, "ensure_ascii": False}]),
    mark=st.booleans(),
)
def test_what_was_told_is_read_again_and_nothing_else_of_an_export_changed(
    document: dict[int, dict[str, Any]],
    progress: dict[str, ItemProgress],
    layout: dict[str, Any],
    mark: bool,
) -> None:
    before = exported(document, layout, mark)
    made = after(ISSUES, before, told(progress))
    work, was = ISSUES.parse(made, "here"), ISSUES.parse(before, "here")
    assert work.sha256 == was.sha256
    for task in work.tasks:
        item = progress.get(task.key)
        wanted = (
            marks(was)[task.key] if item is None else Mark.OPEN if item.mark is Mark.RUNNING else item.mark
        )
        assert task.mark is wanted
        if item is not None and wanted is Mark.BLOCKED:
            assert task.reason == (item.reason.replace("\0", "\ufffd").strip() or "no reason was given")
    assert foreign(made) == foreign(before)
    assert made["i.json"].startswith(b"\xef\xbb\xbf") == mark
    if not any(f"#{number}" in progress for number in document):
        assert made == before


@settings(max_examples=40, deadline=None)
@given(document=exports, edited=exports, data=st.data())
def test_a_newer_export_between_two_writes_survives(
    document: dict[int, dict[str, Any]], edited: dict[int, dict[str, Any]], data: st.DataObject
) -> None:
    progress = told({f"#{number}": data.draw(laws.items) for number in document})
    after(ISSUES, exported(document, {"indent": 2}), progress)
    newer = exported(edited, {})
    made = after(ISSUES, newer, progress)
    assert foreign(made) == foreign(newer)
    for one in json.loads(made["i.json"]):
        if one["number"] not in document:
            assert one == {"number": one["number"], **edited[one["number"]]}


def test_an_issue_is_closed_with_its_commit_in_the_words_of_the_forge() -> None:
    progress = told(
        {
            "#1": ItemProgress(mark=Mark.DONE, commit="a91c2e4", summary="Prices"),
            "#2": ItemProgress(mark=Mark.BLOCKED, reason="which shop?"),
        }
    )
    made = after(
        ISSUES, {"i.json": json.dumps([issue(1, state="OPEN"), issue(2, state="OPEN")]).encode()}, progress
    )
    one, two = json.loads(made["i.json"])
    assert one == issue(
        1,
        state="CLOSED",
        stateReason="COMPLETED",
        loopwright={"status": "done", "commit": "a91c2e4", "summary": "Prices"},
    )
    assert two == issue(2, state="OPEN", loopwright={"status": "blocked", "reason": "which shop?"})


@each_case(
    ("name", "kind"),
    [("PROMPT_build.md", "prompt_md"), ("prompt-plan.md", "prompt_md"), ("PROMPT.md", "prompt_md")],
)
def test_a_file_that_is_called_like_a_prompt_is_one_even_with_boxes(
    tmp_path: Path, name: str, kind: str
) -> None:
    (tmp_path / name).write_text("Do this:\n\n- [ ] one thing\n")
    assert recognise(tmp_path / name, registry.sources()).kind == kind
    (tmp_path / "prompts.md").write_text("- [ ] one thing\n")
    assert recognise(tmp_path / "prompts.md", registry.sources()).kind == "plan_md"
