"""Lists, counts, sums and durations as people write them."""

from tests.cases import each_case
from tests.wording_plugin import Wording

from loopwright.core.values.wording import (
    advised,
    clean,
    counted,
    dollars,
    duration,
    grouped,
    listed,
    money,
    one_line,
)


@each_case(
    "said, expected",
    [
        (listed(["a", "b"]), "a, b"),
        (listed(["a", "b", "c"], limit=2), "a, b and 1 more"),
        (counted(1, "task"), "1 task"),
        (counted(2, "task"), "2 tasks"),
        (counted(2, "entry", "entries"), "2 entries"),
        (advised("no gates", ""), "no gates"),
        (advised("no gates", "add one"), "No gates. Add one."),
        (advised("git is missing?", "`apt` has it."), "Git is missing? `apt` has it."),
        (advised("plan.md: empty", "Look."), "plan.md: empty. Look."),
        (one_line("a\x1b\nb"), "a b"),
        (one_line("abcdef", limit=4), "abc…"),
        (money(1_250_000), "$1.25"),
        (money(1_250_000, estimated=True), "~$1.25"),
        (money(1_200), "$0.001"),
        (dollars(1_250_000), "$1.25"),
        (dollars(1_200), "$0.0012"),
        (duration(None), ""),
        (duration(59.9), "59 s"),
        (duration(61), "1 m 01 s"),
        (duration(3_660), "1 h 01 m"),
        (clean("\x1b[31mred\x1b[0m\r\nna\x00me\u202e"), "red\nname"),
    ],
)
def test_a_value_is_written_as_people_write_it(said: str, expected: str) -> None:
    assert said == expected


def test_an_unknown_sum_is_not_nothing() -> None:
    assert money(None) not in ("", "$0.00")


def test_notes_that_say_the_same_about_several_places_are_one(wording: Wording) -> None:
    notes = ["a.md:3: unknown label", "a.md:9: unknown label", "b.md: unknown label", "old form", "old form"]
    wording(grouped(notes))
