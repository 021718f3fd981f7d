"""Patterns of paths."""

from tests.cases import each_case

from loopwright.core.values.globs import covers, names_anything


@each_case(
    ("pattern", "path"),
    [
        ("src/app.py", "src/app.py"),
        ("./src/app.py", "src/app.py"),
        ("src", "src/deep/app.py"),
        ("src/", "src/app.py"),
        ("src/*.py", "src/app.py"),
        ("src/**", "src/deep/er/app.py"),
        ("**/test_*.py", "test_a.py"),
        ("**/test_*.py", "a/b/test_a.py"),
        ("src/**/app.py", "src/app.py"),
        ("file?.txt", "file1.txt"),
        ("file[0-9].txt", "file1.txt"),
        ("file[!a].txt", "fileb.txt"),
        ("odd[", "odd["),
        ("a+b", "a+b"),
    ],
)
def test_a_pattern_covers_a_path(pattern: str, path: str) -> None:
    assert covers(pattern, path)


@each_case(
    ("pattern", "path"),
    [
        ("src/app.py", "src/app.pyc"),
        ("src", "srcs/app.py"),
        ("src/*.py", "src/deep/app.py"),
        ("file[!a].txt", "filea.txt"),
        ("**/test_*.py", "a/my_test.py"),
        ("a+b", "aab"),
    ],
)
def test_a_pattern_does_not_cover_another_path(pattern: str, path: str) -> None:
    assert not covers(pattern, path)


@each_case(("pattern", "all_of_it"), [("**", True), ("./*", True), ("", True), ("**/a", False), ("a", False)])
def test_a_pattern_of_everything_names_nothing_in_particular(pattern: str, all_of_it: bool) -> None:
    assert names_anything(pattern) is all_of_it
