"""A person edits their own copy of a source that git tracks, while the branch's copy is told how the work goes."""

import pytest
from tests.acceptance.control.workshop import Workshop
from tests.waiting import eventually

from loopwright.core.rows.model import Plan, Task

SETTINGS = '[[gates]]\nname = "greeting"\nrun = "grep -q hello greet.txt"\n'
PLAN = """\
# Work

Say it all.

## Phase 1: First

- [ ] Task 1: Say one
  - Acceptance: `test -s made-1`

## Phase 2: Second

- [ ] Task 2: Say two
  - Acceptance: `test -s made-2`

## Notes

Nothing yet.
"""
NEW = "- [ ] Task {0}: Say {0}\n  - Acceptance: `test -s made-{0}`\n"


def begun(shop: Workshop, *keys: str) -> None:
    """Begin the plan, each of these tasks waiting at a gate of its own."""
    (shop.repository / "loopwright.toml").write_text(SETTINGS)
    (shop.repository / "plan.md").write_text(PLAN)
    shop.git("add", "-A")
    shop.git("commit", "-qm", "the work")
    makes = {key: {"write": f"made-{key}", "text": "x\n"} for key in "1234"}
    shop.play(
        {
            key: [[{"run": shop.gate(key).shell}, make] if key in keys else [make]]
            for key, make in makes.items()
        }
    )


def edit(shop: Workshop, old: str, new: str) -> None:
    path = shop.repository / "plan.md"
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def on_branch(shop: Workshop) -> str:
    return shop.git("show", f"{shop.row(Plan).branch}:plan.md")


@pytest.mark.more
@pytest.mark.capability("C014")
@pytest.mark.trap("lost edit")
@pytest.mark.timeout(300)
def test_what_a_person_adds_near_and_far_stands_on_the_branch_with_its_mark(shop: Workshop) -> None:
    """Also what they reword later, in lines that the branch has had from them before, and what they take back."""
    begun(shop, "1", "2")
    run = shop.start("run", "plan.md")
    shop.gate("1").until_reached()
    edit(shop, "Nothing yet.", "Much later: tea.")
    edit(shop, "Say it all.", "Say it all.\n\nA passing thought.")
    edit(shop, "made-1`\n", f"made-1`\n{NEW.format(3)}")
    eventually(lambda: "3" in {task.key for task in shop.rows(Task)})
    shop.gate("1").let_go()
    shop.gate("2").until_reached()
    eventually(lambda: "- [x] Task 3: Say 3 <!--" in on_branch(shop), timeout=60)
    assert "Much later: tea." in on_branch(shop)
    assert "A passing thought." in on_branch(shop)
    edit(shop, "Much later: tea.", "Much later: coffee.")
    edit(shop, "Say it all.\n\nA passing thought.", "Say it all.")
    edit(shop, "made-2`\n", f"made-2`\n{NEW.format(4)}")
    eventually(lambda: "4" in {task.key for task in shop.rows(Task)})
    shop.gate("2").let_go()
    assert run.end() == 0, run.out
    told = on_branch(shop)
    assert [line[:12] for line in told.splitlines() if line.startswith("- [")] == [
        f"- [x] Task {key}" for key in "1324"
    ]
    assert "\nMuch later: coffee.\n" in told
    assert "A passing thought." not in told, "what they took back is gone"
    assert told.count("**Tasks Completed**: 4/4") == 1
    assert not shop.events("source_not_merged", "source_not_told")
    assert "- [ ] Task 3" in (shop.repository / "plan.md").read_text(), "their own copy is theirs"
    shop.git("checkout", "-q", "plan.md")
    shop.git("merge", "-q", "--ff-only", shop.row(Plan).branch)
    assert (shop.repository / "plan.md").read_text() == told


@pytest.mark.capability("C014")
def test_an_edit_elsewhere_that_is_committed_merges_cleanly(shop: Workshop) -> None:
    begun(shop, "1")
    run = shop.start("run", "plan.md")
    shop.gate("1").until_reached()
    edit(shop, "Say it all.", "Say it all, and slowly.")
    shop.git("commit", "-qam", "a word of mine")
    shop.gate("1").let_go()
    assert run.end() == 0, run.out
    shop.git("merge", "-q", "-m", "the work", shop.row(Plan).branch)
    told = (shop.repository / "plan.md").read_text()
    assert "Say it all, and slowly." in told
    assert told.count("- [x] Task") == 2


