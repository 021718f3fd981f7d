"""Checkbox plans: what is read, who waits for whom, and how everything that is wrong is located."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.cases import each_case
from tests.unit.sources import laws
from tests.unit.sources.golden import DATA, files_in, progress
from tests.wording_plugin import Wording

from loopwright.adapters import registry
from loopwright.adapters.sources.plan_md.plan_md import PlanMdSource
from loopwright.adapters.sources.plan_md.plan_md_outline import MAX_LINE, MAX_TASKS
from loopwright.adapters.sources.text.markdown import MAX_LINES
from loopwright.adapters.sources.text.reading import read, recognise
from loopwright.core.values.errors import BadPlan
from loopwright.ports import EvaluatedPlan, ItemProgress, Mark, PlannedTask, PlannedWork

SOURCE = PlanMdSource()
DOCS = Path(__file__).parents[4] / "docs" / "reference" / "sources" / "checkbox-plan.md"


def work(text: str | bytes, **others: str) -> PlannedWork:
    files = {name.replace("_", "."): content.encode() for name, content in others.items()}
    return SOURCE.parse({"plan.md": text.encode() if isinstance(text, str) else text, **files}, "plan.md")


def tasks(text: str) -> dict[str, PlannedTask]:
    return {task.key: task for task in work(text).tasks}


def problems(text: str | bytes, **others: str) -> tuple[str, ...]:
    with pytest.raises(BadPlan) as caught:
        work(text, **others)
    return caught.value.problems


def waits(text: str) -> dict[str, tuple[str, ...]]:
    return {key: task.depends_on for key, task in tasks(text).items()}


def order(text: str) -> dict[str, tuple[str, ...]]:
    return {key: task.after for key, task in tasks(text).items()}


@pytest.mark.capability("C021")
def test_a_track_is_read_with_everything_in_it(wording: Wording) -> None:
    found = SOURCE.parse(files_in(DATA / "plan_md/track/given"), "conductor/tracks/sign-up_20261116")
    assert found.title == "Plan: Sign-up"
    assert "People cannot sign up." in found.context
    assert "Strangers become users." in found.context
    assert "dag:" not in found.context
    assert "Build the form" not in found.context
    one, two, three, four = found.tasks
    assert (one.key, one.title, one.type, one.phase) == ("1.1", "Build the form", "ui", "Phase 1: Parts")
    assert one.criteria == ("It renders, validates, submits",)
    assert [gate.command for gate in one.acceptance] == ["npm test -- form"]
    assert one.scope == ("src/form.tsx", "src/form.css")
    assert (two.title, two.type, two.scope) == ("Build the client", "code", ("src/client.ts",))
    assert two.criteria == ("Errors are typed",)
    assert [gate.command for gate in two.acceptance] == [
        "npm test -- client",
        "npx tsc --noEmit",
        "set -e\nnpm run lint\nnpm run build",
    ]
    assert two.description == "- Keep the old name exported."
    assert (three.type, three.depends_on) == ("integration", ("1.1", "1.2"))
    assert three.description == "- [ ] in the header\n- [ ] on the start page"
    assert (four.type, four.scope, four.depends_on) == ("docs", ("docs/sign-up.md",), ())
    assert (three.after, four.after) == ((), (three.key,))
    aside, unversioned = found.notes
    wording(aside)
    wording(unversioned)


def test_a_plain_list_works_without_any_of_that() -> None:
    found = SOURCE.parse(files_in(DATA / "plan_md/plain/given"), "TODO.md")
    assert found.title == "To do"
    assert [(task.key, task.mark) for task in found.tasks] == [
        ("größe-prüfen", Mark.DONE),
        ("add-the-müesli", Mark.OPEN),
        ("add-the-milk", Mark.OPEN),
        ("wash-up", Mark.OPEN),
        ("buy-bread", Mark.BLOCKED),
    ]
    assert found.tasks[1].description == "- with nuts\n- and raisins"
    assert found.tasks[4].reason == "the shop is closed"
    assert all(task.depends_on == () for task in found.tasks)


def test_tasks_come_in_the_order_of_the_file_which_is_not_a_dependency() -> None:
    plan = "## A\n- [ ] a\n- [ ] b\n## Empty\nwords\n## B\n- [ ] c\n"
    assert order(plan) == {"a": (), "b": ("a",), "c": ("b",)}
    assert set(waits(plan).values()) == {()}


def test_tasks_of_one_parallel_group_have_no_order_among_themselves() -> None:
    by_comment = "- [ ] a\n- [ ] b <!-- parallel: g -->\n- [ ] c <!-- parallel: g -->\n- [ ] d\n"
    block = "```yaml\ndag:\n  parallel_groups:\n  - {id: g, tasks: [b, c]}\n```\n"
    by_block = f"- [ ] a\n- [ ] b\n- [ ] c\n- [ ] d\n{block}"
    for plan in (by_comment, by_block):
        assert order(plan) == {"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")}


def test_headings_that_repeat_under_two_phases_are_no_cycle() -> None:
    plan = "## P1\n### Tests\n- [ ] a\n### Code\n- [ ] b\n## P2\n### Tests\n- [ ] a\n### Code\n- [ ] b\n"
    assert order(plan) == {"a": (), "b": ("a",), "tests/a": ("b",), "code/b": ("tests/a",)}


@each_case(
    ("line", "key", "title", "commit"),
    [
        ("- [x] Task: Add the form bf12271", "add-the-form", "Add the form", "bf12271"),
        ("- [x] Task: Add the form [bf12271]", "add-the-form", "Add the form", "bf12271"),
        ("- [x] **Task: Add the `form`** `bf12271`", "add-the-form", "Add the `form`", "bf12271"),
        ("- [ ] **Task:** Add *the* form", "add-the-form", "Add the form", None),
        ("- [x] Task 1.2: Add the form bf12271", "1.2", "Add the form", "bf12271"),
        ("- [ ] 1. **Add** the form", "1", "1. Add the form", None),
        ("- [x] Add the form <!-- aaaaaaaaaaaa -->", "add-the-form", "Add the form", "a" * 12),
    ],
)
def test_titles_are_plain_and_a_commit_behind_one_is_not_part_of_it(
    line: str, key: str, title: str, commit: str | None
) -> None:
    (task,) = tasks(f"{line}\n").values()
    assert (task.key, task.title, task.commit) == (key, title, commit)


def test_a_commit_that_another_tool_wrote_is_left_alone() -> None:
    files = {"plan.md": b"- [x] Task: a bf12271\n- [ ] Task: b\n"}
    same = progress({"items": {"a": {"mark": "done", "commit": "bf12271" + "0" * 33}}})
    assert SOURCE.written(files, same) == {}
    back = SOURCE.written(files, progress({"items": {"a": {"mark": "open"}}}))["plan.md"]
    assert back == b"- [ ] Task: a bf12271\n- [ ] Task: b\n"


def test_steps_for_people_are_questions_of_their_own() -> None:
    plan = (
        "## Phase 1 [checkpoint: dddb7a3]\n- [ ] Task: Build it\n    - [ ] Style it\n"
        "    - [ ] Manual verification of the page\n        - with a phone\n    - [ ] Test it\n"
        "- [ ] Task: Conductor - User Manual Verification 'Phase 1' (Protocol in workflow.md)\n"
        "- [ ] Ask the user for the key\n- [ ] Document the manual tests\n"
    )
    found = tasks(plan)
    assert [(task.title.split()[0], task.manual) for task in found.values()] == [
        ("Build", False), ("Manual", True), ("Conductor", True), ("Ask", True), ("Document", False),
    ]  # fmt: skip
    assert {task.phase for task in found.values()} == {"Phase 1"}
    step = found["manual-verification-of-the-page"]
    assert (step.depends_on, step.description) == (("build-it",), "- with a phone")
    assert "Manual" not in found["build-it"].description
    assert "Test it" in found["build-it"].description
    done = progress({"items": {"build-it": {"mark": "done", "summary": "made"}}})
    files = {"plan.md": plan.encode()}
    files |= SOURCE.written(files, done)
    assert b"[x] Test it" in files["plan.md"]
    assert b"[ ] Manual verification" in files["plan.md"]
    files |= SOURCE.written(files, progress({"items": {step.key: {"mark": "blocked", "reason": "no phone"}}}))
    again = {task.key: task for task in SOURCE.parse(files, "plan.md").tasks}
    assert (again["build-it"].mark, again[step.key].mark) == (Mark.DONE, Mark.BLOCKED)
    assert (again[step.key].reason, again["build-it"].reason) == ("no phone", "")


@each_case(
    ("title", "asked"),
    [
        ("Remove the old copies ✅ DONE (2026-02-27)", True),
        ("✅ Add the form", True),
        ("~~Add the form~~", True),
        ("Add the form (deferred, needs the key)", True),
        ("Add the form — DEFERRED", True),
        ("DEFERRED: add the form", True),
        ("Add the state parameter (✅ Fixed)", True),
        ("Set the state to DONE", False),
        ("Show ✅ beside each finished row", False),
        ("Handle completed orders (done by the worker) first", False),
    ],
)
def test_an_open_box_that_is_called_settled_is_asked_about(title: str, asked: bool) -> None:
    found = work(f"- [ ] {title}\n- [x] Other ✅\n")
    assert [task.manual for task in found.tasks] == [asked, False]
    assert len(found.notes) == int(asked)


def test_a_box_that_says_none_is_no_task() -> None:
    assert [*tasks("## Done\n- [x] a\n## Pending\n- [ ] None\n- [ ] N/A\n- [ ] None - fixed\n")] == ["a"]


def test_numbers_that_begin_again_in_each_phase_are_told_apart_by_it(wording: Wording) -> None:
    plan = "## Cart\n- [ ] Task 1: a\n- [ ] Task 2: b\n## Prices\n- [ ] Task 1: c\n- [ ] Task 2: d\n"
    found = work(plan)
    assert [task.key for task in found.tasks] == ["1", "2", "prices/1", "prices/2"]
    wording(found.notes)
    assert "is already on line 2" in problems(f"{plan}## Cart\n- [ ] Task 1: e\n")[0]


def test_a_task_knows_the_section_it_is_in() -> None:
    found = tasks("# Shop\n## Cart\n- [ ] Add\n- [x] Remove\n## Prices\n- [ ] Show\n")
    assert found["add"].section == "Shop > Cart\n- Add\n- Remove"
    assert found["show"].section == "Shop > Prices"


def test_boxes_below_a_label_of_criteria_are_not_tasks(wording: Wording) -> None:
    found = work("## A\n- [ ] a\n\n**Acceptance Criteria:**\n- [ ] it works\n\n**Next**\n- [ ] b\n")
    assert [task.key for task in found.tasks] == ["a", "b"]
    wording(found.notes)


@each_case(
    ("line", "needs"),
    [
        ("- [ ] Task 2: c <!-- deps: none -->", ()),
        ("- [ ] Task 2: c <!-- deps: -->", ()),
        ("- [ ] Task 2: c <!-- deps: Task 1.1, parallel: pg-1 -->", ("1.1",)),
        ("- [ ] Task 2: c <!-- depends_on: 1.1; 1.10 -->", ("1.1", "1.10")),
        ("- [ ] Task 2: c\n  - **Depends on:** Task 1.10 and 1.1", ("1.10", "1.1")),
        ("- [ ] Task 2: c\n  - Depends on:\n    - 1.10", ("1.10",)),
    ],
)
def test_what_is_said_about_waiting_counts_instead_of_the_phase(line: str, needs: tuple[str, ...]) -> None:
    plan = f"## A\n- [ ] Task 1.1: a\n- [ ] Task 1.10: b\n- [ ] Task 1.2: x\n## B\n{line}\n"
    assert waits(plan)["2"] == needs


@each_case(
    ("line", "key", "title"),
    [
        ("- [ ] Task 1.2: Build it", "1.2", "Build it"),
        ("- [ ] **Task 1.2**: Build it", "1.2", "Build it"),
        ("- [ ] Task 3 Build it", "3", "Build it"),
        ("* [ ] Task 3.1 — Build it", "3.1", "Build it"),
        ("1) [ ] Fix 2: Build it", "fix-2", "Build it"),
        ("- [ ] 1.2 Build it", "1.2", "1.2 Build it"),
        ("- [ ] 4. Build it", "4", "4. Build it"),
        ("- [ ] T001 [P] Build it", "T001", "T001 [P] Build it"),
        ("- [ ] **T1.2** `[H]` Build it", "T1.2", "T1.2 `[H]` Build it"),
        ("- [ ] AUTH-12: Build it", "AUTH-12", "AUTH-12: Build it"),
        ("- [ ] Build it <!-- id: login -->", "login", "Build it"),
        ("- [ ] Build `it` <!-- and more", "build-it-and-more", "Build `it` <!-- and more"),
        ("- [ ] Fix 2 bugs", "fix-2-bugs", "Fix 2 bugs"),
        ("- [ ] 🎉", "task", "🎉"),
    ],
)
def test_a_task_is_called_what_it_calls_itself(line: str, key: str, title: str) -> None:
    (found,) = work(f"{line}\n").tasks
    assert (found.key, found.title) == (key, title)


def test_the_same_words_twice_are_two_tasks_and_moving_lines_changes_no_name() -> None:
    assert list(tasks("## A\n- [ ] Add tests\n## B\n- [ ] Add tests\n- [ ] Add tests\n")) == [
        "add-tests",
        "b/add-tests",
        "b/add-tests-2",
    ]
    assert set(tasks("## A\n- [ ] One\n- [ ] Two\n")) == set(tasks("## A\nHi\n\n- [ ] Two\n- [ ] One\n"))


def test_only_outermost_boxes_outside_of_code_comments_and_quotes_are_tasks() -> None:
    plan = """\
