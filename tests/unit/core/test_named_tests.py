"""A command that names new tests alone says nothing of those that were there before."""

from tests.cases import each_case

from loopwright.core.named_tests import only_new_tests

NEW = ["tests/cb/test_a.py", "tests/cb/test_b.py", "tests/test_c.py"]
BEFORE = ["tests/test_old.py", "src/calc.py", "pyproject.toml"]


@each_case(
    ("command", "named"),
    [
        ("pytest -q tests/cb/test_a.py", ("tests/cb/test_a.py",)),
        ("python -m pytest -q ./tests/test_c.py::test_it", ("tests/test_c.py",)),
        ("uv run pytest -p no:cacheprovider -k old tests/cb", ("tests/cb/test_a.py", "tests/cb/test_b.py")),
        (
            "cd tests && PYTHONPATH=src pytest --cov src test_c.py cb/test_a.py",
            ("tests/test_c.py", "tests/cb/test_a.py"),
        ),
        ("pytest -q", ()),
        ("pytest", ()),
        ("pytest tests", ()),
        ("pytest tests/cb/test_a.py tests/test_old.py", ()),
        ("pytest tests/cb/test_a.py tests/test_nowhere.py", ()),
        ("pytest tests/cb/test_*.py", ()),
        ("pytest tests/cb/test_a.py ../other", ()),
        ("pytest --pyargs tests/cb/test_a.py", ()),
        ("pytest tests/cb/test_a.py && make lint", ()),
        ("sh -c 'pytest tests/cb/test_a.py'", ()),
        ("python tests/cb/test_a.py", ()),
        ("make test", ()),
        ("", ()),
    ],
)
def test_the_new_tests_are_told_where_nothing_else_is_run(command, named):
    assert only_new_tests(command, NEW, BEFORE) == named
