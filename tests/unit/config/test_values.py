"""How single values are read and shown, and where the home is."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as trying
from hypothesis import strategies as st
from tests.cases import each_case
from tests.refusals import raises_code

from loopwright.config.home import default_home, user_file
from loopwright.config.kinds import DOLLARS, SIZE, duration, read_duration, show_duration
from loopwright.config.layers import from_environment, from_flags
from loopwright.config.resolve import load, resolve, without_password
from loopwright.config.settings import settings
from loopwright.core.values.errors import BadConfig


@each_case(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("1h30m", 5400), ("1h 30m", 5400), ("2d", 172800), ("250ms", 0.25), (7, 7)],
)
def test_durations_are_read_as_people_write_them(text: object, seconds: float) -> None:
    assert read_duration(text) == seconds


@trying(deadline=None)
@given(st.integers(min_value=0, max_value=366 * 86400 * 1000))
def test_a_shown_duration_reads_back_as_itself(milliseconds: int) -> None:
    assert read_duration(show_duration(milliseconds / 1000)) == pytest.approx(milliseconds / 1000)


@each_case("off", ["off", "OFF", False])
def test_a_limit_can_be_switched_off(off: object) -> None:
    assert duration(off=True).read(off) is None


@each_case(
    ("given", "word"),
    [
        ("fixes", "fixes"),
        (True, "fixes"),
        ("true", "fixes"),
        (False, "off"),
        ("no", "off"),
    ],
)
def test_true_and_false_stand_for_two_of_the_words_where_a_setting_was_a_switch(
    given: object, word: str
) -> None:
    assert settings()["red_proof"].kind.read(given) == word
    with pytest.raises(ValueError, match="one of"):
        settings()["qa_mode"].kind.read(given)


@trying(deadline=None)
@given(st.integers(min_value=1024, max_value=2**50))
def test_a_shown_size_reads_back_as_itself(size: int) -> None:
    assert SIZE.read(SIZE.show(size)) == size


@each_case(("text", "size"), [("64MB", 64 * 2**20), ("1GiB", 2**30), ("2.5 kb", 2560), (4096, 4096)])
def test_sizes_are_read_as_people_write_them(text: object, size: int) -> None:
    assert SIZE.read(text) == size


@trying(deadline=None)
@given(st.integers(min_value=1, max_value=10**12))
def test_money_is_exact(micros: int) -> None:
    assert DOLLARS.read(f"{micros // 10**6}.{micros % 10**6:06d}") == micros
    assert DOLLARS.read(DOLLARS.show(micros)) == micros


def test_a_tenth_of_a_dollar_is_a_tenth() -> None:
    assert DOLLARS.read(0.1) == 100_000
    assert DOLLARS.read("$12.50") == 12_500_000
    assert DOLLARS.read("off") is None


@pytest.mark.capability("C001")
def test_the_home_is_found_through_the_environment() -> None:
    assert load({"HOME": "/u"}, platform="linux").home == Path("/u/.local/share/loopwright")
    assert load({"HOME": "/u", "XDG_DATA_HOME": "/d"}, platform="linux").home == Path("/d/loopwright")
    assert load({"HOME": "/u", "XDG_DATA_HOME": "d"}, platform="linux").home == Path(
        "/u/.local/share/loopwright"
    )
    assert load({"HOME": "/u", "LOOPWRIGHT_HOME": "~/x"}, platform="linux").home == Path("/u/x")
    assert load({"LOOPWRIGHT_HOME": "/y"}, platform="linux").home == Path("/y")
    mac = load({"HOME": "/u"}, platform="darwin").home
    assert mac == Path("/u/Library/Application Support/loopwright")


def test_a_relative_home_is_refused_because_it_would_move_with_the_folder() -> None:
    with raises_code("settings_wrong"):
        load({"HOME": "/u", "LOOPWRIGHT_HOME": "x"}, platform="linux")


def test_without_a_home_folder_the_message_says_what_to_set() -> None:
    with pytest.raises(BadConfig) as caught:
        default_home({}, "linux")
    assert "LOOPWRIGHT_HOME" in (caught.value.hint or "")
    assert user_file({}) is None
    with raises_code("no_home_folder"):
        _ = resolve([]).home


@each_case("platform", ["win32", "cygwin", "msys"])
def test_windows_is_refused_with_the_way_out(platform: str) -> None:
    with raises_code("platform_unsupported") as caught:
        load({"HOME": "/u"}, platform=platform)
    assert "WSL" in (caught.value.hint or "")


def test_showing_the_settings_names_value_origin_and_meaning() -> None:
    env = {"LOOPWRIGHT_LIMITS__HARD": "90m", "LOOPWRIGHT_AGENTS__CLAUDE__FLAGS": '["--x"]'}
    shown = {
        each.key: each for each in resolve([from_environment(env), from_flags({"gates": ["make"]})]).shown()
    }
    assert set(shown) == {*settings(), "agents.claude.flags"}
    assert shown["limits.hard"].value == "1h30m"
    assert shown["limits.hard"].origin == "environment LOOPWRIGHT_LIMITS__HARD"
    assert shown["agents.claude.flags"].value == ["--x"]
    assert shown["gates"].value == [{"name": "make", "run": "make"}]
    assert all(each.description for each in shown.values())


@each_case(
    ("url", "shown"),
    [
        ("postgresql://u:secret@h:5432/d", "postgresql://u:***@h:5432/d"),
        ("postgresql://u:p@ss@h/d", "postgresql://u:***@h/d"),
        ("postgresql://u@h/d", "postgresql://u@h/d"),
        ("postgresql://h:5432/d?x=1", "postgresql://h:5432/d?x=1"),
        ("", ""),
    ],
)
def test_a_password_is_never_shown(url: str, shown: str) -> None:
    assert without_password(url) == shown
    settled = resolve([from_flags({"database": url})])
    assert next(each.value for each in settled.shown() if each.key == "database") == shown