- group
  - [ ] one
    - [ ] part of one
 - [ ] two

   more of two
- [ ] three
continued

> - [ ] quoted

    - [ ] code
~~~
- [ ] fenced
~~~~
<!-- - [ ] off -->
- [1] a reference
"""
    found = tasks(plan)
    assert list(found) == ["one", "two", "three"]
    assert found["two"].description == "more of two"
    assert found["three"].description == "continued"


def test_marks_commits_and_reasons_are_read() -> None:
    found = tasks(
        "- [~] a\n- [/] b\n- [X] c <!-- abc1234 -->\n- [x] d <!-- deps: c --> <!-- ABCDEFG -->\n- [-] e\n"
        "- [!] f <!-- blocked: no key -->\n- [!] g\n  - Blocker: no door\n- [ ] h <!-- abc1234 -->\n"
    )
    assert [task.mark for task in found.values()] == [
        *(
            Mark.RUNNING,
            Mark.RUNNING,
            Mark.DONE,
            Mark.DONE,
            Mark.SKIPPED,
            Mark.BLOCKED,
            Mark.BLOCKED,
            Mark.OPEN,
        )
    ]
    assert [task.commit for task in found.values() if task.commit] == ["abc1234"]
    assert (found["f"].reason, found["g"].reason) == ("no key", "no door")


@each_case(
    ("words", "commands"),
    [
        ("`pytest -q`", ["pytest -q"]),
        ("`pytest -q` passes.", ["pytest -q"]),
        ("Run `a` and `b`", ["a", "b"]),
        ("`GET /users` returns 200", []),
        ("`src/x.py` exists", []),
        ("the form renders", []),
        ("an odd ` tick", []),
    ],
)
def test_acceptance_is_a_command_when_the_line_is_made_of_it(words: str, commands: list[str]) -> None:
    (task,) = work(f"- [ ] a\n  - Acceptance: {words}\n").tasks
    assert [gate.command for gate in task.acceptance] == commands
    assert task.criteria == (() if commands else (words,))


@each_case(
    ("words", "scope"),
    [
        ("src/a.py, tests/**", ("src/a.py", "tests/**")),
        ("Create: `src/a.py`, modify `src/b.py:10-20`", ("src/a.py", "src/b.py")),
        ("Makefile (new)", ("Makefile",)),
        ("none", ()),
        ("whatever it takes", ()),
    ],
)
def test_files_become_the_scope(words: str, scope: tuple[str, ...]) -> None:
    (task,) = work(f"- [ ] a\n  - Files: {words}\n  - Complexity: High\n").tasks
    assert (task.scope, task.complexity) == (scope, "high")


def test_a_file_outside_of_the_project_is_no_reason_to_refuse_a_plan(wording: Wording) -> None:
    found = work("- [ ] a\n  - Files: ../secret, src/a.py\n")
    assert found.tasks[0].scope == ("src/a.py",)
    wording(found.notes)


@each_case(
    ("said", "needs"),
    [
        ("none (this is the spine)", ()),
        ("None — it comes first", ()),
        ("01-enums", ("01-enums-closed-types",)),
        ("01-enums, 09-macros", ("01-enums-closed-types",)),
    ],
)
def test_a_label_names_a_task_also_by_the_beginning_of_its_title(said: str, needs: tuple[str, ...]) -> None:
    plan = f"- [ ] **01-enums** closed types\n- [ ] **02-match** patterns\n  - Deps: {said}\n"
    assert work(plan).tasks[1].depends_on == needs


def test_a_label_that_names_no_task_leaves_the_order_of_the_file(wording: Wording) -> None:
    found = work("- [ ] a\n- [ ] b\n  - Dependencies: a running database\n- [ ] c\n  - Depends on: c\n")
    assert [(task.depends_on, task.after) for task in found.tasks] == [((), ()), ((), ("a",)), ((), ("b",))]
    wording(found.notes)


def test_a_task_may_ask_for_the_proof_that_its_checks_fail_without_it() -> None:
    tasks = work("- [ ] a\n  - Prove: yes\n- [ ] b\n  - Prove: No\n- [ ] c\n").tasks
    assert [one.prove for one in tasks] == [True, False, False]


@each_case(
    ("below", "meant"),
    [
        ("- Acceptence: it renders", '"Acceptence" is read as text: did you mean "Acceptance"?'),
        ("- **Acceptanse**: it renders", '"Acceptanse" is read as text: did you mean "Acceptance"?'),
        ("- Complexty: high", '"Complexty" is read as text: did you mean "Complexity"?'),
        ("Dependson: b", '"Dependson" is read as text: did you mean "Depends on"?'),
        ("- Dependency: b", '"Dependency" is read as text: did you mean "Depends on"?'),
        (
            "- Prove: yse",
            'prove: expected one of: yes, no, true, false; "yse" is ignored (did you mean "yes"?)',
        ),
        (
            "- Complexity: hgh",
            'complexity: expected one of: high, medium, low; "hgh" is ignored (did you mean "high"?)',
        ),
    ],
)
def test_a_misspelt_label_is_told_with_what_was_meant(below: str, meant: str) -> None:
    found = work(f"- [ ] a\n  {below}\n- [x] b\n  - Acceptence: `make`\n")
    assert found.notes == (f"plan.md:2: {meant}",)
    assert (found.tasks[0].complexity, found.tasks[0].prove) == (None, False)
    told = "" if "hgh" in below or "yse" in below else below
    assert found.tasks[0].description == told, "the agent is told it as it is"


@each_case("label", ["Note", "Found", "Tests", "Acc", "Accept", "Very", "Reasoning", "Example", "http"])
def test_other_words_before_a_colon_are_text(label: str) -> None:
    found = work(f"- [ ] a\n  - {label}: `make`\n")
    assert (found.notes, found.tasks[0].description) == ((), f"- {label}: `make`")


@each_case(
    "label",
    [
        "Verification",
        "**Verification**",
        "Verification steps",
        "Verify with",
        "Automated verification",
        "Acceptance commands",
        "Acceptance checks",
        "Acceptance criteria (automated)",
        "acceptance_tests",
        "Criteria",
        "Success criteria",
    ],
)
@each_case(
    "below",
    [": `make test`", ": run `make test`", ":\n    - `make test`", ":\n    ```sh\n    make test\n    ```"],
)
def test_a_command_is_run_whatever_its_acceptance_is_called(label: str, below: str) -> None:
    found = work(f"- [ ] a\n  - before\n  - {label}{below}\n  - after\n")
    assert [one.command for one in found.tasks[0].acceptance] == ["make test"]
    assert (found.notes, found.tasks[0].description) == ((), "- before\n- after")


def test_what_stands_beside_such_a_command_is_a_criterion_and_words_alone_are_text() -> None:
    (both,) = work(
        "- [ ] a\n  - Verification:\n    - `make test`\n    - it is red\n    - Files: a.py\n"
    ).tasks
    assert ([one.command for one in both.acceptance], both.criteria) == (["make test"], ("it is red",))
    assert (both.scope, both.description) == (("a.py",), "")
    (words,) = work("- [ ] a\n  - Criteria: it renders\n  - Verification:\n    - look at it\n").tasks
    assert (words.acceptance, words.criteria) == ((), ())
    assert words.description == "- Criteria: it renders\n- Verification:\n  - look at it"


@each_case("label", ["Verified by", "Verification mail", "Acceptance date", "Verify (manual)"])
def test_what_only_begins_like_acceptance_is_noted_where_it_has_a_command(
    label: str, wording: Wording
) -> None:
    found = work(f"- [ ] a\n  - {label}: `make`\n")
    wording(found.notes)
    assert (found.tasks[0].acceptance, found.tasks[0].description) == ((), f"- {label}: `make`")
    assert work(f"- [ ] a\n  - {label}: it is there\n- [x] b\n  - {label}: `make`\n").notes == ()


@each_case(
    "below",
    [": `make`", ": Run `make` and `make lint`", ":\n    - `make`", ":\n    ```sh\n    make\n    ```"],
)
def test_a_check_below_a_misspelt_label_is_not_left_out_in_silence(below: str, wording: Wording) -> None:
    wording(problems(f"- [ ] a\n  - Acceptence{below}\n"))


def test_a_label_may_have_a_dash_for_its_blank() -> None:
    (first, _) = work("- [ ] a\n  - Depends-on: b\n  - done_when: `make`\n- [ ] b\n").tasks
    assert (first.depends_on, [one.command for one in first.acceptance]) == (("b",), ["make"])
    (below,) = work("- [ ] a\n  - Reasons:\n    - one\n    - Files: a.py\n").tasks
    assert (below.scope, below.description) == (("a.py",), "- Reasons:\n  - one")


def test_what_was_found_on_the_way_and_reports_are_no_tasks(wording: Wording) -> None:
    plan = "- [ ] a\n\n## Discovered Work\n\n- [ ] b\n\n## Plan Evaluation Report\n\n- [x] scope\n\n### More\n- [ ] c\n"
    assert list(tasks(plan)) == ["a"]
    assert work(plan).sha256 == work("- [ ] a\n").sha256
    assert list(tasks(plan + "## Phase 2: Evaluation report page\n- [ ] d\n")) == ["a", "d"]
    wording(work(plan).notes)
    assert work("- [ ] a\n\n## Discovered Work\n\n- [ ] b <!-- loopwright -->\n").notes == ()


@each_case("below", ["- [ ] Task 3.1: More", "Also:\n\n* [ ] Task 3.1: More", "### P\n- [ ] 3.1 More"])
def test_what_is_appended_to_our_own_summary_is_a_task_and_stays_one(below: str) -> None:
    done = {"mark": "done", "commit": "a" * 40}
    going, over = progress({"items": {"1.1": done}}), {"completed_at": "2026-11-16T12:00:00+00:00"}
    ended = progress({"items": {"1.1": done}, **over})
    plan = "## P1\n\n- [ ] Task 1.1: a\n\n## Discovered Work\n\n- [ ] b\n"
    files = {"plan.md": SOURCE.written({"plan.md": plan.encode()}, ended)["plan.md"] + f"{below}\n".encode()}
    before = SOURCE.parse(files, "plan.md")
    assert [(one.key, one.after, one.mark) for one in before.tasks] == [
        ("1.1", (), Mark.DONE),
        ("3.1", ("1.1",), Mark.OPEN),
    ]
    # While it is worked on the summary goes, and what stood below it does not become a part of what was above.
    for told, summaries in ((going, 0), (progress({"items": {"1.1": done, "3.1": done}, **over}), 1)):
        files |= SOURCE.written(files, told)
        found = SOURCE.parse(files, "plan.md")
        assert [(one.key, one.phase) for one in found.tasks] == [(one.key, one.phase) for one in before.tasks]
        assert found.sha256 == before.sha256
        assert files["plan.md"].count(b"## Execution Summary") == summaries
        assert files["plan.md"].count(b"## Added tasks <!-- loopwright -->") == 1
        assert not SOURCE.written(files, told)
    assert b"2/2" in files["plan.md"]
    assert b"**Ready for**: your review" in files["plan.md"]


@each_case(
    ("report", "metadata", "evaluated"),
    [
        ("", "", ""),
        ("## Plan Evaluation Report\n\n**Verdict**: ✅ PASS\n", "", "passed"),
        ("## Evaluation Report\n\n- scope: PASS\n- Verdict: FAIL (no tests)\n", "", "failed"),
        ("## Execution Evaluation Report\n\nVerdict: PASS\n", "", ""),
        (
            "",
            '{"track_id": "t", "loop_state": {"checkpoints": {"EVALUATE_PLAN": {"verdict": "PASS"}}}}',
            "passed",
        ),
        ("", '{"loop_state": {"checkpoints": {"EVALUATE_PLAN": {"status": "FAILED"}}}}', "failed"),
        ("## Evaluation Report\n\nVerdict: PASS\n", '{"track_id": "t"}', "passed"),
        ("", '{"verdict": "PASS"}', ""),
    ],
)
def test_an_evaluation_that_stands_in_the_plan_or_its_metadata_is_a_fact(
    report: str, metadata: str, evaluated: str
) -> None:
    others = {"metadata_json": metadata} if metadata else {}
    assert work(f"- [ ] a\n\n{report}", **others).evaluated == evaluated


REPORT = """\
## Plan Evaluation Report

