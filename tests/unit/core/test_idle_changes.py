"""Changes that change nothing are told from work."""

from tests.cases import each_case

from loopwright.core.idle_changes import is_idle


@each_case(
    ("path", "before", "after"),
    [
        ("a.py", "x = 1\n", "# one\nx = 1\n"),
        ("a.py", "def f():\n    return 1\n", 'def f():\n    """Return."""\n    return (1)\n'),
        ("a.py", "x = 1\n", "x  =  1\n\n\n"),
        ("a.js", "f();\n", "// calls\n  f();\n\n"),
        ("a.go", "func f() {}\n", "/* does\n * nothing */\nfunc f() {}\n"),
        ("a.sh", "echo x\n", "# says x\necho x\n"),
    ],
)
def test_comments_docstrings_and_spaces_are_idle(path, before, after):
    assert is_idle(path, before, after)


@each_case(
    ("path", "before", "after"),
    [
        ("a.py", "x = 1\n", "x = 2\n"),
        ("a.py", "x = 1\n", "x = 1\ny = (\n"),
        ("a.py", "def f():\n    return 1\n", "def f():\n    'x'.upper()\n    return 1\n"),
        ("a.js", "f();\n", "f();\ng();\n"),
        ("a.sh", "#!/bin/sh\necho x\n", "#!/bin/bash\necho x\n"),
        ("README.md", "# One\n", "# Two\n"),
        ("a.json", "1\n", " 1\n"),
    ],
)
def test_what_does_something_else_or_is_no_program_is_not(path, before, after):
    assert not is_idle(path, before, after)
