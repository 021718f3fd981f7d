"""What a reviewer is shown of a change, from real git."""

from tests.integration.git.workspaces.test_overlays import changed
from tests.integration.git.world import World


async def test_an_attribute_in_the_work_hides_nothing_of_it(world: World) -> None:
    made = await changed(
        world, "echo two > app.py; echo '*.py -diff' > .gitattributes; printf 'a\\0b' > b.bin"
    )
    patch = await world.repository.patch(made.parent, made.sha)
    assert [one.path for one in patch.files] == [".gitattributes", "app.py", "b.bin"]
    assert "\n+two\n" in patch.text
    assert patch.files[1].has(1)
    assert not patch.is_whole, "what is no text is not shown"


async def test_the_same_work_on_another_base_is_the_same_change(world: World) -> None:
    made = await changed(world, "echo two > app.py")
    other = await world.repository.laid_over(made, restore=(), texts={"beside.txt": "landed\n"})
    with_sibling = await world.repository.patch(made.parent, other.sha)
    alone = await world.repository.patch(made.parent, made.sha)
    assert alone.sha256 != with_sibling.sha256
    assert alone == await world.repository.patch(made.parent, made.sha)