def test_two_people_who_change_the_same_line_are_told_of_once(shop: Workshop) -> None:
    """One in their copy, one by a commit on the branch: the branch's holds there, and nothing is put together."""
    begun(shop, "1", "2")
    run = shop.start("run", "plan.md")
    shop.gate("1").until_reached()
    edit(shop, "Nothing yet.", "Much later: tea.")
    branch = shop.row(Plan).branch
    shop.git("worktree", "add", "-q", "--detach", str(shop.place / "other"), branch)
    other = shop.place / "other" / "plan.md"
    other.write_text(other.read_text().replace("Nothing yet.", "Much later: juice."))
    shop.git("-C", str(other.parent), "commit", "-qam", "a word of somebody else's")
    shop.git(
        "update-ref", f"refs/heads/{branch}", shop.git("-C", str(other.parent), "rev-parse", "HEAD").strip()
    )
    shop.gate("1").let_go()
    shop.gate("2").until_reached()
    shop.gate("2").let_go()
    run.end()
    told = on_branch(shop)
    assert "Much later: juice." in told
    assert "tea" not in told
    assert told.count("- [x] Task") == 2
    [said] = shop.events("source_not_merged")
    assert said.payload["place"] == "plan.md:17"


MALFORMED = PLAN.replace("- [ ] Task 2", "-[ ] Task 2")


def begun_malformed(shop: Workshop) -> None:
    """Commit a plan whose second box is none, and mend it in the checkout alone."""
    begun(shop)
    (shop.repository / "plan.md").write_text(MALFORMED)
    shop.git("commit", "-qam", "a box that is none")
    assert shop("run", "plan.md").code == 2
    (shop.repository / "plan.md").write_text(PLAN)


def add_task(shop: Workshop, key: str) -> None:
    path = shop.repository / "plan.md"
    path.write_text(path.read_text().replace("## Notes", f"{NEW.format(key)}\n## Notes"))


@pytest.mark.capability("C014")
@pytest.mark.trap("lost edit")
def test_a_plan_that_was_mended_without_a_commit_is_told_on_the_branch_as_it_was_mended(
    shop: Workshop,
) -> None:
    """The commit that it starts from cannot be read: what was read is what the branch gets, with its marks."""
    begun_malformed(shop)
    said = shop("run", "plan.md", timeout=100)
    assert said.code == 0, said.out + said.err
    assert "not written back" not in said.out
    assert not shop.events("source_not_told")
    assert on_branch(shop).count("- [x] Task") == 2
    shop.git("checkout", "-q", "plan.md")
    shop.git("merge", "-q", "--ff-only", shop.row(Plan).branch)
    add_task(shop, "3")
    assert shop("run", "plan.md", timeout=100).code == 0
    assert shop.started() == [("1", 1), ("2", 1), ("3", 1)], "what was done is not done again"


@pytest.mark.capability("C054")
def test_a_branch_whose_copy_cannot_be_read_is_owed_its_status_and_nothing_is_done_twice(
    shop: Workshop,
) -> None:
    """The mended copy is gone before the branch is made: nothing is left that could be told."""
    begun_malformed(shop)
    shop.program.env["LOOPWRIGHT_FAILPOINT"] = "store.submit.after"
    assert shop("run", "plan.md", timeout=100).code == -9
    del shop.program.env["LOOPWRIGHT_FAILPOINT"]
    shop.git("checkout", "-q", "plan.md")
    said = shop("resume", shop.row(Plan).id, timeout=100)
    words = " ".join(said.out.split())
    assert said.code == 6, said.out + said.err
    assert "VERIFIED" in words
    assert "not written back: plan.md lacks the status of 1, 2: plan.md:12:" in words
    assert "set the status in plan.md yourself" in words
    assert "is on that branch too" not in words
    seen = shop("status", "--json", "--exit-code")
    assert (seen.code, seen.document["plan"]["untold"]["items"]) == (6, ["1", "2"])
    assert "not written back: plan.md" in " ".join(shop("status").out.split())

    (shop.repository / "plan.md").write_text(PLAN)
    shop.git("commit", "-qam", "mended")
    shop.git("merge", "-q", "-m", "the work", shop.row(Plan).branch)
    add_task(shop, "3")
    more = shop("run", "plan.md", timeout=100)
    assert (more.code, len(shop.rows(Plan))) == (2, 1), more.out + more.err
    assert "a new plan would do again what is done" in " ".join(more.err.split())
    edit(shop, "- [ ] Task 1", "- [x] Task 1")
    edit(shop, "- [ ] Task 2", "- [x] Task 2")
    again = shop("run", "plan.md", timeout=100)
    assert again.code == 0, again.out + again.err
    assert shop.started() == [("1", 1), ("2", 1), ("3", 1)]