**Track**: sign-up_20261116
**Evaluator**: loop-plan-evaluator
**Execution Mode**: PARALLEL

### Results
| Pass | Status |
|------|--------|
| Scope Alignment | PASS ✅ |
| Overlap Detection | {overlap} |
| Board Review | SKIPPED ⏭️ |

### Board Decision (if applicable)
- **Verdict**: {board}
- **Vote**: 4 APPROVE / 1 REJECT

{verdict}

### Board Conditions (carry forward):
1. The audit must PASS before launch
"""
"""As the program writes it that these plans come from."""


@each_case(
    ("overlap", "board", "verdict", "evaluated"),
    [
        ("PASS ✅", "APPROVED", "### Verdict: PASS ✅ → Proceed to Parallel Execution", "passed"),
        ("PASS ✅", "REJECTED", "### Verdict: PASS ✅ → Proceed to Parallel Execution", "passed"),
        ("FAIL ❌", "APPROVED", "### Verdict: FAIL ❌ → Return to Planner with fixes:\n1. Skip it", "failed"),
        ("FAIL ❌", "APPROVED", "### Verdict\n\n**FAIL**: it exists already", "failed"),
        ("FAIL ❌", "APPROVED", "### Remarks", "failed"),
        ("PASS ✅", "APPROVED", "### Remarks", "passed"),
        (
            "PASS ✅",
            "APPROVED",
            "### Verdict: FAIL ❌\n\n## Plan Evaluation Report\n\nVerdict: PASS",
            "passed",
        ),
    ],
)
def test_a_report_with_headings_of_its_own_is_understood(
    overlap: str, board: str, verdict: str, evaluated: str
) -> None:
    report = REPORT.format(overlap=overlap, board=board, verdict=verdict)
    found = work(f"- [ ] a\n\n{report}\n## Phase 2\n\n- [ ] b: FAIL\n")
    assert (found.evaluated, [task.key for task in found.tasks]) == (evaluated, ["a", "b-fail"])


LOCATED = [
    ("words\n", "plan.md:1: there is no task here: write each as a line such as `- [ ] Add the login form`"),
    (
        "# Plan\\n\\n1. Do it.\\n2. Test it.",
        "plan.md:1: this line has the two characters \\n for line breaks",
    ),
    ("- [ ] a\n- []\n", "plan.md:2: [] needs a space to be a checkbox: write [ ]"),
    (
        "- [ ] a\n- [?] b\n",
        "plan.md:2: unknown mark [?]: known are [ ], [~], [/], [x], [X], [!], [-]",
    ),
    ("- [ ] a\n- [ ]\n", "plan.md:2: a box without words: say what is to be done"),
    ("- [ ] Task 1: a\n\n- [ ] Task 1: b\n", 'plan.md:3: "Task 1" is already on line 1: each task needs'),
    ("- [ ] a <!-- id: x -->\n- [ ] b <!-- id: x -->\n", 'plan.md:2: "x" is already on line 1: each task'),
    ("- [ ] a\n```\ncode\n", "plan.md:2: this ``` block is never closed"),
    ("- [ ] a\n<!-- - [ ] b\n", "plan.md:2: this comment is never closed with -->"),
    (b"- [ ] a\n- [ ] \xff\n", "plan.md:2: this is not UTF-8: save the file with that encoding"),
    ("- [ ] a\n- [ ] b\0\n", "plan.md:2: the character NUL is not allowed"),
    (
        "- [ ] alpha\n- [ ] b <!-- deps: alhpa -->\n",
        'plan.md:2: b: unknown task "alhpa" (did you mean "alpha"?)',
    ),
    ("- [ ] f10\n- [ ] b <!-- deps: f1 -->\n", 'plan.md:2: b: unknown task "f1" (did you mean "f10"?)'),
    ("- [ ] a <!-- deps: a -->\n", "plan.md:1: a: a task cannot depend on itself"),
    (
        "- [ ] a <!-- deps: b -->\n- [ ] b <!-- deps: a -->\n",
        "plan.md:1: a: these tasks wait for each other: a -> b",
    ),
    ("```yaml\ndag:\n  nodes:\n    - name: x\n```\n- [ ] a\n", "plan.md:4: dag: nodes: an entry needs an id"),
    (
        "```yaml\ndag:\n  nodes:\n    - id: a\n    - id: a\n```\n- [ ] a\n",
        'plan.md:5: dag: nodes: "a" is already on line 4',
    ),
    (
        "```yaml\ndag:\n  nodes:\n    - id: a\n      files: {b: c}\n```\n- [ ] a\n",
        "plan.md:5: dag: files: expected a text or a list such as [1.1, 1.2]",
    ),
    (
        "```yaml\ndag:\n  parallel_groups:\n    - id: pg-1\n      tasks: [b]\n```\n- [ ] a\n",
        'plan.md:4: dag: "pg-1": unknown task "b"',
    ),
    (
        "```yaml\ndag:\n  nodes:\n\t- id: a\n```\n- [ ] a\n",
        "plan.md:4: dag: indent with spaces, not with tabs",
    ),
    (
        "```yaml\ndag:\n  what?\n```\n- [ ] a\n",
        'plan.md:3: dag: expected nodes: or parallel_groups:, not "what?"',
    ),
    (
        "```yaml\ndag:\n  nodes:\n    id: a\n```\n- [ ] a\n",
        "plan.md:4: dag: expected an entry that begins with a dash",
    ),
    (
        "```yaml\ndag:\n  nodes:\n    - {id: a\n```\n- [ ] a\n",
        "plan.md:4: dag: expected an entry such as {id: 1.1",
    ),
]


@pytest.mark.capability("C057")
@each_case(("text", "problem"), LOCATED)
def test_what_is_wrong_is_told_with_its_line(text: str | bytes, problem: str) -> None:
    assert problems(text)[0].startswith(problem)


@each_case(
    ("line", "problem"),
    [
        ("- [ ]Task", '"- [ ]Task" is not a checkbox: write "- [ ] Task"'),
        ("- [x]Task", '"- [x]Task" is not a checkbox: write "- [x] Task"'),
        ("-[ ] Task", '"-[ ] Task" is not a checkbox: write "- [ ] Task"'),
        ("1.[x] Task", '"1.[x] Task" is not a checkbox: write "1. [x] Task"'),
        ("- [x ] Task", '"- [x ] Task" is not a checkbox: write "- [x] Task"'),
        ("- [ x] Task", '"- [ x] Task" is not a checkbox: write "- [x] Task"'),
        ("* [  ] Task", '"* [  ] Task" is not a checkbox: write "* [ ] Task"'),
        ("- [ ]: Task", '"- [ ]: Task" is not a checkbox: write "- [ ] : Task"'),
        (
            "- [v] Task",
            "unknown mark [v]: known are [ ], [~], [/], [x], [X], [!], [-]; if this is not a task, write \\[v]",
        ),
        ("- [✔️] Task", "unknown mark [✔️]: known are"),
        ("- [х] Task", "unknown mark [х]: known are"),
        ("- []Task", '"- []Task" is not a checkbox: write "- [ ] Task"'),
    ],
)
def test_what_is_almost_a_checkbox_is_not_passed_over(line: str, problem: str) -> None:
    for before, after in (
        ("- [ ] a\n", ""),
        ("- [ ] a\n\n## P\n\n", "\n- [ ] b"),
        ("- group\n  ", "\n- [ ] a"),
    ):
        (found,) = problems(f"{before}{line}{after}\n")
        assert found.startswith(f"plan.md:{before.count(chr(10)) + 1}: {problem}"), found


@each_case(
    "line",
    [
        "- [x](https://example.org) is a link",
        "- [a][b] is one too",
        "- [[a]] and this",
        "- [1] a source",
        "- [12] another",
        "- [^1] a footnote",
        "- [a]: https://example.org",
        "- [a-z]+ is an expression",
        "- \\[v] is text",
        "- text [v] is text",
        "> - [v] quoted",
        "  - [v] below a task",
        "  -[ ] below a task",
        "    -[ ] code",
        "## Success Criteria\n\n- [v] met",
        "## Discovered Work\n\n- [v] met",
    ],
)
def test_other_brackets_are_text(line: str) -> None:
    found = work(f"- [ ] a\n{line}\n")
    assert ([task.key for task in found.tasks], found.notes) == (["a"], ())


def test_a_word_in_brackets_is_text_and_said_to_be(wording: Wording) -> None:
    wording(work("- [ ] a\n- [UI] Task\n").notes)


@each_case("line", ["- [A] Postgres", "- [P] = parallel", "-[b] SQLite", "1. [s] said", "- [ö] another"])
@each_case("before", ["- [ ] a\n", "- [ ] a\n\n## Architecture\n\n"])
def test_a_letter_in_brackets_is_text_and_said_to_be(line: str, before: str) -> None:
    found = work(f"{before}{line}\n")
    known = "[ ], [~], [/], [x], [X], [!], [-]"
    said = f'"{line}" is read as text: the marks of tasks are {known}'
    assert [task.key for task in found.tasks] == ["a"]
    assert found.notes == (f"plan.md:{before.count(chr(10)) + 1}: {said}",)


@each_case(
    "line",
    [
        "- []string in go",
        "- [v] visual",
        "- [✓] chosen",
        "- [✔️] chosen",
        "- [?] open question",
        "- [ ]: open",
        "*[x] done*, *[ ] open*",
    ],
)
def test_where_no_box_stands_beside_it_what_is_no_box_is_a_note(line: str) -> None:
    found = work(f"- [ ] a\n\n## Architecture\n\n{line}\n\n## Next\n\n- [ ] b\n")
    assert [task.key for task in found.tasks] == ["a", "b"]
    (note,) = found.notes
    assert note.startswith(f'plan.md:5: "{line}" is read as text: ')


@each_case("line", ["- [ ]Task", "-[ ] Task", "- [] Task", "- [x ] Task"])
def test_a_phase_of_nothing_but_broken_boxes_is_not_passed_over(line: str) -> None:
    (found,) = problems(f"- [ ] a\n\n## Phase 2\n\n{line}\n")
    assert found.startswith("plan.md:5: ")


@each_case("line", ["*[x]* done, *[ ]* open", "- [s]he", "- []byte and []int"])
def test_brackets_inside_of_words_and_code_are_text_beside_boxes_too(line: str) -> None:
    found = work(f"- [ ] a\n\n{line}\n")
    assert [task.key for task in found.tasks] == ["a"]
    assert not [note for note in found.notes if "[]" not in line]


def test_a_legend_is_no_work(wording: Wording) -> None:
    found = work("# Plan\n\n## Legend\n\n- [ ] open\n- [x] done\n- [P] parallel\n\n## Work\n\n- [ ] a\n")
    assert [task.key for task in found.tasks] == ["a"]
    wording(found.notes)


def test_what_is_wrong_itself_is_not_proposed() -> None:
    assert (
        problems("- [?] Task 1.7: a\n- [ ] b <!-- deps: 1.8 -->\n")[1] == 'plan.md:2: b: unknown task "1.8"'
    )


def test_a_broken_metadata_file_is_located_and_nothing_is_written(wording: Wording) -> None:
    wording(problems("- [ ] a\n", metadata_json='{\n"track_id": 1,\n'))
    wording(problems("- [ ] a\n", metadata_json="[]"))
    with pytest.raises(BadPlan, match=r"metadata\.json:1: loop_state: expected an object"):
        SOURCE.written({"plan.md": b"- [ ] a\n", "metadata.json": b'{"loop_state": 1}'}, progress({}))
    with pytest.raises(BadPlan, match=r"plan\.md:1: this ``` block is never closed"):
        SOURCE.written({"plan.md": b"```\n- [ ] a\n"}, progress({}))


def track(**state: object) -> str:
    return json.dumps({"version": 3, "track_id": "t", "loop_state": state}, indent=0)


@each_case(
    ("metadata", "problem"),
    [
        (
            '{"track_id": "t", "version": 99}',
            "1: version: 99 is newer than 3, the newest that Loopwright knows",
        ),
        ('{"track_id": "t",\n"version": "3"}', '2: version: expected a whole number, got "3"'),
        ('{"track_id": "t", "status": 1}', "1: status: expected a text, got 1"),
        ('{"track_id": "t", "blockers": {}}', "1: blockers: expected a list, got an object"),
        ('{"track_id": "t", "loop_state": []}', "1: loop_state: expected an object, got a list"),
        (track(checkpoints=["mine"]), "5: loop_state.checkpoints: expected an object, got a list"),
        (
            track(checkpoints={"EXECUTE": {"commits": "none"}}),
            '7: loop_state.checkpoints.EXECUTE.commits: expected a list, got "none"',
        ),
        (track(fix_cycle_count="1"), '5: loop_state.fix_cycle_count: expected a whole number, got "1"'),
        (track(current_step=3), "5: loop_state.current_step: expected one of: PLAN, EVALUATE_PLAN, "),
    ],
)
def test_metadata_that_could_not_be_written_without_a_loss_is_refused(metadata: str, problem: str) -> None:
    (found,) = problems("- [ ] a\n", metadata_json=metadata)
    assert found.startswith(f"metadata.json:{problem}")
    files = {"plan.md": b"- [ ] a\n", "metadata.json": metadata.encode()}
    with pytest.raises(BadPlan, match=r"metadata\.json:"):
        SOURCE.written(files, progress({"items": {"a": {"mark": "done"}}}))


def test_words_that_the_metadata_does_not_know_are_told_with_what_was_meant(wording: Wording) -> None:
    state = track(
        current_step="EXECUT",
        step_status=None,
        checkpoints={"EXECUTE": {"status": "IN_PROGRES", "last_task": "a"}, "EVALUATE_PLAN_": {}, "MINE": {}},
    )
    one, two, three = work("- [x] a\n- [ ] b\n", metadata_json=state).notes
    wording(one)
    assert one.endswith('(did you mean "EXECUTE"?)')
    wording(two)
    assert two.endswith('(did you mean "IN_PROGRESS"?)')
    wording(three)


@each_case("names", [("metadata.json",), ("spec.md", "metadata.json")])
def test_what_lies_beside_a_plan_is_not_taken_for_it(names: tuple[str, ...]) -> None:
    files = dict.fromkeys(names, b'{"track_id": "t"}')
    with pytest.raises(BadPlan, match=r"there is no plan\.md here any more"):
        SOURCE.written(files, progress({}))
    assert SOURCE.status_files({"plan.md": b"", **files}) == ("plan.md", "metadata.json")
    assert SOURCE.parse({"spec.md": b"- [ ] a\n"}, "spec.md").tasks[0].key == "a"


def test_another_programs_metadata_is_left_alone() -> None:
    files = {"plan.md": b"- [ ] a\n", "metadata.json": b'{"package": "x"}'}
    assert list(SOURCE.written(files, progress({"items": {"a": {"mark": "done"}}}))) == ["plan.md"]


@pytest.mark.capability("C054")
def test_metadata_that_is_ahead_of_the_plan_is_told_and_the_plan_counts(wording: Wording) -> None:
    commits = [{"sha": "abc1234", "task": "Task 1"}, {"sha": "abc1235", "task": "Task 2"}]
    state = {
        "version": 3,
        "loop_state": {"checkpoints": {"EXECUTE": {"last_task": "Task 2", "commits": commits}}},
    }
    found = work("- [x] Task 1: a\n- [ ] Task 2: b\n- [ ] Task 3: c\n", metadata_json=json.dumps(state))
    assert [task.mark for task in found.tasks] == [Mark.DONE, Mark.OPEN, Mark.OPEN]
    wording(found.notes)


@pytest.mark.capability("C054")
@each_case(
    ("last", "status", "first", "note"),
    [
        ("Task 3", "IN_PROGRESS", ["4"], ""),
        ("Task 1", "IN_PROGRESS", ["2"], ""),
        ("Task 5", "IN_PROGRESS", [], ""),
        ("Task 3", "PASSED", [], ""),
        ("Task 2", "IN_PROGRESS", [], "the plan does not, and the plan counts"),
        ("Task 9", "IN_PROGRESS", [], "no task of the plan is called that"),
    ],
)
def test_work_that_was_left_in_the_middle_goes_on_behind_its_last_task(
    last: str, status: str, first: list[str], note: str
) -> None:
    plan = "".join(f"- [{mark}] Task {n}: x\n" for n, mark in enumerate("x x x", start=1))
    state = {"version": 3, "loop_state": {"checkpoints": {"EXECUTE": {"status": status, "last_task": last}}}}
    found = work(plan, metadata_json=json.dumps(state))
    assert [task.key for task in found.tasks if task.first] == first
    assert [note in one for one in found.notes] == ([True] if note else [])
    assert found.sha256 == work(plan).sha256


@each_case(("said", "cycles", "noted"), [(1, 1, False), (0, 0, False), (50, 20, True), (None, None, False)])
def test_a_track_says_how_many_fix_cycles_it_allows_itself(
    said: int | None, cycles: int | None, noted: bool
) -> None:
    loop = {} if said is None else {"max_fix_cycles": said}
    found = work("- [ ] a\n", metadata_json=json.dumps({"version": 3, "loop_state": loop}))
    assert found.settings.get("fix_cycles") == cycles
    assert any("max_fix_cycles" in one for one in found.notes) is noted


@each_case(
    "passed, failed, expected",
    [(True, [], ("COMPLETE", "PASSED")), (False, ["tests"], ("EVALUATE_EXECUTION", "FAILED"))],
)
def test_a_verdict_in_the_same_second_as_the_one_before_it_moves_the_step(
    passed: bool, failed: list[str], expected: tuple[str, str]
) -> None:
    """Checkpoints have whole seconds, and a fix may take less than one. Later edits of the step are kept."""
    done = {"mark": "done", "commit": "abc1234"}
    fix = {
        "key": "fix-1",
        "title": "Repair it",
        "issue": "a is broken",
        "added_at": "2026-11-16T12:00:00.1+00:00",
    }
    plan = {"fixes": [fix], "fix_cycles": 1, "max_fix_cycles": 3}
    open_fix = progress({**plan, "items": {"a": done, "fix-1": {"mark": "running"}}})
    judged = {"passed": passed, "at": "2026-11-16T12:00:00.9+00:00", "failed": failed}
    over = {"completed_at": "2026-11-16T12:00:00.8+00:00", "failed": not passed, "judged": judged}
    ended = progress({**plan, **over, "items": {"a": done, "fix-1": done}})

    files = {"plan.md": b"- [ ] a\n", "metadata.json": b'{"version": 3, "track_id": "t"}'}
    files |= SOURCE.written(files, open_fix)
    assert json.loads(files["metadata.json"])["loop_state"]["current_step"] == "FIX"
    files |= SOURCE.written(files, ended)
    now = json.loads(files["metadata.json"])
    assert (now["loop_state"]["current_step"], now["loop_state"]["step_status"]) == expected
    now["loop_state"]["current_step"] = "BUSINESS_SYNC"
    files["metadata.json"] = json.dumps(now).encode()
    assert "metadata.json" not in SOURCE.written(files, ended)


@pytest.mark.clause("X21")
@each_case("odd", [{"title": ["x"], "id": ["x"], "task": ["x"]}, {"title": {}}, [], "words", None])
def test_odd_entries_of_the_metadata_stay_and_hold_nothing_up(odd: object) -> None:
    held = {"EXECUTE": {"commits": [odd]}}
    state = {"version": 3, "track_id": "t", "discovered_work": [odd], "blockers": [odd]}
    before = json.dumps({**state, "loop_state": {"checkpoints": held}}).encode()
    items = {"a": {"mark": "done", "commit": "abc1234"}, "b": {"mark": "blocked", "reason": "no key"}}
    step = progress({"items": items, "discovered": [{"title": "Mend the clock"}]})
    files = {"plan.md": b"- [ ] a\n- [ ] b\n", "metadata.json": before}
    files |= SOURCE.written(files, step)
    assert SOURCE.written(files, step) == {}
    now = json.loads(files["metadata.json"])
    lists = now["discovered_work"], now["blockers"], now["loop_state"]["checkpoints"]["EXECUTE"]["commits"]
    assert [(one[0], len(one)) for one in lists] == [(odd, 2)] * 3


def test_why_a_person_blocked_a_task_is_not_said_twice() -> None:
    files = {"plan.md": b"- [!] a\n  - Blocker: no door\n- [!] b <!-- blocked: no key -->\n- [!] c\n"}
    reasons = {task.key: task.reason for task in SOURCE.parse(files, "plan.md").tasks}
    items = {key: {"mark": "blocked", "reason": reason} for key, reason in reasons.items()}
    assert SOURCE.written(files, progress({"items": items})) == {}
    items["a"]["reason"] = "3 of 3 attempts failed"
    (now,) = SOURCE.written(files, progress({"items": items})).values()
    assert b"- Blocker: no door\n  - Blocked: 3 of 3 attempts failed <!-- loopwright -->\n- [!] b" in now


def test_a_box_or_a_commit_is_not_taken_for_the_reason_of_a_block() -> None:
    blocked = {"a": {"mark": "blocked", "reason": "b"}, "b": {"mark": "blocked", "reason": "!"}}
    files = {"plan.md": b"- [x] a <!-- abc1234 -->\n- [ ] b\n"}
    files |= SOURCE.written(files, progress({"items": {"b": blocked["b"]}}))
    files["plan.md"] = files["plan.md"].replace(b"[!]", b"[ ]")
    files |= SOURCE.written(files, progress({"items": blocked}))
    assert files["plan.md"].count(b"- Blocked:") == 2
    assert SOURCE.written(files, progress({"items": blocked})) == {}


@each_case(
    ("report", "checkpoint"),
    [
        ("", {"status": "FAILED", "verdict": "FAIL", "agent": "loop-plan-evaluator"}),
        ("", {"status": "FAILED"}),
        ("\n## Plan Evaluation Report\n\n- Verdict: FAIL\n", {}),
    ],
)
def test_why_a_person_overrode_a_failed_evaluation_stands_beside_it(
    report: str, checkpoint: dict[str, str]
) -> None:
    at = datetime(2026, 11, 16, tzinfo=UTC)
    said = EvaluatedPlan(passed=False, at=at, found=frozenset({"evaluated"}), despite="it is a spike")
    state = {"version": 3, "track_id": "t", "loop_state": {"checkpoints": {"EVALUATE_PLAN": checkpoint}}}
    files = {"plan.md": f"- [ ] a\n{report}".encode(), "metadata.json": json.dumps(state).encode()}
    assert SOURCE.parse(files, "plan.md").evaluated == "failed"
    files |= SOURCE.written(files, replace(progress({}), evaluated=said))
    step = json.loads(files["metadata.json"])["loop_state"]["checkpoints"]["EVALUATE_PLAN"]
    assert step == {**checkpoint, "status": "FAILED", **({"verdict": "FAIL"} if report else {})} | {
        "overridden_because": "it is a spike"
    }
    assert SOURCE.parse(files, "plan.md").evaluated == "failed", "the next plan of it needs its own reason"
    other = replace(said, found=frozenset({"can_fail"}), despite="something else")
    files["metadata.json"] = json.dumps(state).encode()
    told = json.loads(SOURCE.written(files, replace(progress({}), evaluated=other))["metadata.json"])
    assert "overridden_because" not in told["loop_state"]["checkpoints"]["EVALUATE_PLAN"]


def test_what_the_evaluator_did_after_the_end_is_not_undone() -> None:
    ended = progress({"completed_at": "2026-11-16T13:00:00+00:00", "items": {"a": {"mark": "done"}}})
    files = {"plan.md": b"- [ ] a\n", "metadata.json": b'{"version": 3, "track_id": "t"}'}
    files |= SOURCE.written(files, ended)
    state = json.loads(files["metadata.json"])
    assert state["loop_state"]["current_step"] == "EVALUATE_EXECUTION"
    state["loop_state"] |= {"current_step": "COMPLETE", "step_status": "PASSED"}
    files["metadata.json"] = json.dumps(state).encode()
    assert SOURCE.written(files, ended) == {}


def test_the_plans_own_evaluation_is_told_where_none_stands_and_is_no_reason_not_to_judge_the_next() -> None:
    said = EvaluatedPlan(
        passed=False,
        at=datetime(2026, 11, 16, tzinfo=UTC),
        found=frozenset({"can_fail", "twins"}),
        against=("no criterion can fail",),
        despite="it is a spike",
    )
    given = replace(progress({}), evaluated=said)
    files = {"plan.md": b"- [ ] a\n", "metadata.json": b'{"version": 3, "track_id": "t"}'}
    files |= SOURCE.written(files, given)
    assert json.loads(files["metadata.json"])["loop_state"]["checkpoints"]["EVALUATE_PLAN"] == {
        "status": "FAILED",
        "verdict": "FAIL",
        "agent": "loop-plan-evaluator",
        "run_by": "loopwright",
        "completed_at": "2026-11-16T00:00:00Z",
        "checks": {
            "overlap_detection": False,
            "dependencies": True,
            "task_quality": False,
            "dag_validation": True,
            "scope_alignment": "not evaluated",
            "board_review": "not evaluated",
        },
        "failure_reasons": ["no criterion can fail"],
        "overridden_because": "it is a spike",
    }
    assert SOURCE.written(files, given) == {}
    assert SOURCE.parse(files, "plan.md").evaluated == ""
    files["metadata.json"] = b'{"version": 3, "track_id": "t"}'
    fine = EvaluatedPlan(passed=True, at=said.at, found=frozenset({"twins"}))
    told = json.loads(SOURCE.written(files, replace(given, evaluated=fine))["metadata.json"])
    step = told["loop_state"]["checkpoints"]["EVALUATE_PLAN"]
    assert (step["status"], "verdict" in step) == ("NOT_STARTED", False), "only programs looked at it"
    assert (step["checks"]["task_quality"], step["checks"]["overlap_detection"]) == ("not evaluated", False)
    step["verdict"] = "not evaluated"
    said_once = {**files, "metadata.json": json.dumps(told).encode()}
    again = json.loads(SOURCE.written(said_once, replace(given, evaluated=fine))["metadata.json"])
    assert "verdict" not in again["loop_state"]["checkpoints"]["EVALUATE_PLAN"], "it is no verdict"
    told = json.loads(
        SOURCE.written(files, replace(given, evaluated=replace(fine, by="claude")))["metadata.json"]
    )
    step = told["loop_state"]["checkpoints"]["EVALUATE_PLAN"]
    assert (step["verdict"], step["run_by"], step["checks"]["task_quality"]) == ("PASS", "claude", True)
    theirs = {"EVALUATE_PLAN": {"status": "PASSED", "verdict": "PASS", "agent": "loop-plan-evaluator"}}
    state = {"version": 3, "loop_state": {"checkpoints": theirs}}
    files["metadata.json"] = json.dumps(state).encode()
    now = json.loads(SOURCE.written(files, given)["metadata.json"])["loop_state"]["checkpoints"]
    assert now["EVALUATE_PLAN"] == theirs["EVALUATE_PLAN"]


def test_a_phase_has_a_line_behind_it_as_long_as_it_is_finished_by_us() -> None:
    """The commits are those of its first and last task in time; what others had finished is left as it is."""
    before = b"## A\n\n- [ ] a\n- [x] b <!-- abc1234 -->\n\n## B\n\n- [x] c\n\n## C\n- [ ] d"
    done = {"mark": "done", "commit": "def5678aaaaaa", "ended_at": "2026-11-16T13:00:00+00:00"}
    over = progress({"items": {"a": done, "d": {"mark": "open"}}})
    files = {"plan.md": before}
    assert SOURCE.written(files, replace(over, phases=False))["plan.md"].count(b"finished") == 0
    files |= SOURCE.written(files, over)
    line = b"- [x] b <!-- abc1234 -->\n<!-- finished: abc1234..def5678aaaaa --> <!-- loopwright -->\n\n## B"
    assert line in files["plan.md"]
    assert files["plan.md"].count(b"finished") == 1
    assert SOURCE.written(files, over) == SOURCE.written(files, replace(over, items={}, phases=False)) == {}
    files |= SOURCE.written(files, progress({"items": {"a": {"mark": "open"}}}))
    assert files["plan.md"] == before


def test_a_status_that_the_current_step_never_has_is_an_error_with_its_line() -> None:
    state = {"current_step": "COMPLETE", "step_status": "FAILED", "checkpoints": {}}
    told = json.dumps({"version": 3, "loop_state": state}, indent=1).encode()
    with pytest.raises(BadPlan) as caught:
        SOURCE.parse({"plan.md": b"- [ ] a\n", "metadata.json": told}, "plan.md")
    (problem,) = caught.value.problems
    assert problem.startswith("metadata.json:5: loop_state.step_status: COMPLETE is never FAILED: use ")


def test_a_verdict_of_our_own_holds_for_exactly_the_plan_that_was_judged() -> None:
    plain = {"plan.md": b"- [ ] a\n", "metadata.json": b'{"version": 3, "track_id": "t"}'}
    sha = SOURCE.parse(plain, "plan.md").sha256
    said = EvaluatedPlan(passed=True, at=datetime(2026, 11, 16, tzinfo=UTC), by="claude", source_sha256=sha)
    files = {**plain, **SOURCE.written(plain, replace(progress({}), evaluated=said))}
    assert SOURCE.parse(files, "plan.md").evaluated == "passed"
    changed = {**files, "plan.md": files["plan.md"] + b"- [ ] b\n"}
    assert SOURCE.parse(changed, "plan.md").evaluated == ""


def test_the_name_of_the_step_that_the_file_uses_is_kept() -> None:
    before = {"version": 3, "loop_state": {"current_step": "PARALLEL_EXECUTE", "checkpoints": {}}}
    files = {"plan.md": b"- [ ] a\n", "metadata.json": json.dumps(before).encode()}
    state = json.loads(SOURCE.written(files, progress({}))["metadata.json"])["loop_state"]
    assert state["current_step"] == "PARALLEL_EXECUTE"
    assert list(state["checkpoints"]) == ["PARALLEL_EXECUTE", "PLAN"]


def test_too_much_of_anything_is_refused_before_it_costs_time(wording: Wording) -> None:
    wording(problems("\n" * MAX_LINES))
    wording(problems("- [ ] a\n" * (MAX_TASKS + 1)))
    assert "at most" in problems(f"- [ ] {'a' * MAX_LINE}\n")[0]
    many = problems("- []\n" * 200)
    assert (len(many), many[-1]) == (51, "and 150 more problems")


def test_it_is_found_by_its_name_or_by_a_box_in_it(tmp_path: Path) -> None:
    sources = registry.sources()
    track = tmp_path / "conductor" / "tracks" / "x_20260101"
    track.mkdir(parents=True)
    (track / "plan.md").write_text("- [ ] a\n")
    (track / "spec.md").write_text("The goal.\n")
    assert recognise(track, sources).kind == "plan_md"
    assert recognise(track / "plan.md", sources).kind == "plan_md"
    for place in (track, track / "plan.md"):
        assert read(SOURCE, place).context == "The goal."
    (tmp_path / "chores.md").write_text("words\n\n- [ ] a\n")
    (tmp_path / "README.md").write_text("words\n")
    assert recognise(tmp_path / "chores.md", sources).kind == "plan_md"
    with pytest.raises(BadPlan, match="nothing here is a known form of work"):
        recognise(tmp_path / "README.md", sources)
    with pytest.raises(BadPlan, match="there is no such file"):
        SOURCE.files(tmp_path)


def test_the_sample_of_the_documentation_is_a_plan() -> None:
    text = DOCS.read_text(encoding="utf-8")
    sample = text.split("````markdown\n")[1].split("````")[0]
    assert waits(sample) == {"1.1": (), "1.2": (), "2.1": ("1.1",), "write-it-down": ()}
    assert order(sample)["write-it-down"] == ("2.1",)


def test_a_specification_that_is_too_long_is_named_at_the_line_where_it_gets_too_long(
    wording: Wording,
) -> None:
    long = b"x" * 99 + b"\n"
    files = {"plan.md": b"- [ ] a\n", "spec.md": long * 2100}
    wording(laws.refused(SOURCE, files, "conductor/tracks/t"))
    both = {"plan.md": long * 1100 + b"\n- [ ] a\n", "spec.md": long * 1100}
    wording(laws.refused(SOURCE, both, "plan.md"))


def test_boxes_below_a_task_follow_it_unless_they_are_for_a_person_or_marked() -> None:
    text = (
        "# Plan\n\n## Phase 1\n\n- [ ] Task: Add the form\n    - [ ] Write the test\n    - [~] Write the form\n"
        "        - [ ] Add the button\n    - [ ] Manual verification: open it\n        - [ ] look at it\n"
        "    - [-] Add a picker\n    - [ ]* Add a theme\n- [ ] Task: Send it\n    - [ ] Write the call\n"
    )
    source, files = registry.source("plan_md"), {"plan.md": text.encode()}
    before = source.parse(files, "plan.md")
    changes = laws.told({before.tasks[0].key: ItemProgress(mark=Mark.DONE)})
    made = laws.after(source, files, changes)
    boxes = re.findall(r"\[(.)\]", made["plan.md"].decode())
    assert boxes == ["x", "x", "x", "x", " ", " ", "-", " ", " ", " "]
    assert source.written(made, changes) == {}
    assert source.parse(made, "plan.md").sha256 == before.sha256


def test_plain_bullets_of_a_todo_list_that_has_a_box_are_counted_in_one_note(wording: Wording) -> None:
    text = "# To do\n\n- Fix the login\n- [ ] Add the form\n  - with a button\n- Write docs\n\n## Notes\n\n- Be kind\n"
    found = SOURCE.parse({"TODO.md": text.encode()}, "TODO.md")
    assert [task.title for task in found.tasks] == ["Add the form"]
    wording(found.notes)
    assert SOURCE.parse({"plan.md": text.encode()}, "plan.md").notes == ()
