"""Checks that commands name in their output."""

import pytest
from tests.cases import each_case

from loopwright.adapters.gates.text import clean_name, line_checks, seconds
from loopwright.core.values.wording import clean


def parsed(output):
    return [(c.name, c.status.value, c.message) for c in line_checks(2, "gate", output)]


@pytest.mark.capability("C081")
@each_case(
    ("output", "expected"),
    [
        ("", []),
        ("all fine\n", []),
        ("[PASS] imports\n", [("imports", "passed", "")]),
        ("[FAIL] ui: button missing\n", [("ui", "failed", "button missing")]),
        ("[FAIL] ui - button missing", [("ui", "failed", "button missing")]),
        ("[FAIL] ui — button missing", [("ui", "failed", "button missing")]),
        (
            "[SKIP] browser\n[ERROR] spec: no file\n",
            [("browser", "skipped", ""), ("spec", "error", "no file")],
        ),
        ("  [PASS] indented\r\n", [("indented", "passed", "")]),
        ("[PASS] gate:tier0\n", [("gate:tier0", "passed", "")]),
        ("[PASS] a/b.py::test_x[1-2]\n", [("a/b.py::test_x[1-2]", "passed", "")]),
        ("\x1b[32m[PASS]\x1b[0m green\n", [("green", "passed", "")]),
        ("[\x1b[31mFAIL\x1b[0m] red\n", [("red", "failed", "")]),
        ("10%\r50%\r[FAIL] after progress\n", [("after progress", "failed", "")]),
        ("[FAIL] deep\n  at line 1\n    and 2\nnot this\n", [("deep", "failed", "  at line 1\n    and 2")]),
        ("[FAIL] a\n  [PASS] b\n", [("a", "failed", ""), ("b", "passed", "")]),
        ("[FAIL]\n", [("gate", "failed", "")]),
        ("[FAIL]", [("gate", "failed", "")]),
        ("[FAILED] no\n[pass] no\n[PASS]no\nsee [PASS] no\n[PAS", []),
        ("[PASS] größe ✓ 日本\n", [("größe ✓ 日本", "passed", "")]),
        ("[PASS] a\x00b\x07\n", [("ab", "passed", "")]),
        ("[FAIL] sep\u2028arator: x\n", [("sep arator", "failed", "x")]),
    ],
)
def test_lines_that_name_a_check_become_checks(output, expected):
    assert parsed(output) == expected


def test_an_endless_line_gives_a_bounded_check():
    (check,) = line_checks(1, "g", "[FAIL] " + "n" * 1_000_000 + ": " + "m" * 1_000_000)
    assert len(check.name) == 300
    assert len(check.message) <= 4096


def test_the_id_of_a_check_names_its_command():
    assert [c.id for c in line_checks(2, "gate", "[PASS] x\n")] == ["2:gate/x"]


@each_case(
    ("text", "expected"),
    [
        ("a\r\nb\rc\n", "a\nb\nc\n"),
        ("\x1b]0;title\x07x\x1b[1;31my\x1b[0m", "xy"),
        ("tab\tstays, bell\x07 and nul\x00 go", "tab\tstays, bell and nul go"),
        ("lone \ud800 surrogate", "lone  surrogate"),
    ],
)
def test_stored_text_holds_nothing_that_a_database_or_a_terminal_minds(text, expected):
    assert clean(text) == expected
    clean(text).encode("utf-8")


def test_a_name_is_one_line():
    assert clean_name("  a\n b\tc  ") == "a b c"


@each_case(
    ("text", "expected"),
    [
        ("1.5", 1.5),
        ("1,234.5", 1234.5),
        ("0", 0.0),
        ("", None),
        (None, None),
        ("x", None),
        ("-1", None),
        ("nan", None),
        ("inf", None),
    ],
)
def test_a_duration_that_cannot_be_one_is_unknown(text, expected):
    assert seconds(text) == expected
