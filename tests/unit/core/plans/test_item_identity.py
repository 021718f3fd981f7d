"""Which item of a source is which task after people renumbered, renamed or replaced items."""

from tests.cases import each_case

from loopwright.core.plans.item_identity import identify, is_same_item, unused_key

BEGUN = frozenset({"1", "2", "3"})


@each_case(
    "titles",
    [
        ("Add login", "add  `login`."),
        ("Implemnt the login form", "Implement the login form"),
        ("Add the login form", "Add login form"),
    ],
)
def test_a_small_change_of_a_title_leaves_the_item_as_it_is(titles: tuple[str, str]) -> None:
    assert is_same_item(*titles)


@each_case(
    "titles",
    [
        ("Create the file a.txt", "Create the file b.txt"),
        ("Add the login form", "Add the logout form"),
        ("Build step 1", "Build step 2"),
        ("Add login", "Inserted later"),
        ("Add login", "Add login and logout"),
    ],
)
def test_another_word_that_counts_is_another_item(titles: tuple[str, str]) -> None:
    assert not is_same_item(*titles)


def test_an_inserted_item_moves_the_others_and_displaces_none() -> None:
    found = identify(
        {"1": "Make a.txt", "2": "Make b.txt"},
        {"1": "Make a.txt", "2": "Make x.txt", "3": "Make b.txt"},
        BEGUN,
    )
    assert (dict(found.moved), found.displaced) == ({"2": "3"}, ())


def test_a_removed_item_loses_its_key_to_the_one_that_moved_up() -> None:
    found = identify({"1": "A", "2": "B", "3": "C"}, {"1": "A", "2": "C"}, frozenset())
    assert (dict(found.moved), found.displaced) == ({"3": "2"}, ("2",))


def test_two_items_that_change_places_keep_their_tasks() -> None:
    found = identify({"1": "A", "2": "B"}, {"1": "B", "2": "A"}, BEGUN)
    assert (dict(found.moved), found.displaced) == ({"1": "2", "2": "1"}, ())


def test_another_title_displaces_only_a_task_that_was_begun() -> None:
    before, now = {"1": "Add login", "2": "Add search"}, {"1": "Drop the cache", "2": "Write the manual"}
    found = identify(before, now, frozenset({"1"}))
    assert (dict(found.moved), found.displaced) == ({}, ("1",))


def test_equal_titles_stay_with_their_keys() -> None:
    found = identify({"1": "Test", "2": "Test"}, {"1": "Test", "2": "Test", "3": "Test"}, BEGUN)
    assert (dict(found.moved), found.displaced) == ({}, ())


def test_a_key_that_was_lost_is_replaced_by_an_unused_one() -> None:
    assert unused_key("2", {"2"}) == "2-before"
    assert unused_key("2", {"2", "2-before", "2-before-2"}) == "2-before-3"
