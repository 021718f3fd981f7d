"""Suspicious places are found on added lines of source, and nowhere else."""

from tests.cases import each_case

from loopwright.core.integrity.suspicion import HOLLOW, MOST, PATTERNS, Change, Place, suspicious_places


def found(path: str, after: str, before: str = "") -> list[tuple[int, str]]:
    places = suspicious_places([Change(path=path, before=before, after=after)])
    return [(one.line, one.pattern) for one in places]


@each_case(
    ("path", "line", "pattern"),
    [
        ("a.py", "if 'pytest' in sys.modules:", "asks whether a test runs it"),
        ("a.js", "if (process.env.NODE_ENV === 'test') {", "asks whether a test runs it"),
        ("a.py", "return frame.f_code.co_consts[-1]", "reads its caller's code"),
        ("a.py", "open('tests/test_add.py')", "names a test's file"),
        ("a.py", "os._exit(0)", "ends the process"),
        ("a.ts", "process.exit(0)", "ends the process"),
        ("a.py", "def __eq__(self, other): return True", "is equal to anything"),
        ("a.py", "math.isclose = lambda *a: True", "replaces what tests check with"),
        ("a.js", "a.strictEqual = () => {};", "replaces what tests check with"),
    ],
)
def test_each_pattern_finds_what_it_is_for(path: str, line: str, pattern: str) -> None:
    assert found(path, f"x\n{line}\n") == [(2, pattern)]
    assert pattern in PATTERNS
    assert found(path, f"x\n{line}\n", before=f"{line}\n") == [], "it was there before"
    assert found(path, f"x\n# {line}\n// {line}\n") == [], "a comment does nothing"
    assert found("notes.md", f"{line}\n") == []


@each_case(
    ("path", "text"),
    [
        ("cli.py", "if __name__ == '__main__':\n    sys.exit(main())\n"),
        ("a.py", "def __eq__(self, other):\n    return self.x == other.x\n"),
        ("a.py", "caller = sys._getframe(1)\n"),
        ("a.js", "const ok = a.strictEqual(b, c);\n"),
        ("shift.py", "def double(n):\n    return n << 1 if n != 4 else 8\n"),
        ("a.py", "import os  # noqa: F401\n"),
        ("tests/test_a.py", "def test_it():\n    assert add(1, 2) == 3\n"),
    ],
)
def test_ordinary_work_is_not_suspicious(path: str, text: str) -> None:
    assert found(path, text) == []


def test_a_body_on_the_next_line_counts() -> None:
    assert found("a.py", "def __eq__(self, *other):\n    return True\n") == [(1, "is equal to anything")]


def test_a_new_test_without_a_check_is_found() -> None:
    assert found("tests/test_a.py", "def test_it():\n    assert True\n") == [(1, HOLLOW)]
    assert found("a.test.js", "test('x', () => {});\n") == [(1, HOLLOW)]
    assert found("tests/test_a.py", "def test_it():\n    pass\n", before="import a\n") == []
    assert found("tests/__init__.py", "") == []


def test_the_list_is_short_whatever_an_agent_writes() -> None:
    assert len(found("a.py", "os._exit(0)\n" * 500)) == MOST
    assert found("a.py", "x" * 5_000_000 + " os._exit(0)") == []


def test_a_place_names_its_file_line_and_pattern() -> None:
    assert str(Place(path="a.py", line=3, pattern="exits")) == "a.py:3 exits"
