"""Examples in docstrings are tests where a command runs them."""

from loopwright.core.doctests import lost_examples

BEFORE = 'def add(a, b):\n    """Add.\n\n    >>> add(2, 3)\n    5\n    """\n    return a + b\n'
RUNS = ["pytest --doctest-modules calc.py"]


def lost(after: str, before: str = BEFORE, path: str = "calc.py", commands: list[str] = RUNS) -> list[int]:
    return [line for line, _ in lost_examples(path, before, after, commands)]


def test_an_example_that_gives_something_else_or_is_gone_is_told_with_its_line() -> None:
    assert lost(BEFORE.replace("5", "0")) == lost(BEFORE.replace("add(2, 3)", "add(0, 5)")) == lost("") == [4]
    assert [words for _, words in lost_examples("calc.py", BEFORE, "", RUNS)] == [
        "no longer has the example 'add(2, 3)' with what it gave"
    ]


def test_examples_that_moved_or_came_are_no_loss() -> None:
    assert lost(f"import os\n\n\n{BEFORE}\n\n{BEFORE.replace('5', '6')}") == []
    assert lost(BEFORE, before="") == []


def test_examples_that_nobody_runs_or_can_read_say_nothing() -> None:
    assert lost("", commands=["pytest"]) == []
    assert lost("", path="notes.txt") == []
    assert lost("", before='"""\n>>>add(2, 3)\n"""') == []
