"""Every screen is what its golden file shows, fits 80 columns and breaks no word."""

import pytest
from tests.cases import each_case
from tests.unit.cli.screens.golden_screens import GOLDEN, SCREENS, WIDE, shown


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_what_its_golden_file_shows(name: str) -> None:
    assert shown(name) == (GOLDEN / f"{name}.txt").read_text()


@each_case("name", SCREENS)
def test_no_line_is_wider_than_80_columns_and_no_word_is_broken(name: str) -> None:
    told = shown(name)
    assert [line for line in told.splitlines() if len(line) > 80] == []
    # A word that was shortened says so itself.
    broken = {word for word in told.split() if "…" not in word} - set(shown(name, WIDE).split())
    assert {word for word in broken if word.strip("╭╮╰╯─│")} == set()


def test_times_are_local_and_never_in_utc() -> None:
    assert "00:45:00" in shown("status")
    assert [name for name in SCREENS if " UTC" in shown(name)] == []


def test_every_golden_file_has_its_screen() -> None:
    assert sorted(path.stem for path in GOLDEN.iterdir()) == sorted(SCREENS)
