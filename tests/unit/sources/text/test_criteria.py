"""Which criteria are commands, and which only mention a name."""

import pytest
from tests.cases import each_case

from loopwright.adapters.sources.text.criteria import acceptance, lines_of
from loopwright.core.values.criteria import commands_in, in_words


@each_case(
    ("entry", "commands"),
    [
        ("`make test`", ("make test",)),
        ("Run `npm test -- a`.", ("npm test -- a",)),
        ("`cargo build` and `cargo test` must pass", ("cargo build", "cargo test")),
        ("`pytest -q` exits with code 0", ("pytest -q",)),
        ("`Limiter` is safe with threads", ()),
        ("the field `rate` is kept", ()),
        ("make test passes", ()),
        ("an odd ` backtick", ()),
        ("`` passes", ()),
        ("`make` passes " * 1000, ()),
    ],
)
@pytest.mark.capability("C015")
def test_only_what_says_that_a_command_passes_is_run(entry: str, commands: tuple[str, ...]) -> None:
    assert commands_in(entry) == commands


def test_a_command_is_run_once() -> None:
    assert [
        gate.command for gate in acceptance(["`make`", "`make` passes", "words", "`make` and `x` pass"])
    ] == ["make", "x"]


def test_bullets_numbers_and_boxes_are_not_part_of_a_criterion() -> None:
    assert lines_of("- a\n* [ ] b\n 3. c\n\n[x] d\ne - f") == ("a", "b", "c", "d", "e - f")


def test_a_criterion_that_is_nothing_but_commands_that_are_run_is_not_one_in_words() -> None:
    entries = ("`make test` passes", "It is fast", "`make lint` passes", "All pass: `make test`")
    assert in_words(entries, ["make test"]) == ("It is fast", "`make lint` passes")
