"""What a changed test no longer asks for."""

from tests.cases import each_case

from loopwright.core.asserts import weakened

BEFORE = """\
import unittest
import pytest


def helper():
    assert True


def test_add():
    assert add(2, 2) == 4, "a message"
    with pytest.raises(ValueError):
        add("", 1)


class SumTest(unittest.TestCase):
    attribute = 1

    def test_sum(self):
        self.assertEqual(add(1, 1), 2)
"""


@each_case(
    ("old", "new"),
    [
        ("import pytest", "import pytest, os"),
        ('"a message"', '"another"'),
        ("assert add(2, 2) == 4", "assert add(1, 1) == 2\n    assert add(2, 2) == 4"),
        ("attribute = 1", "attribute: int = 2"),
        ("import pytest", "import pytest\n\n\ndef test_new():\n    return\n"),
        ("    assert add(2, 2) == 4", "    if True:\n        return\n    assert add(2, 2) == 4"),
    ],
)
def test_a_change_that_asks_for_as_much_as_before_is_none(old: str, new: str) -> None:
    assert old in BEFORE
    assert weakened(BEFORE, BEFORE.replace(old, new)) == []


@each_case(
    ("old", "new", "found"),
    [
        ("== 4", "== 5", ["no longer checked: assert add(2, 2) == 4"]),
        ("add(2, 2) == 4", "True", ["no longer checked: assert add(2, 2) == 4"]),
        (
            "assertEqual(add(1, 1), 2)",
            "assertTrue(add(1, 1))",
            ["no longer checked: self.assertEqual(add(1, 1), 2)"],
        ),
        (
            "with pytest.raises(ValueError)",
            "with pytest.raises(Exception)",
            ["no longer checked: pytest.raises(ValueError)"],
        ),
        ("def test_add", "def tst_add", ["test_add was removed"]),
        (
            "def test_add",
            "@pytest.mark.skip\ndef test_add",
            ["may be skipped now: pytest.mark.skip on test_add"],
        ),
        (
            "def test_add",
            "@pytest.mark.skipif(1, reason='x')\ndef test_add",
            ["may be skipped now: pytest.mark.skipif(1, reason='x')"],
        ),
        (
            "    def test_sum",
            "    __test__ = False\n    def test_sum",
            ["may be skipped now: __test__ = False"],
        ),
        (
            "        self.assert",
            "        self.skipTest('')\n        self.assert",
            ["may be skipped now: self.skipTest('')"],
        ),
        ("    assert add", "    return\n    assert add", ["test_add ends before its checks"]),
        ("import pytest", "import (", ["it cannot be read as Python any more"]),
    ],
)
def test_what_is_gone_is_named(old: str, new: str, found: list[str]) -> None:
    assert old in BEFORE
    assert weakened(BEFORE, BEFORE.replace(old, new)) == found


def test_a_removed_file_takes_its_tests_with_it() -> None:
    assert weakened(BEFORE, None) == ["test_add was removed", "SumTest.test_sum was removed"]
    assert weakened("x = 1\n", None) == ["the file was removed"]


def test_what_could_not_be_read_before_asked_for_nothing() -> None:
    assert weakened("import (", "x = 1") == []


def test_a_long_check_is_cut_where_it_is_named() -> None:
    (found,) = weakened(f"assert x == '{'y' * 400}'\n", "")
    assert found.endswith("…")
    assert len(found) < 200


def test_a_check_that_is_called_in_an_odd_way_is_no_trouble() -> None:
    assert weakened("def test_x():\n    checks[0]()\n    x: int = 1\n", "def test_x():\n    pass\n") == []
