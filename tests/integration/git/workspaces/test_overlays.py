"""Trees that are judged and land nowhere."""

from dataclasses import replace

from tests.integration.git.branches.test_landing import candidate
from tests.integration.git.world import World

from loopwright.core.integrity.gate_reach import Line
from loopwright.ports import Candidate, FileChange


async def changed(world: World, work: str) -> Candidate:
    await world.make()
    world.agent(work)
    snapshot = await world.snapshot()
    return await candidate(world, world.base_sha, snapshot.sha)


def of(made: Candidate, path: str) -> FileChange:
    (found,) = [change for change in made.changes if change.path == path]
    return found


async def test_a_candidate_says_what_it_changes(world: World) -> None:
    made = await changed(world, "echo two > app.py; echo new > 'a new.txt'; chmod +x app.py")
    assert [change.path for change in made.changes] == ["a new.txt", "app.py"]
    assert of(made, "a new.txt").before is None
    both = of(made, "app.py")
    assert both.before is not None
    assert both.after is not None
    assert (both.before.mode, both.after.mode) == ("100644", "100755")
    was, now = await world.repository.contents([both.before.id, both.after.id])
    assert now == "two\n"
    assert was != now


async def test_changes_are_taken_back_and_texts_put_in_without_touching_the_rest(world: World) -> None:
    made = await changed(
        world, "echo two > app.py; echo new > new.txt; mkdir sub; echo s > sub/kept; chmod +x new.txt"
    )
    laid = await world.repository.laid_over(made, restore=[of(made, "app.py")], texts={"new.txt": "other\n"})
    assert laid.tree != made.tree
    tree = world.home / "trees" / "laid"
    await world.repository.checkout(tree, laid.sha)
    assert (tree / "app.py").read_text() != "two\n"
    assert (tree / "new.txt").read_text() == "other\n"
    assert (tree / "new.txt").stat().st_mode & 0o111, "it is still a program"
    assert (tree / "sub" / "kept").read_text() == "s\n"
    again = await world.repository.laid_over(made, restore=[of(made, "app.py")], texts={"new.txt": "other\n"})
    assert again == laid, "the same question has the same answer"


async def test_everything_taken_back_is_the_parent(world: World) -> None:
    made = await changed(world, "rm app.py; mkdir app.py; echo x > app.py/inner; echo new > new.txt")
    laid = await world.repository.laid_over(made, restore=made.changes, texts={})
    assert laid.tree == await world.repository.tree_of(made.parent)
    assert replace(laid, sha="", tree="") == Candidate(parent=made.parent, sha="", tree="", empty=False)


async def test_what_a_commit_has_is_listed_and_read_up_to_a_bound(world: World) -> None:
    made = await changed(
        world, "mkdir sub; echo one > 'sub/a b.txt'; echo two > 'été.txt'; ln -s app.py link"
    )
    listed = await world.repository.listed(made.sha)
    assert listed["sub/a b.txt"].mode == "100644"
    assert listed["link"].mode == "120000"
    first, second = listed["sub/a b.txt"].id, listed["été.txt"].id
    assert await world.repository.texts([first, second], limit=1000) == {first: "one\n", second: "two\n"}
    (head,) = (await world.repository.texts([first], limit=60)).items()
    assert head == (first, "one\n")
    assert await world.repository.texts([first, second], limit=60) == {first: "one\n"}, (
        "what does not fit is left out"
    )
    assert await world.repository.texts([first], limit=10) == {}


async def test_lines_are_found_by_whole_words_as_they_are_written(world: World) -> None:
    made = await changed(
        world,
        "mkdir sub; echo \"open('data/a.json')\" > 'sub/été a.py'; echo 'xa.json a.jsonl axjson' > none.txt; "
        "printf 'a.json\\0' > binary",
    )
    found = await world.repository.mentions(made.sha, ["a.json", "absent word", "-e"], limit=1000)
    assert found == [Line(path="sub/été a.py", text="open('data/a.json')")]
    assert await world.repository.mentions(made.sha, ["no such word"], limit=1000) == []
    assert await world.repository.mentions(made.sha, [], limit=1000) == []
    assert await world.repository.mentions(made.sha, ["a.json"], limit=10) is None, "too many to tell"
