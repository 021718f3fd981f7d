"""Literals in source: what counts as the same, what decides something, and that no file is too odd to be read."""

import time

from tests.cases import each_case

from loopwright.core.literals import literals_of

BIG = 10**50


def values(path: str, text: str) -> list[str]:
    return [one.value for one in literals_of(path, text)]


@each_case("source", ["17", "17.0", "0x11", "'17'", "b'17'", "' 17 '"])
def test_what_means_the_same_is_the_same(source: str) -> None:
    assert values("a.py", f"x = {source}\n") == ["17"]


@each_case("source", ["0", "1", "-1", "True", "None", "''", "'a'", "b'a'", "..."])
def test_what_stands_everywhere_tells_nothing(source: str) -> None:
    assert values("a.py", f"x = {source}\n") == []


def test_a_number_of_many_digits_is_told_by_all_of_them() -> None:
    assert values("a.py", f"x = {BIG}\n") != values("a.py", f"x = {BIG + 1}\n")
    assert values("a.py", f"x = {BIG}\n") == values("a.py", f"x = {hex(BIG)}\n")


@each_case(
    ("source", "decides"),
    [
        ("x = 'word'", True),
        ("if x == 17: ...", True),
        ("f(17)", True),
        ("f('word')", False),
        ("f(mode='word')", False),
        ("f(mode=17)", True),
        ("x * 17", False),
        ("x < 17", False),
    ],
)
def test_a_literal_decides_unless_it_is_calculated_with_or_handed_on(source: str, decides: bool) -> None:
    assert [one.decides for one in literals_of("a.py", source)] == [decides]


def test_a_python_file_that_no_person_wrote_is_read_line_by_line() -> None:
    source = "def f(n):\n    return 4913\n"
    (one,) = literals_of("a.py", source)
    assert one.function == 1
    (one,) = literals_of("a.py", source + "#" * 300_000)
    assert (one.value, one.line, one.function) == ("4913", 2, 0)


def test_what_only_looks_like_a_number_is_none() -> None:
    assert values("a.js", "x = 0x_ + 017 + 44") == ["17", "44"]


def test_a_call_with_many_arguments_takes_time_in_proportion() -> None:
    source = f"f({', '.join(f'{chr(34)}w{n}{chr(34)}' for n in range(25_000))})\n"
    began = time.process_time()
    assert sum(not one.decides for one in literals_of("x.py", source)) == 25_000
    assert time.process_time() - began < 5
